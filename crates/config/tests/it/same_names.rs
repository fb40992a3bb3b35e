//! A tool of a workspace with the name of a tool of the user's own file.

use kitbag_config::ToolSource;

use crate::support::{Fixture, check_problems_of};

/// What a tool stands for, and the warnings.
#[track_caller]
fn check(fixture: &Fixture, tool: &str, expected: &str, warnings: &[&str]) {
    let config = fixture.load();
    let source = match &config.tools[tool].source.value {
        ToolSource::Builtin { name } => format!("builtin {}", name.value),
        ToolSource::Local(local) => local.wasm.value.display().to_string(),
        source => panic!("{source:?}"),
    };
    assert_eq!(fixture.redact(&source), expected);
    let shown: Vec<_> =
        config.warnings.iter().map(|warning| fixture.redact(&warning.to_string())).collect();
    assert_eq!(shown, warnings);
}

const OWN: &str = "[tools.a]\nsource = \"local\"\nwasm = \"/own/a.wasm\"\n";

#[test]
fn the_users_tool_is_there_where_a_workspace_has_a_component_of_its_name() {
    let fixture = || {
        Fixture::empty()
            .file("w/.kitbag/tools/a.wasm", "")
            .file("w/.kitbag/tools/a.toml", "description = \"theirs\"\n")
    };
    let unused = |place: &str| {
        format!(
            ".kitbag/tools/a.wasm: is not used: `a` is the tool of your own file ({place}); give this \
             one another name"
        )
    };
    let place = unused("/t/h/config.toml:3:8");
    check(&fixture().user(OWN), "a", "/own/a.wasm", &[&place]);
    assert_eq!(fixture().user(OWN).load().tools["a"].description, None);
    let alias = "[tools.a]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    check(&fixture().user(alias), "a", "builtin learn", &[&unused("/t/h/config.toml:2:10")]);
    // Where the user's own file does not say what it stands for, it is the component.
    check(&fixture().user("[tools.a]\nrate = \"1/h\"\n"), "a", "/t/w/.kitbag/tools/a.wasm", &[]);
    // Two of the workspace are still a mistake in it.
    check_problems_of(
        &fixture().file("w/.kitbag/config.toml", OWN).file("w/a.wasm", ""),
        &[
            "C:3:8: this file does not exist, and `a` is the component `.kitbag/tools/a.wasm`; remove \
           `wasm`",
        ],
    );
}

#[test]
fn a_table_of_the_workspace_that_means_another_kind_of_tool_is_no_mistake_of_the_user() {
    let builtin = "[tools.a]\nsource = \"builtin\"\nbuiltin = \"learn\"\n";
    check(&Fixture::new(builtin).user(OWN), "a", "builtin learn", &[]);
    let local = "[tools.a]\nsource = \"local\"\nwasm = \"x.wasm\"\n";
    check(&Fixture::new(local).user(builtin), "a", "/t/w/x.wasm", &[]);
    // It gets nothing of what the user granted theirs.
    let granted = format!("{OWN}grants.env = [\"LANG\"]\n");
    let config = Fixture::new(builtin).variables([("LANG", b"C")]).user(&granted).load();
    assert!(config.tools["a"].grants.value.variables.is_empty());
    // In one file it is.
    check_problems_of(
        &Fixture::new("").user(&format!("{OWN}builtin = \"learn\"\n")),
        &[
            "/t/h/config.toml:4:11: local tool `a` takes no `builtin`; remove it, or write `source = \
           \"builtin\"`",
        ],
    );
}
