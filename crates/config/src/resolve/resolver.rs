//! What every part of resolving shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;
use kitbag_fs_guard::{Guard, Link, OpenError, Owners, check_file_system, locate};
use kitbag_policy::http::Deny;
use kitbag_policy::{ApprovalRule, SecretName};

use super::tools::switches::Switches;
use crate::config::{ConfiguredGrants, Secret};
use crate::format::ToolConfig;
use crate::format::invalid_keys::InvalidKeys;
use crate::format::spanned::{At, Part, Span, last};
use crate::layers::limits::KnownLimits;
use crate::layers::origin::Sourced;
use crate::layers::path::{Bases, is_fixed};
use crate::read::file::SourceFile;
use crate::read::sources::{BuiltinTool, Variables};
use crate::read::{FoundScript, Locks};
use crate::report::text::{did_you_mean, known_words};
use crate::report::{Diagnostic, Piece, Problem, Report};
use crate::trust::workspace::WorkspaceTrust;

/// What resolving needs to know, and what it has found out so far.
pub(super) struct Resolver<'a> {
    pub(super) bases: Bases<'a>,
    pub(super) builtins: &'a [BuiltinTool<'a>],
    /// What the embedding program brings.
    pub(super) bytes_tools: &'a [ToolName],
    pub(super) files: &'a [SourceFile],
    /// The scripts of the workspace, by the names of their files.
    pub(super) scripts: &'a BTreeMap<ToolName, FoundScript>,
    /// What was recorded of tools.
    pub(super) locks: &'a Locks,
    pub(super) invalid: &'a InvalidKeys,
    /// What variables and flags say of limits.
    pub(super) overrides: &'a KnownLimits,
    pub(super) ceilings: &'a KnownLimits,
    /// What the user's own file says that a workspace can grant at most.
    pub(super) grant_ceiling: &'a ConfiguredGrants,
    /// The same, or nothing of any kind where the workspace is not trusted.
    pub(super) workspace_ceiling: &'a ConfiguredGrants,
    /// Whether the files of the workspace count.
    pub(super) trust: &'a WorkspaceTrust,
    /// What no tool may ask for over HTTP.
    pub(super) deny: &'a Sourced<Arc<Deny>>,
    /// The variables of the environment that can be granted.
    pub(super) variables: Option<&'a Variables>,
    /// The person's own file, for messages.
    pub(super) own_file: Option<&'a Path>,
    pub(super) canonical_root: &'a Path,
    /// Where no other user may have exchanged a link that leads to a grant.
    pub(super) owners: Owners,
    /// Whether there is a workspace that does not count.
    pub(super) is_ignored: bool,
    /// Directories, by what they were before: many tools are granted the same one.
    pub(super) directories: HashMap<PathBuf, Result<Directory, String>>,
    /// What no grant may make writable.
    pub(super) guard: Guard,
    /// Grants that lead through links, which may be followed where no tool
    /// writes.
    pub(super) linked: Vec<Linked>,
    /// The canonical paths of those to which a link in the workspace leads.
    pub(super) through_links: BTreeSet<PathBuf>,
    /// The secrets of the user's own file.
    pub(super) own_secrets: BTreeMap<SecretName, Secret>,
    /// Before which calls of all tools the user's own file has a person asked.
    pub(super) approve_default: Option<Sourced<ApprovalRule>>,
    pub(super) switches: Switches,
    /// The built-ins that tools replace which cannot be made out: they do not come back.
    pub(super) replaced: Vec<String>,
    /// What is most likely a mistake and changes nothing else.
    pub(super) warnings: Vec<Diagnostic>,
    /// Tables of the user's own file for tools that may not be there.
    pub(super) absent: Vec<AbsentTool>,
    pub(super) report: &'a mut Report,
}

impl<'a> Resolver<'a> {
    /// The built-in of a name.
    pub(super) fn named(&self, name: &str) -> Option<&'a BuiltinTool<'a>> {
        self.builtins.iter().find(|builtin| builtin.name == name)
    }

    /// The names of the built-ins.
    pub(super) fn builtin_names(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.builtins.iter().map(|builtin| builtin.name)
    }

    /// A name that no built-in has.
    pub(super) fn unknown_builtin(&self, name: &str) -> Problem {
        let hint = did_you_mean(nearest(name, self.builtin_names()))
            .or_else(|| known_words("built-in tools", self.builtin_names()));
        Problem::from(format!("no built-in tool is named `{}`", shown(name))).hint(hint)
    }

    /// The built-in that a local tool or a script replaces on purpose.
    pub(super) fn replaces(&mut self, parts: &[Part<'_, ToolConfig>]) -> Option<Sourced<String>> {
        let at = last(parts, |tool| tool.replaces.as_ref())?;
        if self.named(at.value).is_none() {
            self.report.at(at, self.unknown_builtin(at.value));
            return None;
        }
        Some(at.sourced(at.value.clone()))
    }

    /// Whether of the files of the workspace counts what narrows alone.
    pub(super) fn is_untrusted(&self) -> bool {
        self.trust.untrusted().is_some()
    }

    /// The absolute path that was meant at a place. Where another user decides what
    /// lies in the workspace, a path relative to it is none.
    pub(super) fn path(&mut self, at: At<'_, String>) -> Option<PathBuf> {
        if self.is_ignored && !at.value.is_empty() && !is_fixed(at.value) {
            return None;
        }
        self.bases.absolute(at.value).map_err(|problem| self.report.at(at, problem)).ok()
    }

    /// A directory that can be granted, or why it cannot.
    pub(super) fn directory(&mut self, path: &Path) -> Result<Directory, String> {
        if let Some(known) = self.directories.get(path) {
            return known.clone();
        }
        let result = match locate(path) {
            Ok(located) if !located.is_directory() => Err("it is not a directory".to_owned()),
            Ok(located) => match check_file_system(&located.handle) {
                Ok(()) => {
                    let identity = located.id();
                    Ok(Directory { path: located.path, identity, links: located.links })
                }
                Err(error) => Err(error.to_string()),
            },
            Err(OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err("it does not exist".to_owned())
            }
            Err(OpenError::Io(error)) => Err(crate::read::file::reason(&error)),
            Err(error) => Err(error.to_string()),
        };
        self.directories.insert(path.to_owned(), result.clone());
        result
    }
}

/// A directory that can be granted.
#[derive(Clone)]
pub(super) struct Directory {
    /// Its canonical path.
    pub(super) path: PathBuf,
    pub(super) identity: FileId,
    /// The links that led to it.
    pub(super) links: Vec<Link>,
}

/// A table of the user's own file for a tool that may not be there.
pub(super) struct AbsentTool {
    pub(super) name: ToolName,
    /// What is said where there is no tool of the name in the end.
    pub(super) warning: Diagnostic,
}

/// A granted directory whose path leads through links.
pub(super) struct Linked {
    pub(super) file: SourceFile,
    pub(super) span: Span,
    /// The directory; absolute.
    pub(super) host: PathBuf,
    pub(super) links: Vec<Link>,
    /// The tool that it is granted.
    pub(super) piece: Piece,
}
