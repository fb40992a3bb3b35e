//! Directory listings, read on demand.
//!
//! wasmtime-wasi reads a complete directory when it is opened, and requests the metadata of each
//! entry, all in the host, where the deadline has no effect. This module reads an entry when the
//! guest asks for the next one, with the type that the directory reports. The type is `unknown`
//! for a secret that no grant names and for entries that no tool may read, so that a tool that
//! filters by type skips them.

use std::sync::{Mutex, PoisonError};

use kitbag_base::FileId;
use kitbag_fs_guard::sys::{Entries, read_again};
use kitbag_fs_guard::{FileKind, Stat};
use wasmtime_wasi::filesystem::Dir;
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

use super::directories::{CallDirectories, GuestPlace};

/// An open listing. It replaces wasmtime-wasi's own `DirectoryEntryStream` in the resource table.
pub(super) struct Listing {
    dir: Dir,
    id: FileId,
    place: GuestPlace,
    entries: Mutex<Entries>,
}

impl Listing {
    /// Starts at the first entry.
    pub(super) fn open(dir: &Dir, place: GuestPlace) -> FsResult<Self> {
        // A preopen is a bare handle, which must be reopened for reading.
        let opened = read_again(&dir.dir)?;
        let id = Stat::of(&opened)?.id();
        let entries = Entries::of(opened)?;
        Ok(Self { dir: dir.clone(), id, place, entries: Mutex::new(entries) })
    }

    /// Returns the next entry, except for `.` and `..`.
    pub(super) fn next(&self, granted: &CallDirectories) -> FsResult<Option<DirectoryEntry>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(entry) = entries.next().transpose()? else { return Ok(None) };
            let name = entry.name();
            let kind = match entry.kind() {
                // Some file systems do not report the type.
                FileKind::Unknown => {
                    // The entry may have been removed.
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
