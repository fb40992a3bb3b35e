//! Another name for a tool of which the user's own file says something.

use std::fs;

use kitbag_config::Config;

use crate::support::{Fixture, check_problems_of};

/// The tools, each with the reason why it is off and its rates.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let config: Config = fixture.load();
    let tools = config.tools.values().filter(|tool| tool.name.as_str() != "notes");
    let lines: Vec<_> = tools
        .map(|tool| {
            let mut line = tool.name.to_string();
            if let Some(reason) = &tool.disabled {
                line.push_str(&format!(" is {reason}"));
            }
            for rate in &tool.rates {
                let (rates, origin) = (&rate.rates.value, &rate.rates.origin);
                line.push_str(&format!(" {rates} as {} ({origin})", rate.counted_as));
            }
            fixture.redact(&line)
        })
        .collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

const OWN: &str = "(/t/h/config.toml:2:8)";

#[test]
fn calls_by_another_name_count_for_the_rate_of_the_users_own_file() {
    let user = "[tools.learn]\nrate = \"1/min\"\n";
    let alias = "[tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    let learn = &*format!("learn 1/min as learn {OWN}");
    let shared = &*format!("study 1/min as learn {OWN}");
    check(&Fixture::new(alias).user(user), &[learn, shared]);
    // A rate of its own holds too, and a lower one of the workspace for both names.
    check(
        &Fixture::new(&format!("{alias}rate = \"100/min\"\n")).user(user),
        &[learn, &format!("study 100/min as study (.kitbag/config.toml:4:8) 1/min as learn {OWN}")],
    );
    let lower = "(.kitbag/config.toml:5:8)";
    check(
        &Fixture::new(&format!("{alias}[tools.learn]\nrate = \"1/h\"\n")).user(user),
        &[
            &format!("learn 1/min, 1/h as learn {lower}"),
            &format!("study 1/min, 1/h as learn {lower}"),
        ],
    );
    // What the workspace says of a tool alone is its own affair.
    check(
        &Fixture::new(&format!("{alias}[tools.learn]\nrate = \"1/h\"\n")),
        &["learn 1/h as learn (.kitbag/config.toml:5:8)", "study"],
    );
}

#[test]
fn the_own_name_of_a_built_in_is_another_name_for_the_users_alias() {
    let user = "[tools.study]\nrate = \"1/min\"\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    let study = &*format!("study 1/min as study {OWN}");
    check(
        &Fixture::new("[tools.learn]\ntitle = \"T\"\n").user(user),
        &[&format!("learn 1/min as study {OWN}"), study],
    );
    // Names that the user's own file gives share a rate where one of them has none.
    let learn = "[tools.learn]\nrate = \"9/min\"\n";
    check(
        &Fixture::empty().user(&format!("{user}{learn}")),
        &["learn 9/min as learn (/t/h/config.toml:6:8)", study],
    );
    check(
        &Fixture::empty().user(&format!("{user}[tools.learn]\ntitle = \"T\"\n")),
        &[&format!("learn 1/min as study {OWN}"), study],
    );
}

#[test]
fn a_name_that_a_workspace_gives_another_meaning_frees_nothing() {
    // The user's generous rate is for a tool of other workspaces.
    let own = "[tools.learn]\nrate = \"1/min\"\n[tools.free]\nrate = \"900/min\"\n";
    check(
        &Fixture::new("[tools.free]\nsource = \"builtin\"\nbuiltin = \"learn\"\n").user(own),
        &[
            &format!("free 900/min as free (/t/h/config.toml:4:8) 1/min as learn {OWN}"),
            &format!("learn 1/min as learn {OWN}"),
        ],
    );
    // The name of the built-in stands for something else, and another name for the built-in.
    let workspace = "[tools.learn]\nsource = \"local\"\nwasm = \"x.wasm\"\nreplaces = \"learn\"\n\
                     [tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    check(
        &Fixture::new(workspace).user("[tools.learn]\nrate = \"1/min\"\n"),
        &[&format!("learn 1/min as learn {OWN}"), &format!("study 1/min as learn {OWN}")],
    );
}

#[test]
fn one_component_has_one_rate_by_whichever_path_and_name() {
    let fixture = Fixture::new(
        "[tools.a]\nsource = \"local\"\nwasm = \"link.wasm\"\n\
         [tools.b]\nsource = \"local\"\nwasm = \"hard.wasm\"\n\
         [tools.c]\nsource = \"local\"\nwasm = \"other.wasm\"\n",
    )
    .file("h/own.wasm", "x")
    .file("w/other.wasm", "x")
    .link("w/link.wasm", "../h/own.wasm");
    fs::hard_link(fixture.path("h/own.wasm"), fixture.path("w/hard.wasm")).unwrap();
    let fixture =
        fixture.user("[tools.own]\nrate = \"1/min\"\nsource = \"local\"\nwasm = \"~/own.wasm\"\n");
    check(
        &fixture,
        &[
            &format!("a 1/min as own {OWN}"),
            &format!("b 1/min as own {OWN}"),
            "c",
            "learn",
            &format!("own 1/min as own {OWN}"),
        ],
    );
}

#[test]
fn a_workspaces_name_does_not_bring_back_what_the_user_turned_off() {
    let alias = "[tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\nenable = true\n";
    let off = "disabled by `enable = false` (/t/h/config.toml:2:10)";
    let user = "[tools.learn]\nenable = false\n";
    check(
        &Fixture::new(alias).user(user),
        &[
            &format!("learn is {off}"),
            &format!("study is disabled: it is another name for `learn`, which is {off}"),
        ],
    );
    let off = "disabled by `[toolsets] learn = false` (/t/h/config.toml:2:9); `learn = true` there \
               turns `learn` on";
    check(
        &Fixture::new(alias).user("[toolsets]\nlearn = false\n"),
        &[&format!("study is disabled: it is another name for `learn`, which is {off}")],
    );
    // The user's own other name for it stays.
    check(
        &Fixture::empty().user(&format!("{user}{alias}")),
        &["learn is disabled by `enable = false` (/t/h/config.toml:2:10)", "study"],
    );
    // A component, too.
    let local = |name: &str| format!("[tools.{name}]\nsource = \"local\"\nwasm = \"/own.wasm\"\n");
    check(
        &Fixture::new(&local("again")).user(&format!("{}enable = false\n", local("own"))),
        &[
            "again is disabled: it is another name for `own`, which is disabled by `enable = false` \
             (/t/h/config.toml:4:10)",
            "learn",
            "own is disabled by `enable = false` (/t/h/config.toml:4:10)",
        ],
    );
}

#[test]
fn what_another_name_asks_beyond_the_ceiling_names_the_ceiling_and_its_place() {
    let alias = "[tools.study]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    let user = "[ceiling]\ntime = \"9s\"\n[ceiling.grants]\nenv = [\"LANG\"]\n";
    let above = "C:4:15: `tools.study.limits.time` is `10s`, above the ceiling of `9s` \
                 (/t/h/config.toml:2:8); lower it, or put `time = \"10s\"` under `[ceiling]` in your \
                 user config `/t/h/config.toml`";
    check_problems_of(
        &Fixture::new(&format!("{alias}limits.time = \"10s\"\n")).user(user),
        &[above],
    );
    let grants = |user: &str| {
        let fixture = Fixture::new(&format!("{alias}grants.env = [\"CI\"]\n")).user(user);
        let warnings = fixture.load().tools["study"].grants.warnings.clone();
        fixture.redact(&warnings[0].message)
    };
    let beyond = |place: &str| {
        format!(
            "this grant does not count: what the files and components of a workspace are granted \
             counts only within `[ceiling.grants]` of your own file{place}; to allow it, have \
             `[ceiling.grants]` in your user config `/t/h/config.toml` include `env = [\"CI\"]`"
        )
    };
    assert_eq!(grants(user), beyond(" (/t/h/config.toml:4:7)"));
    // A ceiling of another kind does not limit it.
    let fixture = Fixture::new(&format!("{alias}grants.env = [\"CI\"]\n"));
    let config = fixture.user("[ceiling.grants]\nhttp = []\n").load();
    assert_eq!(config.tools["study"].grants.value.variables.len(), 1);
}
