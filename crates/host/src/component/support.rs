//! The imports and requested grants that this host supports, for reading components.

use std::path::Path;

use kitbag_engine::{Inspection, LoadError, ReadComponent, Support};
use kitbag_policy::RequestedGrants;

use crate::component::imports;

pub(crate) const SUPPORT: Support = Support {
    offered: imports::offered,
    check_grants: |grants| RequestedGrants::read(grants).map(drop),
};

/// Reads a component from a file, following links, without running any code. The component must be
/// one that kitbag can run.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read, or a component that kitbag cannot run.
pub fn read_component(path: &Path) -> Result<ReadComponent, LoadError> {
    kitbag_engine::read_component(path, &SUPPORT)
}

/// Reads a component from a file, even if kitbag cannot run it.
///
/// # Errors
///
/// [`LoadError`] for a file that cannot be read or is not a component.
pub fn inspect_file(path: &Path) -> Result<Inspection, LoadError> {
    kitbag_engine::inspect_file(path, &SUPPORT)
}
