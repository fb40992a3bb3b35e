//! The values that were removed from a file so that the rest could be read.

use std::collections::HashSet;

use crate::format::key::KeyPath;

/// The dotted keys of values that were removed because they were invalid, or because an unknown key
/// was likely meant for them. They are not reported as missing.
#[derive(Debug, Default)]
pub(crate) struct InvalidKeys(HashSet<String>);

impl InvalidKeys {
    /// Returns whether a value, or a table around it, was removed.
    pub(crate) fn covers(&self, path: &KeyPath<'_>) -> bool {
        let mut outer = Some(path);
        while let Some(path) = outer.filter(|_| !self.0.is_empty()) {
            if self.0.contains(&path.to_string()) {
                return true;
            }
            outer = path.parent();
        }
        false
    }

    pub(crate) fn add(&mut self, path: &KeyPath<'_>) {
        self.0.insert(path.to_string());
    }
}
