//! The file of the running program.

use std::fs::Metadata;

/// Returns the metadata of the running program's file, even if it was moved, if the system provides
/// it.
pub(crate) fn program_file() -> Option<Metadata> {
    std::fs::metadata("/proc/self/exe").ok()
}
