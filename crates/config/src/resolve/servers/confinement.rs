//! The confinement of a process: the files that it may reach.

use std::path::{Path, PathBuf};

use kitbag_base::text::{shown, shown_path};
use kitbag_fs_guard::{Located, OpenError, canonical, locate};
use kitbag_policy::DirectoryGrant;
use kitbag_policy::server::Confinement;

use super::paths;
use crate::format::ConfineConfig;
use crate::format::span::{At, Written};
use crate::layers::path::is_fixed;
use crate::read::file::Layer;
use crate::report::{DiagnosticKind, Problem, Report};
use crate::resolve::context::Context;
use crate::resolve::grants::filesystem::never_writable;

/// The most paths of one list.
const MOST: usize = 64;

/// Returns the confinement of a table. `None`: a part of it is invalid, which was reported.
pub(super) fn confinement(
    context: &Context<'_>,
    at: At<'_, ConfineConfig>,
    report: &mut Report,
) -> Option<Confinement> {
    let read = at.inner(|confine| confine.read.as_ref());
    let read = read.map_or(Some(Vec::new()), |list| paths(context, list, false, report));
    let write = at.inner(|confine| confine.write.as_ref());
    let write = write.map_or(Some(Vec::new()), |list| paths(context, list, true, report));
    let memory = match at.inner(|confine| confine.memory.as_ref()) {
        None => Some(None),
        Some(at) => at.value.parse().map(Some).map_err(|error| report.at(at, error)).ok(),
    };
    let processes = match at.inner(|confine| confine.processes.as_ref()) {
        None => Some(None),
        Some(at) => match u32::try_from(at.value.get()) {
            Ok(processes) => Some(Some(processes)),
            Err(_) => {
                report.at(at, "`processes` is too large");
                None
            }
        },
    };
    let network = at.value.network.as_ref().is_some_and(|network| network.value);
    Some(Confinement {
        read: read?,
        write: write?,
        network,
        memory: memory?,
        processes: processes?,
    })
}

/// Returns the working directory of a process.
pub(super) fn directory(
    context: &Context<'_>,
    at: At<'_, String>,
    report: &mut Report,
) -> Option<PathBuf> {
    let found = existing(context, at, report).and_then(|found| match found.is_directory() {
        true => Ok(found.path),
        false => Err(refused(at.value, "it is not a directory")),
    });
    found.map_err(|problem| report.at(at, problem)).ok()
}

fn paths(
    context: &Context<'_>,
    list: At<'_, Vec<Written<String>>>,
    is_written: bool,
    report: &mut Report,
) -> Option<Vec<PathBuf>> {
    let count = list.value.len();
    if count > MOST {
        report.at(list, format!("{count} paths are listed; the limit is {MOST}"));
        return None;
    }
    let mut paths = Vec::new();
    let mut is_valid = true;
    for at in list.value.iter().map(|text| text.at(list.file)) {
        match reachable(context, at, is_written, report) {
            Ok(path) if paths.contains(&path) => {}
            Ok(path) => paths.push(path),
            Err(problem) => {
                report.at(at, problem);
                is_valid = false;
            }
        }
    }
    is_valid.then_some(paths)
}

/// Returns the canonical form of a path that a confined process may reach. The kernel can make no
/// exception below such a path, so it must not contain kitbag's own secrets or settings.
fn reachable(
    context: &Context<'_>,
    at: At<'_, String>,
    is_written: bool,
    report: &mut Report,
) -> Result<PathBuf, Problem> {
    let path = existing(context, at, report)?.path;
    let overlaps = |own: &Path| {
        let own = canonical(own);
        own.starts_with(&path) || path.starts_with(&own)
    };
    if let Some(private) = context.private.iter().find(|private| overlaps(private)) {
        let reason = format!(
            "it would let the server read `{}`, where kitbag keeps secrets and records; name \
             directories without it",
            shown_path(private)
        );
        return Err(refused(at.value, &reason));
    }
    if !is_written {
        return Ok(path);
    }
    let own = context.own_file.and_then(Path::parent);
    if let Some(own) = own.filter(|own| overlaps(own)) {
        let reason = format!(
            "it would let the server change your user config in `{}`; name directories without it",
            shown_path(own)
        );
        return Err(refused(at.value, &reason));
    }
    match never_writable(context, &path) {
        Some(_) => {
            let reason = "no server may change kitbag's own directories, or a bare git repository; \
                          put it into `read`, or name another directory";
            Err(refused(at.value, reason))
        }
        None => Ok(path),
    }
}

/// Finds an existing path. A relative path of a workspace must not lead out of the workspace.
fn existing(
    context: &Context<'_>,
    at: At<'_, String>,
    report: &mut Report,
) -> Result<Located, Problem> {
    let layer = at.file.layer();
    let path = paths::path(context, at.with(at.value.as_str()), layer)?;
    let found = locate(&path).map_err(|error| match error {
        OpenError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refused(at.value, "it does not exist; create it first")
        }
        OpenError::Io(error) => refused(at.value, &crate::read::file::reason(&error)),
        error => refused(at.value, &error.to_string()),
    })?;
    let is_own = layer != Layer::User && !is_fixed(at.value);
    if is_own && !found.path.starts_with(context.canonical_root) {
        let reason = format!(
            "it leads out of the workspace, to `{}`; write the absolute path if that is meant",
            shown_path(&found.path)
        );
        return Err(refused(at.value, &reason));
    }
    let links = context.owners.check_links(&found.links);
    links.map_err(|error| refused(at.value, &error.to_string()))?;
    if !found.links.is_empty() {
        report.link(at, path, found.path.clone(), found.links.clone());
    }
    Ok(found)
}

fn refused(path: &str, reason: &str) -> Problem {
    let message = format!("the server cannot be given `{}`: {reason}", shown(path));
    Problem::new(DiagnosticKind::Grant(DirectoryGrant::KEY), message)
}
