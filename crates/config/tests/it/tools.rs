//! Tools: built in, found, and named by a table.

use kitbag_config::{ConfiguredTool, ToolSource};

use crate::support::{Fixture, check_problems_of};

/// Compares the names and what they stand for; `!` marks what is not enabled.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let describe = |tool: &ConfiguredTool| {
        let enabled = if tool.enable.value { "" } else { "!" };
        let source = match &tool.source.value {
            ToolSource::Builtin { name } => format!("builtin {}", name.value),
            source @ (ToolSource::Script(_) | ToolSource::Bytes(_) | ToolSource::Native) => {
                unreachable!("no file names one: {source:?}")
            }
            ToolSource::Local(local) => fixture.redact(local.wasm.value.to_str().unwrap()),
        };
        format!("{enabled}{}: {source}", tool.name)
    };
    let config = fixture.load();
    assert!(config.tools.iter().all(|(name, tool)| *name == tool.name));
    assert_eq!(config.tools.values().map(describe).collect::<Vec<_>>(), expected);
}

#[test]
fn what_the_users_own_file_says_of_a_tool_counts_where_there_is_one() {
    let rules = "[tools.lint]\ndev = true\napprove = \"always\"\nrate = \"1/s\"\nenable = false\n\
                 limits.time = \"1s\"\ngrants.env = [\"CI\"]\nanswers.sure = true\n\
                 [tools.lern]\nenable = false\n";
    let absent = |fixture: &Fixture| {
        let config = fixture.load();
        let lines = config.absent.iter().map(|it| {
            let hint = it.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
            fixture.redact(&format!("{}: {}{hint}", it.place, it.message))
        });
        (lines.collect::<Vec<_>>(), config)
    };
    let nothing = Fixture::empty().user(rules);
    let (lines, config) = absent(&nothing);
    assert_eq!(
        lines,
        [
            "/t/h/config.toml:9:8: there is no tool `lern` here, and its table has no effect; did you \
             mean `learn`?",
            "/t/h/config.toml:1:8: there is no tool `lint` here, and its table has no effect",
        ]
    );
    assert!(config.tools.keys().all(|name| name.as_str() != "lint"));
    check(&nothing, &["learn: builtin learn", "notes: builtin notes"]);
    // Where there is such a tool, all of it holds.
    let found = Fixture::empty().user(rules).file("w/.kitbag/tools/lint.wasm", "");
    let (lines, config) = absent(&found);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let lint = &config.tools["lint"];
    assert!(!lint.enable.value && !lint.rates.is_empty() && lint.approve.rules.len() == 1);
    assert_eq!(lint.limits.time.value.as_secs(), 1);
    // The tool of a table of the workspace, too.
    let named = Fixture::new("[tools.lint]\nsource = \"local\"\nwasm = \"l.wasm\"\n").user(rules);
    assert_eq!(absent(&named).0.len(), 1);
    // A table that says what a tool is has to say where it comes from.
    for table in ["wasm = \"/l.wasm\"", "description = \"D\"", "parameters.a.type = \"string\""] {
        let described = Fixture::empty().user(&format!("[tools.lint]\n{table}\n"));
        assert!(described.problems().contains("tool `lint` has no `source`"), "{table}");
    }
    // What a workspace says is for its own tools.
    check_problems_of(
        &Fixture::new("[tools.lint]\nenable = false\n").user(rules),
        &["C:1:1: tool `lint` has no `source`; add `source = \"local\"` and `wasm`, \
           `source = \"builtin\"`, or `script`"],
    );
}

#[test]
fn the_own_file_of_a_person_names_components_for_all_workspaces() {
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"a.wasm\"\n");
    check_problems_of(
        &fixture,
        &[
            "/t/h/config.toml:3:8: `a.wasm` is relative, and this file is for all workspaces; write an absolute \
           path, or one that starts with `~/`",
        ],
    );
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"~/a.wasm\"\n");
    check(&fixture, &["a: /t/h/a.wasm", "learn: builtin learn", "notes: builtin notes"]);
    let mut sources = fixture.sources();
    sources.home = None;
    let errors = kitbag_config::load(&sources).unwrap_err();
    assert_eq!(
        errors.diagnostics()[0].message,
        "`~/a.wasm` cannot be found: the home directory is not known; write an absolute path",
    );
}

#[test]
fn a_built_in_of_the_caller_must_have_a_name_too() {
    let fixture = Fixture::empty();
    let mut sources = fixture.sources();
    let builtins = ["no name".into()];
    sources.builtins = &builtins;
    let errors = kitbag_config::load(&sources).unwrap_err().to_string();
    assert!(errors.starts_with("default: `no name` is not a tool name"), "{errors}");
}

#[test]
fn raw_text_is_a_choice_of_the_user_alone() {
    let mask = |fixture: &Fixture| {
        let config = fixture.load();
        let learn = &config.tools["learn"].mask;
        (learn.value, fixture.redact(&learn.origin.to_string()))
    };
    assert_eq!(mask(&Fixture::empty()), (true, "default".to_owned()));
    let own = Fixture::empty().user("[tools.learn]\nmask = false\n");
    assert_eq!(mask(&own), (false, "/t/h/config.toml:2:8".to_owned()));
    let refused = "`mask` has no place in a workspace's file";
    for table in ["mask = false\n", "mask = true\n"] {
        let problems = Fixture::new(&format!("[tools.learn]\n{table}")).problems();
        assert!(problems.contains(refused), "{problems}");
    }
    let manifest = Fixture::empty()
        .file("w/.kitbag/tools/lint.wasm", "")
        .file("w/.kitbag/tools/lint.toml", "mask = false\n");
    assert!(manifest.problems().contains(refused), "{}", manifest.problems());
}
