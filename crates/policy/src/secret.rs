//! Secrets: how a value is added to a request.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use kitbag_contract::text::shown;
use serde::{Deserialize, Serialize};

/// The name of a secret, known to fit `^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}$`. It is no secret
/// itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// A text is not the name of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a secret: it takes letters, digits, `_` and `-`, does not start \
     with `-`, and has at most {max} characters",
    shown(name), max = SecretName::MAX_LEN
)]
pub struct SecretNameError {
    /// The text as it was given.
    pub name: String,
}

impl SecretName {
    /// The longest name, in bytes (all of them ASCII).
    pub const MAX_LEN: usize = 64;

    /// Checks a text and takes it as a name.
    ///
    /// # Errors
    ///
    /// [`SecretNameError`] holds the text when it does not have the form above.
    pub fn new(name: impl Into<String>) -> Result<Self, SecretNameError> {
        let name = name.into();
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let is_name = (1..=Self::MAX_LEN).contains(&name.len())
            && name.bytes().all(fits)
            && !name.starts_with('-');
        if is_name { Ok(Self(name)) } else { Err(SecretNameError { name }) }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for SecretName {
    type Error = SecretNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

impl Borrow<str> for SecretName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A secret of a tool: how requests show it, and nothing of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// Its name.
    pub name: SecretName,
    /// How the host adds it to each request for its places. `None`: it stands only where
    /// the tool puts its placeholder.
    pub added: Option<Placement>,
    /// A placeholder is replaced in the query, too, and not in headers alone.
    pub in_query: bool,
    /// A placeholder is replaced in the body, too.
    pub in_body: bool,
}

/// How the value of a secret is added to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// `Authorization: Bearer VALUE`.
    #[default]
    Bearer,
    /// `Authorization: Basic`, and the base64 of a user and a password.
    Basic {
        /// The user, whose password the value is. `None`: the value is `USER:PASSWORD`.
        user: Option<String>,
    },
    /// A header of its own.
    Header {
        /// Its name, in lower case.
        name: String,
        /// What stands before the value, such as `Bot `.
        prefix: String,
    },
    /// A parameter of the query.
    Query {
        /// Its name.
        name: String,
    },
    /// In the path, in place of a text.
    Path {
        /// The text that the value takes the place of, such as `TOKEN`.
        text: String,
    },
}

/// Why a secret cannot be added like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// It is not the name of a header.
    #[error("`{}` is not the name of a header", shown(name))]
    Header {
        /// The name.
        name: String,
    },
    /// The header says how the message is sent, or where.
    #[error("the header `{}` says how a request is sent and holds no secret", shown(name))]
    Framing {
        /// The name.
        name: String,
    },
    /// It is not a text that stands in a URL as it is.
    #[error(
        "`{}` takes letters, digits, `-`, `.`, `_` and `~`, and at least {least} of them",
        shown(text)
    )]
    Plain {
        /// The text.
        text: String,
        /// How many characters it has at least.
        least: usize,
    },
    /// A header cannot hold it.
    #[error("`{}` holds a character that no header does, or a `:`", shown(text))]
    HeaderText {
        /// The text.
        text: String,
    },
}

/// Headers that say how a message is sent, or to whom.
const FRAMING: [&str; 14] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl Placement {
    /// `Authorization: Basic` for this user.
    ///
    /// # Errors
    ///
    /// [`PlacementError::HeaderText`], where the user has a `:` or a control character.
    pub fn basic(user: Option<String>) -> Result<Self, PlacementError> {
        let is_user = |user: &String| !user.contains(|c: char| c == ':' || c.is_control());
        match user {
            Some(text) if !is_user(&text) => Err(PlacementError::HeaderText { text }),
            user => Ok(Self::Basic { user }),
        }
    }

    /// A header, and what stands before the value in it.
    ///
    /// # Errors
    ///
    /// [`PlacementError`], where there is no such header, or none that holds a secret.
    pub fn header(name: &str, prefix: &str) -> Result<Self, PlacementError> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(PlacementError::Header { name: name.to_owned() });
        }
        let name = name.to_ascii_lowercase();
        if FRAMING.contains(&&*name) {
            return Err(PlacementError::Framing { name });
        }
        if !prefix.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
            return Err(PlacementError::HeaderText { text: prefix.to_owned() });
        }
        Ok(Self::Header { name, prefix: prefix.to_owned() })
    }

    /// A parameter of the query.
    ///
    /// # Errors
    ///
    /// [`PlacementError::Plain`], where the name would have to be encoded.
    pub fn query(name: &str) -> Result<Self, PlacementError> {
        plain(name, 1).map(|name| Self::Query { name })
    }

    /// In the path, in place of a text. It has at least four characters, so that it is not
    /// mistaken for something else.
    ///
    /// # Errors
    ///
    /// [`PlacementError::Plain`], where the text would have to be encoded.
    pub fn path(text: &str) -> Result<Self, PlacementError> {
        plain(text, 4).map(|text| Self::Path { text })
    }
}

/// A text that stands in a URL as it is.
fn plain(text: &str, least: usize) -> Result<String, PlacementError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    match text.len() >= least && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(PlacementError::Plain { text: text.to_owned(), least }),
    }
}

impl fmt::Display for Placement {
    /// As a person reads it: `bearer`, `header x-api-key`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer => f.write_str("bearer"),
            Self::Basic { user: None } => f.write_str("basic"),
            Self::Basic { user: Some(user) } => write!(f, "basic for {}", shown(user)),
            Self::Header { name, .. } => write!(f, "header {name}"),
            Self::Query { name } => write!(f, "query {name}"),
            Self::Path { text } => write!(f, "path {text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_secret_holds_no_separator() {
        let check = |name: &str, expected: bool| {
            assert_eq!(SecretName::new(name).is_ok(), expected, "{name}");
        };
        check("github", true);
        check("2fa_key-b", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("", false);
        check("-rf", false);
        check("a.b", false);
        check("a b", false);
        check("ключ", false);
    }

    #[test]
    fn a_secret_is_added_where_it_changes_nothing_else() {
        let check = |placement: Result<Placement, PlacementError>, expected: &str| {
            let text = placement.map(|placement| placement.to_string());
            assert_eq!(text.unwrap_or_else(|error| error.to_string()), expected);
        };
        check(Placement::header("X-Api-Key", ""), "header x-api-key");
        check(Placement::header("Authorization", "Bot "), "header authorization");
        check(Placement::header("x y", ""), "`x y` is not the name of a header");
        let framing = "the header `host` says how a request is sent and holds no secret";
        check(Placement::header("Host", ""), framing);
        let text = "`a\\nb` holds a character that no header does, or a `:`";
        check(Placement::header("x", "a\nb"), text);
        check(Placement::basic(Some("ada".into())), "basic for ada");
        let text = "`a:b` holds a character that no header does, or a `:`";
        check(Placement::basic(Some("a:b".into())), text);
        check(Placement::query("key"), "query key");
        let text = "`a&b` takes letters, digits, `-`, `.`, `_` and `~`, and at least 1 of them";
        check(Placement::query("a&b"), text);
        check(Placement::path("TOKEN"), "path TOKEN");
        let text = "`tok` takes letters, digits, `-`, `.`, `_` and `~`, and at least 4 of them";
        check(Placement::path("tok"), text);
    }
}
