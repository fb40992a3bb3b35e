//! The answers: a listing, the subjects asked for, a topic's part of the system
//! prompt. Each keeps to the call's output limit and says what did not fit.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kitbag_sdk::ErrorInfo;
use kitbag_sdk::serde_json::json;

use crate::arguments::Topic;
use crate::catalog::{Catalog, Subject};
use crate::document::{self, Document, SUBJECT_BYTES};
use crate::files::Files;
use crate::notes::{Notes, one_line};
use crate::select::Selection;

const LEFT_OUT: &str = "Left out, since the answer has a limit; load them on their own";

/// What a note takes for a reason, at most.
const REASON_BYTES: usize = 120;

/// What a note takes for a subject, beside its slug.
const NAME_BYTES: usize = "``, ".len();

/// The longest tags around a part of the system prompt, and its line ends.
const FRAME_BYTES: usize = "<topic-1000000 name=\"\">\n\n\n</topic-1000000>".len();

/// Lists the subjects of a topic.
pub(crate) fn listing(name: &str, topic: &Topic, catalog: &Catalog) -> String {
    let limit = topic.output_bytes;
    let mut notes = Notes::default();
    note_unreadable(&mut notes, catalog);

    let mut answer = format!("# Topic: {}\n\n", one_line(&topic.title));
    if let Some(description) = &topic.description {
        answer.push_str(description.trim_end());
        answer.push_str("\n\n");
    }
    answer.push_str("## Available subjects:\n\n");
    let offer = format!(
        "\nUse the `{name}` tool with the `subjects` argument to learn specific subjects.\n"
    );
    let heading = "\n## Already learned (in system prompt):\n\n";

    let learned_bytes: usize = catalog.learned().map(|subject| subject.slug.len() + 3).sum();
    let fixed_bytes = answer.len() + offer.len() + heading.len() + notes.len() + REASON_BYTES;
    let room = limit.saturating_sub(fixed_bytes);
    if catalog.available().next().is_some() {
        bullets(&mut answer, catalog.available(), room - learned_bytes.min(room / 4));
        answer.push_str(&offer);
    } else {
        answer.push_str("No subjects are available.\n");
    }
    if learned_bytes > 0 {
        answer.push_str(heading);
        let room = limit.saturating_sub(answer.len() + notes.len() + REASON_BYTES);
        bullets(&mut answer, catalog.learned(), room);
    }
    answer.truncate(answer.trim_end().len());
    notes.write(&mut answer, limit);
    within(answer, limit)
}

/// Loads the subjects that were selected.
///
/// # Errors
///
/// None of them could be delivered; it says why.
pub(crate) fn load(
    files: &impl Files,
    topic: &Topic,
    catalog: &Catalog,
    selection: &Selection,
) -> Result<String, ErrorInfo> {
    let limit = topic.output_bytes;
    let mut notes = Notes::default();
    for pattern in &selection.unmatched {
        notes.add("No subject matches", pattern);
    }
    if !selection.is_exact {
        note_unreadable(&mut notes, catalog);
    }
    let positions = selection.positions.iter();
    let subjects: Vec<&Subject> = positions.map(|position| &catalog.subjects[*position]).collect();
    let form = if selection.is_exact { Form::Bare } else { Form::Block };
    let delivered = deliver(files, &subjects, form, limit, &mut notes);
    let is_delivered = delivered.is_some();
    let mut answer = delivered.unwrap_or_default();
    notes.write(&mut answer, limit);
    let answer = within(answer, limit);
    if is_delivered { Ok(answer) } else { Err(ErrorInfo::new(answer)) }
}

/// Writes a topic's part of the system prompt, as JSON: `learned` is a block of
/// what is learned, or null; `available` says whether there is something to
/// load.
pub(crate) fn prompt(files: &impl Files, topic: &Topic, catalog: &Catalog) -> String {
    let subjects: Vec<&Subject> = catalog.learned().collect();
    let is_available = catalog.available().next().is_some();
    let mut limit = topic.output_bytes;
    loop {
        let learned = (!subjects.is_empty()).then(|| learned(files, topic, &subjects, limit));
        let answer = json!({ "learned": learned, "available": is_available }).to_string();
        if answer.len() <= topic.output_bytes || limit == 0 {
            return answer;
        }
        // JSON takes two bytes for a line end or a quote, and cannot be cut. So
        // once more, with that much less room for what it holds.
        let scaled = limit as u64 * topic.output_bytes as u64 / answer.len() as u64;
        limit = usize::try_from(scaled).unwrap_or(limit).min(limit.saturating_sub(1));
    }
}

/// Writes the names of the subjects that are listed, as JSON: `subjects` has the
/// slugs, `left_out` how many more there are than fit.
pub(crate) fn names(topic: &Topic, catalog: &Catalog) -> String {
    const FRAME_BYTES: usize = "{\"subjects\":[],\"left_out\":1000000}".len();
    let mut room = topic.output_bytes.saturating_sub(FRAME_BYTES);
    let listed = catalog.subjects.iter().filter(|subject| !subject.hidden && !subject.disabled);
    let slugs: Vec<&str> = listed.map(|subject| subject.slug.as_str()).collect();
    let fits = |slug: &&&str| {
        let bytes = json!(slug).to_string().len() + ",".len();
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    };
    let subjects: Vec<_> = slugs.iter().take_while(fits).collect();
    json!({ "subjects": subjects, "left_out": slugs.len() - subjects.len() }).to_string()
}

fn learned(files: &impl Files, topic: &Topic, subjects: &[&Subject], limit: usize) -> String {
    let title = document::escaped(&one_line(&topic.title));
    let description = topic.description.as_deref().unwrap_or_default().trim_end();
    let description = document::escaped(description);
    let gap = if description.is_empty() { "" } else { "\n" };
    let limit = limit.saturating_sub(title.len() + description.len() + FRAME_BYTES);
    let mut notes = Notes::default();
    let mut content = deliver(files, subjects, Form::Block, limit, &mut notes).unwrap_or_default();
    notes.write(&mut content, limit);
    let content = within(content, limit);
    let tag = document::tag("topic", &[&content]);
    format!("<{tag} name=\"{title}\">\n{description}{gap}{content}\n</{tag}>")
}

/// How a subject stands in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// On its own.
    Bare,
    /// Between tags that name it.
    Block,
}

/// Writes subjects one after the other and notes what is missing; `None` where
/// that is everything.
///
/// The first subject is cut where it does not fit. Behind others it is left out
/// then, and a later one may fit in its place.
fn deliver(
    files: &impl Files,
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
    // Each of the subjects to come may end up in the notes, so there has to be
    // room for their names; but the notes never take more than half of it all.
    let note_bytes = |subject: &Subject| subject.slug.len() + NAME_BYTES;
    let mut ahead_bytes: usize = subjects.iter().map(|subject| note_bytes(subject)).sum();
    for subject in subjects {
        ahead_bytes -= note_bytes(subject);
        let is_last = ahead_bytes == 0;
        let reserve = if is_last { 0 } else { (ahead_bytes + REASON_BYTES).min(limit / 4) };
        let used = answer.len() + "\n".len() + notes.len().min(limit / 4) + reserve;
        let room = limit.saturating_sub(used - usize::from(!is_delivered));
        if is_delivered && room < REASON_BYTES {
            notes.add(LEFT_OUT, &subject.slug);
            continue;
        }
        let mut document = match Document::read(files, subject, room.min(SUBJECT_BYTES)) {
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
                notes.add(LEFT_OUT, &subject.slug);
                continue;
            }
            reason = "the answer has a limit";
            content = write(subject, &document.text);
        }
        if document.has_more {
            notes.add(&format!("Cut {}, since {reason}", document.end()), &subject.slug);
        }
        if is_delivered {
            answer.push('\n');
        }
        answer.push_str(&content);
        is_delivered = true;
    }
    is_delivered.then_some(answer)
}

/// Writes a list of slugs into so many bytes, and how many more there are.
fn bullets<'a>(answer: &mut String, subjects: impl Iterator<Item = &'a Subject>, room: usize) {
    let end = answer.len() + room;
    let mut left_out = 0;
    for subject in subjects {
        let slug = one_line(&subject.slug);
        if left_out > 0 || answer.len() + slug.len() + "- \n".len() > end {
            left_out += 1;
        } else {
            answer.push_str("- ");
            answer.push_str(&slug);
            answer.push('\n');
        }
    }
    if left_out > 0 {
        answer
            .push_str(&format!("\n{left_out} more are left out, since the answer has a limit.\n"));
    }
}

fn note_unreadable(notes: &mut Notes, catalog: &Catalog) {
    for (directory, fault) in &catalog.unreadable {
        notes.add(&format!("Could not be listed ({fault})"), directory);
    }
}

/// Cuts what nothing else has kept within the limit: a description or notes that
/// alone are longer.
fn within(mut answer: String, limit: usize) -> String {
    answer.truncate(answer.floor_char_boundary(limit));
    answer
}
