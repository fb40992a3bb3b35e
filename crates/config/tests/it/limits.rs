//! Limits, from the weakest to the strongest.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_config::{EffectiveLimits, LimitFlags, load};
use kitbag_contract::Limits;

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

#[test]
fn defaults_are_those_of_the_contract() {
    let config = Fixture::empty().load();
    assert_eq!(config.limits.limits(), Limits::default());
    assert_eq!(config.tools["learn"].limits.limits(), Limits::default());
}

#[test]
fn a_tool_beats_all_tools_and_a_variable_beats_both() {
    let fixture = Fixture::new(
        "[limits]\nmemory = \"1MiB\"\ntime = \"1s\"\noutput = \"1KiB\"\n\
         [tools.learn.limits]\ntime = \"2s\"\noutput = \"2KiB\"\n",
    )
    .user("[tools.learn.limits]\nmemory = \"2MiB\"\n[tools.notes.limits]\nmemory = \"3GiB\"\n")
    .variable("KITBAG_LIMITS_OUTPUT", "4KiB")
    .variable("KITBAG_LIMITS_WRITTEN", "8KiB")
    .variable("KITBAG_LIMITS_TIME", "");
    check_rows(
        &fixture,
        "limits",
        &[
            r#"limits.memory = "1 MiB" # .kitbag/config.toml:2:10"#,
            r#"limits.time = "1s" # .kitbag/config.toml:3:8"#,
            r#"limits.output = "4 KiB" # environment KITBAG_LIMITS_OUTPUT"#,
            r#"limits.written = "8 KiB" # environment KITBAG_LIMITS_WRITTEN"#,
            r#"limits.requests = 50 # default"#,
            r#"limits.tool_calls = 20 # default"#,
            r#"limits.compile = "1m" # default"#,
        ],
    );
    check_rows(
        &fixture,
        "tools.learn.limits",
        &[
            r#"tools.learn.limits.memory = "2 MiB" # /t/h/config.toml:2:10"#,
            r#"tools.learn.limits.time = "2s" # .kitbag/config.toml:6:8"#,
            r#"tools.learn.limits.output = "4 KiB" # environment KITBAG_LIMITS_OUTPUT"#,
            r#"tools.learn.limits.written = "8 KiB" # environment KITBAG_LIMITS_WRITTEN"#,
            r#"tools.learn.limits.requests = 50 # default"#,
            r#"tools.learn.limits.tool_calls = 20 # default"#,
            r#"tools.learn.limits.compile = "1m" # default"#,
        ],
    );
    check_rows(
        &fixture,
        "tools.notes.limits",
        &[
            r#"tools.notes.limits.memory = "3 GiB" # /t/h/config.toml:4:10"#,
            r#"tools.notes.limits.time = "1s" # .kitbag/config.toml:3:8"#,
            r#"tools.notes.limits.output = "4 KiB" # environment KITBAG_LIMITS_OUTPUT"#,
            r#"tools.notes.limits.written = "8 KiB" # environment KITBAG_LIMITS_WRITTEN"#,
            r#"tools.notes.limits.requests = 50 # default"#,
            r#"tools.notes.limits.tool_calls = 20 # default"#,
            r#"tools.notes.limits.compile = "1m" # default"#,
        ],
    );
}

#[test]
fn a_flag_beats_everything() {
    let fixture = Fixture::new("[tools.learn.limits]\ntime = \"2s\"\n")
        .variable("KITBAG_LIMITS_TIME", "3s")
        .variable("KITBAG_LIMITS_MEMORY", "8MiB")
        .variable("KITBAG_LIMITS_FUEL", "8");
    let mut sources = fixture.sources();
    sources.flags = LimitFlags {
        memory: Some(ByteSize::mib(16)),
        time: Some(Duration::from_millis(1500)),
        output: Some(ByteSize::bytes(10)),
        written: Some(ByteSize::bytes(20)),
        requests: Some(30),
        tool_calls: Some(3),
        fuel: Some(7),
        compile: Some(Duration::from_secs(90)),
    };
    let config = load(&sources).unwrap();
    for limits in [&config.limits, &config.tools["learn"].limits, &config.tools["notes"].limits] {
        let fuel = &limits.fuel.as_ref().unwrap().origin;
        let EffectiveLimits {
            memory, time, output, written, requests, tool_calls, compile, ..
        } = limits;
        let origins = [
            &memory.origin,
            &time.origin,
            &output.origin,
            &written.origin,
            &requests.origin,
            &tool_calls.origin,
            fuel,
            &compile.origin,
        ];
        assert_eq!(
            origins.map(ToString::to_string),
            [
                "flag --memory",
                "flag --time",
                "flag --output",
                "flag --written",
                "flag --requests",
                "flag --tool-calls",
                "flag --fuel",
                "flag --compile"
            ]
        );
        let expected = Limits {
            memory: ByteSize::mib(16),
            time: Duration::from_millis(1500),
            output: ByteSize::bytes(10),
            written: ByteSize::bytes(20),
            requests: 30,
            tool_calls: 3,
            fuel: Some(7),
            compile: Duration::from_secs(90),
        };
        assert_eq!(limits.limits(), expected);
    }
}

#[test]
fn fuel_is_off_unless_a_layer_sets_it_and_the_strongest_one_wins() {
    let fixture = Fixture::new("[tools.learn.limits]\nfuel = 0x10\n")
        .user("[limits]\nfuel = 1_000_000\n[tools.learn.limits]\nfuel = 3\n");
    check_rows(&fixture, "limits.fuel", &["limits.fuel = 1000000 # /t/h/config.toml:2:8"]);
    check_rows(
        &fixture,
        "tools.learn.limits.fuel",
        &["tools.learn.limits.fuel = 16 # .kitbag/config.toml:2:8"],
    );
    check_rows(
        &fixture,
        "tools.notes.limits.fuel",
        &["tools.notes.limits.fuel = 1000000 # /t/h/config.toml:2:8"],
    );
    let config = fixture.load();
    assert_eq!(config.tools["learn"].limits.limits().fuel, Some(16));

    let fixture = Fixture::new("[tools.learn.limits]\nfuel = 5\n");
    check_rows(&fixture, "limits.fuel", &[]);
    check_rows(&fixture, "tools.notes.limits.fuel", &[]);
    assert_eq!(fixture.load().limits.limits().fuel, None);

    let fixture = fixture.variable("KITBAG_LIMITS_FUEL", "18446744073709551615");
    for tool in ["limits", "tools.learn.limits", "tools.notes.limits"] {
        let expected =
            format!("{tool}.fuel = 18446744073709551615 # environment KITBAG_LIMITS_FUEL");
        check_rows(&fixture, &format!("{tool}.fuel"), &[&expected]);
    }
    check_rows(&Fixture::empty().variable("KITBAG_LIMITS_FUEL", ""), "limits.fuel", &[]);
}

#[test]
fn fuel_is_a_positive_integer() {
    let check = |value: &str, expected: &str| {
        check_problems(
            &format!("[limits]\nfuel = {value}\n"),
            &[&format!("C:2:8: `limits.fuel` takes a positive integer, not {expected}")],
        );
    };
    check("0", "the integer `0`");
    check("-0", "the integer `-0`");
    check("-5", "the integer `-5`");
    check("0x0", "the integer `0x0`");
    check("1.5", "the number `1.5`");
    check("1e6", "the number `1e6`");
    check("inf", "the number `inf`");
    check("\"1000\"", "the string `1000`");
    check("true", "`true`");
    check("[1]", "an array");
    let fuel = |number: &str| Fixture::new(&format!("[tools.learn.limits]\nfuel = {number}\n"));
    let limits = fuel("18446744073709551615").load().tools["learn"].limits.limits();
    assert_eq!(limits.fuel, Some(u64::MAX));
    check_problems_of(
        &fuel("18446744073709551616"),
        &["C:2:8: number `18446744073709551616` is out of range"],
    );
    let fixture = |value: &str| Fixture::empty().variable("KITBAG_LIMITS_FUEL", value);
    for value in ["0", "-5", "1.5", "much"] {
        check_problems_of(
            &fixture(value),
            &[&format!(
                "environment KITBAG_LIMITS_FUEL: `{value}` is not a fuel budget; write a \
                 positive integer, such as `1000000`"
            )],
        );
    }
}

#[test]
fn a_text_that_is_no_limit_is_refused_in_every_layer() {
    let fixture = Fixture::new("[limits]\nmemory = \"64 potatoes\"\ntime = \"30\"\n")
        .user("[limits]\nmemory = \"0\"\n[tools.learn.limits]\noutput = \"-1\"\ntime = \"0s\"\n")
        .variable("KITBAG_LIMITS_TIME", "x")
        .variable("KITBAG_LIMITS_MEMORY", "y")
        .variable("KITBAG_LIMITS_OUTPUT", "z");
    let size = "is not a size; write a number and a unit, such as `64MiB`";
    let duration = "is not a duration; write a number and a unit, such as `30s` or `500ms`";
    check_problems_of(
        &fixture,
        &[
            &format!("/t/h/config.toml:2:10: `0` {size}"),
            &format!("/t/h/config.toml:4:10: `-1` {size}"),
            &format!("/t/h/config.toml:5:8: `0s` {duration}"),
            &format!("C:2:10: `64 potatoes` {size}"),
            &format!("C:3:8: `30` {duration}"),
            &format!("environment KITBAG_LIMITS_TIME: `x` {duration}"),
            &format!("environment KITBAG_LIMITS_MEMORY: `y` {size}"),
            &format!("environment KITBAG_LIMITS_OUTPUT: `z` {size}"),
        ],
    );
}

#[test]
fn a_variable_that_means_nothing_is_a_warning_with_the_nearest() {
    let fixture = Fixture::empty()
        .variable("KITBAG_LIMIT_TIME", "3s")
        .variable("KITBAG_CACHE", "")
        .variable("KITBAG_LOG", "debug")
        .variable("KITBAG_WORKSPACE", "/elsewhere")
        .variable("KITBAG_CONFIG", "/elsewhere")
        .variable("KITBAG_CACHE_DIR", "/elsewhere")
        .variable("HOME", "/elsewhere");
    let warnings = fixture.load().warnings;
    let warnings: Vec<_> =
        warnings.iter().map(|warning| warning.to_string().replace("\n  ", "; ")).collect();
    assert_eq!(
        warnings,
        [
            "environment KITBAG_LIMIT_TIME: unknown variable; did you mean `KITBAG_LIMITS_TIME`?",
            "environment KITBAG_CACHE: unknown variable; did you mean `KITBAG_CACHE_DIR`?",
            "environment KITBAG_LOG: unknown variable; known variables: `KITBAG_LIMITS_MEMORY`, \
             `KITBAG_LIMITS_TIME`, `KITBAG_LIMITS_OUTPUT`, `KITBAG_LIMITS_WRITTEN`, `KITBAG_LIMITS_REQUESTS`, `KITBAG_LIMITS_TOOL_CALLS`, \
             `KITBAG_LIMITS_FUEL`, `KITBAG_LIMITS_COMPILE`, \
             `KITBAG_WORKSPACE`, `KITBAG_CONFIG`, `KITBAG_CACHE_DIR`, `KITBAG_STATE_DIR`, `KITBAG_TRUST_WORKSPACE`, \
             `KITBAG_PASSPHRASE`",
        ],
    );
}

#[test]
fn variables_are_checked_also_where_a_file_is_broken() {
    let fixture = Fixture::new("[").variable("KITBAG_LIMITS_TIME", "x");
    assert_eq!(fixture.try_load().unwrap_err().diagnostics().len(), 2, "{}", fixture.problems());
    check_problems("", &[]);
}
