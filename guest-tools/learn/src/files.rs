//! The file system interface of the tool.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

/// A directory of documents, read-only.
///
/// Paths are relative to the directory, with `/` as separator; `""` is the directory itself. Paths
/// that leave it are refused with [`Fault::NOT_PERMITTED`].
pub(crate) trait Files {
    /// Lists one directory, in any order, until `visit` breaks. Skips names that are not Unicode.
    fn list(
        &self,
        directory: &str,
        visit: &mut dyn FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> Result<(), Fault>;

    /// Returns the type of a symbolic link's final target.
    fn target(&self, link: &str) -> Result<Kind, Fault>;

    /// Returns the text of a symbolic link. `None` for other entries.
    fn link(&self, path: &str) -> Option<String>;

    /// Returns the identity of a file or directory. Two paths to the same entry have equal values.
    fn identity(&self, path: &str) -> Result<Identity, Fault>;

    /// Returns the number of hard links of a file.
    fn names(&self, file: &str) -> Result<u64, Fault>;

    /// Returns the size of a file in bytes.
    fn size(&self, file: &str) -> Result<u64, Fault>;

    /// Reads a file from its start, at most this many bytes. The identity belongs to the opened
    /// file, even if the path changes in the meantime.
    fn read(&self, file: &str, limit: usize) -> Result<(Identity, Vec<u8>), Fault>;
}

/// The identity of a file, shared by all paths to it.
pub(crate) type Identity = (u64, u64);

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// Anything else: a device, a FIFO, a socket.
    Other,
}

/// Why an operation failed: the name of a WASI error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault(pub(crate) &'static str);

impl Fault {
    /// No entry exists at the path.
    pub(crate) const NO_ENTRY: Self = Self("no-entry");
    /// The path leads out of the directory.
    pub(crate) const NOT_PERMITTED: Self = Self("not-permitted");
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
