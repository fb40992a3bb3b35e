//! The ignore files of every level, in ripgrep's order of precedence.
//!
//! For one kind of file, the nearest directory with a rule decides; `.rgignore` overrides
//! `.ignore`, which overrides `.gitignore`, which overrides `.git/info/exclude`. Files above a
//! repository do not affect its git ignore rules.

use std::io::Read;
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use kitbag_workspace::Kind;

use crate::entry::Entry;
use crate::files::Directory;

/// Maximum number of bytes of an ignore file that are read.
const IGNORE_FILE_BYTES: u64 = 1 << 20;

/// The file with a clone's own ignore rules.
const EXCLUDE: &str = ".git/info/exclude";

/// The kinds of ignore files, by precedence.
#[derive(Clone, Copy)]
enum Source {
    Ripgrep,
    Ignore,
    Git,
    Exclude,
}

const SOURCES: [(Source, &str); 4] = [
    (Source::Ripgrep, ".rgignore"),
    (Source::Ignore, ".ignore"),
    (Source::Git, ".gitignore"),
    (Source::Exclude, EXCLUDE),
];

/// The ignore files of a directory and of its parents.
pub(crate) struct Level {
    above: Option<Rc<Self>>,
    /// As in [`SOURCES`]. Empty for a missing file.
    matchers: [Gitignore; SOURCES.len()],
    /// A repository starts at this directory.
    is_repository: bool,
}

impl Level {
    /// Creates the level of a directory. `path` is the path below the root, without a trailing `/`.
    pub(crate) fn of(
        above: Option<Rc<Self>>,
        directory: &Directory,
        path: &str,
        entries: &[Entry],
    ) -> Option<Rc<Self>> {
        let is_repository = entries.iter().any(|entry| entry.name == ".git");
        let has =
            |name: &str| entries.iter().any(|entry| entry.kind == Kind::File && entry.name == name);
        let mut has_any = is_repository;
        let matchers = SOURCES.map(|(source, name)| {
            let is_there = match source {
                Source::Exclude => is_repository,
                _ => has(name),
            };
            if !is_there {
                return Gitignore::empty();
            }
            has_any = true;
            read(directory, path, name)
        });
        if !has_any {
            return above;
        }
        Some(Rc::new(Self { above, matchers, is_repository }))
    }

    /// Returns the decision of this level's files and those above about a path below the root.
    pub(crate) fn matched(&self, path: &str, is_directory: bool) -> Match<()> {
        let mut decided: [Match<()>; SOURCES.len()] = [const { Match::None }; SOURCES.len()];
        let mut in_repository = true;
        let mut level = Some(self);
        while let Some(this) = level {
            for (index, (source, _)) in SOURCES.iter().enumerate() {
                let counts = in_repository || matches!(source, Source::Ripgrep | Source::Ignore);
                if counts && decided[index].is_none() {
                    decided[index] = this.matchers[index].matched(path, is_directory).map(drop);
                }
            }
            in_repository &= !this.is_repository;
            level = this.above.as_deref();
        }
        decided.into_iter().find(|decided| !decided.is_none()).unwrap_or(Match::None)
    }
}

/// Reads one ignore file. Invalid globs are skipped, as in ripgrep.
fn read(directory: &Directory, path: &str, name: &str) -> Gitignore {
    let mut content = Vec::new();
    let Ok(file) = directory.file(name, false) else { return Gitignore::empty() };
    if file.take(IGNORE_FILE_BYTES).read_to_end(&mut content).is_err() {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(path);
    let text = String::from_utf8_lossy(&content);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // An error affects only this line.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
