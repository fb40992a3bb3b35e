//! Grants: the access of a tool, by kind.
//!
//! Each kind has a module here, which defines the meaning of its values. [`crate::format`] defines
//! their form.

pub(super) mod beyond;
pub(super) mod call;
mod call_form;
mod config_values;
mod environment;
pub(super) mod filesystem;
pub(super) mod http;
mod kind;
mod secrets;
mod storage;
pub(super) mod tools;

use self::beyond::{Code, Grantee};
use self::kind::{ConfigKind, Merge};
use super::context::{ConfigFiles, Context, of_user};
use crate::config::ConfiguredGrants;
use crate::format::GrantsConfig;
use crate::format::span::At;
use crate::report::Report;

/// The kinds, in the order in which they are merged: variables hold placeholders of secrets.
static KINDS: [ConfigKind; 7] = [
    filesystem::KIND,
    http::KIND,
    environment::KIND,
    config_values::KIND,
    secrets::KIND,
    storage::KIND,
    tools::KIND,
];

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
    let placeholders = Vec::new();
    let mut merge = Merge { context, grantee, layers, placeholders, grants: &mut grants };
    for kind in &KINDS {
        (kind.merge)(&mut merge, report);
    }
    grants
}

/// Reads `[ceiling.grants]` of the user config: the widest grants that a workspace may give. A kind
/// that is not listed is not limited, once the workspace is trusted.
pub(super) fn grant_ceiling(configs: &ConfigFiles<'_>, report: &mut Report) -> ConfiguredGrants {
    let mut ceiling = ConfiguredGrants::default();
    let own = of_user(configs, |config| config.ceiling.as_ref()?.grants.as_ref());
    let Some(own) = own else { return ceiling };
    for read in KINDS.iter().filter_map(|kind| kind.ceiling) {
        read(own, &mut ceiling, report);
    }
    ceiling
}

/// Returns a ceiling that allows no grants of any kind.
pub(super) fn empty_ceiling() -> ConfiguredGrants {
    let limited = KINDS.iter().filter(|kind| kind.ceiling.is_some());
    ConfiguredGrants::empty_of(limited.map(|kind| kind.key))
}

#[cfg(test)]
mod tests {
    use kitbag_policy::DefaultCeiling;

    use super::*;

    #[test]
    fn each_kind_of_the_policy_can_be_configured() {
        let mut configured: Vec<_> = KINDS.iter().map(|kind| kind.key).collect();
        let mut declared: Vec<_> = kitbag_policy::KINDS.iter().map(|kind| kind.key).collect();
        configured.sort_unstable();
        declared.sort_unstable();
        assert_eq!(configured, declared);
    }

    #[test]
    fn kinds_have_the_declared_ceilings() {
        let empty = empty_ceiling();
        for declared in &kitbag_policy::KINDS {
            let kind = KINDS.iter().find(|kind| kind.key == declared.key).unwrap();
            let is_limited = !matches!(declared.ceiling, DefaultCeiling::Unlimited);
            assert_eq!(kind.ceiling.is_some(), is_limited, "{}", kind.key);
            assert_eq!(empty.has(kind.key), is_limited, "{}", kind.key);
        }
    }
}
