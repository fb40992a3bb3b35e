//! `kitbag search`.

use std::fs::File;
use std::io::Read;

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag_registry::{Index, OciReference, ReferenceError};
use serde_json::json;

use super::Registries;
use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// The most tools that are listed for a person.
const MOST_LISTED: usize = 50;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag search csv
  kitbag search --index ~/tools.json
  kitbag search --index oci://ghcr.io/org/tools:1@sha256:9f86…")]
pub(crate) struct Args {
    /// Words that a tool must have in its name, its tags or its description [default: list all]
    words: Vec<String>,
    /// Search this index: a file, or an artifact with its digest [default: `index` in `[registry]`
    /// of your user config]
    #[arg(long, value_name = "FILE | oci://REFERENCE")]
    index: Option<String>,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let configured = kitbag.toolbox().config().registries.index.as_ref();
        let name = self.index.or_else(|| configured.map(|index| index.value.clone()));
        let Some(name) = name else {
            let why = "no index is configured: set `index` in `[registry]` of your user config, or \
                       use `--index`";
            return Err(CliError::Usage(why.to_owned()));
        };
        let index = match name.starts_with("oci://") {
            true => remote(&Registries::new(kitbag)?, &name)?,
            false => local(&name)?,
        };
        let found = index.find(&self.words);
        if global.json {
            let values = found.iter().map(|tool| {
                json!({
                    "name": tool.name,
                    "reference": tool.reference,
                    "description": tool.description,
                    "tags": tool.tags,
                })
            });
            output::json(&values.collect())?;
            return Ok(Exit::Done);
        }
        let rows = found.iter().take(MOST_LISTED).map(|tool| {
            let [name, reference, description] = [&tool.name, &tool.reference, &tool.description];
            [name, reference, description].map(|text| shown(text).to_string()).to_vec()
        });
        let rows: Vec<_> = rows.collect();
        output::data(&output::aligned(&rows))?;
        match (&found[..], found.len().saturating_sub(MOST_LISTED)) {
            ([], _) => output::note("no tool in the index has these words"),
            ([first, ..], more) => {
                if more > 0 {
                    output::note(&format!("{more} more: add words, or use `--json`"));
                }
                let command = shell::command(["kitbag", "add", &first.reference]);
                output::note(&format!("review and add a tool with `{command}`"));
            }
        }
        Ok(Exit::Done)
    }
}

fn local(path: &str) -> Result<Index, CliError> {
    let unreadable = |source| CliError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(Index::MOST_BYTES.as_u64()).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(Index::parse(path, &bytes)?)
}

/// Reads the index in an artifact. It must have a digest: what a person finds must not change
/// unnoticed.
fn remote(registries: &Registries<'_>, name: &str) -> Result<Index, CliError> {
    let reference: OciReference =
        name.parse().map_err(|error: ReferenceError| CliError::Usage(error.to_string()))?;
    let registry = registries.registry(&reference)?;
    let pulled = registry.pull(&reference)?;
    if reference.digest.is_none() {
        let pinned = reference.pinned(pulled.digest);
        return Err(CliError::Usage(format!(
            "the index `{reference}` has no digest; if you trust its content now, write `{pinned}`"
        )));
    }
    Ok(registry.index(&pulled)?)
}
