//! `kitbag inspect` of an MCP server: the recorded definitions of its tools.

use std::fmt::Write as _;
use std::path::Path;

use kitbag::Kitbag;
use kitbag::base::text::{printable, shown};
use kitbag::config::{ConfiguredServer, address_words};
use serde_json::{Value, json};

use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows the server that the argument names. `None`: it is a path. Starts nothing.
pub(super) fn inspected(name: &Path, global: &Global) -> Result<Option<Exit>, CliError> {
    let Some(name) = name.to_str().filter(|name| !name.contains(['/', '.'])) else {
        return Ok(None);
    };
    let (kitbag, _) = global.builder().single_call().build_faulty();
    let has = |kitbag: &Kitbag| kitbag.toolbox().config().servers.contains_key(name);
    if Path::new(name).exists() || !kitbag.as_ref().is_some_and(has) {
        return Ok(None);
    }
    let kitbag = global.kitbag(LimitArgs::default())?;
    let Some(server) = kitbag.toolbox().config().servers.get(name) else { return Ok(None) };
    match global.json {
        true => output::json(&as_json(server))?,
        false => output::data(&as_text(server))?,
    }
    Ok(Some(Exit::Done))
}

fn as_text(server: &ConfiguredServer) -> String {
    let address = server.address.as_ref().map(|address| address_words(&address.value));
    let address = address.map(|words| format!("; {words}")).unwrap_or_default();
    let mut text = format!("Kind: MCP server{address}\n");
    match &server.recorded {
        None => {
            let reason = server.disabled.as_ref().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "Tools: {reason}");
        }
        Some(recorded) => {
            let _ = writeln!(text, "\nTools, as recorded ({})", recorded.place);
            for tool in recorded.server.tools.values() {
                let _ = writeln!(text, "  {}", shown(&tool.name));
                let mut line = |label: &str, value: &str| {
                    let lines: Vec<_> = value.lines().collect();
                    let _ = writeln!(text, "    {label}: {}", lines.join("\n      "));
                };
                for (label, value) in [("title", &tool.title), ("description", &tool.description)] {
                    if let Some(value) = value {
                        line(label, value);
                    }
                }
                line("input", &tool.input_schema.to_string());
                let others = [("output", &tool.output_schema), ("hints", &tool.annotations)];
                for (label, value) in others {
                    if let Some(value) = value {
                        line(label, &value.to_string());
                    }
                }
            }
        }
    }
    printable(&text).to_string()
}

fn as_json(server: &ConfiguredServer) -> Value {
    let record = server.recorded.as_ref().map(|recorded| &recorded.server);
    json!({
        "name": server.name,
        "lane": "server",
        "address": server.address.as_ref().map(|address| address_words(&address.value)),
        "disabled": server.disabled.as_ref().map(ToString::to_string),
        "tools": record.map(|record| record.tools.values().collect::<Vec<_>>()),
    })
}
