//! Hostile files and random files.

use kitbag_config::{ConfigErrors, Diagnostic, Origin};
use proptest::prelude::*;

use crate::support::{Fixture, check_problems};

fn is_syntax(diagnostic: &Diagnostic) -> bool {
    diagnostic.message.starts_with("syntax error: ")
}

/// Loads in a thread with the stack size of a runtime's workers.
fn diagnose(config: String) -> Result<(), ConfigErrors> {
    let load = move || Fixture::new(&config).try_load().map(drop);
    std::thread::Builder::new().stack_size(2 << 20).spawn(load).unwrap().join().expect("no panic")
}

#[test]
fn nesting_is_bounded_in_every_notation() {
    let keys = ["a"; 79].join(".");
    let inline = |closing: usize| {
        format!("{keys} = {}1{}", format!("{{ {keys} = ").repeat(75), "}".repeat(closing))
    };
    for config in [
        inline(75),
        inline(3),
        format!("x = {}1{}", "[".repeat(79), "]".repeat(79)),
        format!("[{keys}]\nx = {}1{}", "[".repeat(70), "]".repeat(70)),
        format!("[tools.learn.answers]\n{}= 1", "a.".repeat(62) + "a "),
    ] {
        let errors = diagnose(config).unwrap_err();
        assert!(
            matches!(errors.diagnostics(), [diagnostic] if diagnostic.message == "tables and arrays nest deeper than 64 levels"),
            "{errors}"
        );
    }
    diagnose(format!("[tools.learn.answers]\n{}= 1", "a.".repeat(61))).unwrap_err();
    diagnose(format!("[tools.learn.answers]\n{}= 1", "a.".repeat(60) + "a ")).unwrap();
}

#[test]
fn unclosed_brackets_are_a_syntax_error() {
    for config in
        ["[".repeat(1 << 20), "a=".to_owned() + &"[".repeat(1 << 19), "a={".repeat(1 << 18)]
    {
        let errors = diagnose(config).unwrap_err();
        let diagnostics = errors.diagnostics();
        assert!(diagnostics.iter().all(is_syntax), "{errors}");
    }
}

#[test]
fn diagnostics_are_short_for_any_file() {
    let long = "k".repeat(1_000_000);
    for config in [
        format!("{long} = 1"),
        format!("[tools.{long}]"),
        format!("tools.learn.source = \"{long}\""),
        format!("limits.time = \"{long}\""),
        format!("knowledge.{long} = {{ subjects = \"a\", title = \"b\", learned = [\"[\"] }}"),
        format!(
            "tools.t = {{ source = \"local\", wasm = \"a\", grants.filesystem = [{{ host = \"{long}\", guest = \"/a\" }}] }}"
        ),
        format!(
            "tools.t = {{ source = \"local\", wasm = \"a\", grants.filesystem = [{{ host = \".\", guest = \"{long}\" }}] }}"
        ),
        format!("tools.t = {{ source = \"local\", wasm = \"a\", parameters.{long} = {{}} }}"),
    ] {
        let shown = diagnose(config).unwrap_err().to_string();
        assert!(shown.len() < 4_000, "{} bytes: {}…", shown.len(), &shown[..600]);
    }
}

#[test]
fn bidirectional_controls_are_escaped_in_every_message() {
    let config = "[tools.t]\nsource = \"local\"\nwasm = \"\u{202e}.wasm\"\n\
                  grants.filesystem = [{ host = \".\", guest = \"/\u{202e}\" }, { host = \"\u{202e}\", guest = \"/\u{202e}\" }]\n\
                  [tools.t.parameters]\n\
                  a = { type = \"string\", enum = [\"ab\u{202e}\", \"x\", \"x\u{202e}\", \"x\u{202e}\"], default = \"ac\u{202e}\" }\n\
                  \"\u{202e}\" = { type = \"object\", default = { \"ab\u{202e}\" = 1 } }\n\
                  [tools.u]\nsource = \"builtin\"\nbuiltin = \"\u{202e}\"\n\
                  [knowledge.\"a\u{202e}\"]\nlearned = [\"[\u{202e}\"]\ntitle = \" \"\n\u{202e}\"k\"=1\n";
    for config in [config, config.split_once("\n\u{202e}").unwrap().0] {
        let shown = Fixture::new(config).try_load().unwrap_err().to_string();
        assert!(!shown.contains('\u{202e}') && shown.contains("\\u{202e}"), "{shown}");
    }
}

#[test]
fn many_mistakes_in_one_line_are_cheap() {
    let config: String = (0..20_000).map(|number| format!("k{number}=1,")).collect();
    let errors = Fixture::new(&format!("limits={{{config}}}")).try_load().unwrap_err();
    assert_eq!(errors.diagnostics().len(), 20_000);
}

#[test]
fn internal_keys_of_serde_have_no_effect() {
    check_problems(
        "[limits.memory]\n\"$__serde_spanned_private_start\" = 0\n\"$__serde_spanned_private_end\" = 1\n\
         \"$__serde_spanned_private_value\" = \"x\"\n",
        &["C:1:1: `limits.memory` takes a string, not a table"],
    );
    check_problems(
        "[tools.learn.answers.x]\n\"$__toml_private_datetime\" = \"not a date\"\n",
        &["C:2:30: invalid datetime, expected year or hour"],
    );
}

/// Generates any value, written in one line.
fn any_value() -> BoxedStrategy<String> {
    let scalar = prop::sample::select(vec![
        "1",
        "-1.5",
        "true",
        "nan",
        "inf",
        "99999999999999999999",
        "1e999",
        "2020-01-01",
        "\"\"",
        "\"[\"",
        "\"ä\u{1f9f0}\"",
        "'x'",
        "[]",
        "{}",
    ]);
    let scalar = scalar.prop_map(str::to_owned);
    let nested = scalar.prop_recursive(3, 12, 3, |inner| {
        let key = prop::sample::select(vec!["a", "type", "\"wör ter\""]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|values| format!("[{}]", values.join(", "))),
            (key, inner).prop_map(|(key, value)| format!("{{ {key} = {value} }}")),
        ]
    });
    nested.boxed()
}

/// Generates one of these strings, or an arbitrary value.
fn one_of(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![
        6 => prop::sample::select(texts).prop_map(|text| format!("\"{text}\"")),
        1 => any_value(),
    ]
    .boxed()
}

fn boolean() -> BoxedStrategy<String> {
    prop_oneof![6 => any::<bool>().prop_map(|value| value.to_string()), 1 => any_value()].boxed()
}

/// Generates an array of such values, or an arbitrary value.
fn array_of(value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let array =
        prop::collection::vec(value, 0..3).prop_map(|values| format!("[{}]", values.join(", ")));
    prop_oneof![6 => array, 1 => any_value()].boxed()
}

/// Generates some of these keys, with their values, and sometimes an unknown key.
fn entries(
    known: Vec<(&'static str, BoxedStrategy<String>)>,
) -> BoxedStrategy<Vec<(String, String)>> {
    let count = known.len();
    let unknown = (prop::sample::select(vec!["nonsense", "\"wör ter\"", "_x"]), any_value());
    let unknown =
        prop::option::weighted(0.1, unknown.prop_map(|(key, value)| (key.to_owned(), value)));
    let known = prop::sample::subsequence(known, 0..=count).prop_flat_map(|chosen| {
        let entry = |(key, value): (&'static str, BoxedStrategy<String>)| {
            value.prop_map(move |value| (key.to_owned(), value))
        };
        chosen.into_iter().map(entry).collect::<Vec<_>>()
    });
    (known, unknown).prop_map(|(known, unknown)| known.into_iter().chain(unknown).collect()).boxed()
}

/// Generates a table with such keys, or an arbitrary value.
fn table(known: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let table = entries(known).prop_map(|entries| {
        let entries: Vec<_> =
            entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        format!("{{ {} }}", entries.join(", "))
    });
    prop_oneof![12 => table, 1 => any_value()].boxed()
}

fn limits() -> BoxedStrategy<String> {
    let size = || one_of(&["64MiB", "1 kb", "0", "potato"]);
    let fuel = prop::sample::select(vec!["1", "0", "-0", "-1", "0xff", "18446744073709551615"]);
    let fuel = prop_oneof![6 => fuel.prop_map(str::to_owned), 1 => any_value()].boxed();
    table(vec![
        ("memory", size()),
        ("time", one_of(&["30s", "1m 2s", "0s", "x"])),
        ("output", size()),
        ("fuel", fuel),
    ])
}

fn ceiling() -> BoxedStrategy<String> {
    let size = || one_of(&["1 kb", "128MiB", "0"]);
    let fuel = prop::sample::select(vec!["1", "0", "18446744073709551615"]);
    table(vec![
        ("memory", size()),
        ("time", one_of(&["1s", "1h", "x"])),
        ("output", size()),
        ("fuel", fuel.prop_map(str::to_owned).boxed()),
    ])
}

fn parameter(depth: u32) -> BoxedStrategy<String> {
    let kind = one_of(&["string", "integer", "number", "boolean", "array", "object", "sting"]);
    let mut keys = vec![
        ("type", kind),
        ("description", one_of(&["Ä\u{1f9f0}"])),
        ("required", boolean()),
        ("default", any_value()),
        ("enum", array_of(any_value())),
    ];
    if depth > 0 {
        keys.push(("items", parameter(depth - 1)));
        keys.push((
            "properties",
            table(vec![("a", parameter(depth - 1)), ("b", parameter(depth - 1))]),
        ));
    }
    table(keys)
}

fn tool_keys() -> Vec<(&'static str, BoxedStrategy<String>)> {
    let grant = table(vec![
        ("host", one_of(&[".", "~", ".git", "none"])),
        ("guest", one_of(&["/", "/a", "/a/b", "a"])),
        ("mode", one_of(&["ro", "rw"])),
    ]);
    vec![
        ("source", one_of(&["local", "builtin"])),
        ("builtin", one_of(&["learn", "notes", "x"])),
        ("wasm", one_of(&["t.wasm", "~/t.wasm", ".kitbag/tools/t.wasm", ""])),
        ("title", one_of(&["T"])),
        ("description", one_of(&["D"])),
        ("enable", boolean()),
        (
            "parameters",
            table(vec![("a", parameter(2)), ("_a", parameter(0)), ("\"ä\"", parameter(1))]),
        ),
        ("grants", table(vec![("filesystem", array_of(grant))])),
        ("limits", limits()),
        ("answers", table(vec![("a", any_value()), ("\"b c\"", any_value())])),
    ]
}

/// Generates the text of a file: always TOML, mostly of the right form.
fn document(known: Vec<(&'static str, BoxedStrategy<String>)>) -> impl Strategy<Value = String> {
    entries(known).prop_map(|entries| {
        entries.iter().map(|(key, value)| format!("{key} = {value}\n")).collect::<String>()
    })
}

fn config_file() -> impl Strategy<Value = String> {
    let tool = || table(tool_keys());
    let topic = || {
        let texts = || array_of(one_of(&["a", "**", "["]));
        table(vec![
            ("subjects", one_of(&["docs", ""])),
            ("enable", boolean()),
            ("title", one_of(&["A", "b", ""])),
            ("introduction", one_of(&["I"])),
            ("description", one_of(&["D"])),
            ("learned", texts()),
            ("disabled", texts()),
        ])
    };
    document(vec![
        ("limits", limits()),
        ("ceiling", ceiling()),
        ("tools", table(vec![("learn", tool()), ("t", tool()), ("\"a b\"", tool())])),
        ("knowledge", table(vec![("a", topic()), ("b", topic())])),
    ])
}

/// Checks the properties of all diagnostics about a file with this text.
fn check_diagnostics(config: &str, errors: &ConfigErrors) -> Result<(), TestCaseError> {
    prop_assert!(!errors.diagnostics().is_empty());
    let lines: Vec<_> = config.strip_prefix('\u{feff}').unwrap_or(config).split('\n').collect();
    for diagnostic in errors.diagnostics() {
        // The schema and the types agree: the check against the schema found and removed every
        // mistake that serde finds.
        let of_serde = [
            "invalid type",
            "invalid value",
            "invalid length",
            "unknown field",
            "missing field",
            "unknown variant",
            "duplicate field",
        ];
        prop_assert!(
            of_serde.iter().all(|start| !diagnostic.message.starts_with(start)),
            "{diagnostic}\n{config}"
        );
        if let Origin::File { line, column, .. } = &diagnostic.place {
            let text = lines.get(*line as usize - 1);
            prop_assert!(
                text.is_some_and(|text| (*column as usize) <= text.chars().count() + 1),
                "{diagnostic}"
            );
        }
        if let Some(rest) = diagnostic.message.strip_prefix("unknown key `")
            && let Some((key, table)) = rest.split_once("` ")
            && let Origin::File { line, column, .. } = &diagnostic.place
            // A key inside a value is reported at the value.
            && !table.contains("default")
            && !table.contains("enum")
        {
            let place: String =
                lines[*line as usize - 1].chars().skip(*column as usize - 1).collect();
            prop_assert!(place.trim_start_matches('"').starts_with(key), "{diagnostic}");
        }
        let shown = diagnostic.to_string();
        prop_assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_schema_finds_every_mistake_of_serde(config in config_file(), is_own in any::<bool>()) {
        let fixture =
            if is_own { Fixture::empty().user(&config) } else { Fixture::new(&config) };
        match fixture.try_load() {
            Ok(config) => drop(config.rows()),
            Err(errors) => {
                prop_assert!(!errors.diagnostics().iter().any(is_syntax), "{errors}");
                check_diagnostics(&config, &errors)?;
            }
        }
    }

    #[test]
    fn text_never_causes_a_panic(config in "(?s)(\u{feff})?([\\[\\]{}=.,#\"'\\\\\n\r\t a-c0-9äß\u{1f9f0}\u{1b}]|limits|tools|\\.\\*){0,80}") {
        if let Err(errors) = Fixture::new(&config).try_load() {
            check_diagnostics(&config, &errors)?;
        }
    }

    #[test]
    fn bytes_never_cause_a_panic(config in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Fixture::empty().file("w/.kitbag/config.toml", config).try_load().map(|config| config.rows());
    }

    #[test]
    fn merging_layers_never_panics(
        user in config_file(),
        manifest in document(tool_keys().split_off(3)),
        workspace in config_file(),
    ) {
        let fixture = Fixture::new(&workspace)
            .user(&user)
            .file("w/.kitbag/tools/t.wasm", "")
            .file("w/.kitbag/tools/t.toml", manifest);
        match fixture.try_load() {
            Ok(config) => drop(config.rows()),
            Err(errors) => drop(errors.to_string()),
        }
    }
}
