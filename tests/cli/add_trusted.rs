//! Trust in a workspace goes on to what is added there with a person's yes, and to nothing else.

use std::fs;

use serde_json::json;

use crate::support::crafted::describing;
use crate::support::{Run, Workspace};

/// A workspace that nothing makes trusted but a record, with a component to add.
fn workspace() -> Workspace {
    let workspace = Workspace::new().untrusted();
    component(&workspace, "Tells the weather.");
    workspace
}

fn component(workspace: &Workspace, description: &str) {
    let says = json!({ "name": "weather", "description": description });
    fs::write(workspace.home().join("weather.wasm"), describing(&says.to_string())).unwrap();
}

fn command(workspace: &Workspace, arguments: &[&str]) -> Run {
    let path = workspace.home().join("weather.wasm");
    let path = path.to_str().unwrap();
    let arguments: Vec<_> =
        arguments.iter().map(|word| if *word == "FILE" { path } else { word }).collect();
    workspace.run(&arguments)
}

fn runs(workspace: &Workspace, tool: &str) -> bool {
    let run = workspace.run(&["run", tool]);
    assert!(matches!(run.code, 0 | 2 | 6), "{}", run.shown());
    run.code == 0
}

#[test]
fn a_new_workspace_is_trusted_with_what_is_added_and_with_nothing_else() {
    let workspace = workspace();
    command(&workspace, &["add", "FILE", "--yes"]).success();
    assert!(runs(&workspace, "weather"));
    command(&workspace, &["add", "FILE", "--yes", "--name", "second"]).success();
    assert!(runs(&workspace, "weather") && runs(&workspace, "second"));
    component(&workspace, "Tells more.");
    command(&workspace, &["update", "second", "FILE", "--yes"]).success();
    assert!(runs(&workspace, "weather") && runs(&workspace, "second"));
    command(&workspace, &["remove", "weather"]).success();
    assert!(runs(&workspace, "second"));
    // An edit that asks for nothing more.
    let config = workspace.path(".kitbag/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}\n[limits]\ntime = \"5s\"\n")).unwrap();
    command(&workspace, &["add", "FILE", "--yes", "--name", "other"]).success();
    assert!(runs(&workspace, "second") && runs(&workspace, "other"));
    // A tool that no person has reviewed.
    workspace.file(".kitbag/tools/evil.wasm", describing(&json!({ "name": "evil" }).to_string()));
    assert!(!runs(&workspace, "evil") && runs(&workspace, "second"));
    let added = command(&workspace, &["add", "FILE", "--yes", "--name", "third"]);
    assert_eq!(added.code, 0, "{}", added.shown());
    assert!(added.stderr.contains("the workspace is not trusted"), "{}", added.shown());
    assert!(!runs(&workspace, "third") && !runs(&workspace, "evil"));
    workspace.run(&["trust", "--yes"]).success();
    assert!(runs(&workspace, "third") && runs(&workspace, "second"));
    let logged = workspace.run(&["audit", "--json"]).success();
    assert!(logged.matches("\"event\":\"trust\"").count() >= 5, "{logged}");
}

#[test]
fn no_command_trusts_an_edit_that_waits_for_its_review() {
    let workspace = workspace();
    command(&workspace, &["add", "FILE", "--yes"]).success();
    command(&workspace, &["add", "FILE", "--yes", "--name", "second"]).success();
    let config = workspace.path(".kitbag/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let table = "[tools.second.grants]\n";
    let granted = format!("{table}env = [\"AWS_SECRET_ACCESS_KEY\"]\n");
    assert!(text.contains(table), "{text}");
    fs::write(&config, text.replace(table, &granted)).unwrap();
    assert!(!runs(&workspace, "second") && runs(&workspace, "weather"));
    command(&workspace, &["remove", "weather"]).success();
    assert!(!runs(&workspace, "second"));
    command(&workspace, &["add", "FILE", "--yes", "--name", "third"]).success();
    assert!(!runs(&workspace, "second"));
    component(&workspace, "Tells more.");
    command(&workspace, &["update", "third", "FILE", "--yes"]).success();
    assert!(!runs(&workspace, "second"));
    workspace.run(&["trust", "--yes"]).success();
    assert!(runs(&workspace, "second") && runs(&workspace, "third"));
}

#[test]
fn adding_a_tool_trusts_nothing_of_a_repository_that_is_not_trusted() {
    let workspace = workspace();
    let evil = json!({ "name": "evil" }).to_string();
    workspace.file(".kitbag/tools/evil.wasm", describing(&evil));
    workspace.config("[tools.evil.grants]\nfilesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n");
    let added = command(&workspace, &["add", "FILE", "--yes"]);
    assert_eq!(added.code, 0, "{}", added.shown());
    assert!(added.stderr.contains("the workspace is not trusted"), "{}", added.shown());
    assert!(!runs(&workspace, "evil") && !runs(&workspace, "weather"));
    command(&workspace, &["remove", "weather"]);
    assert!(!runs(&workspace, "evil"));
}

#[test]
fn what_is_planted_while_a_person_agrees_is_not_trusted_with_it() {
    let workspace = workspace();
    command(&workspace, &["add", "FILE", "--yes"]).success();
    // Beside the component that is added next lies another one by then.
    let evil = describing(&json!({ "name": "evil" }).to_string());
    workspace.file(".kitbag/tools/evil.wasm", evil);
    command(&workspace, &["add", "FILE", "--yes", "--name", "second"]);
    assert!(!runs(&workspace, "evil") && !runs(&workspace, "second"));
    assert!(runs(&workspace, "weather"));
}

#[test]
fn a_tool_is_updated_and_removed_where_its_workspace_is_not_trusted() {
    let workspace = workspace();
    command(&workspace, &["add", "FILE", "--yes"]).success();
    workspace.run(&["trust", "--revoke"]).success();
    assert!(!runs(&workspace, "weather"));
    let same = command(&workspace, &["update", "weather"]);
    assert_eq!(same.success(), "weather is as it was recorded.\n");
    component(&workspace, "Tells more.");
    let updated = command(&workspace, &["update", "weather", "FILE", "--yes"]);
    assert!(
        updated.stdout.contains("| - Tells the weather.\n| + Tells more.\n"),
        "{}",
        updated.shown()
    );
    assert!(updated.stdout.ends_with("Recorded weather in .kitbag/kitbag.lock.\n"));
    let note = "the workspace is not trusted, so that the tool does not run yet; `kitbag trust` shows \
                all that the workspace asks\n";
    assert_eq!((updated.code, &*updated.stderr), (0, note));
    // It trusts nothing by itself.
    assert!(!runs(&workspace, "weather"));
    workspace.run(&["trust", "--yes"]).success();
    assert!(runs(&workspace, "weather"));
    workspace.run(&["trust", "--revoke"]).success();
    let removed = command(&workspace, &["remove", "weather"]);
    assert_eq!((removed.code, &*removed.stderr), (0, ""), "{}", removed.shown());
    assert!(!workspace.path(".kitbag/tools/weather.wasm").exists());
    for file in ["config.toml", "kitbag.lock"] {
        let text = fs::read_to_string(workspace.path(".kitbag").join(file)).unwrap();
        assert!(!text.contains("weather"), "{file}: {text}");
    }
    // What was not added says so, trusted or not.
    let refused = command(&workspace, &["remove", "weather"]);
    assert!(refused.stderr.contains("there is no tool `weather`"), "{}", refused.shown());
}

#[test]
fn an_addition_that_was_stopped_is_finished_where_it_ended_the_trust() {
    let workspace = workspace();
    command(&workspace, &["add", "FILE", "--yes", "--name", "first"]).success();
    command(&workspace, &["add", "FILE", "--yes"]).success();
    // As after a kill before the component was there: what is written was not trusted yet.
    fs::remove_file(workspace.path(".kitbag/tools/weather.wasm")).unwrap();
    assert!(runs(&workspace, "first") && !workspace.path(".kitbag/tools/weather.wasm").exists());
    let again = command(&workspace, &["add", "FILE", "--yes"]);
    assert_eq!(again.code, 0, "{}", again.shown());
    workspace.run(&["trust", "--yes"]).success();
    assert!(runs(&workspace, "first") && runs(&workspace, "weather"));
}
