//! Grants of storage between the calls of a tool.

use kitbag_base::ByteSize;
use kitbag_policy::{Grants, StorageGrant, StorageGrantError};

use super::beyond::{Grantee, layered};
use super::call_form::{CallForm, CallTarget, table};
use super::kind::{ConfigKind, Merge};
use crate::config::ConfiguredGrants;
use crate::format::span::{At, BoolOr};
use crate::format::{CeilingGrantsConfig, StorageConfig};
use crate::layers::origin::{Origin, Sourced};
use crate::report::{Problem, Report};

pub(super) const KIND: ConfigKind = ConfigKind {
    key: StorageGrant::KEY,
    merge: granted,
    ceiling: Some(ceiling),
    call: Some(CallForm { read: typed, add }),
};

fn ceiling(own: At<'_, CeilingGrantsConfig>, ceiling: &mut ConfiguredGrants, report: &mut Report) {
    let Some(at) = own.inner(|grants| grants.storage.as_ref()) else { return };
    ceiling.set(|grants| &mut grants.storage, at.sourced(grant(at, report).flatten()));
}

impl ConfiguredGrants {
    /// Returns the default storage of a tool of a workspace under these ceilings.
    pub(super) fn storage_ceiling(&self) -> Option<StorageGrant> {
        match self.has(StorageGrant::KEY) {
            true => self.value.storage,
            false => Some(StorageGrant::default()),
        }
    }
}

/// Returns the storage of a tool. A grant of a workspace beyond the ceiling and the user's own
/// grant is omitted, and so is the default of a built-in, unless the user config turned it on.
fn granted(merge: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merge.layers(|grants| grants.storage.as_ref());
    let mut entries = merge.entries(StorageGrant::KEY);
    let context = entries.context;
    let Grantee { builtin, code, is_enabled, .. } = entries.grantee;
    let Some(layers) = layered(layers, code, |weaker| grant(weaker, report).flatten()) else {
        let Some(builtin) = builtin.filter(|builtin| builtin.keeps && is_enabled) else { return };
        let value = StorageGrant::default();
        let ceiling = context.workspace_ceiling.storage_ceiling();
        let is_within = ceiling.is_some_and(|ceiling| value.is_within(&ceiling));
        if is_within || context.switches.is_own_choice(builtin) {
            let granted = Sourced { value: Some(value), origin: Origin::Tool };
            entries.grants.set(|grants| &mut grants.storage, granted);
        }
        return;
    };
    let Some(granted) = grant(layers.effective, report) else { return };
    let bounds = [context.workspace_ceiling.storage_ceiling(), layers.own.and_then(|(_, own)| own)];
    let granted = granted.filter(|wanted| {
        let is_within = bounds.iter().flatten().any(|bound| wanted.is_within(bound));
        entries.takes_effect(layers.effective, is_within, None, &Some(*wanted))
    });
    entries.finish(&layers);
    entries.grants.set(|grants| &mut grants.storage, layers.effective.sourced(granted));
}

/// Returns the granted storage, if any. Returns `None` if the grant is invalid.
fn grant(at: At<'_, StorageConfig>, report: &mut Report) -> Option<Option<StorageGrant>> {
    let config = match at.value {
        BoolOr::Short(is_granted) => return Some(is_granted.then(StorageGrant::default)),
        BoolOr::Other(config) => at.with(config),
    };
    let quota = config.inner(|config| config.quota.as_ref());
    let keys = config.inner(|config| config.keys.as_ref());
    let size: Option<ByteSize> = match quota {
        None => None,
        Some(at) => Some(at.value.parse().map_err(|error| report.at(at, error)).ok()?),
    };
    match StorageGrant::new(size, keys.map(|keys| *keys.value)) {
        Ok(grant) => Some(Some(grant)),
        Err(error) => {
            match (&error, quota, keys) {
                (StorageGrantError::Quota(_), Some(at), _) => report.at(at, error),
                (_, _, Some(at)) => report.at(at, error),
                _ => report.at(at, error),
            }
            None
        }
    }
}

/// Reads a grant from the command line: empty for the default, a quota, or a table in TOML.
fn typed(text: &str) -> Result<Grants, Problem> {
    let grant = match text {
        "" | "true" => StorageGrant::default(),
        text if text.starts_with('{') => table(text, |at, report| grant(at, report).flatten())?,
        text => StorageGrant::new(Some(text.parse()?), None)?,
    };
    Ok(Grants { storage: Some(grant), ..Grants::default() })
}

fn add(one: Grants, target: CallTarget<'_>) -> Result<Grants, Problem> {
    let granted = Sourced { value: one.storage, origin: target.origin };
    target.grants.set(|grants| &mut grants.storage, granted);
    Ok(one)
}
