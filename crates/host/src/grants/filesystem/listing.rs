//! A directory, read as the guest asks for it.
//!
//! wasmtime-wasi reads a directory whole when it is opened, and asks for the
//! metadata of each entry, all of it in the host and out of reach of the
//! deadline. Here an entry is read when the guest asks for the next one, and
//! its type is what the directory says; `unknown` where it looks like a secret that no
//! grant names, or is what no tool reads, so that a tool that goes by types leaves it alone.

use std::sync::{Mutex, PoisonError};

use kitbag_base::FileId;
use kitbag_fs_guard::sys::{Entries, read_again};
use kitbag_fs_guard::{FileKind, Stat};
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::directories::{CallDirectories, GuestPlace};

/// An open listing. It stands in the resource table in the place of
/// wasmtime-wasi's own `DirectoryEntryStream`.
pub(super) struct Listing {
    dir: Dir,
    id: FileId,
    place: GuestPlace,
    entries: Mutex<Entries>,
}

impl Listing {
    /// Starts at the first entry.
    pub(super) fn open(dir: &Dir, place: GuestPlace) -> FsResult<Self> {
        // A preopen is a bare handle, which has to be opened to be read.
        let opened = read_again(&dir.dir)?;
        let id = Stat::of(&opened)?.id();
        let entries = Entries::of(opened)?;
        Ok(Self { dir: dir.clone(), id, place, entries: Mutex::new(entries) })
    }

    /// The next entry, but for the two that every directory has.
    pub(super) fn next(&self, granted: &CallDirectories) -> FsResult<Option<DirectoryEntry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(entry) = entries.next().transpose()? else { return Ok(None) };
            let name = entry.name();
            let kind = match entry.kind() {
                // Not every file system says.
                FileKind::Unknown => {
                    // It may be gone by now.
                    let Ok(found) = Stat::at(&self.dir.dir, name) else { continue };
                    found.kind()
                }
                known => known,
            };
            let Some(name) = name.to_str() else {
                return Err(ErrorCode::IllegalByteSequence.into());
            };
            let is_directory = kind == FileKind::Directory;
            let is_hidden = granted.is_secret_in(&self.place, name, is_directory)
                || granted.is_private(self.id, name, None);
            let type_ = match is_hidden {
                true => DescriptorType::Unknown,
                false => descriptor_type(kind),
            };
            return Ok(Some(DirectoryEntry { type_, name: name.to_owned() }));
        }
    }
}

pub(super) fn descriptor_type(kind: FileKind) -> DescriptorType {
    match kind {
        FileKind::File => DescriptorType::RegularFile,
        FileKind::Directory => DescriptorType::Directory,
        FileKind::Link => DescriptorType::SymbolicLink,
        FileKind::BlockDevice => DescriptorType::BlockDevice,
        FileKind::CharacterDevice => DescriptorType::CharacterDevice,
        FileKind::Fifo => DescriptorType::Fifo,
        FileKind::Socket => DescriptorType::Socket,
        FileKind::Unknown => DescriptorType::Unknown,
    }
}
