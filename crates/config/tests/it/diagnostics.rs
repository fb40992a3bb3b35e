//! The display of mistakes.

use kitbag_config::Origin;

use crate::support::Fixture;

#[track_caller]
fn check(config: &str, expected: &str) {
    assert_eq!(Fixture::new(config).shown(), expected);
}

#[test]
fn carriage_returns_at_line_ends_are_not_shown() {
    check(
        "[limits]\r\ntime = 3\r\n",
        "\
.kitbag/config.toml:2:8: `limits.time` takes a string, not the integer `3`
  2 | time = 3
    |        ^",
    );
}

#[test]
fn terminal_control_characters_are_escaped() {
    check(
        "[tools.learn]\n\tsource = \"\\u001b[31m\" # a\u{202e}b\n",
        "\
.kitbag/config.toml:2:11: `tools.learn.source` takes `builtin`, `local` or `SERVER/TOOL`, not `\\u{1b}[31m`
  2 |  source = \"\\u001b[31m\" # a\\u{202e}b
    |           ^^^^^^^^^^^^",
    );
}

#[test]
fn marks_stay_aligned_after_escaped_characters() {
    check(
        "[tools.learn]\ntitle = \"\u{200b}\" # x\n\"\u{200b}y\" = 1",
        "\
.kitbag/config.toml:3:1: unknown key `\\u{200b}y` in `tools.learn`
  3 | \"\\u{200b}y\" = 1
    | ^^^^^^^^^^^
  known keys: `source`, `builtin`, `replaces`, `wasm`, `function`, `command`, `stdin`, `script`, `title`, `description`, `enable`, `parameters`, `grants`, \
         `limits`, `rate`, `dev`, `mask`, `approve`, `answers`",
    );
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let before = "x".repeat(200);
    let after = "y".repeat(200);
    check(
        &format!(
            "tools.learn = {{ title = \"{before}\", enabel = true, description = \"{after}\" }}"
        ),
        &format!(
            "\
.kitbag/config.toml:1:229: unknown key `enabel` in `tools.learn`
  1 | …{}\", enabel = true, description = \"{}…
    |  {:40}^^^^^^
  did you mean `enable`?",
            "x".repeat(37),
            "y".repeat(50),
            ""
        ),
    );
}

#[test]
fn a_mistake_at_the_end_is_marked_after_the_last_character() {
    check(
        "[limits",
        "\
.kitbag/config.toml:1:8: syntax error: unclosed table, expected `]`
  1 | [limits
    |        ^",
    );
}

#[test]
fn mistakes_of_all_files_are_in_layer_order() {
    let fixture = Fixture::new("[limits]\ntime = 1\n")
        .user("[limits]\nmemory = 2\n")
        .file("w/.kitbag/tools/b.wasm", "")
        .file("w/.kitbag/tools/b.toml", "enable = 1\n")
        .file("w/.kitbag/tools/a.wasm", "")
        .file("w/.kitbag/tools/a.toml", "x\n")
        .file("w/.kitbag/tools/lone.toml", "")
        .variable("KITBAG_LIMITS_TIME", "x");
    assert_eq!(
        fixture.problems(),
        "\
.kitbag/tools/a.toml:1:2: syntax error: key with no value, expected `=`
.kitbag/tools/b.toml:1:10: `tools.b.enable` takes `true` or `false`, not the integer `1`
/t/h/config.toml:2:10: `limits.memory` takes a string, not the integer `2`
.kitbag/config.toml:2:8: `limits.time` takes a string, not the integer `1`
environment KITBAG_LIMITS_TIME: `x` is not a duration; write a number and a unit, such as `30s` or `500ms`
.kitbag/tools/lone.toml: describes a missing tool: `.kitbag/tools/lone.wasm` does not exist
"
    );
}

#[test]
fn diagnostics_have_separate_parts() {
    let errors = Fixture::new("[limits]\nspeed = 1\n").try_load().unwrap_err();
    let [diagnostic] = errors.diagnostics() else { panic!("{errors}") };
    let path = std::path::Path::new(".kitbag/config.toml").into();
    assert_eq!(diagnostic.place, Origin::File { path, line: 2, column: 1 });
    assert_eq!(diagnostic.message, "unknown key `speed` in `limits`");
    let excerpt = diagnostic.excerpt.as_ref().unwrap();
    assert_eq!((excerpt.text.as_str(), excerpt.mark.clone()), ("speed = 1", 0..5));
}

#[test]
fn the_display_of_many_mistakes_is_cut() {
    let config: String = (0..103).map(|number| format!("k{number} = 1\n")).collect();
    let errors = Fixture::new(&config).try_load().unwrap_err();
    assert_eq!(errors.diagnostics().len(), 103);
    let shown = errors.to_string();
    assert_eq!(shown.matches("unknown key").count(), 100);
    assert!(shown.ends_with("\n… and 3 more"), "{shown}");
}
