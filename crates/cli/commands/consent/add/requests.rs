//! The requested grants and settings of a manifest, in the form of the lock file.

use kitbag::base::text::shown;
use kitbag::config::LockedManifest;
use kitbag::policy::{GrantForm, KindInfo};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Value};

use super::grants::OWN_KEYS;
use super::source::{ManifestContent, SourceManifest, fitting_version};
use super::wording::DENY;

/// Maximum number of recorded lines. The digest covers the rest.
const MOST_LINES: usize = 256;

pub(crate) fn recorded(manifest: &SourceManifest) -> LockedManifest {
    let (version, author) = match &manifest.content {
        ManifestContent::Foreign(foreign) => {
            let author = foreign.author.as_deref().map(|author| shown(author).to_string());
            (fitting_version(foreign), author)
        }
        ManifestContent::Own(_) => (None, None),
    };
    LockedManifest {
        file: manifest.file.clone(),
        digest: manifest.digest,
        version,
        author,
        requests: requests(&manifest.content),
    }
}

pub(crate) struct RequestedGrant {
    /// The key under `grants`.
    pub(crate) kind: String,
    /// The lines in the lock file.
    pub(crate) lines: Vec<String>,
    /// The entry in the form of `grants`. `None` if a recorded line cannot be read.
    pub(crate) value: Option<Value>,
}

/// Returns the grants that a manifest requests, in its order.
pub(crate) fn grants(content: &ManifestContent) -> Vec<RequestedGrant> {
    let document = document(content);
    let grants = document.get("grants").and_then(Item::as_table_like);
    let kinds = grants.into_iter().flat_map(|grants| grants.iter());
    let kinds = kinds.flat_map(|(kind, item)| {
        let entries = entries(kind, item);
        let grant = |lines, value| RequestedGrant { kind: kind.to_owned(), lines, value };
        match form(kind) {
            // Its keys are parts of a single grant.
            Some(GrantForm::Setting) => {
                let lines = entries.into_iter().map(|(line, _)| line).collect();
                vec![grant(lines, item.clone().into_value().ok())]
            }
            _ => entries
                .into_iter()
                .map(|(line, value)| grant(vec![line], Some(value)))
                .collect::<Vec<_>>(),
        }
    });
    kinds.collect()
}

/// Returns the requested grants in the record of a manifest. Its other lines are settings.
pub(crate) fn recorded_grants(manifest: &LockedManifest) -> Vec<RequestedGrant> {
    manifest.requests.iter().filter_map(|line| recorded_grant(line)).collect()
}

fn recorded_grant(line: &str) -> Option<RequestedGrant> {
    let (kind, text) = line.split_once(": ")?;
    let value = match (form(kind)?, text.parse::<Value>()) {
        (GrantForm::List, Ok(entry)) => Some(Value::Array(Array::from_iter([entry]))),
        (_, Ok(value)) => Some(value),
        (_, Err(_)) => format!("{{ {text} }}").parse::<Value>().ok(),
    };
    Some(RequestedGrant { kind: kind.to_owned(), lines: vec![line.to_owned()], value })
}

/// The form of a kind of grants, or of denied requests.
pub(crate) fn form(key: &str) -> Option<GrantForm> {
    match key {
        DENY => Some(GrantForm::List),
        key => KindInfo::of_key(key).map(|kind| kind.form),
    }
}

fn document(content: &ManifestContent) -> DocumentMut {
    match content {
        ManifestContent::Own(document) => (**document).clone(),
        // The result is TOML, regardless of the manifest's content.
        ManifestContent::Foreign(manifest) => {
            manifest.to_toml().parse::<DocumentMut>().unwrap_or_default()
        }
    }
}

/// Returns a line for each requested grant and setting, independent of this machine.
fn requests(content: &ManifestContent) -> Vec<String> {
    let document = document(content);
    let mut lines = Vec::new();
    let mut add = |key: &str, item: &Item| {
        lines.extend(entries(key, item).into_iter().map(|(line, _)| line));
    };
    for (key, item) in document.iter() {
        match (key, item.as_table_like()) {
            ("grants", Some(grants)) => grants.iter().for_each(|(kind, item)| add(kind, item)),
            (key, _) if OWN_KEYS.contains(&key) => add(key, item),
            _ => {}
        }
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("… {more} more"));
    }
    lines
}

/// Splits a list or a table into entries: the recorded line of each entry with its key, and the
/// entry alone in the form of the whole. Lines are cut to the maximum length of a message.
fn entries(key: &str, item: &Item) -> Vec<(String, Value)> {
    let text = |value: &Value| value.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |text: String| shown(&format!("{key}: {text}")).to_string();
    match item.clone().into_value() {
        Ok(Value::Array(list)) => {
            let entry = |entry: &Value| {
                (line(text(entry)), Value::Array(Array::from_iter([entry.clone()])))
            };
            list.iter().map(entry).collect()
        }
        Ok(Value::InlineTable(table)) => {
            let entry = |(name, value): (&str, &Value)| {
                let alone = InlineTable::from_iter([(name, value.clone())]);
                (line(format!("{name} = {}", text(value))), Value::InlineTable(alone))
            };
            table.iter().map(entry).collect()
        }
        Ok(value) => vec![(line(text(&value)), value)],
        Err(_) => Vec::new(),
    }
}
