//! What in a topic's directory is no subject at all: dot directories, and what looks
//! like a secret.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use kitbag_sdk::ErrorInfo;

use crate::arguments::Topic;
use crate::select::Pattern;

/// Tells what may be a subject.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// Patterns of names, in lower case.
    secrets: Vec<Pattern>,
    include: Vec<Pattern>,
    /// The same for each directory that they lead through.
    include_above: Vec<Pattern>,
}

impl Filter {
    /// Reads the patterns of a topic.
    ///
    /// # Errors
    ///
    /// One of them is none.
    pub(crate) fn new(topic: &Topic) -> Result<Self, ErrorInfo> {
        let patterns = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().map(|text| Pattern::new(text)).collect()
        };
        let above = |text: &String| -> Vec<String> {
            let ends = text.match_indices('/').map(|(end, _)| text[..end].to_owned());
            ends.collect()
        };
        let include = patterns(&topic.include);
        if let Some(error) = include.iter().find_map(Pattern::error) {
            return Err(ErrorInfo::new(format!("topic `{}`: in `include`, {error}", topic.id)));
        }
        let include_above: Vec<_> = topic.include.iter().flat_map(above).collect();
        let secrets: Vec<_> = topic.secrets.iter().map(|name| name.to_lowercase()).collect();
        Ok(Self { secrets: patterns(&secrets), include, include_above: patterns(&include_above) })
    }

    /// Whether a file may be a subject.
    pub(crate) fn takes_file(&self, path: &str) -> bool {
        self.is_taken(path, false) || self.includes(path)
    }

    /// Whether there may be subjects in a directory.
    pub(crate) fn enters(&self, path: &str) -> bool {
        self.is_taken(path, true)
            || self.includes(path)
            || self.include_above.iter().any(|pattern| pattern.names(path))
    }

    /// Whether nothing on the way to a file or directory keeps it out, or `include`
    /// names what does.
    fn is_taken(&self, path: &str, is_directory: bool) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| (end, true));
        let mut start = 0;
        ends.chain([(path.len(), is_directory)]).all(|(end, is_directory)| {
            let name = &path[start..end];
            start = end + 1;
            let is_kept_out = is_directory && name.starts_with('.') || self.is_secret(name);
            !is_kept_out || self.includes(&path[..end])
        })
    }

    fn includes(&self, path: &str) -> bool {
        self.include.iter().any(|pattern| pattern.names(path))
    }

    fn is_secret(&self, name: &str) -> bool {
        !self.secrets.is_empty() && {
            let name = name.to_lowercase();
            self.secrets.iter().any(|pattern| pattern.names(&name))
        }
    }
}
