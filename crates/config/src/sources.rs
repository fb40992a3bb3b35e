//! What the caller hands over: this crate asks nobody else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kitbag_contract::ByteSize;

use crate::origin::Sourced;

/// Every variable of the environment that means something to kitbag.
///
/// Any other name that starts with `KITBAG_` is an error. The first four are
/// read here; the last three are for the caller to act on.
pub const VARIABLES: [&str; 8] = [
    "KITBAG_LIMITS_MEMORY",
    "KITBAG_LIMITS_TIME",
    "KITBAG_LIMITS_OUTPUT",
    "KITBAG_LIMITS_WRITTEN",
    "KITBAG_LIMITS_FUEL",
    "KITBAG_WORKSPACE",
    "KITBAG_CONFIG",
    "KITBAG_CACHE_DIR",
];

/// Where configuration comes from, and what it is measured against.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// Directory from which the workspace is looked for upwards; absolute.
    pub start: PathBuf,
    /// The workspace where it was named, and by what. Nothing is looked for
    /// then. Relative to `start`.
    pub workspace: Option<Sourced<PathBuf>>,
    /// The person's own `config.toml`; absolute. It must exist, so this is
    /// `None` where there is none.
    pub user_file: Option<PathBuf>,
    /// Where the person's own `config.toml` would be, whether it exists or not;
    /// absolute. It is not read: messages name it where `user_file` is `None`.
    pub usual_user_file: Option<PathBuf>,
    /// What `~/` stands for; absolute.
    pub home: Option<PathBuf>,
    /// The variables of the environment that start with `KITBAG_`, with their
    /// values. Others are ignored, and so are empty values of known ones.
    pub environment: Vec<(String, String)>,
    /// Limits given on the command line.
    pub flags: LimitFlags,
    /// The names of the built-in tools.
    pub builtins: &'a [&'a str],
    /// Directories and files that no tool may change, such as the compile cache
    /// and the trust store; absolute, and they need not exist. The files that
    /// are read here, `.git` and `.kitbag` need not be named.
    pub protected: Vec<PathBuf>,
}

/// Limits given on the command line. They hold for every tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitFlags {
    /// `--memory`.
    pub memory: Option<ByteSize>,
    /// `--time`.
    pub time: Option<Duration>,
    /// `--output`.
    pub output: Option<ByteSize>,
    /// `--written`.
    pub written: Option<ByteSize>,
    /// `--fuel`; at least 1.
    pub fuel: Option<u64>,
}

impl Sources<'_> {
    /// The person's own file, for messages.
    pub(crate) fn own_file(&self) -> Option<&Path> {
        self.user_file.as_deref().or(self.usual_user_file.as_deref())
    }
}
