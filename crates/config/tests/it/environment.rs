//! Variables of the environment, configuration values, and what a workspace grants of them.

use kitbag_config::Config;

use crate::support::{Fixture, check_problems_of, check_rows};

/// The variables of a tool with their values, and then what there is to warn of.
fn granted(fixture: &Fixture, tool: &str) -> Vec<String> {
    let config: Config = fixture.load();
    let grants = &config.tools[tool].grants;
    let variables = grants.value.variables.iter().map(|grant| match &grant.value {
        Some(value) => format!("{}={}", grant.name, &value[..value.len().min(20)]),
        None => format!("{} is absent", grant.name),
    });
    let warnings = grants.warnings.iter();
    let warnings = warnings.map(|it| fixture.redact(&format!("{}: {}", it.place, it.message)));
    variables.chain(warnings).collect()
}

#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let granted = granted(fixture, "learn");
    assert_eq!(granted, expected, "\n{}", granted.join("\n"));
}

fn user(env: &str) -> Fixture {
    Fixture::new("").user(&format!("[tools.learn.grants]\nenv = {env}\n"))
}

#[test]
fn a_variable_is_granted_by_its_exact_name() {
    let variables: [(&str, &[u8]); 4] =
        [("LANG", b"C.UTF-8"), ("LANGUAGE", b"de"), ("lang", b"x"), ("CI", b"")];
    check(&user("[\"LANG\", \"CI\"]").variables(variables), &["LANG=C.UTF-8", "CI="]);
    check(&user("[]").variables(variables), &[]);
    check(&Fixture::new("").variables(variables), &[]);
}

#[test]
fn a_variable_that_is_not_set_or_no_text_is_left_out_with_a_warning() {
    let long = [b'x'; (32 << 10) + 1];
    let fixture = user("[\"UNSET\", \"BYTES\", \"LONG\", \"FITS\"]");
    let fixture = fixture.variables([("BYTES", b"\xff"), ("LONG", &long), ("FITS", &long[1..])]);
    check(
        &fixture,
        &[
            "UNSET is absent",
            "BYTES is absent",
            "LONG is absent",
            "FITS=xxxxxxxxxxxxxxxxxxxx",
            "/t/h/config.toml:2:8: the variable `UNSET` is not set, so that the tool does not find it",
            "/t/h/config.toml:2:17: the value of the variable `BYTES` is not UTF-8, so that the tool \
             does not find it",
            "/t/h/config.toml:2:26: the value of the variable `LONG` has more than 32 KiB, the most \
             that a tool is given, so that the tool does not find it",
        ],
    );
}

#[test]
fn a_name_that_looks_like_a_secret_is_a_warning() {
    check(
        &user("[\"GITHUB_TOKEN\"]").variables([("GITHUB_TOKEN", b"ghp_1234")]),
        &[
            "GITHUB_TOKEN=ghp_1234",
            "/t/h/config.toml:2:8: `GITHUB_TOKEN` looks like a secret, which the tool can read and \
             pass on as long as it is granted like this",
        ],
    );
}

#[test]
fn kitbags_own_variables_and_what_is_no_name_are_refused() {
    let form = "is not the exact name of a variable: use 1 to 128 letters, digits and `_`, without \
                a leading digit; write each name, such as `LANG`";
    let many = (0..65).map(|number| format!("\"V{number}\"")).collect::<Vec<_>>().join(", ");
    check_problems_of(
        &Fixture::new(&format!(
            "[tools.learn.grants]\nenv = [\"LC_*\", \"\", \"KITBAG_CONFIG\", \"CI\", \"CI\"]\n\
             [tools.notes.grants]\nenv = [{many}]\n"
        ))
        .user("[tools.learn.grants]\nenv = [\"A=B\"]\n[ceiling.grants]\nenv = [\"$LANG\"]\n"),
        &[
            &format!("/t/h/config.toml:2:8: `A=B` {form}"),
            &format!("/t/h/config.toml:4:8: `$LANG` {form}"),
            &format!("C:2:8: `LC_*` {form}"),
            &format!("C:2:16: `` {form}"),
            "C:2:20: `KITBAG_CONFIG` cannot be granted: variables that start with `KITBAG_` \
             configure kitbag itself",
            "C:2:43: `CI` is listed twice",
            "C:4:7: 65 variables are listed, and 64 is the most",
        ],
    );
}

/// What is said of a grant that does not count.
fn beyond(place: &str, setting: &str) -> String {
    format!(
        "{place}: this grant does not count: what the files and components of a workspace are \
         granted counts only within `[ceiling.grants]` of your own file; to allow it, have \
         `[ceiling.grants]` in your own `/t/h/config.toml` include `{setting}`"
    )
}

/// The same where there is a ceiling of the kind, at a place in the user's own file.
fn beyond_at(ceiling: &str, beyond: &str) -> String {
    let own = "`[ceiling.grants]` of your own file";
    beyond.replacen(own, &format!("{own} (/t/h/config.toml:{ceiling})"), 1)
}

#[test]
fn a_workspaces_grants_count_within_the_ceiling_alone() {
    let config = "[tools.learn.grants]\nenv = [\"LANG\", \"CI\"]\n";
    let variables: [(&str, &[u8]); 2] = [("LANG", b"C"), ("CI", b"1")];
    let with = |user: Option<&str>| {
        let fixture = Fixture::new(config).variables(variables);
        user.map_or(Fixture::new(config).variables(variables), |user| fixture.user(user))
    };
    let beyond_ci = beyond(".kitbag/config.toml:2:16", "env = [\"CI\"]");
    let beyond_lang = beyond(".kitbag/config.toml:2:8", "env = [\"LANG\"]");
    check(&with(None), &["LANG=C", "CI=1"]);
    check(&with(Some("[ceiling]\nmemory = \"1GiB\"\n")), &["LANG=C", "CI=1"]);
    let [beyond_lang, beyond_ci] = [beyond_lang, beyond_ci].map(|it| beyond_at("2:7", &it));
    check(&with(Some("[ceiling.grants]\nenv = []\n")), &[&beyond_lang, &beyond_ci]);
    let ceiling = "[ceiling.grants]\nenv = [\"LANG\", \"HOME\"]\n";
    check(&with(Some(ceiling)), &["LANG=C", &beyond_ci]);
    check(&with(Some("[ceiling.grants]\nenv = [\"CI\", \"LANG\"]\n")), &["LANG=C", "CI=1"]);
}

#[test]
fn a_workspaces_component_gets_no_more_than_the_ceiling_whoever_writes_the_grant() {
    let user = "[tools.notes.grants]\nenv = [\"LANG\"]\n";
    let variables: [(&str, &[u8]); 1] = [("LANG", b"C")];
    let fixture = |config: &str| Fixture::new(config).user(user).variables(variables);
    let granted = |fixture: Fixture| granted(&fixture, "notes");
    assert_eq!(granted(fixture("")), ["LANG=C"]);
    // A cloned repository puts a tool of its own in the place of one that the user trusts.
    let beyond = [beyond("/t/h/config.toml:2:8", "env = [\"LANG\"]")];
    let replaces = "[tools.notes]\nsource = \"local\"\nwasm = \"n.wasm\"\nreplaces = \"notes\"\n";
    assert_eq!(granted(fixture(replaces)), beyond);
    let replaces = "[tools.notes]\nreplaces = \"notes\"\n";
    assert_eq!(granted(fixture(replaces).file("w/.kitbag/tools/notes.wasm", "")), beyond);
    // The user's own component, whatever the workspace says besides.
    let own = "[tools.count]\nsource = \"local\"\nwasm = \"/opt/count.wasm\"\n\
               grants.env = [\"LANG\"]\n";
    let fixture = Fixture::new("[tools.count]\ntitle = \"Count\"\n").user(own);
    assert_eq!(self::granted(&fixture.variables(variables), "count"), ["LANG=C"]);
}

#[test]
fn a_manifest_is_the_workspaces() {
    let fixture = Fixture::new("")
        .file("w/.kitbag/tools/count.wasm", "")
        .file("w/.kitbag/tools/count.toml", "grants.env = [\"LANG\"]\n")
        .user("[ceiling.grants]\nenv = []\n");
    let beyond = beyond(".kitbag/tools/count.toml:1:15", "env = [\"LANG\"]");
    assert_eq!(granted(&fixture, "count"), [beyond_at("2:7", &beyond)]);
}

#[test]
fn a_workspace_has_no_ceiling_of_its_own() {
    check_problems_of(
        &Fixture::new("[ceiling.grants]\nenv = [\"LANG\"]\n"),
        &["C:1:2: `ceiling` has no place in a workspace's file: only your own \
           `/t/h/config.toml` may hold it; remove it"],
    );
}

#[test]
fn a_tool_that_is_off_is_not_warned_of() {
    let fixture = user("[\"UNSET\"]\n[tools.learn]\nenable = false");
    check(&fixture, &["UNSET is absent"]);
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

#[test]
fn rows_name_variables_without_their_values() {
    let fixture = user("[\"LANG\"]\n[ceiling.grants]\nenv = [\"CI\"]");
    let fixture = fixture.variables([("LANG", b"value"), ("CI", b"value")]);
    check_rows(
        &fixture,
        "tools.learn.grants",
        &["tools.learn.grants.env = [\"LANG\"] # /t/h/config.toml:2:7"],
    );
    check_rows(
        &fixture,
        "ceiling.grants",
        &["ceiling.grants.env = [\"CI\"] # /t/h/config.toml:4:7"],
    );
}
