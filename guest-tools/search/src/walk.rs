//! Walks the tree below a place directory by directory, without skipped entries.
//!
//! The files of a directory come first, then its directories, each by name, so that the order is
//! deterministic. Links are not followed.

use std::io;
use std::ops::ControlFlow;
use std::rc::Rc;

use globset::GlobSet;
use ignore::Match;
use ignore::overrides::Override;
use ignore::types::Types;
use kitbag_workspace::{Kind, Listed};

use crate::entry::Entry;
use crate::files::Directory;
use crate::ignore_files::Level;
use crate::place::{SearchRoot, in_words, shown};

/// Maximum number of unreadable paths that are named.
const NAMED_FAILURES: usize = 3;

/// The skipped entries, as in ripgrep, except for globs and types.
pub(crate) struct Filter {
    /// The globs of the arguments. They restrict the walk: hidden and ignored entries are still
    /// skipped, except those in [`hidden_names`](Self::hidden_names).
    pub(crate) globs: Override,
    /// The parts of the globs that start with a dot, and so select hidden names.
    pub(crate) hidden_names: GlobSet,
    pub(crate) types: Types,
    /// True to include dot files.
    pub(crate) hidden: bool,
    /// True to include ignored files.
    pub(crate) ignored: bool,
    /// The number of directory levels. 1 is the start itself.
    pub(crate) depth: usize,
}

/// A file of a walk.
pub(crate) struct Found<'a> {
    /// The directory of the file.
    pub(crate) directory: &'a Directory,
    /// The name, or the path if the walk started at a file.
    pub(crate) name: &'a str,
    /// The path below the root.
    pub(crate) path: &'a str,
    pub(crate) kind: Kind,
    /// The walk started at this file.
    pub(crate) is_named: bool,
}

/// The skipped entries of a walk.
#[derive(Default)]
pub(crate) struct PassedOver {
    /// Files and directories that look like secrets.
    pub(crate) secrets: u64,
    /// Files that are binary.
    pub(crate) binary: u64,
    /// Names that are not UTF-8.
    pub(crate) unnamed: u64,
    /// The number of unreadable paths.
    pub(crate) failures: u64,
    /// The first unreadable paths, each with the reason.
    pub(crate) named_failures: Vec<String>,
}

/// A directory that has not been read yet.
struct Pending {
    path: String,
    level: Option<Rc<Level>>,
    depth: usize,
}

impl Filter {
    /// Returns true if an entry is included.
    fn passes(&self, level: Option<&Level>, path: &str, name: &str, kind: Kind) -> bool {
        let is_directory = kind == Kind::Directory;
        if self.globs.matched(path, is_directory).is_ignore()
            || self.types.matched(path, is_directory).is_ignore()
        {
            return false;
        }
        match level.map_or(Match::None, |level| level.matched(path, is_directory)) {
            Match::Ignore(()) => false,
            Match::Whitelist(()) => true,
            Match::None => {
                self.hidden || !name.starts_with('.') || self.hidden_names.is_match(name)
            }
        }
    }

    /// Returns true if globs or types select a directory itself.
    fn names_directory(&self, path: &str) -> bool {
        let by_glob =
            self.globs.num_whitelists() == 0 || self.globs.matched(path, true).is_whitelist();
        by_glob && self.types.is_empty()
    }
}

impl PassedOver {
    /// Notes a path that could not be read, unless it was removed meanwhile.
    pub(crate) fn failure(&mut self, path: &str, error: &io::Error) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        self.failures += 1;
        if self.named_failures.len() < NAMED_FAILURES {
            self.named_failures.push(format!("{} {}", shown(path), in_words(error)));
        }
    }
}

/// Walks until `visit` breaks. Files and other entries are visited if they pass, directories only
/// if globs and types select them.
pub(crate) fn walk(
    place: &SearchRoot,
    filter: &Filter,
    visit: &mut dyn FnMut(Found<'_>, &mut PassedOver) -> ControlFlow<()>,
) -> io::Result<PassedOver> {
    let mut passed = PassedOver::default();
    if !place.is_directory {
        let path = &*place.path;
        let directory = &place.root;
        let _ = visit(
            Found { directory, name: path, path, kind: Kind::File, is_named: true },
            &mut passed,
        );
        return Ok(passed);
    }
    let level = if filter.ignored { None } else { levels_above(place)? };
    let mut pending = vec![Pending { path: place.path.clone(), level, depth: 1 }];
    while let Some(Pending { path, level, depth }) = pending.pop() {
        let is_start = depth == 1;
        let (directory, mut entries) = match read(&place.root, &path, is_start) {
            Ok((directory, entries, listed)) => {
                passed.unnamed += listed.unnamed;
                (directory, entries)
            }
            Err(error) if is_start => return Err(error),
            Err(error) => {
                passed.failure(&path, &error);
                continue;
            }
        };
        let level = match filter.ignored {
            true => None,
            false => Level::of(level, &directory, &path, &entries),
        };
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let first_below = pending.len();
        let mut entry_path = path;
        if !entry_path.is_empty() {
            entry_path.push('/');
        }
        let base = entry_path.len();
        for entry in &entries {
            let name = &entry.name;
            entry_path.truncate(base);
            entry_path.push_str(name);
            let path = &*entry_path;
            if entry.kind == Kind::Secret {
                passed.secrets += u64::from(!filter.globs.matched(path, false).is_ignore());
                continue;
            }
            if !filter.passes(level.as_deref(), path, name, entry.kind) {
                continue;
            }
            if entry.kind == Kind::Directory {
                if depth < filter.depth {
                    let path = path.to_owned();
                    pending.push(Pending { path, level: level.clone(), depth: depth + 1 });
                }
                if !filter.names_directory(path) {
                    continue;
                }
            }
            let kind = entry.kind;
            let found = Found { directory: &directory, name, path, kind, is_named: false };
            if visit(found, &mut passed).is_break() {
                return Ok(passed);
            }
        }
        // Reversed, since the last one is taken first.
        pending[first_below..].reverse();
    }
    Ok(passed)
}

/// Opens and lists a directory.
fn read(root: &Directory, path: &str, follow: bool) -> io::Result<(Directory, Vec<Entry>, Listed)> {
    let path = if path.is_empty() { "." } else { path };
    let directory = root.directory(path, follow)?;
    let mut entries = Vec::new();
    let listed = directory.list(|name, kind| {
        entries.push(Entry { name: name.to_owned(), kind });
        ControlFlow::Continue(())
    })?;
    Ok((directory, entries, listed))
}

/// Reads the ignore files of the parent directories of the place, from the root down.
fn levels_above(place: &SearchRoot) -> io::Result<Option<Rc<Level>>> {
    let ends = place.path.match_indices('/').map(|(end, _)| end);
    let above = (!place.path.is_empty()).then_some(0).into_iter().chain(ends);
    let mut level = None;
    for end in above {
        let path = &place.path[..end];
        let (directory, entries, _) = read(&place.root, path, true)?;
        level = Level::of(level, &directory, path, &entries);
    }
    Ok(level)
}
