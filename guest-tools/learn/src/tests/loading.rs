use kitbag_sdk::serde_json::{Value, json};

use super::{Memory, check, check_error, load, loaded};

#[track_caller]
fn check_content(path: &str, content: &str, expected: &str) {
    let files = Memory::default().file(path, content);
    check(load(&files, json!({}), json!(path.split('.').next())), expected);
}

#[test]
fn one_exact_slug_gives_its_content_bare() {
    let files = Memory::of(&["a.md", "b.md"]);
    for subjects in [json!("a"), json!(["a"]), json!(["a", "a"])] {
        check(load(&files, json!({}), subjects), "a.md");
    }
}

#[test]
fn other_requests_give_each_subject_in_a_block() {
    let files = Memory::of(&["a.md", "b.rs"]);
    let block = "<subject name=\"a\">\na.md\n</subject>";
    check(
        load(&files, json!({}), json!(["a", "b"])),
        &format!("{block}\n<subject name=\"b\">\n```rust\nb.rs\n```\n</subject>"),
    );
    for subjects in [json!("a*"), json!(["a*", "a"]), json!("[a]")] {
        check(load(&files, json!({}), subjects), block);
    }
}

#[test]
fn results_are_distinct_and_in_order() {
    let files = Memory::of(&["a.md", "b.md", "c/d.md"]);
    assert_eq!(loaded(&files, json!(["c/*", "b", "*", "b"])), ["a", "b", "c/d"]);
}

#[test]
fn exact_slugs_precede_patterns() {
    let files = Memory::of(&["[ab].md", "a.md", "x*.md", "xy.md"]);
    check(load(&files, json!({}), json!("[ab]")), "[ab].md");
    check(load(&files, json!({}), json!("x*")), "x*.md");
}

#[test]
fn unmatched_patterns_are_named() {
    let files = Memory::of(&["a.md"]);
    check(
        load(&files, json!({}), json!(["zz", "a", "b/*"])),
        "<subject name=\"a\">\na.md\n</subject>\n\nNo subject matches: `b/*`, `zz`.",
    );
}

#[test]
fn errors_list_the_subjects_if_none_matches() {
    let files = Memory::of(&["b.md", "a.md", ".c.md", "d.md", "e/f.md"]);
    let keys = json!({ "disabled": ["d"], "learned": ["a"] });
    check_error(
        load(&files, keys, json!(["x", "y*"])),
        "no subject of topic `skills` matches `x`, `y*`; it has `a`, `b`, `e/f`",
    );
    check_error(
        load(&Memory::default(), json!({}), json!("")),
        "no subject of topic `skills` matches ``; it has no subjects",
    );
}

#[test]
fn errors_with_long_names_are_bounded() {
    let paths: Vec<String> = (0..2000).map(|number| format!("subject-{number:04}.md")).collect();
    let files = Memory::of(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let error = load(&files, json!({}), json!(["x".repeat(100_000)])).unwrap_err();
    assert!(error.len() < 1 << 10, "{}", error.len());
    assert!(error.contains("`; the nearest of 2000 are `subject-0000`, "), "{error}");
    let many: Vec<String> = (0..5000).map(|number| format!("[{number}")).collect();
    let error = load(&files, json!({}), json!(many)).unwrap_err();
    assert!(error.len() < 4 << 10, "{}", error.len());
}

#[test]
fn invalid_patterns_are_invalid_arguments() {
    let files = Memory::of(&["a.md"]);
    for (pattern, reason) in [
        ("[", "invalid range pattern"),
        ("***", "wildcards are either regular `*` or recursive `**`"),
        ("a**", "recursive wildcards must form a single path component"),
    ] {
        check_error(
            load(&files, json!({}), json!(["a", pattern])),
            &format!("invalid arguments: `{pattern}` is not a valid pattern: {reason}"),
        );
    }
    let error = load(&files, json!({}), json!("*a".repeat(513))).unwrap_err();
    assert!(error.ends_with("…` is not a valid pattern: it is longer than 1024 bytes"), "{error}");
}

#[test]
fn plain_text_has_no_fence() {
    for path in ["a.md", "a.txt", "a.text", "a", "a.MD", "a."] {
        check_content(path, "# A ```\ntext\n", "# A ```\ntext\n");
    }
}

#[test]
fn other_files_have_a_fence_with_their_language() {
    for (extension, language) in [
        ("rs", "rust"),
        ("RS", "rust"),
        ("py", "python"),
        ("js", "javascript"),
        ("ts", "typescript"),
        ("yml", "yaml"),
        ("yaml", "yaml"),
        ("toml", "toml"),
        ("sh", "bash"),
        ("xyz", "xyz"),
        ("c++", "c++"),
        ("a b", ""),
        ("x`y", ""),
    ] {
        let expected = format!("```{language}\nx\n```");
        check_content(&format!("a.{extension}"), "x\n", &expected);
        check_content(&format!("a.{extension}"), "x", &expected);
    }
    check_content("a.rs", "", "```rust\n```");
}

#[test]
fn extensions_of_hidden_files_ignore_the_dot() {
    let files = Memory::of(&[".a.rs", ".env"]);
    check(load(&files, json!({}), json!("a")), "```rust\n.a.rs\n```");
    check(load(&files, json!({}), json!("env")), ".env");
}

#[test]
fn a_fence_is_longer_than_any_run_of_backticks_in_it() {
    check_content("a.rs", "/// ```\nx ` y", "````rust\n/// ```\nx ` y\n````");
    check_content("a.rs", "`````", "``````rust\n`````\n``````");
    check_content("a.rs", "``", "```rust\n``\n```");
}

#[test]
fn a_name_is_escaped_in_its_attribute() {
    let files = Memory::of(&["a&b<c>\"d.md", "e.md"]);
    check(
        load(&files, json!({}), json!("a*")),
        "<subject name=\"a&amp;b&lt;c>&quot;d\">\na&b<c>\"d.md\n</subject>",
    );
}

#[track_caller]
fn check_tag(content: &str, tag: &str) {
    let files = Memory::default().file("a.md", content).file("b.md", "");
    check(
        load(&files, json!({}), json!(["a", "b"])),
        &format!("<{tag} name=\"a\">\n{content}\n</{tag}>\n<subject name=\"b\">\n</subject>"),
    );
}

#[test]
fn a_content_cannot_close_its_block() {
    check_tag("<subject name=\"x\">", "subject");
    check_tag("a</subject>b", "subject-1");
    check_tag("a</Subject >b", "subject-1");
    check_tag("</subject></subject-1>", "subject-2");
    check_tag("</subject></SUBJECT-1></subject-3>", "subject-2");
    check_tag("</subject> subject-1 subject-2", "subject-3");
    check_tag("</subject> subject-12", "subject-2");
    check_tag("</subject-1>", "subject-2");
}

#[test]
fn content_with_every_tag_is_read_in_one_pass() {
    let taken: String = (1..60_000).map(|number| format!("</subject-{number}>")).collect();
    let files = Memory::default().file("a.md", format!("</subject>{taken}"));
    let answer = load(&files, json!({ "output_bytes": 4 << 20 }), json!("a*")).unwrap();
    assert!(answer.starts_with("<subject-60000 name=\"a\">\n</subject></subject-1>"));
    assert!(answer.ends_with("</subject-59999>\n</subject-60000>"));
}

/// Returns the answer to `["a", "x"]`, where `a` is text and `x` the tested file.
#[track_caller]
fn check_beside(x: impl Into<Vec<u8>>, note: &str) {
    let files = Memory::of(&["a.md"]).file("x.md", x);
    let keys = json!({ "output_bytes": 1 << 20 });
    check(
        load(&files, keys.clone(), json!(["a", "x"])),
        &format!("<subject name=\"a\">\na.md\n</subject>\n\n{note}"),
    );
    check_error(load(&files, keys, json!("x")), note);
}

#[test]
fn binary_files_are_skipped_and_named() {
    let binary = "Skipped, because it is binary (it contains a NUL byte): `x`.";
    check_beside("a\0b", binary);
    check_beside([vec![b'a'; 8191], vec![0]].concat(), binary);
    let no_text = "Skipped, because it is not UTF-8 text: `x`.";
    check_beside(b"a\xff", no_text);
    check_beside(b"a\xc3", no_text);
    check_beside([vec![b'a'; 100_000], vec![0xff]].concat(), no_text);
    check_beside([vec![b'a'; 100_000], vec![0xff], vec![b'a'; 2 << 20]].concat(), no_text);
}

#[test]
fn a_nul_after_the_first_8192_bytes_is_accepted() {
    let content = format!("{}\0", "a".repeat(8192));
    check_content("a.md", &content, &content);
}

#[test]
fn unreadable_files_are_named_and_others_delivered() {
    let files = Memory::of(&["a.md", "c.md"])
        .unreadable("b.md", "access")
        .unreadable("d.md", "access")
        .unreadable("e.md", "io");
    check(
        load(&files, json!({}), json!("*")),
        "<subject name=\"a\">\na.md\n</subject>\n<subject name=\"c\">\nc.md\n</subject>\n\n\
         Could not be read (access): `b`, `d`.\nCould not be read (io): `e`.",
    );
    check_error(load(&files, json!({}), json!("b")), "Could not be read (access): `b`.");
}

#[test]
fn an_empty_subject_is_empty() {
    let files = Memory::default().file("a.md", "");
    check(load(&files, json!({}), json!("a")), "");
    check(load(&files, json!({}), Value::from("*")), "<subject name=\"a\">\n</subject>");
}
