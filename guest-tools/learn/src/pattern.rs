//! Patterns of subjects: a name or a glob.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use kitbag_glob::Glob;

use crate::notes::shortened;
use crate::subject::Subject;

/// Maximum length of a pattern, since it is compared with every subject.
const PATTERN_BYTES: usize = 1024;

/// The name of one subject, or a glob for several.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    /// `None` for a name without `*`, `?` and `[`, which matches only itself; otherwise the glob,
    /// or the reason why it is not valid.
    glob: Option<Result<Glob, String>>,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        let glob = if !text.contains(['*', '?', '[']) {
            None
        } else if text.len() > PATTERN_BYTES {
            Some(Err(format!("it is longer than {PATTERN_BYTES} bytes")))
        } else {
            Some(Glob::new(text).map_err(ToOwned::to_owned))
        };
        Self { text: text.to_owned(), glob }
    }

    /// Returns true if a subject matches: by its exact slug, or by a glob unless it is hidden.
    pub(crate) fn matches(&self, subject: &Subject) -> bool {
        subject.slug == self.text
            || match &self.glob {
                Some(Ok(glob)) if !subject.hidden => glob.matches(&subject.slug),
                _ => false,
            }
    }

    /// Returns true if a name matches, hidden or not.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.text == name || matches!(&self.glob, Some(Ok(glob)) if glob.matches(name))
    }

    /// Returns true if a path below a directory may match.
    pub(crate) fn may_name_below(&self, directory: &str) -> bool {
        let plain = self.text.split(['*', '?', '[']).next().unwrap_or_default();
        match plain.strip_prefix(directory) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => plain.len() < self.text.len() && directory.starts_with(plain),
        }
    }

    /// Returns the error if the pattern is an invalid glob, which matches only its exact slug.
    pub(crate) fn error(&self) -> Option<String> {
        let Some(Err(reason)) = &self.glob else { return None };
        Some(format!("`{}` is not a valid pattern: {reason}", shortened(&self.text)))
    }
}
