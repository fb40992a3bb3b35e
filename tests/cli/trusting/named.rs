//! Workspaces that are trusted by name: by an option, a variable, the user's own file, and a
//! program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::{assert_untrusted, greedy};
use crate::support::{CallInTest, Workspace};

const CALL: [&str; 4] = ["run", "planted", "do=echo", "text=here"];

#[test]
fn an_option_and_a_variable_trust_the_workspace_for_one_process() {
    let workspace = greedy();
    let flag = [&CALL[..], &["--trust-workspace"]].concat();
    assert_eq!(workspace.run(&flag).success(), "here\n");
    let with = |value: &str| workspace.run_with(&CALL, "", &[("KITBAG_TRUST_WORKSPACE", value)]);
    assert_eq!(with("1").success(), "here\n");
    for value in ["", "0"] {
        assert_untrusted(&with(value));
    }
    let wrong = with("yes");
    assert_eq!(wrong.code, 4, "{}", wrong.shown());
    assert!(wrong.stderr.contains("set it to `1`, or unset it"), "{}", wrong.shown());
    // Nothing of it is remembered.
    assert!(!workspace.runs_planted());
}

/// Makes the user's own file trust workspaces by these patterns.
fn trusting(workspace: &Workspace, patterns: &[&str]) {
    workspace.own_config(&format!("[trust]\nworkspaces = {patterns:?}\n"));
}

#[test]
fn the_users_own_file_trusts_directories_by_pattern() {
    let workspace = greedy();
    let outside = workspace.outside().canonicalize().unwrap();
    let outside = outside.to_str().unwrap();
    for (pattern, expected) in [
        (format!("{outside}/*"), true),
        (format!("{outside}/workspace"), true),
        (format!("{outside}/work*"), true),
        (format!("{outside}/**"), true),
        (format!("{outside}/workspace/*"), false),
        (format!("{outside}/w"), false),
        (format!("{outside}/home/**"), false),
        ("~/**".to_owned(), false),
        ("~/../*".to_owned(), true),
    ] {
        trusting(&workspace, &[&pattern]);
        assert_eq!(workspace.runs_planted(), expected, "{pattern}");
    }
    for wrong in ["src/**", "", "~/src/***"] {
        trusting(&workspace, &[wrong]);
        assert_eq!(workspace.run(&CALL).code, 4, "{wrong}");
    }
}

#[test]
fn a_pattern_is_held_against_where_the_workspace_really_is() {
    let workspace = greedy();
    fs::create_dir(workspace.home().join("src")).unwrap();
    symlink(workspace.root(), workspace.home().join("src/link")).unwrap();
    trusting(&workspace, &["~/src/**"]);
    let link = workspace.home().join("src/link");
    let call = [&CALL[..], &["--workspace", link.to_str().unwrap()]].concat();
    assert_untrusted(&workspace.run(&call));
    // A link of the user's own that a pattern names leads to where they are.
    symlink(workspace.outside(), workspace.home().join("elsewhere")).unwrap();
    trusting(&workspace, &["~/elsewhere/*"]);
    assert!(workspace.runs_planted());
}

#[test]
fn what_another_user_can_change_is_ignored_also_where_it_is_trusted() {
    let workspace = greedy();
    workspace.trust();
    trusting(&workspace, &["/**"]);
    assert!(workspace.runs_planted());
    let config = workspace.path(".kitbag/config.toml");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).unwrap();
    for arguments in [&CALL[..], &[&CALL[..], &["--trust-workspace"]].concat()] {
        let run = workspace.run(arguments);
        assert_ne!(run.code, 0, "{}", run.shown());
        assert!(run.stderr.contains("is ignored: "), "{}", run.shown());
    }
    let asked = workspace.run(&["trust", "--yes"]);
    assert_eq!(asked.code, 6, "{}", asked.shown());
    assert!(asked.stderr.contains("is ignored: "), "{}", asked.shown());
}

#[test]
fn the_file_of_a_workspace_trusts_nothing() {
    let workspace = greedy();
    workspace.config("[trust]\nworkspaces = [\"/**\"]\n");
    let run = workspace.run(&CALL);
    assert_untrusted(&run);
    assert!(run.stderr.contains("`trust` has no place in a workspace's file"), "{}", run.shown());
}

#[test]
fn a_program_says_whether_the_workspace_is_trusted() {
    let workspace = greedy();
    workspace.config("");
    let call = |trust: Option<bool>| {
        let builder = match trust {
            None => workspace.builder(),
            Some(is_trusted) => workspace.builder().trust_workspace(is_trusted),
        };
        let arguments = json!({ "do": "echo", "text": "here" });
        builder.build().unwrap().call_in_test("planted", arguments)
    };
    let refused = "failed: the tool `planted` is disabled: its workspace is not trusted; `kitbag \
                   trust` shows what it asks";
    assert_eq!(call(None), refused);
    assert_eq!(call(Some(false)), refused);
    assert_eq!(call(Some(true)), "here");
    // By the record where there is a state directory, unless the program says something.
    workspace.trust();
    assert_eq!(call(None), refused);
    let state = kitbag::config::Sourced::default(workspace.home().join(".local/state/kitbag"));
    let with_state = |trust: Option<bool>| {
        let places = kitbag::Places {
            cache: Some(workspace.cache().to_owned()),
            state: Some(state.clone()),
            home: Some(workspace.home()),
            ..kitbag::Places::default()
        };
        let builder = kitbag::Kitbag::builder().workspace(workspace.root()).places(places);
        let builder = match trust {
            None => builder,
            Some(is_trusted) => builder.trust_workspace(is_trusted),
        };
        let arguments = json!({ "do": "echo", "text": "here" });
        let kitbag = builder.build().unwrap();
        let answer = kitbag.call_in_test("planted", arguments);
        kitbag.toolbox().auditor().unwrap().flush();
        answer
    };
    assert_eq!(with_state(None), "here");
    assert_eq!(with_state(Some(false)), refused);
    // What was refused is in the log.
    let logged = workspace.run(&["audit", "--outcome", "refused", "--json"]).json();
    assert_eq!((&logged["tool"], &logged["reason"]), (&json!("planted"), &json!("trust")));
}
