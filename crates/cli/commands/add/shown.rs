//! What a person sees of a tool before they agree to it.

use std::fmt::Write as _;

use kitbag::contract::text::{printable, shown};
use kitbag::contract::{ByteSize, ContentDigest, ToolName};
use kitbag::host::{Described, Inspection};

use super::asked::Asked;
use super::source::Source;
use crate::output;

/// The kinds of grants that an import can use: the key, the word for it, and how the names of
/// the imports begin.
const KINDS: [(&str, &str, &str); 6] = [
    ("filesystem", "files", "wasi:filesystem/"),
    ("http", "requests", "wasi:http/"),
    ("env", "variables", "wasi:cli/environment"),
    ("config", "settings", "wasi:config/"),
    ("storage", "storage", "wasi:keyvalue/"),
    ("tools", "other tools", "kitbag:tool/tools"),
];

/// As much of a digest as tells it from another one to a person.
pub(crate) fn beginning(digest: &ContentDigest) -> String {
    format!("{}…", &digest.to_string()[..12])
}

/// The imports that could use a kind of grant: their names without versions.
fn imports_of(inspection: &Inspection, prefix: &str) -> Vec<String> {
    let usable = inspection.imports.iter().filter(|import| import.offered != Some("types only"));
    let names = usable.filter(|import| import.name.starts_with(prefix));
    let mut names: Vec<_> =
        names.map(|import| import.name.split('@').next().unwrap_or_default().to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The imports that no wish explains, each with what it could use.
pub(crate) fn unexplained(inspection: &Inspection, asked: &Asked) -> Vec<(String, &'static str)> {
    let kinds = KINDS.into_iter().filter(|(key, ..)| {
        let by_secret = *key == "env" && !asked.wishes("secrets").is_empty();
        asked.wishes(key).is_empty() && !by_secret
    });
    let imports = kinds.flat_map(|(_, word, prefix)| {
        imports_of(inspection, prefix).into_iter().map(move |import| (import, word))
    });
    imports.collect()
}

/// The tool, what it asks for, and what it could do.
pub(crate) fn tool(
    name: &ToolName,
    source: &Source,
    described: &Described,
    asked: &Asked,
) -> String {
    let mut text = String::new();
    let version = source.version().map(|version| format!(" {version}")).unwrap_or_default();
    let author = source.foreign().and_then(|manifest| manifest.author.as_deref());
    let author = author.map(|author| format!(" by {}", shown(author))).unwrap_or_default();
    let _ = writeln!(text, "{name}{version}{author}, from {}", shown(&source.origin));
    let says = described.description().and_then(|says| says.tool(name.as_str()));
    let own = says.and_then(|says| says.description.as_deref());
    let of_manifest = source.foreign().and_then(|manifest| manifest.description.as_deref());
    if let Some(description) = own.or(of_manifest) {
        for line in description.lines().take(10) {
            let _ = writeln!(text, "  {}", shown(line));
        }
    }
    let inspection = &source.component.inspection;
    let size = ByteSize::bytes(inspection.size);
    let _ = writeln!(text, "Component: {size}, digest {}", beginning(&source.component.digest));
    if let Some(manifest) = &source.manifest {
        let _ = writeln!(text, "Manifest: {}", shown(&manifest.file));
    }
    text.push('\n');
    text.push_str(&output::aligned(&comparison(inspection, asked)));
    let unexplained = unexplained(inspection, asked);
    if !unexplained.is_empty() {
        text.push_str(
            "\nNo wish explains these imports, which get nothing as long as nothing is granted:\n",
        );
        let rows = unexplained
            .iter()
            .map(|(import, word)| vec![format!("  {import}"), (*word).to_owned()]);
        text.push_str(&output::aligned(&rows.collect::<Vec<_>>()));
    }
    if !asked.keys.is_empty() {
        text.push_str("\nIts manifest says of it, too:\n");
        for (key, item) in &asked.keys {
            for line in item.to_string().trim().lines().take(10) {
                let _ = writeln!(text, "  {key}: {}", shown(line));
            }
        }
    }
    if !asked.notes.is_empty() {
        text.push_str("\nNotes:\n");
        for note in &asked.notes {
            // Whole, since one that is cut could cut a command in its quotes.
            let _ = writeln!(text, "  {}", printable(note));
        }
    }
    text
}

/// The wishes of each kind beside the imports that could use it.
fn comparison(inspection: &Inspection, asked: &Asked) -> Vec<Vec<String>> {
    let mut rows =
        vec![vec![String::new(), "It would like".to_owned(), "Its imports could use".to_owned()]];
    let others = [("secrets", "secrets", None), ("deny", "never", None)];
    let kinds = KINDS.into_iter().map(|(key, word, prefix)| (key, word, Some(prefix)));
    for (key, word, prefix) in kinds.chain(others) {
        let wishes = asked.wishes(key);
        let imports = prefix.map(|prefix| imports_of(inspection, prefix)).unwrap_or_default();
        for row in 0..wishes.len().max(imports.len()) {
            let cell = |list: &[String]| match list.get(row) {
                Some(text) => shown(text).to_string(),
                None if row == 0 => "-".to_owned(),
                None => String::new(),
            };
            let word = if row == 0 { word } else { "" };
            rows.push(vec![format!("  {word}"), cell(&wishes), cell(&imports)]);
        }
    }
    if rows.len() == 1 {
        return vec![vec![
            "It would like nothing, and imports nothing that it could use.".to_owned(),
        ]];
    }
    rows
}
