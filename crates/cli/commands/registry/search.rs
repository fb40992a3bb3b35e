//! `kitbag search`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag_registry::{Index, IndexEntry, OciReference, ReferenceError, Registry};
use kitbag_state::IndexPins;
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
  kitbag search --index oci://ghcr.io/org/tools:1
  kitbag search --update

The first search of an index in a registry records its digest. If its tag moves, kitbag still searches
the recorded version, until `--update` shows the difference and records the new one.")]
pub(crate) struct Args {
    /// Words that a tool must have in its name, its tags or its description [default: list all]
    words: Vec<String>,
    /// Search this index: a file, or an artifact [default: `index` in `[registry]` of your user
    /// config]
    #[arg(long, value_name = "FILE | oci://REFERENCE")]
    index: Option<String>,
    /// Show how the index differs from its recorded version, and record the new version
    #[arg(long)]
    update: bool,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let configured = kitbag.toolbox().config().registries.index.as_ref();
        let is_named = self.index.is_some();
        let name = self.index.or_else(|| configured.map(|index| index.value.clone()));
        let Some(name) = name else {
            let why = "no index is configured: set `index` in `[registry]` of your user config, or \
                       use `--index`";
            return Err(CliError::Usage(why.to_owned()));
        };
        let index = match name.starts_with("oci://") {
            true => {
                let registries = Registries::new(kitbag)?;
                let state = kitbag.toolbox().config().state.as_ref().map(|state| &*state.value);
                let index = RemoteIndex::new(&registries, state, &name, is_named)?;
                index.read(self.update)?
            }
            false if self.update => {
                let why = "`--update` is for an index in a registry: a file is read as it is";
                return Err(CliError::Usage(why.to_owned()));
            }
            false => local(&name)?,
        };
        if self.update && self.words.is_empty() && !global.json {
            return Ok(Exit::Done);
        }
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
        let rows: Vec<_> = found.iter().take(MOST_LISTED).map(|tool| row(tool, "")).collect();
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

/// An index in an artifact. The digest is recorded when the index is first searched: what a person
/// finds must not change unnoticed.
struct RemoteIndex<'a> {
    registries: &'a Registries<'a>,
    registry: Registry<'a>,
    reference: OciReference,
    /// True if the command line names the index.
    is_named: bool,
    pins: Option<IndexPins>,
}

impl<'a> RemoteIndex<'a> {
    fn new(
        registries: &'a Registries<'a>,
        state: Option<&Path>,
        name: &str,
        is_named: bool,
    ) -> Result<Self, CliError> {
        let reference: OciReference =
            name.parse().map_err(|error: ReferenceError| CliError::Usage(error.to_string()))?;
        let registry = registries.registry(&reference)?;
        Ok(Self { registries, registry, reference, is_named, pins: state.map(IndexPins::new) })
    }

    fn read(&self, is_update: bool) -> Result<Index, CliError> {
        if self.reference.digest.is_some() {
            if is_update {
                let why = "`--update` is for an index with a tag: this one has a digest";
                return Err(CliError::Usage(why.to_owned()));
            }
            return self.index(&self.reference);
        }
        let name = self.reference.to_string();
        let latest = self.registry.pull(&self.reference)?.digest;
        let latest = self.reference.pinned(latest);
        let Some(pins) = &self.pins else {
            return Err(CliError::Usage(format!(
                "the digest of the index `{name}` cannot be recorded without a state directory; if \
                 you trust its content now, write `{latest}`"
            )));
        };
        let recorded = pins.find(&name)?.and_then(|digest| digest.parse().ok());
        let recorded = recorded.map(|digest| self.reference.pinned(digest));
        match recorded {
            None => {
                let index = self.index(&latest)?;
                self.record(pins, &latest)?;
                output::note(&format!("recorded the index `{latest}`"));
                Ok(index)
            }
            Some(recorded) if recorded == latest => {
                if is_update {
                    output::note(&format!("the index matches its record: `{recorded}`"));
                }
                self.index(&recorded)
            }
            Some(recorded) if is_update => {
                let index = self.index(&latest)?;
                output::note(&moved(&recorded, &latest));
                // A registry may have deleted the old version.
                match self.index(&recorded) {
                    Ok(old) => show_difference(&old, &index),
                    Err(error) => output::warn(&format!("the recorded version is gone: {error}")),
                }
                self.record(pins, &latest)?;
                output::note("recorded the new version");
                Ok(index)
            }
            Some(recorded) => {
                let mut command = vec!["kitbag", "search", "--update"];
                if self.is_named {
                    command.extend(["--index", &name]);
                }
                let command = shell::command(command);
                let hint = format!("`{command}` shows the difference and records the new version");
                match self.index(&recorded) {
                    Ok(index) => {
                        let moved = moved(&recorded, &latest);
                        output::warn(&format!(
                            "{moved}; the tools below are of the recorded version"
                        ));
                        output::note(&hint);
                        Ok(index)
                    }
                    Err(error) => Err(CliError::Hinted { error: Box::new(error), hint }),
                }
            }
        }
    }

    /// Reads the index with a digest, whose signature must meet the rules of the user config.
    fn index(&self, pinned: &OciReference) -> Result<Index, CliError> {
        let pulled = self.registry.pull(pinned)?;
        self.registries.signature(&self.reference, &self.registry, &pulled)?;
        Ok(self.registry.index(&pulled)?)
    }

    fn record(&self, pins: &IndexPins, pinned: &OciReference) -> Result<(), CliError> {
        let digest = pinned.digest.map(|digest| digest.to_string()).unwrap_or_default();
        Ok(pins.record(&self.reference.to_string(), &digest)?)
    }
}

fn moved(recorded: &OciReference, latest: &OciReference) -> String {
    let digest = |of: &OciReference| of.digest.map(|it| it.to_string()).unwrap_or_default();
    let (from, to) = (digest(recorded), digest(latest));
    format!("the index `{}` moved: {from} → {to}", OciReference { digest: None, ..latest.clone() })
}

/// Shows the entries that only one version has.
fn show_difference(old: &Index, new: &Index) {
    let only_in = |index: &Index, other: &Index, sign: &str| {
        let entries = index.tools.iter().filter(|entry| !other.tools.contains(entry));
        let entries: Vec<_> = entries.collect();
        let rows = entries.iter().take(MOST_LISTED).map(|entry| row(entry, sign));
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            output::note(&output::aligned(&rows));
        }
        if let more @ 1.. = entries.len().saturating_sub(MOST_LISTED) {
            output::note(&format!("{sign}{more} more"));
        }
    };
    only_in(old, new, "- ");
    only_in(new, old, "+ ");
}

fn row(tool: &IndexEntry, sign: &str) -> Vec<String> {
    let [name, reference, description] = [&tool.name, &tool.reference, &tool.description];
    let name = format!("{sign}{}", shown(name));
    vec![name, shown(reference).to_string(), shown(description).to_string()]
}
