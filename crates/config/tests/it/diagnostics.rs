//! What a person sees when something is wrong.

use kitbag_config::Origin;

use crate::support::{Fixture, check_problems};

#[track_caller]
fn check(config: &str, expected: &str) {
    assert_eq!(Fixture::new(config).shown(), expected);
}

#[test]
fn a_diagnostic_shows_the_line_and_what_was_meant() {
    check(
        "[tools.word_count]\nsource = \"local\"\nwasm = \"a.wasm\"\ndesciption = \"Count words\"\n",
        "\
.kitbag/config.toml:4:1: unknown key `desciption` in `tools.word_count`
  4 | desciption = \"Count words\"
    | ^^^^^^^^^^
  did you mean `description`?",
    );
}

#[test]
fn where_nothing_is_near_the_known_keys_are_listed() {
    check(
        "\n\n[limits]\nspeed = 3\n",
        "\
.kitbag/config.toml:4:1: unknown key `speed` in `limits`
  4 | speed = 3
    | ^^^^^
  known keys: `memory`, `time`, `output`, `written`, `requests`, `tool_calls`, `fuel`, `compile`",
    );
}

#[test]
fn a_key_disabled_that_is_not_that_of_a_topic_says_what_switches_a_tool_off() {
    check(
        "[tools.learn]\ndisabled = true\n",
        "\
.kitbag/config.toml:2:1: unknown key `disabled` in `tools.learn`
  2 | disabled = true
    | ^^^^^^^^
  `disabled` lists subjects of a topic, in `[knowledge.TOPIC]`; a tool is switched off by `enable = false` in \
         `[tools.NAME]`, a toolset by `NAME = false` in `[toolsets]`",
    );
}

#[test]
fn columns_count_characters_and_marks_stand_below_them() {
    check(
        "tools.learn = { title = \"🧰 wörter\", enabel = true }",
        "\
.kitbag/config.toml:1:37: unknown key `enabel` in `tools.learn`
  1 | tools.learn = { title = \"🧰 wörter\", enabel = true }
    |                                     ^^^^^^
  did you mean `enable`?",
    );
}

#[test]
fn lines_that_end_in_carriage_returns_are_shown_without() {
    check(
        "[limits]\r\ntime = 3\r\n",
        "\
.kitbag/config.toml:2:8: `limits.time` takes a string, not the integer `3`
  2 | time = 3
    |        ^",
    );
}

#[test]
fn what_a_terminal_would_act_on_is_escaped() {
    check(
        "[tools.learn]\n\tsource = \"\\u001b[31m\" # a\u{202e}b\n",
        "\
.kitbag/config.toml:2:11: `tools.learn.source` takes `builtin` or `local`, not `\\u{1b}[31m`
  2 |  source = \"\\u001b[31m\" # a\\u{202e}b
    |           ^^^^^^^^^^^^",
    );
}

#[test]
fn a_mark_stays_below_its_place_after_an_escaped_character() {
    check(
        "[tools.learn]\ntitle = \"\u{200b}\" # x\n\"\u{200b}y\" = 1",
        "\
.kitbag/config.toml:3:1: unknown key `\\u{200b}y` in `tools.learn`
  3 | \"\\u{200b}y\" = 1
    | ^^^^^^^^^^^
  known keys: `source`, `builtin`, `replaces`, `wasm`, `script`, `title`, `description`, `enable`, `parameters`, `grants`, \
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
fn a_value_of_several_lines_is_marked_in_its_first() {
    check(
        "limits = [\n  1,\n]\n",
        "\
.kitbag/config.toml:1:10: `limits` takes a table, not an array
  1 | limits = [
    |          ^",
    );
}

#[test]
fn a_mistake_at_the_end_of_the_file_is_marked_after_it() {
    check(
        "[limits",
        "\
.kitbag/config.toml:1:8: syntax error: unclosed table, expected `]`
  1 | [limits
    |        ^",
    );
}

#[test]
fn every_unknown_key_and_every_wrong_value_is_found_in_one_go() {
    check_problems(
        r#"
tool = 1
limits = { memory = 1, time = "30s", speed = "1" }

[tools.learn]
enable = "yes"
source = "remote"
title = 1979-05-27
limits = []

[tools.count]
source = "local"
wasm = true
parameters.path = { type = "sting", requierd = true, items = { typ = "string" }, enum = 1.5 }
grants = { filesystem = [{ host = "." }, 3, { host = ".", guest = "/a", mode = 1 }], udp = ["a"] }
answers = 3

[knowledge]
a = 3
b = { subjects = "b", learned = ["a", 1], disabled = "b", intro = "x" }
"#,
        &[
            "C:2:1: unknown key `tool` at the top level; did you mean `tools`?",
            "C:3:21: `limits.memory` takes a string, not the integer `1`",
            "C:3:38: unknown key `speed` in `limits`; known keys: `memory`, `time`, `output`, `written`, `requests`, `tool_calls`, `fuel`, `compile`",
            "C:6:10: `tools.learn.enable` takes `true` or `false`, not the string `yes`",
            "C:7:10: `tools.learn.source` takes `builtin` or `local`, not `remote`",
            "C:8:9: `tools.learn.title` takes a string, not the date `1979-05-27`",
            "C:9:10: `tools.learn.limits` takes a table, not an array",
            "C:13:8: `tools.count.wasm` takes a string, not `true`",
            "C:14:28: `tools.count.parameters.path.type` takes `string`, `number`, `integer`, \
             `boolean`, `array` or `object`, not `sting`; did you mean `string`?",
            "C:14:37: unknown key `requierd` in `tools.count.parameters.path`; did you mean `required`?",
            "C:14:64: unknown key `typ` in `tools.count.parameters.path.items`; did you mean `type`?",
            "C:14:89: `tools.count.parameters.path.enum` takes an array, not the number `1.5`",
            "C:15:26: missing key `guest` in `tools.count.grants.filesystem[0]`",
            "C:15:42: `tools.count.grants.filesystem[1]` takes a table, not the integer `3`",
            "C:15:80: `tools.count.grants.filesystem[2].mode` takes `ro` or `rw`, not the integer `1`",
            "C:15:86: unknown key `udp` in `tools.count.grants`; known keys: `filesystem`, `http`, `deny`, `env`, `config`, \
             `secrets`, `storage`, `tools`",
            "C:16:11: `tools.count.answers` takes a table, not the integer `3`",
            "C:19:5: `knowledge.a` takes a table, not the integer `3`",
            "C:20:39: `knowledge.b.learned[1]` takes a string, not the integer `1`",
            "C:20:54: `knowledge.b.disabled` takes an array, not the string `b`",
            "C:20:59: unknown key `intro` in `knowledge.b`; did you mean `introduction`?",
        ],
    );
}

#[test]
fn mistakes_of_form_and_of_meaning_are_found_together() {
    check_problems(
        "[limits]\ntime = \"soon\"\nspeed = 1\n[tools.\"a b\"]\n[knowledge.a]\n",
        &[
            "C:2:8: `soon` is not a duration; write a number and a unit, such as `30s` or `500ms`",
            "C:3:1: unknown key `speed` in `limits`; known keys: `memory`, `time`, `output`, `written`, `requests`, `tool_calls`, `fuel`, `compile`",
            "C:4:8: `a b` is not a tool name: it takes letters, digits, `_` and `-`, starts with a \
             letter or `_`, and has at most 48 characters",
            "C:5:1: topic `a` has no `subjects`; add the directory of its documents",
        ],
    );
}

#[test]
fn what_was_written_wrong_is_not_missing_too() {
    check_problems(
        r#"
[tools.a]
sorce = "local"
[tools.b]
source = "local"
wsam = "b.wasm"
[tools.c]
source = 3
[knowledge.d]
subject = "d"
[tools.e]
source = "local"
wasm = "e.wasm"
grants.filesystem = [{ hots = ".", guest = "/a" }]
"#,
        &[
            "C:3:1: unknown key `sorce` in `tools.a`; did you mean `source`?",
            "C:6:1: unknown key `wsam` in `tools.b`; did you mean `wasm`?",
            "C:8:10: `tools.c.source` takes `builtin` or `local`, not the integer `3`",
            "C:10:1: unknown key `subject` in `knowledge.d`; did you mean `subjects`?",
            "C:14:24: unknown key `hots` in `tools.e.grants.filesystem[0]`; did you mean `host`?",
        ],
    );
}

#[test]
fn grants_that_are_not_enforced_do_not_exist() {
    check_problems(
        "[tools.a]\nsource = \"local\"\nwasm = \"a.wasm\"\n[tools.a.grants]\nhttp = []\ntelepathy = true\n",
        &[
            "C:6:1: unknown key `telepathy` in `tools.a.grants`; known keys: `filesystem`, `http`, `deny`, \
             `env`, `config`, `secrets`, `storage`, `tools`",
        ],
    );
}

#[test]
fn every_line_with_a_syntax_error_is_reported_once() {
    check_problems(
        "a = \n[limits]\ntime = \"\\q\"\nb c\nmemory = '1MiB' 'x'\n",
        &[
            "C:1:5: syntax error: string values must be quoted, expected literal string",
            "C:3:10: syntax error: missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\\`, `\"`, \
             `x`, `u`, `U`",
            "C:4:3: syntax error: key with no value, expected `=`",
            "C:5:17: syntax error: unexpected key or value, expected newline, `#`",
        ],
    );
    check_problems(
        "x = [1,\nb = 3",
        &["C:2:1: syntax error: string values must be quoted, expected literal string"],
    );
    check_problems(
        "[limits]\ntime = '1s'\ntime = '2s'\n[limits]\n",
        &["C:3:1: syntax error: duplicate key", "C:4:2: syntax error: duplicate key"],
    );
}

#[test]
fn all_files_are_checked_and_come_in_the_order_of_their_layers() {
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
.kitbag/tools/lone.toml: describes a tool that is not there; `.kitbag/tools/lone.wasm` is missing
"
    );
}

#[test]
fn a_diagnostic_can_be_taken_apart() {
    let errors = Fixture::new("[limits]\nspeed = 1\n").try_load().unwrap_err();
    let [diagnostic] = errors.diagnostics() else { panic!("{errors}") };
    let path = std::path::Path::new(".kitbag/config.toml").into();
    assert_eq!(diagnostic.place, Origin::File { path, line: 2, column: 1 });
    assert_eq!(diagnostic.message, "unknown key `speed` in `limits`");
    let excerpt = diagnostic.excerpt.as_ref().unwrap();
    assert_eq!((excerpt.text.as_str(), excerpt.mark.clone()), ("speed = 1", 0..5));
}

#[test]
fn a_flood_of_mistakes_is_cut_where_it_is_shown() {
    let config: String = (0..103).map(|number| format!("k{number} = 1\n")).collect();
    let errors = Fixture::new(&config).try_load().unwrap_err();
    assert_eq!(errors.diagnostics().len(), 103);
    let shown = errors.to_string();
    assert_eq!(shown.matches("unknown key").count(), 100);
    assert!(shown.ends_with("\n… and 3 more"), "{shown}");
}
