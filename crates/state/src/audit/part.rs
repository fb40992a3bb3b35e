//! The parts of the log, and its size.

/// The size limit of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSize {
    /// The size of a file, in bytes, after which a new file is started.
    pub file: u64,
    /// The number of files for calls, approvals and trust; the oldest are removed. Details, such as
    /// nested calls and refusals, have half as many files.
    pub files: u64,
}

/// A chain of the log, with its own files, head and size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Outermost calls, approvals and trust.
    Calls,
    /// Nested calls and refusals.
    Details,
}

impl Part {
    pub(crate) const ALL: [Self; 2] = [Self::Details, Self::Calls];

    /// Returns the file name of the head.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Calls => "head.json",
            Self::Details => "details.json",
        }
    }

    /// Returns the prefix of the file names.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Calls => "audit-",
            Self::Details => "details-",
        }
    }

    /// Returns the maximum number of files.
    pub(crate) fn files(self, size: &AuditSize) -> u64 {
        match self {
            Self::Calls => size.files.max(1),
            Self::Details => size.files.div_ceil(2).max(1),
        }
    }
}

impl Default for AuditSize {
    /// Returns eight files of 16 MiB.
    fn default() -> Self {
        Self { file: 16 << 20, files: 8 }
    }
}
