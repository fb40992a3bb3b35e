//! Configuration values that a tool reads.

use kitbag_policy::{ConfigValueError, ConfigValues};

use crate::config::ConfiguredGrants;
use crate::format::spanned::{At, Table, merge};
use crate::resolve::resolver::Resolver;

impl Resolver<'_> {
    /// The configuration values of a tool: those of every layer, of which a stronger one
    /// replaces single values.
    pub(super) fn config_values(
        &mut self,
        layers: &[At<'_, Table<String>>],
        grants: &mut ConfiguredGrants,
    ) {
        let Some(strongest) = layers.last() else { return };
        let mut values = ConfigValues::default();
        for parts in merge(layers.iter().map(|at| (at.file, at.value))) {
            for part in parts {
                if let Err(error) = values.set(part.key.value, part.at.value) {
                    match error {
                        ConfigValueError::Value { .. } => self.report.at(part.at, error),
                        _ => self.report.at(part.key, error),
                    }
                }
            }
        }
        grants.set(|grants| &mut grants.config, strongest.sourced(values));
    }
}
