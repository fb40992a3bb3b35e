//! Memories and tasks: their limits and storage format.
//!
//! The value of a key is a header line and the text. The header has the version of the format, the
//! milliseconds since 1970, and words: the tags of a memory, or `open` or `done` for a task.

use kitbag_sdk::ErrorInfo;

use crate::date::Moment;
use crate::excerpt::shortened;
use crate::store::{AT_ONCE, Clock, Store};
use crate::visible::{first_invisible, is_invisible};

/// Maximum length of a memory's text. All memories that are read at once have less than 16 MiB.
pub(crate) const TEXT_BYTES: usize = 64 << 10;

/// Maximum length of a task's text.
pub(crate) const TASK_BYTES: usize = 1000;

/// Maximum number of tags of a memory.
pub(crate) const TAGS: usize = 20;

/// Maximum length of a tag.
pub(crate) const TAG_BYTES: usize = 64;

/// The version of the storage format.
const VERSION: &str = "1";

/// Number of digits of an id after its letter.
const ID_DIGITS: usize = 12;

/// The state words of a task.
const OPEN: &str = "open";
const DONE: &str = "done";

/// The kind of entry under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A memory, whose id starts with `m`.
    Memory,
    /// A task, whose id starts with `t`.
    Task,
}

/// A memory or a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) created: Moment,
    pub(crate) content: Content,
    pub(crate) text: String,
}

/// The content of an entry in addition to its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The distinct tags of a memory, normalized by [`tag`].
    Memory(Vec<String>),
    /// True if a task is done.
    Task(bool),
}

/// An entry in storage format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored<'a> {
    pub(crate) created: Moment,
    words: &'a str,
    pub(crate) text: &'a str,
}

/// An invalid character of a text and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) character: char,
    /// The offset in bytes.
    pub(crate) at: usize,
}

impl Kind {
    const fn letter(self) -> char {
        match self {
            Self::Memory => 'm',
            Self::Task => 't',
        }
    }

    /// Returns the noun for messages.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Task => "task",
        }
    }

    /// Returns true if an id is of this kind.
    pub(crate) fn has(self, id: &str) -> bool {
        let digits = id.strip_prefix(self.letter());
        digits.is_some_and(|it| it.len() == ID_DIGITS && it.bytes().all(|it| it.is_ascii_digit()))
    }

    /// Returns the id of a number.
    pub(crate) fn id(self, number: u64) -> String {
        let digits = number % 10_u64.pow(ID_DIGITS as u32);
        format!("{}{digits:0ID_DIGITS$}", self.letter())
    }

    /// Returns an unused id.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) fn new_id(
        self,
        store: &impl Store,
        clock: &impl Clock,
    ) -> Result<String, ErrorInfo> {
        loop {
            let id = self.id(clock.random());
            if store.value(&id)?.is_none() {
                return Ok(id);
            }
        }
    }

    /// Checks an id from a caller.
    ///
    /// # Errors
    ///
    /// Describes valid ids.
    pub(crate) fn check(self, id: &str) -> Result<&str, ErrorInfo> {
        let id = id.trim();
        match self.has(id) {
            true => Ok(id),
            false => Err(ErrorInfo::new(format!(
                "`{}` is not the id of a {}, such as `{}`",
                shortened(id),
                self.noun(),
                self.id(482_913_004_117)
            ))),
        }
    }

    /// Returns the stored ids.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub(crate) fn ids(self, store: &impl Store) -> Result<Vec<String>, ErrorInfo> {
        let mut ids = store.keys()?;
        ids.retain(|key| self.has(key));
        Ok(ids)
    }

    /// Reads entries in order. Skips entries that were removed in the meantime.
    ///
    /// # Errors
    ///
    /// Those of the store, or an entry cannot be read.
    pub(crate) fn each<S: Store>(
        self,
        store: &S,
        ids: &[String],
        mut visit: impl FnMut(usize, Stored<'_>),
    ) -> Result<(), ErrorInfo> {
        for (batch, ids) in ids.chunks(AT_ONCE).enumerate() {
            for (index, (id, value)) in ids.iter().zip(store.get(ids)?).enumerate() {
                if let Some(value) = value {
                    visit(batch * AT_ONCE + index, Stored::read(self, id, &value)?);
                }
            }
        }
        Ok(())
    }

    /// Creates the error for missing ids.
    pub(crate) fn unknown(self, ids: &[&str]) -> ErrorInfo {
        let ids: Vec<_> = ids.iter().take(10).map(|id| format!("`{id}`")).collect();
        ErrorInfo::new(format!("there is no {} {}", self.noun(), ids.join(", ")))
    }
}

impl Content {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Memory(_) => Kind::Memory,
            Self::Task(_) => Kind::Task,
        }
    }
}

impl Entry {
    pub(crate) fn kind(&self) -> Kind {
        self.content.kind()
    }

    /// Returns the key and the value in storage format.
    pub(crate) fn kept(&self) -> (String, Vec<u8>) {
        let Self { id, created, content, text } = self;
        let mut value = format!("{VERSION} {}", created.millis());
        let words: &mut dyn Iterator<Item = &str> = match content {
            Content::Memory(tags) => &mut tags.iter().map(|tag| &**tag),
            Content::Task(false) => &mut std::iter::once(OPEN),
            Content::Task(true) => &mut std::iter::once(DONE),
        };
        for word in words {
            value.push(' ');
            value.push_str(word);
        }
        value.push('\n');
        value.push_str(text);
        (id.clone(), value.into_bytes())
    }
}

impl<'a> Stored<'a> {
    /// Parses the value of a key.
    ///
    /// # Errors
    ///
    /// The value does not have the storage format.
    pub(crate) fn read(kind: Kind, id: &str, value: &'a [u8]) -> Result<Self, ErrorInfo> {
        let read = || {
            let (line, text) = std::str::from_utf8(value).ok()?.split_once('\n')?;
            let (version, line) = line.split_once(' ')?;
            let (created, words) = line.split_once(' ').unwrap_or((line, ""));
            let created = created.parse().ok().and_then(Moment::from_millis)?;
            let is_known =
                version == VERSION && (kind == Kind::Memory || words == OPEN || words == DONE);
            is_known.then_some(Self { created, words, text })
        };
        read().ok_or_else(|| {
            let noun = kind.noun();
            ErrorInfo::new(format!(
                "the {noun} `{id}` cannot be read; remove it or import it again"
            ))
        })
    }

    /// Returns the tags of a memory.
    pub(crate) fn words(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.words.split(' ').filter(|word| !word.is_empty())
    }

    /// Returns true if a task is done.
    pub(crate) fn is_done(&self) -> bool {
        self.words == DONE
    }

    /// Converts to an entry.
    pub(crate) fn entry(&self, kind: Kind, id: &str) -> Entry {
        let content = match kind {
            Kind::Memory => Content::Memory(self.words().map(str::to_owned).collect()),
            Kind::Task => Content::Task(self.is_done()),
        };
        Entry { id: id.to_owned(), created: self.created, content, text: self.text.to_owned() }
    }
}

/// Normalizes a tag: lower case, without a leading `#`.
///
/// # Errors
///
/// Describes valid tags.
pub(crate) fn tag(text: &str) -> Result<String, String> {
    let tag = text.trim();
    let tag = tag.strip_prefix('#').unwrap_or(tag).to_lowercase();
    let is_letter = |it: char| it.is_alphanumeric() && !is_invisible(it);
    let fits = |it: char| is_letter(it) || "-_./:+".contains(it);
    match (1..=TAG_BYTES).contains(&tag.len()) && tag.chars().all(fits) {
        true => Ok(tag),
        false => Err(format!(
            "`{}` is not a tag; a tag has 1 to {TAG_BYTES} bytes: letters, digits and `-_./:+`",
            shortened(text)
        )),
    }
}

/// Normalizes tags and removes duplicates.
///
/// # Errors
///
/// A tag is invalid, or there are too many.
pub(crate) fn tags(texts: &[impl AsRef<str>]) -> Result<Vec<String>, String> {
    if texts.len() > TAGS {
        return Err(too_many_tags(texts.len()));
    }
    let mut tags: Vec<String> = Vec::new();
    for text in texts {
        let tag = tag(text.as_ref())?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

pub(crate) fn too_many_tags(count: usize) -> String {
    format!("{count} tags; the limit is {TAGS}")
}

/// Normalizes the text of an entry: lines end with `\n`.
///
/// # Errors
///
/// Describes the problem.
pub(crate) fn text(kind: Kind, text: &str) -> Result<String, String> {
    let text = text.replace("\r\n", "\n");
    if let Some(Hidden { character, at }) = hidden(kind, &text) {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let hidden = explained(kind, character);
        return Err(format!("line {line}, column {column} of the text: {hidden}"));
    }
    size(kind, &text)?;
    Ok(match kind {
        Kind::Memory => text,
        Kind::Task => text.trim().to_owned(),
    })
}

/// Checks the length of a text.
///
/// # Errors
///
/// The text is empty or too long.
pub(crate) fn size(kind: Kind, text: &str) -> Result<(), String> {
    let (noun, most) = match kind {
        Kind::Memory => ("memory", TEXT_BYTES),
        Kind::Task => ("task", TASK_BYTES),
    };
    match text.len() {
        _ if text.trim().is_empty() => Err(format!("the {noun} has no text")),
        bytes if bytes > most => {
            Err(format!("the text has {bytes} bytes; the limit for a {noun} is {most}"))
        }
        _ => Ok(()),
    }
}

/// Returns the first invalid character of a text: a person who reads the text in a terminal or an
/// editor must see everything that a model reads.
pub(crate) fn hidden(kind: Kind, text: &str) -> Option<Hidden> {
    let line_break = text.find('\n').filter(|_| kind == Kind::Task).map(|at| (at, '\n'));
    let found = [line_break, first_invisible(text)].into_iter().flatten().min();
    found.map(|(at, character)| Hidden { character, at })
}

/// Explains why a character is refused.
pub(crate) fn explained(kind: Kind, character: char) -> String {
    match (kind, character) {
        (Kind::Task, '\n') => "a task must be one line".to_owned(),
        _ => format!("the invisible character U+{:04X}; remove it", u32::from(character)),
    }
}
