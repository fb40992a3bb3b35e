//! Assumptions that were made while a document was read. The answer states them.

/// Maximum number of names in a note.
const NAMES: usize = 5;

/// Maximum length of a name in a note, in characters.
const NAME_CHARACTERS: usize = 60;

/// The assumptions about one or several documents.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Note>);

#[derive(Debug)]
struct Note {
    /// The document, as errors name it.
    document: String,
    what: String,
    names: Vec<String>,
    has_more_names: bool,
    count: usize,
    /// The line of the first position, if the note is about positions.
    line: Option<usize>,
}

impl Notes {
    /// Adds a note about the whole document.
    pub(crate) fn add(&mut self, what: impl Into<String>) {
        self.note(what.into(), None);
    }

    /// Adds a position. Positions with the same note share one.
    pub(crate) fn place(&mut self, what: &str, line: usize) {
        self.note(what.to_owned(), Some(line));
    }

    /// Adds a position with the name of the item there.
    pub(crate) fn named(&mut self, what: &str, name: &str, line: usize) {
        let note = self.note(what.to_owned(), Some(line));
        if note.names.iter().any(|known| known == name) {
            return;
        }
        match note.names.len() < NAMES {
            true => note.names.push(name.chars().take(NAME_CHARACTERS).collect()),
            false => note.has_more_names = true,
        }
    }

    fn note(&mut self, what: String, line: Option<usize>) -> &mut Note {
        let known = self.0.iter().position(|note| note.document.is_empty() && note.what == what);
        let at = known.unwrap_or_else(|| {
            self.0.push(Note {
                document: String::new(),
                what,
                names: Vec::new(),
                has_more_names: false,
                count: 0,
                line,
            });
            self.0.len() - 1
        });
        self.0[at].count += 1;
        &mut self.0[at]
    }

    /// Adds the notes about a document.
    pub(crate) fn append(&mut self, document: &str, notes: Self) {
        self.0.extend(notes.0.into_iter().map(|note| {
            let is_named = !note.document.is_empty();
            Note { document: if is_named { note.document } else { document.to_owned() }, ..note }
        }));
    }

    /// Adds the notes about another part of the same document.
    pub(crate) fn join(&mut self, notes: Self) {
        for note in notes.0 {
            let (count, line) = (note.count, note.line);
            let known = self.note(note.what, line);
            known.count += count - 1;
            for name in note.names {
                match known.names.contains(&name) {
                    true => {}
                    false if known.names.len() < NAMES => known.names.push(name),
                    false => known.has_more_names = true,
                }
            }
        }
    }

    /// Returns each note as a sentence.
    pub(crate) fn sentences(&self) -> Vec<String> {
        self.0.iter().map(Note::sentence).collect()
    }
}

impl Note {
    fn sentence(&self) -> String {
        let Self { document, what, names, has_more_names, count, line } = self;
        let names = match names.is_empty() {
            true => String::new(),
            false => {
                format!(": {}{}", names.join(", "), if *has_more_names { ", …" } else { "" })
            }
        };
        let place = match (line, count) {
            (None, _) => String::new(),
            (Some(line), 1) => format!(" (line {line})"),
            (Some(line), count) => format!(" ({count} occurrences, the first in line {line})"),
        };
        format!("{document}: {what}{names}{place}")
    }
}
