//! The grants and limits of one call, which never exceed those of its tool.
//!
//! Content of a granted directory is not always as open as the directory: a topic, a repository or
//! a secret is opened only by naming it. A call can name only items that the configuration names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_config::LimitFlags;
use kitbag_contract::Limits;
use kitbag_fs_guard::{OpenAs, ProtectedNames, canonical, open, repository_above};
use kitbag_policy::{Access, DirectoryGrant, Grants, Kind};

use crate::error::ToolboxError;
use crate::registry::ToolboxState;
use crate::registry::tool::Tool;

/// Returns the limits of a call.
///
/// # Errors
///
/// [`ToolboxError::HigherLimit`].
pub(crate) fn limits(tool: &Tool, limits: LimitFlags) -> Result<Limits, ToolboxError> {
    tool.limits.lowered(limits).map_err(|limit| ToolboxError::HigherLimit {
        tool: tool.name.to_string(),
        limit: Box::new(limit),
    })
}

/// Returns the grants of a call, with the identities of their directories.
///
/// # Errors
///
/// [`ToolboxError::MoreGranted`] for the first grant that the tool's own grants do not include.
pub(crate) fn grants(
    state: &ToolboxState,
    tool: &Tool,
    mut wanted: Grants,
) -> Result<Grants, ToolboxError> {
    let own = &tool.grants.value;
    let refused = |grant: String, reason: String| {
        let tool = tool.name.to_string();
        ToolboxError::MoreGranted { tool, grant, reason }
    };
    let beyond = |grant: String| {
        let lines: Vec<_> = own.kinds().into_iter().flat_map(Kind::lines).collect();
        refused(
            grant,
            match lines.is_empty() {
                true => "the tool has no grants".to_owned(),
                false => format!("the tool has `{}`", lines.join("`, `")),
            },
        )
    };
    if let Some(grant) = wanted.beyond(own) {
        return Err(beyond(grant));
    }
    for wanted in &mut wanted.variables {
        // A call names variables. The host sets their values.
        let own = own.variables.iter().find(|own| own.name == wanted.name);
        wanted.value = own.and_then(|own| own.value.clone());
    }
    wanted.http.deny = Arc::clone(&own.http.deny);
    for wanted in &mut wanted.directories {
        // Chooses the narrowest directory, which needs no further grant for its content.
        let holding = own.directories.iter().filter(|own| own.holds(wanted));
        let own = holding.max_by_key(|own| own.host.components().count());
        let own = own.ok_or_else(|| beyond(wanted.to_string()))?;
        let identity = directory(state, own, wanted);
        wanted.identity = identity.map_err(|reason| refused(wanted.to_string(), reason))?;
    }
    Ok(wanted)
}

/// Returns the identity of a directory inside a directory that the tool is granted, unless it needs
/// a grant of its own.
fn directory(
    state: &ToolboxState,
    own: &DirectoryGrant,
    wanted: &DirectoryGrant,
) -> Result<Option<FileId>, String> {
    if wanted.host == own.host {
        return Ok(own.identity);
    }
    let host = &*wanted.host;
    let below = host.strip_prefix(&own.host).unwrap_or(host);
    let secrets = state.guard().secrets();
    let protected = ProtectedNames::of_grant(own.protected.as_deref()).unwrap_or_default();
    let protected = (wanted.access == Access::ReadWrite).then_some(&protected);
    if secrets.need_own_grant(&own.host, below, protected) {
        return Err(format!("`{}` needs a grant of the tool's own", below.display()));
    }
    let opened = |path: &Path| open(path, OpenAs::Directory).map_err(|error| error.to_string());
    let (_, stat) = opened(&own.host)?;
    if own.identity.is_some_and(|id| id != stat.id()) {
        return Err(format!("`{}` was replaced", own.host.display()));
    }
    let (_, stat) = opened(host)?;
    if let Some(private) = state.guard().private_above(host) {
        return Err(format!(
            "no tool may read `{}`, where kitbag keeps secrets",
            private.display()
        ));
    }
    if wanted.access == Access::ReadWrite {
        if let Some(guarded) = state.guard().guarded_above(host) {
            return Err(format!("no tool may change `{}`", guarded.display()));
        }
        if let Some(repository) = repository_above(host) {
            return Err(format!("`{}` looks like a git repository", repository.display()));
        }
        let topics = state.config.topics.values();
        let mut topics = topics.map(|topic| canonical(&topic.subjects.value));
        let is_opened = |topic: &PathBuf| host.starts_with(topic) && !own.host.starts_with(topic);
        if let Some(topic) = topics.find(is_opened) {
            return Err(format!(
                "`{}` is a topic, which needs a grant of the tool's own",
                topic.display()
            ));
        }
    }
    Ok(Some(stat.id()))
}
