//! What was found and read, as it was written.

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
use crate::trust::untrusted::NamedTool;
use crate::trust::workspace::{UntrustedWorkspace, WorkspaceContent, WorkspaceTrust};

pub(crate) enum Reading<'a> {
    /// Those that are there.
    Found,
    /// Those that are there, which are not trusted for this reason.
    Untrusted(UntrustedWorkspace),
    /// Those that a person trusted.
    Trusted(&'a Arc<TrustRecord>, &'a TrustedTexts),
}

/// Everything that was found and read, as it was written.
pub(crate) struct Read {
    pub(crate) workspace: Workspace,
    /// The workspace that was found or named and does not count.
    pub(crate) ignored: Option<IgnoredWorkspace>,
    pub(crate) trust: Trust,
    /// Whether the files of the workspace count. Where they do not, what is read of them is
    /// what counts all the same.
    pub(crate) workspace_trust: WorkspaceTrust,
    pub(crate) edits: Vec<WorkspaceEdit>,
    pub(crate) content: Option<WorkspaceContent>,
    /// The tools that a file names and that do not run, by index into `files`.
    pub(crate) named: Vec<(usize, NamedTool)>,
    /// The weakest layer first.
    pub(crate) files: Vec<SourceFile>,
    /// By index into `files`, the weakest layer first.
    pub(crate) configs: Vec<(usize, ConfigFile)>,
    pub(crate) found: BTreeMap<ToolName, FoundTool>,
    pub(crate) scripts: BTreeMap<ToolName, FoundScript>,
    pub(crate) named_script: Option<(ToolName, FoundScript)>,
    /// The links among the entries of `.kitbag/tools` that are named like a part of a tool.
    pub(crate) tool_links: Vec<PathBuf>,
    pub(crate) locks: Locks,
    pub(crate) invalid: InvalidKeys,
    pub(crate) is_complete: bool,
}

#[derive(Default)]
pub(crate) struct Locks {
    pub(crate) workspace: Lock,
    /// Beside the user's own file.
    pub(crate) user: Lock,
}

/// A component in `.kitbag/tools`, and its manifest.
pub(crate) struct FoundTool {
    pub(crate) wasm: PathBuf,
    pub(crate) shown: Arc<Path>,
    /// By index into [`Read::files`].
    pub(crate) manifest: Option<(usize, ToolConfig)>,
}

/// A script, and what it says of itself.
pub(crate) struct FoundScript {
    pub(crate) path: PathBuf,
    pub(crate) shown: Arc<Path>,
    pub(crate) is_named: bool,
    /// Its text, by index into [`Read::files`]. `None`: the workspace is not trusted, and the
    /// script was not read.
    pub(crate) file: Option<usize>,
    /// What its docstring and then its header say of the tool, by index as above.
    pub(crate) says: Vec<(usize, ToolConfig)>,
    pub(crate) header: Option<(usize, ScriptConfig)>,
}

impl FoundScript {
    pub(super) fn unread(path: &Path, root: &Path) -> Self {
        let (path, shown) = (path.to_owned(), file::relative(path, root));
        Self { path, shown, is_named: false, file: None, says: Vec::new(), header: None }
    }
}
