//! The requested grants of a tool, and notes on requests that cannot be granted.

use std::path::{Path, PathBuf};

use crate::commands::consent::add::manifests::Manifest;
use kitbag::Config;
use kitbag::base::ByteSize;
use kitbag::base::parse_duration;
use kitbag::base::text::shown;
use kitbag::config::Layer;
use kitbag::contract::ToolDescription;
use kitbag::host::DescribeResult;
use kitbag::policy::{DirectoryGrant, Grants, RequestedGrants};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::source::{ManifestContent, Source};
use super::table::list;

#[derive(Default)]
pub(crate) struct RequestedSettings {
    /// Grants by their keys in `grants`.
    pub(crate) grants: Vec<(String, Value)>,
    pub(crate) keys: Vec<(String, Item)>,
    pub(crate) notes: Vec<String>,
}

/// The granted subset of the requested grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GrantSelection {
    Nothing,
    Requested,
    Kinds(Vec<String>),
}

impl GrantSelection {
    fn has(&self, key: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Requested => true,
            Self::Kinds(keys) => keys.iter().any(|own| own == key),
        }
    }
}

/// Keys of a kitbag manifest that are copied to the table and shown. `answers` is not among them:
/// only a person may preset answers.
pub(super) const OWN_KEYS: [&str; 9] = [
    "title",
    "description",
    "function",
    "command",
    "stdin",
    "parameters",
    "limits",
    "rate",
    "approve",
];

pub(crate) struct Bounds<'a> {
    pub(crate) config: &'a Config,
    pub(crate) layer: Layer,
    pub(crate) home: Option<&'a Path>,
}

impl RequestedSettings {
    /// Collects the requests of a tool and its manifest. `own` is the component's own name of the
    /// tool.
    pub(crate) fn of(
        source: &Source,
        described: &DescribeResult,
        own: &str,
        bounds: &Bounds<'_>,
    ) -> Self {
        let mut asked = Self::default();
        if let Some(problem) = described.problem() {
            asked.notes.push(format!(
                "the component's description cannot be used: {}; the tool is added without it",
                shown(problem)
            ));
        }
        let says = described.description().and_then(|says| says.tool(own));
        if let Some(grants) = says.and_then(|says| says.grants.as_ref())
            && let Ok(requested) = RequestedGrants::read(grants)
        {
            asked.take_requested(&requested);
        }
        match source.manifest.as_ref().map(|manifest| &manifest.content) {
            Some(ManifestContent::Foreign(manifest)) => {
                asked.take_foreign(manifest, says, bounds);
            }
            Some(ManifestContent::Own(document)) => asked.take_own(document),
            None => {}
        }
        for nested in &source.nested {
            asked.notes.push(format!(
                "`{}` is not read, because it is in another directory; name that directory",
                shown(nested)
            ));
        }
        asked.without_absent_directories(bounds);
        asked
    }

    fn take_requested(&mut self, requested: &RequestedGrants) {
        for (request, missing) in requested.missing(&Grants::default()) {
            if request.needs_directory() {
                let text = format!(
                    "it requests `{request}`, a directory that you choose; nothing is granted until you add \
                     `{}` with its path to `grants.{}`",
                    missing.entry, missing.key
                );
                self.notes.push(shown(&text).to_string());
                continue;
            }
            let setting = missing.as_setting().parse::<DocumentMut>();
            let value =
                setting.ok().and_then(|setting| setting.get(missing.key)?.as_value().cloned());
            if let Some(value) = value {
                self.merge(missing.key, value);
            }
        }
    }

    /// Copies a foreign manifest. `says` is the component's own description, which takes precedence
    /// over the descriptions and the schema of the manifest.
    fn take_foreign(
        &mut self,
        manifest: &Manifest,
        says: Option<&ToolDescription>,
        bounds: &Bounds<'_>,
    ) {
        // A component describes all of its tools together.
        let is_one_of_several = manifest.tools.len() > 1 && manifest.function.is_some();
        let says = says.filter(|_| !is_one_of_several);
        for note in &manifest.notes {
            let key = if note.key.is_empty() { String::new() } else { format!("{}: ", note.key) };
            self.notes.push(format!("{key}{}", note.text));
        }
        for (key, text) in manifest.requested.grants() {
            if let Ok(value) = text.parse::<Value>() {
                self.merge(key, value);
            }
        }
        let is_said = |key: &str| match key {
            "title" => says.is_some_and(|says| says.title.is_some()),
            "description" => says.is_some_and(|says| says.description.is_some()),
            _ => false,
        };
        for (key, text) in manifest.settings() {
            if is_said(key) {
                self.notes.push(format!(
                    "{key}: the component has its own {key}, which is used; the manifest's is dropped"
                ));
            } else if let Ok(value) = text.parse::<Value>() {
                self.keys.push((key.to_owned(), Item::Value(value)));
            }
        }
        let has_schema = says.is_some_and(|says| says.input_schema.is_some());
        if manifest.parameters.is_some() && has_schema {
            self.notes.push(
                "parameters: the component has its own input schema, which is used; the manifest's \
                 parameters are dropped"
                    .to_owned(),
            );
        }
        if let Some(parameters) = &manifest.parameters
            && !has_schema
            && let Ok(document) = parameters.to_string().parse::<DocumentMut>()
        {
            let mut parameters = document.as_table().clone();
            // An empty table must be written: the tool has no arguments.
            parameters.set_implicit(!parameters.is_empty());
            for table in parameters.iter_mut().filter_map(|(_, item)| item.as_table_mut()) {
                table.decor_mut().set_prefix("\n");
            }
            self.keys.push(("parameters".to_owned(), Item::Table(parameters)));
        }
        let mut limits = Table::new();
        for (key, text) in &manifest.limits {
            match above_ceiling(key, text, bounds) {
                Some(ceiling) => self.notes.push(format!(
                    "`{key} = {text}` is above the ceiling of {ceiling}; the limit is dropped, and the \
                     default applies"
                )),
                None => {
                    if let Ok(value) = text.parse::<Value>() {
                        limits.insert(key, Item::Value(value));
                    }
                }
            }
        }
        if !limits.is_empty() {
            self.keys.push(("limits".to_owned(), Item::Table(limits)));
        }
    }

    fn take_own(&mut self, document: &DocumentMut) {
        for (key, item) in document.iter() {
            match (key, item.as_table_like()) {
                ("grants", Some(grants)) => {
                    for (key, item) in grants.iter() {
                        match item.clone().into_value() {
                            Ok(value) => self.merge(key, value),
                            Err(_) => self.notes.push(format!(
                                "`grants.{}` is a list of tables; the grant is dropped",
                                shown(key)
                            )),
                        }
                    }
                }
                (key, _) if OWN_KEYS.contains(&key) => {
                    let mut item = item.clone();
                    if let Some(value) = item.as_value_mut() {
                        value.decor_mut().clear();
                    }
                    self.keys.push((key.to_owned(), item));
                }
                (key, _) => self
                    .notes
                    .push(format!("a manifest cannot set `{}`; it is dropped", shown(key))),
            }
        }
    }

    /// Merges a value into a kind of grant: entries into a list or a table.
    fn merge(&mut self, key: &str, mut value: Value) {
        value.decor_mut().clear();
        let Some((_, known)) = self.grants.iter_mut().find(|(own, _)| own == key) else {
            self.grants.push((key.to_owned(), value));
            return;
        };
        match (known, value) {
            (Value::Array(known), Value::Array(more)) => {
                let is_new = |entry: &Value, known: &Array| {
                    known.iter().all(|own| own.to_string().trim() != entry.to_string().trim())
                };
                for mut entry in more {
                    entry.decor_mut().clear();
                    if is_new(&entry, known) {
                        known.push_formatted(entry);
                    }
                }
            }
            (Value::InlineTable(known), Value::InlineTable(more)) => known.extend(more),
            (known, value) => *known = value,
        }
    }

    /// Drops directories that do not exist: a configuration that grants one is invalid.
    fn without_absent_directories(&mut self, bounds: &Bounds<'_>) {
        let Some((_, Value::Array(directories))) =
            self.grants.iter_mut().find(|(key, _)| key == "filesystem")
        else {
            return;
        };
        let host =
            |entry: &Value| entry.as_inline_table()?.get("host")?.as_str().map(str::to_owned);
        // The path with only its base resolved, and the canonical path.
        let place = |host: &str| -> Option<(PathBuf, PathBuf)> {
            let path = match host.strip_prefix("~/") {
                Some(rest) => bounds.home?.canonicalize().ok()?.join(rest),
                None => bounds.config.root.value.canonicalize().ok()?.join(host),
            };
            let led = path.canonicalize().ok().filter(|path| path.is_dir())?;
            Some((path.components().collect(), led))
        };
        let is_temporary = |host: &str| host == DirectoryGrant::TEMPORARY;
        let notes = &mut self.notes;
        let is_of_user = bounds.layer == Layer::User;
        let is_relative =
            |host: &str| !host.starts_with(['/', '~']) && host != "." && !is_temporary(host);
        directories.retain(|entry| match host(entry) {
            Some(host) if is_of_user && is_relative(&host) => {
                let host = shown(&host);
                notes.push(format!(
                    "the requested directory `{host}` is relative to a workspace, but the tool is \
                     added for all of them; the grant is dropped"
                ));
                false
            }
            Some(host) if !is_temporary(&host) => match place(&host) {
                None => {
                    notes.push(format!(
                        "the requested directory `{}` does not exist; the grant is dropped",
                        shown(&host)
                    ));
                    false
                }
                // The granted path is the path that is shown.
                Some((path, led)) if path != led => {
                    notes.push(format!(
                        "the requested directory `{}` leads to `{}`; the grant is dropped, so grant that \
                         path itself if you mean it",
                        shown(&host),
                        shown(&led.to_string_lossy())
                    ));
                    false
                }
                Some(_) => true,
            },
            _ => true,
        });
    }

    /// Returns the requested grants of a kind, each in TOML.
    pub(crate) fn requested_lines(&self, key: &str) -> Vec<String> {
        let Some((_, value)) = self.grants.iter().find(|(own, _)| own == key) else {
            return Vec::new();
        };
        let text =
            |value: &Value| value.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        match value {
            Value::Array(list) => list.iter().map(text).collect(),
            Value::InlineTable(table) => {
                table.iter().map(|(key, value)| format!("{key} = {}", text(value))).collect()
            }
            Value::Boolean(off) if !off.value() => Vec::new(),
            value => vec![text(value)],
        }
    }

    /// Returns the grants to write. Directories are always included, since a tool without a list
    /// reads the workspace.
    pub(crate) fn written(&self, granted: &GrantSelection) -> Vec<(String, Value)> {
        let mut grants = Vec::new();
        let has_directories = self.grants.iter().any(|(key, _)| key == "filesystem");
        if !has_directories || !granted.has("filesystem") {
            grants.push(("filesystem".to_owned(), list(Vec::new())));
        }
        // Denials apply regardless of grants.
        let kept = self.grants.iter().filter(|(key, _)| granted.has(key) || key == "deny");
        grants.extend(kept.map(|(key, value)| match value.clone() {
            Value::Array(entries) => {
                let entries = entries.into_iter().map(|mut entry| {
                    entry.decor_mut().clear();
                    entry
                });
                (key.clone(), list(entries.collect()))
            }
            Value::InlineTable(table) => (key.clone(), Value::InlineTable(spaced(table))),
            value => (key.clone(), value),
        }));
        grants
    }
}

fn spaced(mut table: InlineTable) -> InlineTable {
    table.fmt();
    table
}

/// Returns the ceiling if the limit is above it. The user config has no ceiling.
fn above_ceiling(key: &str, text: &str, bounds: &Bounds<'_>) -> Option<String> {
    if bounds.layer == Layer::User {
        return None;
    }
    let ceiling = &bounds.config.ceiling;
    let text = text.trim_matches('"');
    match key {
        "memory" => {
            let size: ByteSize = text.parse().ok()?;
            (size > ceiling.memory.value).then(|| ceiling.memory.value.to_string())
        }
        "time" => {
            let time = parse_duration(text).ok()?;
            let most = ceiling.time.value;
            (time > most).then(|| kitbag::base::format_duration(most).to_string())
        }
        "fuel" => {
            let fuel: u64 = text.parse().ok()?;
            let most = ceiling.fuel.as_ref()?.value;
            (fuel > most).then(|| most.to_string())
        }
        _ => None,
    }
}
