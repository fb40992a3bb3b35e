//! Finds the names that are most similar to a name that does not exist.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use crate::entries::{Kind, list, stat};
use crate::location::Location;

/// Maximum number of suggested names.
const SUGGESTED: usize = 3;

/// Maximum number of entries that are examined for a path.
const ENTRIES: usize = 5_000;

/// Minimum similarity, from 0 to 1.
const SIMILAR: f64 = 0.6;

/// Returns at most three similar names, most similar first.
pub fn nearest<'a>(asked: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = asked.to_lowercase();
    let mut found: Vec<(f64, &str)> = Vec::new();
    for name in names {
        let similarity = strsim::normalized_damerau_levenshtein(&asked, &name.to_lowercase());
        if similarity >= SIMILAR {
            let place = found.partition_point(|(other, _)| *other >= similarity);
            found.insert(place, (similarity, name));
            found.truncate(SUGGESTED);
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns at most three paths similar to a path that does not exist: those with a similar name in
/// the last existing directory, otherwise those with the same name elsewhere.
pub fn nearest_paths(location: &Location) -> Vec<String> {
    let Some((above, missing, rest)) = stop(location) else { return Vec::new() };
    let mut names = Vec::new();
    // A directory that cannot be listed has no suggestions.
    let _ = list(&above.path, |name, kind| {
        if kind != Kind::Secret {
            names.push(name.to_owned());
        }
        if names.len() < ENTRIES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let similar = nearest(&missing, names.iter().map(String::as_str));
    let mut paths: Vec<String> = similar
        .into_iter()
        .map(|name| above.join(name))
        .map(|found| match &rest {
            Some(rest) if stat(&found.join(rest).path).is_ok() => found.join(rest).given,
            _ => found.given,
        })
        .collect();
    if paths.is_empty() {
        let name = location.path.rsplit('/').next().unwrap_or_default();
        paths = elsewhere(&above, name);
    }
    paths
}

/// Returns the point at which a path stops: the last existing directory, the missing name, and the
/// path after it.
fn stop(location: &Location) -> Option<(Location, String, Option<String>)> {
    let (mut above, name) = location.split()?;
    let (mut missing, mut rest) = (name.to_owned(), None);
    while stat(&above.path).is_err() {
        let (outer, name) = above.split()?;
        rest = Some(match rest {
            Some(rest) => format!("{missing}/{rest}"),
            None => missing,
        });
        missing = name.to_owned();
        above = outer;
    }
    Some((above, missing, rest))
}

/// Returns the paths below a directory that end with this name.
fn elsewhere(above: &Location, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut directories = VecDeque::from([above.clone()]);
    while let Some(directory) = directories.pop_front() {
        let _ = list(&directory.path, |entry, kind| {
            seen += 1;
            if entry == name && kind != Kind::Secret {
                found.push(directory.join(entry).given);
            }
            if kind == Kind::Directory && !entry.starts_with('.') && entry != "node_modules" {
                directories.push_back(directory.join(entry));
            }
            match seen < ENTRIES && found.len() < SUGGESTED {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        if seen >= ENTRIES || found.len() >= SUGGESTED {
            break;
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kitbag_sdk::Call;

    use super::*;

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["main.rs", "mail.rs", "lib.rs", "README.md"];
        assert_eq!(nearest("mian.rs", names), ["main.rs", "mail.rs"]);
        assert_eq!(nearest("readme.md", names), ["README.md"]);
        assert_eq!(nearest("zzz", names), Vec::<&str>::new());
    }

    #[test]
    fn similar_paths_are_suggested() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("source/deep")).unwrap();
        fs::write(directory.path().join("source/main.rs"), "").unwrap();
        fs::write(directory.path().join("source/deep/config.toml"), "").unwrap();
        let call = Call::new("t", directory.path().to_str().unwrap(), "{}", "{}");
        let check = |given: &str, expected: &[&str]| {
            assert_eq!(nearest_paths(&Location::new(&call, given).unwrap()), expected, "{given}");
        };
        check("source/mian.rs", &["source/main.rs"]);
        check("sorce/main.rs", &["source/main.rs"]);
        check("sorce/other.rs", &["source"]);
        check("config.toml", &["source/deep/config.toml"]);
        check("nothing/like/it", &[]);
    }
}
