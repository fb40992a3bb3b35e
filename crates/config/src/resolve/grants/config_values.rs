//! Configuration values that a tool reads.

use kitbag_policy::{ConfigValueError, ConfigValues};

use crate::config::ConfiguredGrants;
use crate::format::spanned::{At, Table, merge};
use crate::report::Report;

/// Returns the configuration values of all layers, merged by key. A stronger layer replaces single
/// values.
pub(super) fn granted(
    layers: &[At<'_, Table<String>>],
    grants: &mut ConfiguredGrants,
    report: &mut Report,
) {
    let Some(strongest) = layers.last() else { return };
    let mut values = ConfigValues::default();
    for part in merge(layers.iter().map(|at| (at.file, at.value))).into_iter().flatten() {
        match values.set(part.key.value, part.at.value) {
            Ok(()) => {}
            Err(error @ ConfigValueError::Value { .. }) => report.at(part.at, error),
            Err(error) => report.at(part.key, error),
        }
    }
    grants.set(|grants| &mut grants.config, strongest.sourced(values));
}
