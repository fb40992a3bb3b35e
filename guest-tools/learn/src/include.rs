//! Directories and files of a topic that are never subjects: dot directories. The host excludes
//! files that look like secrets: they have no type in a listing.

use alloc::format;

use kitbag_glob::Include;
use kitbag_sdk::ErrorInfo;

use crate::arguments::Topic;
use crate::notes::shortened;

/// Selects files that may be subjects.
#[derive(Debug, Default)]
pub(crate) struct Filter(Include);

impl Filter {
    /// Parses the patterns of a topic.
    ///
    /// # Errors
    ///
    /// A pattern is invalid.
    pub(crate) fn new(topic: &Topic) -> Result<Self, ErrorInfo> {
        let include = Include::new(&topic.include).map_err(|(text, reason)| {
            let (id, text) = (&topic.id, shortened(text));
            ErrorInfo::new(format!(
                "topic `{id}`: in `include`, `{text}` is not a valid pattern: {reason}"
            ))
        })?;
        Ok(Self(include))
    }

    /// Returns true if an entry of a visited directory may be a subject or contain one.
    pub(crate) fn takes_entry(&self, path: &str, name: &str, is_directory: bool) -> bool {
        match self.0.is_empty() {
            true => !is_dot_directory(name, is_directory),
            false => self.takes(path, is_directory),
        }
    }

    /// Like [`takes_entry`](Self::takes_entry), for any path.
    pub(crate) fn takes(&self, path: &str, is_directory: bool) -> bool {
        self.0.lets_in(path, is_directory, is_dot_directory)
    }
}

fn is_dot_directory(name: &str, is_directory: bool) -> bool {
    is_directory && name.starts_with('.')
}
