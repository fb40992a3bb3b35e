//! From what a person typed to what is in effect: the layers merged, the
//! defaults filled in, and everything checked.

mod ceiling;
mod fit;
pub(crate) mod grants;
mod limits;
mod parameters;
pub(crate) mod path;
mod tools;
mod topics;
mod value;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub(crate) use limits::{Overrides, overrides};

use ceiling::{ceilings, lowered};
use kitbag_contract::FileId;
use kitbag_files::{Guard, GuardedPaths, Link, OpenError, check_file_system, locate};

use crate::config::{Config, own_directories};
use crate::discover::{Read, Workspace};
use crate::error::Report;
use crate::file::SourceFile;
use crate::key::KeyPath;
use crate::limit_set::{EffectiveLimits, KnownLimits};
use crate::origin::Sourced;
use crate::parse::Damage;
use crate::sources::{BuiltinTool, Sources};
use crate::written::{At, Part, Written};

/// Merges and checks what was read.
///
/// What is faulty is reported, and left out of the result.
pub(crate) fn resolve(
    read: Read,
    overrides: &Overrides,
    sources: &Sources<'_>,
    report: &mut Report,
) -> Config {
    let Read { workspace, ignored, trust, files, configs, found, damage } = read;
    let Workspace { root, canonical, exists } = workspace;
    let configs: Vec<_> = configs.iter().map(|(file, config)| (&files[*file], config)).collect();
    let ceilings = ceilings(&configs, &damage, report);
    let mut resolver = Resolver {
        bases: path::Bases { root: &root.value, home: sources.home.as_deref() },
        builtins: sources.builtins,
        files: &files,
        damage: &damage,
        overrides,
        ceilings: &ceilings,
        own_file: sources.own_file(),
        canonical_root: &canonical,
        is_ignored: ignored.is_some(),
        directories: HashMap::new(),
        guard: Guard::new(GuardedPaths {
            own: own_directories(
                &root.value,
                sources.protected.iter().chain(sources.state.as_ref().map(|state| &state.value)),
            ),
            ..GuardedPaths::default()
        }),
        linked: Vec::new(),
        report,
    };
    let own: Vec<_> = configs
        .iter()
        .filter_map(|(file, config)| Some((*file, config.limits.as_ref()?)))
        .collect();
    let lowered = lowered(EffectiveLimits::default(), &ceilings);
    let limits = resolver.limits(&KeyPath::ROOT.key("limits"), &own, &lowered);
    let server_memory = resolver.server_memory(&configs);
    let tools = resolver.tools(&configs, &found, &limits);
    resolver.check_links(&tools);
    let topics = resolver.topics(&configs);
    let limits = limits.under(&overrides.limits);
    let ceiling = EffectiveLimits::default().under(&ceilings);
    let protected = sources.protected.clone();
    Config {
        root,
        has_workspace: exists,
        ignored,
        trust,
        warnings: overrides.unknown.clone(),
        state: sources.state.clone(),
        files,
        ceiling,
        limits,
        server_memory,
        tools,
        topics,
        protected,
    }
}

/// What resolving needs to know, and what it has found out so far.
struct Resolver<'a> {
    bases: path::Bases<'a>,
    builtins: &'a [BuiltinTool<'a>],
    files: &'a [SourceFile],
    damage: &'a Damage,
    overrides: &'a Overrides,
    ceilings: &'a KnownLimits,
    /// The person's own file, for messages.
    own_file: Option<&'a Path>,
    canonical_root: &'a Path,
    /// Whether there is a workspace that does not count.
    is_ignored: bool,
    /// Directories, by what they were before: many tools are granted the same one.
    directories: HashMap<PathBuf, Result<Directory, String>>,
    /// What no grant may make writable.
    guard: Guard,
    /// Grants that lead through links, which may be followed where no tool
    /// writes.
    linked: Vec<grants::filesystem::Linked>,
    report: &'a mut Report,
}

impl Resolver<'_> {
    /// The absolute path that was meant at a place. Where another user decides what
    /// lies in the workspace, a path relative to it is none.
    fn path(&mut self, at: At<'_, String>) -> Option<PathBuf> {
        if self.is_ignored && !at.value.is_empty() && !path::is_fixed(at.value) {
            return None;
        }
        self.bases.absolute(at.value).map_err(|problem| self.report.at(at, problem)).ok()
    }

    /// A directory that can be granted, or why it cannot.
    fn directory(&mut self, path: &Path) -> Result<Directory, String> {
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
            Err(OpenError::Io(error)) => Err(crate::file::reason(&error)),
            Err(error) => Err(error.to_string()),
        };
        self.directories.insert(path.to_owned(), result.clone());
        result
    }
}

/// A directory that can be granted.
#[derive(Clone)]
struct Directory {
    /// Its canonical path.
    path: PathBuf,
    identity: FileId,
    /// The links that led to it.
    links: Vec<Link>,
}

/// What every layer says of a field, the weakest first.
fn all<'a, T, U: 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> impl DoubleEndedIterator<Item = At<'a, U>> {
    parts.iter().filter_map(move |part| part.at.inner(&field))
}

/// What the strongest layer says of a field.
fn last<'a, T, U: 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> Option<At<'a, U>> {
    all(parts, field).next_back()
}

/// The same, as a value.
fn copied<'a, T, U: Clone + 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> Option<Sourced<U>> {
    last(parts, field).map(|at| at.sourced(at.value.clone()))
}
