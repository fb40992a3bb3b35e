//! `edit_file`.

use kitbag_sdk::{Call, ErrorInfo, Stop};
use kitbag_workspace::Location;
use serde::Deserialize;

use crate::change::{Change, Target, change};
use crate::diff::diff;
use crate::file::{check_expected, text};
use crate::lookalikes;
use crate::mismatch::{mismatch, several_places};
use crate::text::{Part, Text, unix};
use crate::write::answer;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    edits: Vec<Edit>,
    expect: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    pub(crate) old_text: String,
    pub(crate) new_text: String,
    #[serde(default)]
    pub(crate) all: bool,
}

pub(crate) fn run(call: &Call) -> Result<String, Stop> {
    let arguments: Arguments = call.arguments()?;
    let location = Location::of_file(call, &arguments.path)?;
    change(arguments.dry_run, || {
        let target = Target::read(location.clone())?;
        let Some(content) = target.content.clone() else {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            let missing = std::fs::metadata(&location.path).err().unwrap_or(missing);
            return Err(kitbag_workspace::explain(&location, "edited", &missing).into());
        };
        check_expected(&location, arguments.expect.as_deref(), Some(&content))?;
        let old = Text::from(text(&location, content)?);
        let mut new = old.clone();
        let mut notes = String::new();
        for (number, edit) in arguments.edits.iter().enumerate() {
            let which = match arguments.edits.len() {
                1 => String::new(),
                _ => format!("`/edits/{number}`: "),
            };
            match apply(&mut new, edit) {
                Ok(None) => {}
                Ok(Some(note)) => notes += &format!("[{which}{note}]\n"),
                Err(why) => {
                    let why = format!("{which}{why}\nNothing was changed.");
                    return Err(ErrorInfo::new(why).into());
                }
            }
        }
        let content = new.to_bytes(&location)?;
        let shown = diff(old.as_str(), new.as_str());
        let answer = answer(&target, &content, new.encoding(), &shown) + &notes;
        Ok((vec![Change::new(target, Some(content))], answer))
    })
}

/// Renders the diff in the arguments.
pub(crate) fn rendered(call: &Call) -> Option<String> {
    let arguments: Arguments = call.arguments().ok()?;
    let mut shown = format!("edit_file {}\n", arguments.path);
    for edit in &arguments.edits {
        shown.push_str(if edit.all { "@@ everywhere @@\n" } else { "@@\n" });
        for (sign, text) in [('-', &edit.old_text), ('+', &edit.new_text)] {
            for line in text.lines() {
                shown.push(sign);
                shown.push_str(line);
                shown.push('\n');
            }
        }
    }
    Some(shown)
}

/// Makes one edit, and returns its note.
///
/// # Errors
///
/// The reason why it cannot be made.
pub(crate) fn apply(text: &mut Text, edit: &Edit) -> Result<Option<String>, String> {
    let (old, new) = (unix(&edit.old_text), unix(&edit.new_text));
    let content = text.as_str();
    if old == new {
        return Err(match edit.old_text == edit.new_text {
            true => "`old_text` and `new_text` are the same".into(),
            false => "`old_text` and `new_text` differ only in line endings, which an edit keeps; \
                      `write_file` or `apply_patch` changes them"
                .into(),
        });
    }
    if old.is_empty() {
        return Err(match content.is_empty() {
            true => "the file is empty; `write_file` fills it".into(),
            false => "`old_text` is empty; give the text before or after the new text, or use \
                      `append` of `write_file`"
                .into(),
        });
    }
    let places: Vec<usize> = match edit.all {
        true => content.match_indices(&old).map(|(at, _)| at).collect(),
        false => first_two(content, &old),
    };
    match places.as_slice() {
        [] => apply_alike(text, &old, &new),
        [_, _, ..] if !edit.all => Err(several_places(content, &old, &places)),
        _ => {
            let range = |at: &usize| *at..*at + old.len();
            let part =
                |at: &usize| Part { range: range(at), new: new.as_str(), says_endings: false };
            text.replace(places.iter().map(part));
            Ok(None)
        }
    }
}

/// Applies an edit if the file has other characters that look like those of `old` in exactly one
/// position. The file keeps its characters.
fn apply_alike(text: &mut Text, old: &str, new: &str) -> Result<Option<String>, String> {
    let content = text.as_str();
    let missing = |why: &str| Err(format!("{}{why}", mismatch("`old_text`", content, old, new)));
    match lookalikes::places(content, old).as_slice() {
        [] => missing(""),
        [place] => {
            let passage = &content[place.range.clone()];
            let line_start = content[..place.range.start].rfind('\n').map_or(0, |end| end + 1);
            let column = content[line_start..place.range.start].chars().count() + 1;
            let differences = lookalikes::differences(passage, old, place.line, column);
            let changed = lookalikes::changed(passage, old, new);
            let part = Part { range: place.range.clone(), new: &changed, says_endings: false };
            text.replace(std::iter::once(part));
            Ok(Some(format!("matched similar-looking characters, which were kept: {differences}")))
        }
        [first, second, ..] => missing(&format!(
            "\nLines {} and {} look like it; give more lines around it",
            first.line, second.line
        )),
    }
}

/// Returns the positions of a text: at most two, which may overlap.
fn first_two(content: &str, text: &str) -> Vec<usize> {
    let Some(first) = content.find(text) else { return Vec::new() };
    let next = first + content[first..].chars().next().map_or(1, char::len_utf8);
    match content[next..].find(text) {
        Some(second) => vec![first, next + second],
        None => vec![first],
    }
}
