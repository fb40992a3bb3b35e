use kitbag_sdk::serde_json::{Value, json};

use super::{Memory, check, check_error, list, load};

const SECRETS: [&str; 4] = [".env", ".env.*", "*.pem", "id_*"];

/// Loads a subject of a topic with some keys of one's own and these secrets.
fn load_with(files: &Memory, mut keys: Value, subject: &str) -> Result<String, String> {
    keys["secrets"] = json!(SECRETS.join("\n"));
    load(files, keys, json!(subject))
}

#[track_caller]
fn check_unknown(files: &Memory, subject: &str) {
    let error = load_with(files, json!({}), subject).unwrap_err();
    assert!(error.starts_with("no subject of topic"), "{subject}: {error}");
}

#[test]
fn dot_directories_and_what_looks_like_a_secret_are_no_subjects() {
    let files = Memory::of(&[
        "a.md",
        ".b.md",
        ".env",
        ".env.local",
        "sub/.ENV",
        "keys/server.PEM",
        "id_ed25519",
        "id_rsa/readme.md",
        ".git/config",
        ".venv/readme.md",
        "sub/.cache/x.md",
    ]);
    let hidden = [
        "env",
        "env.local",
        "sub/ENV",
        "sub/env",
        "keys/server",
        "id_ed25519",
        "id_rsa/readme",
        "git/config",
        "venv/readme",
        "sub/cache/x",
        ".env",
        ".git/config",
    ];
    for subject in hidden {
        check_unknown(&files, subject);
    }
    // A dot file that is a document stays what it was.
    check(load_with(&files, json!({}), "b"), ".b.md");
    let listing = list(&files, json!({ "secrets": SECRETS.join("\n") })).unwrap();
    assert!(listing.contains(":\n\n- a\n\nUse"), "{listing}");
}

#[test]
fn what_include_names_is_a_subject_all_the_same() {
    let files =
        Memory::of(&[".github/ci.yml", ".github/deep/x.md", ".env", "keys/a.pem", ".git/config"]);
    let keys = json!({ "include": [".github", "keys/*"] });
    check(load_with(&files, keys.clone(), "github/deep/x"), ".github/deep/x.md");
    check(load_with(&files, keys.clone(), "keys/a"), "```pem\nkeys/a.pem\n```");
    assert!(load_with(&files, keys.clone(), "env").is_err());
    assert!(load_with(&files, keys, "git/config").is_err());
    // One file of a directory, and nothing beside it.
    let keys = json!({ "include": [".github/deep/x.md", ".env"] });
    check(load_with(&files, keys.clone(), "github/deep/x"), ".github/deep/x.md");
    check(load_with(&files, keys.clone(), "env"), ".env");
    assert!(load_with(&files, keys, "github/ci").is_err());
    check_error(
        list(&files, json!({ "include": ["x["] })),
        "topic `skills`: in `include`, `x[` is no valid pattern: invalid range pattern",
    );
}

#[test]
fn a_link_is_no_way_around() {
    let files = Memory::of(&["a.md", ".env", ".git/config", ".git/hooks/x.md"])
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
    check(load_with(&files, json!({ "include": [".env"] }), "chain"), ".env");
}
