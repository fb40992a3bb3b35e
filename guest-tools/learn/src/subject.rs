//! A document of a topic, and its names.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// A document of a topic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The path of the file, relative to the topic's directory.
    pub(crate) path: String,
    /// The name by which it is loaded.
    pub(crate) slug: String,
    /// The slug without the disambiguation from other files. `None` if no other file has the same
    /// slug.
    pub(crate) shared: Option<String>,
    /// True if a component of the path starts with a dot. The slug does not contain that dot.
    pub(crate) hidden: bool,
    /// True if the subject can never be loaded.
    pub(crate) disabled: bool,
    /// True if the subject is in the system prompt.
    pub(crate) learned: bool,
}

impl Subject {
    pub(crate) fn new(path: String) -> Self {
        let (slug, hidden) = (slug_of(&path), is_hidden(&path));
        Self { path, slug, shared: None, hidden, disabled: false, learned: false }
    }

    /// Returns the extension of the file name, or "".
    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        split_extension(without_dot(name)).1
    }
}

/// Returns the name by which a file is loaded: its path without the extension, and without the
/// leading dot of any component.
pub(crate) fn slug_of(path: &str) -> String {
    let mut slug = without_dots(path);
    let name = slug.rfind('/').map_or(0, |slash| slash + 1);
    let end = name + split_extension(&slug[name..]).0.len();
    slug.truncate(end);
    slug
}

pub(crate) fn without_dots(path: &str) -> String {
    if !is_hidden(path) {
        return path.to_owned();
    }
    let components: Vec<&str> = path.split('/').map(without_dot).collect();
    components.join("/")
}

/// Returns a component without its leading dot. No component is only a dot, so the result is not
/// empty.
fn without_dot(component: &str) -> &str {
    component.strip_prefix('.').unwrap_or(component)
}

/// Splits a name without leading dot into stem and extension. The stem is never
/// empty.
fn split_extension(name: &str) -> (&str, &str) {
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, extension),
        _ => (name, ""),
    }
}

pub(crate) fn is_hidden(path: &str) -> bool {
    let path = path.as_bytes();
    path.starts_with(b".") || path.windows(2).any(|pair| pair[0] == b'/' && pair[1] == b'.')
}
