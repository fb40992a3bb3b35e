//! A document of a topic, and what it is called.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// A document of a topic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The file, relative to the topic's directory.
    pub(crate) path: String,
    /// The name under which it is loaded.
    pub(crate) slug: String,
    /// The slug that it would have if no other file had the same one; `None` if none does.
    pub(crate) shared: Option<String>,
    /// A component of the path starts with a dot. The slug has lost that dot.
    pub(crate) hidden: bool,
    /// It can never be loaded.
    pub(crate) disabled: bool,
    /// It is in the system prompt.
    pub(crate) learned: bool,
}

impl Subject {
    pub(crate) fn new(path: String) -> Self {
        let (slug, hidden) = (slug_of(&path), is_hidden(&path));
        Self { path, slug, shared: None, hidden, disabled: false, learned: false }
    }

    /// The extension of the file's name, or "".
    pub(crate) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        split_extension(without_dot(name)).1
    }
}

/// The name under which a file is loaded: its path without the extension, and
/// without the leading dot of any component.
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
