//! Where a value came from.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::report::text::shown_path;
use kitbag_base::text::shown;

/// A value and where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value that is in effect.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

/// Where a value came from, or what a diagnostic is about.
///
/// Reads as `.kitbag/config.toml:12:1`, `environment KITBAG_LIMITS_TIME`,
/// `flag --time`, `the tool itself` or `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The default: nothing was set.
    #[default]
    Default,
    /// A file or a directory is there, such as `.kitbag/tools/count.wasm`.
    Found {
        /// Relative to the workspace where it lies inside, else absolute.
        path: Arc<Path>,
    },
    /// A place in a file.
    File {
        /// Relative to the workspace where it lies inside, else absolute.
        path: Arc<Path>,
        /// The line, counted from 1.
        line: u32,
        /// The character in that line, counted from 1.
        column: u32,
    },
    /// A variable of the environment.
    Environment {
        /// Its name, such as `KITBAG_LIMITS_TIME`.
        name: Cow<'static, str>,
    },
    /// An option of the command line.
    Flag {
        /// As it is typed, such as `--time`.
        name: Cow<'static, str>,
    },
    /// The workspace is not trusted.
    Untrusted,
    /// The files of the workspace that a person trusted, which were edited since.
    Trusted,
    /// The tool says it of itself.
    Tool,
    /// The program that calls, or the person who sits at it.
    Caller,
    /// A model, which wrote down an answer for a person.
    Model,
}

impl<T> Sourced<T> {
    /// The default, where nothing was set.
    pub fn default(value: T) -> Self {
        Self { value, origin: Origin::Default }
    }

    /// Another value from the same place.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { value: change(self.value), origin: self.origin }
    }
}

impl Origin {
    /// A variable of the environment.
    pub fn environment(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Environment { name: name.into() }
    }

    /// An option of the command line, as it is typed: `--time`.
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
