//! Files, with the two things that a preopen alone does not give.
//!
//! wasmtime-wasi keeps a guest inside its granted directories and enforces
//! read-only ones. On top of that, inside a writable directory everything
//! named `.git` or `.kitbag`, at any depth and on whatever way it is reached,
//! stays read-only: a tool that could write a hook or its own configuration
//! would be out of the sandbox the next time a person runs git or kitbag. And
//! only regular files and directories are opened: a FIFO or a device would
//! hold the thread in the kernel, where no deadline reaches it. A directory is
//! read as the guest asks for it; see `listing`.

mod listing;
mod quota;
mod resolve;

use std::fs::File;
use std::sync::Arc;

use kitbag_contract::ENTRY_BYTES;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::FsPerms;
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, DirectoryEntryStream,
    ErrorCode, Filesize, Host, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, IoError};

use self::listing::Listing;
use self::quota::CountedStream;
pub(crate) use self::quota::Quota;
pub(crate) use self::resolve::is_protected;
use self::resolve::{Target, resolve};

/// Names the data behind `wasi:filesystem/types` for the linker.
pub(crate) struct GuardedFilesystem;

/// `wasi:filesystem/types` with the guard in front of wasmtime-wasi's own.
pub(crate) struct Guarded<'a>(pub(crate) WasiFilesystemCtxView<'a>, pub(crate) &'a Arc<Quota>);

impl HasData for GuardedFilesystem {
    type Data<'a> = Guarded<'a>;
}

impl Guarded<'_> {
    fn dir(&self, fd: &Resource<Descriptor>) -> FsResult<Dir> {
        match self.0.table.get(fd)? {
            Descriptor::Dir(dir) => Ok(dir.clone()),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    fn file(&self, fd: &Resource<Descriptor>) -> FsResult<Arc<File>> {
        match self.0.table.get(fd)? {
            Descriptor::File(file) => Ok(Arc::clone(&file.file)),
            Descriptor::Dir(_) => Err(ErrorCode::IsDirectory.into()),
        }
    }

    /// Puts a stream into a file behind the count of what is written to it.
    fn counted(
        &mut self,
        stream: Resource<DynOutputStream>,
        file: Arc<File>,
        position: Option<u64>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.0.table.delete(stream)?;
        let stream = CountedStream::new(stream, file, position, Arc::clone(self.1));
        let stream: DynOutputStream = Box::new(stream);
        Ok(self.0.table.push(stream)?)
    }

    /// Resolves a path that is about to be changed, and refuses it where it is
    /// or lies in a protected directory.
    ///
    /// The answer is what the operation runs on instead: the directory that
    /// holds the last component, opened, and that component, which the
    /// operation must not follow. So what was checked is what is changed.
    fn changing(&mut self, fd: &Resource<Descriptor>, path: &str, follow: bool) -> FsResult<Place> {
        let dir = self.dir(fd)?;
        if dir.perms == FsPerms::ReadOnly {
            return Err(ErrorCode::NotPermitted.into());
        }
        let target = resolve(&dir.dir, path, follow)?;
        if target.is_protected {
            Err(ErrorCode::NotPermitted.into())
        } else {
            self.place(&dir, target)
        }
    }

    /// Puts the directory of a resolved path where wasmtime-wasi finds it.
    fn place(&mut self, dir: &Dir, target: Target) -> FsResult<Place> {
        let parent = match target.parent {
            Some(parent) => Dir::new(parent, dir.perms, dir.open_mode, true),
            None => dir.clone(),
        };
        Ok(Place { parent: self.0.table.push(Descriptor::Dir(parent))?, name: target.name })
    }

    /// Gives a place back after the operation on it, whatever came of that.
    fn leave<T>(&mut self, place: Place, result: FsResult<T>) -> FsResult<T> {
        self.0.table.delete(place.parent)?;
        result
    }

    /// Opens what is a regular file or a directory, and nothing else.
    async fn open_ordinary(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let borrowed = Resource::new_borrow(fd.rep());
        // Where there is nothing, opening may create it, or says what is wrong.
        if let Ok(stat) = self.0.stat_at(borrowed, path_flags, path.clone()).await
            && !matches!(
                stat.type_,
                DescriptorType::RegularFile
                    | DescriptorType::Directory
                    | DescriptorType::SymbolicLink
            )
        {
            return Err(ErrorCode::Unsupported.into());
        }
        self.0.open_at(fd, path_flags, path, oflags, flags).await
    }
}

/// A checked place in a directory.
struct Place {
    parent: Resource<Descriptor>,
    name: String,
}

impl Place {
    fn parent(&self) -> Resource<Descriptor> {
        Resource::new_borrow(self.parent.rep())
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Host for Guarded<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.0.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<IoError>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.0.filesystem_error_code(error)
    }
}

impl HostDescriptor for Guarded<'_> {
    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let dir = self.dir(&fd)?;
        if dir.perms == FsPerms::ReadOnly {
            // Nothing in here can be changed, through whatever is opened.
            return self.open_ordinary(fd, path_flags, path, oflags, flags).await;
        }
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let target = resolve(&dir.dir, &path, follow)?;
        let is_protected = target.is_protected;
        let changes = oflags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.contains(DescriptorFlags::WRITE);
        if is_protected && changes {
            return Err(ErrorCode::NotPermitted.into());
        }
        if oflags.contains(OpenFlags::CREATE) {
            self.1.take(ENTRY_BYTES)?;
        }
        let place = self.place(&dir, target)?;
        let opened = self
            .open_ordinary(place.parent(), PathFlags::empty(), place.name(), oflags, flags)
            .await;
        let opened = self.leave(place, opened)?;
        if is_protected {
            // Whatever is opened through it later inherits this.
            match self.0.table.get_mut(&opened)? {
                Descriptor::Dir(dir) => dir.perms = FsPerms::ReadOnly,
                Descriptor::File(file) => file.perms = FsPerms::ReadOnly,
            }
        }
        Ok(opened)
    }

    async fn create_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let place = self.changing(&fd, &path, false)?;
        self.1.take(ENTRY_BYTES)?;
        let result = self.0.create_directory_at(place.parent(), place.name()).await;
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
        let place = self.changing(&fd, &path, follow)?;
        let flags = PathFlags::empty();
        let result =
            self.0.set_times_at(place.parent(), flags, place.name(), accessed, modified).await;
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
        // The old path counts as changed: a second name for a protected file
        // would be a way to write it.
        self.1.take(ENTRY_BYTES)?;
        let old = self.changing(&fd, &old_path, false)?;
        let result = match self.changing(&new_fd, &new_path, false) {
            Ok(new) => {
                let (from, to) = (old.parent(), new.parent());
                let result = self.0.link_at(from, old_path_flags, old.name(), to, new.name()).await;
                self.leave(new, result)
            }
            Err(error) => Err(error),
        };
        self.leave(old, result)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let old = self.changing(&fd, &old_path, false)?;
        let result = match self.changing(&new_fd, &new_path, false) {
            Ok(new) => {
                let result =
                    self.0.rename_at(old.parent(), old.name(), new.parent(), new.name()).await;
                self.leave(new, result)
            }
            Err(error) => Err(error),
        };
        self.leave(old, result)
    }

    async fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        let place = self.changing(&fd, &path, false)?;
        self.1.take(ENTRY_BYTES)?;
        let result = self.0.symlink_at(place.parent(), target, place.name()).await;
        self.leave(place, result)
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        let place = self.changing(&fd, &path, false)?;
        let result = self.0.unlink_file_at(place.parent(), place.name()).await;
        self.leave(place, result)
    }

    async fn remove_directory_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        let place = self.changing(&fd, &path, false)?;
        let result = self.0.remove_directory_at(place.parent(), place.name()).await;
        self.leave(place, result)
    }

    // What follows works on what is open already, or changes nothing.

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        length: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        self.0.advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.0.sync_data(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.0.sync(fd).await
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.0.get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.0.get_type(fd).await
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        if let Descriptor::File(file) = self.0.table.get(&fd)? {
            self.1.take(quota::growth(&file.file, size)?)?;
        }
        self.0.set_size(fd, size).await
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.0.set_times(fd, accessed, modified).await
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.0.read(fd, length, offset).await
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        if let Descriptor::File(file) = self.0.table.get(&fd)? {
            let hole = quota::growth(&file.file, offset)?;
            self.1.take(hole.saturating_add(bytes.len() as u64))?;
        }
        self.0.write(fd, bytes, offset).await
    }

    async fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let listing = self.0.table.push(Listing::open(&self.dir(&fd)?)?)?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.0.stat(fd).await
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.0.stat_at(fd, path_flags, path).await
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.0.readlink_at(fd, path).await
    }

    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.0.read_via_stream(fd, offset)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = self.file(&fd)?;
        let stream = self.0.write_via_stream(fd, offset)?;
        self.counted(stream, file, Some(offset))
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = self.file(&fd)?;
        let stream = self.0.append_via_stream(fd)?;
        self.counted(stream, file, None)
    }

    async fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.0.is_same_object(a, b).await
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.0.metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.0.metadata_hash_at(fd, path_flags, path).await
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.0, fd)
    }
}

impl HostDirectoryEntryStream for Guarded<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.0.table.get(&listing(&stream))?.next()
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.0.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

/// What stands in the table behind the guest's handle.
fn listing(stream: &Resource<DirectoryEntryStream>) -> Resource<Listing> {
    Resource::new_borrow(stream.rep())
}
