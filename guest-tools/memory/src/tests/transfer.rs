use kitbag_sdk::json;
use proptest::prelude::*;
use serde_json::Value;

use super::Tools;
use crate::date::Moment;
use crate::entry::{self, Content, Entry, Kind};
use crate::store::Store;

fn filled() -> Tools {
    let tools = Tools::default();
    tools.remember("2026-01-05", "Staging deploys from `stage`.", &["deploy"]);
    tools.remember("2026-02-10T08:00:00.5Z", "We deploy on Fly.\n\n> Never on a Friday.", &[]);
    tools.ok("todo", json!({ "action": "add", "text": "Renew the certificate" }));
    tools.ok("todo", json!({ "action": "add", "text": "Ask Ana <!-- soon -->" }));
    tools.ok("todo", json!({ "action": "done", "id": "t100000000003" }));
    tools
}

const MARKDOWN: &str = "\
<!-- `kitbag memory import` reads this. Each line of a text starts with `>`. New entries need no id. -->

# Memories

## 2026-01-05T00:00:00Z m100000000001 #deploy

> Staging deploys from `stage`.

## 2026-02-10T08:00:00.5Z m100000000002

> We deploy on Fly.
>
> > Never on a Friday.

# Todo

- [x] Renew the certificate <!-- 2026-02-10T08:00:00.5Z t100000000003 -->
- [ ] Ask Ana <!-- soon --> <!-- 2026-02-10T08:00:00.5Z t100000000004 -->
";

const JSON: &str = r#"{
  "memories": [
    {
      "id": "m100000000001",
      "date": "2026-01-05T00:00:00Z",
      "tags": [
        "deploy"
      ],
      "text": "Staging deploys from `stage`."
    },
    {
      "id": "m100000000002",
      "date": "2026-02-10T08:00:00.5Z",
      "tags": [],
      "text": "We deploy on Fly.\n\n> Never on a Friday."
    }
  ],
  "todo": [
    {
      "id": "t100000000003",
      "date": "2026-02-10T08:00:00.5Z",
      "done": true,
      "text": "Renew the certificate"
    },
    {
      "id": "t100000000004",
      "date": "2026-02-10T08:00:00.5Z",
      "done": false,
      "text": "Ask Ana <!-- soon -->"
    }
  ]
}
"#;

fn imported(added: usize, changed: usize, unchanged: usize) -> Result<Value, String> {
    Ok(json!({ "added": added, "changed": changed, "unchanged": unchanged }))
}

#[test]
fn imported_files_may_be_written_by_hand() {
    let tools = filled();
    assert_eq!(tools.export("markdown"), MARKDOWN);
    assert_eq!(tools.export("json"), JSON);
}

#[test]
fn repeated_imports_have_no_effect() {
    let filled = filled();
    for (format, file) in [("markdown", MARKDOWN), ("json", JSON)] {
        let tools = Tools::default();
        assert_eq!(tools.import(format, file), imported(4, 0, 0));
        assert_eq!(tools.values(), filled.values());
        assert_eq!(tools.import(format, file), imported(0, 0, 4));
        assert_eq!(tools.values(), filled.values());
    }
}

#[test]
fn edited_files_change_only_the_listed_entries() {
    let tools = filled();
    let mended = MARKDOWN
        .replace("#deploy", "#deploy #Staging")
        .replace("- [ ] Ask", "- [x] Ask")
        .replace("## 2026-02-10T08:00:00.5Z m100000000002\n\n> We", "## 2026-03-01 #fly\n\n> We");
    assert_eq!(tools.import("markdown", &mended.replace('\n', "\r\n")), imported(1, 2, 1));
    assert_eq!(tools.values().len(), 5);
    assert!(tools.recall("staging").contains(" #deploy #staging "));
    // An added entry has no id, and importing it again changes nothing.
    assert_eq!(tools.import("markdown", &mended), imported(0, 0, 4));
    assert_eq!(tools.ok("todo", json!({ "action": "list" })).matches("[x]").count(), 2);
    let plain = "# Todo\n- [ ] Buy tea\n- [ ] Buy tea\n\n# Memories\n##\n## #x\n> one\n";
    let error = tools.import("markdown", plain).unwrap_err();
    let expected = "FILE:6:1: this is not part of the text above: each line of it, even an empty \
                    one, starts with `>`\nnothing was imported";
    assert_eq!(error, expected);
    let plain = plain.replace("##\n", "");
    assert_eq!(tools.import("markdown", &plain), imported(2, 0, 0));
    assert_eq!(tools.import("markdown", &plain), imported(0, 0, 2));
    assert_eq!(tools.import("markdown", "\u{feff}"), imported(0, 0, 0));
}

#[track_caller]
fn check_errors(format: &str, file: &str, expected: &[&str]) {
    let tools = filled();
    let before = tools.values();
    let error = tools.import(format, file).unwrap_err();
    let mut lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.pop(), Some("nothing was imported"));
    assert_eq!(lines, expected, "{file}");
    assert_eq!(tools.values(), before);
}

#[test]
fn mistakes_in_markdown_are_named_by_line_and_column() {
    let check = |file: &str, expected: &[&str]| check_errors("markdown", file, expected);
    check("Hello\nyou", &["FILE:1:1: no `# Memories` or `# Todo` is above this line"]);
    check("# Other", &["FILE:1:1: `# Other` is neither `# Memories` nor `# Todo`"]);
    check(
        "# Memories\n\n## 2026-13-01 x m1 #a,b\n\n> text\n",
        &[
            "FILE:3:4: `2026-13-01` is not a date since 1970; write it as `2026-11-24` or \
             `2026-11-24T10:00:00Z`",
            "FILE:3:15: `x` is not a date, an id, or a tag that starts with `#`",
            "FILE:3:17: `m1` is not a date, an id, or a tag that starts with `#`",
            "FILE:3:20: `#a,b` is not a tag; a tag has 1 to 64 bytes: letters, digits and `-_./:+`",
        ],
    );
    check(
        "# Memories\n## 2026-01-01 #ö\n> ö\n> äö\u{202e}\n\n> more\n## 2026-01-02\n# Todo\n- x\n",
        &[
            "FILE:4:5: the invisible character U+202E; remove it",
            "FILE:6:1: this is not part of the text above: each line of it, even an empty one, \
             starts with `>`",
            "FILE:7:1: the memory has no text: add lines below that start with `>`",
            "FILE:9:1: a task is a line such as `- [ ] Renew the certificate`",
        ],
    );
    check(
        "# Memories\n> alone\n",
        &["FILE:2:1: a text without a heading, such as `## 2026-11-24 #tag`"],
    );
    check(
        "# Todo\n- [ ]  é\u{7} <!-- 2026-01-01 m100000000001 -->\n",
        &[
            "FILE:2:9: the invisible character U+0007; remove it",
            "FILE:2:27: `m100000000001` is not a date since 1970; write it as `2026-11-24` or \
             `2026-11-24T10:00:00Z`",
        ],
    );
    let twice = "# Memories\n## m100000000001\n> a\n## m100000000001\n> b\n";
    check(twice, &["FILE:4:1: `m100000000001` is already used above"]);
    check(
        "# Memories\n## 2020-01-01 m100000000001\n> a\n",
        &["FILE:2:1: `m100000000001` is another memory here, of 2026-01-05T00:00:00Z; omit the \
             id to import this one as well"],
    );
}

#[test]
fn mistakes_in_json_are_named_by_line_and_column() {
    let check = |file: &str, expected: &[&str]| check_errors("json", file, expected);
    check("{\n  \"memories\": [,]\n}", &["FILE:2:16: expected value"]);
    check("[]", &["FILE:1:1: this is not a JSON object"]);
    check("{\"todo\": [[1]]}", &["FILE:1:11: this is not a JSON object"]);
    check("{\"notes\": []}", &["FILE:1:8: unknown field `notes`, expected `memories` or `todo`"]);
    check(
        r#"{
  "memories": [
    { "id": "m1", "date": "soon", "tags": ["a b", 7], "text": "x" },
    { "text": "a\u0007b" }, { "text": 5 },
    { "tags": [] },
    { "text": "", "tag": [] }
  ],
  "todo": [{ "text": "two\nlines" }, { "text": "a", "done": "yes" }]
}"#,
        &[
            "FILE:3:13: `m1` is not the id of a memory, such as `m482913004117`",
            "FILE:3:27: `soon` is not a date since 1970; write it as `2026-11-24` or \
             `2026-11-24T10:00:00Z`",
            "FILE:3:44: `a b` is not a tag; a tag has 1 to 64 bytes: letters, digits and `-_./:+`",
            "FILE:3:51: invalid type: integer `7`, expected a string",
            "FILE:4:15: the invisible character U+0007; remove it",
            "FILE:4:39: invalid type: integer `5`, expected a string",
            "FILE:5:18: missing field `text`",
            "FILE:6:23: unknown field `tag`, expected one of `id`, `date`, `tags`, `text`",
            "FILE:8:22: a task must be one line",
            "FILE:8:65: invalid type: string \"yes\", expected a boolean",
        ],
    );
}

#[test]
fn only_the_first_problems_are_named() {
    let tools = Tools::default();
    let error = tools.import("markdown", &("# Todo\n".to_owned() + &"x\n".repeat(1_000_000)));
    let error = error.unwrap_err();
    assert_eq!(error.lines().count(), 21);
    assert!(error.ends_with("\nand 999980 more; nothing was imported"), "{error}");
}

#[test]
fn oversized_imports_write_nothing() {
    let mut tools = Tools::default();
    tools.kept.quota = Some(3);
    assert_eq!(tools.import("markdown", MARKDOWN), Err("the storage is full".to_owned()));
    assert!(tools.values().is_empty());
    let many: String = (0..10_001).map(|it| format!("- [ ] task {it}\n")).collect();
    let error = tools.import("markdown", &format!("# Todo\n{many}")).unwrap_err();
    let expected = "10001 entries of `FILE` are new or changed; the limit is 10000: nothing was \
                    imported";
    assert_eq!(error, expected);
}

/// Arbitrary valid strings, generated independently of the implementation.
fn texts(kind: Kind) -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[ -~]{0,12}",
        Just("\n".to_owned()),
        Just("# Todo".to_owned()),
        Just("## x".to_owned()),
        Just("> ".to_owned()),
        Just(" <!-- x -->".to_owned()),
        Just("- [ ] ".to_owned()),
        Just("\t\u{a0}é漢👩‍🚀".to_owned()),
    ];
    let text = prop::collection::vec(part, 1..8).prop_map(|parts| parts.concat());
    text.prop_filter_map("it is no text", move |text| entry::text(kind, &text).ok())
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let moment = (0_i64..253_000_000_000_000).prop_map(|it| Moment::from_millis(it).unwrap());
    let tags = prop::collection::btree_set("[a-zé0-9_./:+-]{1,6}", 0..4);
    let memory = (texts(Kind::Memory), tags)
        .prop_map(|(text, tags)| (Content::Memory(tags.into_iter().collect()), text));
    let task =
        (texts(Kind::Task), any::<bool>()).prop_map(|(text, done)| (Content::Task(done), text));
    let entry = (0_u64..1_000_000_000_000, moment, prop_oneof![memory, task]);
    let entry = entry.prop_map(|(number, created, (content, text))| Entry {
        id: content.kind().id(number),
        created,
        content,
        text,
    });
    prop::collection::vec(entry, 0..12)
}

proptest! {
    #[test]
    fn round_trips_lose_no_data(entries in entries()) {
        let tools = Tools::default();
        let kept: Vec<_> = entries.iter().map(Entry::kept).collect();
        tools.kept.set(&kept).unwrap();
        for format in ["markdown", "json"] {
            let file = tools.export(format);
            let other = Tools::default();
            let count = tools.values().len();
            prop_assert_eq!(other.import(format, &file), imported(count, 0, 0));
            prop_assert_eq!(other.values(), tools.values());
            prop_assert_eq!(other.export(format), file);
        }
    }

    #[test]
    fn any_file_can_be_imported_or_refused(text in "(# Memories|# Todo|## |> |- \\[ \\] |<!-- | -->|[a-z#\\[{\":,]|\n){0,30}") {
        for format in ["markdown", "json"] {
            let tools = Tools::default();
            if tools.import(format, &text).is_err() {
                prop_assert!(tools.values().is_empty());
            }
        }
    }
}
