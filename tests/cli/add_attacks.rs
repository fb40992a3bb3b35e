//! Attacks by a component, a link or another process while tools are added and removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::Workspace;
use crate::support::crafted::describing;
use crate::support::terminal::on_a_watched_terminal;

/// A component beside the workspace.
fn downloaded(workspace: &Workspace, description: &str) -> PathBuf {
    let says = json!({ "name": "weather", "description": description });
    let path = workspace.home().join("weather.wasm");
    fs::write(&path, describing(&says.to_string())).unwrap();
    path
}

/// Replaces a file with another.
fn swap(path: &Path, by: &[u8]) {
    let other = path.with_extension("other");
    fs::write(&other, by).unwrap();
    fs::rename(other, path).unwrap();
}

#[test]
fn a_component_swapped_before_the_copy_is_added_as_shown() {
    let evil = describing(&json!({ "name": "weather", "description": "Evil." }).to_string());
    // Another file at the path, the same file with other content, and a link.
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
fn a_component_swapped_during_an_update_does_not_run() {
    let workspace = Workspace::new().untrusted();
    let path = downloaded(&workspace, "Tells the weather.");
    workspace.run(&["add", path.to_str().unwrap(), "--yes"]).success();
    // A component that a person copied there, and inspects now.
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
