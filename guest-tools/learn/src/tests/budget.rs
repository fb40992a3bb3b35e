use kitbag_sdk::serde_json::json;

use super::{Memory, call, list, load, topic};

const KIB: usize = 1 << 10;

#[test]
fn an_answer_has_a_budget_that_an_argument_raises() {
    let files = (0..500).fold(Memory::default(), |files, number| {
        files.file(&format!("d{}/{number:03}.md", number % 7), "x".repeat(KIB))
    });
    let ask = |max_bytes: usize, output_bytes: usize| {
        let topic = topic(json!({ "output_bytes": output_bytes }));
        let mut arguments = json!({ "topic": "skills", "subjects": "**", "_topic": topic });
        if max_bytes > 0 {
            arguments["max_bytes"] = json!(max_bytes);
        }
        call(&files, &arguments).unwrap()
    };
    let answer = ask(0, KIB * KIB);
    assert!((60 * KIB..=64 * KIB).contains(&answer.len()), "{}", answer.len());
    let (delivered, notes) = answer.rsplit_once("\n\n").unwrap();
    assert!(delivered.matches("</subject>").count() > 55);
    let reason =
        "Omitted, because the output has a limit; load them by name, or set `max_bytes`: `d";
    assert!(notes.starts_with(reason) && notes.contains("` (1 KiB), "), "{notes}");
    assert!(notes.ends_with(" more.") && notes.len() < 3 * KIB, "{notes}");
    assert_eq!(ask(KIB * KIB, KIB * KIB).matches("</subject>").count(), 500);
    // The limit of the call is above it.
    assert!(ask(KIB * KIB, 8 * KIB).len() <= 8 * KIB);
}

#[test]
fn long_listings_fold_by_directory() {
    let files = (0..120).fold(Memory::default(), |files, number| {
        files.file(
            &format!("docs/rust/{number:03}.md"),
            format!("# Part {number}\n{}", "x".repeat(KIB)),
        )
    });
    let files = files
        .file("docs/README.md", "\n---\n## About all of this\n")
        .file("docs/photo.png", "P\0")
        .file("docs/go/a.md", "Go\n");
    let listing = list(&files, json!({})).unwrap();
    let expected = "\
# Topic: skills

## Available subjects: 123

- docs/README (26 bytes): About all of this
- docs/go/ (1 subject, 3 bytes): Go
- docs/photo (2 bytes)
- docs/rust/ (120 subjects, 122 KiB): Part 0; Part 1; Part 2

Use the `learn` tool with the `subjects` argument to learn specific subjects. The name of a \
directory lists it.";
    assert_eq!(listing, expected);
    let inner = load(&files, json!({}), json!("docs/rust")).unwrap();
    assert!(inner.contains("subjects in `docs/rust`: 120\n\n- docs/rust/000\n"), "{inner}");
    assert_eq!(inner.matches("\n- ").count(), 120);
    // A list of a hundred is not grouped.
    let few =
        (0..100).fold(Memory::default(), |files, n| files.file(&format!("a/{n:02}.md"), "# x"));
    assert_eq!(list(&few, json!({})).unwrap().matches("\n- a/").count(), 100);
}

#[test]
fn hard_links_do_not_reveal_disabled_headings() {
    let files =
        (0..101).fold(Memory::default(), |files, n| files.file(&format!("{n:03}/a.md"), "# x"));
    let files = files.file("salaries.md", "# Mine\n").hard_link("000/b.md", "salaries.md");
    let listing = list(&files, json!({ "disabled": ["salaries"] })).unwrap();
    assert!(!listing.contains("Mine"), "{listing}");
}
