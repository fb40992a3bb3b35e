//! `kitbag logout`.

use kitbag::servers::sign_in::revoke;
use serde_json::json;

use super::login::{Purpose, Remote, failed, reach, runtime};
use crate::commands::Global;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag logout docs")]
pub(crate) struct Args {
    /// The name of the MCP server
    name: String,
    /// The URL of a server that is not in the configuration
    url: Option<String>,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let Remote { kitbag, name, url, store } =
            Remote::find(global, &self.name, self.url.as_deref(), Purpose::SignOut)?;
        let unusable = |reason| failed(&name, reason);
        let sign_in = match store.status(&url) {
            Some(_) => store.read(&url).map_err(unusable)?,
            None => None,
        };
        let revoked = match &sign_in {
            Some(sign_in) => runtime()?.block_on(revoke(&reach(kitbag, &name), sign_in)),
            None => Ok(false),
        };
        // Deleted in any case, so that kitbag does not use it again.
        let was_there = store.delete(&url).map_err(unusable)?;
        if let Err(error) = &revoked {
            output::warn(&format!("the tokens are deleted, but not revoked: {error}"));
        }
        let is_revoked = *revoked.as_ref().unwrap_or(&false);
        if global.json {
            output::json(&json!({ "server": name, "deleted": was_there, "revoked": is_revoked }))?;
            return Ok(Exit::Done);
        }
        output::data(&match (was_there, is_revoked) {
            (false, _) => format!("There was no sign-in to the server {name}."),
            (true, true) => format!("Revoked and deleted the sign-in to the server {name}."),
            (true, false) => format!(
                "Deleted the sign-in to the server {name}. Its tokens are valid until they expire."
            ),
        })?;
        Ok(Exit::Done)
    }
}
