//! Full-text search in subjects.

use kitbag_sdk::serde_json::{Value, json};

use super::{Memory, call, check, check_error, topic};

fn query(files: &Memory, query: &str, more: Value) -> Result<String, String> {
    let mut arguments = json!({ "topic": "skills", "query": query, "_topic": topic(json!({})) });
    for (key, value) in more.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    call(files, &arguments)
}

/// Returns the slugs of an answer, in its order.
fn slugs(answer: &str) -> Vec<&str> {
    let entries = answer.lines().filter_map(|line| line.strip_prefix("- "));
    entries.map(|entry| entry.split(": ").next().unwrap()).collect()
}

fn library() -> Memory {
    Memory::default()
        .file("deploy/fly.md", "# Fly\n\nHow to deploy the server.\nNever on a Friday.\n")
        .file("deploy/mac.md", "# Mac\n\nHow to sign and deploy the program.\n")
        .file("habits.md", "How we work: how to test, how to review, how to write.\n")
        .file("migrations.md", "Every migration is reversible. Migrations run before a deploy.\n")
        .file(".secret.md", "deploy deploy deploy\n")
}

#[test]
fn subjects_are_ranked_with_a_line_of_each() {
    check(
        query(&library(), "deploy on FLY", json!({})),
        "# Topic: skills\n\n\
         ## Subjects for `deploy on FLY`, best first:\n\n\
         - deploy/fly: Fly\n\
         - deploy/mac: How to sign and deploy the program.\n\
         - migrations: Every migration is reversible. Migrations run before a deploy.\n\n\
         Use the `learn` tool with the `subjects` argument to learn specific subjects.",
    );
}

#[test]
fn rare_words_weigh_more_than_frequent_ones() {
    let mut files = library();
    for name in ["a", "b", "c", "d", "e"] {
        files = files.file(&format!("{name}.md"), "How to, and how to, and how to.\n");
    }
    let answer = query(&files, "how to reversible", json!({})).unwrap();
    assert_eq!(slugs(&answer)[0], "migrations", "{answer}");
}

#[test]
fn query_words_match_prefixes_of_words() {
    let answer = query(&library(), "migrat", json!({})).unwrap();
    assert_eq!(slugs(&answer), ["migrations"]);
    check(
        query(&library(), "gration", json!({})),
        "# Topic: skills\n\nNo subject has a word of `gration`.",
    );
    let files = Memory::default().file("a.md", "今日はサーバーを配備する。\n");
    assert_eq!(slugs(&query(&files, "配備", json!({})).unwrap()), ["a"]);
}

#[test]
fn subjects_and_directories_narrow_a_query() {
    for subjects in [json!("deploy"), json!("deploy/*"), json!(["deploy/fly", "deploy/mac"])] {
        let answer = query(&library(), "deploy", json!({ "subjects": subjects })).unwrap();
        assert_eq!(slugs(&answer), ["deploy/fly", "deploy/mac"], "{answer}");
    }
}

#[test]
fn hidden_disabled_and_binary_files_are_not_read() {
    let files = library().file("image.md", "deploy\0").file("salary.md", "deploy money\n");
    let keys = json!({ "disabled": ["salary"] });
    let answer = query(&files, "deploy money", json!({ "_topic": topic(keys) })).unwrap();
    assert_eq!(slugs(&answer), ["deploy/fly", "deploy/mac", "migrations"], "{answer}");
    // Its name is still listed.
    assert_eq!(slugs(&query(&files, "image", json!({})).unwrap()), ["image"]);
}

#[test]
fn the_answer_is_short() {
    let mut files = Memory::default();
    for number in 0..50 {
        files = files.file(&format!("{number:02}.md"), format!("deploy {}\n", "x".repeat(500)));
    }
    let answer = query(&files, "deploy", json!({})).unwrap();
    assert_eq!(slugs(&answer).len(), 20);
    assert!(answer.contains("\n30 more have some of the words.\n"), "{answer}");
    assert!(answer.lines().all(|line| line.chars().count() <= 130), "{answer}");
    let few = query(&files, "deploy", json!({ "max_bytes": 700 })).unwrap();
    assert!(few.len() <= 700 && slugs(&few).len() > 1, "{few}");
}

#[test]
fn a_query_without_words_is_refused() {
    check_error(query(&library(), " ,. ", json!({})), "invalid arguments: `query` has no words");
    let many: Vec<_> = (0..33).map(|number| number.to_string()).collect();
    check_error(
        query(&library(), &many.join(" "), json!({})),
        "invalid arguments: `query` has 33 words; the limit is 32",
    );
    check_error(
        query(&library(), "a", json!({ "query": 1 })),
        "invalid arguments: `query` is not a string",
    );
}
