//! The reviewed files under `snapshots/`: each names the test file that uses it.

use std::fs;
use std::path::Path;

use crate::support::repository;

/// Every file below a directory, with its path relative to `snapshots/`.
fn each(directory: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => each(&path, look),
            false => look(&path, &fs::read_to_string(&path).unwrap()),
        }
    }
}

#[test]
fn snapshots_are_in_the_directory_of_their_test_file() {
    let (root, mut count) = (repository().join("snapshots"), 0);
    each(&root, &mut |path, content| {
        let suite = path.strip_prefix(&root).unwrap().parent().unwrap();
        let test_file = Path::new("tests").join(suite).with_extension("rs");
        let source = content.lines().find_map(|line| line.strip_prefix("source: "));
        assert_eq!(source, test_file.to_str(), "{}", path.display());
        let test = fs::read_to_string(repository().join(&test_file)).unwrap();
        assert!(test.contains("snapshot!("), "{} asserts no snapshot", test_file.display());
        count += 1;
    });
    assert!(count > 100, "{count} snapshots");
}
