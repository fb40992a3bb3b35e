//! The paths of a server: of its program, its directory and its confinement.

use std::path::PathBuf;

use crate::format::span::At;
use crate::layers::path::{Bases, is_fixed};
use crate::read::file::Layer;
use crate::report::Problem;
use crate::resolve::context::Context;

/// Returns the directory to which the paths of a server are relative: the workspace, or for your
/// user config the home directory.
pub(super) fn base(context: &Context<'_>, layer: Layer) -> Result<PathBuf, Problem> {
    match (layer, context.bases.home) {
        (Layer::Workspace | Layer::Manifest, _) => Ok(context.bases.root.to_owned()),
        (Layer::User, Some(home)) => Ok(home.to_owned()),
        (Layer::User, None) => Err(Problem::from(
            "the home directory is unknown, in which the server would run; set `directory` to an \
             absolute path",
        )),
    }
}

/// Returns the absolute form of a path of a server.
pub(super) fn path(
    context: &Context<'_>,
    at: At<'_, str>,
    layer: Layer,
) -> Result<PathBuf, Problem> {
    if is_fixed(at.value) || at.value.is_empty() {
        return context.bases.absolute(at.value);
    }
    let root = base(context, layer)?;
    Bases { root: &root, home: context.bases.home }.absolute(at.value)
}
