use kitbag_sdk::serde_json::json;

use super::{Memory, check, check_error, list, listed, load, loaded};

/// Checks the slug of a file, and that the file is loaded by it.
#[track_caller]
fn check_slug(path: &str, slug: &str) {
    let files = Memory::default().file(path, "content");
    let answer = load(&files, json!({ "include": [".github", ".a", ".a/.b"] }), json!(slug));
    let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(answer.contains("content"), "{path}: {answer}");
}

#[test]
fn a_slug_is_the_path_without_extension_and_leading_dots() {
    check_slug("a.md", "a");
    check_slug("a", "a");
    check_slug("dir/a.md", "dir/a");
    check_slug("a.tar.gz", "a.tar");
    check_slug("dir.d/a.md", "dir.d/a");
    check_slug("ast-grep/.rules.md", "ast-grep/rules");
    check_slug(".github/ci.yml", "github/ci");
    check_slug(".a/.b/.c", "a/b/c");
    check_slug(".gitignore", "gitignore");
    check_slug("a.", "a");
    check_slug("..a", ".a");
    check_slug("ä ö.md", "ä ö");
}

#[test]
fn subjects_are_in_the_order_of_their_slugs_bytes() {
    let files = Memory::of(&["b.md", "a/b.md", "a.md", "a-b.md", "B.md", "ä.md", "a/a.md"]);
    let expected = ["B", "a", "a-b", "a/a", "a/b", "b", "ä"];
    assert_eq!(listed(&files), expected);
    assert_eq!(loaded(&files, json!(["b", "**", "a"])), expected);
}

#[test]
fn files_and_directories_may_share_a_name() {
    let files = Memory::of(&["a.md", "a/b.md"]);
    assert_eq!(listed(&files), ["a", "a/b"]);
    check(load(&files, json!({}), json!("a")), "a.md");
    check(load(&files, json!({}), json!("a/b")), "a/b.md");
}

#[test]
fn two_files_of_one_slug_keep_their_full_names() {
    let files = Memory::of(&["d/a.md", "d/a.toml", "d/b.md"]);
    assert_eq!(listed(&files), ["d/a.md", "d/a.toml", "d/b"]);
    check(load(&files, json!({}), json!("d/a.md")), "d/a.md");
    check(load(&files, json!({}), json!("d/a.toml")), "```toml\nd/a.toml\n```");
    assert_eq!(loaded(&files, json!("d/a*")), ["d/a.md", "d/a.toml"]);
    check_error(
        load(&files, json!({}), json!(["d/a", "d/b"])),
        "subject `d/a` can mean several files: `d/a.md`, `d/a.toml`; name one of them",
    );
}

#[test]
fn files_without_extension_keep_a_shared_name() {
    let files = Memory::of(&["a", "a.md"]);
    assert_eq!(listed(&files), ["a", "a.md"]);
    check(load(&files, json!({}), json!("a")), "a");
    check(load(&files, json!({}), json!("a.md")), "a.md");
}

#[test]
fn full_names_do_not_collide_with_slugs() {
    let files = Memory::of(&["a.md", "a.toml", "a.md.txt"]);
    assert_eq!(listed(&files), ["a.md", "a.md.txt", "a.toml"]);
    check(load(&files, json!({}), json!("a.md")), "a.md");
    check(load(&files, json!({}), json!("a.md.txt")), "a.md.txt");
}

#[test]
fn hidden_files_can_share_a_slug() {
    let files = Memory::of(&["a.md", ".a.md", "x/b.md", ".x/b.md"]);
    let keys = json!({ "include": [".x"] });
    let listing = list(&files, keys.clone()).unwrap();
    assert!(listing.contains("\n- a.md\n- x/b.md\n"), "{listing}");
    check(load(&files, json!({}), json!(".a.md")), ".a.md");
    check(load(&files, keys, json!(".x/b.md")), ".x/b.md");
    check_error(
        load(&files, json!({}), json!("a")),
        "subject `a` can mean several files: `.a.md`, `a.md`; name one of them",
    );
}

#[test]
fn hidden_subjects_are_neither_listed_nor_matched() {
    let files = Memory::of(&["a.md", ".b.md", ".c/d.md", "e/.f/g.md"]);
    assert_eq!(listed(&files), ["a"]);
    assert_eq!(loaded(&files, json!("**")), ["a"]);
    assert_eq!(loaded(&files, json!(["*", "*/*", ".*", "?", "[a-z]"])), ["a"]);
    check_error(
        load(&files, json!({}), json!(["e/**", "c/*"])),
        "no subject of topic `skills` matches `c/*`, `e/**`; it has `a`",
    );
}

#[test]
fn hidden_subjects_are_loaded_by_exact_slug() {
    let files = Memory::of(&["a.md", ".b.md", ".c/d.md", "e/.f/g.md"]);
    check(load(&files, json!({}), json!("b")), ".b.md");
    let keys = json!({ "include": [".c", "**/.f"] });
    check(load(&files, keys.clone(), json!("c/d")), ".c/d.md");
    check(load(&files, keys, json!("e/f/g")), "e/.f/g.md");
}

#[test]
fn disabled_subjects_are_neither_listed_nor_loaded() {
    let files = Memory::of(&["a.md", "b.md", "c/d.md", ".e.md"]);
    let keys = json!({ "disabled": ["b", "c/d", "e"] });
    let listing = list(&files, keys.clone()).unwrap();
    assert!(listing.contains("- a\n") && !listing.contains("- b") && !listing.contains("c/d"));
    check_error(load(&files, keys.clone(), json!("b")), "subject `b` is disabled");
    check_error(load(&files, keys.clone(), json!("e")), "subject `e` is disabled");
    check_error(
        load(&files, keys.clone(), json!(["a", "c/d", "b"])),
        "subject `b` is disabled; subject `c/d` is disabled",
    );
    check(load(&files, keys.clone(), json!("**")), "<subject name=\"a\">\na.md\n</subject>");
    check_error(
        load(&files, keys, json!("c/*")),
        "no subject of topic `skills` matches `c/*`; it has `a`",
    );
}

#[test]
fn disabled_patterns_match_hidden_subjects() {
    let files =
        Memory::of(&["a.md", "b.rs", "sub/c.md", "sub/.d.md", ".sub/e.md", "sub/deep/f.md"]);
    let keys = json!({ "disabled": ["sub/*", "*.rs"] });
    let listing = list(&files, keys.clone()).unwrap();
    assert!(listing.contains("\n- a\n- sub/deep/f\n"), "{listing}");
    for name in ["b", "sub/c", "sub/d", "sub/e", "sub/none"] {
        let message = format!("subject `{name}` is disabled");
        check_error(load(&files, keys.clone(), json!(name)), &message);
    }
    check(load(&files, keys.clone(), json!("a")), "a.md");
    let all = load(&files, keys, json!("**")).unwrap();
    assert_eq!(all.matches("<subject name=").count(), 2, "{all}");
    // A string that is not a pattern is a name, case-sensitive.
    let listing = list(&files, json!({ "disabled": ["A", "a.", "sub"] })).unwrap();
    assert!(listing.contains("\n- a\n- b\n- sub/c\n"), "{listing}");
    check_error(
        list(&files, json!({ "disabled": ["a/***"] })),
        "topic `skills`: in `disabled`, `a/***` is not a valid pattern: wildcards are either \
         regular `*` or recursive `**`",
    );
}

#[test]
fn links_to_disabled_subjects_are_disabled() {
    let files = Memory::of(&["a.md", "sub/b.md", "sub/c.md"])
        .link("alias.md", "sub/b.md")
        .link("chain.md", "alias.md")
        .link("other", "sub")
        .link("a-too.md", "a.md");
    let keys = json!({ "disabled": ["sub/b"], "learned": ["alias"] });
    let listing = list(&files, keys.clone()).unwrap();
    assert!(listing.contains("\n- a\n- a-too\n- other/c\n- sub/c\n"), "{listing}");
    for name in ["alias", "chain", "other/b"] {
        let message = format!("subject `{name}` is disabled");
        check_error(load(&files, keys.clone(), json!(name)), &message);
    }
    // Disabling a link by its own name does not disable its target.
    let keys = json!({ "disabled": ["alias"] });
    check(load(&files, keys.clone(), json!("sub/b")), "sub/b.md");
    check_error(load(&files, keys, json!("alias")), "subject `alias` is disabled");
}

#[test]
fn disabled_overrides_learned() {
    let files = Memory::of(&["a.md", "b.md"]);
    let keys = json!({ "disabled": ["a"], "learned": ["*"] });
    assert!(!list(&files, keys.clone()).unwrap().contains("- a"));
    check_error(load(&files, keys, json!("a")), "subject `a` is disabled");
}

#[test]
fn disabled_names_need_no_file() {
    let files = Memory::of(&["a.md"]);
    check_error(load(&files, json!({ "disabled": ["x"] }), json!("x")), "subject `x` is disabled");
}

#[test]
fn concurrent_changes_do_not_enable_subjects() {
    let both = Memory::of(&["a.md", "a.toml", "b.md"]);
    let one = Memory::of(&["a.md", "b.md"]);
    for keys in [json!({ "disabled": ["a"] }), json!({ "disabled": ["a.md", "a.toml"] })] {
        let listing = list(&both, keys.clone()).unwrap();
        assert!(!listing.contains("- a"), "{listing}");
        let listing = list(&one, keys.clone()).unwrap();
        assert!(!listing.contains("- a"), "{listing}");
        check_error(load(&one, keys, json!("a")), "subject `a` is disabled");
    }
    let listing = list(&both, json!({ "disabled": ["a.md"] })).unwrap();
    assert!(!listing.contains("- a.md") && listing.contains("- a.toml"), "{listing}");
}

#[test]
fn a_topic_without_a_directory_is_an_error() {
    let files = Memory::default().unlistable("", "no-entry");
    check_error(
        list(&files, json!({})),
        "the directory of topic `skills` is missing: `/subjects` does not exist",
    );
    let files = Memory::default().unlistable("", "io");
    check_error(list(&files, json!({})), "the directory of topic `skills` cannot be read (io)");
}

#[test]
fn non_files_are_not_subjects() {
    let files = Memory::of(&["a.md"]).device("pipe.md").directory("empty.md");
    assert_eq!(listed(&files), ["a"]);
    check_error(
        load(&files, json!({}), json!("pipe")),
        "no subject of topic `skills` matches `pipe`; it has `a`",
    );
}

#[test]
fn hard_links_to_disabled_files_are_not_read() {
    let files = Memory::of(&["salaries.md", "a.md"]).hard_link("copy.md", "salaries.md");
    let keys = json!({ "disabled": ["salaries"] });
    check_error(load(&files, keys.clone(), json!("copy")), "Disabled: `copy`.");
    check(
        load(&files, keys, json!("*")),
        "<subject name=\"a\">\na.md\n</subject>\n\nDisabled: `copy`.",
    );
}

#[test]
fn files_replaced_by_disabled_ones_are_not_read() {
    let files = Memory::of(&["salaries.md", "a.md"]).exchanged("a.md", "salaries.md");
    let keys = json!({ "disabled": ["salaries"], "learned": ["a"] });
    check_error(load(&files, keys.clone(), json!("a")), "Disabled: `a`.");
    check(load(&files, json!({}), json!("a")), "salaries.md");
}

#[test]
fn unlistable_disabled_files_have_no_other_name() {
    let files = Memory::of(&["hr/pay.md", "a.md", "b.md"])
        .hard_link("copy.md", "hr/pay.md")
        .link("alias.md", "hr/pay.md")
        .hard_link("c.md", "b.md")
        .unlistable("hr", "not-permitted");
    let keys = json!({ "disabled": ["hr/**"] });
    check_error(load(&files, keys.clone(), json!("copy")), "Disabled: `copy`.");
    check_error(load(&files, keys.clone(), json!("alias")), "subject `alias` is disabled");
    check(load(&files, keys.clone(), json!("a")), "a.md");
    // It may be another name of a file in that directory.
    check_error(load(&files, keys, json!("c")), "Disabled: `c`.");
    check(load(&files, json!({ "disabled": ["other/**"] }), json!("c")), "b.md");
}

#[test]
fn excluded_disabled_files_have_no_other_name() {
    let files = Memory::of(&[".hr/deep/pay.md", "a.md"]).hard_link("copy.md", ".hr/deep/pay.md");
    for disabled in [".hr/**", "hr/deep/pay", "**/pay*"] {
        let keys = json!({ "disabled": [disabled] });
        check_error(load(&files, keys.clone(), json!("copy")), "Disabled: `copy`.");
        check(load(&files, keys, json!("a")), "a.md");
    }
    check(load(&files, json!({ "disabled": ["other"] }), json!("copy")), ".hr/deep/pay.md");
}
