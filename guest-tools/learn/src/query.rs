//! Full-text search: subjects that match a query, best match first.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use kitbag_sdk::ErrorInfo;

use crate::arguments::Topic;
use crate::catalog::{Catalog, is_within};
use crate::document::{Document, SUBJECT_BYTES};
use crate::files::Files;
use crate::notes::{one_line, shortened};
use crate::select::Selection;
use crate::subject::Subject;

/// Maximum number of words of a query: each is searched for in every subject.
const WORDS: usize = 32;

/// Maximum number of subjects in an answer.
const SHOWN: usize = 20;

/// Maximum total number of bytes that are read from all subjects.
const READ_BYTES: usize = 64 << 20;

/// Maximum number of displayed characters of a line.
const LINE_CHARS: usize = 120;

/// A subject that contains words of the query.
struct Hit<'a> {
    subject: &'a Subject,
    /// The score for each word of the query. Zero for a missing word.
    points: Vec<u32>,
    /// The line with most of the words. Empty if only the name has any.
    line: String,
}

/// Ranks subjects by the words of a query: all available subjects, or a selection.
///
/// A word has a higher weight if fewer subjects contain it, and in a name rather than in the text.
///
/// # Errors
///
/// The query has no words, or too many.
pub(crate) fn ranked(
    name: &str,
    topic: &Topic,
    files: &impl Files,
    catalog: &Catalog,
    (query, selection): (&str, Option<&Selection>),
    limit: usize,
) -> Result<String, ErrorInfo> {
    let words = words(query)?;
    let subjects: Vec<&Subject> = match selection {
        None => catalog.available().collect(),
        Some(selection) => selected(catalog, selection),
    };
    let (mut hits, mut bytes_left, mut unread) = (Vec::new(), READ_BYTES, 0);
    for subject in &subjects {
        if bytes_left == 0 {
            unread += 1;
            continue;
        }
        // A binary subject, which cannot be loaded, is found only by its name.
        let document = Document::read(files, catalog, subject, SUBJECT_BYTES);
        let text = document.map(|document| document.text).unwrap_or_default();
        bytes_left = bytes_left.saturating_sub(text.len());
        hits.extend(hit(subject, &text, &words));
    }
    let weights: Vec<u32> = (0..words.len())
        .map(|word| {
            let having = hits.iter().filter(|hit| hit.points[word] > 0).count();
            1 + (subjects.len() / having.max(1)).max(1).ilog2()
        })
        .collect();
    hits.sort_by_key(|hit| {
        let points: u32 =
            hit.points.iter().zip(&weights).map(|(points, weight)| points * weight).sum();
        (Reverse(points), &hit.subject.slug)
    });

    let mut answer = format!("# Topic: {}\n\n", one_line(&topic.title));
    if hits.is_empty() {
        answer.push_str(&format!("No subject has a word of `{}`.", one_line(&shortened(query))));
        return Ok(answer);
    }
    answer.push_str(&format!("## Subjects for `{}`, best first:\n\n", one_line(&shortened(query))));
    let offer =
        format!("\nUse the `{name}` tool with the `subjects` argument to learn specific subjects.");
    let more = |left_out: usize| match left_out {
        0 => String::new(),
        count => format!("\n{count} more have some of the words.\n"),
    };
    let end_bytes = offer.len() + more(usize::MAX).len();
    let mut shown = 0;
    for hit in hits.iter().take(SHOWN) {
        let line = if hit.line.is_empty() { "" } else { ": " };
        let line = format!("- {}{line}{}\n", one_line(&hit.subject.slug), one_line(&hit.line));
        if answer.len() + line.len() + end_bytes > limit {
            break;
        }
        answer.push_str(&line);
        shown += 1;
    }
    answer.push_str(&more(hits.len() - shown));
    if unread > 0 {
        answer.push_str(&format!("\n{unread} were not read; name a directory in `subjects`.\n"));
    }
    answer.push_str(&offer);
    answer.truncate(answer.floor_char_boundary(limit));
    Ok(answer)
}

/// Returns the distinct words of a query in lower case.
fn words(query: &str) -> Result<Vec<String>, ErrorInfo> {
    let mut words: Vec<String> = Vec::new();
    for word in query.to_lowercase().split(|character: char| !character.is_alphanumeric()) {
        if !word.is_empty() && !words.iter().any(|other| other == word) {
            words.push(word.to_owned());
        }
    }
    match words.len() {
        0 => Err(ErrorInfo::new("invalid arguments: `query` has no words")),
        1..=WORDS => Ok(words),
        count => Err(ErrorInfo::new(format!(
            "invalid arguments: `query` has {count} words; the limit is {WORDS}"
        ))),
    }
}

/// Returns the visible subjects of a selection, and those in its directories.
fn selected<'a>(catalog: &'a Catalog, selection: &Selection) -> Vec<&'a Subject> {
    let is_selected = |(position, subject): &(usize, &Subject)| {
        selection.positions.contains(position)
            || selection.directories.iter().any(|directory| is_within(&subject.slug, directory))
    };
    catalog.visible().filter(is_selected).map(|(_, subject)| subject).collect()
}

/// Returns the matches of a subject; `None` if there are none.
fn hit<'a>(subject: &'a Subject, text: &str, words: &[String]) -> Option<Hit<'a>> {
    let slug = subject.slug.to_lowercase();
    let lower = text.to_lowercase();
    let points: Vec<u32> = words
        .iter()
        .map(|word| {
            // Repetitions add little: two occurrences score 3, and four or more score 4.
            let count = occurrences(&lower, word).take(4).count();
            let in_text = count.checked_ilog2().map_or(0, |log| 2 + log);
            let in_name = if occurrences(&slug, word).next().is_some() { 4 } else { 0 };
            in_text + in_name
        })
        .collect();
    if points.iter().all(|points| *points == 0) {
        return None;
    }
    let having = |line: &str| {
        let lower = line.to_lowercase();
        words.iter().filter(|word| occurrences(&lower, word).next().is_some()).count()
    };
    let best =
        text.lines().map(|line| (having(line), line)).rev().max_by_key(|(having, _)| *having);
    let line = best.filter(|(having, _)| *having > 0).map_or("", |(_, line)| line);
    let line = line.trim().trim_start_matches('#').trim_start();
    let mut shown: String = line.chars().take(LINE_CHARS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    Some(Hit { subject, points, line: shown })
}

/// Returns the positions of words with this prefix. In scripts without spaces between words, any
/// position.
fn occurrences<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let begins = move |at: &usize| {
        !word.is_ascii() || !text[..*at].ends_with(|before: char| before.is_ascii_alphanumeric())
    };
    text.match_indices(word).map(|(at, _)| at).filter(begins)
}
