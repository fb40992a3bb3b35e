//! The data that all parts of resolving use.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_base::text::{nearest, shown};
use kitbag_contract::ToolName;
use kitbag_fs_guard::{Guard, Link, OpenError, Owners, check_file_system, locate};
use kitbag_policy::http::Deny;
use kitbag_policy::server::ServerName;
use kitbag_policy::{ApprovalRule, SecretName};

pub(super) use super::config_files::{ConfigFiles, of_user, tables};
use super::servers::offers::Offers;
use super::tools::switches::Switches;
use crate::config::{ConfiguredGrants, ConfiguredServer, Secret};
use crate::format::ToolConfig;
use crate::format::invalid_keys::InvalidKeys;
use crate::format::span::{At, Part, Written, last};
use crate::layers::limits::KnownLimits;
use crate::layers::origin::Sourced;
use crate::layers::path::{Bases, is_fixed};
use crate::read::file::SourceFile;
use crate::read::sources::{BuiltinTool, Sources, Variables};
use crate::read::{FoundScript, Locks};
use crate::report::text::{did_you_mean, known_words};
use crate::report::{Problem, Report};
use crate::trust::workspace::WorkspaceTrust;

/// The files that were read, and the settings that apply to all tools.
pub(super) struct Context<'a> {
    pub(super) configs: &'a ConfigFiles<'a>,
    pub(super) sources: &'a Sources<'a>,
    pub(super) bases: Bases<'a>,
    pub(super) builtins: &'a [BuiltinTool<'a>],
    /// The tools that the embedding program provides.
    pub(super) bytes_tools: &'a [ToolName],
    pub(super) files: &'a [SourceFile],
    /// The scripts of the workspace, by the names of their files.
    pub(super) scripts: &'a BTreeMap<ToolName, FoundScript>,
    pub(super) locks: &'a Locks,
    pub(super) invalid: &'a InvalidKeys,
    /// Limits that variables and flags set.
    pub(super) overrides: &'a KnownLimits,
    pub(super) ceilings: &'a KnownLimits,
    /// The widest grants that a workspace may give, from the user config.
    pub(super) grant_ceiling: &'a ConfiguredGrants,
    /// The same ceiling, or an empty ceiling of every kind if the workspace is not trusted.
    pub(super) workspace_ceiling: &'a ConfiguredGrants,
    pub(super) trust: &'a WorkspaceTrust,
    /// Requests over HTTP that no tool may make.
    pub(super) deny: &'a Sourced<Arc<Deny>>,
    /// The variables of the environment that can be granted.
    pub(super) variables: Option<&'a Variables>,
    /// The user config, for messages.
    pub(super) own_file: Option<&'a Path>,
    pub(super) canonical_root: &'a Path,
    /// Directories in which no other user may have replaced a link that leads to a grant.
    pub(super) owners: Owners,
    pub(super) is_ignored: bool,
    /// Paths that no tool may read.
    pub(super) private: &'a [PathBuf],
    pub(super) servers: BTreeMap<ServerName, ConfiguredServer>,
    pub(super) offers: Offers,
    pub(super) directories: Directories,
    /// Files that no grant may make writable.
    pub(super) guard: Guard,
    pub(super) own_secrets: &'a BTreeMap<SecretName, Secret>,
    pub(super) approve_default: Option<&'a Sourced<ApprovalRule>>,
    pub(super) switches: Switches,
}

impl<'a> Context<'a> {
    pub(super) fn named(&self, name: &str) -> Option<&'a BuiltinTool<'a>> {
        self.builtins.iter().find(|builtin| builtin.name == name)
    }

    pub(super) fn builtin_names(&self) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
        self.builtins.iter().map(|builtin| builtin.name)
    }

    pub(super) fn unknown_builtin(&self, name: &str) -> Problem {
        let hint = did_you_mean(nearest(name, self.builtin_names()))
            .or_else(|| known_words("built-in tools", self.builtin_names()));
        Problem::from(format!("no built-in tool is named `{}`", shown(name))).hint(hint)
    }

    /// Returns the built-in that a local tool or a script explicitly replaces.
    pub(super) fn replaces(
        &self,
        parts: &[Part<'_, ToolConfig>],
        report: &mut Report,
    ) -> Option<Sourced<String>> {
        let at = last(parts, |tool| tool.replaces.as_ref())?;
        if self.named(at.value).is_none() {
            report.at(at, self.unknown_builtin(at.value));
            return None;
        }
        Some(at.sourced(at.value.clone()))
    }

    /// Returns whether only settings that restrict access take effect from the workspace's files.
    pub(super) fn is_untrusted(&self) -> bool {
        self.trust.untrusted().is_some()
    }

    /// Returns the absolute form of a path in a file. `None`: the path is invalid, or relative to a
    /// workspace whose files another user can change.
    pub(super) fn path(&self, at: At<'_, String>, report: &mut Report) -> Option<PathBuf> {
        if self.is_ignored && !at.value.is_empty() && !is_fixed(at.value) {
            return None;
        }
        self.bases.absolute(at.value).map_err(|problem| report.at(at, problem)).ok()
    }
}

/// The directories that tools are granted. Many tools are granted the same directory, which is
/// opened once.
#[derive(Default)]
pub(super) struct Directories(RefCell<HashMap<PathBuf, Result<Directory, String>>>);

impl Directories {
    /// Returns a directory that can be granted, or the reason why it cannot be granted.
    pub(super) fn get(&self, path: &Path) -> Result<Directory, String> {
        self.0.borrow_mut().entry(path.to_owned()).or_insert_with(|| Directory::open(path)).clone()
    }
}

/// A directory that can be granted.
#[derive(Clone)]
pub(super) struct Directory {
    /// The canonical path.
    pub(super) path: PathBuf,
    pub(super) identity: FileId,
    /// The links that led to the directory.
    pub(super) links: Vec<Link>,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, String> {
        match locate(path) {
            Ok(located) if !located.is_directory() => Err("it is not a directory".to_owned()),
            Ok(located) => match check_file_system(&located.handle) {
                Ok(()) => {
                    let identity = located.id();
                    Ok(Self { path: located.path, identity, links: located.links })
                }
                Err(error) => Err(error.to_string()),
            },
            Err(OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err("it does not exist".to_owned())
            }
            Err(OpenError::Io(error)) => Err(crate::read::file::reason(&error)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the values of the strings in a list. Invalid strings are reported and omitted.
pub(super) fn valid<'a, T, E: Into<Problem>>(
    list: At<'a, Vec<Written<String>>>,
    report: &mut Report,
    read: impl Fn(&'a str) -> Result<T, E>,
) -> Vec<T> {
    let texts = list.value.iter().map(|text| text.at(list.file));
    texts.filter_map(|at| read(at.value).map_err(|problem| report.at(at, problem)).ok()).collect()
}
