//! The files that were found and read, before they are resolved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::ToolName;
use kitbag_state::trust::{TrustRecord, TrustedTexts, WorkspaceEdit};

use super::workspace::Workspace;
use crate::config::{IgnoredWorkspace, Trust};
use crate::format::invalid_keys::InvalidKeys;
use crate::format::{ConfigFile, ScriptConfig, ToolConfig};
use crate::read::file::{self, SourceFile};
use crate::read::lock::Lock;
use crate::trust::restrictions::{NamedTool, WithheldSwitch};
use crate::trust::workspace::{UntrustedWorkspace, WorkspaceContent, WorkspaceTrust};

pub(crate) enum Reading<'a> {
    /// The present files.
    Found,
    /// The present files, which are untrusted for this reason.
    Untrusted(UntrustedWorkspace),
    /// The files that a person trusted.
    Trusted(&'a Arc<TrustRecord>, &'a TrustedTexts),
}

/// The files that were found and read, before they are resolved.
pub(crate) struct Read {
    pub(crate) workspace: Workspace,
    /// The workspace that was found or named but is ignored.
    pub(crate) ignored: Option<IgnoredWorkspace>,
    pub(crate) trust: Trust,
    /// The trust state of the workspace. If it is untrusted, only settings that take effect without
    /// trust were kept.
    pub(crate) workspace_trust: WorkspaceTrust,
    pub(crate) edits: Vec<WorkspaceEdit>,
    pub(crate) content: Option<WorkspaceContent>,
    /// The tools that a file names but that do not run, by index into `files`.
    pub(crate) named: Vec<(usize, NamedTool)>,
    /// The switches of an untrusted file that do not take effect, by index into `files`.
    pub(crate) withheld: Vec<(usize, WithheldSwitch)>,
    /// The weakest layer first.
    pub(crate) files: Vec<SourceFile>,
    /// By index into `files`, the weakest layer first.
    pub(crate) configs: Vec<(usize, ConfigFile)>,
    pub(crate) found: BTreeMap<ToolName, FoundTool>,
    pub(crate) scripts: BTreeMap<ToolName, FoundScript>,
    pub(crate) named_script: Option<(ToolName, FoundScript)>,
    /// The links in `.kitbag/tools` with the name of a part of a tool.
    pub(crate) tool_links: Vec<PathBuf>,
    pub(crate) locks: Locks,
    pub(crate) invalid: InvalidKeys,
    pub(crate) is_complete: bool,
}

#[derive(Default)]
pub(crate) struct Locks {
    pub(crate) workspace: Lock,
    /// The lock file beside the user config.
    pub(crate) user: Lock,
}

/// A component in `.kitbag/tools`, and its manifest.
pub(crate) struct FoundTool {
    pub(crate) wasm: PathBuf,
    pub(crate) shown: Arc<Path>,
    /// By index into [`Read::files`].
    pub(crate) manifest: Option<(usize, ToolConfig)>,
}

/// A script and its own declarations.
pub(crate) struct FoundScript {
    pub(crate) path: PathBuf,
    pub(crate) shown: Arc<Path>,
    pub(crate) is_named: bool,
    /// The script's text, by index into [`Read::files`]. `None`: the workspace is not trusted, and
    /// the script was not read.
    pub(crate) file: Option<usize>,
    /// The declarations of the docstring and then of the header, by index into [`Read::files`].
    pub(crate) says: Vec<(usize, ToolConfig)>,
    pub(crate) header: Option<(usize, ScriptConfig)>,
}

impl FoundScript {
    pub(super) fn unread(path: &Path, root: &Path) -> Self {
        let (path, shown) = (path.to_owned(), file::relative(path, root));
        Self { path, shown, is_named: false, file: None, says: Vec::new(), header: None }
    }
}
