//! Configuration values that a tool reads.

use kitbag_policy::{ConfigValueError, ConfigValues};

use super::kind::{ConfigKind, Merge};
use crate::format::span::merge;
use crate::report::Report;

pub(super) const KIND: ConfigKind =
    ConfigKind { key: ConfigValues::KEY, merge: granted, ceiling: None, call: None };

/// Returns the configuration values of all layers, merged by key. A stronger layer replaces single
/// values.
fn granted(merging: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merging.layers(|grants| grants.config.as_ref());
    let Some(strongest) = layers.last() else { return };
    let mut values = ConfigValues::default();
    for part in merge(layers.iter().map(|at| (at.file, at.value))).into_iter().flatten() {
        match values.set(part.key.value, part.at.value) {
            Ok(()) => {}
            Err(error @ ConfigValueError::Value { .. }) => report.at(part.at, error),
            Err(error) => report.at(part.key, error),
        }
    }
    merging.grants.set(|grants| &mut grants.config, strongest.sourced(values));
}
