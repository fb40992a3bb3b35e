//! The requests of an edited server beyond those of the trusted server with its name.

use kitbag_base::text::shown;
use kitbag_policy::server::{
    Confinement, ServerAddress, ServerName, ServerProcess, ToolDefinition,
};

use super::{TrustChange, TrustChanges, TrustSubject};
use crate::config::{ConfiguredServer, ServerTool, address_words};

pub(super) fn between(
    name: &ServerName,
    now: Option<&ConfiguredServer>,
    then: Option<&ConfiguredServer>,
    changes: &mut TrustChanges,
) {
    let change = |text: String| {
        let subject = TrustSubject::Server(name.clone());
        TrustChange { subject, text }
    };
    let is_on = |server: &&ConfiguredServer| server.enable.value;
    let address = |server: Option<&ConfiguredServer>| {
        // All fields are listed, so that a new field needs a decision.
        let ConfiguredServer {
            name: _,
            layer: _,
            address,
            // It follows from the address and the user config.
            secret: _,
            // The server is on.
            enable: _,
            disabled: _,
            // The effects are visible in its tools.
            tools: _,
            prefix: _,
            approve: _,
            recorded: _,
            // Text and a time, which allow nothing.
            idle: _,
            warnings: _,
        } = server?;
        address.as_ref().map(|address| std::sync::Arc::clone(&address.value))
    };
    match (address(now.filter(is_on)), address(then.filter(is_on))) {
        (None, None) => {}
        (None, Some(_)) => changes.removed.push(change("it is off or was removed".to_owned())),
        (Some(now), None) => {
            let words = address_words(&now);
            match address(then) {
                Some(_) => {
                    let text = format!("it was off, is now on, and {words}");
                    changes.loosened.push(change(text));
                }
                None => changes.added.push(change(format!("it is new and {words}"))),
            }
        }
        (Some(now), Some(then)) if now == then => {}
        (Some(now), Some(then)) if is_within(&now, &then) => {
            changes.removed.push(change("some access of its process".to_owned()));
        }
        (Some(now), Some(then)) => {
            changes.added.push(change(format!("it {}", address_words(&now))));
            of_environment(&now, &then, |text| changes.added.push(change(text)));
        }
    }
}

/// Returns whether an address is the same with less access.
fn is_within(now: &ServerAddress, then: &ServerAddress) -> bool {
    let (ServerAddress::Process(now), ServerAddress::Process(then)) = (now, then) else {
        return false;
    };
    let ServerProcess { command, directory, environment, confine } = now;
    let is_confined = match (confine, &then.confine) {
        (Some(now), Some(then)) => is_narrower(now, then),
        (Some(_), None) => true,
        (None, None) => true,
        (None, Some(_)) => false,
    };
    *command == then.command
        && *directory == then.directory
        && environment.iter().all(|variable| then.environment.contains(variable))
        // A variable that is gone could have restricted the process.
        && environment.len() == then.environment.len()
        && is_confined
}

fn is_narrower(now: &Confinement, then: &Confinement) -> bool {
    let Confinement { read, write, network, memory, processes } = now;
    let is_in = |path: &std::path::PathBuf, paths: &[std::path::PathBuf]| {
        paths.iter().any(|trusted| path.starts_with(trusted))
    };
    let is_less = |now: Option<u64>, then: Option<u64>| match (now, then) {
        (Some(now), Some(then)) => now <= then,
        (_, None) => true,
        (None, Some(_)) => false,
    };
    let bytes = |size: &Option<kitbag_base::ByteSize>| size.as_ref().map(|size| size.as_u64());
    read.iter().all(|path| is_in(path, &then.read) || is_in(path, &then.write))
        && write.iter().all(|path| is_in(path, &then.write))
        && *network <= then.network
        && is_less(bytes(memory), bytes(&then.memory))
        && is_less(processes.map(u64::from), then.processes.map(u64::from))
}

/// Describes the variables that were not trusted.
fn of_environment(now: &ServerAddress, then: &ServerAddress, mut add: impl FnMut(String)) {
    let (ServerAddress::Process(now), ServerAddress::Process(then)) = (now, then) else { return };
    for variable in now.environment.iter().filter(|it| !then.environment.contains(it)) {
        add(format!("its variable `{}` is new or has another value", variable.name));
    }
}

/// Compares two tools of servers.
pub(super) fn of_tool(now: &ServerTool, then: &ServerTool, added: &mut Vec<String>) {
    let ServerTool {
        server,
        tool,
        // It is a change of the server.
        address: _,
        // It changes no text.
        era: _,
        layer: _,
        definition,
    } = now;
    if *server != then.server || *tool != then.tool {
        added.push(format!("it is `{}` of the server `{server}`", shown(tool)));
    }
    let ToolDefinition { name: _, title, description, input_schema, output_schema, annotations } =
        &**definition;
    let then = &*then.definition;
    let parts = [
        ("title", *title == then.title),
        ("description", *description == then.description),
        ("input schema", *input_schema == then.input_schema),
        ("output schema", *output_schema == then.output_schema),
        ("hints", *annotations == then.annotations),
    ];
    let changed = parts.into_iter().filter(|(_, is_same)| !is_same);
    added.extend(changed.map(|(part, _)| format!("its recorded {part} changed")));
}
