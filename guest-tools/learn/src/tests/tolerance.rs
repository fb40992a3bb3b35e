use kitbag_sdk::serde_json::json;

use super::{Memory, check, check_error, load};

fn topic() -> Memory {
    let names = ["tokio/README.md", "tokio/sync.md", "Rust/Errors.md", "serde.md", "axum.md"];
    let more: Vec<String> = (0..50).map(|number| format!("other/{number}.md")).collect();
    let all: Vec<&str> = names.into_iter().chain(more.iter().map(String::as_str)).collect();
    Memory::of(&all)
}

#[test]
fn missing_names_get_five_suggestions_and_a_count() {
    let miss = |name: &str| load(&topic(), json!({}), json!(name)).unwrap_err();
    assert_eq!(
        miss("tokyo"),
        "no subject of topic `skills` matches `tokyo`; the nearest of 55 are `tokio/sync`, \
         `tokio/README`, `Rust/Errors`, `other/0`, `other/1`"
    );
    assert!(miss("sync").contains("are `tokio/sync`, "), "{}", miss("sync"));
    assert!(miss("serd").contains("are `serde`, "), "{}", miss("serd"));
    assert!(miss("tokio/s*x").contains("`tokio/sync`, "), "{}", miss("tokio/s*x"));
    assert!(miss(&"x".repeat(10_000)).len() < 500);
    // A short list is named completely.
    check_error(
        load(&Memory::of(&["a.md", "b.md"]), json!({}), json!("c")),
        "no subject of topic `skills` matches `c`; it has `a`, `b`",
    );
}

#[test]
fn case_and_file_extension_may_differ() {
    for name in ["rust/errors", "RUST/ERRORS", "Rust/Errors.md", "rust/errors.MD", "./Rust/Errors"]
    {
        check(load(&topic(), json!({}), json!(name)), "Rust/Errors.md");
    }
    let files = Memory::of(&["Read.md", "READ.txt", ".hidden.md", "off.md"]);
    check_error(
        load(&files, json!({}), json!("read")),
        "`read` may be any of `READ`, `Read`; name one of them",
    );
    // Hidden and disabled names are not suggested.
    assert!(load(&files, json!({}), json!("HIDDEN")).is_err());
    assert!(load(&files, json!({ "disabled": ["off"] }), json!("OFF")).is_err());
    assert!(load(&files, json!({ "disabled": ["off"] }), json!("off.md")).is_err());
}

#[test]
fn a_bare_directory_is_listed() {
    for name in ["tokio", "tokio/"] {
        check(
            load(&topic(), json!({ "description": "About." }), json!(name)),
            "\
# Topic: skills

## Available subjects in `tokio`:

- tokio/README
- tokio/sync

Use the `learn` tool with the `subjects` argument to learn specific subjects.",
        );
    }
    // In addition to subjects, a directory is only named.
    check(
        load(&topic(), json!({}), json!(["serde", "tokio"])),
        "<subject name=\"serde\">\nserde.md\n</subject>\n\n\
         Directories; name one alone to list it: `tokio`.",
    );
    let listing = load(&topic(), json!({}), json!(["tokio", "none-such"])).unwrap();
    assert!(listing.ends_with("\n\nNo subject matches: `none-such`."), "{listing}");
}

#[test]
fn lists_may_be_strings() {
    let expected = "<subject name=\"axum\">\naxum.md\n</subject>\n\
                    <subject name=\"serde\">\nserde.md\n</subject>";
    check(load(&topic(), json!({}), json!("[\"serde\", \"axum\"]")), expected);
    check(load(&topic(), json!({}), json!("[as]*")), expected);
}
