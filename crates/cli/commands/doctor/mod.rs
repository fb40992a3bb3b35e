//! `kitbag doctor`: finds what is wrong with an installation.
//!
//! A check is one line, with the way out. Nothing secret is printed: no values, tokens, arguments or
//! lines of files, and the home directory is shown as `~`.

mod check;
#[cfg(feature = "serve")]
mod clients;
mod directories;
mod machine;
#[cfg(feature = "serve")]
mod server;
pub(crate) mod servers;
mod tools;

#[cfg(feature = "serve")]
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kitbag::Places;
use kitbag::base::text::printable;
use serde_json::{Value, json};

use self::check::{Check, Status};
use crate::commands::Global;
#[cfg(feature = "serve")]
use crate::commands::server::serve::listen_address;
use crate::commands::tools::check::Examination;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::version;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit code 0 means that everything works, perhaps with warnings; 4 means that there is an error.

Examples:
  kitbag doctor
  kitbag doctor --server 127.0.0.1:8620")]
pub(crate) struct Args {
    /// Check only that a server answers at this address, such as 127.0.0.1:8620, as the health
    /// check of a container does. It needs no token, and the server does not log it
    #[cfg(feature = "serve")]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    server: Option<SocketAddr>,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        #[cfg(feature = "serve")]
        if let Some(address) = self.server {
            return finish(&[server::check(address)], global);
        }
        let places = Places::from_environment(std::env::vars_os());
        let mut checks = machine::checks();
        checks.extend(directories::checks(&places));
        let examined = Examination::of(global);
        checks.push(tools::configuration(&examined));
        checks.push(tools::cached(&examined, places.cache.as_deref()));
        if let Some(kitbag) = &examined.kitbag {
            let config = kitbag.toolbox().config();
            checks.push(tools::server_memory(config, machine::available_memory()));
            checks.push(tools::trust(config));
            checks.push(tools::secrets(config));
            checks.extend(servers::checks(config));
        }
        checks.push(tools::call());
        checks.push(machine::program());
        #[cfg(feature = "serve")]
        checks.extend(clients::checks(examined.kitbag.as_ref().map(|it| it.toolbox().config())));
        for check in &mut checks {
            check.text = without_home(&check.text, places.home.as_deref());
        }
        finish(&checks, global)
    }
}

fn finish(checks: &[Check], global: &Global) -> Result<Exit, CliError> {
    report(checks, global.json)?;
    Ok(match checks.iter().map(|check| check.status).max() {
        Some(Status::Error) => Exit::Configuration,
        _ => Exit::Done,
    })
}

fn report(checks: &[Check], as_json: bool) -> Result<(), CliError> {
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (errors, warnings) = (count(Status::Error), count(Status::Warning));
    if as_json {
        let check = |check: &Check| json!({ "check": check.name, "status": check.status.as_str(), "text": check.text });
        return output::json(&json!({
            "build": version::json(),
            "checks": checks.iter().map(check).collect::<Value>(),
            "errors": errors,
            "warnings": warnings,
        }));
    }
    let rows: Vec<_> = checks
        .iter()
        .map(|check| {
            // A finding is one line.
            let text = printable(&check.text).to_string().replace('\n', " ");
            vec![check.status.as_str().to_owned(), check.name.clone(), text]
        })
        .collect();
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    output::data(&format!(
        "{}\n{}{}, {}",
        version::line(),
        output::aligned(&rows),
        plural(errors, "error"),
        plural(warnings, "warning")
    ))
}

/// Shows the home directory as `~`, wherever a text names it.
fn without_home(text: &str, home: Option<&Path>) -> String {
    let Some(home) = home.filter(|home| home.parent().is_some()) else { return text.to_owned() };
    let canonical = home.canonicalize().ok();
    let homes = [Some(home.to_owned()), canonical].into_iter().flatten();
    homes.fold(text.to_owned(), |text, home: PathBuf| {
        let home = home.to_string_lossy();
        let mut parts = text.split(&*home);
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_whole =
                !part.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
            shown.push_str(if is_whole { "~" } else { &home });
            shown.push_str(part);
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_is_shown_as_a_tilde() {
        let check = |text: &str, home: &str, expected: &str| {
            assert_eq!(without_home(text, Some(Path::new(home))), expected);
        };
        check("`/home/nobody-here/a` and /home/nobody-here", "/home/nobody-here", "`~/a` and ~");
        check("/home/nobody-here-2/a", "/home/nobody-here", "/home/nobody-here-2/a");
        check("/etc", "/", "/etc");
    }
}
