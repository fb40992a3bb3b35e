//! The repository itself: documentation, snapshots, and rules for the code.

mod documentation;
mod fuzzing;
mod generated;
mod house;
mod links;
mod snapshot;
mod snapshots;
mod templates;
mod tools_page;

use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

use crate::support::repository;

/// The names of the functions and cases of all crates, guests and tests.
fn test_names() -> &'static BTreeSet<String> {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let sources = test_sources();
        let functions = sources.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
        functions.map(|(name, _)| name.to_owned()).collect()
    });
    &NAMES
}

/// The source text of all crates, guests and tests.
fn test_sources() -> String {
    let mut sources = String::new();
    let mut directories: Vec<_> =
        ["tests", "crates", "guest-tools"].map(|name| repository().join(name)).into();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push_str(&fs::read_to_string(path).unwrap());
            } else if path.extension().is_some_and(|extension| extension == "case") {
                // The name of a case is a test name; a file may contain several cases.
                let text = fs::read_to_string(&path).unwrap();
                let cases = text.lines().filter_map(|line| line.strip_prefix("=== case "));
                let cases = cases.filter_map(|name| name.split(' ').next());
                for name in cases.chain(path.file_stem().unwrap().to_str()) {
                    sources.push_str(&format!("fn {name}("));
                }
            }
        }
    }
    sources
}
