//! Environment variables of the host, by exact name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::consent::{Ability, GrantText, Risk, Surroundings};
use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, GrantForm, Kind, KindInfo, KindRequest, TypedRequest};
use crate::{Grants, Request};

/// A variable that a tool may read. `Debug` does not show its value.
#[derive(Clone, PartialEq, Eq)]
pub struct VariableGrant {
    /// The name, on the host and in the guest.
    pub name: VariableName,
    /// The value, of at most [`VariableGrant::VALUE_BYTES`]. `None`: the variable is not set, in
    /// the guest either.
    pub value: Option<Arc<str>>,
}

/// A request of a tool to read a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRequest {
    /// The name.
    pub name: VariableName,
}

/// The name of a variable that can be granted: at most [`VariableName::MAX_LEN`] letters, digits
/// and `_`, without a leading digit, and not a variable of kitbag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariableName(Box<str>);

/// Why a variable cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableNameError {
    /// The string is not a name.
    #[error(
        "`{}` is not the exact name of a variable: use 1 to {} letters, digits and `_`, without a \
         leading digit; write each name, such as `LANG`",
        shown(name),
        VariableName::MAX_LEN
    )]
    Form {
        /// The invalid name.
        name: String,
    },
    /// The variable configures kitbag.
    #[error(
        "`{}` cannot be granted: variables that start with `{}` configure kitbag itself",
        shown(name),
        VariableName::OWN_PREFIX
    )]
    Own {
        /// The name.
        name: String,
    },
}

/// Decides whether one of these grants is for the variable.
pub(crate) fn decide(grants: &[VariableGrant], request: &VariableRequest) -> Decision {
    match grants.iter().find(|grant| grant.name == request.name) {
        Some(grant) => Decision::Allowed { by: grant.to_string() },
        None => Decision::Denied {
            reason: format!("no grant names the variable `{}`", request.name),
            missing: Some(MissingGrant::of_list(VariableGrant::KEY, request.name.as_entry())),
        },
    }
}

impl VariableGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "env";

    /// Maximum number of variables of one tool.
    pub const MOST: usize = 64;

    /// The longest value for a guest, in bytes: 32 KiB.
    pub const VALUE_BYTES: usize = 32 << 10;
}

impl VariableName {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 128;

    /// The prefix of kitbag's own variables.
    pub const OWN_PREFIX: &'static str = "KITBAG_";

    /// Creates a name if the string is valid.
    ///
    /// # Errors
    ///
    /// [`VariableNameError`] has the reason.
    pub fn new(name: impl Into<String>) -> Result<Self, VariableNameError> {
        let name = name.into();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = (1..=Self::MAX_LEN).contains(&name.len())
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.bytes().all(is_part);
        match name.starts_with(Self::OWN_PREFIX) {
            _ if !is_name => Err(VariableNameError::Form { name }),
            true => Err(VariableNameError::Own { name }),
            false => Ok(Self(name.into())),
        }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a variable with this name probably contains a secret, such as
    /// `GITHUB_TOKEN`, `NPM_TOKEN_2`, `API_KEY`, `PGPASSWORD` or `DATABASE_URL`. A number at the
    /// end is ignored.
    pub fn looks_like_secret(&self) -> bool {
        const LAST_WORDS: [&str; 14] = [
            "APIKEY",
            "COOKIE",
            "COOKIES",
            "CREDENTIAL",
            "CREDENTIALS",
            "DSN",
            "KEY",
            "KEYS",
            "PASS",
            "PAT",
            "SECRET",
            "SECRETS",
            "TOKEN",
            "TOKENS",
        ];
        const PARTS: [&str; 4] = ["PASSWORD", "PASSWD", "PASSPHRASE", "CONNECTION_STRING"];
        // Their URLs contain credentials or are secret themselves.
        const SERVICES: [&str; 17] = [
            "AMQP",
            "BROKER",
            "CLOUDAMQP",
            "DATABASE",
            "DB",
            "MONGO",
            "MONGODB",
            "MYSQL",
            "PG",
            "POSTGRES",
            "POSTGRESQL",
            "RABBITMQ",
            "REDIS",
            "REDISCLOUD",
            "SMTP",
            "SQLALCHEMY",
            "WEBHOOK",
        ];
        let name = self.0.to_ascii_uppercase();
        let without_number = name.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
        let mut words = without_number.rsplit('_');
        let (last, before) = (words.next().unwrap_or_default(), words.next());
        let is_last = match last {
            // `PWD` alone is the working directory.
            "PWD" => before.is_some(),
            "ID" => before == Some("KEY"),
            "URL" | "URI" => before.is_some_and(|before| SERVICES.contains(&before)),
            last => LAST_WORDS.contains(&last),
        };
        is_last || PARTS.iter().any(|part| name.contains(part))
    }

    /// Formats the name as an entry of a list in TOML.
    fn as_entry(&self) -> String {
        format!("\"{self}\"")
    }
}

/// The kind of these grants.
pub(crate) const KIND: KindInfo = KindInfo {
    absent: Some("no environment"),
    imports: Some("wasi:cli/environment"),
    typed: Some(TypedRequest::new(VariableGrant::KEY, 1..=1, |words| {
        let name = VariableName::new(&*words[0]).map_err(|error| error.to_string())?;
        Ok(Request::Variable(VariableRequest { name }))
    })),
    ..KindInfo::new(VariableGrant::KEY, "variables", GrantForm::List)
};

impl Kind for Vec<VariableGrant> {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn lines(&self) -> Vec<String> {
        self.iter().map(VariableGrant::to_string).collect()
    }

    fn brief(&self) -> Vec<String> {
        self.iter().map(|grant| brief(&grant.name)).collect()
    }

    fn to_json(&self) -> Value {
        self.iter().map(|grant| grant.name.as_str()).collect()
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        let is_held =
            |grant: &VariableGrant| own.variables.iter().any(|own| own.name == grant.name);
        self.iter().find(|grant| !is_held(grant)).map(VariableGrant::to_string)
    }

    fn singles(&self) -> Vec<Grants> {
        let single =
            |grant: &VariableGrant| Grants { variables: vec![grant.clone()], ..Grants::default() };
        self.iter().map(single).collect()
    }

    fn as_ceiling(&self) -> Option<String> {
        let names: Vec<_> = self.iter().map(|grant| grant.name.as_entry()).collect();
        Some(format!("{} = [{}]", VariableGrant::KEY, names.join(", ")))
    }

    fn texts(&self, _: &Surroundings<'_>) -> Vec<GrantText> {
        // The variables of a request are classified even if they are unset now.
        let text = |VariableGrant { name, .. }: &VariableGrant| {
            let line = format!("reads an environment variable of yours: {name}");
            GrantText::new(line, Some(Ability::Variables), risks(name))
        };
        self.iter().map(text).collect()
    }
}

impl KindRequest for VariableRequest {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        // A variable that contains the placeholder of a secret.
        match grants.secrets.iter().find(|secret| secret.variables.contains(&self.name)) {
            Some(secret) => Decision::Allowed { by: secret.to_string() },
            None => decide(&grants.variables, self),
        }
    }

    fn brief(&self) -> String {
        brief(&self.name)
    }

    /// The placeholder of a secret is a part.
    fn is_granted_in_part(&self, grants: &Grants) -> bool {
        let mut secrets = grants.secrets.iter();
        !grants.variables.is_empty() || secrets.any(|secret| !secret.variables.is_empty())
    }

    fn consent(&self, _: bool) -> (Option<Ability>, Vec<Risk>) {
        (Some(Ability::Variables), risks(&self.name))
    }
}

fn risks(name: &VariableName) -> Vec<Risk> {
    if name.looks_like_secret() { vec![Risk::SecretVariable] } else { Vec::new() }
}

fn brief(name: &VariableName) -> String {
    format!("env {name}")
}

impl fmt::Debug for VariableGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VariableGrant").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Display for VariableGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let absent = if self.value.is_some() { "" } else { " (not set)" };
        write!(f, "env {}{absent}", self.name)
    }
}

impl fmt::Display for VariableRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "env {}", self.name)
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for VariableName {
    type Err = VariableNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for VariableName {
    type Error = VariableNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<VariableName> for String {
    fn from(name: VariableName) -> Self {
        name.0.into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(name: &str) -> VariableName {
        name.parse().unwrap()
    }

    fn grant(variable: &str) -> VariableGrant {
        VariableGrant { name: name(variable), value: None }
    }

    #[test]
    fn names_are_exact_and_not_reserved() {
        let check = |text: &str, expected: bool| {
            assert_eq!(VariableName::new(text).is_ok(), expected, "{text:?}");
        };
        check("LANG", true);
        check("_x9", true);
        check("kitbag_config", true);
        check(&"A".repeat(VariableName::MAX_LEN), true);
        check(&"A".repeat(VariableName::MAX_LEN + 1), false);
        for text in ["", "9A", "A-B", "A B", "A=B", "A\0", "*", "LC_*", "Ä", "$HOME"] {
            check(text, false);
        }
        for text in ["KITBAG_CONFIG", "KITBAG_", "KITBAG_NEW"] {
            let error = VariableName::new(text).unwrap_err();
            assert!(matches!(error, VariableNameError::Own { .. }), "{text}");
        }
    }

    #[test]
    fn names_that_look_like_secrets() {
        let secret = "GITHUB_TOKEN API_KEY OPENAI_APIKEY AWS_SECRET TOKEN PGPASSWORD DB_PASSWORD \
                      PASSWORD_FILE github_token KEY_ GITHUB_PAT AWS_SHARED_CREDENTIALS PASSWD \
                      TOKEN_23 SECRET_1 NPM_TOKEN_2 TOKEN2 MYSQL_PWD DATABASE_URL REDIS_URL \
                      MONGODB_URI WEBHOOK_URL AWS_ACCESS_KEY_ID COOKIE SENTRY_DSN DB_PASS \
                      AZURE_STORAGE_CONNECTION_STRING";
        for secret in secret.split_whitespace() {
            assert!(name(secret).looks_like_secret(), "{secret}");
        }
        let others = "LANG CI HOME KEYBOARD MONKEY TOKENIZERS_PARALLELISM PATH KEY_REPEAT USER \
                      PWD OLDPWD BASE_URL API_URL USER_ID COMPASS BUILD_1 _";
        for other in others.split_whitespace() {
            assert!(!name(other).looks_like_secret(), "{other}");
        }
    }

    #[test]
    fn variable_names_that_suggest_secrets_are_found() {
        let check = |name: &str, expected: &[Risk]| {
            assert_eq!(risks(&VariableName::new(name).unwrap()), expected, "{name}");
        };
        check("LANG", &[]);
        check("GITHUB_TOKEN", &[Risk::SecretVariable]);
        check("AWS_SECRET_ACCESS_KEY", &[Risk::SecretVariable]);
    }

    #[test]
    fn missing_variables_are_list_entries() {
        let request = VariableRequest { name: name("CI") };
        let decision = decide(&[grant("LANG")], &request);
        let Decision::Denied { missing: Some(missing), .. } = decision else { panic!("allowed") };
        assert_eq!((missing.key, &*missing.entry), ("env", "\"CI\""));
    }

    /// Names that share prefixes or differ only in case.
    fn names() -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(vec!["A", "a", "AB", "A_B", "B"]), 0..4)
    }

    proptest! {
        #[test]
        fn variables_need_a_grant_of_their_exact_name(granted in names(), requested in names()) {
            let variables: Vec<_> = granted.iter().map(|name| grant(name)).collect();
            let grants = Grants { variables, ..Grants::default() };
            for requested in requested {
                let request = VariableRequest { name: name(requested) };
                let is_allowed = matches!(request.decide(&grants), Decision::Allowed { .. });
                prop_assert_eq!(is_allowed, granted.contains(&requested));
                let uncovered = vec![grant(requested)].uncovered(&grants);
                prop_assert_eq!(uncovered.is_none(), is_allowed);
            }
        }
    }
}
