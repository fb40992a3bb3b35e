//! Consent to the start of a server: the command line first, then its access.

use kitbag::Config;
use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::policy::server::{ServerAddress, ServerName};
use kitbag::toolbox::consent::{Attachment, Consent, RequestItem, server_items, surroundings};

use crate::commands::Global;

/// The most characters of a command line on a screen.
const CHARACTERS: usize = 1000;

/// Returns the request for consent to start a server, or to connect to it.
pub(super) fn consent(name: &ServerName, address: &ServerAddress, config: &Config) -> Consent {
    let (heading, title, line) = match address {
        ServerAddress::Process(process) => {
            let heading = match &process.confine {
                None => format!("server `{name}` runs with all of your rights:"),
                Some(_) => format!("server `{name}` runs confined:"),
            };
            (heading, "Command:", shell::command(&process.command))
        }
        ServerAddress::Remote(remote) => {
            let heading = format!("server `{name}` is a remote server:");
            (heading, "URL:", shown(&remote.url).to_string())
        }
    };
    Consent {
        heading,
        parts: vec![Attachment {
            short: vec![cut(&line)],
            full: vec![line],
            ..Attachment::ours(title, Vec::new())
        }],
        items: items(name, address, config),
        more: "`--all` shows them".to_owned(),
    }
}

/// Returns the requests of a server.
pub(super) fn items(
    name: &ServerName,
    address: &ServerAddress,
    config: &Config,
) -> Vec<RequestItem> {
    let root = config.root.value.canonicalize().unwrap_or_else(|_| config.root.value.clone());
    let home = Global::home().map(|home| home.canonicalize().unwrap_or(home));
    server_items(name, address, &surroundings(&root, home.as_deref(), &config.network))
}

/// Cuts a long line, and counts the rest.
fn cut(line: &str) -> String {
    match line.char_indices().nth(CHARACTERS) {
        None => line.to_owned(),
        Some((at, _)) => {
            let more = line[at..].chars().count();
            format!("{}… ({more} more characters; `--all` shows them)", &line[..at])
        }
    }
}

/// Returns the question before a server starts.
pub(super) fn question(address: &ServerAddress) -> &'static str {
    match address {
        ServerAddress::Process(_) => "Start it to see its tools?",
        ServerAddress::Remote(_) => "Connect to it to see its tools?",
    }
}
