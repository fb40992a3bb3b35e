//! Environment variables, configuration values, and a workspace's grants of them.

use crate::case_output::output;
use crate::support::{Fixture, check_problems_of, check_rows};

#[test]
fn unset_and_non_utf8_variables_are_omitted_with_warnings() {
    let long = [b'x'; (32 << 10) + 1];
    let env = "[tools.learn.grants]\nenv = [\"UNSET\", \"BYTES\", \"LONG\", \"FITS\"]\n";
    let fixture = Fixture::new("").user(env);
    let fixture = fixture.variables([("BYTES", b"\xff"), ("LONG", &long), ("FITS", &long[1..])]);
    assert_eq!(
        output(&fixture, "grants learn").lines().skip(4).collect::<Vec<_>>(),
        [
            "UNSET = None",
            "BYTES = None",
            "LONG = None",
            "FITS = Some(\"xxxxxxxxxxxxxxxxxxxx\")",
            "/t/h/config.toml:2:8: the variable `UNSET` is not set, so the tool does not receive \
             it",
            "/t/h/config.toml:2:17: the value of the variable `BYTES` is not UTF-8, so the tool \
             does not receive it",
            "/t/h/config.toml:2:26: the value of the variable `LONG` is larger than the limit of \
             32 KiB, so the tool does not receive it",
        ],
    );
}

#[test]
fn configuration_values_are_merged_by_their_keys() {
    let fixture = Fixture::new("[tools.learn.grants.config]\nb = \"of w\"\nc = \"\"\n")
        .user("[tools.learn.grants.config]\na = \"of u\"\nb = \"of u\"\n");
    check_rows(
        &fixture,
        "tools.learn.grants",
        &[
            r#"tools.learn.grants.config = {"a":"of u","b":"of w","c":""} # .kitbag/config.toml:1:1"#,
        ],
    );
    check_problems_of(
        &Fixture::new("[tools.learn.grants]\nconfig = { a = 1, b = true }\n"),
        &[
            "C:2:16: `tools.learn.grants.config.a` takes a string, not the integer `1`",
            "C:2:23: `tools.learn.grants.config.b` takes a string, not `true`",
        ],
    );
    let long = "x".repeat((32 << 10) + 1);
    check_problems_of(
        &Fixture::new(&format!("[tools.learn.grants.config]\n\"\" = \"x\"\nlong = \"{long}\"\n")),
        &[
            "C:2:1: `` is not a valid key of a configuration value: use 1 to 128 bytes without control \
             characters",
            "C:3:8: the configuration value `long` has 32769 bytes; the limit is 32768",
        ],
    );
}
