//! Methods of requests and grants.

use std::collections::BTreeSet;
use std::fmt;

use kitbag_base::text::shown;

use crate::http::refusal::{HttpRefusal, RefusalKind};

pub(crate) const GET: &str = "GET";
const HEAD: &str = "HEAD";

/// `CONNECT` opens tunnels and `TRACE` echoes the host's additions. They cannot be granted.
const NEVER: [&str; 2] = ["CONNECT", "TRACE"];

/// The longest method, in bytes.
const MAX_BYTES: usize = 32;

/// The method of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method(String);

/// The methods of a grant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Methods {
    /// `"*"`: all methods except `CONNECT` and `TRACE`.
    Any,
    /// A list of methods.
    These(BTreeSet<Method>),
}

/// Why a method cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// The string is not an HTTP token.
    #[error("`{}` is not a method", shown(.0))]
    Token(String),
    /// The letters are not in upper case.
    #[error("methods are case-sensitive: write `{}`", shown(.0))]
    Case(String),
    /// The method can never be granted.
    #[error("`{0}` cannot be granted")]
    Never(&'static str),
    /// The list is empty.
    #[error("a list of methods must name at least one")]
    None,
}

impl Method {
    /// Parses the method of a request.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Method`] for `CONNECT`, `TRACE`, and strings that are not HTTP tokens.
    pub(crate) fn requested(text: &str) -> Result<Self, HttpRefusal> {
        let refused = |error: MethodError| HttpRefusal::new(RefusalKind::Method, error.to_string());
        Self::token(text).map_err(refused)
    }

    fn token(text: &str) -> Result<Self, MethodError> {
        if let Some(never) = NEVER.into_iter().find(|never| text.eq_ignore_ascii_case(never)) {
            return Err(MethodError::Never(never));
        }
        match is_token(text) && text.len() <= MAX_BYTES {
            true => Ok(Self(text.to_owned())),
            false => Err(MethodError::Token(text.to_owned())),
        }
    }

    /// Returns the method as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the method changes nothing on a server: `GET` or `HEAD`.
    pub fn is_safe(&self) -> bool {
        matches!(self.as_str(), GET | HEAD)
    }
}

impl Methods {
    /// Parses a list of methods. `*` is every method, and `GET` includes `HEAD`.
    ///
    /// # Errors
    ///
    /// [`MethodError`] for an empty list, an invalid or lower-case method, `CONNECT` and `TRACE`.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, MethodError> {
        let mut methods = BTreeSet::new();
        let mut is_any = false;
        for text in texts {
            if text == "*" {
                is_any = true;
                continue;
            }
            let method = Method::token(text)?;
            if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
                return Err(MethodError::Case(text.to_ascii_uppercase()));
            }
            methods.insert(method);
        }
        if is_any {
            return Ok(Self::Any);
        }
        if methods.is_empty() {
            return Err(MethodError::None);
        }
        if methods.iter().any(|method| method.as_str() == GET) {
            methods.insert(Method(HEAD.to_owned()));
        }
        Ok(Self::These(methods))
    }

    /// Grants one method, with `HEAD` for `GET`.
    pub(crate) fn only(method: &Method) -> Self {
        let mut methods = BTreeSet::from([method.clone()]);
        if method.as_str() == GET {
            methods.insert(Method(HEAD.to_owned()));
        }
        Self::These(methods)
    }

    /// Returns true if a method is granted.
    pub fn has(&self, method: &Method) -> bool {
        match self {
            Self::Any => true,
            Self::These(methods) => methods.contains(method),
        }
    }

    /// Returns true if all methods of `other` are granted.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::These(_), Self::Any) => false,
            (Self::These(own), Self::These(other)) => own.is_superset(other),
        }
    }

    /// Returns true if a granted method can change something on a server.
    pub fn has_unsafe(&self) -> bool {
        match self {
            Self::Any => true,
            Self::These(methods) => !methods.iter().all(Method::is_safe),
        }
    }

    /// Returns the methods as they would be typed: without `HEAD` if there is `GET`.
    pub(crate) fn typed(&self) -> Vec<&str> {
        match self {
            Self::Any => vec!["*"],
            Self::These(methods) => {
                let has_get = methods.iter().any(|method| method.as_str() == GET);
                let is_typed = |method: &&str| !(has_get && *method == HEAD);
                methods.iter().map(Method::as_str).filter(is_typed).collect()
            }
        }
    }
}

impl Default for Methods {
    /// `GET` and `HEAD`.
    fn default() -> Self {
        Self::only(&Method(GET.to_owned()))
    }
}

/// Returns true if a string is a token: RFC 9110, 5.6.2.
pub(crate) fn is_token(text: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.pad("*"),
            Self::These(methods) => {
                let methods: Vec<_> = methods.iter().map(Method::as_str).collect();
                f.pad(&methods.join(", "))
            }
        }
    }
}
