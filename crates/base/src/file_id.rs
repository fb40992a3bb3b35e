//! The identity of files and directories.

/// Identifies a file or directory on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The number of the device.
    pub device: u64,
    /// The inode number on the device.
    pub inode: u64,
}
