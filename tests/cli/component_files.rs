//! Components that are run from their file, without being configured.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::{Workspace, guest, snapshot};

/// A directory that is no workspace, with a component in it.
fn directory() -> Workspace {
    let workspace = Workspace::with_own_cache();
    fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
    workspace.file("README.md", "two words\n");
    workspace.file("build/probe.wasm", fs::read(guest("probe")).unwrap());
    workspace
}

#[test]
fn a_component_runs_from_its_file() {
    let workspace = directory();
    let echo = ["run", "./build/probe.wasm", "do=echo", "text=hello"];
    assert_eq!(workspace.run(&echo).success(), "hello\n");
    // Compiled once, and found in the cache by whatever path.
    let absolute = workspace.path("build/probe.wasm");
    let entry = fs::metadata(workspace.cached()).unwrap().modified().unwrap();
    let run = workspace.run(&["run", absolute.to_str().unwrap(), "do=echo", "text=again"]);
    assert_eq!(run.success(), "again\n");
    assert_eq!(fs::metadata(workspace.cached()).unwrap().modified().unwrap(), entry);
    fs::copy(&absolute, workspace.path("here.wasm")).unwrap();
    assert_eq!(workspace.run(&["run", "here.wasm", "do=echo", "text=x"]).success(), "x\n");
    // Nothing of it stays.
    let tools = workspace.listed();
    assert_eq!(tools.len(), 1, "{tools:?}");
}

#[test]
fn a_component_from_its_file_reads_the_workspace_and_has_limits() {
    let workspace = directory();
    let described = workspace.run(&["describe", "build/probe.wasm", "--time", "2s", "--json"]);
    let described = described.json();
    assert_eq!(described["name"], "probe");
    assert_eq!(described["limits"]["time"], json!({ "value": "2s", "origin": "flag --time" }));
    let grants = &described["grants"]["filesystem"]["value"];
    assert_eq!(grants.as_array().unwrap().len(), 1, "{grants}");
    assert_eq!(grants[0]["mode"], "ro", "{grants}");
    assert_eq!(grants[0]["guest"], "/workspace", "{grants}");
    let spins = workspace.run(&["run", "build/probe.wasm", "do=spin", "--time", "100ms"]);
    assert_eq!(spins.code, 5, "{}", spins.shown());
}

#[test]
fn of_several_tools_in_a_component_one_is_chosen() {
    let workspace = directory();
    workspace.file("many.wasm", fs::read(guest("conformance")).unwrap());
    workspace.file("broken.wasm", "no component");
    let said = workspace.session(&[
        &["run", "./many.wasm"],
        &["run", "./many.wasm", "--tool", "test_simple_text"],
        &["run", "./many.wasm", "--tool", "test_simple_texts"],
        &["run", "./many.wasm", "--tool", "../x"],
        &["run", "./nowhere.wasm"],
        &["run", "./build"],
        &["run", "broken.wasm"],
        &["run", "learn", "--tool", "learn"],
        &["describe", "./many.wasm"],
    ]);
    snapshot!("several tools", &said);
}

#[test]
fn a_component_that_another_user_can_change_is_not_run_from_its_file_either() {
    let workspace = directory();
    let path = workspace.path("build/probe.wasm");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let run = workspace.run(&["run", "build/probe.wasm", "do=echo", "text=hello"]);
    assert_eq!((run.code, &*run.stdout), (6, ""), "{}", run.shown());
    assert!(run.stderr.contains("another user can change it"), "{}", run.shown());
}

#[test]
fn a_component_from_its_file_takes_the_place_of_a_tool_of_its_name() {
    let workspace = directory();
    workspace
        .config("[tools.probe]\nsource = \"local\"\nwasm = \"nowhere.wasm\"\nenable = false\n");
    let echo = ["run", "build/probe.wasm", "do=echo", "text=hello"];
    assert_eq!(workspace.run(&echo).success(), "hello\n");
    fs::rename(workspace.path("build/probe.wasm"), workspace.path("learn.wasm")).unwrap();
    let echo = ["run", "learn.wasm", "do=echo", "text=hello"];
    assert_eq!(workspace.run(&echo).success(), "hello\n");
}
