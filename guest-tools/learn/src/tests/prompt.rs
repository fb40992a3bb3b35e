use kitbag_sdk::serde_json::{self, Value, json};

use super::{Memory, call, topic};

fn prompt(files: &Memory, keys: Value) -> Value {
    let arguments = json!({ "topic": "skills", "_topic": topic(keys), "_view": "prompt" });
    serde_json::from_str(&call(files, &arguments).unwrap()).unwrap()
}

#[track_caller]
fn check_learned(files: &Memory, keys: Value, expected: &str) {
    assert_eq!(prompt(files, keys)["learned"].as_str(), Some(expected));
}

#[test]
fn topics_without_learned_subjects_have_no_block() {
    let files = Memory::of(&["a.md"]);
    assert_eq!(
        prompt(&files, json!({})),
        json!({ "learned": null, "available": true, "unlisted": false })
    );
    assert_eq!(
        prompt(&Memory::default(), json!({})),
        json!({ "learned": null, "available": false, "unlisted": false })
    );
}

#[test]
fn learned_subjects_are_in_the_topic_block() {
    let files = Memory::of(&["a.md", "b.rs", "c.md"]);
    let keys = json!({ "title": "Skills", "description": "About.", "learned": ["a", "b"] });
    assert_eq!(
        prompt(&files, keys),
        json!({
            "learned": "<topic name=\"Skills\">\nAbout.\n\
                <subject name=\"a\">\na.md\n</subject>\n\
                <subject name=\"b\">\n```rust\nb.rs\n```\n</subject>\n</topic>",
            "available": true,
            "unlisted": false,
        })
    );
    let block = "<topic name=\"skills\">\n<subject name=\"a\">\na.md\n</subject>\n</topic>";
    check_learned(&files, json!({ "learned": ["a"] }), block);
}

#[test]
fn hidden_disabled_and_learned_subjects_are_not_available() {
    let files = Memory::of(&["a.md", "b.md", ".c.md"]);
    let keys = json!({ "learned": ["a"], "disabled": ["b"] });
    assert_eq!(prompt(&files, keys)["available"], json!(false));
    let keys = json!({ "learned": ["*"], "disabled": ["a"] });
    let block = "<topic name=\"skills\">\n<subject name=\"b\">\nb.md\n</subject>\n</topic>";
    check_learned(&files, keys.clone(), block);
    assert_eq!(prompt(&files, keys)["available"], json!(false));
}

#[test]
fn exactly_named_hidden_subjects_are_in_the_prompt() {
    let files = Memory::of(&[".c.md"]);
    assert_eq!(prompt(&files, json!({ "learned": ["*"] }))["learned"], json!(null));
    let block = "<topic name=\"skills\">\n<subject name=\"c\">\n.c.md\n</subject>\n</topic>";
    check_learned(&files, json!({ "learned": ["c"] }), block);
}

#[test]
fn title_and_description_are_escaped() {
    let files = Memory::of(&["a.md"]);
    let keys = json!({
        "title": "A \"<b>\" & c",
        "description": "Use </topic> & <x>.",
        "learned": ["a"],
    });
    check_learned(
        &files,
        keys,
        "<topic name=\"A &quot;&lt;b>&quot; &amp; c\">\nUse &lt;/topic> &amp; &lt;x>.\n\
         <subject name=\"a\">\na.md\n</subject>\n</topic>",
    );
}

#[test]
fn a_content_cannot_close_the_topic_or_its_subject() {
    let files = Memory::default().file("a.md", "</subject></topic></topic-1>");
    check_learned(
        &files,
        json!({ "learned": ["a"] }),
        "<topic-2 name=\"skills\">\n<subject-1 name=\"a\">\n\
         </subject></topic></topic-1>\n</subject-1>\n</topic-2>",
    );
}

#[test]
fn undelivered_subjects_are_named_in_the_block() {
    let files = Memory::of(&["a.md"]).file("b.bin", "\0").unreadable("c.md", "access");
    check_learned(
        &files,
        json!({ "learned": ["*"] }),
        "<topic name=\"skills\">\n<subject name=\"a\">\na.md\n</subject>\n\n\
         Skipped, because it is binary (it contains a NUL byte): `b`.\n\
         Could not be read (access): `c`.\n</topic>",
    );
}

#[test]
fn the_limit_includes_json_escapes() {
    let files =
        Memory::default().file("a.md", "\"\n".repeat(5000)).file("b.md", "x\n".repeat(5000));
    for output_bytes in [1000, 5000, 20_000] {
        let keys = json!({ "learned": ["*"], "output_bytes": output_bytes });
        let arguments = json!({ "topic": "skills", "_topic": topic(keys), "_view": "prompt" });
        let answer = call(&files, &arguments).unwrap();
        assert!(
            answer.len() <= output_bytes && answer.len() > output_bytes / 2,
            "{}",
            answer.len()
        );
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let learned = answer["learned"].as_str().unwrap();
        assert!(
            learned.ends_with("\n</topic>") && learned.contains("because the output has a limit")
        );
    }
}

#[test]
fn names_match_the_listing_up_to_the_limit() {
    let files = Memory::of(&["b.md", "a.md", ".c.md", "d.md", "e/f.rs"]);
    let names = |keys| {
        let arguments = json!({ "topic": "skills", "_topic": topic(keys), "_view": "names" });
        let answer = call(&files, &arguments).unwrap();
        (answer.len(), serde_json::from_str::<Value>(&answer).unwrap())
    };
    let (_, all) = names(json!({ "learned": ["b"], "disabled": ["d"] }));
    assert_eq!(all, json!({ "subjects": ["a", "b", "e/f"], "left_out": 0 }));
    let (bytes, few) = names(json!({ "output_bytes": 48 }));
    assert_eq!(few, json!({ "subjects": ["a", "b", "d"], "left_out": 1 }));
    assert!(bytes <= 48, "{bytes}");
}

#[test]
fn unlisted_subjects_are_mentioned() {
    let unlisted =
        |paths: &[&str], keys: Value| prompt(&Memory::of(paths), keys)["unlisted"].clone();
    assert_eq!(unlisted(&["a.md"], json!({})), json!(false));
    assert_eq!(unlisted(&["a.md", ".b.md"], json!({})), json!(true));
    assert_eq!(unlisted(&["a.md", ".b.md"], json!({ "disabled": ["b"] })), json!(false));
    assert_eq!(unlisted(&["a.md", ".b.md"], json!({ "learned": ["b"] })), json!(false));
    assert_eq!(unlisted(&["a.md", ".git/config"], json!({})), json!(false));
}
