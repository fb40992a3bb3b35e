//! A kind of grants, and the grants of a tool while they are merged.

use kitbag_policy::{SecretName, VariableName};

use super::beyond::{Entries, Grantee};
use super::call_form::CallForm;
use crate::config::ConfiguredGrants;
use crate::format::span::{At, Written};
use crate::format::{CeilingGrantsConfig, GrantsConfig};
use crate::report::Report;
use crate::resolve::context::Context;

/// A kind of grants in a configuration.
pub(super) struct ConfigKind {
    pub(super) key: &'static str,
    /// Merges the layers of a tool.
    pub(super) merge: fn(&mut Merge<'_, '_>, &mut Report),
    /// Reads the ceiling of the user config. `None`: the kind has no ceiling.
    pub(super) ceiling: Option<fn(At<'_, CeilingGrantsConfig>, &mut ConfiguredGrants, &mut Report)>,
    /// The form of a grant for one call. `None`: only a file can grant this kind.
    pub(super) call: Option<CallForm>,
}

/// The grants of a tool while they are merged.
pub(super) struct Merge<'a, 'g> {
    pub(super) context: &'a Context<'a>,
    pub(super) grantee: Grantee<'a>,
    /// The layers, the weakest first.
    pub(super) layers: &'a [At<'a, GrantsConfig>],
    /// The variables that hold the placeholder of a secret.
    pub(super) placeholders: Vec<(At<'a, String>, Placeholder)>,
    pub(super) grants: &'g mut ConfiguredGrants,
}

/// A variable that holds the placeholder of a secret.
#[derive(Clone, Debug)]
pub(super) struct Placeholder {
    pub(super) variable: VariableName,
    pub(super) secret: SecretName,
    /// `true` if the user config also grants the variable to the tool.
    pub(super) is_own: bool,
}

impl<'a> Merge<'a, '_> {
    /// Returns the layers that have the kind.
    pub(super) fn layers<T>(
        &self,
        kind: impl Fn(&'a GrantsConfig) -> Option<&'a Written<T>>,
    ) -> Vec<At<'a, T>> {
        of_kind(self.layers, kind)
    }

    pub(super) fn entries(&mut self, key: &'static str) -> Entries<'a, '_> {
        Entries::new(self.context, self.grantee, key, self.grants)
    }
}

pub(super) fn of_kind<'a, T>(
    layers: &[At<'a, GrantsConfig>],
    kind: impl Fn(&'a GrantsConfig) -> Option<&'a Written<T>>,
) -> Vec<At<'a, T>> {
    layers.iter().filter_map(|grants| grants.inner(&kind)).collect()
}
