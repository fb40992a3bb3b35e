use kitbag_sdk::serde_json::{Value, json};

use super::{Memory, check, check_error, list, load};

/// Loads a subject of a topic with further keys.
fn load_with(files: &Memory, keys: Value, subject: &str) -> Result<String, String> {
    load(files, keys, json!(subject))
}

#[track_caller]
fn check_unknown(files: &Memory, subject: &str) {
    let error = load_with(files, json!({}), subject).unwrap_err();
    assert!(error.starts_with("no subject of topic"), "{subject}: {error}");
}

#[test]
fn dot_directories_and_untyped_files_are_skipped() {
    let files = Memory::of(&["a.md", ".b.md", ".git/config", ".venv/readme.md", "sub/.cache/x.md"])
        // The host's representation of a file that looks like a secret.
        .device(".env")
        .device("keys/server.pem");
    let hidden =
        ["env", "keys/server", "git/config", "venv/readme", "sub/cache/x", ".env", ".git/config"];
    for subject in hidden {
        check_unknown(&files, subject);
    }
    // A dot file that is a document remains a subject.
    check(load_with(&files, json!({}), "b"), ".b.md");
    let listing = list(&files, json!({})).unwrap();
    assert!(listing.contains(":\n\n- a\n\nUse"), "{listing}");
}

#[test]
fn included_names_are_subjects() {
    let files = Memory::of(&[".github/ci.yml", ".github/deep/x.md", ".drafts/a.md", ".git/config"]);
    let keys = json!({ "include": [".github", ".d*"] });
    check(load_with(&files, keys.clone(), "github/deep/x"), ".github/deep/x.md");
    check(load_with(&files, keys.clone(), "drafts/a"), ".drafts/a.md");
    assert!(load_with(&files, keys, "git/config").is_err());
    // Only one file of the directory is included.
    let keys = json!({ "include": [".github/deep/x.md"] });
    check(load_with(&files, keys.clone(), "github/deep/x"), ".github/deep/x.md");
    assert!(load_with(&files, keys, "github/ci").is_err());
    check_error(
        list(&files, json!({ "include": ["x["] })),
        "topic `skills`: in `include`, `x[` is not a valid pattern: invalid range pattern",
    );
}

#[test]
fn links_do_not_bypass_the_filter() {
    let files = Memory::of(&["a.md", ".git/config", ".git/hooks/x.md"])
        .device(".env")
        .link("alias.md", ".env")
        .link("chain.md", "alias.md")
        .link("config.md", ".git/config")
        .link("hooks", ".git/hooks")
        .link("down/up.md", "../.git/config")
        .link("good.md", "a.md");
    for subject in ["alias", "chain", "config", "hooks/x", "down/up"] {
        check_unknown(&files, subject);
    }
    check(load_with(&files, json!({}), "good"), "a.md");
    check(load_with(&files, json!({ "include": [".git"] }), "config"), ".git/config");
}
