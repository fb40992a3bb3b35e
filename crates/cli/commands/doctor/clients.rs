//! MCP clients whose files have an entry for kitbag.

use std::path::Path;

use kitbag::Config;
use kitbag::base::shell;
use kitbag::config::Origin;

use super::check::{Check, Status};
use crate::commands::server::mcp_config::configured::{ClientFile, client_files};

pub(super) fn checks(config: Option<&Config>) -> Vec<Check> {
    let root = config.map(|config| &config.root).filter(|root| root.origin != Origin::Default);
    let files = client_files(root.map(|root| &*root.value));
    let mut checks: Vec<_> = files.iter().filter_map(check).collect();
    if checks.is_empty() {
        let text = "none has an entry for kitbag; `kitbag mcp-config CLIENT --write` adds one";
        checks.push(Check::new("clients", Status::Ok, text));
    }
    checks
}

/// Checks the programs that a client starts. `None`: it has no entry for kitbag.
fn check(file: &ClientFile) -> Option<Check> {
    let path = file.path.display();
    let name = format!("client {}", file.client);
    let Some(commands) = &file.commands else {
        let text = format!("{path} cannot be read, or has a mistake; correct it");
        return Some(Check::new(name, Status::Warning, text));
    };
    let broken = commands.iter().find(|command| !exists(command));
    let (status, text) = match (broken, commands.first()) {
        (None, None) => return None,
        (None, Some(command)) => (Status::Ok, format!("{path} starts {command}")),
        (Some(command), _) => {
            let repair = shell::command(["kitbag", "mcp-config", &*file.client, "--write"]);
            let text = format!("{path} starts {command}, which does not exist; run `{repair}`");
            (Status::Error, text)
        }
    };
    Some(Check::new(name, status, text))
}

/// Returns whether a program exists: at its path, or in `PATH`.
fn exists(command: &str) -> bool {
    if command.contains(['/', '\\']) {
        return Path::new(command).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(command).is_file())
}
