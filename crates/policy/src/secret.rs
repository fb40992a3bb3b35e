//! Secrets and the ways to add a value to a request.

mod kind;

pub(crate) use kind::KIND;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};

use crate::decision::{Decision, MissingGrant};
use crate::http::{Host, HostPattern, HttpRequest, Scheme, UrlPattern, UrlPatternError};
use crate::variable::VariableName;

/// The name of a secret, which matches `^[a-zA-Z0-9_][a-zA-Z0-9_-]{0,63}$`. The name is not secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// The error for a string that is not a valid secret name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a secret: it takes letters, digits, `_` and `-`, does not start \
     with `-`, and has at most {max} characters",
    shown(name), max = SecretName::MAX_LEN
)]
pub struct SecretNameError {
    /// The invalid name.
    pub name: String,
}

impl SecretName {
    /// The longest name, in bytes (all of them ASCII).
    pub const MAX_LEN: usize = 64;

    /// Creates a name if the string is valid.
    ///
    /// # Errors
    ///
    /// [`SecretNameError`] contains the string if it does not have the form above.
    pub fn new(name: impl Into<String>) -> Result<Self, SecretNameError> {
        let name = name.into();
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let is_name = (1..=Self::MAX_LEN).contains(&name.len())
            && name.bytes().all(fits)
            && !name.starts_with('-');
        if is_name { Ok(Self(name)) } else { Err(SecretNameError { name }) }
    }

    /// Returns the name as a string.
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

/// The source of a secret's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret store.
    #[default]
    Store,
    /// An environment variable of this process.
    Variable(String),
    /// The standard output of a program. The first string is the program, the others are its
    /// arguments; no shell is used.
    Command(Vec<String>),
}

/// A secret that a tool may use: the permitted requests and the way to add the value. It does not
/// contain the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretGrant {
    /// The name.
    pub name: SecretName,
    /// The permitted destinations, from the user config.
    pub to: Vec<SecretPlace>,
    /// The part of the destinations that the tool uses. `None`: all of them.
    pub within: Option<Vec<UrlPattern>>,
    /// The way in which the host adds the value to each request for its destinations. `None`: only
    /// placeholders are replaced.
    pub added: Option<Placement>,
    /// The tool's variables that contain the placeholder.
    pub variables: Vec<VariableName>,
    /// True if placeholders are also replaced in the query, not only in headers.
    pub in_query: bool,
    /// True if placeholders are also replaced in the body.
    pub in_body: bool,
}

impl SecretGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "secrets";

    /// Maximum number of secrets of one tool.
    pub const MOST: usize = 32;

    /// Returns true if `other` is the same secret and the tool uses it for no more destinations.
    /// Sources and permitted destinations are not compared.
    pub fn names(&self, other: &Self) -> bool {
        let is_within = |within: &Vec<UrlPattern>| match &other.within {
            Some(other) => {
                other.iter().all(|other| within.iter().any(|within| within.holds(other)))
            }
            None => false,
        };
        self.name == other.name && self.within.as_ref().is_none_or(is_within)
    }

    /// Returns true if every destination and use of another grant is covered.
    fn holds(&self, other: &Self) -> bool {
        self.names(other)
            && other.to.iter().all(|place| self.to.iter().any(|own| own.0.holds(&place.0)))
            && (other.added.is_none() || other.added == self.added)
            && other.variables.iter().all(|variable| self.variables.contains(variable))
            && self.in_query >= other.in_query
            && self.in_body >= other.in_body
    }

    /// Returns true if the secret may be sent with this request. The tool also needs a grant for
    /// the request, which is not checked here.
    pub fn goes_to(&self, request: &HttpRequest) -> bool {
        let is_within = |within: &Vec<UrlPattern>| within.iter().any(|to| to.matches(request));
        (request.scheme() == Scheme::Https || is_loopback(request.host()))
            && self.to.iter().any(|place| place.0.matches(request))
            && self.within.as_ref().is_none_or(is_within)
    }

    /// Returns the relation of a request to the secret.
    pub fn relation(&self, request: &HttpRequest) -> SecretRelation {
        let is_host = |place: &SecretPlace| place.0.host().matches_widely(request.host());
        match self.goes_to(request) {
            true => SecretRelation::Bound,
            false if self.to.iter().any(is_host) => SecretRelation::SameHost,
            false => SecretRelation::Elsewhere,
        }
    }
}

/// The relation of a request to a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRelation {
    /// The destination is permitted for the secret.
    Bound,
    /// The host is a destination of the secret, but path, port or scheme differ. The server
    /// may know the value from other calls.
    SameHost,
    /// The server has not received the value from this process.
    Elsewhere,
}

/// A request to use a secret, added by the host or through its placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRequest {
    /// The name of the secret.
    pub name: SecretName,
}

/// Decides whether these grants contain a secret.
pub(crate) fn decide(grants: &[SecretGrant], request: &SecretRequest) -> Decision {
    let SecretRequest { name } = request;
    match grants.iter().find(|grant| grant.name == *name) {
        Some(grant) => Decision::Allowed { by: grant.to_string() },
        None => Decision::Denied {
            reason: format!("no `{}` grant names it", SecretGrant::KEY),
            missing: Some(MissingGrant::of_table(
                SecretGrant::KEY,
                format!("{name} = {{}}"),
                name.as_str(),
            )),
        },
    }
}

impl fmt::Display for SecretRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret {}", self.name)
    }
}

impl fmt::Display for SecretGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: Vec<String>| match texts.is_empty() {
            true => "nowhere".to_owned(),
            false => texts.join(", "),
        };
        let to = match &self.within {
            Some(within) => list(within.iter().map(UrlPattern::to_string).collect()),
            None => list(self.to.iter().map(SecretPlace::to_string).collect()),
        };
        write!(f, "secret {} → {to}", self.name)?;
        if let Some(placement) = &self.added {
            write!(f, ", as {placement}")?;
        }
        for variable in &self.variables {
            write!(f, ", env {variable}")?;
        }
        Ok(())
    }
}

/// A URL pattern of a destination for a secret: with `https`, or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace(UrlPattern);

/// Why a secret may not be sent to a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretPlaceError {
    /// The string is not a URL pattern.
    #[error(transparent)]
    Pattern(#[from] UrlPatternError),
    /// The connection is not encrypted.
    #[error("`{0}` would send the secret unencrypted; use `https`, or an address of this machine")]
    Unencrypted(UrlPattern),
    /// The pattern matches more than one host.
    #[error("`{0}` matches more than one host; name each host, or add `wildcard = true`")]
    Wildcard(UrlPattern),
}

impl SecretPlace {
    /// Parses a pattern. It may match more than one host only if `wildcard` is set.
    ///
    /// # Errors
    ///
    /// [`SecretPlaceError`] if the pattern is not valid or not a permitted destination.
    pub fn new(text: &str, wildcard: bool) -> Result<Self, SecretPlaceError> {
        let pattern = UrlPattern::parse(text)?;
        let is_here = match pattern.host() {
            HostPattern::One(host) => is_loopback(host),
            HostPattern::Any | HostPattern::Below(_) if !wildcard => {
                return Err(SecretPlaceError::Wildcard(pattern));
            }
            HostPattern::Any | HostPattern::Below(_) => false,
        };
        match pattern.scheme() == Scheme::Https || is_here {
            true => Ok(Self(pattern)),
            false => Err(SecretPlaceError::Unencrypted(pattern)),
        }
    }

    /// Returns the pattern.
    pub fn pattern(&self) -> &UrlPattern {
        &self.0
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns true if a host is this machine. The addresses of `localhost` are checked when
/// connecting.
fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Name(name) => name == "localhost",
        Host::Address(address) => address.to_canonical().is_loopback(),
    }
}

/// The way in which the value of a secret is added to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// `Authorization: Bearer VALUE`.
    #[default]
    Bearer,
    /// `Authorization: Basic` with the base64 of user and password.
    Basic {
        /// The user whose password is the value. `None`: the value is `USER:PASSWORD`.
        user: Option<String>,
    },
    /// A separate header.
    Header {
        /// The name, in lower case.
        name: String,
        /// The text before the value, such as `Bot `.
        prefix: String,
    },
    /// A query parameter.
    Query {
        /// The name.
        name: String,
    },
    /// A part of the path.
    Path {
        /// The text that the value replaces, such as `TOKEN`.
        text: String,
    },
}

/// Why a secret cannot be added in this way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The string is not the name of a header.
    #[error("`{}` is not the name of a header", shown(name))]
    Header {
        /// The invalid name.
        name: String,
    },
    /// The header controls how or where the message is sent.
    #[error(
        "the header `{}` controls how a request is sent and cannot contain a secret",
        shown(name)
    )]
    Framing {
        /// The name.
        name: String,
    },
    /// The string would have to be encoded in a URL.
    #[error(
        "`{}` may contain only letters, digits, `-`, `.`, `_` and `~`, and must have at least {least} of them",
        shown(text)
    )]
    Plain {
        /// The invalid string.
        text: String,
        /// The minimum length, in characters.
        least: usize,
    },
    /// The string cannot be part of a header.
    #[error("`{}` has a `:` or a character that is not allowed in a header", shown(text))]
    HeaderText {
        /// The invalid string.
        text: String,
    },
}

/// Headers that control how a message is sent, or to whom.
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
    /// Creates `Authorization: Basic` for this user.
    ///
    /// # Errors
    ///
    /// [`PlacementError::HeaderText`] if the user contains a `:` or a control character.
    pub fn basic(user: Option<String>) -> Result<Self, PlacementError> {
        let is_user = |user: &String| !user.contains(|c: char| c == ':' || c.is_control());
        match user {
            Some(text) if !is_user(&text) => Err(PlacementError::HeaderText { text }),
            user => Ok(Self::Basic { user }),
        }
    }

    /// Creates a header with a prefix before the value.
    ///
    /// # Errors
    ///
    /// [`PlacementError`] if the name is not valid or the header cannot contain a secret.
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

    /// Creates a query parameter.
    ///
    /// # Errors
    ///
    /// [`PlacementError::Plain`] if the name would have to be encoded.
    pub fn query(name: &str) -> Result<Self, PlacementError> {
        plain(name, 1).map(|name| Self::Query { name })
    }

    /// Replaces a text in the path. The text has at least four characters, so that it is not found
    /// by accident.
    ///
    /// # Errors
    ///
    /// [`PlacementError::Plain`] if the text would have to be encoded.
    pub fn path(text: &str) -> Result<Self, PlacementError> {
        plain(text, 4).map(|text| Self::Path { text })
    }
}

/// Checks that a string needs no encoding in a URL.
fn plain(text: &str, least: usize) -> Result<String, PlacementError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    match text.len() >= least && text.bytes().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(PlacementError::Plain { text: text.to_owned(), least }),
    }
}

impl fmt::Display for Placement {
    /// Formats the placement for people: `bearer`, `header x-api-key`.
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
    use crate::{Grants, Kind};

    #[test]
    fn secret_names_have_no_separators() {
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
    fn placements_must_not_change_the_request() {
        let check = |placement: Result<Placement, PlacementError>, expected: &str| {
            let text = placement.map(|placement| placement.to_string());
            assert_eq!(text.unwrap_or_else(|error| error.to_string()), expected);
        };
        check(Placement::header("X-Api-Key", ""), "header x-api-key");
        check(Placement::header("Authorization", "Bot "), "header authorization");
        check(Placement::header("x y", ""), "`x y` is not the name of a header");
        let framing =
            "the header `host` controls how a request is sent and cannot contain a secret";
        check(Placement::header("Host", ""), framing);
        let text = "`a\\nb` has a `:` or a character that is not allowed in a header";
        check(Placement::header("x", "a\nb"), text);
        check(Placement::basic(Some("ada".into())), "basic for ada");
        let text = "`a:b` has a `:` or a character that is not allowed in a header";
        check(Placement::basic(Some("a:b".into())), text);
        check(Placement::query("key"), "query key");
        let text = "`a&b` may contain only letters, digits, `-`, `.`, `_` and `~`, and must have at least 1 of them";
        check(Placement::query("a&b"), text);
        check(Placement::path("TOKEN"), "path TOKEN");
        let text = "`tok` may contain only letters, digits, `-`, `.`, `_` and `~`, and must have at least 4 of them";
        check(Placement::path("tok"), text);
    }
    #[test]
    fn destinations_are_encrypted_single_hosts() {
        let check = |text: &str, wildcard: bool, expected: &str| {
            let place = SecretPlace::new(text, wildcard);
            let text = place.map_or_else(|error| error.to_string(), |place| place.to_string());
            assert_eq!(text, expected);
        };
        let github = "https://api.github.com/**";
        check(github, false, github);
        check("http://localhost:8080/**", false, "http://localhost:8080/**");
        check("http://127.0.0.1/**", false, "http://127.0.0.1/**");
        check("http://[::1]:80/a", false, "http://[::1]:80/a");
        let unencrypted = "`http://example.com/**` would send the secret unencrypted; use \
                           `https`, or an address of this machine";
        check("http://example.com/**", true, unencrypted);
        for text in ["http://10.0.0.1/**", "http://localhost.example.com/**"] {
            assert!(SecretPlace::new(text, true).is_err(), "{text}");
        }
        for text in ["https://*.example.com/**", "https://*/**"] {
            let expected = format!(
                "`{text}` matches more than one host; name each host, or add `wildcard = true`"
            );
            check(text, false, &expected);
            check(text, true, text);
        }
        let all = "`http://*/**` would send the secret unencrypted; use `https`, or an \
                   address of this machine";
        check("http://*/**", true, all);
        assert!(SecretPlace::new("https://*.com/**", true).is_err());
        assert!(SecretPlace::new("api.github.com", false).is_err());
    }

    #[test]
    fn destinations_need_both_files() {
        let grant = |to: &[&str], within: Option<&[&str]>| SecretGrant {
            name: SecretName::new("github").unwrap(),
            to: to.iter().map(|to| SecretPlace::new(to, true).unwrap()).collect(),
            within: within.map(|within| within.iter().map(|to| to.parse().unwrap()).collect()),
            added: Some(Placement::Bearer),
            variables: Vec::new(),
            in_query: false,
            in_body: false,
        };
        let check = |grant: &SecretGrant, url: &str, expected: bool| {
            let request = HttpRequest::get(url).unwrap();
            assert_eq!(grant.goes_to(&request), expected, "{url}");
        };
        let api = grant(&["https://api.github.com/**"], None);
        check(&api, "https://api.github.com/repos/a?b=c", true);
        check(&api, "https://api.github.com:8443/repos", false);
        check(&api, "http://api.github.com/repos", false);
        check(&api, "https://github.com/repos", false);
        check(&api, "https://api.github.com.example.com/repos", false);
        let narrow =
            grant(&["https://api.github.com/**"], Some(&["https://*.github.com/repos/**"]));
        check(&narrow, "https://api.github.com/repos/a", true);
        check(&narrow, "https://api.github.com/user", false);
        check(&narrow, "https://uploads.github.com/repos/a", false);
        check(&grant(&["https://api.github.com/**"], Some(&[])), "https://api.github.com/", false);
        check(&grant(&[], None), "https://api.github.com/", false);
    }
    #[test]
    fn requests_to_a_destination_host_may_contain_the_value() {
        let check = |to: &str, url: &str, expected: SecretRelation| {
            let grant = SecretGrant {
                name: SecretName::new("github").unwrap(),
                to: vec![SecretPlace::new(to, true).unwrap()],
                within: Some(vec!["https://api.github.com/repos/**".parse().unwrap()]),
                added: Some(Placement::Bearer),
                variables: Vec::new(),
                in_query: false,
                in_body: false,
            };
            let relation = grant.relation(&HttpRequest::get(url).unwrap());
            assert_eq!(relation, expected, "{url}");
        };
        let api = "https://api.github.com/repos/**";
        check(api, "https://api.github.com/repos/a", SecretRelation::Bound);
        for url in ["https://api.github.com/user", "http://api.github.com:8080/repos/a"] {
            check(api, url, SecretRelation::SameHost);
        }
        check(api, "https://github.com/repos/a", SecretRelation::Elsewhere);
        // If the workspace removed this destination, another tool may still have sent the value.
        check("https://*.github.com/**", "https://uploads.github.com/", SecretRelation::SameHost);
        check("https://*.github.com/**", "https://github.com/", SecretRelation::SameHost);
    }

    #[test]
    fn wider_secret_grants_cover_narrower_ones() {
        let grant = |within: Option<&[&str]>, added: bool| SecretGrant {
            name: SecretName::new("github").unwrap(),
            to: vec![SecretPlace::new("https://api.github.com/**", false).unwrap()],
            within: within.map(|within| within.iter().map(|to| to.parse().unwrap()).collect()),
            added: added.then_some(Placement::Bearer),
            variables: Vec::new(),
            in_query: false,
            in_body: false,
        };
        let repos: &[&str] = &["https://api.github.com/repos/**"];
        let check = |requested: &SecretGrant, own: &SecretGrant, expected: bool| {
            let grants = Grants { secrets: vec![own.clone()], ..Grants::default() };
            let uncovered = vec![requested.clone()].uncovered(&grants);
            assert_eq!(uncovered.is_none(), expected, "{requested} in {own}");
        };
        check(&grant(Some(repos), true), &grant(None, true), true);
        check(&grant(None, true), &grant(Some(repos), true), false);
        check(&grant(None, false), &grant(None, true), true);
        check(&grant(None, true), &grant(None, false), false);
        let body = SecretGrant { in_body: true, ..grant(None, true) };
        check(&body, &grant(None, true), false);
        check(&grant(None, true), &body, true);
        assert_eq!(
            grant(Some(repos), true).to_string(),
            "secret github → https://api.github.com/repos/**, as bearer"
        );
    }
}
