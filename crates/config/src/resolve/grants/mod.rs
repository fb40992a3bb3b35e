//! Grants: the access of a tool, by kind.
//!
//! Each kind has a module here, which defines the meaning of its values. [`crate::format`] defines
//! their form.

pub(super) mod beyond;
pub(super) mod call;
pub(super) mod ceiling;
mod config_values;
mod environment;
pub(super) mod filesystem;
pub(super) mod http;
mod secrets;
mod storage;
pub(super) mod tools;
mod typed;

use kitbag_policy::{HttpGrant, SecretGrant, StorageGrant, ToolGrants, VariableGrant};

use self::beyond::{Code, Entries, Grantee};
use super::context::Context;
use crate::config::ConfiguredGrants;
use crate::format::spanned::{At, Written};
use crate::format::{GrantsConfig, grants_writing};
use crate::read::file::Layer;
use crate::report::Report;

/// Merges the grants of a tool from all layers, the weakest first.
///
/// For every kind except `config`, whose values are merged by key, only the strongest layer that
/// has the kind takes effect. For a kind with a ceiling, an entry of a workspace's file takes
/// effect within that ceiling or within the user's own grants of the tool.
pub(super) fn of_tool(
    context: &Context<'_>,
    grantee: Grantee<'_>,
    layers: &[At<'_, GrantsConfig>],
    report: &mut Report,
) -> ConfiguredGrants {
    let mut grants = ConfiguredGrants::none(grantee.code == Code::Workspace);
    let directories = of_kind(layers, |grants| grants.filesystem.as_ref());
    let directories = filesystem::granted(context, directories, grantee, report);
    grants.set(|grants| &mut grants.directories, directories);
    let http = of_kind(layers, |grants| grants.http.as_ref());
    http::granted(http, Entries::new(context, grantee, HttpGrant::KEY, &mut grants), report);
    let denied = of_kind(layers, |grants| grants.deny.as_ref());
    http::denied(context, denied, &mut grants, report);
    let variables = of_kind(layers, |grants| grants.env.as_ref());
    let placeholders = environment::granted(
        variables,
        Entries::new(context, grantee, VariableGrant::KEY, &mut grants),
        report,
    );
    let config = of_kind(layers, |grants| grants.config.as_ref());
    config_values::granted(&config, &mut grants, report);
    let secrets = of_kind(layers, |grants| grants.secrets.as_ref());
    secrets::granted(
        secrets,
        placeholders,
        Entries::new(context, grantee, SecretGrant::KEY, &mut grants),
        report,
    );
    let storage = of_kind(layers, |grants| grants.storage.as_ref());
    storage::granted(
        storage,
        Entries::new(context, grantee, StorageGrant::KEY, &mut grants),
        report,
    );
    let tools = of_kind(layers, |grants| grants.tools.as_ref());
    tools::granted(tools, Entries::new(context, grantee, ToolGrants::KEY, &mut grants), report);
    grants
}

/// Returns the layer of the configuration whose grants let a tool change files. `layers` are the
/// same as in [`of_tool`].
pub(super) fn writes(layers: &[At<'_, GrantsConfig>]) -> Option<Layer> {
    let effective = of_kind(layers, |grants| grants.filesystem.as_ref()).pop()?;
    grants_writing(effective.value).then(|| effective.file.layer())
}

pub(super) fn names_directories(layers: &[At<'_, GrantsConfig>]) -> bool {
    !of_kind(layers, |grants| grants.filesystem.as_ref()).is_empty()
}

fn of_kind<'a, T>(
    layers: &[At<'a, GrantsConfig>],
    kind: impl Fn(&'a GrantsConfig) -> Option<&'a Written<T>>,
) -> Vec<At<'a, T>> {
    layers.iter().filter_map(|grants| grants.inner(&kind)).collect()
}
