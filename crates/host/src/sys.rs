//! What differs between systems. Everything else of this crate is what every Unix has;
//! Linux is where it is tested.

#[cfg(feature = "compiler")]
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// Has the kernel kill this process when the one that started it ends.
#[cfg(all(feature = "compiler", target_os = "linux"))]
pub(crate) fn end_with_parent() -> io::Result<()> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Elsewhere its own limit of processor time ends it.
#[cfg(all(feature = "compiler", not(target_os = "linux")))]
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(())
}

/// A path under which an open file can be opened again, where such paths are mounted.
pub(crate) fn path_of(fd: BorrowedFd<'_>) -> PathBuf {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    PathBuf::from(format!("{directory}/{}", fd.as_raw_fd()))
}
