//! The granted directories of a call. They are opened without following links when the guest first
//! asks for them, and checked. Entries that look like secrets are opened and changed only if a
//! grant names them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_base::text::shown;
use kitbag_fs_guard::{
    EntryChange, Guard, GuardTable, OpenAs, OpenError, PrivateTable, ProtectedNames, SecretNames,
    Stat, Writable, canonical, open,
};
use kitbag_glob::Include;
use kitbag_policy::{Access, DirectoryGrant, FileRefusal, Grants, GuestPath, RefusedFile};
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, OpenMode};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::activity::FileActivity;
use crate::call::refusals::Refusals;
use crate::error::CallError;

/// Number of refused files that a call remembers, for messages to a person.
const REFUSED: usize = 5;

pub(crate) struct CallDirectories {
    grants: Arc<Grants>,
    /// The directories, after they have been opened.
    preopens: Vec<Preopen>,
    is_open: bool,
    /// Places and identities of the directories that the guest has open, by handle.
    open: HashMap<u32, (GuestPlace, FileId)>,
    files: HashMap<u32, GuestPlace>,
    /// Files that the guest was refused, at most [`REFUSED`].
    refused: Vec<RefusedFile>,
    refusals: Refusals,
    pub(super) touched: FileActivity,
    /// True if the guest asked for its directories and there are none.
    is_missed: bool,
    made: HashSet<FileId>,
    /// The granted directories that the guest may write.
    writable: Vec<Writable>,
    guard: Arc<Guard>,
    /// Protected entries of those directories, from the first change on.
    table: Option<GuardTable>,
    private: PrivateTable,
    /// True if the directory at the root of the call is also `/`, at which relative paths begin.
    /// Only commands have them.
    pub(crate) has_relative_paths: bool,
}

pub(super) struct Preopen {
    pub(super) directory: Dir,
    pub(super) id: FileId,
    pub(super) guest: GuestPath,
    host: PathBuf,
    include: Include,
    protected: ProtectedNames,
}

/// Location of an open directory: the names that the guest went through, with all links followed.
#[derive(Clone, Debug)]
pub(super) struct GuestPlace {
    preopen: usize,
    /// Path within the granted directory, empty for the granted directory itself.
    path: String,
    /// True if one of the names on that path looks like a secret.
    looks_secret: bool,
}

impl GuestPlace {
    pub(super) fn granted(preopen: usize) -> Self {
        Self { preopen, path: String::new(), looks_secret: false }
    }

    /// Returns the last name on the path. `None` for the granted directory itself.
    fn name(&self) -> Option<&str> {
        self.path.rsplit('/').next().filter(|name| !name.is_empty())
    }

    pub(super) fn join<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        secrets: &SecretNames,
    ) -> Self {
        let mut place = self.clone();
        for name in names.into_iter().filter(|name| *name != ".") {
            place.looks_secret |= secrets.matches_in(place.name(), name);
            if !place.path.is_empty() {
                place.path.push('/');
            }
            place.path.push_str(name);
        }
        place
    }

    /// Returns the target of a symbolic link by its text. The text must stay in the granted
    /// directory and go up only at its beginning.
    fn linked(&self, link: &str, secrets: &SecretNames) -> Self {
        let mut above = self.path.rsplit_once('/').map_or("", |(above, _)| above);
        let mut names = Vec::new();
        for name in link.split('/').filter(|name| !name.is_empty()) {
            match name {
                ".." => above = above.rsplit_once('/').map_or("", |(above, _)| above),
                name => names.push(name),
            }
        }
        let above = above.split('/').filter(|name| !name.is_empty());
        Self::granted(self.preopen).join(above.chain(names), secrets)
    }
}

impl CallDirectories {
    /// Creates the directories of a call with these grants. Opens nothing yet.
    pub(crate) fn new(grants: &Arc<Grants>, guard: &Arc<Guard>) -> Self {
        Self {
            grants: Arc::clone(grants),
            preopens: Vec::new(),
            is_open: false,
            open: HashMap::new(),
            files: HashMap::new(),
            refused: Vec::new(),
            refusals: Refusals::default(),
            touched: FileActivity::default(),
            is_missed: false,
            made: HashSet::new(),
            writable: Vec::new(),
            guard: Arc::clone(guard),
            table: None,
            private: PrivateTable::default(),
            has_relative_paths: false,
        }
    }

    /// Returns the index of the directory at which relative paths begin. `None` if its path is `/`,
    /// because they begin there anyway.
    pub(super) fn working_directory(&self) -> Option<usize> {
        let root = self.grants.root();
        let is_root = |preopen: &Preopen| preopen.guest.as_str() == root;
        let has_relative_paths = self.has_relative_paths && root != "/";
        has_relative_paths.then(|| self.preopens.iter().position(is_root)).flatten()
    }

    /// Returns the directories of the call, and opens them if necessary.
    ///
    /// # Errors
    ///
    /// [`CallError::Denied`] for a directory that does not exist, has been replaced since it was
    /// granted, or must not be granted.
    pub(super) fn preopens(&mut self) -> Result<&[Preopen], CallError> {
        let grants = Arc::clone(&self.grants);
        self.is_missed |= grants.directories.is_empty();
        if !self.is_open {
            self.open(&grants.directories)?;
            self.is_open = true;
        }
        Ok(&self.preopens)
    }

    fn open(&mut self, grants: &[DirectoryGrant]) -> Result<(), CallError> {
        let guard = Arc::clone(&self.guard);
        if !grants.is_empty() {
            self.private = guard.private();
        }
        for grant in grants {
            let (perms, open_mode) = match grant.access {
                Access::ReadOnly => (FsPerms::ReadOnly, OpenMode::READ),
                Access::ReadWrite => {
                    deny_guarded(grant, &guard)?;
                    (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE)
                }
            };
            let (directory, stat) = open(&grant.host, OpenAs::Directory).map_err(|error| {
                let advice = match error {
                    OpenError::Link { .. } => "; grant the directory that it leads to",
                    OpenError::Kernel { .. } | OpenError::Io(_) => "",
                };
                denied(grant, &format!("cannot be opened: {error}{advice}"))
            })?;
            let private = guard.private_above(&without_dots(&grant.host));
            if private.is_some() || self.private.has(&stat) {
                let private = private.unwrap_or_else(|| grant.host.clone());
                return Err(denied(
                    grant,
                    &format!(
                        "cannot be granted: no tool may read `{}`, where kitbag keeps secrets; \
                         grant another directory",
                        private.display()
                    ),
                ));
            }
            let id = stat.id();
            if grant.identity.is_some_and(|granted| granted != id) {
                return Err(denied(
                    grant,
                    "was replaced after the configuration was read; if that is intended, restart \
                     kitbag",
                ));
            }
            let protected = ProtectedNames::of_grant(grant.protected.as_deref());
            let protected = protected.map_err(|name| {
                denied(grant, &format!("protects `{}`, which is not a name", shown(name)))
            })?;
            if grant.access == Access::ReadWrite {
                let protected = protected.clone();
                self.writable.push(Writable { path: grant.host.clone(), id, protected });
            }
            let include = Include::new(&grant.include).map_err(|(glob, reason)| {
                denied(grant, &format!("includes `{}`, which is not a glob: {reason}", shown(glob)))
            })?;
            self.preopens.push(Preopen {
                directory: Dir::new(directory, perms, open_mode, true),
                id,
                guest: grant.guest.clone(),
                host: grant.host.clone(),
                include,
                protected,
            });
        }
        Ok(())
    }

    /// Records the location of a directory that the guest has opened.
    pub(super) fn opened(&mut self, handle: &Resource<Descriptor>, place: GuestPlace, id: FileId) {
        self.open.insert(handle.rep(), (place, id));
    }

    pub(super) fn opened_file(&mut self, handle: &Resource<Descriptor>, place: GuestPlace) {
        self.files.insert(handle.rep(), place);
    }

    pub(super) fn closed(&mut self, handle: &Resource<Descriptor>) {
        self.open.remove(&handle.rep());
        self.files.remove(&handle.rep());
    }

    /// Records a file that was created in this call.
    pub(super) fn made(&mut self, file: FileId) {
        self.made.insert(file);
    }

    pub(super) fn has_made(&self, file: FileId) -> bool {
        self.made.contains(&file)
    }

    /// Returns the location of an open directory. Every directory handle has one.
    pub(super) fn place(&self, handle: &Resource<Descriptor>) -> FsResult<&GuestPlace> {
        self.open_directory(handle).map(|(place, _)| place)
    }

    /// Returns the identity of an open directory.
    pub(super) fn id(&self, handle: &Resource<Descriptor>) -> FsResult<FileId> {
        self.open_directory(handle).map(|(_, id)| *id)
    }

    fn open_directory(&self, handle: &Resource<Descriptor>) -> FsResult<&(GuestPlace, FileId)> {
        self.open.get(&handle.rep()).ok_or_else(|| ErrorCode::BadDescriptor.into())
    }

    /// Returns the location of a path from an open directory.
    pub(super) fn below<'a>(
        &self,
        handle: &Resource<Descriptor>,
        names: impl IntoIterator<Item = &'a str>,
    ) -> FsResult<GuestPlace> {
        Ok(self.place(handle)?.join(names, self.guard.secrets()))
    }

    /// Refuses a symbolic link whose text leads to a secret.
    pub(super) fn refuse_link(&mut self, place: &GuestPlace, link: &str) -> FsResult<()> {
        let target = place.linked(link, self.guard.secrets());
        self.refuse_secret(&target, false)
    }

    /// Returns true if a place looks like a secret, or is in a directory that does, and no grant
    /// names it.
    pub(super) fn is_secret(&self, place: &GuestPlace, is_directory: bool) -> bool {
        if !place.looks_secret {
            return false;
        }
        let secrets = self.guard.secrets();
        // Any grant may name the secret, not only the one that the guest used.
        let path = self.preopens[place.preopen].host.join(&place.path);
        !self
            .preopens
            .iter()
            .any(|preopen| secrets.are_let_in(&preopen.host, &preopen.include, &path, is_directory))
    }

    pub(super) fn is_secret_in(&self, place: &GuestPlace, name: &str, is_directory: bool) -> bool {
        let secrets = self.guard.secrets();
        (place.looks_secret || secrets.matches_in(place.name(), name))
            && self.is_secret(&place.join([name], secrets), is_directory)
    }

    /// Refuses a place if it [`is_secret`](Self::is_secret), and records the refusal.
    pub(super) fn refuse_secret(&mut self, place: &GuestPlace, is_directory: bool) -> FsResult<()> {
        if !self.is_secret(place, is_directory) {
            return Ok(());
        }
        self.refuse(place, FileRefusal::Secret)
    }

    /// Looks up the private paths again if an entry on the way to one of them was missing at the
    /// start of the call and exists now: `existing` are names on a path, each with its directory.
    ///
    /// The private paths are otherwise looked up once per call. A directory that is moved to a
    /// private path during a call, while the guest has it open under its old path, is therefore
    /// private from the next call on. No tool can move it there.
    pub(super) fn renew_private<'a>(
        &mut self,
        existing: impl IntoIterator<Item = (FileId, &'a str)>,
    ) {
        let mut existing = existing.into_iter();
        if existing.any(|(directory, name)| self.private.lacks(directory, name)) {
            self.private = self.guard.private();
        }
    }

    /// Refuses a place that no tool may read, and records the refusal. `entries` are the names on
    /// the way to the place and at its end, each with its directory and its current status.
    pub(super) fn refuse_private<'a>(
        &mut self,
        place: &GuestPlace,
        entries: impl IntoIterator<Item = (FileId, &'a str, Option<&'a Stat>)>,
    ) -> FsResult<()> {
        let mut entries = entries.into_iter();
        let is_private = entries.any(|(parent, name, found)| self.is_private(parent, name, found));
        if is_private { self.refuse(place, FileRefusal::Private) } else { Ok(()) }
    }

    /// Returns true if no tool may read an entry of a directory. `found` is the status of the
    /// entry, if known.
    pub(super) fn is_private(&self, directory: FileId, name: &str, found: Option<&Stat>) -> bool {
        self.private.hides(directory, name, found)
    }

    /// Refuses to change a place through which another program would execute something, or to
    /// create a name that starts with a dot, and records the refusal. A directory that holds such
    /// places can be created by `change` but not moved, since its content is protected by name.
    pub(super) fn refuse_protected(
        &mut self,
        place: &GuestPlace,
        change: EntryChange,
        exists: bool,
    ) -> FsResult<()> {
        let Preopen { host, protected, .. } = &self.preopens[place.preopen];
        if protected.is_empty() {
            return Ok(());
        }
        let replaces = matches!(change, EntryChange::Put | EntryChange::Remove)
            && place.name().is_some_and(|name| protected.are_in(name));
        if replaces || protected.are_on(host, &place.path) {
            return self.refuse(place, FileRefusal::Protected);
        }
        let creates = !exists && matches!(change, EntryChange::NewDirectory | EntryChange::Put);
        let above = place.path.rsplit('/').nth(1);
        match creates && place.name().is_some_and(|name| protected.forbid_new(above, name)) {
            true => self.refuse(place, FileRefusal::NewDotName),
            false => Ok(()),
        }
    }

    pub(super) fn host_path(&self, place: &GuestPlace, is_directory: bool) -> String {
        let host = &self.preopens[place.preopen].host;
        let host = host.to_string_lossy();
        let mut path = host.trim_end_matches('/').to_owned();
        for name in place.path.split('/').filter(|name| !name.is_empty()) {
            path.extend(["/", name]);
        }
        if is_directory || path.is_empty() {
            path.push('/');
        }
        path
    }

    /// Records that a place was refused.
    pub(super) fn note_refused(&mut self, place: &GuestPlace, reason: &'static str) {
        let path = self.host_path(place, false);
        self.refusals.note(DirectoryGrant::KEY, &path, reason);
    }

    /// Records that a change through an open handle was refused.
    pub(super) fn note_refused_handle(&mut self, handle: u32) {
        let directory = || self.open.get(&handle).map(|(place, _)| place);
        let place = self.files.get(&handle).or_else(directory);
        if let Some(place) = place.cloned() {
            self.note_refused(&place, "read-only");
        }
    }

    /// Records that a path was refused, as the guest wrote it relative to an open directory.
    pub(super) fn note_refused_path(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        reason: &'static str,
    ) {
        let place = match self.place(fd) {
            Ok(place) if !path.starts_with('/') => self.host_path(place, true),
            _ => String::new(),
        };
        self.refusals.note(DirectoryGrant::KEY, &format!("{place}{path}"), reason);
    }

    /// Returns true if the granted directory that holds a place is writable.
    pub(super) fn is_writable(&self, place: &GuestPlace) -> bool {
        self.preopens[place.preopen].directory.perms == FsPerms::ReadWrite
    }

    /// Refuses a place, and records the refusal.
    fn refuse(&mut self, place: &GuestPlace, why: FileRefusal) -> FsResult<()> {
        let reason = match why {
            FileRefusal::Secret => "secret",
            FileRefusal::Private => "private",
            FileRefusal::Protected => "protected",
            FileRefusal::NewDotName => "dot-name",
        };
        self.note_refused(place, reason);
        let directory = self.preopens[place.preopen].guest.clone();
        let refused = RefusedFile { directory, path: place.path.clone(), why };
        if self.refused.len() < REFUSED && !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
        Err(ErrorCode::NotPermitted.into())
    }

    /// Refuses to move a directory whose content would no longer look like a secret elsewhere.
    pub(super) fn refuse_store(&mut self, place: &GuestPlace, directory: &File) -> FsResult<()> {
        let guard = Arc::clone(&self.guard);
        let Some(name) = place.name() else { return Ok(()) };
        for stored in guard.secrets().kept_in(name) {
            if Stat::at(directory, stored).is_ok() {
                self.refuse_secret(&place.join([stored], guard.secrets()), false)?;
            }
        }
        Ok(())
    }

    /// Returns true if a grant names secrets: entries moved there would also be covered by that
    /// grant.
    pub(super) fn names_secrets(&self) -> bool {
        let secrets = self.guard.secrets();
        self.preopens.iter().any(|it| !it.include.is_empty() || secrets.are_in_store(&it.host))
    }

    /// Returns true if the guest asked for its directories and there are none.
    pub(crate) fn is_missed(&self) -> bool {
        self.is_missed
    }

    pub(crate) fn take_refused(&mut self) -> Vec<RefusedFile> {
        std::mem::take(&mut self.refused)
    }

    pub(crate) fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    pub(crate) fn take_touched(&mut self) -> FileActivity {
        std::mem::take(&mut self.touched).finish()
    }

    /// Returns the protected entries of this call. They are looked up at the first change, and
    /// again after the creation of a directory that the table must include.
    pub(super) fn table(&mut self) -> &GuardTable {
        self.table.take_if(|table| table.is_outdated());
        self.table.get_or_insert_with(|| self.guard.table(&self.writable))
    }
}

fn denied(grant: &DirectoryGrant, why: &str) -> CallError {
    let (host, guest) = (grant.host.display(), &grant.guest);
    CallError::Denied(format!("the directory `{host}`, granted as `{guest}`, {why}"))
}

/// Resolves `..` in a path, whose links are resolved.
fn without_dots(path: &Path) -> Cow<'_, Path> {
    match path.components().any(|part| part == Component::ParentDir) {
        true => Cow::Owned(canonical(path)),
        false => Cow::Borrowed(path),
    }
}

/// Refuses write access to a directory that no tool may change.
fn deny_guarded(grant: &DirectoryGrant, guard: &Guard) -> Result<(), CallError> {
    match guard.guarded_above(&without_dots(&grant.host)) {
        None => Ok(()),
        Some(guarded) => Err(denied(
            grant,
            &format!(
                "cannot be granted for writing: no tool may change `{}`; grant another directory, \
                 or use mode `ro`",
                guarded.display(),
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use kitbag_fs_guard::GuardedPaths;

    use super::super::resolve::resolve;
    use super::*;

    /// A call with read access to a directory, in which `missing/key` is private.
    struct Fixture {
        directory: tempfile::TempDir,
        guard: Arc<Guard>,
        call: CallDirectories,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = directory.path().canonicalize().unwrap();
            fs::create_dir(root.join("other")).unwrap();
            fs::write(root.join("other/key"), "x").unwrap();
            let private = vec![root.join("missing/key")];
            let guard = Arc::new(Guard::new(GuardedPaths { private, ..GuardedPaths::default() }));
            let call = Self::call(&root, &guard);
            Self { directory, guard, call }
        }

        fn call(root: &Path, guard: &Arc<Guard>) -> CallDirectories {
            let grant = DirectoryGrant {
                host: root.to_owned(),
                guest: "/workspace".parse().unwrap(),
                access: Access::ReadOnly,
                include: Vec::new(),
                protected: None,
                identity: None,
            };
            let grants = Grants { directories: vec![grant], ..Grants::default() };
            let mut call = CallDirectories::new(&Arc::new(grants), guard);
            call.preopens().unwrap();
            call
        }

        fn path(&self, path: &str) -> PathBuf {
            self.directory.path().canonicalize().unwrap().join(path)
        }

        /// Returns true if the call may not read a path from an open directory.
        fn is_refused(&mut self, start: &File, path: &str) -> bool {
            let id = Stat::of(start).unwrap().id();
            let target = resolve(start, id, path, true).unwrap();
            self.call.renew_private(target.existing());
            let place = GuestPlace::granted(0).join(target.names(), &SecretNames::default());
            self.call.refuse_private(&place, target.entries()).is_err()
        }

        fn root(&self) -> File {
            File::open(self.directory.path()).unwrap()
        }
    }

    #[test]
    fn private_directory_created_during_a_call_is_hidden() {
        let mut fixture = Fixture::new();
        let root = fixture.root();
        assert!(!fixture.is_refused(&root, "other/key"));
        fs::create_dir(fixture.path("missing")).unwrap();
        fs::write(fixture.path("missing/key"), "x").unwrap();
        fs::write(fixture.path("missing/plain"), "x").unwrap();
        assert!(fixture.is_refused(&root, "missing/key"));
        assert!(fixture.is_refused(&File::open(fixture.path("missing")).unwrap(), "key"));
        assert!(!fixture.is_refused(&root, "missing/plain"));
        assert!(!fixture.is_refused(&root, "other/key"));
    }

    #[test]
    fn private_directory_behind_a_new_link_is_hidden() {
        let mut fixture = Fixture::new();
        let root = fixture.root();
        assert!(!fixture.is_refused(&root, "other/key"));
        symlink("other", fixture.path("missing")).unwrap();
        assert!(fixture.is_refused(&root, "missing/key"));
        // Once the link was met, the target is private under its own path as well.
        assert!(fixture.is_refused(&root, "other/key"));
    }

    #[test]
    fn directory_moved_to_a_private_path_is_hidden_later() {
        let mut fixture = Fixture::new();
        let root = fixture.root();
        let open = File::open(fixture.path("other")).unwrap();
        fs::rename(fixture.path("other"), fixture.path("missing")).unwrap();
        // The call has the directory open under its old path, and never meets the new one.
        assert!(!fixture.is_refused(&open, "key"));
        assert!(fixture.is_refused(&root, "missing/key"));
        assert!(fixture.is_refused(&open, "key"));
        fixture.call = Fixture::call(&fixture.path(""), &fixture.guard);
        assert!(fixture.is_refused(&open, "key"));
    }
}
