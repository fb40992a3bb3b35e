use kitbag_sdk::serde_json::json;
use proptest::prelude::*;

use super::{Memory, loaded};

/// Plain model: matches a pattern component by component.
fn matches(pattern: &[&str], slug: &[&str]) -> bool {
    match (pattern, slug) {
        ([], []) => true,
        (["**"], rest) => !rest.is_empty(),
        (["**", tail @ ..], _) => (0..=slug.len()).any(|skipped| matches(tail, &slug[skipped..])),
        ([first, pattern @ ..], [name, slug @ ..]) => {
            matches_component(first.as_bytes(), name.as_bytes()) && matches(pattern, slug)
        }
        _ => false,
    }
}

fn matches_component(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            (0..=name.len()).any(|skipped| matches_component(rest, &name[skipped..]))
        }
        ([b'?', pattern @ ..], [_, name @ ..]) => matches_component(pattern, name),
        ([first, pattern @ ..], [other, name @ ..]) => {
            first == other && matches_component(pattern, name)
        }
        _ => false,
    }
}

#[track_caller]
fn check_glob(pattern: &str, expected: &[&str]) {
    let files = Memory::of(&["a.md", "ab.md", "b/a.md", "b/ab.md", "b/c/a.md", "b/c/d/a.md"]);
    assert_eq!(loaded(&files, json!([pattern])), expected, "{pattern}");
}

#[test]
fn a_star_stays_within_one_level() {
    check_glob("*", &["a", "ab"]);
    check_glob("b/*", &["b/a", "b/ab"]);
    check_glob("*/*", &["b/a", "b/ab"]);
    check_glob("*b", &["ab"]);
    check_glob("b/*/a", &["b/c/a"]);
    check_glob("a?", &["ab"]);
    check_glob("[ab]*", &["a", "ab"]);
}

#[test]
fn two_stars_cross_levels() {
    check_glob("**", &["a", "ab", "b/a", "b/ab", "b/c/a", "b/c/d/a"]);
    check_glob("**/a", &["a", "b/a", "b/c/a", "b/c/d/a"]);
    check_glob("b/**", &["b/a", "b/ab", "b/c/a", "b/c/d/a"]);
    check_glob("b/**/a", &["b/a", "b/c/a", "b/c/d/a"]);
    check_glob("**/c/**", &["b/c/a", "b/c/d/a"]);
}

proptest! {
    #[test]
    fn globs_match_component_by_component(
        pattern in prop::collection::vec(prop_oneof![1 => Just("**".to_owned()), 4 => "[ab?]{0,1}[*]?[ab?]{1,2}[*]?"], 1..4),
        slugs in prop::collection::btree_set(prop::collection::vec("[ab]{1,3}", 1..4), 1..12),
    ) {
        // A file and a directory cannot have the same name, except for the extension.
        let paths: Vec<String> = slugs.iter().map(|slug| format!("{}.md", slug.join("/"))).collect();
        let mut files = Memory::of(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        files = files.file("zz.md", "");
        let components: Vec<&str> = pattern.iter().map(String::as_str).collect();
        let mut expected: Vec<String> = slugs
            .iter()
            .filter(|slug| matches(&components, &slug.iter().map(String::as_str).collect::<Vec<_>>()))
            .map(|slug| slug.join("/"))
            .chain(["zz".to_owned()])
            .collect();
        if components == ["**"] {
            expected.dedup();
        }
        expected.sort();
        prop_assert_eq!(loaded(&files, json!([pattern.join("/"), "zz"])), expected);
    }
}
