//! The imports and requested grants that this host understands, for reading components.

use std::path::Path;

use kitbag_engine::{Inspection, LoadError, ReadComponent, Support};
use kitbag_policy::RequestedGrants;

use crate::component::imports;

pub(crate) const SUPPORT: Support = Support {
    offered: imports::offered,
    check_grants: |grants| RequestedGrants::read(grants).map(drop),
};

/// Reads a component from a file, by whatever links lead to it, and nothing of it runs. It is
/// one that kitbag can run.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read, and for what kitbag cannot run.
pub fn read_component(path: &Path) -> Result<ReadComponent, LoadError> {
    kitbag_engine::read_component(path, &SUPPORT)
}

/// Reads a component from a file, whether kitbag can run it or not.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read or is not a component.
pub fn inspect_file(path: &Path) -> Result<Inspection, LoadError> {
    kitbag_engine::inspect_file(path, &SUPPORT)
}
