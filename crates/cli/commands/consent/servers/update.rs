//! `kitbag update` of an MCP server: shows the difference of its tools, and records them.

use kitbag::base::shell;
use kitbag::config::{ConfiguredServer, Disabled};
use kitbag::contract::ErrorKind;
use kitbag::policy::server::ServerName;
use serde_json::json;

use super::difference::{Difference, counted};
use super::{listing, other_tools, start};
use crate::commands::consent::add::tool_files::ToolFiles;
use crate::commands::{Global, built};
use crate::console::consent;
use crate::console::output;
use crate::error::{CliError, Finding};
use crate::exit::Exit;

/// The options of `kitbag update` that apply to servers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Record the difference without asking.
    pub(crate) yes: bool,
    /// Show the complete lists.
    pub(crate) all: bool,
}

/// Updates several servers, one after the other. A server that is not recorded does not keep the
/// others from being recorded.
#[cfg(feature = "serve")]
pub(crate) fn update_servers(global: &Global, names: &[ServerName]) -> Result<Exit, CliError> {
    let mut exit = Exit::Done;
    for name in names {
        match update(global, name, Options::default()) {
            Ok(Exit::Done) => {}
            Ok(other) => exit = other,
            Err(error) => {
                output::note(&error.report());
                exit = error.exit();
            }
        }
    }
    Ok(exit)
}

/// Shows the difference between the recorded and the present tools of a server, and records them.
pub(crate) fn update(
    global: &Global,
    name: &ServerName,
    options: Options,
) -> Result<Exit, CliError> {
    // Also reads untrusted settings: the person is asked before the server starts.
    let kitbag = built(global.builder().ask_trust())?;
    let config = kitbag.toolbox().config();
    let server = server(&config.servers, name)?;
    let address = server.address.as_ref().expect("a usable server has an address");
    let place = ToolFiles::new(server.layer, config)?;
    let is_interactive = consent::is_interactive(global.json) && !options.yes;
    if !options.yes && !is_in_effect(global, name)? {
        if !global.json {
            let consent = start::consent(name, &address.value, config);
            consent::show(&consent, options.all, is_interactive)?;
        }
        if !is_interactive {
            return not_asked(global, name, json!({ "server": name, "recorded": false }));
        }
        if !consent::agrees(start::question(&address.value))? {
            return Err(CliError::NotAgreed(format!("the server `{name}` was not started")));
        }
    }
    let new = listing::listed(kitbag, name, &listing::origin(&address.value))?;
    let old = server.recorded.as_ref().map(|recorded| &recorded.server);
    let others = other_tools(config, name);
    let difference = Difference { server, old, new: &new, others: &others };
    if difference.is_empty() {
        match global.json {
            true => output::json(&difference.as_value(true))?,
            false => output::data(&format!("The tools of {name} match their record."))?,
        }
        return Ok(Exit::Done);
    }
    if !global.json {
        consent::show(&difference.consent(), options.all, is_interactive)?;
    }
    if !options.yes {
        if !is_interactive {
            return not_asked(global, name, difference.as_value(false));
        }
        if !consent::agrees("Record these tools, so that models may see them?")? {
            return Err(CliError::NotAgreed(format!("the tools of `{name}` were not recorded")));
        }
    }
    let locked = place.lock()?;
    if locked.recorded.servers.get(name) != old {
        return Err(CliError::Usage(format!(
            "another command recorded `{name}` meanwhile; try again"
        )));
    }
    let value = difference.as_value(true);
    let count = new.tools.len();
    super::write(global, locked, (name, new.clone()), None)?;
    match global.json {
        true => output::json(&value)?,
        false => output::data(&format!(
            "Recorded {} of {name} in {}.",
            counted(count, "tool"),
            place.shown(&place.lock)
        ))?,
    }
    Ok(Exit::Done)
}

/// Returns a server that can be started.
fn server<'a>(
    servers: &'a std::collections::BTreeMap<ServerName, ConfiguredServer>,
    name: &ServerName,
) -> Result<&'a ConfiguredServer, CliError> {
    let server = servers.get(name).ok_or_else(|| {
        let known = servers.keys().map(ServerName::as_str);
        let near = kitbag::base::text::nearest(name.as_str(), known);
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        CliError::Usage(format!("no server is named `{name}`{near}"))
    })?;
    let kind = match &server.disabled {
        Some(Disabled::Broken { .. }) => ErrorKind::Configuration,
        Some(Disabled::Tool { .. } | Disabled::BeyondCeiling { .. }) => ErrorKind::Disabled,
        _ if server.address.is_none() => ErrorKind::Configuration,
        _ => return Ok(server),
    };
    let reason = server.disabled.as_ref().map(ToString::to_string).unwrap_or_default();
    let about = format!("server `{name}`");
    let hint = "nothing was recorded".to_owned();
    let error = CliError::Faulty(Finding { about, text: reason, kind });
    Err(CliError::Hinted { error: Box::new(error), hint })
}

/// Returns whether a call would start the server: its files are trusted, and it has a record.
fn is_in_effect(global: &Global, name: &ServerName) -> Result<bool, CliError> {
    let kitbag = global.builder().single_call().build()?;
    let server = kitbag.toolbox().config().servers.get(name);
    Ok(server.is_some_and(ConfiguredServer::is_enabled))
}

fn not_asked(
    global: &Global,
    name: &ServerName,
    value: serde_json::Value,
) -> Result<Exit, CliError> {
    let error = CliError::NotAgreed(format!(
        "the tools of `{name}` were not recorded, because there is no terminal to ask on; review \
         them, and record them with `{}`",
        shell::command(["kitbag", "update", name.as_str(), "--yes"])
    ));
    if global.json {
        output::json(&value)?;
        output::note(&error.report());
        return Ok(error.exit());
    }
    Err(error)
}
