//! Before which calls a person is asked.

use crate::support::{Fixture, check_problems, check_problems_of, check_rows};

fn approve(rule: &str) -> String {
    format!("[tools.learn]\napprove = {rule}\n")
}

const OWN: &str = "/t/h/config.toml:2:11";
const OF_WORKSPACE: &str = ".kitbag/config.toml:2:11";

fn row(rule: &str, place: &str) -> String {
    format!("tools.learn.approve = {rule} # {place}")
}

#[track_caller]
fn check(user: Option<&str>, workspace: Option<&str>, expected: &[String]) {
    let fixture = Fixture::new(&workspace.map(approve).unwrap_or_default());
    let fixture = match user {
        Some(user) => fixture.user(&approve(user)),
        None => fixture,
    };
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    check_rows(&fixture, "tools.learn.approve", &expected);
}

#[test]
fn a_workspace_adds_to_what_the_users_own_file_says_and_takes_nothing_away() {
    let (never, write, always) = ("\"never\"", "\"on-write\"", "\"always\"");
    let when = "{ when = { topic = \"team\" } }";
    let when_row = r#"{"when":{"topic":"team"}}"#;
    check(None, None, &[]);
    check(None, Some(never), &[]);
    check(None, Some(always), &[row(always, OF_WORKSPACE)]);
    check(Some(never), None, &[row(never, OWN)]);
    check(Some(always), Some(never), &[row(always, OWN)]);
    check(Some(write), Some(when), &[row(write, OWN), row(when_row, OF_WORKSPACE)]);
    check(Some(never), Some(write), &[row(write, OF_WORKSPACE)]);
    check(Some(when), None, &[row(when_row, OWN)]);
}

#[test]
fn the_default_counts_for_what_the_users_own_file_says_nothing_of() {
    let place = "/t/h/config.toml:2:11";
    let default = "[approve]\ndefault = \"on-write\"\n";
    let fixture = Fixture::new(&approve("\"never\"")).user(default);
    check_rows(&fixture, "tools.learn.approve", &[&row("\"on-write\"", place)]);
    check_rows(&fixture, "approve", &[&format!("approve.default = \"on-write\" # {place}")]);
    let own = format!("{default}{}", approve("\"never\""));
    let fixture = Fixture::new("").user(&own);
    check_rows(&fixture, "tools.learn.approve", &[&row("\"never\"", "/t/h/config.toml:4:11")]);
    let problem = "C:1:2: `approve` has no place in a workspace's file: only your own \
                   `/t/h/config.toml` may hold it; remove it";
    check_problems(default, &[problem]);
}

#[test]
fn what_a_manifest_and_a_header_say_is_added() {
    let fixture = Fixture::new("")
        .user("[tools.count]\napprove = \"on-write\"\n")
        .file("w/.kitbag/tools/count.wasm", "")
        .file("w/.kitbag/tools/count.toml", "approve = \"always\"\n");
    let expected = [
        "tools.count.approve = \"always\" # .kitbag/tools/count.toml:1:11",
        "tools.count.approve = \"on-write\" # /t/h/config.toml:2:11",
    ];
    check_rows(&fixture, "tools.count.approve", &expected);
}

#[test]
fn what_the_users_own_file_says_holds_for_every_name_of_the_tool() {
    let alias = "[tools.study]\nbuiltin = \"learn\"\nsource = \"builtin\"\n";
    let always = approve("\"always\"");
    let study = |place: &str| format!("tools.study.approve = \"always\" # {place}");
    let fixture = Fixture::new(alias).user(&always);
    check_rows(&fixture, "tools.study.approve", &[&study(OWN)]);
    let fixture = Fixture::new(&format!("{alias}approve = \"never\"\n")).user(&always);
    check_rows(&fixture, "tools.study.approve", &[&study(OWN)]);
    // What a workspace says of a name holds for that name.
    let fixture = Fixture::new(&format!("{alias}{always}"));
    check_rows(&fixture, "tools.study.approve", &[]);
    // Another name in the user's own file that says something of itself.
    let own = format!("{alias}approve = \"never\"\n{always}");
    let never = "tools.study.approve = \"never\" # /t/h/config.toml:4:11";
    check_rows(&Fixture::new("").user(&own), "tools.study.approve", &[never]);
}

#[test]
fn what_is_no_rule_is_refused_in_every_file() {
    let end = "write `never`, `on-write`, `always`, or conditions such as `{ when = { path = \
               \"secrets/**\" } }`";
    check_problems_of(
        &Fixture::new(&approve("{ when = {} }")).user(&approve("\"sometimes\"")),
        &[
            &format!("/t/h/config.toml:2:11: `sometimes` is not a rule; {end}"),
            "C:2:11: `when` has no condition; write `always` to ask before every call",
        ],
    );
    let many = approve("{ when = { a = [], b = 1 } }");
    check_problems(
        &many,
        &[
            "C:2:11: an empty list matches nothing; write the permitted values, or remove the condition",
        ],
    );
    check_problems(
        &approve("true"),
        &["C:2:11: `tools.learn.approve` takes a string or a table, not `true`"],
    );
    check_problems(
        &approve("{ unless = { a = 1 } }"),
        &[
            "C:2:11: missing key `when` in `tools.learn.approve`",
            "C:2:13: unknown key `unless` in `tools.learn.approve`; known keys: `when`",
        ],
    );
}
