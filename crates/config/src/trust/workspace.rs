//! Whether the files of a workspace count, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::ContentDigest;
use kitbag_state::trust::{TrustRecord, WorkspaceEdit};

use crate::layers::origin::Origin;
use crate::report::text::shown_path;

/// The command by which a person sees what a workspace asks, and trusts it.
pub(crate) const COMMAND: &str = "kitbag trust";

/// Whether the files of a workspace count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceTrust {
    /// No file of a workspace says anything.
    #[default]
    Nothing,
    /// They count.
    Trusted(TrustedBy),
    /// Of them counts what narrows alone, and tools of the workspace do not run.
    Untrusted(Box<UntrustedWorkspace>),
}

/// Why the files of a workspace count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedBy {
    /// A person trusts what they ask for. Components have to have the digests of the record.
    Record(Arc<TrustRecord>),
    /// A pattern of the user's own file matches the workspace.
    Pattern(Origin),
    /// The caller says so, or the variable of the environment.
    Caller(Origin),
    /// They are read to show what they ask.
    Question,
}

/// A workspace whose files do not count, since no person trusts what they hold.
///
/// Reads as ``the configuration of `/w` is not trusted: …``, with what to do about it. After an
/// edit the cause comes first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}",
    match reason {
        UntrustedReason::Changed(_) => format!(
            "{reason}: until you run `{COMMAND}`, only settings that restrict access take effect in \
             `{}`, and its tools do not run",
            shown_path(root)
        ),
        _ => format!(
            "the configuration of `{}` is not trusted: {reason}; until you run `{COMMAND}`, only \
             settings that restrict access take effect, and its own tools do not run",
            shown_path(root)
        ),
    }
)]
pub struct UntrustedWorkspace {
    /// The root of the workspace; absolute.
    pub root: PathBuf,
    /// Why it is not trusted.
    pub reason: UntrustedReason,
    /// Whether something of what its files say does not count therefore.
    pub leaves_out: bool,
}

/// Why a workspace is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UntrustedReason {
    /// No person has trusted it.
    New,
    /// It was edited, and what was trusted is not known any more.
    Changed(Vec<WorkspaceEdit>),
    /// The caller says so.
    Caller(Origin),
    /// There is no state directory, and so no record.
    NoState,
    /// The state directory lies in the workspace, which could hold any record.
    StateInside(PathBuf),
    /// The record cannot be read.
    Record(String),
}

/// What configures a workspace, apart from what its components hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceContent {
    /// The canonical path of the workspace.
    pub root: PathBuf,
    /// The files, by their paths in the workspace, with the digests of what was read of them.
    pub files: BTreeMap<String, ContentDigest>,
    /// The components in `.kitbag/tools`, by their paths in the workspace.
    pub components: Vec<String>,
}

/// A glob of directories whose workspaces are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspacePattern {
    /// The glob, which canonical paths are held against.
    pub(crate) glob: String,
    pub(crate) origin: Origin,
}

impl WorkspaceTrust {
    /// Whether what the files say counts.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted(_))
    }

    /// What is to be said where they do not count.
    pub fn untrusted(&self) -> Option<&UntrustedWorkspace> {
        match self {
            Self::Untrusted(untrusted) => Some(untrusted),
            Self::Nothing | Self::Trusted(_) => None,
        }
    }

    /// What a person should know: the files do not count, and that makes a difference.
    pub fn notice(&self) -> Option<&UntrustedWorkspace> {
        self.untrusted().filter(|untrusted| untrusted.leaves_out)
    }

    /// Notes that something of what the files say does not count.
    pub(crate) fn leave_out(&mut self) {
        if let Self::Untrusted(untrusted) = self {
            untrusted.leaves_out = true;
        }
    }

    /// The record of what a person trusts, where that is why the files count.
    pub fn record(&self) -> Option<&Arc<TrustRecord>> {
        match self {
            Self::Trusted(TrustedBy::Record(record)) => Some(record),
            _ => None,
        }
    }
}

impl WorkspaceContent {
    /// Whether nothing configures the workspace.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.components.is_empty()
    }

    /// How it differs from what is trusted. Components are compared by their digests when they
    /// are loaded; here by whether they are there.
    pub fn changes(&self, record: &TrustRecord) -> Vec<WorkspaceEdit> {
        let files = self.files.iter().map(|(path, digest)| (path.as_str(), *digest));
        let mut changes = record.changes(files);
        let added = self.components.iter().filter(|path| !record.components.contains_key(*path));
        changes.extend(added.map(|path| WorkspaceEdit::Added(path.clone())));
        let is_found = |path: &String| self.components.contains(path);
        let trusted = record.components.iter().filter(|(_, digest)| digest.is_some());
        let gone = trusted.map(|(path, _)| path).filter(|path| is_own(path) && !is_found(path));
        changes.extend(gone.map(|path| WorkspaceEdit::Removed(path.clone())));
        changes
    }
}

fn is_own(path: &str) -> bool {
    let rest = path.strip_prefix(".kitbag/tools/");
    rest.is_some_and(|name| !name.contains('/'))
}

impl UntrustedWorkspace {
    /// The workspace, after edits that cannot be compared with what was trusted.
    pub(crate) fn edited(root: &Path, mut edits: Vec<WorkspaceEdit>) -> Self {
        if edits.is_empty() {
            edits.push(WorkspaceEdit::Places);
        }
        let reason = UntrustedReason::Changed(edits);
        Self { root: root.to_owned(), reason, leaves_out: true }
    }
}

impl fmt::Display for UntrustedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("it was never trusted"),
            Self::Changed(changes) => {
                const SHOWN: usize = 3;
                let shown: Vec<_> =
                    changes.iter().take(SHOWN).map(WorkspaceEdit::to_string).collect();
                let more = changes.len().saturating_sub(SHOWN);
                let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                write!(f, "{}{more}", shown.join(", "))
            }
            Self::Caller(Origin::Caller) => f.write_str("the program does not trust it"),
            Self::Caller(origin) => write!(f, "{origin} forbids it"),
            Self::NoState => f.write_str("kitbag has no state directory in which to record trust"),
            Self::StateInside(state) => write!(
                f,
                "the state directory `{}` is inside it, so it could contain any record",
                shown_path(state)
            ),
            Self::Record(error) => {
                write!(f, "its trust record cannot be used: {error}")
            }
        }
    }
}
