//! Where the system shows the program that runs.

use std::fs::Metadata;

/// The file of the program that runs, also where it was moved since; where the system shows
/// that.
pub(crate) fn program_file() -> Option<Metadata> {
    std::fs::metadata("/proc/self/exe").ok()
}
