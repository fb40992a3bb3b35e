//! What a component, a link or another process does while tools are added and removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::crafted::describing;
use crate::support::terminal::on_a_watched_terminal;
use crate::support::{Workspace, guest};

/// A component beside the workspace.
fn downloaded(workspace: &Workspace, description: &str) -> PathBuf {
    let says = json!({ "name": "weather", "description": description });
    let path = workspace.home().join("weather.wasm");
    fs::write(&path, describing(&says.to_string())).unwrap();
    path
}

/// Puts another file in place of one.
fn swap(path: &Path, by: &[u8]) {
    let other = path.with_extension("other");
    fs::write(&other, by).unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn a_component_that_changes_between_showing_and_copying_is_added_as_it_was_shown() {
    let evil = describing(&json!({ "name": "weather", "description": "Evil." }).to_string());
    // Another file in its place, the same file with another content, and a link.
    let changes: [fn(&Path, &[u8]); 3] = [
        swap,
        |path, by| fs::write(path, by).unwrap(),
        |path, by| {
            let other = path.with_extension("other");
            fs::write(&other, by).unwrap();
            fs::remove_file(path).unwrap();
            symlink(other, path).unwrap();
        },
    ];
    for change in changes {
        let workspace = Workspace::new().untrusted();
        let path = downloaded(&workspace, "Tells the weather.");
        let shown = fs::read(&path).unwrap();
        let mut is_changed = false;
        let arguments = ["add", path.to_str().unwrap()];
        let (stdout, terminal) = on_a_watched_terminal(&workspace, &arguments, "yes\n", |seen| {
            if !is_changed && seen.contains("Add it as ") {
                change(&path, &evil);
                is_changed = true;
            }
        });
        assert!(is_changed, "{terminal}");
        assert!(terminal.contains("Tells the weather."), "{terminal}");
        assert!(stdout.contains("Added weather as "), "{stdout}{terminal}");
        assert_eq!(fs::read(workspace.path(".kitbag/tools/weather.wasm")).unwrap(), shown);
        assert!(workspace.run(&["describe", "weather"]).success().contains("Tells the weather."));
        assert_eq!(workspace.run(&["run", "weather"]).success(), "ok\n");
    }
}

#[test]
fn a_component_that_changes_while_an_update_is_agreed_to_is_not_the_one_that_runs() {
    let workspace = Workspace::new().untrusted();
    let path = downloaded(&workspace, "Tells the weather.");
    workspace.run(&["add", path.to_str().unwrap(), "--yes"]).success();
    // One that a person copied there, and looks at now.
    let own = workspace.path(".kitbag/tools/weather.wasm");
    let newer = json!({ "name": "weather", "description": "Tells more." });
    swap(&own, &describing(&newer.to_string()));
    let evil = describing(&json!({ "name": "weather", "description": "Evil." }).to_string());
    let mut is_changed = false;
    let update = ["update", "weather"];
    let (_, seen) = on_a_watched_terminal(&workspace, &update, "yes\n", |seen| {
        if !is_changed && seen.contains("Record this") {
            swap(&own, &evil);
            is_changed = true;
        }
    });
    assert!(is_changed && seen.contains("Tells more."), "{seen}");
    let run = workspace.run(&["run", "weather"]);
    assert_eq!((run.code, &*run.stdout), (6, ""), "{}", run.shown());
}

#[test]
fn removing_a_tool_that_is_a_link_leaves_what_it_leads_to() {
    let workspace = Workspace::new();
    let path = downloaded(&workspace, "Tells the weather.");
    let added = || {
        let path = path.to_str().unwrap();
        workspace.run(&["add", path, "--yes"]).success();
        workspace.path(".kitbag/tools/weather.wasm")
    };
    // A repository has it lead to a file of the user's.
    let treasure = workspace.home().join("treasure");
    fs::write(&treasure, "mine").unwrap();
    let own = added();
    fs::remove_file(&own).unwrap();
    symlink(&treasure, &own).unwrap();
    workspace.run(&["remove", "weather"]).success();
    assert_eq!(fs::read_to_string(&treasure).unwrap(), "mine");
    assert!(own.symlink_metadata().is_err());
    // To a directory, by which nothing in it goes.
    let own = added();
    fs::remove_file(&own).unwrap();
    symlink(workspace.home(), &own).unwrap();
    workspace.run(&["remove", "weather"]).success();
    assert_eq!(fs::read_to_string(&treasure).unwrap(), "mine");
    let _ = fs::remove_file(&own);

    // The directory of all tools, and that of the configuration.
    let workspace = Workspace::new();
    let path = downloaded(&workspace, "Tells the weather.");
    workspace.run(&["add", path.to_str().unwrap(), "--yes"]).success();
    let tools = workspace.path(".kitbag/tools");
    let elsewhere = workspace.home().join("tools");
    fs::rename(&tools, &elsewhere).unwrap();
    symlink(&elsewhere, &tools).unwrap();
    let refused = workspace.run(&["remove", "weather"]);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    assert!(refused.stderr.contains("tools` is a symbolic link"), "{}", refused.shown());
    assert!(elsewhere.join("weather.wasm").exists());
}

#[test]
fn removing_a_tool_whose_table_names_another_file_removes_no_other_file() {
    let workspace = Workspace::new();
    let path = downloaded(&workspace, "Tells the weather.");
    workspace.run(&["add", path.to_str().unwrap(), "--yes"]).success();
    let own = workspace.path(".kitbag/tools/weather.wasm");
    let config = fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
    let component = workspace.home().join("precious.wasm");
    fs::copy(guest("probe"), &component).unwrap();
    fs::copy(guest("probe"), workspace.path("precious.wasm")).unwrap();
    fs::remove_file(&own).unwrap();
    for wasm in [
        component.to_str().unwrap(),
        "precious.wasm",
        ".kitbag/tools/../../precious.wasm",
        ".kitbag/tools/../tools/../../precious.wasm",
    ] {
        let changed = config.replace(".kitbag/tools/weather.wasm", wasm);
        assert_ne!(changed, config);
        workspace.config(&changed);
        let lock = fs::read(workspace.path(".kitbag/kitbag.lock")).unwrap();
        assert!(workspace.run(&["remove", "weather"]).success().contains(" stays."), "{wasm}");
        assert!(component.exists() && workspace.path("precious.wasm").exists(), "{wasm}");
        fs::write(workspace.path(".kitbag/kitbag.lock"), lock).unwrap();
    }
}

#[test]
fn adding_takes_the_limits_of_a_workspace_only_where_it_is_trusted() {
    let workspace = Workspace::with_own_cache().untrusted();
    workspace.own_config("[limits]\ncompile = \"1ms\"\n");
    workspace.config("[limits]\ncompile = \"1m\"\n");
    // One that is asked for its description, and one that has it in a section.
    for name in ["probe", "settings"] {
        let path = workspace.home().join(name).with_extension("wasm");
        fs::copy(guest(name), &path).unwrap();
        let add = ["add", path.to_str().unwrap(), "--yes"];
        let refused = workspace.run(&add);
        assert!(refused.stderr.contains("takes longer than 1ms to compile"), "{}", refused.shown());
        assert!(!workspace.path(".kitbag/tools").join(name).with_extension("wasm").exists());
        workspace.run(&["trust", "--yes"]).success();
        workspace.run(&add).success();
        workspace.run(&["trust", "--revoke"]).success();
    }
}
