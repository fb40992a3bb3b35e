use kitbag_sdk::serde_json::{Value, json};
use proptest::prelude::*;

use super::{Memory, check, list, load};

const MIB: usize = 1 << 20;

/// Returns numbered lines with this many bytes in total.
fn lines(bytes: usize) -> String {
    let mut text = String::new();
    for number in 1.. {
        let line = format!("line {number}\n");
        if text.len() + line.len() > bytes {
            break;
        }
        text.push_str(&line);
    }
    text
}

#[test]
fn subjects_of_one_mebibyte_are_complete() {
    let content = "x".repeat(MIB);
    let files = Memory::default().file("a.md", content.as_str());
    let roomy = json!({ "output_bytes": 4 * MIB });
    check(load(&files, roomy, json!("a")), &content);
}

#[test]
fn long_subjects_are_cut_at_a_line_end_and_marked() {
    let whole = lines(2 * MIB);
    let files = Memory::default().file("a.md", whole.as_str());
    let answer = load(&files, json!({ "output_bytes": 4 * MIB }), json!("a")).unwrap();
    let (content, note) = answer.split_once("\n\n").unwrap();
    assert!(whole.starts_with(content) && whole[content.len()..].starts_with('\n'));
    assert!(content.len() < MIB && content.len() > MIB - 20, "{}", content.len());
    let count = content.lines().count();
    assert_eq!(note, format!("Cut after line {count}, because it has more than 1 MiB: `a`."));
}

#[test]
fn a_subject_of_one_line_is_cut_between_characters() {
    let files = Memory::default().file("a.md", format!("a{}", "ä".repeat(MIB)));
    let answer = load(&files, json!({ "output_bytes": 4 * MIB }), json!("a")).unwrap();
    let (content, note) = answer.split_once("\n\n").unwrap();
    assert_eq!(content.len(), MIB - 1);
    assert_eq!(note, "Cut after 1048575 bytes, because it has more than 1 MiB: `a`.");
}

#[test]
fn truncated_characters_are_not_errors() {
    for offset in 0..4 {
        let content = format!("{}{}", "x".repeat(offset), "😀".repeat(MIB / 4 + 8));
        let files = Memory::default().file("a.md", content);
        assert!(load(&files, json!({ "output_bytes": 4 * MIB }), json!("a")).is_ok());
    }
}

#[test]
fn subjects_are_cut_within_their_fence() {
    let files = Memory::default().file("a.rs", lines(2 * MIB));
    for output_bytes in [1000, 20_000, MIB] {
        let keys = json!({ "output_bytes": output_bytes });
        let answer = load(&files, keys.clone(), json!("a")).unwrap();
        assert!(answer.len() <= output_bytes && answer.len() > output_bytes - 300);
        assert!(answer.starts_with("```rust\nline 1\n"));
        assert!(answer.contains("\n```\n\nCut after line "), "{answer}");
        assert!(
            answer.ends_with(", because the output has a limit, which `max_bytes` raises: `a`.")
        );
        let answer = load(&files, keys, json!("a*")).unwrap();
        assert!(answer.len() <= output_bytes && answer.len() > output_bytes - 300);
        assert!(answer.contains("\n```\n</subject>\n\nCut after line "));
    }
}

#[test]
fn omitted_subjects_are_named_and_smaller_ones_delivered() {
    let files = Memory::default()
        .file("a.md", "a".repeat(600))
        .file("b.md", "b".repeat(600))
        .file("c.md", "c")
        .file("d.md", "d".repeat(20_000));
    let answer = load(&files, json!({ "output_bytes": 1200 }), json!("*")).unwrap();
    let expected = format!(
        "<subject name=\"a\">\n{}\n</subject>\n<subject name=\"c\">\nc\n</subject>\n\n\
         Omitted, because the output has a limit; load them by name, or set `max_bytes`: \
         `b` (600 bytes), `d` (20 KiB).",
        "a".repeat(600),
    );
    check(Ok(answer), &expected);
}

#[test]
fn binary_files_are_detected_with_little_room() {
    let files = Memory::default()
        .file("a.md", "a".repeat(300))
        .file("b.md", format!("{}\0", "b".repeat(8000)));
    check(
        load(&files, json!({ "output_bytes": 1200 }), json!("*")),
        &format!(
            "<subject name=\"a\">\n{}\n</subject>\n\n\
             Skipped, because it is binary (it contains a NUL byte): `b`.",
            "a".repeat(300),
        ),
    );
}

#[test]
fn more_names_than_fit_are_counted() {
    let files = (0..500).fold(Memory::default(), |files, number| {
        files.file(&format!("subject-{number:03}.md"), "x".repeat(500))
    });
    let answer = load(&files, json!({ "output_bytes": 4000 }), json!("*")).unwrap();
    assert!(answer.len() <= 4000);
    let delivered = answer.matches("</subject>").count();
    let (_, left_out) = answer.split_once("or set `max_bytes`: ").unwrap();
    let named = left_out.matches("`subject-").count();
    let more: usize =
        left_out.split(" and ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert_eq!(delivered + named + more, 500);
    assert!(delivered > 2 && named > 20, "{delivered} {named}");
}

#[test]
fn many_patterns_leave_room_for_a_subject() {
    let files = Memory::of(&["a.md"]);
    let mut patterns: Vec<String> = (0..10_000).map(|number| format!("no-{number}")).collect();
    patterns.push("a".into());
    let answer = load(&files, json!({ "output_bytes": 2000 }), json!(patterns)).unwrap();
    assert!(answer.len() <= 2000);
    assert!(
        answer.starts_with("<subject name=\"a\">\na.md\n</subject>\n\nNo subject matches: `no-0`")
    );
    assert!(answer.ends_with(" more."), "{answer}");
}

#[test]
fn listings_obey_the_limit() {
    let files = (0..500).fold(Memory::default(), |files, number| {
        files.file(&format!("subject-{number:03}.md"), "")
    });
    let keys = json!({ "output_bytes": 2000, "learned": ["subject-4*"] });
    let answer = list(&files, keys).unwrap();
    assert!(answer.len() <= 2000, "{}", answer.len());
    let listed = answer.matches("\n- subject-").count();
    let left_out: usize = answer
        .lines()
        .filter_map(|line| line.strip_suffix(" more are omitted, because the output has a limit."))
        .map(|number| number.parse::<usize>().unwrap())
        .sum();
    assert_eq!(listed + left_out, 500);
    assert!(answer.contains("- subject-000\n") && answer.contains("- subject-400\n"));
}

#[test]
fn a_topic_of_many_files_and_levels_is_listed() {
    let deep = format!("{}end.md", "d/".repeat(300));
    let files = (0..3000)
        .fold(Memory::of(&[&deep]), |files, number| files.file(&format!("many/{number}.md"), ""));
    let answer = list(&files, json!({})).unwrap();
    let expected = "\n- d/ (1 subject, 606 bytes): d/";
    assert!(answer.contains(expected), "{answer}");
    assert!(answer.contains("\n- many/ (3000 subjects, 0 bytes)\n"), "{answer}");
}

proptest! {
    #[test]
    fn answers_obey_the_limit(
        output_bytes in 0_usize..3000,
        sizes in prop::collection::vec(0_usize..1500, 0..8),
        patterns in prop::collection::vec("[a-c*?]{0,3}", 0..4),
        view in any::<bool>(),
    ) {
        let files = sizes.iter().enumerate().fold(Memory::default(), |files, (number, size)| {
            files.file(&format!("{number}-\"{number}.rs"), lines(*size))
        });
        let patterns = [patterns, vec!["*".to_owned()]].concat();
        let mut arguments = json!({
            "topic": "t",
            "subjects": patterns,
            "_topic": {
                "id": "t", "learned": ["*1*", "*3*"], "output_bytes": output_bytes,
                "description": "x<y",
            },
        });
        if view {
            arguments["_view"] = Value::from("prompt");
        }
        if let Ok(answer) = super::call(&files, &arguments) {
            prop_assert!(answer.len() <= output_bytes.max(if view { 150 } else { 0 }), "{}", answer);
        }
    }
}
