//! The one rule of what no tool changes, whatever it is granted, and the names that look
//! like secrets.
//!
//! Configuration names the paths; the rule compares what a call is about to
//! change with them: by identity, and by folded name in the directory, since
//! what does not exist yet has no identity.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kitbag_base::FileId;

use crate::account::{
    files_in, places_of_account, private_places_of_account, program, sealed_links,
};
use crate::git::named_paths;
use crate::names::{REPOSITORY, fold, is_guarded, is_part_of_repository};
use crate::open::{Link, canonical, open, resolve};
use crate::protected::ProtectedNames;
use crate::secrets::SecretNames;
use crate::sys::{FileKind, OpenAs, Stat, id_of_metadata};

/// What a configuration names; absolute paths, which need not exist.
#[derive(Clone, Debug, Default)]
pub struct GuardedPaths {
    /// Directories of kitbag's own, such as the cache: nothing in them is
    /// changed. A file among them is one too.
    pub own: Vec<PathBuf>,
    /// What no tool reads either: kitbag's own secrets. Directories with all in them, and
    /// files.
    pub private: Vec<PathBuf>,
    /// Files that are not changed: configuration, manifests, components.
    pub files: Vec<PathBuf>,
    /// Directories of documents that others read, changed only by a tool that
    /// one of them, or a directory in it, is granted to by name.
    pub topics: Vec<PathBuf>,
    /// Directories that are granted: their contents may change, and they are
    /// not moved.
    pub granted: Vec<PathBuf>,
    /// The directories that some tool may write.
    pub writable: Vec<FileId>,
}

/// What no tool of one configuration changes. Nothing is looked up before a
/// call changes something.
#[derive(Debug, Default)]
pub struct Guard {
    paths: GuardedPaths,
    secrets: SecretNames,
    /// What is kitbag's own, with the usual places of the account; as written, and its
    /// canonical form.
    own: OnceLock<[Vec<PathBuf>; 2]>,
    /// What no tool reads, with the usual places of the account, as written.
    private: OnceLock<Vec<PathBuf>>,
    /// What the last call met of what no tool reads.
    private_table: Mutex<Arc<GuardTable>>,
    /// The links with sealed names below a directory that some tool may write; found once.
    links: Mutex<HashMap<LinkSearch, Arc<[PathBuf]>>>,
}

/// Where links with sealed names were looked for, and which other names were.
type LinkSearch = (PathBuf, ProtectedNames);

/// A directory that a call may write.
#[derive(Clone, Debug)]
pub struct Writable {
    /// Its canonical path.
    pub path: PathBuf,
    /// What it is.
    pub id: FileId,
    /// What in it is not changed.
    pub protected: ProtectedNames,
}

/// A guard as one call meets it, with the identities of that moment.
#[derive(Debug, Default)]
pub struct GuardTable {
    /// The directories that the call may write.
    roots: HashSet<FileId>,
    /// What is not changed, and nothing in it.
    sealed: HashSet<FileId>,
    /// What is neither moved nor removed.
    pinned: HashSet<FileId>,
    /// The entries of directories that are not changed, by folded name; and
    /// whether neither is what they lead to.
    entries: HashMap<FileId, HashMap<String, bool>>,
    /// Directories on the way to what is not changed that were not there. What lies
    /// in them has no entry here yet.
    missing: HashSet<PathBuf>,
    /// Paths that were looked at, without links in what is above them. When the table is made,
    /// those that tell whether it is still true. As text, which takes less than name by name:
    /// none of them has a `.` or `//`.
    known: HashMap<OsString, PathContent>,
    kept: OwnFiles,
}

/// What no tool reads as one call meets it, with the identities of that moment.
#[derive(Debug, Default)]
pub struct PrivateTable {
    names: Arc<GuardTable>,
    kept: OwnFiles,
}

/// The files in what is kitbag's own, which are looked up once, and only for a file that
/// has a second name.
#[derive(Debug, Default)]
struct OwnFiles {
    /// Canonical paths.
    places: Arc<[PathBuf]>,
    /// `None`: too many to tell.
    files: OnceLock<Option<HashSet<FileId>>>,
}

/// What lies at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathContent {
    /// A link, and its text.
    Link(PathBuf),
    /// What is none.
    There(FileId),
    /// Nothing.
    Missing,
}

/// What is changed of an entry in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// A directory is made where nothing is.
    NewDirectory,
    /// The entry is made, or put in the place of another.
    Put,
    /// The entry is moved away or removed.
    Remove,
    /// The contents or the metadata of what it leads to.
    Content,
}

impl Writable {
    /// A directory in which the names of the built-in list are not changed.
    pub fn new(path: PathBuf, id: FileId) -> Self {
        Self { path, id, protected: ProtectedNames::default() }
    }
}

impl Guard {
    /// A guard of these paths.
    pub fn new(paths: GuardedPaths) -> Self {
        Self { paths, ..Self::default() }
    }

    /// The same, with other names that look like secrets than the built-in list.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretNames) -> Self {
        Self { secrets, ..self }
    }

    /// The names that look like secrets: of files that no tool opens or changes, and of
    /// directories whose files are such, unless a grant names them.
    pub fn secrets(&self) -> &SecretNames {
        &self.secrets
    }

    /// What a directory is or lies in that no tool changes, if so; by its
    /// canonical path alone.
    pub fn guarded_above(&self, directory: &Path) -> Option<PathBuf> {
        let named = directory.iter().position(|name| is_guarded(&name.to_string_lossy()));
        match named {
            Some(end) => Some(directory.iter().take(end + 1).collect()),
            None => {
                let [_, own] = self.own();
                own.iter().find(|own| directory.starts_with(own)).cloned()
            }
        }
    }

    /// What a file or directory is or lies in that no tool reads, if so; by its canonical path
    /// alone.
    pub fn private_above(&self, path: &Path) -> Option<PathBuf> {
        let table = self.private_table(|last| last.known.is_empty());
        table.kept.places.iter().find(|private| path.starts_with(private)).cloned()
    }

    /// Looks up what no call reads. Where all is as the last call met it, that is not put
    /// together again.
    pub fn private(&self) -> PrivateTable {
        let names = self.private_table(|last| !last.is_current());
        let kept = OwnFiles { places: Arc::clone(&names.kept.places), files: OnceLock::new() };
        PrivateTable { names, kept }
    }

    /// The names of what no tool reads, as the last call met them, or looked up anew.
    fn private_table(&self, is_looked_up: impl FnOnce(&GuardTable) -> bool) -> Arc<GuardTable> {
        let mut last = self.private_table.lock().unwrap_or_else(PoisonError::into_inner);
        if is_looked_up(&last) {
            let mut table = GuardTable::default();
            let named = self.private_paths().iter().map(|path| table.name(path, true));
            let named: Vec<_> = named.collect();
            // What lies in another one is hidden with it.
            let is_outer = |path: &&PathBuf| {
                !named.iter().any(|outer| outer != *path && path.starts_with(outer))
            };
            table.kept.places = named.iter().filter(is_outer).cloned().collect();
            table.keep_ends();
            *last = Arc::new(table);
        }
        Arc::clone(&last)
    }

    /// The first of these links that a tool could have made, since it lies in
    /// what some tool may write.
    pub fn writable_link<'a>(&self, links: &'a [Link]) -> Option<&'a Link> {
        let is_writable = |link: &&Link| {
            let mut within = link.path.parent().into_iter().flat_map(Path::iter);
            link.within.iter().any(|directory| self.paths.writable.contains(directory))
                && !within.any(|name| is_guarded(&name.to_string_lossy()))
        };
        links.iter().find(is_writable)
    }

    /// Looks up what this call must not change. `writable` are the directories
    /// that it may write.
    pub fn table(&self, writable: &[Writable]) -> GuardTable {
        let mut table = GuardTable::default();
        let GuardedPaths { own: _, private: _, files, topics, granted, writable: _ } = &self.paths;
        let [own, _] = self.own();
        let kept = own.iter().chain(self.private_paths());
        table.kept.places = kept.map(|path| table.name(path, true)).collect();
        let (program, program_id) = program();
        for path in files.iter().chain(&program) {
            table.name(path, true);
        }
        table.sealed.extend(program_id);
        for top in writable {
            for link in &*self.links(top) {
                table.name(link, true);
            }
            if top.protected.has_built_in() {
                for path in named_paths(&top.path) {
                    table.name(&path, true);
                }
            }
        }
        for topic in topics {
            let is_granted = || {
                let topic = canonical(topic);
                writable.iter().any(|it| it.path.starts_with(&topic))
            };
            table.name(topic, !is_granted());
        }
        for path in granted.iter().chain(writable.iter().map(|it| &it.path)) {
            table.name(path, false);
        }
        for Writable { path, id, protected: _ } in writable {
            table.roots.insert(*id);
            if self.guarded_above(path).is_some() || repository_above(path).is_some() {
                table.sealed.insert(*id);
            }
        }
        table.known.clear();
        table
    }

    /// What is kitbag's own: as written, and its canonical form.
    fn own(&self) -> &[Vec<PathBuf>; 2] {
        self.own.get_or_init(|| {
            let own = with_those_of_account(&self.paths.own, places_of_account());
            let canonical = own.iter().map(|path| canonical(path)).collect();
            [own, canonical]
        })
    }

    /// What no tool reads, as written.
    fn private_paths(&self) -> &[PathBuf] {
        let private = || with_those_of_account(&self.paths.private, private_places_of_account());
        self.private.get_or_init(private)
    }

    /// The links with sealed names below a directory.
    fn links(&self, top: &Writable) -> Arc<[PathBuf]> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let Writable { path, id: _, protected } = top;
        let found = links.entry((path.clone(), protected.clone()));
        Arc::clone(found.or_insert_with(|| sealed_links(path, protected).into()))
    }
}

/// Paths of a configuration and of the account.
fn with_those_of_account(paths: &[PathBuf], of_account: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<_> = paths.iter().cloned().chain(of_account).collect();
    // The account's are those of the configuration as a rule.
    paths.sort_unstable();
    paths.dedup();
    paths
}

impl PrivateTable {
    /// Whether an entry of a directory is one that no tool reads: by its name, by what it is,
    /// and as a further name of a private file. `found` is what is there now, where that is
    /// known.
    pub fn hides(&self, directory: FileId, name: &str, found: Option<&Stat>) -> bool {
        let named = self.names.entries.get(&directory).and_then(|names| names.get(&fold(name)));
        named == Some(&true) || found.is_some_and(|found| self.has(found))
    }

    /// Whether no tool reads what is there, for what it is.
    pub fn has(&self, found: &Stat) -> bool {
        self.names.sealed.contains(&found.id()) || self.kept.has(found)
    }

    /// Whether a directory is there by now without which what it holds could not be
    /// looked up.
    pub fn is_outdated(&self) -> bool {
        self.names.is_outdated()
    }
}

impl GuardTable {
    /// Whether a directory is one of those that the call was granted.
    pub fn is_root(&self, directory: FileId) -> bool {
        self.roots.contains(&directory)
    }

    /// Whether nothing in a directory is changed, for what it is itself.
    pub fn seals(&self, directory: &File, id: FileId) -> bool {
        self.sealed.contains(&id) || looks_like_repository(directory)
    }

    /// Whether an entry of a directory must not be changed so. `found` is what
    /// it leads to now, where there is something.
    pub fn forbids(
        &self,
        directory: FileId,
        name: &str,
        found: Option<FileId>,
        change: EntryChange,
    ) -> bool {
        let named = self.entries.get(&directory).and_then(|names| names.get(&fold(name)));
        let is_sealed = found.is_some_and(|id| self.sealed.contains(&id)) || named == Some(&true);
        let is_pinned = || named.is_some() || found.is_some_and(|id| self.pinned.contains(&id));
        // A directory on the way to what is not changed is made and not moved. What it
        // then holds is not changed; see `is_outdated`.
        is_guarded(name)
            || is_sealed
            || matches!(change, EntryChange::Put | EntryChange::Remove) && is_pinned()
    }

    /// Whether this is a further name of a file that kitbag keeps, such as an entry of the
    /// cache.
    pub fn is_kept(&self, found: &Stat) -> bool {
        self.kept.has(found)
    }

    /// Whether each path that was looked at is what it was. A table of nothing is not.
    fn is_current(&self) -> bool {
        !self.known.is_empty()
            && self.known.iter().all(|(path, known)| look(path.as_ref()).0 == *known)
    }

    /// Whether a directory is there by now without which what it holds could not be
    /// looked up.
    pub fn is_outdated(&self) -> bool {
        self.missing.iter().any(|path| path.symlink_metadata().is_ok())
    }

    /// Whether this change of an entry would let its directory look like a
    /// repository.
    pub fn completes_repository(&self, directory: &File, name: &str) -> bool {
        let [head, rest @ ..] = REPOSITORY;
        let is_there = |name: &str| Stat::at(directory, name).is_ok();
        is_part_of_repository(name)
            && if fold(name) == fold(head) {
                rest.into_iter().any(is_there)
            } else {
                is_there(head)
            }
    }

    /// Keeps of what was looked at what tells whether the places are still there: links, the
    /// places, and the directories that they lie in. Where anything else on the way is another
    /// one, these are too.
    fn keep_ends(&mut self) {
        let mut ends = Vec::new();
        for place in &*self.kept.places {
            let parent = place.parent().unwrap_or(place);
            ends.push(parent.as_os_str());
            // In nothing there is nothing.
            if self.known.get(parent.as_os_str()) != Some(&PathContent::Missing) {
                ends.push(place.as_os_str());
            }
        }
        self.known.retain(|path, known| {
            matches!(known, PathContent::Link(_)) || ends.contains(&path.as_os_str())
        });
    }

    /// Notes a path: every entry that it leads through is pinned, be it a directory or a
    /// link, and where it leads is sealed, also where nothing is there yet. Returns its
    /// canonical form.
    fn name(&mut self, path: &Path, is_sealed: bool) -> PathBuf {
        // What is known has no link above it: it is not gone through again.
        let is_known = |outer: &&Path| {
            matches!(self.known.get(outer.as_os_str()), Some(PathContent::There(_)))
        };
        let start = path.ancestors().skip(1).find(is_known).unwrap_or(Path::new("/")).to_owned();
        let end = resolve(start, path, |entry, is_last| self.pin(entry, is_last, is_sealed));
        if let (true, Some(id)) = (is_sealed, self.there(&end)) {
            self.sealed.insert(id);
        }
        end
    }

    /// Pins an entry, and where it is the last one of a path that is sealed, its name too.
    /// Returns where a link leads.
    fn pin(&mut self, path: &Path, is_last: bool, is_sealed: bool) -> Option<PathBuf> {
        let known = match self.known.get(path.as_os_str()) {
            Some(known) => known.clone(),
            None => {
                let (known, id) = look(path);
                self.pinned.extend(id);
                self.known.insert(path.into(), known.clone());
                known
            }
        };
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
            && let Some(parent) = self.there(parent)
        {
            if !is_last && matches!(known, PathContent::Missing) {
                self.missing.insert(path.to_owned());
            }
            let names = self.entries.entry(parent).or_default();
            *names.entry(fold(&name.to_string_lossy())).or_default() |= is_last && is_sealed;
        }
        match known {
            PathContent::Link(target) => Some(target),
            PathContent::There(_) | PathContent::Missing => None,
        }
    }

    /// What lies at a path that has no links.
    fn there(&self, path: &Path) -> Option<FileId> {
        match self.known.get(path.as_os_str()) {
            Some(PathContent::There(id)) => Some(*id),
            Some(PathContent::Link(_) | PathContent::Missing) => None,
            None => fs::symlink_metadata(path).ok().as_ref().map(id_of_metadata),
        }
    }
}

impl OwnFiles {
    /// Whether this is a further name of one of the files.
    fn has(&self, found: &Stat) -> bool {
        found.kind() == FileKind::File
            && found.link_count() > 1
            && self
                .files
                .get_or_init(|| files_in(&self.places))
                .as_ref()
                .is_none_or(|files| files.contains(&found.id()))
    }
}

/// Looks up what lies at a path, and its identity.
fn look(path: &Path) -> (PathContent, Option<FileId>) {
    let Ok(found) = fs::symlink_metadata(path) else { return (PathContent::Missing, None) };
    let id = id_of_metadata(&found);
    let known = match found.is_symlink() {
        // One that was just removed leads nowhere.
        true => fs::read_link(path).map_or(PathContent::Missing, PathContent::Link),
        false => PathContent::There(id),
    };
    (known, Some(id))
}

/// The repository that a directory is or lies in, where it is one of those that
/// have no `.git`.
pub fn repository_above(directory: &Path) -> Option<PathBuf> {
    let looks = |outer: &&Path| {
        open(outer, OpenAs::Handle).is_ok_and(|(directory, _)| looks_like_repository(&directory))
    };
    directory.ancestors().find(looks).map(Path::to_owned)
}

/// Whether git might take a directory for a repository.
fn looks_like_repository(directory: &File) -> bool {
    let [head, rest @ ..] = REPOSITORY;
    let is_there = |name: &str| Stat::at(directory, name).is_ok();
    is_there(head) && rest.into_iter().any(is_there)
}

#[cfg(test)]
mod tests;
