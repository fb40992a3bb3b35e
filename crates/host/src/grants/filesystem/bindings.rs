//! `wasi:filesystem` as a guest calls it.

use std::fs::File as SystemFile;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kitbag_base::FileId;
use kitbag_contract::ENTRY_BYTES;
use kitbag_fs_guard::sys::has_no_other_end;
use kitbag_fs_guard::{EntryChange, FileKind, Stat};
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, Datetime, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, Host, HostDescriptor, HostDirectoryEntryStream,
    MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, IoError};

use super::change::{FilesystemView, above};
use super::directories::GuestPlace;
use super::listing::{Listing, descriptor_type};
use super::quota::{self, CountedStream};
use super::resolve::Found;
use crate::sys::{Access, open_or_create_at};

/// Names the data behind `wasi:filesystem` for the linker.
pub(crate) struct GuardedFilesystem;

impl HasData for GuardedFilesystem {
    type Data<'a> = FilesystemView<'a>;
}

impl FilesystemView<'_> {
    fn file(&self, fd: &Resource<Descriptor>) -> FsResult<Arc<SystemFile>> {
        match self.wasi.table.get(fd)? {
            Descriptor::File(file) => Ok(Arc::clone(&file.file)),
            Descriptor::Dir(_) => Err(ErrorCode::IsDirectory.into()),
        }
    }

    fn stat_of(&self, fd: &Resource<Descriptor>) -> FsResult<Stat> {
        Ok(Stat::of(match self.wasi.table.get(fd)? {
            Descriptor::File(file) => &file.file,
            Descriptor::Dir(dir) => &dir.dir,
        })?)
    }

    /// Notes a refused change through an open handle: the handle was opened for reading, or is in
    /// a read-only directory.
    fn noted<T>(&mut self, handle: u32, changed: FsResult<T>) -> FsResult<T> {
        changed.inspect_err(|error| {
            let code = error.downcast_ref();
            if matches!(code, Some(ErrorCode::NotPermitted | ErrorCode::BadDescriptor)) {
                self.granted.note_refused_handle(handle);
            }
        })
    }

    /// Wraps a stream into a file, to count the bytes written to it.
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
        file: Arc<SystemFile>,
        position: Option<u64>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.wasi.table.delete(stream)?;
        let stream = CountedStream::new(stream, file, position, Arc::clone(self.quota));
        let stream: DynOutputStream = Box::new(stream);
        Ok(self.wasi.table.push(stream)?)
    }
}

/// Opens a regular file or a directory, and refuses everything else. Returns true for a directory.
fn open_ordinary(
    parent: &SystemFile,
    name: &str,
    open_mode: OpenMode,
    oflags: OpenFlags,
) -> FsResult<Found> {
    // The entry may have changed its type since it was looked up.
    let opened = open_or_create_at(
        parent,
        name,
        Access {
            read: open_mode.contains(OpenMode::READ),
            write: open_mode.contains(OpenMode::WRITE),
            create: oflags.contains(OpenFlags::CREATE),
            is_new: oflags.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
            is_directory: oflags.contains(OpenFlags::DIRECTORY),
        },
    );
    let opened = opened.map_err(|error| match has_no_other_end(&error) {
        true => ErrorCode::Unsupported,
        false => error.into(),
    })?;
    let found = Found::of(name.to_owned(), opened)?;
    match is_ordinary(found.kind()) {
        true => Ok(found),
        false => Err(ErrorCode::Unsupported.into()),
    }
}

fn descriptor_stat(stat: &Stat) -> DescriptorStat {
    // A time before 1970 has no representation.
    let time = |(seconds, nanoseconds): (i64, i64)| {
        let (seconds, nanoseconds) = (seconds.try_into().ok()?, nanoseconds.try_into().ok()?);
        Some(Datetime { seconds, nanoseconds })
    };
    DescriptorStat {
        type_: descriptor_type(stat.kind()),
        link_count: stat.link_count(),
        size: stat.size(),
        data_access_timestamp: time(stat.accessed_at()),
        data_modification_timestamp: time(stat.modified_at()),
        status_change_timestamp: time(stat.changed_at()),
    }
}

/// Returns a hash of an identity, so that a guest can compare files.
fn metadata_hash(id: FileId) -> MetadataHashValue {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let lower = hasher.finish();
    // 64 bits are enough to tell files apart.
    MetadataHashValue { lower, upper: !lower }
}

fn is_ordinary(kind: FileKind) -> bool {
    matches!(kind, FileKind::File | FileKind::Directory)
}

impl preopens::Host for FilesystemView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let preopens = self.granted.preopens()?.iter();
        let preopens = preopens.map(|it| (it.directory.clone(), it.id, it.guest.to_string()));
        let mut preopens: Vec<_> = preopens.enumerate().collect();
        if let Some(working) = self.granted.working_directory() {
            let (index, (directory, id, _)) = preopens[working].clone();
            preopens.push((index, (directory, id, "/".to_owned())));
        }
        let mut directories = Vec::with_capacity(preopens.len());
        for (index, (directory, id, name)) in preopens {
            let fd = self.wasi.table.push(Descriptor::Dir(directory))?;
            self.granted.opened(&fd, GuestPlace::granted(index), id);
            directories.push((fd, name));
        }
        Ok(directories)
    }
}

impl Host for FilesystemView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.wasi.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<IoError>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.wasi.filesystem_error_code(error)
    }
}

impl HostDescriptor for FilesystemView<'_> {
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let dir = self.dir(&fd)?;
        let sync = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(sync) {
            return Err(ErrorCode::Unsupported.into());
        }
        let creates = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if oflags.contains(OpenFlags::DIRECTORY) && oflags.intersects(creates) {
            return Err(ErrorCode::Invalid.into());
        }
        let writes = oflags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.contains(DescriptorFlags::WRITE);
        let reads =
            flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE);
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, reads);
        mode.set(OpenMode::WRITE, writes);

        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let target = self.resolve(&fd, &dir, &path, follow)?;
        let kind = target.found.as_ref().map(Found::kind);
        let place = self.granted.below(&fd, target.names())?;
        self.granted.refuse_private(&place, target.entries())?;
        self.granted.refuse_secret(&place, kind == Some(FileKind::Directory))?;
        if kind.is_some_and(|kind| !is_ordinary(kind) && kind != FileKind::Link) {
            self.granted.note_refused(&place, "special");
            return Err(ErrorCode::Unsupported.into());
        }
        let mut lock = None;
        if writes {
            if dir.perms == FsPerms::ReadOnly {
                return Err(self.read_only(&fd, &path));
            }
            let change = if kind.is_some() { EntryChange::Content } else { EntryChange::Put };
            self.granted.refuse_protected(&place, change, kind.is_some())?;
            lock = self.check(&dir, &target, &place, change).await?;
            if kind.is_none() && oflags.contains(OpenFlags::CREATE) {
                self.quota.take(ENTRY_BYTES)?;
            }
        }
        let parent_id = target.parent();
        let parent = match target.directories.last() {
            Some(parent) => &parent.handle,
            None => &*dir.dir,
        };
        let opened = open_ordinary(parent, &target.name, mode, oflags)?;
        drop(lock);
        // The directory entry may have been replaced since it was looked up.
        opened.check(parent_id.device)?;
        self.granted.renew_private([(parent_id, &*target.name)]);
        self.granted.refuse_private(&place, [(parent_id, &*target.name, Some(&opened.stat))])?;
        let id = opened.id();
        let is_directory = opened.kind() == FileKind::Directory;
        if writes {
            let table = self.granted.table();
            if table.forbids(parent_id, &target.name, Some(id), EntryChange::Content)
                || table.is_kept(&opened.stat)
            {
                self.granted.note_refused(&place, "guarded");
                return Err(ErrorCode::NotPermitted.into());
            }
            if kind.is_none() && !is_directory {
                self.granted.made(id);
            }
            if oflags.contains(OpenFlags::TRUNCATE) {
                opened.handle.set_len(0)?;
            }
        }
        if !is_directory {
            let path = self.granted.host_path(&place, false);
            match writes {
                true => self.granted.touched.wrote(&path, kind.is_none()),
                false => self.granted.touched.read(&path),
            }
        }
        let opened = match is_directory {
            true => {
                // Everything opened through this directory inherits its permissions.
                let perms = if target.is_guarded { FsPerms::ReadOnly } else { dir.perms };
                Descriptor::Dir(Dir::new(opened.handle, perms, mode, true))
            }
            false => {
                // A read-only handle also cannot change the file's times.
                let perms = if writes { dir.perms } else { FsPerms::ReadOnly };
                Descriptor::File(File::new(opened.handle, perms, mode, true))
            }
        };
        let opened = self.wasi.table.push(opened)?;
        match is_directory {
            true => self.granted.opened(&opened, place, id),
            false => self.granted.opened_file(&opened, place),
        }
        Ok(opened)
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.quota.take(ENTRY_BYTES)?;
        let changing = self.changing(&fd, &path, false, EntryChange::NewDirectory).await?;
        let place = self.place_of(changing)?;
        let result = self.wasi.create_directory_at(place.parent(), place.name()).await;
        if result.is_ok() {
            self.granted.touched.wrote(&format!("{}/", place.path), true);
        }
        self.leave(place, result)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let changing = self.changing(&fd, &path, follow, EntryChange::Content).await?;
        let place = self.place_of(changing)?;
        let flags = PathFlags::empty();
        let result =
            self.wasi.set_times_at(place.parent(), flags, place.name(), accessed, modified).await;
        if result.is_ok() {
            self.granted.touched.wrote(&place.path, false);
        }
        self.leave(place, result)
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path_flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        // Treated as a change of the old path: a second name for a protected file would be a way
        // to write it.
        self.quota.take(ENTRY_BYTES)?;
        let (old, new) = self.moving((&fd, &old_path), (&new_fd, &new_path)).await?;
        let (old, new) = (self.place_of(old)?, self.place_of(new)?);
        let (from, to) = (old.parent(), new.parent());
        let result = self.wasi.link_at(from, old_path_flags, old.name(), to, new.name()).await;
        if result.is_ok() {
            self.granted.touched.wrote(&new.path, true);
        }
        let result = self.leave(new, result);
        self.leave(old, result)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let (old, new) = self.renaming((&fd, &old_path), (&new_fd, &new_path)).await?;
        let result = self.wasi.rename_at(old.parent(), old.name(), new.parent(), new.name()).await;
        if result.is_ok() {
            let is_directory = old.found == Some(FileKind::Directory);
            let end = if is_directory && new.found.is_none() { "/" } else { "" };
            let to = format!("{}{end}", new.path);
            self.granted.touched.moved(&old.path, &to, new.found.is_none());
        }
        let result = self.leave(new, result);
        self.leave(old, result)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        self.quota.take(ENTRY_BYTES)?;
        let changing = self.changing(&fd, &path, false, EntryChange::Put).await?;
        self.check_link(&target, &changing)?;
        let place = self.place_of(changing)?;
        let result = self.wasi.symlink_at(place.parent(), target, place.name()).await;
        if result.is_ok() {
            self.granted.touched.wrote(&place.path, true);
        }
        self.leave(place, result)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let changing = self.changing(&fd, &path, false, EntryChange::Remove).await?;
        let place = self.place_of(changing)?;
        let result = self.wasi.unlink_file_at(place.parent(), place.name()).await;
        if result.is_ok() {
            self.granted.touched.removed(&place.path);
        }
        self.leave(place, result)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let changing = self.changing(&fd, &path, false, EntryChange::Remove).await?;
        let place = self.place_of(changing)?;
        let result = self.wasi.remove_directory_at(place.parent(), place.name()).await;
        if result.is_ok() {
            self.granted.touched.removed(&place.path);
        }
        self.leave(place, result)
    }

    // The following operations use open handles, or change nothing.

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.wasi.advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.wasi.sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.wasi.sync(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.wasi.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        // Only regular files and directories are opened.
        Ok(match self.wasi.table.get(&fd)? {
            Descriptor::File(_) => DescriptorType::RegularFile,
            Descriptor::Dir(_) => DescriptorType::Directory,
        })
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        if let Descriptor::File(file) = self.wasi.table.get(&fd)? {
            self.quota.take(quota::growth(&file.file, size)?)?;
        }
        let handle = fd.rep();
        let changed = self.wasi.set_size(fd, size).await;
        self.noted(handle, changed)
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if let Descriptor::Dir(dir) = self.wasi.table.get(&fd)? {
            let dir = dir.clone();
            let table = self.granted.table();
            if above(&dir.dir, table)?.iter().any(|it| table.seals(&it.handle, it.id())) {
                self.granted.note_refused_path(&fd, "", "guarded");
                return Err(ErrorCode::NotPermitted.into());
            }
        }
        let handle = fd.rep();
        let changed = self.wasi.set_times(fd, accessed, modified).await;
        self.noted(handle, changed)
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.wasi.read(fd, length, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        if let Descriptor::File(file) = self.wasi.table.get(&fd)? {
            let hole = quota::growth(&file.file, offset)?;
            self.quota.take(hole.saturating_add(bytes.len() as u64))?;
        }
        let handle = fd.rep();
        let written = self.wasi.write(fd, bytes, offset).await;
        self.noted(handle, written)
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let dir = self.dir(&fd)?;
        let place = self.granted.place(&fd)?.clone();
        let path = self.granted.host_path(&place, true);
        let listing = Listing::open(&dir, place)?;
        self.granted.touched.read(&path);
        let listing = self.wasi.table.push(listing)?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        Ok(descriptor_stat(&self.stat_of(&fd)?))
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let looked_at = self.look(&fd, &path, path_flags.contains(PathFlags::SYMLINK_FOLLOW))?;
        self.granted.touched.looked_at(&looked_at.path);
        let mut stat = descriptor_stat(&looked_at.found.stat);
        if looked_at.is_hidden {
            // As in a listing: a tool that filters by type skips the file.
            stat.type_ = DescriptorType::Unknown;
        }
        Ok(stat)
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        let found = self.look(&fd, &path, false)?.found;
        match found.kind() {
            FileKind::Link => found.link(),
            _ => Err(ErrorCode::Invalid.into()),
        }
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.wasi.read_via_stream(fd, offset)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let (file, handle) = (self.file(&fd)?, fd.rep());
        let stream = self.wasi.write_via_stream(fd, offset);
        let stream = self.noted(handle, stream)?;
        self.counted(stream, file, Some(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let (file, handle) = (self.file(&fd)?, fd.rep());
        let stream = self.wasi.append_via_stream(fd);
        let stream = self.noted(handle, stream)?;
        self.counted(stream, file, None)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.wasi.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        Ok(metadata_hash(self.stat_of(&fd)?.id()))
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let looked_at = self.look(&fd, &path, path_flags.contains(PathFlags::SYMLINK_FOLLOW))?;
        Ok(metadata_hash(looked_at.found.id()))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.granted.closed(&fd);
        HostDescriptor::drop(&mut self.wasi, fd)
    }
}

impl HostDirectoryEntryStream for FilesystemView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.wasi.table.get(&listing(&stream))?.next(self.granted)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.wasi.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn listing(stream: &Resource<DirectoryEntryStream>) -> Resource<Listing> {
    Resource::new_borrow(stream.rep())
}
