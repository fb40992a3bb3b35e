//! The part of a host that decides whether it can run a component.

use serde_json::{Map, Value};

/// Knowledge of a host: the imports that it offers and the requested grants that it understands.
#[derive(Clone, Copy, Debug)]
pub struct Support {
    /// What an import gives a tool. `None`: it is not offered.
    pub offered: fn(&str) -> Option<&'static str>,
    /// Checks the form of the grants that a tool requests.
    pub check_grants: fn(&Map<String, Value>) -> serde_json::Result<()>,
}

impl Support {
    /// Every import and every requested grant: the host that runs the component checks them.
    pub const ANY: Self =
        Self { offered: |_| Some("offered by the host"), check_grants: |_| Ok(()) };
}
