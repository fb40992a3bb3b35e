//! Tools: built-ins, components in `.kitbag/tools`, and tools that a table names.

use kitbag_config::{ConfiguredTool, ToolSource};

use crate::support::{Fixture, check_problems_of};

/// Compares the names and sources of tools; `!` marks tools that are not enabled.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let describe = |tool: &ConfiguredTool| {
        let enabled = if tool.enable.value { "" } else { "!" };
        let source = match &tool.source.value {
            ToolSource::Builtin { name } => format!("builtin {}", name.value),
            source @ (ToolSource::Script(_)
            | ToolSource::Bytes(_)
            | ToolSource::Native
            | ToolSource::Server(_)) => {
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
fn the_user_config_applies_to_tools_once_they_exist() {
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
            "/t/h/config.toml:9:8: no tool is named `lern` here, so its table has no effect; did \
             you mean `learn`?",
            "/t/h/config.toml:1:8: no tool is named `lint` here, so its table has no effect",
        ]
    );
    assert!(config.tools.keys().all(|name| name.as_str() != "lint"));
    check(&nothing, &["learn: builtin learn", "notes: builtin notes"]);
    // If the tool exists, the whole table takes effect.
    let found = Fixture::empty().user(rules).file("w/.kitbag/tools/lint.wasm", "");
    let (lines, config) = absent(&found);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let lint = &config.tools["lint"];
    assert!(!lint.enable.value && !lint.rates.is_empty() && lint.approve.rules.len() == 1);
    assert_eq!(lint.limits.time.value.as_secs(), 1);
    // The same applies to a tool from a table of the workspace.
    let named = Fixture::new("[tools.lint]\nsource = \"local\"\nwasm = \"l.wasm\"\n").user(rules);
    assert_eq!(absent(&named).0.len(), 1);
    // `wasm` alone declares a local tool.
    let wasm = Fixture::empty().user("[tools.lint]\nwasm = \"/l.wasm\"\n");
    check(&wasm, &["learn: builtin learn", "lint: /l.wasm", "notes: builtin notes"]);
    // A table that describes a tool must name its source.
    for table in ["description = \"D\"", "parameters.a.type = \"string\""] {
        let described = Fixture::empty().user(&format!("[tools.lint]\n{table}\n"));
        assert!(described.problems().contains("tool `lint` has no source"), "{table}");
    }
    // A table of a workspace must be for its own tools.
    check_problems_of(
        &Fixture::new("[tools.lint]\nenable = false\n").user(rules),
        &["C:1:1: tool `lint` has no source; add `wasm`, `script`, or `source = \"builtin\"`"],
    );
}

#[test]
fn the_user_config_names_components_for_all_workspaces() {
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"a.wasm\"\n");
    check_problems_of(
        &fixture,
        &["/t/h/config.toml:3:8: `a.wasm` must be absolute or start with `~/`, because this file \
             applies to all workspaces"],
    );
    let fixture = Fixture::empty().user("[tools.a]\nsource = \"local\"\nwasm = \"~/a.wasm\"\n");
    check(&fixture, &["a: /t/h/a.wasm", "learn: builtin learn", "notes: builtin notes"]);
    let mut sources = fixture.sources();
    sources.home = None;
    let errors = kitbag_config::load(&sources).unwrap_err();
    assert_eq!(
        errors.diagnostics()[0].message,
        "`~/a.wasm` cannot be resolved: the home directory is unknown; write an absolute path",
    );
}

#[test]
fn builtins_of_the_caller_need_valid_names() {
    let fixture = Fixture::empty();
    let mut sources = fixture.sources();
    let builtins = ["no name".into()];
    sources.builtins = &builtins;
    let errors = kitbag_config::load(&sources).unwrap_err().to_string();
    assert!(errors.starts_with("default: `no name` is not a tool name"), "{errors}");
}

#[test]
fn only_the_user_config_turns_masking_off() {
    let mask = |fixture: &Fixture| {
        let config = fixture.load();
        let learn = &config.tools["learn"].mask;
        (learn.value, fixture.redact(&learn.origin.to_string()))
    };
    assert_eq!(mask(&Fixture::empty()), (true, "default".to_owned()));
    let own = Fixture::empty().user("[tools.learn]\nmask = false\n");
    assert_eq!(mask(&own), (false, "/t/h/config.toml:2:8".to_owned()));
    let refused = "a workspace may not set `mask`";
    for table in ["mask = false\n", "mask = true\n"] {
        let problems = Fixture::new(&format!("[tools.learn]\n{table}")).problems();
        assert!(problems.contains(refused), "{problems}");
    }
    let manifest = Fixture::empty()
        .file("w/.kitbag/tools/lint.wasm", "")
        .file("w/.kitbag/tools/lint.toml", "mask = false\n");
    assert!(manifest.problems().contains(refused), "{}", manifest.problems());
}
