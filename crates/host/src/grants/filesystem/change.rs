//! Paths that a call is about to change or look at, resolved to a directory and a name in it, and
//! checked against protected files.

use std::fs::{File as SystemFile, TryLockError};
use std::sync::Arc;
use std::time::Duration;

use kitbag_fs_guard::sys::{open_at, read_again};
use kitbag_fs_guard::{EntryChange, FileKind, GuardTable, OpenAs, is_part_of_repository};
use wasmtime::component::Resource;
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::{FsError, FsResult};

use super::directories::{CallDirectories, GuestPlace};
use super::quota::Quota;
use super::resolve::{Found, Target, leads_out, resolve};
use crate::sys::copy_permissions;

/// Maximum number of parent directories searched for the granted directory. A tool cannot name a
/// longer path.
const DEPTH: usize = 4096;

/// `wasi:filesystem`, with the guard's checks before wasmtime-wasi's own.
pub(crate) struct FilesystemView<'a> {
    pub(crate) wasi: WasiFilesystemCtxView<'a>,
    pub(crate) granted: &'a mut CallDirectories,
    pub(crate) quota: &'a Arc<Quota>,
}

impl FilesystemView<'_> {
    pub(super) fn dir(&self, fd: &Resource<Descriptor>) -> FsResult<Dir> {
        match self.wasi.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Resolves a path, and notes a refusal if it leads out of the granted directory.
    pub(super) fn resolve(
        &mut self,
        fd: &Resource<Descriptor>,
        dir: &Dir,
        path: &str,
        follow: bool,
    ) -> FsResult<Target> {
        let id = self.granted.id(fd)?;
        let target = resolve(&dir.dir, id, path, follow).inspect_err(|error| {
            if matches!(error.downcast_ref(), Some(ErrorCode::NotPermitted)) {
                self.granted.note_refused_path(fd, path, "outside");
            }
        })?;
        self.granted.renew_private(target.existing());
        Ok(target)
    }

    /// Records and returns the refusal of a change in a read-only directory.
    pub(super) fn read_only(&mut self, fd: &Resource<Descriptor>, path: &str) -> FsError {
        let is_writable = self.granted.place(fd).is_ok_and(|place| self.granted.is_writable(place));
        // A writable directory may contain a directory that no tool may change.
        let reason = if is_writable { "guarded" } else { "read-only" };
        self.granted.note_refused_path(fd, path, reason);
        ErrorCode::NotPermitted.into()
    }

    fn denied(&mut self, place: &GuestPlace, reason: &'static str) -> FsError {
        self.granted.note_refused(place, reason);
        ErrorCode::NotPermitted.into()
    }

    /// Resolves a path that is about to be changed, and refuses a protected path.
    ///
    /// The operation must use the result: the opened directory that holds the last component, and
    /// that component, which the operation must not follow. This ensures that the checked file is
    /// the changed file.
    pub(super) async fn changing(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        follow: bool,
        change: EntryChange,
    ) -> FsResult<ChangeTarget> {
        let dir = self.dir(fd)?;
        if dir.perms == FsPerms::ReadOnly {
            return Err(self.read_only(fd, path));
        }
        let target = self.resolve(fd, &dir, path, follow)?;
        let place = self.granted.below(fd, target.names())?;
        self.granted.refuse_secret(&place, change == EntryChange::NewDirectory)?;
        self.granted.refuse_protected(&place, change, target.found.is_some())?;
        let lock = self.check(&dir, &target, &place, change).await?;
        Ok(ChangeTarget { dir, target, place, lock })
    }

    /// Refuses a change that no tool may make. If two calls together could make it, returns a lock
    /// that excludes the other call.
    pub(super) async fn check(
        &mut self,
        dir: &Dir,
        target: &Target,
        place: &GuestPlace,
        change: EntryChange,
    ) -> FsResult<Option<SystemFile>> {
        let table = self.granted.table();
        let above = above(&dir.dir, table)?;
        let parent = target.directories.last().or(above.first()).ok_or(ErrorCode::NotPermitted)?;
        let mut directories = above.iter().chain(&target.directories);
        let is_directory = |found: &&Found| found.kind() == FileKind::Directory;
        let found = target.found.as_ref();
        let is_forbidden = target.is_guarded
            || directories.any(|directory| table.seals(&directory.handle, directory.id()))
            || found.filter(is_directory).is_some_and(|it| table.seals(&it.handle, it.id()))
            || found.is_some_and(|it| table.is_kept(&it.stat))
            || table.forbids(target.parent(), &target.name, found.map(Found::id), change);
        if is_forbidden {
            return Err(self.denied(place, "guarded"));
        }
        let is_put = matches!(change, EntryChange::NewDirectory | EntryChange::Put);
        if !is_put || !is_part_of_repository(&target.name) {
            return Ok(None);
        }
        let lock = lock(&parent.handle).await?;
        match self.granted.table().completes_repository(&parent.handle, &target.name) {
            true => Err(self.denied(place, "guarded")),
            false => Ok(Some(lock)),
        }
    }

    /// Refuses a link whose target is outside the granted directory, or whose text leads to a path
    /// that looks like a secret.
    pub(super) fn check_link(&mut self, link: &str, at: &ChangeTarget) -> FsResult<()> {
        let above = above(&at.dir.dir, self.granted.table())?;
        match leads_out(link, above.len() - 1 + at.target.directories.len()) {
            true => Err(self.denied(&at.place, "outside")),
            false => self.granted.refuse_link(&at.place, link),
        }
    }

    /// Applies [`check_link`](Self::check_link) to a link that is moved or gets a second name.
    pub(super) fn check_moved_link(
        &mut self,
        old: &ChangeTarget,
        new: &ChangeTarget,
    ) -> FsResult<()> {
        match &old.target.found {
            Some(found) if found.kind() == FileKind::Link => self.check_link(&found.link()?, new),
            Some(_) | None => Ok(()),
        }
    }

    /// Registers the directory of a resolved path with wasmtime-wasi.
    pub(super) fn place(
        &mut self,
        dir: &Dir,
        mut target: Target,
        place: &GuestPlace,
    ) -> FsResult<Position> {
        let is_directory = |found: &Found| found.kind() == FileKind::Directory;
        let path = self.granted.host_path(place, target.found.as_ref().is_some_and(is_directory));
        let parent = match target.directories.pop() {
            Some(parent) => Dir::new(parent.handle, dir.perms, dir.open_mode, true),
            None => dir.clone(),
        };
        let found = target.found.as_ref().map(Found::kind);
        let parent = self.wasi.table.push(Descriptor::Dir(parent))?;
        Ok(Position { parent, name: target.name, path, found, _lock: None })
    }

    /// Registers the directory of a path that is about to be changed.
    pub(super) fn place_of(&mut self, changing: ChangeTarget) -> FsResult<Position> {
        let place = self.place(&changing.dir, changing.target, &changing.place)?;
        Ok(Position { _lock: changing.lock, ..place })
    }

    /// Resolves the source and destination of a move or a hard link.
    pub(super) async fn moving(
        &mut self,
        (fd, path): (&Resource<Descriptor>, &str),
        (new_fd, new_path): (&Resource<Descriptor>, &str),
    ) -> FsResult<(ChangeTarget, ChangeTarget)> {
        // Only one of them is locked, so that no two calls wait for each other.
        let old = self.changing(fd, path, false, EntryChange::Remove).await?;
        let new = self.changing(new_fd, new_path, false, EntryChange::Put).await?;
        self.check_moved_link(&old, &new)?;
        let is_directory = |found: &Found| found.kind() == FileKind::Directory;
        if self.granted.names_secrets() && old.target.found.as_ref().is_some_and(is_directory) {
            return Err(self.denied(&old.place, "secret"));
        }
        if let Some(found) = old.target.found.as_ref().filter(|found| is_directory(found)) {
            self.granted.refuse_store(&old.place, &found.handle)?;
        }
        Ok((old, new))
    }

    /// Resolves the source and destination of a move. A file that was created in this call gets
    /// the mode of the file that it replaces.
    pub(super) async fn renaming(
        &mut self,
        from: (&Resource<Descriptor>, &str),
        to: (&Resource<Descriptor>, &str),
    ) -> FsResult<(Position, Position)> {
        let (from, to) = self.moving(from, to).await?;
        let is_file = |found: &&Found| found.kind() == FileKind::File;
        let [new, old] = [&from, &to].map(|it| it.target.found.as_ref().filter(is_file));
        if let (Some(new), Some(old)) = (new, old)
            && self.granted.has_made(new.id())
        {
            let old = (to.parent(), &*to.target.name, &old.stat);
            let new = (from.parent(), &*from.target.name, &new.stat);
            copy_permissions(old, new)?;
        }
        Ok((self.place_of(from)?, self.place_of(to)?))
    }

    /// Returns the entry at a path that is only looked at.
    pub(super) fn look(
        &mut self,
        fd: &Resource<Descriptor>,
        path: &str,
        follow: bool,
    ) -> FsResult<LookedAt> {
        let dir = self.dir(fd)?;
        let target = self.resolve(fd, &dir, path, follow)?;
        let place = self.granted.below(fd, target.names())?;
        // A name that looks like a secret may be looked at, but nothing in a directory with such a
        // name.
        let directories = self.granted.below(fd, target.directory_names())?;
        self.granted.refuse_private(&directories, target.directory_entries())?;
        self.granted.refuse_secret(&directories, true)?;
        let is_directory = |found: &Found| found.kind() == FileKind::Directory;
        let is_directory = target.found.as_ref().is_some_and(is_directory);
        let is_hidden = self.granted.is_secret(&place, is_directory)
            || target
                .entries()
                .any(|(parent, name, found)| self.granted.is_private(parent, name, found));
        let path = self.granted.host_path(&place, is_directory);
        let found = target.found.ok_or(ErrorCode::NoEntry)?;
        Ok(LookedAt { found, path, is_hidden })
    }

    /// Releases a place after the operation on it, and returns the result.
    pub(super) fn leave<T>(&mut self, place: Position, result: FsResult<T>) -> FsResult<T> {
        self.wasi.table.delete(place.parent)?;
        result
    }
}

/// Locks a directory for one change in it. Waits for another call that holds the lock, at most as
/// long as this call may take.
async fn lock(directory: &SystemFile) -> FsResult<SystemFile> {
    /// A change takes less time; another program may hold the lock for longer.
    const PAUSE: Duration = Duration::from_millis(1);
    let lock = read_again(directory)?;
    // Some file systems do not support locks on directories.
    while matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(lock)
}

/// A checked path that is about to be changed.
pub(super) struct ChangeTarget {
    dir: Dir,
    target: Target,
    place: GuestPlace,
    lock: Option<SystemFile>,
}

impl ChangeTarget {
    fn parent(&self) -> &SystemFile {
        match self.target.directories.last() {
            Some(parent) => &parent.handle,
            None => &self.dir.dir,
        }
    }
}

/// An entry that may be looked at.
pub(super) struct LookedAt {
    pub(super) found: Found,
    /// Host path, for the record of the call.
    pub(super) path: String,
    /// True if the entry is private, or looks like a secret that no grant names.
    pub(super) is_hidden: bool,
}

/// A checked place in a directory.
pub(super) struct Position {
    parent: Resource<Descriptor>,
    name: String,
    /// Host path, for the record of the call.
    pub(super) path: String,
    pub(super) found: Option<FileKind>,
    _lock: Option<SystemFile>,
}

impl Position {
    pub(super) fn parent(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.parent.rep())
    }

    pub(super) fn name(&self) -> String {
        self.name.clone()
    }
}

/// Returns a directory and its parents, up to the granted directory. Walks up from the open
/// handle, since a directory may have been moved since it was opened.
pub(super) fn above(directory: &SystemFile, table: &GuardTable) -> FsResult<Vec<Found>> {
    let up = |from: &SystemFile, name: &str| {
        Found::of(String::new(), open_at(from, name, OpenAs::Directory)?)
    };
    let mut above = vec![up(directory, ".")?];
    while let Some(last) = above.last()
        && !table.is_root(last.id())
    {
        let next = up(&last.handle, "..")?;
        if next.id() == last.id() || above.len() == DEPTH {
            return Err(ErrorCode::NotPermitted.into());
        }
        above.push(next);
    }
    Ok(above)
}
