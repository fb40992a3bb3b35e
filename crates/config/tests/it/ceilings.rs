//! Ceilings: what a workspace may ask for, and who may allow more.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_config::{EffectiveLimits, LimitFlags, load, load_lenient};
use kitbag_contract::Limits;

use crate::support::{Fixture, check_problems_of, check_rows};

const AT_THE_CEILING: &str = "memory = \"64MiB\"\ntime = \"30s\"\noutput = \"1MiB\"\nwritten = \"1GiB\"\nrequests = 50\ntool_calls = 20\n\
     compile = \"1m\"\n";

#[test]
fn a_workspace_may_ask_for_as_much_as_the_ceiling() {
    let limits = |fixture: Fixture| fixture.load().tools["learn"].limits.limits();
    let tool = format!("[tools.learn.limits]\n{AT_THE_CEILING}");
    assert_eq!(limits(Fixture::new(&tool)), Limits::default());
    let raised = "[ceiling]\nmemory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let config = "[limits]\nmemory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let expected = Limits {
        memory: ByteSize::mib(1024),
        time: Duration::from_secs(3600),
        output: ByteSize::mib(8),
        written: ByteSize::mib(9 << 10),
        requests: 500,
        tool_calls: 200,
        fuel: None,
        compile: Duration::from_secs(300),
    };
    assert_eq!(limits(Fixture::new(config).user(raised)), expected);
}

#[test]
fn a_limit_above_the_ceiling_is_refused_wherever_a_workspace_sets_it() {
    let fixture = Fixture::new(
        "[limits]\nmemory = \"65MiB\"\ntime = \"30001ms\"\noutput = \"1048577B\"\n\
         written = \"2GiB\"\nrequests = 51\ntool_calls = 21\ncompile = \"61s\"\n[tools.learn.limits]\nmemory = \"1GiB\"\n",
    )
    .file("w/.kitbag/tools/count.wasm", "")
    .file("w/.kitbag/tools/count.toml", "enable = false\nlimits.time = \"1h\"\n");
    check_problems_of(
        &fixture,
        &[
            ".kitbag/tools/count.toml:2:15: `tools.count.limits.time` is `1h`, above the ceiling of \
             `30s` (default); lower it, or put `time = \"1h\"` under `[ceiling]` in your user config \
             `/t/h/config.toml`",
            "C:2:10: `limits.memory` is `65 MiB`, above the ceiling of `64 MiB` (default); lower it, \
             or put `memory = \"65 MiB\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:3:8: `limits.time` is `30s 1ms`, above the ceiling of `30s` (default); lower it, or \
             put `time = \"30s 1ms\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:4:10: `limits.output` is `1048577 bytes`, above the ceiling of `1 MiB` (default); \
             lower it, or put `output = \"1048577 bytes\"` under `[ceiling]` in your user config \
             `/t/h/config.toml`",
            "C:5:11: `limits.written` is `2 GiB`, above the ceiling of `1 GiB` (default); lower it, \
             or put `written = \"2 GiB\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:6:12: `limits.requests` is `51`, above the ceiling of `50` (default); lower it, or put \
             `requests = 51` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:7:14: `limits.tool_calls` is `21`, above the ceiling of `20` (default); lower it, or put \
             `tool_calls = 21` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:8:11: `limits.compile` is `1m 1s`, above the ceiling of `1m` (default); lower it, or put \
             `compile = \"1m 1s\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            "C:10:10: `tools.learn.limits.memory` is `1 GiB`, above the ceiling of `64 MiB` (default); \
             lower it, or put `memory = \"1 GiB\"` under `[ceiling]` in your user config `/t/h/config.toml`",
        ],
    );
    // What the messages tell, done.
    let allowed = "[ceiling]\nmemory = \"1 GiB\"\ntime = \"1h\"\noutput = \"1048577 bytes\"\nwritten = \"2 GiB\"\nrequests = 51\ntool_calls = 21\ncompile = \"1m 1s\"\n";
    fixture.user(allowed).load();
}

#[test]
fn the_message_shows_the_place_and_who_set_the_ceiling() {
    let fixture = Fixture::new("[tools.learn.limits]\nmemory = \"48MiB\" # more\n")
        .user("# mine\n[ceiling]\nmemory = \"32MiB\"\n");
    assert_eq!(
        fixture.shown(),
        "\
.kitbag/config.toml:2:10: `tools.learn.limits.memory` is `48 MiB`, above the ceiling of `32 MiB` \
(/t/h/config.toml:3:10); lower it, or put `memory = \"48 MiB\"` under `[ceiling]` in your user config \
`/t/h/config.toml`
  2 | memory = \"48MiB\" # more
    |          ^^^^^^^"
    );
}

#[test]
fn without_a_place_for_a_file_of_ones_own_the_message_names_none() {
    check_problems_of(
        &Fixture::new("[limits]\ntime = \"31s\"\n[ceiling]\n").homeless(),
        &[
            "C:2:8: `limits.time` is `31s`, above the ceiling of `30s` (default); lower it, or put \
             `time = \"31s\"` under `[ceiling]` in your user config",
            "C:3:2: `ceiling` has no place in a workspace's file: only your user config may \
             hold it; remove it",
        ],
    );
}

#[test]
fn a_file_that_was_named_beats_the_usual_one_in_messages() {
    let fixture = Fixture::new("[limits]\ntime = \"31s\"\n").user("");
    let mut sources = fixture.sources();
    sources.usual_user_file = Some(fixture.path("elsewhere.toml"));
    let errors = fixture.redact(&load(&sources).unwrap_err().to_string());
    assert!(errors.contains("in your user config `/t/h/config.toml`"), "{errors}");
}

#[test]
fn only_a_file_of_ones_own_may_hold_a_ceiling() {
    let refused = "`ceiling` has no place in a workspace's file: only your user config `/t/h/config.toml` \
                   may hold it; remove it";
    let fixture = Fixture::new("[limits]\nmemory = \"1GiB\"\n[ceiling]\nmemory = \"2GiB\"\n")
        .file("w/.kitbag/tools/count.wasm", "")
        .file("w/.kitbag/tools/count.toml", "ceiling.time = \"2h\"\nlimits.time = \"1h\"\n");
    check_problems_of(
        &fixture,
        &[
            &format!(".kitbag/tools/count.toml:1:1: {refused}"),
            ".kitbag/tools/count.toml:2:15: `tools.count.limits.time` is `1h`, above the ceiling of \
             `30s` (default); lower it, or put `time = \"1h\"` under `[ceiling]` in your user config \
             `/t/h/config.toml`",
            "C:2:10: `limits.memory` is `1 GiB`, above the ceiling of `64 MiB` (default); lower it, \
             or put `memory = \"1 GiB\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            &format!("C:3:2: {refused}"),
        ],
    );
    let (config, _) = load_lenient(&fixture.sources());
    let config = config.unwrap();
    assert_eq!(
        (config.ceiling, config.limits.limits()),
        (EffectiveLimits::default(), Limits::default())
    );
}

#[test]
fn a_ceiling_out_of_place_is_refused_whatever_it_holds() {
    let refused = "`ceiling` has no place in a workspace's file: only your user config `/t/h/config.toml` \
                   may hold it; remove it";
    for ceiling in ["3", "{}", "{ memory = 1, speed = [] }", "\"1GiB\""] {
        // The second mistake makes the whole file be looked at once more.
        check_problems_of(
            &Fixture::new(&format!("ceiling = {ceiling}\nspeed = 1\n")),
            &[
                &format!("C:1:1: {refused}"),
                "C:2:1: unknown key `speed` at the top level; known keys: `limits`, `secret_files`, `serve`, \
                 `toolsets`, `tools`, `knowledge`",
            ],
        );
        check_problems_of(
            &Fixture::new(&format!("ceiling = {ceiling}\n")),
            &[&format!("C:1:1: {refused}")],
        );
    }
    check_problems_of(
        &Fixture::new("[ceilling]\n[tools.learn.ceiling]\n"),
        &[
            "C:1:2: unknown key `ceilling` at the top level; known keys: `limits`, `secret_files`, `serve`, \
             `toolsets`, `tools`, `knowledge`",
            "C:2:14: unknown key `ceiling` in `tools.learn`; known keys: `source`, `builtin`, `replaces`, `wasm`, \
             `script`, `title`, `description`, `enable`, `parameters`, `grants`, `limits`, `rate`, `dev`, `mask`, `approve`, `answers`",
        ],
    );
}

#[test]
fn a_person_may_set_any_limit() {
    let mine = "memory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let expected = Limits {
        memory: ByteSize::mib(1024),
        time: Duration::from_secs(3600),
        output: ByteSize::mib(8),
        written: ByteSize::mib(9 << 10),
        requests: 500,
        tool_calls: 200,
        fuel: None,
        compile: Duration::from_secs(300),
    };
    let low = "[ceiling]\nmemory = \"1MiB\"\ntime = \"1s\"\noutput = \"1KiB\"\n";
    let limits = |fixture: &Fixture| fixture.load().tools["learn"].limits.limits();
    assert_eq!(limits(&Fixture::empty().user(&format!("{low}[limits]\n{mine}"))), expected);
    let tool = format!("{low}[tools.learn.limits]\n{mine}");
    assert_eq!(limits(&Fixture::empty().user(&tool)), expected);
    let fixture = Fixture::new("[limits]\nmemory = \"1KiB\"\n").user(low);
    let variables = fixture
        .variable("KITBAG_LIMITS_MEMORY", "1GiB")
        .variable("KITBAG_LIMITS_TIME", "1h")
        .variable("KITBAG_LIMITS_OUTPUT", "8MiB")
        .variable("KITBAG_LIMITS_WRITTEN", "9GiB")
        .variable("KITBAG_LIMITS_REQUESTS", "500")
        .variable("KITBAG_LIMITS_TOOL_CALLS", "200")
        .variable("KITBAG_LIMITS_COMPILE", "5m");
    assert_eq!(limits(&variables), expected);
    let fixture = Fixture::empty().user(low);
    let mut sources = fixture.sources();
    sources.flags = LimitFlags {
        memory: Some(expected.memory),
        time: Some(expected.time),
        output: Some(expected.output),
        written: Some(expected.written),
        requests: Some(expected.requests),
        tool_calls: Some(expected.tool_calls),
        fuel: None,
        compile: Some(expected.compile),
    };
    assert_eq!(load(&sources).unwrap().tools["learn"].limits.limits(), expected);
}

#[test]
fn no_other_value_makes_up_for_a_limit_above_the_ceiling() {
    let fixture = Fixture::new("[tools.learn.limits]\ntime = \"31s\"\n")
        .user("[limits]\ntime = \"1h\"\n[tools.learn.limits]\ntime = \"1h\"\n")
        .variable("KITBAG_LIMITS_TIME", "1s");
    check_problems_of(
        &fixture,
        &[
            "C:2:8: `tools.learn.limits.time` is `31s`, above the ceiling of `30s` (default); lower \
             it, or put `time = \"31s\"` under `[ceiling]` in your user config `/t/h/config.toml`",
        ],
    );
}

#[test]
fn a_workspace_beats_a_person_up_to_the_ceiling_and_no_further() {
    let person = |ceiling: &str| format!("{ceiling}[tools.learn.limits]\nmemory = \"16MiB\"\n");
    let memory = "tools.learn.limits.memory";
    let workspace = "[tools.learn.limits]\nmemory = \"64MiB\"\n";
    // Later wins, as for all keys.
    check_rows(
        &Fixture::new(workspace).user(&person("")),
        memory,
        &[&format!("{memory} = \"64 MiB\" # .kitbag/config.toml:2:10")],
    );
    check_problems_of(
        &Fixture::new(workspace).user(&person("[ceiling]\nmemory = \"32MiB\"\n")),
        &["C:2:10: `tools.learn.limits.memory` is `64 MiB`, above the ceiling of `32 MiB` \
           (/t/h/config.toml:2:10); lower it, or put `memory = \"64 MiB\"` under `[ceiling]` in your \
           user config `/t/h/config.toml`"],
    );
}

#[test]
fn a_limit_that_a_person_raised_is_no_ceiling_and_may_be_lowered() {
    let raised = "[tools.learn.limits]\nmemory = \"1GiB\"\n";
    let rows = |workspace: &str, expected: &str| {
        let row = format!("tools.learn.limits.memory = {expected}");
        let fixture = Fixture::new(workspace).user(raised);
        check_rows(&fixture, "tools.learn.limits.memory", &[&row]);
    };
    rows("", "\"1 GiB\" # /t/h/config.toml:2:10");
    // The tool's own beats those of all tools, wherever they were set.
    rows("[limits]\nmemory = \"1MiB\"\n", "\"1 GiB\" # /t/h/config.toml:2:10");
    rows("[tools.learn.limits]\nmemory = \"1MiB\"\n", "\"1 MiB\" # .kitbag/config.toml:2:10");
    check_problems_of(
        &Fixture::new("[tools.learn.limits]\nmemory = \"512MiB\"\n").user(raised),
        &["C:2:10: `tools.learn.limits.memory` is `512 MiB`, above the ceiling of `64 MiB` \
           (default); lower it, or put `memory = \"512 MiB\"` under `[ceiling]` in your user config \
           `/t/h/config.toml`"],
    );
}

#[test]
fn fuel_has_no_ceiling_unless_a_person_sets_one() {
    let fuel = "[tools.learn.limits]\nfuel = 18446744073709551615\n";
    let fixture = Fixture::new(fuel).user("[limits]\nfuel = 1\n");
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(u64::MAX));
    let workspace = "[limits]\nfuel = 8\n[tools.learn.limits]\nfuel = 9\n";
    let ceiling = "[ceiling]\nfuel = 8\n";
    check_problems_of(
        &Fixture::new(workspace).user(ceiling),
        &["C:4:8: `tools.learn.limits.fuel` is `9`, above the ceiling of `8` \
           (/t/h/config.toml:2:8); lower it, or put `fuel = 9` under `[ceiling]` in your user config \
           `/t/h/config.toml`"],
    );
    // What the message tells, done.
    let fixture = Fixture::new(workspace).user("[ceiling]\nfuel = 9\n");
    check_rows(&fixture, "ceiling.fuel", &["ceiling.fuel = 9 # /t/h/config.toml:2:8"]);
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(9));
    // A person is not bound by it.
    let own = format!("{ceiling}[limits]\nfuel = 10\n");
    assert_eq!(Fixture::empty().user(&own).load().limits.limits().fuel, Some(10));
    let fixture = Fixture::new("").user(ceiling).variable("KITBAG_LIMITS_FUEL", "11");
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(11));
}

#[test]
fn a_ceiling_of_fuel_is_the_budget_of_a_tool_that_has_none() {
    let fixture = Fixture::new("[tools.learn.limits]\nfuel = 7\n").user("[ceiling]\nfuel = 8\n");
    check_rows(&fixture, "limits.fuel", &["limits.fuel = 8 # /t/h/config.toml:2:8"]);
    let learn = ["tools.learn.limits.fuel = 7 # .kitbag/config.toml:2:8"];
    check_rows(&fixture, "tools.learn.limits.fuel", &learn);
    let notes = ["tools.notes.limits.fuel = 8 # /t/h/config.toml:2:8"];
    check_rows(&fixture, "tools.notes.limits.fuel", &notes);
}

#[test]
fn a_ceiling_of_fuel_is_a_positive_integer() {
    check_problems_of(
        &Fixture::new("[limits]\nfuel = 9\n").user("[ceiling]\nfuel = 0\n"),
        &["/t/h/config.toml:2:8: `ceiling.fuel` takes a positive integer, not the integer `0`"],
    );
}

#[test]
fn a_ceiling_below_the_default_lowers_the_default() {
    let fixture = Fixture::new("[limits]\ntime = \"2s\"\n").user(
        "[ceiling]\nmemory = \"1MiB\"\ntime = \"5s\"\noutput = \"2MiB\"\nwritten = \"1MiB\"\n",
    );
    let rows = [
        r#"ceiling.memory = "1 MiB" # /t/h/config.toml:2:10"#,
        r#"ceiling.time = "5s" # /t/h/config.toml:3:8"#,
        r#"ceiling.output = "2 MiB" # /t/h/config.toml:4:10"#,
        r#"ceiling.written = "1 MiB" # /t/h/config.toml:5:11"#,
        r#"ceiling.requests = 50 # default"#,
        r#"ceiling.tool_calls = 20 # default"#,
        r#"ceiling.compile = "1m" # default"#,
    ];
    check_rows(&fixture, "ceiling", &rows);
    for limits in ["limits", "tools.learn.limits"] {
        check_rows(
            &fixture,
            limits,
            &[
                &format!("{limits}.memory = \"1 MiB\" # /t/h/config.toml:2:10"),
                &format!("{limits}.time = \"2s\" # .kitbag/config.toml:2:8"),
                &format!("{limits}.output = \"1 MiB\" # default"),
                &format!("{limits}.written = \"1 MiB\" # /t/h/config.toml:5:11"),
                &format!("{limits}.requests = 50 # default"),
                &format!("{limits}.tool_calls = 20 # default"),
                &format!("{limits}.compile = \"1m\" # default"),
            ],
        );
    }
}

#[test]
fn ceilings_that_are_not_set_have_rows_too() {
    check_rows(
        &Fixture::empty().user("[ceiling]\ntime = \"1h\"\n"),
        "ceiling",
        &[
            r#"ceiling.memory = "64 MiB" # default"#,
            r#"ceiling.time = "1h" # /t/h/config.toml:2:8"#,
            r#"ceiling.output = "1 MiB" # default"#,
            r#"ceiling.written = "1 GiB" # default"#,
            r#"ceiling.requests = 50 # default"#,
            r#"ceiling.tool_calls = 20 # default"#,
            r#"ceiling.compile = "1m" # default"#,
        ],
    );
}

#[test]
fn nothing_is_measured_against_a_ceiling_that_is_wrong_itself() {
    let workspace = "[limits]\nmemory = \"1GiB\"\ntime = \"1h\"\n";
    let check = |own: &str, expected: &[&str]| {
        let expected: Vec<_> =
            expected.iter().map(|line| format!("/t/h/config.toml:{line}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check_problems_of(&Fixture::new(workspace).user(own), &expected);
    };
    let size = "is not a size; write a number and a unit, such as `64MiB`";
    let duration = "is not a duration; write a number and a unit, such as `30s` or `500ms`";
    check(
        "[ceiling]\nmemory = \"much\"\ntime = \"long\"\noutput = \"0\"\n",
        &[
            &format!("2:10: `much` {size}"),
            &format!("3:8: `long` {duration}"),
            &format!("4:10: `0` {size}"),
        ],
    );
    check(
        "[ceiling]\nmemory = 3\ntme = \"1h\"\n",
        &[
            "2:10: `ceiling.memory` takes a string, not the integer `3`",
            "3:1: unknown key `tme` in `ceiling`; did you mean `time`?",
        ],
    );
    check("ceiling = 3\n", &["1:11: `ceiling` takes a table, not the integer `3`"]);
    check(
        "[ceilings]\n",
        &["1:2: unknown key `ceilings` at the top level; did you mean `ceiling`?"],
    );
}
