//! `kitbag trust`.

pub(crate) mod show;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kitbag::base::text::shown;
use kitbag::config::TrustChange;
use kitbag::trust::TrustRecord;
use kitbag::{Caller, TrustQuestion};
use serde_json::{Value, json};

use crate::commands::{Global, built, nowhere};
use crate::console::consent;
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag trust
  kitbag trust --all
  kitbag trust --yes
  kitbag trust --list
  kitbag trust --revoke ~/src/project")]
pub(crate) struct Args {
    /// Trust the shown content without asking
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    yes: bool,
    /// Show all requests and the content of all files before the summary, in your pager
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    all: bool,
    /// List the trusted workspaces
    #[arg(long, conflicts_with = "revoke")]
    list: bool,
    /// Revoke the trust in this workspace [default: the current workspace]
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    revoke: Option<Option<PathBuf>>,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let as_json = global.json;
        if self.list {
            return list(&nowhere(&global)?.trusted_workspaces()?, as_json);
        }
        if let Some(directory) = self.revoke {
            return revoke(global, directory);
        }
        let kitbag = built(global.builder().ask_trust())?;
        let question = kitbag.trust_question()?;
        if !question.is_news() {
            return match as_json {
                true => output::json(&as_value(&question, true)),
                false => output::data(&format!(
                    "`{}` is already trusted",
                    shown(&question.record.workspace)
                )),
            }
            .map(|()| Exit::Done);
        }
        let is_interactive = consent::is_interactive(as_json) && !self.yes;
        if !as_json {
            consent::show(&show::consent(&question), self.all, is_interactive)?;
        }
        let is_given = self.yes || is_interactive && consent::agrees("Trust this?")?;
        let given = match is_given {
            true => question.give(&Caller::this_user()).map_err(CliError::from),
            false => Err(CliError::NotTrusted(match is_interactive {
                true => "nothing was trusted",
                false => {
                    "nothing was trusted, because there is no terminal to ask on; review the \
                     requests, and trust them with `kitbag trust --yes`"
                }
            })),
        };
        match (given, as_json) {
            (Err(error), true) => {
                output::json(&as_value(&question, false))?;
                output::note(&error.report());
                Ok(error.exit())
            }
            (Err(error), false) => Err(error),
            (Ok(()), true) => output::json(&as_value(&question, true)).map(|()| Exit::Done),
            (Ok(()), false) => {
                let workspace = shown(&question.record.workspace);
                output::data(&format!("`{workspace}` is trusted, with these requests"))?;
                Ok(Exit::Done)
            }
        }
    }
}

fn as_value(question: &TrustQuestion<'_>, is_trusted: bool) -> Value {
    let lines =
        |changes: &[TrustChange]| changes.iter().map(ToString::to_string).collect::<Vec<_>>();
    let changes = question.changes.as_ref().map(|changes| {
        json!({
            "added": lines(&changes.added),
            "removed": lines(&changes.removed),
            "loosened": lines(&changes.loosened),
        })
    });
    json!({
        "workspace": question.record.workspace,
        "trusted": is_trusted,
        "digest": question.record.digest(),
        "asks": question.shown.asks,
        "changes": changes,
        "files": question.record.files,
        "components": question.record.components,
        "places": question.record.places,
    })
}

fn list(records: &[TrustRecord], as_json: bool) -> Result<Exit, CliError> {
    if as_json {
        let values = records.iter().map(|record| {
            let seconds = record.time().duration_since(SystemTime::UNIX_EPOCH);
            json!({
                "workspace": record.workspace,
                "digest": record.digest(),
                "seconds": seconds.unwrap_or_default().as_secs(),
            })
        });
        output::json(&values.collect())?;
        return Ok(Exit::Done);
    }
    let lines = records.iter().map(|record| {
        let files = match record.files.len() + record.components.len() {
            1 => "1 file".to_owned(),
            files => format!("{files} files"),
        };
        let digest = record.digest().to_string();
        format!("{}  {files}, content {}\n", shown(&record.workspace), &digest[..12])
    });
    let text: String = lines.collect();
    output::data(if text.is_empty() { "there are no trust records" } else { &text })?;
    Ok(Exit::Done)
}

fn revoke(global: Global, directory: Option<PathBuf>) -> Result<Exit, CliError> {
    let as_json = global.json;
    let path = match directory {
        Some(directory) => real(&directory),
        None => global.builder().find_workspace()?,
    };
    let kitbag = nowhere(&global)?;
    let was_trusted = kitbag.revoke_trust(&path, &Caller::this_user())?;
    let name = path.to_string_lossy().into_owned();
    match (as_json, was_trusted) {
        (true, _) => output::json(&json!({ "workspace": name, "revoked": was_trusted }))?,
        (false, true) => output::data(&format!("`{}` is no longer trusted", shown(&name)))?,
        (false, false) => {
            let text = format!(
                "`{}` has no trust record; `kitbag trust --list` lists the records",
                shown(&name)
            );
            return Err(CliError::Usage(text));
        }
    }
    Ok(Exit::Done)
}

/// Resolves links in a path. A removed workspace had none.
fn real(directory: &Path) -> PathBuf {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    absolute.canonicalize().unwrap_or(absolute)
}
