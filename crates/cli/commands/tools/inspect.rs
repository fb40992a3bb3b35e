//! `kitbag inspect`.

mod server;

use std::fmt::Write as _;
use std::path::PathBuf;

use kitbag::base::ByteSize;
use kitbag::base::text::{printable, shown};
use kitbag::host::{
    ACT_MANIFEST, DescribeResult, Import, Inspection, SOCKETS_ADVICE, inspect_file,
};
use kitbag::policy::RequestedGrants;
use serde_json::{Value, json};

use crate::commands::Global;
use crate::commands::consent::add::manifests::{Manifest, Note};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::labels::labelled;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag inspect .kitbag/tools/word_count.wasm
  kitbag inspect db")]
pub(crate) struct Args {
    /// The component, or the name of an MCP server, whose recorded definitions are shown
    #[arg(value_name = "FILE.wasm | NAME")]
    file: PathBuf,
}

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        if let Some(inspected) = server::inspected(&self.file, global)? {
            return Ok(inspected);
        }
        let inspection = inspect_file(&self.file).map_err(CliError::Component)?;
        let verdict = inspection.verdict();
        let manifest = inspection.act_manifest.as_deref().map(Manifest::of_act_section);
        match global.json {
            true => {
                let mut object = json!(inspection);
                object["usesSockets"] = inspection.uses_sockets().into();
                object["runs"] = verdict.is_ok().into();
                object["problem"] = verdict.as_ref().err().map(ToString::to_string).into();
                let section = inspection.section.as_ref();
                object["describedBy"] = match (section, inspection.describes()) {
                    (Some(_), _) => "section".into(),
                    (None, true) => "describe".into(),
                    (None, false) => Value::Null,
                };
                object["description"] = json!(section.and_then(DescribeResult::description));
                object["manifest"] = manifest.as_ref().map(manifest_value).into();
                object["descriptionProblem"] = json!(section.and_then(DescribeResult::problem));
                output::json(&object)?;
            }
            false => output::data(&as_text(&inspection, manifest.as_ref()))?,
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

fn as_text(inspection: &Inspection, manifest: Option<&Manifest>) -> String {
    let mut text = format!("Size: {}\n", ByteSize::bytes(inspection.size));
    if let Some(contract) = &inspection.contract {
        let _ = writeln!(text, "Types: {contract}");
    }
    if let Some(lane) = inspection.lane.filter(|lane| lane.is_foreign()) {
        let _ = writeln!(text, "Kind: {}; has no grants by default", lane.words());
    }
    text.push_str(&description(inspection));
    text.extend(manifest.map(manifest_text));
    text.push_str("\nExports\n");
    for export in &inspection.exports {
        let _ = writeln!(text, "  {}: {}", export.name, export.ty);
    }
    text.push_str(&super::omitted(&inspection.omitted));
    text.push_str("\nImports, and the access that each gives\n");
    if inspection.imports.is_empty() {
        text.push_str("  nothing\n");
    }
    // An import without a colon is a type that the world uses; its interface is listed as well.
    let is_listed = |import: &&Import| inspection.is_module || import.name.contains(':');
    for import in inspection.imports.iter().filter(is_listed) {
        let _ = writeln!(text, "  {}: {}", import.name, import.offered.unwrap_or("NOT OFFERED"));
    }
    if inspection.uses_sockets() {
        let _ = writeln!(text, "\nThe component {SOCKETS_ADVICE}");
    }
    printable(&text).to_string()
}

/// Describes the manifest in a component for ACT: the requested grants, in the form of `grants`.
fn manifest_text(manifest: &Manifest) -> String {
    let mut text = format!("Manifest: the section `{ACT_MANIFEST}`, which grants nothing\n");
    for (label, value) in [("version", &manifest.version), ("author", &manifest.author)] {
        if let Some(value) = value {
            let _ = writeln!(text, "  {label}: {}", shown(value));
        }
    }
    for (key, value) in manifest.requested.grants() {
        let lines = value.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        if lines != "[]" {
            let _ = writeln!(text, "  requests {key} = {lines}");
        }
    }
    for note in &manifest.notes {
        let key = if note.key.is_empty() { "it" } else { &note.key };
        let _ = writeln!(text, "  note: {key}: {}", note.text);
    }
    text
}

fn manifest_value(manifest: &Manifest) -> Value {
    let requests = manifest.requested.grants().into_iter().filter(|(_, value)| value != "[]");
    let requests: Vec<_> = requests.map(|(key, value)| format!("{key} = {value}")).collect();
    let note = |note: &Note| json!({ "key": note.key, "text": note.text });
    json!({
        "version": manifest.version,
        "author": manifest.author,
        "requests": requests,
        "notes": manifest.notes.iter().map(note).collect::<Vec<_>>(),
    })
}

/// Returns the component's description, or a note that the component must be asked for it.
fn description(inspection: &Inspection) -> String {
    let mut text = match (&inspection.section, inspection.describes()) {
        (Some(DescribeResult::Unusable(problem)), _) => {
            return format!("{}\n", labelled("Description: cannot be used", &problem.to_string()));
        }
        (Some(_), true) => {
            "Description: the section `kitbag:describe`; `describe` is not called\n".to_owned()
        }
        (Some(_), false) => "Description: the section `kitbag:describe`\n".to_owned(),
        (None, _) if inspection.lane.is_some_and(|lane| lane.is_foreign()) => {
            return "Description: by kitbag, after compiling\n".into();
        }
        (None, true) => return "Description: the result of `describe`, after compiling\n".into(),
        (None, false) => return "Description: none\n".into(),
    };
    let tools = inspection.section.iter().filter_map(DescribeResult::description);
    for tool in tools.flat_map(|description| &description.tools) {
        let line = tool.description.as_deref().and_then(|text| text.lines().next());
        let line = line.map(|line| format!(": {}", shown(line))).unwrap_or_default();
        let _ = writeln!(text, "  {}{line}", shown(&tool.name));
        let requested = tool.grants.as_ref().and_then(|grants| RequestedGrants::read(grants).ok());
        for request in requested.iter().flat_map(RequestedGrants::requests) {
            let _ = writeln!(text, "    requests {request}");
        }
    }
    text
}
