//! Components that run from their file, without configuration.

use std::fs;

use crate::support::{Workspace, guest};

/// A directory with a component in it that is not a workspace.
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
    // Compiled once, and found in the cache regardless of the path.
    let absolute = workspace.path("build/probe.wasm");
    let entry = fs::metadata(workspace.cached()).unwrap().modified().unwrap();
    let run = workspace.run(&["run", absolute.to_str().unwrap(), "do=echo", "text=again"]);
    assert_eq!(run.success(), "again\n");
    assert_eq!(fs::metadata(workspace.cached()).unwrap().modified().unwrap(), entry);
    fs::copy(&absolute, workspace.path("here.wasm")).unwrap();
    assert_eq!(workspace.run(&["run", "here.wasm", "do=echo", "text=x"]).success(), "x\n");
    // No trace of the component remains.
    let tools = workspace.listed();
    assert_eq!(tools.len(), 1, "{tools:?}");
}
