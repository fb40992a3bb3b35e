//! The requested grants and the settings of a manifest as the lock file records them.

use kitbag::config::LockedManifest;
use kitbag::contract::text::shown;
use toml_edit::{DocumentMut, Item, Value};

use super::asked::OWN_KEYS;
use super::source::{ManifestContent, SourceManifest, fitting_version};

/// The most lines that are recorded. The digest tells the rest from other ones.
const MOST_LINES: usize = 256;

/// The record of a manifest.
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

/// A line for each requested grant and each setting, before anything of this machine is looked at.
fn requests(content: &ManifestContent) -> Vec<String> {
    let document = match content {
        ManifestContent::Own(document) => (**document).clone(),
        // It is TOML, whatever the manifest holds.
        ManifestContent::Foreign(manifest) => {
            manifest.to_toml().parse::<DocumentMut>().unwrap_or_default()
        }
    };
    let mut lines = Vec::new();
    for (key, item) in document.iter() {
        match (key, item.as_table_like()) {
            ("grants", Some(grants)) => {
                for (kind, item) in grants.iter() {
                    add_lines(kind, item, &mut lines);
                }
            }
            (key, _) if OWN_KEYS.contains(&key) => add_lines(key, item, &mut lines),
            _ => {}
        }
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    lines.truncate(MOST_LINES);
    if more > 0 {
        lines.push(format!("… {more} more"));
    }
    // Each is cut to what a message shows.
    lines.iter().map(|line| shown(line).to_string()).collect()
}

/// The entries of a list or of a table, each in a line with its key.
fn add_lines(key: &str, item: &Item, lines: &mut Vec<String>) {
    let line = |value: &Value| value.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    match item.clone().into_value() {
        Ok(Value::Array(list)) => {
            lines.extend(list.iter().map(|entry| format!("{key}: {}", line(entry))));
        }
        Ok(Value::InlineTable(table)) => {
            let entry = |(name, value)| format!("{key}: {name} = {}", line(value));
            lines.extend(table.iter().map(entry));
        }
        Ok(value) => lines.push(format!("{key}: {}", line(&value))),
        Err(_) => {}
    }
}
