//! The guard: paths that no tool may change with any grant, and names that look like secrets.
//!
//! Configuration names the paths. The guard compares them with the entry that a call is about to
//! change: by identity, and by folded name in the directory, since a missing entry has no identity.

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
use crate::protected_names::ProtectedNames;
use crate::secrets::SecretNames;
use crate::sys::{FileKind, OpenAs, Stat, id_of_metadata};

/// The guarded paths of a configuration. Paths are absolute and need not exist.
#[derive(Clone, Debug, Default)]
pub struct GuardedPaths {
    /// Directories of kitbag, such as the cache. Nothing in them may be changed. Files are allowed
    /// here as well.
    pub own: Vec<PathBuf>,
    /// Paths that tools may not even read: kitbag's secrets. Files, and directories with everything
    /// in them.
    pub private: Vec<PathBuf>,
    /// Files that may not be changed: configuration, manifests, components.
    pub files: Vec<PathBuf>,
    /// Directories of documents that others read. Only a tool with a grant that names the
    /// directory, or a directory in it, may change them.
    pub topics: Vec<PathBuf>,
    /// Granted directories: their contents may change, but they may not be moved.
    pub granted: Vec<PathBuf>,
    /// The directories that any tool may write.
    pub writable: Vec<FileId>,
}

/// The guard of one configuration. It looks up paths only when a call changes something.
#[derive(Debug, Default)]
pub struct Guard {
    paths: GuardedPaths,
    secrets: SecretNames,
    /// Kitbag's paths, including the default locations of the account: as written and canonical.
    own: OnceLock<[Vec<PathBuf>; 2]>,
    /// Private paths, including the default locations of the account, as written.
    private: OnceLock<Vec<PathBuf>>,
    /// The table of private paths that the last call built.
    private_table: Mutex<Arc<GuardTable>>,
    /// Links with sealed names below each directory that any tool may write. Each directory is
    /// searched once.
    links: Mutex<HashMap<LinkSearch, Arc<[PathBuf]>>>,
}

/// A searched directory and the protected names of the search.
type LinkSearch = (PathBuf, ProtectedNames);

/// A directory that a call may write.
#[derive(Clone, Debug)]
pub struct Writable {
    /// The canonical path.
    pub path: PathBuf,
    /// The identity of the directory.
    pub id: FileId,
    /// Names in the directory that may not be changed.
    pub protected: ProtectedNames,
}

/// The guarded identities at the time of one call.
#[derive(Debug, Default)]
pub struct GuardTable {
    /// The directories that the call may write.
    roots: HashSet<FileId>,
    /// Files and directories that may not be changed, including their contents.
    sealed: HashSet<FileId>,
    /// Files and directories that may be neither moved nor removed.
    pinned: HashSet<FileId>,
    /// Entries that may not be changed, by directory and folded name. The flag tells whether the
    /// entry's target may not be changed either.
    entries: HashMap<FileId, HashMap<String, bool>>,
    /// Missing directories on the way to guarded paths. Their entries are not in the table yet.
    missing: HashSet<PathBuf>,
    /// The same entries, by directory and folded name.
    absent: Vec<(FileId, String)>,
    /// Paths that were looked up, without links in their parents. In a finished table, the paths
    /// that show whether the table is still valid. Stored as strings, which take less memory than
    /// components; none contains `.` or `//`.
    known: HashMap<OsString, PathContent>,
    kept: OwnFiles,
}

/// The private identities at the time of one call.
#[derive(Debug, Default)]
pub struct PrivateTable {
    names: Arc<GuardTable>,
    kept: OwnFiles,
}

/// The files in kitbag's directories. They are looked up once, and only for a file with several
/// links.
#[derive(Debug, Default)]
struct OwnFiles {
    /// Canonical paths.
    places: Arc<[PathBuf]>,
    /// `None`: too many files to compare.
    files: OnceLock<Option<HashSet<FileId>>>,
}

/// The entry at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathContent {
    /// A link and its target.
    Link(PathBuf),
    /// An entry that is not a link.
    There(FileId),
    /// No entry.
    Missing,
}

/// A change to a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// A directory is created where no entry exists.
    NewDirectory,
    /// The entry is created or replaced.
    Put,
    /// The entry is moved away or removed.
    Remove,
    /// The contents or metadata of the entry's target are changed.
    Content,
}

impl Writable {
    /// Creates a writable directory that protects the names of the built-in list.
    pub fn new(path: PathBuf, id: FileId) -> Self {
        Self { path, id, protected: ProtectedNames::default() }
    }
}

impl Guard {
    /// Creates a guard of these paths.
    pub fn new(paths: GuardedPaths) -> Self {
        Self { paths, ..Self::default() }
    }

    /// Replaces the built-in list of names that look like secrets.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretNames) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the names that look like secrets. No tool opens or changes files with these names,
    /// or files in directories with these names, unless a grant names them.
    pub fn secrets(&self) -> &SecretNames {
        &self.secrets
    }

    /// Returns the guarded path that is or contains a directory. Compares canonical paths only.
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

    /// Returns the private path that is or contains a file or directory. Compares canonical paths
    /// only.
    pub fn private_above(&self, path: &Path) -> Option<PathBuf> {
        let table = self.private_table(|last| last.known.is_empty());
        table.kept.places.iter().find(|private| path.starts_with(private)).cloned()
    }

    /// Looks up the private paths. Reuses the table of the last call if it is still valid.
    pub fn private(&self) -> PrivateTable {
        let names = self.private_table(|last| !last.is_current());
        let kept = OwnFiles { places: Arc::clone(&names.kept.places), files: OnceLock::new() };
        PrivateTable { names, kept }
    }

    /// Returns the private table of the last call, or a new one if `is_looked_up` is true for it.
    /// Concurrent calls look up paths at the same time.
    fn private_table(&self, is_looked_up: impl FnOnce(&GuardTable) -> bool) -> Arc<GuardTable> {
        let lock = || self.private_table.lock().unwrap_or_else(PoisonError::into_inner);
        let last = Arc::clone(&lock());
        if !is_looked_up(&last) {
            return last;
        }
        let mut table = GuardTable::default();
        let named = self.private_paths().iter().map(|path| table.name(path, true));
        let named: Vec<_> = named.collect();
        // A path inside another private path is hidden with it.
        let is_outer =
            |path: &&PathBuf| !named.iter().any(|outer| outer != *path && path.starts_with(outer));
        table.kept.places = named.iter().filter(is_outer).cloned().collect();
        table.keep_ends();
        let table = Arc::new(table);
        *lock() = Arc::clone(&table);
        table
    }

    /// Returns the first link that a tool could have created: a link in a directory that any tool
    /// may write.
    pub fn writable_link<'a>(&self, links: &'a [Link]) -> Option<&'a Link> {
        let is_writable = |link: &&Link| {
            let mut within = link.path.parent().into_iter().flat_map(Path::iter);
            link.within.iter().any(|directory| self.paths.writable.contains(directory))
                && !within.any(|name| is_guarded(&name.to_string_lossy()))
        };
        links.iter().find(is_writable)
    }

    /// Looks up the paths that this call may not change. `writable` are the directories that the
    /// call may write.
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

    /// Returns kitbag's paths, as written and canonical.
    fn own(&self) -> &[Vec<PathBuf>; 2] {
        self.own.get_or_init(|| {
            let own = with_those_of_account(&self.paths.own, places_of_account());
            let canonical = own.iter().map(|path| canonical(path)).collect();
            [own, canonical]
        })
    }

    /// Returns the private paths as written.
    fn private_paths(&self) -> &[PathBuf] {
        let private = || with_those_of_account(&self.paths.private, private_places_of_account());
        self.private.get_or_init(private)
    }

    /// Returns the links with sealed names below a directory.
    fn links(&self, top: &Writable) -> Arc<[PathBuf]> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let Writable { path, id: _, protected } = top;
        let found = links.entry((path.clone(), protected.clone()));
        Arc::clone(found.or_insert_with(|| sealed_links(path, protected).into()))
    }
}

/// Merges paths of a configuration with those of the account.
fn with_those_of_account(paths: &[PathBuf], of_account: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut paths: Vec<_> = paths.iter().cloned().chain(of_account).collect();
    // Usually the account's paths are also those of the configuration.
    paths.sort_unstable();
    paths.dedup();
    paths
}

impl PrivateTable {
    /// Returns true if an entry is private: by its name, by its identity, or as another hard link
    /// to a private file. `found` is the existing entry, if known.
    pub fn hides(&self, directory: FileId, name: &str, found: Option<&Stat>) -> bool {
        let named = self.names.entries.get(&directory).and_then(|names| names.get(&*fold(name)));
        named == Some(&true) || found.is_some_and(|found| self.has(found))
    }

    /// Returns true if a file or directory is private by its identity.
    pub fn has(&self, found: &Stat) -> bool {
        self.names.sealed.contains(&found.id()) || self.kept.has(found)
    }

    /// Returns true if this entry was missing when the table was built, and is on the way to a
    /// private path: if it exists now, the table lacks its entries.
    pub fn lacks(&self, directory: FileId, name: &str) -> bool {
        let mut absent = self.names.absent.iter().filter(|(parent, _)| *parent == directory);
        absent.any(|(_, absent)| *absent == *fold(name))
    }
}

impl GuardTable {
    /// Returns true if the directory is granted to the call.
    pub fn is_root(&self, directory: FileId) -> bool {
        self.roots.contains(&directory)
    }

    /// Returns true if the directory's own identity forbids every change in it.
    pub fn seals(&self, directory: &File, id: FileId) -> bool {
        self.sealed.contains(&id) || looks_like_repository(directory)
    }

    /// Returns true if an entry of a directory may not be changed in this way. `found` is the
    /// target of the existing entry.
    pub fn forbids(
        &self,
        directory: FileId,
        name: &str,
        found: Option<FileId>,
        change: EntryChange,
    ) -> bool {
        let named = self.entries.get(&directory).and_then(|names| names.get(&*fold(name)));
        let is_sealed = found.is_some_and(|id| self.sealed.contains(&id)) || named == Some(&true);
        let is_pinned = || named.is_some() || found.is_some_and(|id| self.pinned.contains(&id));
        // A directory on the way to a guarded path may be created but not moved. Its contents are
        // guarded; see `is_outdated`.
        is_guarded(name)
            || is_sealed
            || matches!(change, EntryChange::Put | EntryChange::Remove) && is_pinned()
    }

    /// Returns true if the file is another hard link to a file of kitbag, such as an entry of the
    /// cache.
    pub fn is_kept(&self, found: &Stat) -> bool {
        self.kept.has(found)
    }

    /// Returns true if every path that was looked up is unchanged. An empty table is never current.
    fn is_current(&self) -> bool {
        !self.known.is_empty()
            && self.known.iter().all(|(path, known)| look(path.as_ref()).0 == *known)
    }

    /// Returns true if a missing directory exists now, so that the table lacks its entries.
    pub fn is_outdated(&self) -> bool {
        self.missing.iter().any(|path| path.symlink_metadata().is_ok())
    }

    /// Returns true if changing an entry would make its directory look like a repository.
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

    /// Keeps only the lookups that show whether the table is still valid: links, guarded paths and
    /// their parent directories. If another part of a path changes, these change as well.
    fn keep_ends(&mut self) {
        let mut ends = Vec::new();
        for place in &*self.kept.places {
            let parent = place.parent().unwrap_or(place);
            ends.push(parent.as_os_str());
            // A missing directory has no entries.
            if self.known.get(parent.as_os_str()) != Some(&PathContent::Missing) {
                ends.push(place.as_os_str());
            }
        }
        self.known.retain(|path, known| {
            matches!(known, PathContent::Link(_)) || ends.contains(&path.as_os_str())
        });
    }

    /// Adds a path: pins every directory and link on it, and seals its target, even if the target
    /// does not exist. Returns the canonical path.
    fn name(&mut self, path: &Path, is_sealed: bool) -> PathBuf {
        // A known path has no links in its parents, so it is not resolved again.
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

    /// Pins an entry. If it is the last one of a sealed path, seals its name as well. Returns the
    /// target of a link.
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
                self.absent.push((parent, fold(&name.to_string_lossy()).into_owned()));
            }
            let names = self.entries.entry(parent).or_default();
            let name = fold(&name.to_string_lossy()).into_owned();
            *names.entry(name).or_default() |= is_last && is_sealed;
        }
        match known {
            PathContent::Link(target) => Some(target),
            PathContent::There(_) | PathContent::Missing => None,
        }
    }

    /// Returns the identity of the entry at a path without links.
    fn there(&self, path: &Path) -> Option<FileId> {
        match self.known.get(path.as_os_str()) {
            Some(PathContent::There(id)) => Some(*id),
            Some(PathContent::Link(_) | PathContent::Missing) => None,
            None => fs::symlink_metadata(path).ok().as_ref().map(id_of_metadata),
        }
    }
}

impl OwnFiles {
    /// Returns true if the file is another hard link to one of the files.
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

/// Looks up the entry at a path and its identity.
fn look(path: &Path) -> (PathContent, Option<FileId>) {
    let Ok(found) = fs::symlink_metadata(path) else { return (PathContent::Missing, None) };
    let id = id_of_metadata(&found);
    let known = match found.is_symlink() {
        // The link may have been removed since.
        true => fs::read_link(path).map_or(PathContent::Missing, PathContent::Link),
        false => PathContent::There(id),
    };
    (known, Some(id))
}

/// Returns the bare repository that is or contains a directory.
pub fn repository_above(directory: &Path) -> Option<PathBuf> {
    let looks = |outer: &&Path| {
        open(outer, OpenAs::Handle).is_ok_and(|(directory, _)| looks_like_repository(&directory))
    };
    directory.ancestors().find(looks).map(Path::to_owned)
}

/// Returns true if git could take a directory for a repository.
fn looks_like_repository(directory: &File) -> bool {
    let [head, rest @ ..] = REPOSITORY;
    let is_there = |name: &str| Stat::at(directory, name).is_ok();
    is_there(head) && rest.into_iter().any(is_there)
}

#[cfg(test)]
mod tests;
