//! The granted directory, through WASI.
//!
//! `std::fs` would make two calls in place of one, and `read_dir` one more for each entry; listing
//! is most of the tool's work.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags,
};

use crate::files::{Fault, Files, Identity, Kind};

/// The number of bytes of the first read and of later ones. The host clears a buffer of this size
/// for each call, so short documents should use a small one; Wasmtime returns at most 64 KiB at
/// once.
const FIRST_READ_BYTES: usize = 16 << 10;
const NEXT_READ_BYTES: usize = 64 << 10;

/// A preopened directory.
pub(crate) struct Preopen(Descriptor);

impl Preopen {
    /// Finds a preopened directory by its guest path.
    pub(crate) fn open(path: &str) -> Option<Self> {
        let directories = get_directories();
        directories.into_iter().find(|(_, guest)| guest == path).map(|(found, _)| Self(found))
    }

    fn open_at(&self, path: &str, flags: OpenFlags) -> Result<Descriptor, Fault> {
        Ok(self.0.open_at(PathFlags::SYMLINK_FOLLOW, path, flags, DescriptorFlags::READ)?)
    }
}

impl Files for Preopen {
    fn list(
        &self,
        directory: &str,
        visit: &mut dyn FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let opened;
        let entries = if directory.is_empty() {
            self.0.read_directory()?
        } else {
            opened = self.open_at(directory, OpenFlags::DIRECTORY)?;
            opened.read_directory()?
        };
        loop {
            match entries.read_directory_entry() {
                Ok(Some(entry)) => {
                    if visit(&entry.name, entry.type_.into()).is_break() {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                // A name that is not Unicode cannot be transferred, and an entry that was just
                // removed has no type. Each error is for one entry; more may follow.
                Err(ErrorCode::IllegalByteSequence | ErrorCode::NoEntry) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn target(&self, link: &str) -> Result<Kind, Fault> {
        Ok(self.0.stat_at(PathFlags::SYMLINK_FOLLOW, link)?.type_.into())
    }

    fn link(&self, path: &str) -> Option<String> {
        self.0.readlink_at(path).ok()
    }

    fn names(&self, file: &str) -> Result<u64, Fault> {
        Ok(self.0.stat_at(PathFlags::SYMLINK_FOLLOW, file)?.link_count)
    }

    fn size(&self, file: &str) -> Result<u64, Fault> {
        Ok(self.0.stat_at(PathFlags::SYMLINK_FOLLOW, file)?.size)
    }

    fn identity(&self, path: &str) -> Result<Identity, Fault> {
        let hash = match path {
            "" => self.0.metadata_hash()?,
            path => self.0.metadata_hash_at(PathFlags::SYMLINK_FOLLOW, path)?,
        };
        Ok((hash.lower, hash.upper))
    }

    fn read(&self, file: &str, limit: usize) -> Result<(Identity, Vec<u8>), Fault> {
        let file = self.open_at(file, OpenFlags::empty())?;
        let hash = file.metadata_hash()?;
        let mut content = Vec::new();
        let mut step = FIRST_READ_BYTES;
        while content.len() < limit {
            let wanted = step.min(limit - content.len());
            let (chunk, at_end) = file.read(wanted as u64, content.len() as u64)?;
            // A host that returns more bytes than requested must not increase the length.
            let taken = chunk.len().min(wanted);
            if content.is_empty() {
                content = chunk;
                content.truncate(taken);
            } else {
                content.extend_from_slice(&chunk[..taken]);
            }
            if at_end || taken == 0 {
                break;
            }
            step = NEXT_READ_BYTES;
        }
        Ok(((hash.lower, hash.upper), content))
    }
}

impl From<DescriptorType> for Kind {
    fn from(kind: DescriptorType) -> Self {
        match kind {
            DescriptorType::RegularFile => Self::File,
            DescriptorType::Directory => Self::Directory,
            DescriptorType::SymbolicLink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Self {
        Self(code.name())
    }
}
