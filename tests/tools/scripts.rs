//! Python scripts, through the real binary: arguments from files, `kitbag script`, and
//! `.kitbag/scripts`. The header of scripts is tested in `crates/config`, and Python itself in
//! `python.rs`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, probe, snapshot};

/// Counts the words of a file, and answers JSON.
const WORDS: &str = include_str!("scripts/words.py");

/// A workspace with the script as the tool `words`, and a file to count.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.file("notes.txt", "one two three four\n");
    workspace.file(".kitbag/scripts/words.py", WORDS);
    workspace
}

#[test]
fn an_argument_can_be_read_from_a_file() {
    let workspace = Workspace::with_toolsets(&["python"]);
    workspace.file("script.py", "print(len(text))\ntext[0]");
    workspace.file("values.json", "{\"text\": [1, \"ä\"]}");
    workspace.file("latin.py", b"# \xe4");
    workspace.file("broken.json", "{\"text\": }");
    workspace.file("large.txt", "x".repeat((1 << 20) + 1));
    workspace.file("half.txt", "x".repeat(600 << 10));
    let run = |arguments: &[&str], stdin: &str| {
        let all = [&["run", "python"], arguments].concat();
        format!("$ kitbag {}\n{}\n", all.join(" "), workspace.run_with(&all, stdin, &[]).shown())
    };
    let mut shown = String::new();
    for (arguments, stdin) in [
        (&["code=@script.py", "inputs:=@values.json"][..], ""),
        (&["code=@-", "inputs:={\"a\": 1}"], "a + 1"),
        (&["--args", "@values.json", "code=@script.py"], ""),
        (&["code=@@x"], ""),
        (&["code:=\"@x\""], ""),
        (&["code=@missing.py"], ""),
        (&["code=@"], ""),
        (&["code=@.kitbag"], ""),
        (&["code=@latin.py"], ""),
        (&["code=1", "inputs:=@broken.json"], ""),
        (&["code=@large.txt"], ""),
        (&["code=@half.txt", "inputs:=@half.txt"], ""),
        (&["code=@-", "--args", "-"], "{}"),
    ] {
        shown.push_str(&run(arguments, stdin));
    }
    snapshot!("arguments from files", &shown);
}

#[test]
fn a_script_runs_by_path_with_arguments_as_variables() {
    let workspace = Workspace::new();
    workspace.file("notes.txt", "one two three four\n");
    workspace.file("count.py", WORDS);
    workspace.file("bare", "'''Answer.'''\n6 * 7\n");
    workspace.file("broken.py", "# /// kitbag\n# [parameters.a]\n# typ = 'string'\n# ///\n");
    workspace.file("raises.py", "# one\n1 / 0\n");
    snapshot!(
        "by path",
        &workspace.session(&[
            &["script", "count.py", "path=notes.txt"],
            &["script", "count.py", "path=notes.txt", "least=4"],
            &["run", "./count.py", "path=notes.txt", "like=t"],
            &["script", "count.py"],
            &["script", "count.py", "pfad=notes.txt"],
            &["script", "count.py", "path=notes.txt", "--format-arguments"],
            &["script", "count.py", "path=/etc/passwd"],
            &["script", "bare"],
            &["script", "broken.py"],
            &["script", "raises.py"],
            &["script", "missing.py"],
            &["run", "count.py", "--tool", "x"],
            &["describe", "./count.py"],
        ]),
    );
}

#[test]
fn a_script_with_a_kitbag_shebang_is_executable() {
    let workspace = workspace();
    let file = workspace.path(".kitbag/scripts/words.py");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_kitbag"));
    let output = Command::new(&file)
        .args(["path=notes.txt", "--json"])
        .current_dir(workspace.root())
        .env_clear()
        .env("HOME", workspace.home())
        .env("KITBAG_CACHE_DIR", workspace.cache())
        .env("KITBAG_TRUST_WORKSPACE", "1")
        .env("PATH", format!("{}:/usr/bin:/bin", binary.parent().unwrap().display()))
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({ "outcome": "success", "content": "{\"words\":4}", "untrusted": true });
    assert_eq!(answer, expected);
}

#[test]
fn a_script_in_the_workspace_is_a_tool() {
    let workspace = workspace();
    snapshot!(
        "tool",
        &workspace.session(&[
            &["list"],
            &["run", "words", "path=notes.txt"],
            &["run", "words", "least=x"],
            &["describe", "words"],
            &["why", "words", "/workspace/notes.txt"],
            &["why", "words", "env", "HOME"],
            &["check"],
        ]),
    );
    workspace.config("[tools.count]\nscript = \"words\"\nrate = \"1/h\"\ngrants.filesystem = []\n");
    assert!(!workspace.run(&["list"]).success().contains("  words "));
    let refused = workspace.run(&["run", "count", "path=notes.txt"]);
    assert!(refused.stderr.contains("PermissionError"), "{}", refused.shown());
    let often = workspace.run(&["run", "count", "path=notes.txt"]);
    assert_eq!(often.code, 9, "{}", often.shown());
    workspace.config("[tools.words]\nenable = false\n");
    let off = workspace.run(&["run", "words", "path=notes.txt"]);
    assert!(off.stderr.contains("disabled by `enable = false`"), "{}", off.shown());
    workspace.config("[tools.words]\nlimits.time = \"1s\"\n");
    workspace.file(".kitbag/scripts/words.py", "while True: pass\n");
    let endless = workspace.run(&["run", "words"]);
    assert!(
        endless.stderr.contains("limit: time (1s): request less, or a part of it"),
        "{}",
        endless.shown()
    );
}

#[test]
fn clients_of_both_eras_call_it_and_never_see_its_code() {
    let workspace = workspace();
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    for mut client in [old, new] {
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let words = tools.iter().find(|tool| tool["name"] == "words").unwrap();
        assert_eq!(words["title"], "Words");
        assert_eq!(words["description"], "Count the words of a file.");
        assert_eq!(words["inputSchema"]["required"], json!(["path"]));
        assert_eq!(words["outputSchema"]["type"], "object");
        assert_eq!(words["annotations"]["readOnlyHint"], true);
        let answer = client.call("words", json!({ "path": "notes.txt", "like": "o" }));
        assert_eq!(answer["structuredContent"], json!({ "words": 3 }));
        // An argument that the script does not declare is dropped, and never becomes its code.
        let other = client.request(
            "tools/call",
            json!({ "name": "words", "arguments": { "path": "notes.txt", "code": "1" } }),
        );
        assert_eq!(other["result"]["structuredContent"], json!({ "words": 4 }), "{other}");
        let all = format!("{list}{answer}{other}");
        assert!(!all.contains("split()"), "{all}");
    }
}

#[test]
fn a_running_server_notices_new_and_changed_scripts() {
    let workspace = Workspace::new();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let names = |client: &mut Client| {
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut client), ["learn"]);
    let place = |text: &str| {
        let new = workspace.file(".kitbag/new", text);
        fs::create_dir_all(workspace.path(".kitbag/scripts")).unwrap();
        fs::rename(new, workspace.path(".kitbag/scripts/say.py")).unwrap();
    };
    place("'''Say it.'''\n'one'\n");
    while names(&mut client) != ["learn", "say"] {
        client.notification("notifications/tools/list_changed");
    }
    assert_eq!(client.call("say", json!({}))["content"][0]["text"], "\"one\"");
    place("'''Say it again.'''\n'two'\n");
    client.notification("notifications/tools/list_changed");
    assert_eq!(client.call("say", json!({}))["content"][0]["text"], "\"two\"");
    fs::remove_file(workspace.path(".kitbag/scripts/say.py")).unwrap();
    while names(&mut client) != ["learn"] {
        client.notification("notifications/tools/list_changed");
    }
}

#[test]
fn no_tool_writes_a_script_regardless_of_its_grants() {
    let workspace = workspace();
    workspace.config(&probe(
        "grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    ));
    // A hard link to the same file.
    fs::hard_link(workspace.path(".kitbag/scripts/words.py"), workspace.path("same.py")).unwrap();
    symlink(".kitbag/scripts", workspace.path("way")).unwrap();
    workspace.file("mine.py", "'mine'\n");
    let tried = [
        &["do=write", "path=.kitbag/scripts/words.py", "text=1"][..],
        &["do=write", "path=.kitbag/scripts/new.py", "text=1"],
        &["do=write", "path=way/new.py", "text=1"],
        &["do=write", "path=same.py", "text=1"],
        &["do=mkdir", "path=.kitbag/scripts/in"],
        &["do=rename", "old=mine.py", "new=.kitbag/scripts/mine.py"],
        &["do=rename", "old=.kitbag/scripts", "new=scripts"],
        &["do=symlink", "target=../../mine.py", "path=.kitbag/scripts/mine.py"],
        &["do=link", "old=mine.py", "new=.kitbag/scripts/mine.py"],
    ];
    for arguments in tried {
        let sentence = workspace.run(&[&["run", "probe"], arguments].concat()).success();
        assert!(
            sentence.trim_end().ends_with("refused (not-permitted)"),
            "{arguments:?}: {sentence}"
        );
    }
    assert_eq!(fs::read_to_string(workspace.path(".kitbag/scripts/words.py")).unwrap(), WORDS);
    assert_eq!(fs::read_dir(workspace.path(".kitbag/scripts")).unwrap().count(), 1);
}

#[test]
fn a_link_to_the_outside_is_not_a_script() {
    let workspace = Workspace::new();
    fs::write(workspace.outside().join("key.py"), "SECRET-KEY\n").unwrap();
    fs::create_dir(workspace.path(".kitbag/scripts")).unwrap();
    symlink(workspace.outside().join("key.py"), workspace.path(".kitbag/scripts/key.py")).unwrap();
    for (command, code) in [(&["run", "key"][..], 4), (&["list"], 0), (&["check"], 4)] {
        let refused = workspace.run(command);
        assert_eq!(refused.code, code, "{}", refused.shown());
        let all = refused.shown();
        assert!(all.contains(".kitbag/scripts/key.py: is behind a symbolic link"), "{all}");
        assert!(!all.contains("SECRET-KEY"), "{all}");
    }
}
