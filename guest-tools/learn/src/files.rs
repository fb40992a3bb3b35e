//! What the tool needs of a file system.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;

/// A directory of documents, read-only.
///
/// Paths are relative to it, `/` separates their components and `""` is the
/// directory itself. What leads out of it is refused with
/// [`Fault::NOT_PERMITTED`].
pub(crate) trait Files {
    /// Lists one directory, in any order, until `visit` breaks off. Entries
    /// whose names are no Unicode are left out.
    fn list(
        &self,
        directory: &str,
        visit: &mut dyn FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> Result<(), Fault>;

    /// Tells what a symbolic link leads to in the end.
    fn target(&self, link: &str) -> Result<Kind, Fault>;

    /// The text of a symbolic link; `None` for what is none.
    fn link(&self, path: &str) -> Option<String>;

    /// Tells directories and files apart: two paths to the same one have the same value.
    fn identity(&self, path: &str) -> Result<Identity, Fault>;

    /// How many names a file has.
    fn names(&self, file: &str) -> Result<u64, Fault>;

    /// The size of a file in bytes.
    fn size(&self, file: &str) -> Result<u64, Fault>;

    /// Reads a file from its beginning, at most so many bytes. The identity is that of
    /// the file that was opened, whatever the path leads to by now.
    fn read(&self, file: &str, limit: usize) -> Result<(Identity, Vec<u8>), Fault>;
}

/// What two paths to one file have in common.
pub(crate) type Identity = (u64, u64);

/// What a directory's entry is.
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
    /// There is nothing at that path.
    pub(crate) const NO_ENTRY: Self = Self("no-entry");
    /// The path leads out of the directory.
    pub(crate) const NOT_PERMITTED: Self = Self("not-permitted");
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}
