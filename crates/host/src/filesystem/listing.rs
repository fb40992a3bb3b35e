//! A directory, read as the guest asks for it.
//!
//! wasmtime-wasi reads a directory whole when it is opened, and asks for the
//! metadata of each entry, all of it in the host and out of reach of the
//! deadline. Here an entry is read when the guest asks for the next one, and
//! its type is what the directory says; `unknown` where it looks like a secret that no
//! grant names, or is what no tool reads, so that a tool that goes by types leaves it alone.

use std::sync::{Mutex, PoisonError};

use kitbag_contract::FileId;
use kitbag_files::id_of;
use rustix::fs::{AtFlags, Dir as Entries, FileType, Mode, OFlags, fstat, openat, statat};
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::granted::{Granted, Place};
use super::resolve::from_errno;

/// An open listing. It stands in the resource table in the place of
/// wasmtime-wasi's own `DirectoryEntryStream`.
pub(super) struct Listing {
    dir: Dir,
    id: FileId,
    place: Place,
    entries: Mutex<Entries>,
}

impl Listing {
    /// Starts at the first entry.
    pub(super) fn open(dir: &Dir, place: Place) -> FsResult<Self> {
        // A preopen is a bare path (`O_PATH`), which has to be opened to be read.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&*dir.dir, ".", flags, Mode::empty()).map_err(from_errno)?;
        let id = id_of(&fstat(&opened).map_err(from_errno)?);
        let entries = Entries::new(opened).map_err(from_errno)?;
        Ok(Self { dir: dir.clone(), id, place, entries: Mutex::new(entries) })
    }

    /// The next entry, but for the two that every directory has.
    pub(super) fn next(&self, granted: &Granted) -> FsResult<Option<DirectoryEntry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(entry) = entries.read() else { return Ok(None) };
            let entry = entry.map_err(from_errno)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let file_type = match entry.file_type() {
                // Not every file system says.
                FileType::Unknown => {
                    let found = statat(&*self.dir.dir, name, AtFlags::SYMLINK_NOFOLLOW);
                    // It may be gone by now.
                    let Ok(found) = found else { continue };
                    FileType::from_raw_mode(found.st_mode)
                }
                known => known,
            };
            let Ok(name) = name.to_str() else { return Err(ErrorCode::IllegalByteSequence.into()) };
            let is_directory = file_type == FileType::Directory;
            let is_hidden = granted.is_secret_in(&self.place, name, is_directory)
                || granted.is_private(self.id, name, None);
            let type_ = match is_hidden {
                true => DescriptorType::Unknown,
                false => descriptor_type(file_type),
            };
            return Ok(Some(DirectoryEntry { type_, name: name.to_owned() }));
        }
    }
}

pub(super) fn descriptor_type(file_type: FileType) -> DescriptorType {
    match file_type {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::Unknown => DescriptorType::Unknown,
    }
}
