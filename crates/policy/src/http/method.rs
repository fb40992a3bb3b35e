//! Methods of requests, and which of them a grant has.

use std::collections::BTreeSet;
use std::fmt;

use kitbag_base::text::shown;

use crate::http::refusal::{HttpRefusal, RefusalKind};

pub(crate) const GET: &str = "GET";
const HEAD: &str = "HEAD";

/// Tunnels, and echoes of what the host added: no grant has them.
const NEVER: [&str; 2] = ["CONNECT", "TRACE"];

/// The longest method, in bytes.
const MAX_BYTES: usize = 32;

/// The method of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Method(String);

/// The methods that a grant has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Methods {
    /// `"*"`: every one but `CONNECT` and `TRACE`.
    Any,
    /// These.
    These(BTreeSet<Method>),
}

/// Why a text is not a method that can be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// It is not a token of HTTP.
    #[error("`{}` is not a method", shown(.0))]
    Token(String),
    /// Its letters are not in upper case.
    #[error("methods are compared exactly: write `{}`", shown(.0))]
    Case(String),
    /// One that no grant has.
    #[error("`{0}` cannot be granted")]
    Never(&'static str),
    /// There are none.
    #[error("a list of methods names at least one")]
    None,
}

impl Method {
    /// The method of a request.
    ///
    /// # Errors
    ///
    /// [`RefusalKind::Method`] for what is no token of HTTP, `CONNECT` and `TRACE`.
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

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is one that changes nothing on a server: `GET` or `HEAD`.
    pub fn is_safe(&self) -> bool {
        matches!(self.as_str(), GET | HEAD)
    }
}

impl Methods {
    /// Reads a list of methods. `*` is every one, `GET` has `HEAD` with it.
    ///
    /// # Errors
    ///
    /// [`MethodError`] for an empty list, for what is no method or not in upper case, and
    /// for `CONNECT` and `TRACE`.
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

    /// These methods and one more.
    pub(crate) fn only(method: &Method) -> Self {
        let mut methods = BTreeSet::from([method.clone()]);
        if method.as_str() == GET {
            methods.insert(Method(HEAD.to_owned()));
        }
        Self::These(methods)
    }

    /// Whether it has a method.
    pub fn has(&self, method: &Method) -> bool {
        match self {
            Self::Any => true,
            Self::These(methods) => methods.contains(method),
        }
    }

    /// Whether it has every method that the other one has.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::These(_), Self::Any) => false,
            (Self::These(own), Self::These(other)) => own.is_superset(other),
        }
    }

    /// Whether it has one that changes something on a server.
    pub fn has_unsafe(&self) -> bool {
        match self {
            Self::Any => true,
            Self::These(methods) => !methods.iter().all(Method::is_safe),
        }
    }

    /// The methods as they would be typed: without `HEAD` where there is `GET`.
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

/// Whether a text is a token: RFC 9110, 5.6.2.
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
