//! `docs/promises.md`: each promise of the documentation with the tests that prove it.

use std::fmt::Write as _;

use toml_edit::{DocumentMut, Item};

use super::assert_current;
use crate::meta::test_names;

/// An area and its promises, each with the names of its tests.
type Area = (String, Vec<(String, Vec<String>)>);

fn areas() -> Vec<Area> {
    let document: DocumentMut = include_str!("promises.toml").parse().unwrap();
    let tests = |item: &Item| {
        let names = item.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        names.collect()
    };
    let promises = |area: &Item| {
        let promises = area.as_table().unwrap().iter();
        promises.map(|(promise, item)| (promise.to_owned(), tests(item))).collect()
    };
    document.iter().map(|(area, item)| (area.to_owned(), promises(item))).collect()
}

#[test]
fn each_promise_has_existing_tests() {
    let names = test_names();
    let mut missing = Vec::new();
    for (promise, tests) in areas().into_iter().flat_map(|(_, promises)| promises) {
        if tests.is_empty() {
            missing.push(format!("`{promise}` has no test"));
        }
        let unknown = tests.iter().filter(|name| !names.contains(*name));
        missing.extend(unknown.map(|name| format!("`{promise}`: no test `{name}`")));
    }
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_page_of_promises_is_current() {
    let areas = areas();
    let count: usize = areas.iter().map(|(_, promises)| promises.len()).sum();
    let mut page = format!(
        "# Promises and their tests\n\n\
         The appendix of [security.md](security.md): {count} promises of this documentation, \
         each with the tests that\nprove it. `cargo test --workspace NAME` runs a test. This \
         page is generated from\n`tests/meta/generated/promises.toml`; a test checks that each \
         test exists.\n"
    );
    for (area, promises) in areas {
        let _ = write!(page, "\n## {area}\n\n| promise | test |\n|---|---|\n");
        for (promise, tests) in promises {
            let tests: Vec<_> = tests.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| {promise} | {} |", tests.join(", "));
        }
    }
    assert_current("promises.md", &page);
}
