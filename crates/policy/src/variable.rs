//! Variables of the host's environment, each by its exact name.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::{Decision, MissingGrant};
use crate::kind::{Effects, Kind, KindRequest, Reach};

/// A variable that a tool may read. Its value is not part of what `Debug` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct VariableGrant {
    /// Its name, for the host and for the guest.
    pub name: VariableName,
    /// Its value, of at most [`VariableGrant::VALUE_BYTES`]. `None`: it is not set, and the
    /// guest does not find it either.
    pub value: Option<Arc<str>>,
}

/// A variable that a tool wants to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableRequest {
    /// Its name.
    pub name: VariableName,
}

/// The name of a variable that can be granted: letters, digits and `_`, no digit first, at
/// most [`VariableName::MAX_LEN`] of them, and not one of kitbag's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VariableName(Box<str>);

/// A text is not the name of a variable that can be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableNameError {
    /// It is not a name.
    #[error(
        "`{}` is not the exact name of a variable: it takes 1 to {} letters, digits and `_`, and \
         no digit first; write each name, such as `LANG`",
        shown(name),
        VariableName::MAX_LEN
    )]
    Form {
        /// The text as it was given.
        name: String,
    },
    /// It is kitbag's own.
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

/// Whether one of these grants is for the variable.
pub(crate) fn decide(grants: &[VariableGrant], request: &VariableRequest) -> Decision {
    match grants.iter().find(|grant| grant.name == request.name) {
        Some(grant) => Decision::Allowed { by: grant.to_string() },
        None => Decision::Denied {
            reason: format!("no grant names the variable `{}`", request.name),
            missing: Some(MissingGrant::of_list(VariableGrant::KEY, request.name.as_entry())),
        },
    }
}

/// The first of these grants that none of `own` holds.
pub(crate) fn beyond(grants: &[VariableGrant], own: &[VariableGrant]) -> Option<String> {
    let is_held = |grant: &VariableGrant| own.iter().any(|own| own.name == grant.name);
    grants.iter().find(|grant| !is_held(grant)).map(VariableGrant::to_string)
}

impl VariableGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "env";

    /// The most variables that one tool is granted.
    pub const MOST: usize = 64;

    /// The longest value that a guest is given, in bytes: 32 KiB.
    pub const VALUE_BYTES: usize = 32 << 10;
}

impl VariableName {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 128;

    /// What the names of kitbag's own variables start with.
    pub const OWN_PREFIX: &'static str = "KITBAG_";

    /// Checks a text and takes it as a name.
    ///
    /// # Errors
    ///
    /// [`VariableNameError`] says what is wrong with it.
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

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a variable of this name most likely holds a secret, such as `GITHUB_TOKEN`,
    /// `NPM_TOKEN_2`, `API_KEY`, `PGPASSWORD` or `DATABASE_URL`. A number at the end is ignored.
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
        // Their URLs have a user and a password, or are a secret themselves.
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
            // The working directory.
            "PWD" => before.is_some(),
            "ID" => before == Some("KEY"),
            "URL" | "URI" => before.is_some_and(|before| SERVICES.contains(&before)),
            last => LAST_WORDS.contains(&last),
        };
        is_last || PARTS.iter().any(|part| name.contains(part))
    }

    /// It as an entry of a list of variables in TOML.
    fn as_entry(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Kind for Vec<VariableGrant> {
    fn key(&self) -> &'static str {
        VariableGrant::KEY
    }

    fn reach(&self) -> Reach {
        Reach::Environment
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
}

impl KindRequest for VariableRequest {
    fn reach(&self) -> Reach {
        Reach::Environment
    }

    fn brief(&self) -> String {
        brief(&self.name)
    }

    fn is_given_by_call(&self) -> bool {
        false
    }
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
    fn a_name_is_exact_and_not_kitbags_own() {
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
    fn a_missing_variable_is_an_entry_of_the_list() {
        let request = VariableRequest { name: name("CI") };
        let decision = decide(&[grant("LANG")], &request);
        let Decision::Denied { missing: Some(missing), .. } = decision else { panic!("allowed") };
        assert_eq!((missing.key, &*missing.entry), ("env", "\"CI\""));
    }

    /// Names of which some start with others, or differ in case alone.
    fn names() -> impl Strategy<Value = Vec<&'static str>> {
        prop::collection::vec(prop::sample::select(vec!["A", "a", "AB", "A_B", "B"]), 0..4)
    }

    proptest! {
        #[test]
        fn a_variable_is_allowed_by_its_own_name_alone(granted in names(), wanted in names()) {
            let grants: Vec<_> = granted.iter().map(|name| grant(name)).collect();
            for wanted in wanted {
                let request = VariableRequest { name: name(wanted) };
                let is_allowed = matches!(decide(&grants, &request), Decision::Allowed { .. });
                prop_assert_eq!(is_allowed, granted.contains(&wanted));
                prop_assert_eq!(beyond(&[grant(wanted)], &grants).is_none(), is_allowed);
            }
        }
    }
}
