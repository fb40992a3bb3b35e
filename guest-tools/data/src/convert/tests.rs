//! Round trips through formats, and hostile input.

use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Number, Value, json};

use crate::tests::call;

/// Converts a document to JSON.
fn convert(text: &str, from: &str, to: &str) -> Result<String, String> {
    let arguments = json!({ "text": text, "from": from, "to": to });
    call("/", "convert_data", &arguments.to_string())
}

#[track_caller]
fn check_error(text: &str, from: &str, expected: &str) {
    let error = convert(text, from, "json").unwrap_err();
    assert!(error.contains(expected), "{error}");
}

/// Converts there and back, and compares the result with the input.
#[track_caller]
fn check_round_trip(value: &Value, format: &str) -> Result<(), TestCaseError> {
    let there = convert(&value.to_string(), "json", format).map_err(TestCaseError::fail)?;
    let back = convert(&there, format, "json");
    let back = back.map_err(|error| TestCaseError::fail(format!("{error}\n{there}")))?;
    let back: Value = serde_json::from_str(&back).unwrap();
    prop_assert_eq!(&back, value, "{}", there);
    Ok(())
}

fn number() -> impl Strategy<Value = Value> {
    let number = |text: String| Value::Number(text.parse::<Number>().unwrap());
    let decimal = "-?(0|[1-9][0-9]{0,16})(\\.[0-9]{1,20})?(e[+-][1-9][0-9]?)?";
    prop_oneof![any::<i64>().prop_map(Value::from), decimal.prop_map(number)]
}

/// Strings that formats may interpret differently, and arbitrary strings.
fn text() -> impl Strategy<Value = String> {
    let odd = [
        "",
        " ",
        "~",
        "null",
        "no",
        "1",
        "007",
        "1e5",
        "0x1",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        "#",
        "---",
        "...",
        "a\n",
        "a\n\nb",
        "a\n\n",
        "\na",
        " a\nb",
        "a\n b\n",
        "a\n \nb",
        "\t",
        "a\tb",
        "\r",
        "a\r\nb",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{ffff}",
        "😀",
        "'",
        "\"",
        "\\",
        "\\n",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "[",
        "{",
        "},",
        "'''",
        "\"\"\"",
        "<<",
        "=",
        "?",
        "? a",
        ":",
        "-",
        "a:",
        "2026-01-02",
        "a/b~c.d",
    ];
    let odd: Vec<String> = odd.map(String::from).into();
    prop_oneof![
        proptest::sample::select(odd),
        any::<String>(),
        "[a-z \n:#-]{0,12}",
        "[a-zäß]{1,5}",
        // A key that is too long for its line.
        "[a-z]{1}".prop_map(|char| char.repeat(1_100)),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)]
}

/// Any value, with or without null.
fn value(null: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        9 => scalar(),
        1 => Just(if null { Value::Null } else { Value::Bool(false) }),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    proptest::collection::vec((text(), inner), 0..5)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

/// Rows with the same columns, whose cells a CSV reader does not convert.
fn table() -> impl Strategy<Value = Value> {
    let is_text = |text: &String| text.parse::<Number>().is_err() && !text.is_empty();
    let cell = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_filter("no text", is_text).prop_map(Value::from),
    ];
    let columns = proptest::collection::btree_set("[a-zä ;|\t\"\n-]{1,6}", 1..5);
    let rows = proptest::collection::vec(proptest::collection::vec(cell, 5), 1..6);
    (columns, rows).prop_map(|(columns, rows)| {
        let row = |cells: Vec<Value>| Value::Object(columns.iter().cloned().zip(cells).collect());
        Value::Array(rows.into_iter().map(row).collect())
    })
}

#[test]
fn columns_that_look_like_a_drawn_rule_are_quoted() {
    let csv = convert(r#"[{"--|": 1}]"#, "json", "csv").unwrap();
    assert_eq!(csv.trim_end(), "\"--|\"\n\"1\"");
    let back = convert(&csv, "csv", "json").unwrap();
    assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), json!([{ "--|": 1 }]));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn json_comes_back_from_yaml(value in value(true)) {
        check_round_trip(&value, "yaml")?;
    }

    #[test]
    fn json_without_null_comes_back_from_toml(value in object(value(false))) {
        check_round_trip(&value, "toml")?;
    }

    #[test]
    fn an_array_comes_back_from_json_lines(
        value in proptest::collection::vec(value(true), 0..5).prop_map(Value::from)
    ) {
        check_round_trip(&value, "jsonl")?;
    }

    #[test]
    fn a_table_comes_back_from_csv(value in table()) {
        let there = convert(&value.to_string(), "json", "csv").unwrap();
        let arguments = json!({ "text": there, "from": "csv", "to": "json", "delimiter": "," });
        let back = call("/", "convert_data", &arguments.to_string());
        let back = back.map_err(TestCaseError::fail)?;
        prop_assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), value, "{}", there);
    }

    #[test]
    fn parsing_as_any_format_terminates(text in "[ \n\ta1\\[\\]{}:,&*!|>'\"#%?<=.-]{0,40}") {
        for from in ["json", "yaml", "toml", "csv", "jsonl"] {
            for to in ["json", "yaml", "toml", "csv", "jsonl"] {
                let _ = convert(&text, from, to);
            }
        }
    }
}

#[test]
fn aliased_values_are_counted_before_copying() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{}", level - 1);
        let aliases = [alias.as_str(); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    let expected = "its aliases expand to more than 100000 values or 4 MiB: use fewer of them, or split the document (line ";
    check_error(&laughs, "yaml", expected);
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), ["*a"; 9].join(", "));
    check_error(&long, "yaml", expected);
    let merged = "- &a {a: 1, b: 2}\n".to_owned() + &"- <<: *a\n".repeat(40_000);
    check_error(&merged, "yaml", expected);
}

#[test]
fn values_nested_too_deeply_are_errors() {
    let deep = 100_000;
    check_error(&"[".repeat(deep), "yaml", "recursion limit exceeded");
    check_error(&"- ".repeat(deep), "yaml", "recursion limit exceeded");
    check_error(&"{a: ".repeat(deep), "yaml", "recursion limit exceeded");
    check_error(&"? ".repeat(deep), "yaml", "a key that is a mapping");
    let aliases: String =
        (1..200).map(|level| format!("- &a{level} [*a{}]\n", level - 1)).collect();
    check_error(&format!("- &a0 []\n{aliases}"), "yaml", "recursion limit exceeded");
    check_error(&format!("a = {}", "[".repeat(deep)), "toml", "recursion");
    check_error(&format!("{}a = 1", "a.".repeat(deep)), "toml", "recursion limit");
    let dotted = format!("{{{}a=", "a.".repeat(70));
    let wide = format!("a = {}1{}", dotted.repeat(70), "}".repeat(70));
    check_error(&wide, "toml", "recursion limit");
    check_error(&"[".repeat(deep), "json", "recursion limit exceeded");
    // The maximum depth of JSON, in a round trip.
    let value = "[".repeat(127) + &"]".repeat(127);
    for format in ["yaml", "jsonl"] {
        let there = convert(&value, "json", format).unwrap();
        assert_eq!(convert(&there, format, "jsonl").unwrap().matches('[').count(), 126, "{format}");
    }
    assert_eq!(
        convert(&format!("a = {}", &value[55..127 + 72]), "toml", "jsonl").unwrap().len(),
        151
    );
}

#[test]
fn oversized_results_name_a_fix() {
    let one = json!([{ "a": "x".repeat(60_000) }]).to_string();
    let error = convert(&one, "json", "csv").unwrap_err();
    let expected = "row 0 of `text` as CSV is longer than `max_bytes` 49152; raise it, or get parts \
                    of the row with `query_data`";
    assert_eq!(error, expected);
    let object = json!({ "a": "x".repeat(60_000) }).to_string();
    let error = convert(&object, "json", "yaml").unwrap_err();
    let expected = "`text` as YAML is longer than `max_bytes` 49152; raise it, or get parts with \
                    `query_data`";
    assert_eq!(error, expected);
    let arguments = json!({ "text": object, "to": "yaml", "max_bytes": 70_000 });
    assert!(call("/", "convert_data", &arguments.to_string()).unwrap().len() > 60_000);
}
