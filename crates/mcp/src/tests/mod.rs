//! Tests of the server in this process: a client writes lines to one pipe and reads from another.
//! All tools are native, so that no component is compiled and no program is started.

mod client;
mod discovery;
mod end;
mod messages;
mod native_tools;
mod notifications;
mod questions;
mod requests;
mod results;
mod servers;

use std::sync::Arc;

use kitbag_config::{Sources, load};
use kitbag_host::{Host, HostOptions};
use kitbag_secrets::Secrets;
use kitbag_toolbox::Toolbox;

use self::client::Client;
use self::native_tools::{NoSecrets, Probe};
use crate::Server;

/// Creates a server with the tool `probe`.
fn server(options: HostOptions) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let start = directory.path().to_owned();
    let config = load(&Sources { start, ..Sources::default() }).unwrap();
    let secrets = Arc::new(Secrets::new(NoSecrets, Vec::new()));
    let toolbox = Toolbox::new(Host::new(options), config, &[], secrets, None);
    let toolbox = toolbox.with_tool(Arc::new(Probe)).unwrap();
    let reload = toolbox.clone();
    Server::new(toolbox, Box::new(move || Ok(reload.clone())), None).unwrap()
}

/// Creates a client that has not sent any message.
fn start() -> Client {
    Client::start(server(HostOptions::default()))
}

/// Creates a client of each era with these capabilities.
fn both_eras(capabilities: serde_json::Value) -> [Client; 2] {
    [start().after_handshake(capabilities.clone()), start().stateless(capabilities)]
}
