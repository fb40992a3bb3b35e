//! Environment variables, configuration values and rates, through the binary, the server and the
//! library.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kitbag::config::Sourced;
use kitbag::{Invocation, Places, ToolboxError};
use serde_json::json;

use crate::support::mcp::{self, Client};
use crate::support::{Workspace, block_on, guest};

const ENV: [(&str, &str); 4] =
    [("LANG", "de_DE.UTF-8"), ("CI", "true"), ("GITHUB_TOKEN", "ghp_1"), ("LANGUAGE", "de")];

/// A workspace with the tool `settings` under these tables. The user config names its component.
fn workspace(own: &str) -> Workspace {
    let workspace = Workspace::new();
    let wasm = guest("settings");
    workspace.own_config(&format!("[tools.settings]\nsource = \"local\"\nwasm = {wasm:?}\n{own}"));
    workspace
}

fn run(workspace: &Workspace, arguments: &[&str]) -> crate::support::Run {
    workspace.run_with(&[&["run", "settings"], arguments].concat(), "", &ENV)
}

#[test]
fn a_program_hands_variables_over_and_a_call_gets_fewer() {
    let workspace = workspace("grants.env = [\"LANG\", \"CI\"]\n");
    let variables = ENV.map(|(name, value)| (name.into(), value.into()));
    let places = Places {
        user_file: Some(workspace.own_config_file()),
        cache: Some(workspace.cache().to_owned()),
        variables: variables.into_iter().collect(),
        ..Places::default()
    };
    let kitbag =
        kitbag::Kitbag::builder().workspace(workspace.root()).places(places).trust_workspace(true);
    let kitbag = kitbag.build().unwrap();
    let own = Arc::unwrap_or_clone(kitbag.toolbox().tool("settings").unwrap().grants.value);
    let call = |grants: &kitbag::policy::Grants| {
        let invocation = Invocation::tool("settings", json!({})).with_grants(grants.clone());
        block_on(kitbag.invoke(invocation)).map(|completion| completion.result.unwrap())
    };
    let mut fewer = own.clone();
    fewer.variables.remove(0);
    // The host sets the value, regardless of the call.
    fewer.variables[0].value = Some("forged".into());
    assert_eq!(call(&fewer).unwrap(), kitbag::Outcome::Success("env CI=true".into()));
    let mut more = own;
    more.variables[0].name = "GITHUB_TOKEN".parse().unwrap();
    assert!(matches!(call(&more), Err(ToolboxError::MoreGranted { .. })));
}

#[test]
fn a_tool_lacking_a_required_grant_names_the_line_to_add() {
    let shown = |workspace: &Workspace| {
        // The tool's own description is known once it was loaded.
        let checked = workspace.run_with(&["check"], "", &ENV).stderr;
        let listed = workspace.run(&["list"]).success();
        let json = workspace.run(&["list", "--json"]).json();
        let tools = json.as_array().unwrap();
        let settings = tools.iter().find(|tool| tool["name"] == "settings").unwrap();
        let unavailable = settings["unavailable"].as_str().unwrap_or_default().to_owned();
        let mut client = Client::with_handshake(workspace, mcp::meta(json!({})));
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let tools = tools.as_array().unwrap();
        let settings = tools.iter().find(|tool| tool["name"] == "settings").unwrap();
        let description = settings["description"].as_str().unwrap().to_owned();
        [checked, listed, unavailable, description]
    };
    let line = "add `\"SETTINGS_MODE\"` to `tools.settings.grants.env`";
    let workspace = workspace("");
    let texts = shown(&workspace);
    for text in &texts {
        assert!(text.contains(line), "{text}");
    }
    let [checked, listed, _, description] = &texts;
    assert!(checked.contains("the tool `settings` is unavailable"), "{checked}");
    assert!(listed.contains("  settings: unavailable: tool `settings` requests"), "{listed}");
    assert!(description.contains("\nUnavailable: tool `settings` requests"), "{description}");
    assert!(description.contains("; ask the user to add "), "{description}");
    // If a workspace grants it, the line must be added to the user config.
    workspace.config("[tools.settings.grants]\nenv = [\"SETTINGS_MODE\"]\n");
    workspace.add_to_own_config("[ceiling.grants]\nenv = []\n");
    for text in shown(&workspace) {
        let line = "include `env = [\"SETTINGS_MODE\"]`";
        assert!(text.contains(line), "{text}");
    }
    let granted = self::workspace("grants.env = [\"SETTINGS_MODE\"]\n");
    for text in shown(&granted) {
        assert!(!text.to_lowercase().contains("unavailable"), "{text}");
    }
}

/// Path of the stored state in tests.
fn state(workspace: &Workspace) -> PathBuf {
    workspace.home().join(".local/state/kitbag")
}

#[test]
fn processes_share_a_rate_and_excess_calls_are_refused() {
    let workspace = workspace("rate = \"2/h, 100/d\"\n");
    assert_eq!(run(&workspace, &["key=a"]).success(), "none\n");
    assert_eq!(run(&workspace, &["key=a"]).success(), "none\n");
    let refused = run(&workspace, &["key=a"]);
    assert_eq!(refused.code, 9, "{}", refused.shown());
    let start = "error: the rate of `settings`, `2/h` (";
    assert!(refused.stderr.starts_with(start), "{}", refused.shown());
    assert!(refused.stderr.contains(", is used up; try again in "), "{}", refused.shown());
    let json = run(&workspace, &["key=a", "--json"]);
    assert_eq!(json.code, 9, "{}", json.shown());
    let json = json.json();
    assert_eq!((&json["kind"], &json["rate"]), (&json!("rate"), &json!("2/h")));
    let seconds = json["retryAfterSeconds"].as_u64().unwrap();
    assert!((1..=1800).contains(&seconds), "{seconds}");
    assert_eq!(json["transient"], true);
    let described = workspace.run(&["describe", "settings"]).success();
    assert!(described.contains("\nRate ["), "{described}");
    assert!(described.contains("\n  2/h, 100/d\n"), "{described}");
}

#[test]
fn without_a_rate_nothing_is_read_or_written() {
    let without = workspace("[audit]\nenable = false\n");
    run(&without, &["key=a"]).success();
    assert!(!state(&without).exists());
    // Not even read: a directory at this path would be an error.
    fs::create_dir_all(state(&without).parent().unwrap()).unwrap();
    fs::write(state(&without), "not a directory").unwrap();
    run(&without, &["key=a"]).success();
    let with = workspace("rate = \"9/min\"\n");
    fs::create_dir_all(state(&with).parent().unwrap()).unwrap();
    fs::write(state(&with), "not a directory").unwrap();
    let refused = run(&with, &["key=a"]);
    assert_eq!(refused.code, 6, "{}", refused.shown());
    assert!(refused.stderr.contains("the counts of calls in `"), "{}", refused.shown());
}

#[test]
fn a_workspace_lowers_a_rate_and_does_not_raise_it() {
    let passes = |own: &str, config: &str| {
        let workspace = workspace(own);
        workspace.config(config);
        (0..5).filter(|_| run(&workspace, &["key=a"]).code == 0).count()
    };
    let rate = |rate: &str| format!("[tools.settings]\nrate = \"{rate}\"\n");
    assert_eq!(passes("rate = \"2/d\"\n", &rate("4/d")), 2);
    assert_eq!(passes("rate = \"4/d\"\n", &rate("2/d")), 2);
    assert_eq!(passes("rate = \"4/d\"\n", &rate("3/h")), 3);
    assert_eq!(passes("", &rate("1/d")), 1);
    let wrong = workspace("");
    wrong.config(&rate("60 per minute"));
    let refused = run(&wrong, &["key=a"]);
    assert_eq!(refused.code, 4, "{}", refused.shown());
    assert!(refused.stderr.contains("`60 per minute` is not a rate"), "{}", refused.shown());
}

#[test]
fn a_renamed_tool_keeps_the_rate_of_the_user_config() {
    let workspace = workspace("rate = \"1/d\"\n");
    let wasm = guest("settings");
    workspace.config(&format!("[tools.free]\nsource = \"local\"\nwasm = {wasm:?}\n"));
    run(&workspace, &["key=a"]).success();
    let refused = workspace.run_with(&["run", "free", "key=a"], "", &ENV);
    assert_eq!(refused.code, 9, "{}", refused.shown());
    let start = "error: the rate of `free`, `1/d` (";
    assert!(refused.stderr.starts_with(start), "{}", refused.shown());
    assert!(refused.stderr.contains("), counted as `settings`, is used up"), "{}", refused.shown());
}

#[test]
fn each_workspace_has_its_own_counts_in_a_private_directory() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = workspace("rate = \"1/d\"\n");
    run(&workspace, &["key=a"]).success();
    let elsewhere = workspace.outside().join("elsewhere");
    fs::create_dir_all(elsewhere.join(".kitbag")).unwrap();
    let root = elsewhere.to_str().unwrap();
    run(&workspace, &["key=a", "--workspace", root]).success();
    assert_eq!(run(&workspace, &["key=a", "--workspace", root]).code, 9);
    assert_eq!(run(&workspace, &["key=a"]).code, 9);
    let mode = fs::metadata(state(&workspace)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    // A tool cannot write the counts, regardless of its grants.
    let grants = format!(
        "rate = \"1/d\"\ngrants.filesystem = [{{ host = {:?}, guest = \"/s\", mode = \"rw\" }}]\n",
        state(&workspace)
    );
    let wasm = guest("settings");
    workspace
        .own_config(&format!("[tools.settings]\nsource = \"local\"\nwasm = {wasm:?}\n{grants}"));
    let refused = run(&workspace, &["key=a"]);
    assert!(refused.stderr.contains("cannot be granted: no tool may read"), "{}", refused.shown());
}

#[test]
fn rates_are_per_caller_and_name_the_retry_time() {
    let workspace = workspace("rate = \"2/d\"\n");
    let mut client = Client::with_handshake(&workspace, mcp::meta(json!({})));
    for _ in 0..2 {
        let result = client.call("settings", json!({ "key": "a" }));
        assert_eq!(result["content"][0]["text"], "none", "{result}");
    }
    let refused = client.call("settings", json!({ "key": "a" }));
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("the rate of `settings`, `2/d`"), "{text}");
    assert!(text.contains("try again in 43"), "{text}");
    // Another server of the user continues the counts.
    let mut client = Client::with_handshake(&workspace, mcp::meta(json!({})));
    let refused = client.call("settings", json!({ "key": "a" }));
    assert_eq!(refused["isError"], true, "{refused}");
}

#[test]
fn the_library_counts_in_memory_without_a_state_directory() {
    let workspace = workspace("rate = \"2/d\"\n");
    let kitbag = workspace.kitbag();
    let call = || block_on(kitbag.call("settings", json!({ "key": "a" })));
    call().unwrap();
    call().unwrap();
    let Err(ToolboxError::Rate { tool, retry_after, .. }) = call() else { panic!("it passed") };
    assert_eq!((&*tool, retry_after.as_secs() / 3600), ("settings", 11));
    assert!(!state(&workspace).exists());
    // After a tool is added, the counts continue.
    let toolbox =
        kitbag.toolbox().with_component("other", fs::read(guest("echo")).unwrap()).unwrap();
    let loaded = workspace.kitbag().toolbox().with_program_tools_of(&toolbox).unwrap();
    let context = kitbag::CallContext::default();
    let invocation = Invocation::tool("settings", json!({ "key": "a" }));
    let again = block_on(loaded.call(invocation, context, &mut kitbag::NoAnswers));
    assert!(matches!(again, Err(ToolboxError::Rate { .. })));
    // With a state directory, the library shares the counts.
    let places = Places {
        state: Some(Sourced::default(state(&workspace))),
        user_file: Some(workspace.own_config_file()),
        cache: Some(workspace.cache().to_owned()),
        ..Places::default()
    };
    let shared = || {
        let builder = kitbag::Kitbag::builder()
            .workspace(workspace.root())
            .places(places.clone())
            .trust_workspace(true);
        block_on(builder.build().unwrap().call("settings", json!({ "key": "a" })))
    };
    shared().unwrap();
    shared().unwrap();
    assert!(matches!(shared(), Err(ToolboxError::Rate { .. })));
}

#[test]
fn many_processes_at_once_get_what_the_rate_allows() {
    let workspace = workspace("rate = \"3/d\"\n");
    // Compiled beforehand.
    run(&workspace, &["--format-arguments"]).success();
    let start = |_| {
        let mut command: Command = workspace.command();
        command.args(["run", "settings", "key=a"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..8).map(start).collect();
    let codes = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap());
    let codes: Vec<_> = codes.collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 3, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 9).count(), 5, "{codes:?}");
}
