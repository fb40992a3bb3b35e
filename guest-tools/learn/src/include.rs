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
    /// Names in lower case, each with at most one `*`, one a line.
    secrets: String,
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
        let secrets = topic.secrets.clone();
        Ok(Self { secrets, include, include_above: patterns(&include_above) })
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
            let mut forms = self.secrets.as_bytes().split(|byte| *byte == b'\n');
            forms.any(|form| has_form(name.as_bytes(), form))
        }
    }
}

/// Whether a name is this one, or has what stands before and behind the `*`. This is asked
/// for each file of a topic and each form, where a whole glob would take too long.
fn has_form(name: &[u8], form: &[u8]) -> bool {
    match form.iter().position(|byte| *byte == b'*') {
        None => name == form,
        Some(star) => {
            let rest = name.strip_prefix(&form[..star]);
            rest.is_some_and(|rest| rest.ends_with(&form[star + 1..]))
        }
    }
}
