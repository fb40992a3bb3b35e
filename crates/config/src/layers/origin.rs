//! The origins of values.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kitbag_base::text::{shown, shown_path};

/// A value and its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value in effect.
    pub value: T,
    /// The origin of the value.
    pub origin: Origin,
}

/// The origin of a value, or the place that a diagnostic is about.
///
/// Reads as `.kitbag/config.toml:12:1`, `environment KITBAG_LIMITS_TIME`, `flag --time`,
/// `the tool itself` or `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The default: no layer sets the value.
    #[default]
    Default,
    /// An existing file or directory, such as `.kitbag/tools/count.wasm`.
    Found {
        /// The path: relative to the workspace if it is inside, otherwise absolute.
        path: Arc<Path>,
    },
    /// A place in a file.
    File {
        /// The path: relative to the workspace if it is inside, otherwise absolute.
        path: Arc<Path>,
        /// The line; the first is 1.
        line: u32,
        /// The column in characters; the first is 1.
        column: u32,
    },
    /// An environment variable.
    Environment {
        /// The name of the variable, such as `KITBAG_LIMITS_TIME`.
        name: Cow<'static, str>,
    },
    /// A command line option.
    Flag {
        /// The option as it is typed, such as `--time`.
        name: Cow<'static, str>,
    },
    /// The workspace is not trusted.
    Untrusted,
    /// The trusted version of the workspace's files, which were edited since.
    Trusted,
    /// The tool's own declaration.
    Tool,
    /// The calling program, or the person who uses it.
    Caller,
    /// A model, which wrote an answer on behalf of a person.
    Model,
}

impl<T> Sourced<T> {
    /// Returns a default: no layer sets the value.
    pub fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Returns another value with the same origin.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { value: change(self.value), origin: self.origin }
    }
}

impl Origin {
    /// Returns the origin of an environment variable.
    pub fn environment(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Environment { name: name.into() }
    }

    /// Returns the origin of a command line option, as it is typed: `--time`.
    pub fn flag(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Flag { name: name.into() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Found { path } => f.write_str(&shown_path(path)),
            Self::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", shown_path(path))
            }
            Self::Environment { name } => write!(f, "environment {}", shown(name)),
            Self::Flag { name } => write!(f, "flag {}", shown(name)),
            Self::Untrusted => f.write_str("the workspace is not trusted"),
            Self::Trusted => f.write_str("what you trusted"),
            Self::Tool => f.write_str("the tool itself"),
            Self::Caller => f.write_str("the caller"),
            Self::Model => f.write_str("the model"),
        }
    }
}
