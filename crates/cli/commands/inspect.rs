//! `kitbag inspect`.

use std::fmt::Write as _;
use std::path::PathBuf;

use kitbag::contract::ByteSize;
use kitbag::contract::text::printable;
use kitbag::host::{Inspection, inspect_file};
use serde_json::json;

use crate::commands::Global;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag inspect .kitbag/tools/word_count.wasm")]
pub(crate) struct Args {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let inspection = inspect_file(&self.file).map_err(CliError::Component)?;
        let verdict = inspection.verdict();
        match global.json {
            true => {
                let mut object = json!(inspection);
                object["runs"] = verdict.is_ok().into();
                object["problem"] = verdict.as_ref().err().map(ToString::to_string).into();
                output::json(&object)?;
            }
            false => output::data(&as_text(&inspection))?,
        }
        match verdict {
            Ok(()) => Ok(Exit::Done),
            Err(problem) => {
                let problem = format!("error: `{}`: {problem}", self.file.display());
                output::note(&printable(&problem).to_string());
                Ok(Exit::Trap)
            }
        }
    }
}

fn as_text(inspection: &Inspection) -> String {
    let mut text = format!("Size: {}\n", ByteSize::bytes(inspection.size));
    if let Some(contract) = &inspection.contract {
        let _ = writeln!(text, "Types: {contract}");
    }
    text.push_str("\nExports\n");
    for export in &inspection.exports {
        let _ = writeln!(text, "  {}: {}", export.name, export.ty);
    }
    text.push_str("\nImports, and what each would give it\n");
    if inspection.imports.is_empty() {
        text.push_str("  nothing\n");
    }
    // A bare name is a type that the world uses; its interface stands there too.
    for import in inspection.imports.iter().filter(|import| import.name.contains(':')) {
        let _ = writeln!(text, "  {}: {}", import.name, import.offered.unwrap_or("NOT OFFERED"));
    }
    printable(&text).to_string()
}
