//! `kitbag describe` of an MCP server: its address, its access, and its recorded tools.

use std::fmt::Write as _;

use kitbag::base::text::{printable, shown};
use kitbag::config::{ConfiguredServer, Origin, ToolSource};
use kitbag::toolbox::consent::{server_items, surroundings};
use kitbag::{Config, Kitbag};
use serde_json::{Value, json};

use crate::commands::doctor::servers::sign_in;
use crate::commands::{Global, LimitArgs, ToolArg};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Describes the server that the argument names. `None`: it names a tool.
pub(super) fn described(tool: &ToolArg, global: &Global) -> Result<Option<Exit>, CliError> {
    if tool.path().is_some() || tool.script().is_some() || tool.own.is_some() {
        return Ok(None);
    }
    let (kitbag, _) = global.builder().single_call().build_faulty();
    let config = kitbag.as_ref().map(Kitbag::toolbox).map(|toolbox| toolbox.config());
    let is_server = config.is_some_and(|config| {
        config.servers.contains_key(&*tool.tool) && !config.tools.contains_key(&*tool.tool)
    });
    if !is_server {
        return Ok(None);
    }
    // Now with its warnings.
    let kitbag = global.kitbag(LimitArgs::default())?;
    let config = kitbag.toolbox().config();
    let Some(server) = config.servers.get(&*tool.tool) else { return Ok(None) };
    match global.json {
        true => output::json(&as_json(server, config))?,
        false => output::data(&as_text(server, config))?,
    }
    Ok(Some(Exit::Done))
}

fn access(server: &ConfiguredServer, config: &Config) -> Vec<String> {
    let Some(address) = &server.address else { return Vec::new() };
    let root = config.root.value.canonicalize().unwrap_or_else(|_| config.root.value.clone());
    let home = Global::home().map(|home| home.canonicalize().unwrap_or(home));
    let around = surroundings(&root, home.as_deref(), &config.network);
    let items = server_items(&server.name, &address.value, &around);
    let start = format!("server `{}` ", server.name);
    items.into_iter().map(|item| item.line.replacen(&start, "", 1)).collect()
}

/// Returns the offered tools: the name for models, the server's name, and the description.
fn tools<'a>(
    server: &'a ConfiguredServer,
    config: &'a Config,
) -> impl Iterator<Item = (&'a str, &'a str, &'a str, Option<String>)> {
    config.tools.values().filter_map(|tool| {
        let ToolSource::Server(of) = &tool.source.value else { return None };
        let own = of.definition.description.as_deref().unwrap_or_default();
        let description = tool.description.as_ref().map_or(own, |text| &text.value);
        let off = tool.disabled.as_ref().map(ToString::to_string);
        (of.server == server.name).then_some((tool.name.as_str(), &*of.tool, description, off))
    })
}

fn as_text(server: &ConfiguredServer, config: &Config) -> String {
    let place = server.address.as_ref().map(|address| format!(", {}", address.origin));
    let mut text = format!("{} (MCP server{})\n", server.name, place.unwrap_or_default());
    let mut section = |title: &str, origin: &Origin, lines: &[String]| {
        if !lines.is_empty() {
            let _ = write!(text, "\n{title} [{origin}]\n");
            for line in lines {
                let _ = writeln!(text, "{}", format!("  {}", printable(line)).trim_end());
            }
        }
    };
    let origin = server.address.as_ref().map(|address| address.origin.clone());
    section("Access", &origin.unwrap_or_default(), &access(server, config));
    let sign_in = server.address.as_ref().and_then(|address| sign_in(config, &address.value));
    section("Sign-in", &Origin::Default, &sign_in.map(|it| it.1).into_iter().collect::<Vec<_>>());
    if let Some(recorded) = &server.recorded {
        let record = &recorded.server;
        let name = record.name.as_deref().unwrap_or("a server without a name");
        let version = record.version.as_deref().map(|version| format!(" {version}"));
        let protocol = record.protocol.as_deref().map(|it| format!(", protocol {it}"));
        let line = format!(
            "{name}{}{}, {} tools",
            version.unwrap_or_default(),
            protocol.unwrap_or_default(),
            record.tools.len()
        );
        section("Record", &recorded.place, &[line]);
        let lines = tools(server, config).map(|(name, _, description, off)| {
            let line = description.lines().find(|line| !line.trim().is_empty());
            let off = off.map(|off| format!(" ({off})")).unwrap_or_default();
            format!("{name}: {}{off}", line.unwrap_or_default().trim())
        });
        section("Tools", &recorded.place, &lines.collect::<Vec<_>>());
    }
    let warnings: Vec<_> = server.warnings.iter().map(|warning| warning.line()).collect();
    section("Warnings", &Origin::Default, &warnings);
    if let Some(reason) = &server.disabled {
        let _ = write!(text, "\nThe server is {}\n", printable(&reason.to_string()));
    }
    text
}

fn as_json(server: &ConfiguredServer, config: &Config) -> Value {
    let tool = |(name, own, description, off): (&str, &str, &str, Option<String>)| json!({ "name": name, "tool": own, "description": description, "disabled": off });
    let record = server.recorded.as_ref().map(|recorded| &recorded.server);
    json!({
        "name": server.name,
        "disabled": server.disabled.as_ref().map(ToString::to_string),
        "access": access(server, config),
        "signIn": server.address.as_ref().and_then(|it| sign_in(config, &it.value)).map(|it| it.1),
        "hasAllRights": server.address.as_ref().map(|it| it.value.has_all_rights()),
        "server": record.and_then(|record| record.name.as_deref()),
        "version": record.and_then(|record| record.version.as_deref()),
        "protocol": record.and_then(|record| record.protocol.as_deref()),
        "tools": tools(server, config).map(tool).collect::<Vec<_>>(),
        "warnings": server.warnings.iter().map(|it| shown(&it.line()).to_string()).collect::<Vec<_>>(),
    })
}
