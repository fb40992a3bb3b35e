//! The tools of a server, from the server itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use kitbag::Kitbag;
use kitbag::config::{LockedServer, check_definitions};
use kitbag::contract::ErrorKind;
use kitbag::policy::server::{ServerAddress, ServerName, ToolDefinition};

use crate::error::{CliError, Finding};

/// Starts a server, or connects to it, and returns the record of its tools.
///
/// # Errors
///
/// The server did not start or did not list its tools, or its definitions exceed the bounds.
pub(super) fn listed(
    kitbag: &Kitbag,
    name: &ServerName,
    origin: &str,
) -> Result<LockedServer, CliError> {
    let mut record = ask(kitbag, name).map_err(|text| failed(name, text))?;
    record.origin = Some(origin.to_owned());
    Ok(record)
}

#[cfg(feature = "servers")]
fn ask(kitbag: &Kitbag, name: &ServerName) -> Result<LockedServer, String> {
    use kitbag::host::Host;

    let toolbox = kitbag.toolbox();
    let target = toolbox.server_target(name);
    let target = target.ok_or_else(|| "its address is not valid".to_owned())?;
    let listing = Host::block_on(|| toolbox.list_server(&target));
    let listing = listing.map_err(|error| error.to_string())?;
    let listing = listing.map_err(|error| error.to_string())?;
    let record = LockedServer {
        name: listing.name,
        version: listing.server_version,
        protocol: Some(listing.version),
        era: Some(listing.era),
        ..LockedServer::default()
    };
    record_of(record, listing.tools)
}

#[cfg(not(feature = "servers"))]
fn ask(_: &Kitbag, _: &ServerName) -> Result<LockedServer, String> {
    let _ = record_of;
    Err("this kitbag was built without MCP servers".to_owned())
}

/// Returns the record with these tools.
fn record_of(record: LockedServer, tools: Vec<ToolDefinition>) -> Result<LockedServer, String> {
    check_definitions(&tools)?;
    let tools: BTreeMap<_, _> =
        tools.into_iter().map(|tool| (tool.name.clone(), Arc::new(tool))).collect();
    Ok(LockedServer { tools, ..record })
}

fn failed(name: &ServerName, text: String) -> CliError {
    let about = format!("server `{name}`");
    let own = format!("the server `{name}` ");
    let text = text.strip_prefix(&own).map(str::to_owned).unwrap_or(text);
    CliError::Faulty(Finding { about, text, kind: ErrorKind::Broken })
}

/// Returns the origin of a record: the command line, or the URL.
pub(super) fn origin(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Process(process) => kitbag::base::shell::command(&process.command),
        ServerAddress::Remote(remote) => remote.url.clone(),
    }
}
