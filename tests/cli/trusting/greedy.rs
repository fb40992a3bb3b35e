//! A repository that asks for more than it should have.

use serde_json::{Value, json};

use super::{SECRET, assert_untrusted, greedy};
use crate::support::{Run, Workspace, snapshot};

/// What the repository could do if it counted: each with what it answers then.
fn attacks(workspace: &Workspace) -> Vec<(&'static str, Run, &'static str)> {
    let run = |arguments: &[&str]| workspace.run_with(arguments, "", &[("LANG", "mine")]);
    let greedy = |arguments: &[&str]| run(&[&["run", "greedy"], arguments].concat());
    vec![
        (
            "a directory",
            greedy(&["do=read", "path=/keys/key.txt"]),
            "read /keys/key.txt: 11 bytes: the",
        ),
        ("a variable", greedy(&["do=environment"]), "environment: LANG=mine"),
        ("a planted tool", run(&["run", "planted", "do=echo", "text=here"]), "here\n"),
        ("a script", run(&["run", "steal"]), "stolen\n"),
        ("a topic", run(&["run", "learn", "topic=keys", "subjects=key"]), SECRET),
        ("a change", run(&["run", "make_dir", "path=made"]), "[made]\n"),
        ("an alias", run(&["run", "look"]), ""),
    ]
}

#[test]
fn a_greedy_repository_does_nothing_until_it_is_trusted() {
    let workspace = greedy();
    for (what, run, _) in attacks(&workspace) {
        assert_ne!(run.code, 0, "{what}: {}", run.shown());
        assert!(!run.stdout.contains("secret"), "{what}: {}", run.shown());
    }
    assert!(!workspace.path("made").exists());
    for tool in ["greedy", "planted", "steal", "look"] {
        assert_untrusted(&workspace.run(&["run", tool]));
        assert_untrusted(&workspace.run(&["describe", tool]));
    }
    // What it says of built-in tools is not what a model reads.
    let described = workspace.run(&["describe", "read_file"]).success();
    assert!(!described.contains("all is well"), "{described}");
    // A topic in the workspace is read.
    let load = ["run", "learn", "topic=team", "subjects=rules"];
    assert_eq!(workspace.run(&load).success(), "Be kind.\n");

    workspace.trust();
    workspace.keep_later();
    for (what, run, expected) in attacks(&workspace) {
        assert_eq!(run.code, 0, "{what}: {}", run.shown());
        assert!(run.stdout.starts_with(expected), "{what}: {}", run.shown());
        assert_eq!(run.stderr, "", "{what}");
    }
}

#[test]
fn what_a_person_names_by_its_path_runs_without_what_the_workspace_grants_it() {
    let workspace = greedy();
    let run = |arguments: &[&str]| workspace.run_with(arguments, "", &[("LANG", "mine")]);
    let path = "bin/greedy.wasm";
    assert_eq!(run(&["run", path, "do=environment"]).success(), "environment: none\n");
    assert_eq!(run(&["run", path, "do=preopens"]).success(), "preopens: /workspace\n");
    assert_eq!(run(&["script", ".kitbag/scripts/steal.py"]).success(), "stolen\n");
}

#[test]
fn tools_that_are_not_trusted_are_listed_with_the_reason() {
    let workspace = greedy();
    let listed = workspace.run(&["list", "--json"]).json();
    let reason = |name: &str| {
        let tools = listed.as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap()["disabled"].clone()
    };
    for tool in ["greedy", "planted", "steal", "look"] {
        let expected = "disabled: its workspace is not trusted; `kitbag trust` shows what it asks";
        assert_eq!(reason(tool), expected, "{tool}");
    }
    assert_eq!(reason("read_file"), Value::Null);
    let list = workspace.run(&["list"]);
    let expected = "  greedy, look, planted, steal: disabled: its workspace is not trusted; `kitbag \
                    trust` shows what it asks\n";
    assert!(list.stdout.ends_with(expected), "{}", list.shown());
}

#[test]
fn all_that_it_asks_is_shown_and_without_a_terminal_nothing_is_trusted() {
    let workspace = greedy();
    let asked = workspace.run(&["trust"]);
    assert_eq!(asked.code, 3);
    assert!(asked.stderr.ends_with("trust it with `kitbag trust --yes`\n"), "{}", asked.shown());
    snapshot!("greedy", &digests_redacted(&asked.stdout));
    assert!(!workspace.runs_planted());
    let asked = workspace.run(&["trust", "--json"]);
    assert_eq!((asked.code, &asked.json()["trusted"]), (3, &json!(false)));
    let asks = asked.json()["asks"].to_string();
    assert!(asks.contains("reads `<home>/.ssh`, which is outside of the workspace"), "{asks}");
    assert!(!workspace.runs_planted());
}

/// Digests of components change with the guests.
fn digests_redacted(text: &str) -> String {
    let line = |line: &str| match line.split_once(".wasm: ") {
        Some((path, _)) => format!("{path}.wasm: <digest>\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn what_is_asked_is_shown_as_a_difference_to_what_was_trusted() {
    let workspace = greedy();
    workspace.trust();
    workspace.config(&super::CONFIG.replace("evil.example", "worse.example"));
    let asked = workspace.run(&["trust"]);
    assert_eq!(asked.code, 3);
    snapshot!("changed", &asked.stdout);
    assert!(!asked.stdout.contains("[tools.read_file]"), "unchanged lines are not shown");
    workspace.trust();
    let again = workspace.run(&["trust"]);
    assert_eq!(again.clone().success(), "`<workspace>` is trusted as it is\n");
}

#[test]
fn preset_answers_of_a_workspace_that_is_not_trusted_answer_nothing() {
    let workspace = Workspace::with_toolsets(&["files", "write"]).untrusted();
    workspace.config("[tools.remove_path.answers]\nremove = true\n");
    workspace.file("here.txt", "");
    let remove = ["run", "remove_path", "path=here.txt"];
    let run = workspace.run(&remove);
    assert_eq!(run.code, 3, "{}", run.shown());
    assert!(workspace.path("here.txt").exists());
    workspace.trust();
    workspace.run(&remove).success();
    assert!(!workspace.path("here.txt").exists());
}
