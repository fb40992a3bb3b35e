//! Skills: subjects in a file `SKILL.md` whose front matter has a name and a description.
//!
//! Source: Agent Skills, agentskills.io/specification.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::catalog::Catalog;
use crate::files::Files;
use crate::notes::one_line;
use crate::subject::Subject;

/// Number of bytes of a file that are read for its front matter.
const HEAD_BYTES: usize = 4 << 10;

/// Maximum number of displayed characters of a description.
const DESCRIPTION_CHARS: usize = 200;

/// The front matter of a skill.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) description: String,
}

impl Skill {
    /// Reads the front matter of a subject. `None` if it is not a skill, or may not be read.
    pub(crate) fn read(files: &impl Files, catalog: &Catalog, subject: &Subject) -> Option<Self> {
        let name = subject.path.rsplit('/').next().unwrap_or_default();
        if !name.eq_ignore_ascii_case("SKILL.md") {
            return None;
        }
        let (file, bytes) = files.read(&subject.path, HEAD_BYTES).ok()?;
        if catalog.disables_file(files, &subject.path, file) {
            return None;
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Formats the name and description on one line.
    pub(crate) fn shown(&self) -> String {
        let description = one_line(&self.description);
        let shown: String = description.chars().take(DESCRIPTION_CHARS).collect();
        let ellipsis = if shown.len() < description.len() { "…" } else { "" };
        let colon = if self.name.is_empty() || shown.is_empty() { "" } else { ": " };
        format!("{}{colon}{shown}{ellipsis}", one_line(&self.name))
    }

    /// Parses the top-level keys of front matter. As in YAML, a value may continue on indented
    /// lines.
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines();
        if lines.next()?.trim_end() != "---" {
            return None;
        }
        let mut skill = Self::default();
        let mut value: Option<&mut String> = None;
        for line in lines.map(str::trim_end).take_while(|line| *line != "---") {
            if line.is_empty() || line.starts_with([' ', '\t']) {
                if let Some(value) = value.as_deref_mut().filter(|_| !line.is_empty()) {
                    value.push(' ');
                    value.push_str(line.trim_start());
                }
                continue;
            }
            let (key, rest) = line.split_once(':').unwrap_or((line, ""));
            value = match key.trim_end() {
                "name" => Some(&mut skill.name),
                "description" => Some(&mut skill.description),
                _ => None,
            };
            if let Some(value) = value.as_deref_mut() {
                rest.trim_start().clone_into(value);
            }
        }
        skill.name = scalar(&skill.name);
        skill.description = scalar(&skill.description);
        (!skill.name.is_empty() || !skill.description.is_empty()).then_some(skill)
    }
}

/// Returns the text of a scalar whose lines were joined.
fn scalar(written: &str) -> String {
    let written = written.trim();
    // `>-` and `|` start text with several lines.
    let first = written.split(' ').next().unwrap_or_default();
    let is_block = first.starts_with(['>', '|'])
        && first[1..].chars().all(|char| char.is_ascii_digit() || matches!(char, '+' | '-'));
    if is_block {
        return written[first.len()..].trim_start().to_owned();
    }
    let quoted = |quote: char| written.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = quoted('"') {
        return inner.replace("\\\"", "\"").replace("\\\\", "\\");
    }
    if let Some(inner) = quoted('\'') {
        return inner.replace("''", "'");
    }
    written.split(" #").next().unwrap_or_default().trim_end().to_owned()
}
