//! The connections to MCP servers.

use std::sync::Arc;

use kitbag_config::Config;
use kitbag_host::Host;
use kitbag_servers::{Processes, Servers, ServersOptions};

use crate::places::Places;

/// Creates the connections of a configuration. Nothing is started.
pub(crate) fn servers(places: &Places, config: &Config, host: &Host) -> Servers {
    let root = &config.root.value;
    let state = config.state.iter().map(|state| state.value.clone());
    let variables = places.variables.iter();
    let processes = Processes {
        environment: variables.map(|(name, value)| (name.clone(), value.clone())).collect(),
        temporary: std::env::temp_dir(),
        hidden: places.own().into_iter().chain(state).collect(),
        fixed: vec![root.join(".kitbag"), root.join("kitbag.lock")],
    };
    let http = host.client().clone();
    let sign_ins = crate::sign_in_store::sign_in_store(config);
    Servers::new(ServersOptions { connect: Some(Arc::new(processes)), http, sign_ins })
}
