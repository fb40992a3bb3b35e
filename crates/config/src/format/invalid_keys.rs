//! What had to be taken out of a file before the rest could be read.

use std::collections::HashSet;

use crate::format::key::KeyPath;

/// The dotted keys of values that were taken out because they were wrong, or
/// that were likely meant by an unknown key: they are not missing.
#[derive(Debug, Default)]
pub(crate) struct InvalidKeys(HashSet<String>);

impl InvalidKeys {
    /// Whether a value, or a table around it, was taken out.
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
