//! What a tool may keep between its calls.

use kitbag_base::ByteSize;
use kitbag_policy::{StorageGrant, StorageGrantError};

use super::beyond::{Code, own_of, replaces};
use super::typed::table;
use crate::config::ConfiguredGrants;
use crate::format::StorageConfig;
use crate::format::spanned::{At, BoolOr};
use crate::layers::origin::{Origin, Sourced};
use crate::read::sources::BuiltinTool;
use crate::report::{Problem, Report};
use crate::resolve::resolver::Resolver;

/// What the user's own file lets a workspace grant.
pub(super) fn ceiling(
    at: At<'_, StorageConfig>,
    report: &mut Report,
) -> Sourced<Option<StorageGrant>> {
    at.sourced(grant(at, report).flatten())
}

impl ConfiguredGrants {
    /// What a tool of a workspace may keep by default, by these ceilings.
    pub(super) fn storage_ceiling(&self) -> Option<StorageGrant> {
        match self.has(StorageGrant::KEY) {
            true => self.value.storage,
            false => Some(StorageGrant::default()),
        }
    }
}

impl Resolver<'_> {
    /// What a tool may keep. What a workspace grants beyond the ceiling and the user's own
    /// grant is left out, and so is what a built-in has by default, unless the user's own file
    /// turned it on.
    pub(super) fn storage(
        &mut self,
        mut layers: Vec<At<'_, StorageConfig>>,
        is_enabled: bool,
        builtin: Option<&BuiltinTool<'_>>,
        code: Code,
        tool: &mut ConfiguredGrants,
    ) {
        let Some(effective) = layers.pop() else {
            let Some(builtin) = builtin.filter(|builtin| builtin.keeps && is_enabled) else {
                return;
            };
            let value = StorageGrant::default();
            let ceiling = self.workspace_ceiling.storage_ceiling();
            let is_within = ceiling.is_some_and(|ceiling| value.is_within(&ceiling));
            if is_within || self.switches.is_own_choice(builtin) {
                let granted = Sourced { value: Some(value), origin: Origin::Tool };
                tool.set(|grants| &mut grants.storage, granted);
            }
            return;
        };
        let own = own_of(&layers, code);
        let mut own_grant = None;
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            let weaker_grant = grant(weaker, self.report).flatten();
            if own.is_some_and(|own| std::ptr::eq(own.value, weaker.value)) {
                own_grant = weaker_grant;
            }
        }
        let Some(mut granted) = grant(effective, self.report) else { return };
        if let Some(wanted) = granted {
            let bounds = [self.workspace_ceiling.storage_ceiling(), own_grant];
            let is_within = bounds.iter().flatten().any(|bound| wanted.is_within(bound));
            let setting = wanted.as_setting();
            if let Some(beyond) =
                self.beyond_ceiling(effective, code, is_within, (StorageGrant::KEY, setting))
            {
                granted = None;
                if is_enabled {
                    tool.warnings.push(beyond);
                    tool.warnings.extend(replaces(StorageGrant::KEY, effective, own));
                }
            }
        }
        tool.set(|grants| &mut grants.storage, effective.sourced(granted));
    }
}

/// What is granted, or nothing; `None` where it is not valid.
fn grant(at: At<'_, StorageConfig>, report: &mut Report) -> Option<Option<StorageGrant>> {
    let config = match at.value {
        BoolOr::Bool(is_granted) => return Some(is_granted.then(StorageGrant::default)),
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

/// A grant as it is typed on the command line: nothing for the default, a quota, or a table in
/// TOML.
pub(super) fn typed(text: &str) -> Result<StorageGrant, Problem> {
    match text {
        "" | "true" => Ok(StorageGrant::default()),
        text if text.starts_with('{') => table(text, |at, report| grant(at, report).flatten()),
        text => Ok(StorageGrant::new(Some(text.parse()?), None)?),
    }
}
