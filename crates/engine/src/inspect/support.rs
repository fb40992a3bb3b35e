//! The part of a host that decides whether it can run a component.

use serde_json::{Map, Value};

use crate::lane::Lane;

/// The capabilities of a host: the imports that it provides and the requested grants that it knows.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// Describes the capability of an import of a tool in this lane. `None`: it is not provided.
    pub offered: fn(Lane, &str) -> Option<&'static str>,
    /// Checks the form of a tool's requested grants.
    pub check_grants: fn(&Map<String, Value>) -> serde_json::Result<()>,
}

impl Support {
    /// Accepts every import and every requested grant: the host that runs the component checks
    /// them.
    pub const ANY: Self =
        Self { offered: |_, _| Some("provided by the host"), check_grants: |_| Ok(()) };
}
