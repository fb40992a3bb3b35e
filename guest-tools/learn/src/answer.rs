//! The answers: a listing, requested subjects, and a topic's part of the system prompt. Each obeys
//! the output limit of the call and names the parts that did not fit.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::serde_json::json;

use crate::arguments::Topic;
use crate::catalog::{Catalog, is_within};
use crate::document::{self, Document, SUBJECT_BYTES};
use crate::files::Files;
use crate::fold::{UNFOLDED, folded};
use crate::notes::{Notes, one_line, quoted};
use crate::select::Selection;
use crate::skill::Skill;
use crate::subject::Subject;

const LEFT_OUT: &str =
    "Omitted, because the output has a limit; load them by name, or set `max_bytes`";

/// Maximum length of a reason in a note.
const REASON_BYTES: usize = 120;

/// The length of a subject in a note, in addition to its slug.
const NAME_BYTES: usize = "``, ".len();

/// The maximum length of the tags around a part of the system prompt, and of their line endings.
const FRAME_BYTES: usize = "<topic-1000000 name=\"\">\n\n\n</topic-1000000>".len();

/// Lists the subjects of a topic, or of the requested directories.
pub(crate) fn listing(
    name: &str,
    topic: &Topic,
    files: &impl Files,
    catalog: &Catalog,
    selection: Option<&Selection>,
    limit: usize,
) -> String {
    let mut notes = Notes::default();
    note_unreadable(&mut notes, catalog);
    let directories = selection.map(|it| it.directories.as_slice()).unwrap_or_default();
    for pattern in selection.iter().flat_map(|it| &it.unmatched) {
        notes.add("No subject matches", pattern);
    }
    let is_asked = |subject: &&Subject| {
        directories.is_empty()
            || directories.iter().any(|directory| is_within(&subject.slug, directory))
    };
    let available: Vec<&Subject> = catalog.available().filter(is_asked).collect();
    let learned: Vec<&Subject> = catalog.learned().filter(is_asked).collect();

    let mut answer = format!("# Topic: {}\n\n", one_line(&topic.title));
    if let (Some(description), []) = (&topic.description, directories) {
        answer.push_str(description.trim_end());
        answer.push_str("\n\n");
    }
    let within = match directories {
        [] => String::new(),
        directories => format!(" in {}", quoted(directories, limit / 4)),
    };
    let is_folded = available.len() > UNFOLDED;
    let mut offer = format!(
        "\nUse the `{name}` tool with the `subjects` argument to learn specific subjects.\n"
    );
    let lines: Vec<String> = match is_folded {
        true => folded(files, catalog, &available),
        false => available.iter().map(|subject| line(files, catalog, subject)).collect(),
    };
    if is_folded {
        if lines.len() < available.len() {
            offer.insert_str(offer.len() - 1, " The name of a directory lists it.");
        }
        answer.push_str(&format!("## Available subjects{within}: {}\n\n", available.len()));
    } else {
        answer.push_str(&format!("## Available subjects{within}:\n\n"));
    }
    let heading = "\n## Already learned (in system prompt):\n\n";

    let learned_bytes: usize = learned.iter().map(|subject| subject.slug.len() + 3).sum();
    let fixed_bytes = answer.len() + offer.len() + heading.len() + notes.len() + REASON_BYTES;
    let room = limit.saturating_sub(fixed_bytes);
    if lines.is_empty() {
        answer.push_str("No subjects are available.\n");
    } else {
        bullets(&mut answer, &lines, room - learned_bytes.min(room / 4));
        answer.push_str(&offer);
    }
    if learned_bytes > 0 {
        answer.push_str(heading);
        let room = limit.saturating_sub(answer.len() + notes.len() + REASON_BYTES);
        let slugs: Vec<_> =
            learned.iter().map(|subject| one_line(&subject.slug).into_owned()).collect();
        bullets(&mut answer, &slugs, room);
    }
    answer.truncate(answer.trim_end().len());
    notes.write(&mut answer, limit);
    cut(answer, limit)
}

/// Returns the line of a subject in a list. The line of a skill includes its front matter.
fn line(files: &impl Files, catalog: &Catalog, subject: &Subject) -> String {
    let skill = Skill::read(files, catalog, subject);
    let skill = skill.map(|skill| format!(": {}", skill.shown())).unwrap_or_default();
    format!("{}{skill}", one_line(&subject.slug))
}

/// Loads the selected subjects.
///
/// # Errors
///
/// The reasons, if no subject could be delivered.
pub(crate) fn load(
    files: &impl Files,
    catalog: &Catalog,
    selection: &Selection,
    limit: usize,
) -> Result<String, ErrorInfo> {
    let mut notes = Notes::default();
    for pattern in &selection.unmatched {
        notes.add("No subject matches", pattern);
    }
    for directory in &selection.directories {
        notes.add("Directories; name one alone to list it", directory);
    }
    if !selection.is_exact {
        note_unreadable(&mut notes, catalog);
    }
    let positions = selection.positions.iter();
    let subjects: Vec<&Subject> = positions.map(|position| &catalog.subjects[*position]).collect();
    let form = if selection.is_exact { Form::Bare } else { Form::Block };
    let delivered = deliver(files, catalog, &subjects, form, limit, &mut notes);
    let is_delivered = delivered.is_some();
    let mut answer = delivered.unwrap_or_default();
    notes.write(&mut answer, limit);
    let answer = cut(answer, limit);
    if is_delivered { Ok(answer) } else { Err(ErrorInfo::new(answer)) }
}

/// Writes a topic's part of the system prompt as JSON. `learned` is a block with the learned
/// subjects, or null; `available` tells whether other subjects can be loaded, and `unlisted`
/// whether some of those are not listed.
pub(crate) fn prompt(files: &impl Files, topic: &Topic, catalog: &Catalog) -> String {
    let subjects: Vec<&Subject> = catalog.learned().collect();
    let is_available = catalog.available().next().is_some();
    let has_unlisted = catalog.has_unlisted();
    let mut limit = topic.output_bytes;
    loop {
        let learned =
            (!subjects.is_empty()).then(|| learned(files, topic, catalog, &subjects, limit));
        let answer =
            json!({ "learned": learned, "available": is_available, "unlisted": has_unlisted })
                .to_string();
        if answer.len() <= topic.output_bytes || limit == 0 {
            return answer;
        }
        // JSON needs two bytes for a line ending or a quote, and cannot be truncated. So the part
        // is written again with proportionally less room.
        let scaled = limit as u64 * topic.output_bytes as u64 / answer.len() as u64;
        limit = usize::try_from(scaled).unwrap_or(limit).min(limit.saturating_sub(1));
    }
}

/// Writes a name of each listed subject as JSON: `subjects` has the slugs or paths, and `left_out`
/// the number of subjects that did not fit.
pub(crate) fn names(topic: &Topic, catalog: &Catalog, name: impl Fn(&Subject) -> &str) -> String {
    const FRAME_BYTES: usize = "{\"subjects\":[],\"left_out\":1000000}".len();
    let mut room = topic.output_bytes.saturating_sub(FRAME_BYTES);
    let listed = catalog.subjects.iter().filter(|subject| !subject.hidden && !subject.disabled);
    let slugs: Vec<&str> = listed.map(name).collect();
    let fits = |slug: &&&str| {
        let bytes = json!(slug).to_string().len() + ",".len();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let subjects: Vec<_> = slugs.iter().take_while(fits).collect();
    json!({ "subjects": subjects, "left_out": slugs.len() - subjects.len() }).to_string()
}

fn learned(
    files: &impl Files,
    topic: &Topic,
    catalog: &Catalog,
    subjects: &[&Subject],
    limit: usize,
) -> String {
    let title = document::escaped(&one_line(&topic.title));
    let description = topic.description.as_deref().unwrap_or_default().trim_end();
    let description = document::escaped(description);
    let gap = if description.is_empty() { "" } else { "\n" };
    let limit = limit.saturating_sub(title.len() + description.len() + FRAME_BYTES);
    let mut notes = Notes::default();
    let mut content =
        deliver(files, catalog, subjects, Form::Block, limit, &mut notes).unwrap_or_default();
    notes.write(&mut content, limit);
    let content = cut(content, limit);
    let tag = document::tag("topic", &[&content]);
    format!("<{tag} name=\"{title}\">\n{description}{gap}{content}\n</{tag}>")
}

/// The form of a subject in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Alone.
    Bare,
    /// Between tags that name it.
    Block,
}

/// Writes subjects in order and notes the missing ones. `None` if none is missing.
///
/// The first subject is truncated if it does not fit. Later ones are omitted if they do not fit,
/// and subsequent smaller ones may be written.
fn deliver(
    files: &impl Files,
    catalog: &Catalog,
    subjects: &[&Subject],
    form: Form,
    limit: usize,
    notes: &mut Notes,
) -> Option<String> {
    let write = |subject: &Subject, text: &str| {
        let content = document::formatted(subject, text);
        match form {
            Form::Bare => content,
            Form::Block => document::block(&subject.slug, &content),
        }
    };
    let mut answer = String::new();
    let mut is_delivered = false;
    // Each remaining subject may have to be named in the notes, so room for the names is reserved,
    // but at most half of the total.
    let note_bytes = |subject: &Subject| subject.slug.len() + NAME_BYTES;
    let mut ahead_bytes: usize = subjects.iter().map(|subject| note_bytes(subject)).sum();
    for subject in subjects {
        ahead_bytes -= note_bytes(subject);
        let is_last = ahead_bytes == 0;
        let reserve = if is_last { 0 } else { (ahead_bytes + REASON_BYTES).min(limit / 4) };
        let used = answer.len() + "\n".len() + notes.len().min(limit / 4) + reserve;
        let room = limit.saturating_sub(used - usize::from(!is_delivered));
        if is_delivered && room < REASON_BYTES {
            left_out(files, subject, notes);
            continue;
        }
        let mut document = match Document::read(files, catalog, subject, room.min(SUBJECT_BYTES)) {
            Ok(document) => document,
            Err(reason) => {
                notes.add(&reason, &subject.slug);
                continue;
            }
        };
        let mut reason = "it has more than 1 MiB";
        document.cut(SUBJECT_BYTES);
        let mut content = write(subject, &document.text);
        let cut_bytes = note_bytes(subject) + REASON_BYTES;
        let needed = content.len() + if document.has_more { cut_bytes } else { 0 };
        if needed > room {
            let frame_bytes = content.len() - document.text.len();
            document.cut(room.saturating_sub(frame_bytes + cut_bytes));
            if is_delivered || document.text.is_empty() {
                left_out(files, subject, notes);
                continue;
            }
            reason = "the output has a limit, which `max_bytes` raises";
            content = write(subject, &document.text);
        }
        if document.has_more {
            notes.add(&format!("Cut {}, because {reason}", document.end()), &subject.slug);
        }
        if is_delivered {
            answer.push('\n');
        }
        answer.push_str(&content);
        is_delivered = true;
    }
    is_delivered.then_some(answer)
}

/// Writes a list in this many bytes, and the number of omitted entries.
fn bullets(answer: &mut String, lines: &[String], room: usize) {
    let end = answer.len() + room;
    let mut left_out = 0;
    for line in lines {
        if left_out > 0 || answer.len() + line.len() + "- \n".len() > end {
            left_out += 1;
        } else {
            answer.push_str("- ");
            answer.push_str(line);
            answer.push('\n');
        }
    }
    if left_out > 0 {
        answer
            .push_str(&format!("\n{left_out} more are omitted, because the output has a limit.\n"));
    }
}

fn left_out(files: &impl Files, subject: &Subject, notes: &mut Notes) {
    match files.size(&subject.path) {
        Ok(bytes) => notes.add_file(LEFT_OUT, &subject.slug, bytes),
        Err(_) => notes.add(LEFT_OUT, &subject.slug),
    }
}

fn note_unreadable(notes: &mut Notes, catalog: &Catalog) {
    for (directory, fault) in &catalog.unreadable {
        notes.add(&format!("Could not be listed ({fault})"), directory);
    }
}

/// Truncates an answer that still exceeds the limit because a description or the notes alone are
/// longer.
fn cut(mut answer: String, limit: usize) -> String {
    answer.truncate(answer.floor_char_boundary(limit));
    answer
}
