//! The Markdown format: a section of memories, each with a heading (date, id, tags) and its text as
//! a quotation, and a section of tasks as a checklist.

use crate::date::Moment;
use crate::entry::{self, Content, Entry, Kind};
use crate::excerpt::shortened;
use crate::transfer::{Draft, Problems};

const MEMORIES: &str = "# Memories";
const TODO: &str = "# Todo";

/// Instructions for a person who opens the file.
const COMMENT: &str = "<!-- `kitbag memory import` reads this. Each line of a text starts with \
                       `>`. New entries need no id. -->";

/// Delimiters of the date and id of a task.
const OPENING: &str = " <!-- ";
const CLOSING: &str = " -->";

/// The section of a line.
enum Section {
    None,
    Memories,
    Todo,
}

/// A memory that is being parsed.
struct Open {
    /// The position of its start.
    at: usize,
    id: Option<String>,
    created: Option<Moment>,
    /// `None` if the heading is invalid.
    tags: Option<Vec<String>>,
    /// The start of each line of the text.
    quoted: Vec<usize>,
    text: String,
    is_ended: bool,
}

/// Writes a file.
pub(crate) fn write(entries: &[Entry]) -> String {
    let of = |kind| entries.iter().filter(move |entry| entry.kind() == kind);
    let mut file = format!("{COMMENT}\n\n{MEMORIES}\n");
    for Entry { id, created, content, text } in of(Kind::Memory) {
        file.push_str(&format!("\n## {created} {id}"));
        if let Content::Memory(tags) = content {
            tags.iter().for_each(|tag| file.push_str(&format!(" #{tag}")));
        }
        file.push_str("\n\n");
        for line in text.split('\n') {
            file.push_str(if line.is_empty() { ">" } else { "> " });
            file.push_str(line);
            file.push('\n');
        }
    }
    file.push_str(&format!("\n{TODO}\n"));
    for (index, Entry { id, created, content, text }) in of(Kind::Task).enumerate() {
        let mark = if *content == Content::Task(true) { 'x' } else { ' ' };
        let gap = if index == 0 { "\n" } else { "" };
        file.push_str(&format!("{gap}- [{mark}] {text}{OPENING}{created} {id}{CLOSING}\n"));
    }
    file
}

/// Parses a file. Returns the valid entries.
pub(crate) fn read(text: &str, problems: &mut Problems<'_>) -> Vec<Draft> {
    let (mut section, mut open, mut drafts) = (Section::None, None::<Open>, Vec::new());
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let at = problems.at(line);
        if line.starts_with("# ") {
            drafts.extend(open.take().and_then(|open| open.end(problems)));
            section = match line.trim_end() {
                MEMORIES => Section::Memories,
                TODO => Section::Todo,
                other => {
                    let other = shortened(other);
                    let message = format!("`{other}` is neither `{MEMORIES}` nor `{TODO}`");
                    problems.add(at, message);
                    Section::None
                }
            };
            continue;
        }
        if line.trim().is_empty() {
            if let Some(open) = &mut open {
                open.is_ended = !open.quoted.is_empty();
            }
            continue;
        }
        match section {
            Section::None if line.starts_with("<!--") && line.trim_end().ends_with("-->") => {}
            // Lines after an invalid heading are not reported.
            Section::None if problems.is_empty() => {
                problems.add(at, format!("no `{MEMORIES}` or `{TODO}` is above this line"));
            }
            Section::None => {}
            Section::Memories => {
                match (line.strip_prefix("## "), line.strip_prefix('>'), &mut open) {
                    (Some(_), ..) => {
                        drafts.extend(open.take().and_then(|open| open.end(problems)));
                        open = Some(heading(line, problems));
                    }
                    (_, Some(rest), Some(open)) if !open.is_ended => open.add(rest, problems),
                    (_, Some(_), None) => {
                        problems.add(at, "a text without a heading, such as `## 2026-11-24 #tag`");
                    }
                    _ => problems.add(
                        at,
                        "this is not part of the text above: each line of it, even an empty one, \
                         starts with `>`",
                    ),
                }
            }
            Section::Todo => drafts.extend(task(line, problems)),
        }
    }
    drafts.extend(open.and_then(|open| open.end(problems)));
    drafts
}

impl Open {
    fn add(&mut self, rest: &str, problems: &Problems<'_>) {
        let text = rest.strip_prefix(' ').unwrap_or(rest);
        if !self.quoted.is_empty() {
            self.text.push('\n');
        }
        self.quoted.push(problems.at(text));
        self.text.push_str(text);
    }

    fn end(self, problems: &mut Problems<'_>) -> Option<Draft> {
        let Self { at, id, created, tags, quoted, text, .. } = self;
        if quoted.is_empty() {
            problems.add(at, "the memory has no text: add lines below that start with `>`");
            return None;
        }
        problems.text(Kind::Memory, &text, at, |at| {
            let before = &text[..at];
            let within = before.rsplit('\n').next().unwrap_or_default().len();
            quoted[before.matches('\n').count()] + within
        })?;
        Some(Draft { at, id, created, content: Content::Memory(tags?), text })
    }
}

/// Parses the heading of a memory: a date, an id and tags, all of them optional.
fn heading(line: &str, problems: &mut Problems<'_>) -> Open {
    let (mut id, mut created) = (None, None);
    let (mut tags, mut is_wrong) = (Vec::new(), false);
    for word in line.split_whitespace().skip(1) {
        let read = match word {
            _ if word.starts_with('#') => entry::tag(word).map(|tag| {
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
            }),
            _ if Kind::Memory.has(word) => match id.replace(word.to_owned()) {
                None => Ok(()),
                Some(other) => Err(format!("the memory already has the id `{other}`")),
            },
            _ if word.starts_with(|it: char| it.is_ascii_digit()) => {
                Moment::first(word).map(|moment| created = Some(moment))
            }
            _ => Err(format!(
                "`{}` is not a date, an id, or a tag that starts with `#`",
                shortened(word)
            )),
        };
        is_wrong |= problems.ok(problems.at(word), read).is_none();
    }
    let at = problems.at(line);
    if tags.len() > entry::TAGS {
        problems.add(at, entry::too_many_tags(tags.len()));
        is_wrong = true;
    }
    let tags = (!is_wrong).then_some(tags);
    Open { at, id, created, tags, quoted: Vec::new(), text: String::new(), is_ended: false }
}

/// Parses a task.
fn task(line: &str, problems: &mut Problems<'_>) -> Option<Draft> {
    let marks = [("- [ ] ", false), ("- [x] ", true), ("- [X] ", true)];
    let marked =
        marks.iter().find_map(|(mark, is_done)| Some((*is_done, line.strip_prefix(mark)?)));
    let at = problems.at(line);
    let Some((is_done, rest)) = marked else {
        problems.add(at, "a task is a line such as `- [ ] Renew the certificate`");
        return None;
    };
    let rest = rest.trim_end();
    let (mut id, mut created, mut is_wrong) = (None, None, false);
    let text = match rest.strip_suffix(CLOSING).and_then(|rest| rest.rsplit_once(OPENING)) {
        None => rest,
        Some((text, comment)) => {
            for word in comment.split_whitespace() {
                let read = if Kind::Task.has(word) {
                    id = Some(word.to_owned());
                    Ok(())
                } else {
                    Moment::first(word).map(|moment| created = Some(moment))
                };
                is_wrong |= problems.ok(problems.at(word), read).is_none();
            }
            text
        }
    };
    let text = text.trim();
    let begin = problems.at(text);
    problems.text(Kind::Task, text, at, |at| begin + at)?;
    let (text, content) = (text.to_owned(), Content::Task(is_done));
    (!is_wrong).then_some(Draft { at, id, created, content, text })
}
