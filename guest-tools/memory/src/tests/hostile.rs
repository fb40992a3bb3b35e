use kitbag_sdk::json;

use super::Tools;

#[test]
fn invisible_text_is_not_remembered() {
    let tools = Tools::default();
    for (text, expected) in [
        ("a\u{1b}[2J", "line 1, column 2 of the text: the invisible character U+001B; remove it"),
        (
            "ä\nb\u{202e}c",
            "line 2, column 2 of the text: the invisible character U+202E; remove it",
        ),
        ("x\u{e0041}", "line 1, column 2 of the text: the invisible character U+E0041; remove it"),
        ("x\ry", "line 1, column 2 of the text: the invisible character U+000D; remove it"),
        ("\0", "line 1, column 1 of the text: the invisible character U+0000; remove it"),
        ("\u{2800}", "line 1, column 1 of the text: the invisible character U+2800; remove it"),
        ("a\u{3164}", "line 1, column 2 of the text: the invisible character U+3164; remove it"),
        ("so\u{ad}on", "line 1, column 3 of the text: the invisible character U+00AD; remove it"),
        (" \n\t", "the memory has no text"),
        ("", "the memory has no text"),
    ] {
        assert_eq!(tools.error("remember", json!({ "text": text })), expected);
    }
    let task = tools.error("todo", json!({ "action": "add", "text": "a\u{7}" }));
    assert_eq!(task, "line 1, column 2 of the text: the invisible character U+0007; remove it");
    let task = tools.error("todo", json!({ "action": "add", "text": "a\u{fe0f}" }));
    assert_eq!(task, "line 1, column 2 of the text: the invisible character U+FE0F; remove it");
    for tag in ["a\u{3164}", "\u{115f}"] {
        let error = tools.error("remember", json!({ "text": "a", "tags": [tag] }));
        assert!(error.contains("is not a tag"), "{error}");
    }
    assert!(tools.values().is_empty());
    // Other line endings, emoji and scripts with joiners are valid text.
    let id = tools.remember("2026-01-01", "a\r\nb\t👩‍🚀 می‌خواهم ✔️", &[]);
    let whole = tools.ok("recall", json!({ "id": id }));
    assert!(whole.ends_with("\na\nb\t👩‍🚀 می‌خواهم ✔️"), "{whole}");
}

#[test]
fn sizes_have_bounds() {
    let tools = Tools::default();
    let error = tools.error("remember", json!({ "text": "x".repeat(1 << 20) }));
    assert_eq!(error, "the text has 1048576 bytes; the limit for a memory is 65536");
    let task = json!({ "action": "add", "text": "x".repeat(1001) });
    let error = tools.error("todo", task);
    assert_eq!(error, "the text has 1001 bytes; the limit for a task is 1000");
    let tags: Vec<_> = (0..10_000).map(|it| it.to_string()).collect();
    let error = tools.error("remember", json!({ "text": "a", "tags": tags }));
    assert_eq!(error, "10000 tags; the limit is 20");
    let ids = vec!["m100000000001"; 101];
    let error = tools.error("forget", json!({ "ids": ids }));
    assert_eq!(error, "`ids` names 101 memories; the limit is 100");
    // A text of the maximum length is found and read as usual.
    let text = format!("needle {}", "hay ".repeat(16_382));
    assert_eq!(text.len(), 65_535);
    for _ in 0..260 {
        tools.remember("2026-01-01", &text, &[]);
    }
    let answer = tools.recall("needle");
    assert!(answer.ends_with("\n250 more match"), "{answer}");
    assert!(answer.lines().all(|line| line.chars().count() < 200), "{answer}");
}

#[test]
fn a_tag_is_one_word() {
    let tools = Tools::default();
    let wide = "ü".repeat(33);
    for tag in ["", "#", "two words", "a,b", "a#b", "x\u{1b}", "a\nb", "İ", &*wide] {
        let error = tools.error("remember", json!({ "text": "a", "tags": [tag] }));
        let end = "is not a tag; a tag has 1 to 64 bytes: letters, digits and `-_./:+`";
        assert!(error.ends_with(end) && !error.contains('\u{1b}'), "{tag:?}: {error}");
    }
    let id = tools.remember("2026-01-01", "a", &["#Größe", "größe", "v1.2/x"]);
    assert!(tools.ok("recall", json!({ "id": id })).contains(" #größe #v1.2/x\n"));
}

#[test]
fn invalid_dates_and_ids_are_named() {
    let tools = Tools::default();
    let end = "is not a date since 1970; write it as `2026-11-24` or `2026-11-24T10:00:00Z`";
    for date in ["yesterday", "2026-02-30", "1969-12-31", "2026-11-24T10:00", "24.11.2026", ""] {
        for key in ["since", "until"] {
            let error = tools.error("recall", json!({ (key): date }));
            assert_eq!(error, format!("`{date}` {end}"));
        }
    }
    for date in ["9998-12-31", "1970-01-01", "2026-11-24T10:00:00.5+01:00"] {
        tools.ok("recall", json!({ "since": date, "until": date }));
    }
    for id in ["", "1", "m1", "t100000000001", "m1000000000011", "../x", "m10000000000\u{661}"] {
        let error = tools.error("recall", json!({ "id": id }));
        assert!(error.ends_with("is not the id of a memory, such as `m482913004117`"), "{error}");
    }
}

#[test]
fn foreign_values_are_named() {
    let tools = Tools::default();
    tools.remember("2026-01-01", "a", &[]);
    for value in [&b""[..], b"2 0\na", b"1 -1\na", b"1 0", b"\xff\n", b"1 99999999999999999999\na"]
    {
        tools.kept.values.borrow_mut().insert("m000000000007".to_owned(), value.to_vec());
        let error = tools.error("recall", json!({ "query": "a" }));
        let expected = "the memory `m000000000007` cannot be read; remove it or import it again";
        assert_eq!(error, expected);
    }
    tools.ok("forget", json!({ "ids": ["m000000000007"] }));
    assert!(tools.recall("a").ends_with("  a"));
}

#[test]
fn used_ids_are_not_assigned_again() {
    let tools = Tools::default();
    let first = tools.remember("2026-01-01", "first", &[]);
    tools.clock.numbers.set(100_000_000_000);
    let second = tools.remember("2026-01-01", "second", &[]);
    assert_eq!((&*first, &*second), ("m100000000001", "m100000000002"));
}
