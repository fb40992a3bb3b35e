use kitbag_sdk::serde_json::json;

use super::{Memory, check, check_error, list, load};

#[test]
fn a_listing_has_the_topics_title_description_and_subjects() {
    let files = Memory::of(&["b/c.md", "a.md", "d.rs"]);
    let keys = json!({
        "title": "Skills",
        "description": "What the team knows.\n\nAsk before you guess.\n",
        "learned": ["a"],
    });
    check(
        list(&files, keys),
        "\
# Topic: Skills

What the team knows.

Ask before you guess.

## Available subjects:

- b/c
- d

Use the `learn` tool with the `subjects` argument to learn specific subjects.

## Already learned (in system prompt):

- a",
    );
}

#[test]
fn missing_parts_are_omitted_from_listings() {
    let keys = [
        json!({}),
        json!({ "title": null, "description": null }),
        json!({ "title": "", "description": " " }),
    ];
    for keys in keys {
        check(
            list(&Memory::of(&["a.md"]), keys),
            "\
# Topic: skills

## Available subjects:

- a

Use the `learn` tool with the `subjects` argument to learn specific subjects.",
        );
    }
}

#[test]
fn empty_listings_are_reported() {
    let nothing = "\
# Topic: skills

## Available subjects:

No subjects are available.";
    check(list(&Memory::default(), json!({})), nothing);
    check(list(&Memory::of(&[".a.md"]), json!({})), nothing);
    check(list(&Memory::of(&["a.md"]), json!({ "disabled": ["a"] })), nothing);
    check(
        list(&Memory::of(&["a.md"]), json!({ "learned": ["*"] })),
        &format!("{nothing}\n\n## Already learned (in system prompt):\n\n- a"),
    );
}

#[test]
fn hidden_subjects_are_learned_only_by_exact_name() {
    let files = Memory::of(&["a.md", ".b.md", ".c/d.md"]);
    let listing = list(&files, json!({ "learned": ["**"] })).unwrap();
    assert!(listing.ends_with("## Already learned (in system prompt):\n\n- a"), "{listing}");
    let listing = list(&files, json!({ "learned": ["b", "c/d"], "include": [".c"] })).unwrap();
    assert!(listing.ends_with("## Already learned (in system prompt):\n\n- b\n- c/d"), "{listing}");
}

#[test]
fn learned_subjects_can_be_loaded_again() {
    let files = Memory::of(&["a.md", "b.md"]);
    check(load(&files, json!({ "learned": ["a"] }), json!("a")), "a.md");
    check(
        load(&files, json!({ "learned": ["a"] }), json!("*")),
        "<subject name=\"a\">\na.md\n</subject>\n<subject name=\"b\">\nb.md\n</subject>",
    );
}

#[test]
fn a_name_with_a_line_break_stays_on_its_line() {
    let listing = list(&Memory::of(&["a\n## b.md"]), json!({ "title": "x\ny" })).unwrap();
    assert!(listing.starts_with("# Topic: x\\ny\n"), "{listing}");
    assert!(listing.contains("\n- a\\n## b\n"), "{listing}");
}

#[test]
fn a_directory_that_cannot_be_listed_is_named() {
    let files = Memory::of(&["a.md"]).unlistable("private", "access").unlistable(".git", "access");
    let listing = list(&files, json!({})).unwrap();
    assert!(listing.ends_with("specific subjects.\n\nCould not be listed (access): `private`."));
    check(
        load(&files, json!({}), json!("*")),
        "<subject name=\"a\">\na.md\n</subject>\n\nCould not be listed (access): `private`.",
    );
    check(load(&files, json!({}), json!("a")), "a.md");
}

#[test]
fn invalid_learned_patterns_are_an_error() {
    check_error(
        list(&Memory::of(&["a.md"]), json!({ "learned": ["a", "x["] })),
        "topic `skills`: in `learned`, `x[` is not a valid pattern: invalid range pattern",
    );
}
