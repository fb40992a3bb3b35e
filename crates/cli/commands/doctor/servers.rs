//! MCP servers: whether each program exists, and whether its confinement can be enforced.

use std::env;
use std::path::PathBuf;

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::config::{ConfiguredServer, Disabled};
use kitbag::policy::server::{ServerAddress, ServerProcess};

use super::check::{Check, Status};

/// Returns a check for each server that is not switched off.
pub(super) fn checks(config: &Config) -> Vec<Check> {
    let servers = config.servers.values();
    let servers = servers.filter(|server| !matches!(server.disabled, Some(Disabled::Tool { .. })));
    servers.map(|server| check(config, server)).collect()
}

fn check(config: &Config, server: &ConfiguredServer) -> Check {
    let (status, text) = found(config, server);
    Check::new(format!("server {}", server.name), status, text)
}

fn found(config: &Config, server: &ConfiguredServer) -> (Status, String) {
    if let Some(Disabled::Broken { .. }) = &server.disabled {
        let text = "its table or its record has a mistake; `kitbag check` shows it";
        return (Status::Error, text.to_owned());
    }
    let Some(address) = &server.address else {
        return (Status::Warning, off(server).unwrap_or_default());
    };
    if let ServerAddress::Process(process) = &*address.value {
        if let Err(problem) = program(process) {
            return (Status::Error, problem);
        }
        if process.confine.is_some()
            && let Err(reason) = confinement()
        {
            return (Status::Error, format!("it cannot be confined on this system: {reason}"));
        }
    }
    match (off(server), server.warnings.len()) {
        (Some(off), _) => (Status::Warning, off),
        (None, 0) => access(config, &address.value),
        (None, _) => (Status::Warning, "it has warnings; `kitbag check` shows them".to_owned()),
    }
}

fn off(server: &ConfiguredServer) -> Option<String> {
    server.disabled.as_ref().map(ToString::to_string)
}

/// Returns the rights of a process, or the state of the sign-in to a remote server.
fn access(config: &Config, address: &ServerAddress) -> (Status, String) {
    match sign_in(config, address) {
        None => (Status::Ok, rights(address)),
        Some((true, words)) => (Status::Warning, format!("remote; {words}; use `kitbag login`")),
        Some((false, words)) => (Status::Ok, format!("remote; {words}")),
    }
}

/// Returns whether the sign-in to a server is over, and its state in words.
#[cfg(feature = "servers")]
pub(crate) fn sign_in(config: &Config, address: &ServerAddress) -> Option<(bool, String)> {
    let ServerAddress::Remote(remote) = address else { return None };
    let status = kitbag::sign_in_store(config)?.status(&remote.url)?;
    Some((status.is_over(), format!("{} at {}", status.words(), shown(&status.issuer))))
}

#[cfg(not(feature = "servers"))]
pub(crate) fn sign_in(_: &Config, _: &ServerAddress) -> Option<(bool, String)> {
    None
}

/// Returns that a person has to sign in to a server again, with the command. `None`: the sign-in is
/// valid, or it is not known that the server requires one.
pub(crate) fn required_sign_in(config: &Config, server: &ConfiguredServer) -> Option<String> {
    let (is_over, _) = sign_in(config, &server.address.as_ref()?.value)?;
    let command = shell::command(["kitbag", "login", server.name.as_str()]);
    is_over.then(|| format!("the sign-in expired; sign in with `{command}`"))
}

fn rights(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Remote(_) => "remote; not connected".to_owned(),
        ServerAddress::Process(process) => match process.confine {
            Some(_) => "its program exists, and can be confined".to_owned(),
            None => "its program exists; it runs with all of your rights".to_owned(),
        },
    }
}

/// Finds the program of a server, as its start does.
fn program(process: &ServerProcess) -> Result<PathBuf, String> {
    let word = process.command.first().map(String::as_str).unwrap_or_default();
    if word.contains('/') {
        let path = process.directory.join(word);
        return match path.is_file() {
            true => Ok(path),
            false => Err(format!("`{}` is not a program", shown(word))),
        };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).map(|directory| directory.join(word));
    places.find(|path| path.is_file()).ok_or_else(|| {
        format!("the program `{}` is not in `PATH`; install it, or write its path", shown(word))
    })
}

#[cfg(feature = "servers")]
fn confinement() -> Result<(), String> {
    kitbag::servers::process::support().confinement()
}

#[cfg(not(feature = "servers"))]
fn confinement() -> Result<(), String> {
    Err("this kitbag was built without MCP servers".to_owned())
}
