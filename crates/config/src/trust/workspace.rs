//! Trust in the files of a workspace: whether they take effect, and the reason.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::ContentDigest;
use kitbag_base::text::shown_path;
use kitbag_state::trust::{TrustRecord, WorkspaceEdit};

use crate::layers::origin::Origin;

/// The command that shows a person the requests of a workspace, and trusts it.
pub(crate) const COMMAND: &str = "kitbag trust";

/// The trust state of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceTrust {
    /// The workspace has no configuration files.
    #[default]
    Nothing,
    /// The files take effect.
    Trusted(TrustedBy),
    /// Only settings that restrict access take effect, and tools of the workspace do not run.
    Untrusted(Box<UntrustedWorkspace>),
}

/// The reason why the files of a workspace take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedBy {
    /// A person trusts their requests. Components must have the digests in the record.
    Record(Arc<TrustRecord>),
    /// A pattern of the user config matches the workspace.
    Pattern(Origin),
    /// The caller or the environment variable trusts them.
    Caller(Origin),
    /// The files are read to show their requests.
    Question,
}

/// An untrusted workspace, whose files do not take effect.
///
/// Reads as ``the workspace `/w` is not trusted; until you run …``. After an edit the
/// cause comes first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}",
    match reason {
        UntrustedReason::Changed(_) => format!(
            "{reason}: until you run `{COMMAND}`, only settings that restrict access take effect in \
             `{}`, and its tools do not run",
            shown_path(root)
        ),
        UntrustedReason::New => format!(
            "the workspace `{}` is not trusted; until you run `{COMMAND}`, only settings that \
             restrict access take effect, and its tools do not run",
            shown_path(root)
        ),
        _ => format!(
            "the workspace `{}` is not trusted: {reason}; until you run `{COMMAND}`, only settings \
             that restrict access take effect, and its tools do not run",
            shown_path(root)
        ),
    }
)]
pub struct UntrustedWorkspace {
    /// The root of the workspace; absolute.
    pub root: PathBuf,
    /// The reason why it is not trusted.
    pub reason: UntrustedReason,
    /// `true` if some of its settings therefore do not take effect.
    pub leaves_out: bool,
}

/// The reason why a workspace is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UntrustedReason {
    /// No person has trusted it.
    New,
    /// It was edited, and the trusted version is no longer known.
    Changed(Vec<WorkspaceEdit>),
    /// The caller does not trust it.
    Caller(Origin),
    /// There is no state directory, and therefore no record.
    NoState,
    /// The state directory is in the workspace, which could contain any record.
    StateInside(PathBuf),
    /// The record cannot be read.
    Record(String),
}

/// The content that configures a workspace, except the bytes of its components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceContent {
    /// The canonical path of the workspace.
    pub root: PathBuf,
    /// The files, by their paths in the workspace, with the digests of their content when they were
    /// read.
    pub files: BTreeMap<String, ContentDigest>,
    /// The components in `.kitbag/tools`, by their paths in the workspace.
    pub components: Vec<String>,
    /// `true` if there is a directory of skills. A record of trust does not contain it.
    pub has_skills: bool,
}

/// A glob of directories whose workspaces are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspacePattern {
    /// The glob, which is matched against canonical paths.
    pub(crate) glob: String,
    pub(crate) origin: Origin,
}

impl WorkspaceTrust {
    /// Returns whether the files take effect.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted(_))
    }

    /// Returns the message for an untrusted workspace.
    pub fn untrusted(&self) -> Option<&UntrustedWorkspace> {
        match self {
            Self::Untrusted(untrusted) => Some(untrusted),
            Self::Nothing | Self::Trusted(_) => None,
        }
    }

    /// Returns the message for a person if the workspace is untrusted and some of its settings
    /// therefore do not take effect.
    pub fn notice(&self) -> Option<&UntrustedWorkspace> {
        self.untrusted().filter(|untrusted| untrusted.leaves_out)
    }

    /// Records that a setting in the files does not take effect.
    pub(crate) fn leave_out(&mut self) {
        if let Self::Untrusted(untrusted) = self {
            untrusted.leaves_out = true;
        }
    }

    /// Returns the record of trust, if it is the reason why the files take effect.
    pub fn record(&self) -> Option<&Arc<TrustRecord>> {
        match self {
            Self::Trusted(TrustedBy::Record(record)) => Some(record),
            _ => None,
        }
    }
}

impl WorkspaceContent {
    /// Returns whether the workspace has no configuration.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.components.is_empty() && !self.has_skills
    }

    /// Returns the differences from the trusted version. Components are compared by their digests
    /// when they are loaded; here only by their presence.
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
    /// Returns the workspace after edits that cannot be compared with the trusted version.
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
            Self::New => f.write_str("it has no trust record"),
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
