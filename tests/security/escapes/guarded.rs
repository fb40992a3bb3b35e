//! Files that no tool changes, regardless of its grants: repositories, and kitbag's own files.

use std::fs;

use serde_json::{Value, json};

use super::anchors::{two_tools, write};
use crate::support::{CallInTest, Workspace, probe};

#[test]
fn a_call_waits_for_a_call_that_makes_parts_of_a_repository() {
    let grant = "{ host = \".\", guest = \"/data\", mode = \"rw\" }";
    let workspace =
        Workspace::with_probe(&format!("grants.filesystem = [{grant}]\nlimits.time = \"1s\"\n"));
    let kitbag = workspace.kitbag();
    let call = || kitbag.call_in_test("probe", write("/data/HEAD", "ref: refs/heads/main"));
    // As if another call held it, for longer than this call may take.
    let lock = fs::File::open(workspace.root()).unwrap();
    lock.lock().unwrap();
    assert_eq!(call(), "failed: limit: time (1s): request less, or a part of it");
    assert!(!workspace.path("HEAD").exists());
    drop(lock);
    assert_eq!(call(), "write /data/HEAD: 20 bytes");
}

#[test]
fn concurrent_repo_creation_is_refused() {
    let grant = "{ host = \".\", guest = \"/data\", mode = \"rw\" }";
    let workspace = Workspace::with_probe(&format!("grants.filesystem = [{grant}]\n"));
    let kitbag = workspace.kitbag();
    for round in 0..20 {
        let directory = format!("/data/{round}");
        fs::create_dir(workspace.path(&round.to_string())).unwrap();
        let parts = ["HEAD", "refs", "objects", "commondir"];
        let got = std::thread::scope(|scope| {
            let calls = parts.map(|part| {
                let path = format!("{directory}/{part}");
                let kitbag = &kitbag;
                scope.spawn(move || kitbag.call_in_test("probe", write(&path, "xx")))
            });
            calls.map(|call| call.join().unwrap())
        });
        for (part, got) in parts.iter().zip(&got) {
            let is_made = workspace.path(&format!("{round}/{part}")).exists();
            let expected = if is_made { ": 2 bytes" } else { "refused (not-permitted)" };
            assert!(got.ends_with(expected), "{part}: {got:?}");
        }
        let others =
            parts[1..].iter().any(|part| workspace.path(&format!("{round}/{part}")).exists());
        let has_head = workspace.path(&format!("{round}/HEAD")).exists();
        assert!(has_head != others, "{got:?}");
    }
}

#[test]
fn a_directory_like_a_repository_cannot_be_made() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\", mode = \"rw\" }", "");
    workspace.file("data/x", "");
    let kitbag = workspace.kitbag();
    let call = |arguments: Value| kitbag.call_in_test("probe", arguments);
    let mkdir = |path: &str| call(json!({ "do": "mkdir", "path": path }));
    let done = |got: String| assert!(got.ends_with("done") || got.contains("bytes"), "{got}");
    let refused = |got: String| assert!(got.ends_with("refused (not-permitted)"), "{got}");
    done(mkdir("/data/bare"));
    done(mkdir("/data/bare/objects"));
    done(mkdir("/data/bare/refs"));
    done(call(write("/data/head", "ref: refs/heads/main")));
    refused(call(write("/data/bare/HEAD", "ref: refs/heads/main")));
    refused(call(write("/data/bare/head", "ref: refs/heads/main")));
    refused(call(json!({ "do": "rename", "old": "/data/head", "new": "/data/bare/HEAD" })));
    refused(call(json!({ "do": "link", "old": "/data/head", "new": "/data/bare/HEAD" })));
    refused(call(json!({ "do": "symlink", "target": "../head", "path": "/data/bare/HEAD" })));
    refused(mkdir("/data/bare/HEAD"));
    // In reverse order.
    done(mkdir("/data/other"));
    done(call(write("/data/other/HEAD", "ref: refs/heads/main")));
    done(call(write("/data/other/config", "[core]\nfsmonitor = evil\n")));
    refused(mkdir("/data/other/objects"));
    refused(mkdir("/data/other/REFS"));
    refused(call(write("/data/other/commondir", "../elsewhere")));
    refused(call(json!({ "do": "rename", "old": "/data/bare/refs", "new": "/data/other/refs" })));
    refused(call(json!({ "do": "symlink", "target": "../bare/refs", "path": "/data/other/refs" })));
    // An existing repository is protected, with its entire content.
    workspace.file("data/there/HEAD", "ref: refs/heads/main");
    workspace.file("data/there/refs/heads/main", "");
    refused(call(write("/data/there/config", "[core]\nfsmonitor = evil\n")));
    refused(call(write("/data/there/refs/heads/main", "x")));
    refused(call(json!({ "do": "rename", "old": "/data/there", "new": "/data/moved" })));
    // Granting a part of it as a directory is refused.
    workspace.config(&probe(
        "grants.filesystem = [{ host = \"data/there/refs\", guest = \"/refs\", mode = \"rw\" }]\n",
    ));
    let run = workspace.run(&["check"]);
    assert!(
        run.code != 0 && run.shown().contains("cannot be granted for writing"),
        "{}",
        run.shown()
    );
}

#[test]
fn guarded_names_are_guarded_in_every_spelling() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\", mode = \"rw\" }", "");
    workspace.file("data/x", "");
    let kitbag = workspace.kitbag();
    for name in [
        ".git",
        ".GIT",
        ".gIt",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git\u{200d}",
        ".git.",
        ".git ",
        ".git. .",
        ".git::$INDEX_ALLOCATION",
        "GIT~1",
        "git~23",
        ".kitbag",
        ".\u{212a}itbag",
        "KITBAG~1",
        ".hg",
        ".HG",
        ".jj",
        ".jj.",
        "hg~1",
        "\u{ff0e}git",
    ] {
        for arguments in [
            json!({ "do": "mkdir", "path": format!("/data/{name}") }),
            json!({ "do": "rename", "old": "/data/x", "new": format!("/data/{name}") }),
            write(&format!("/data/{name}"), "gitdir: evil"),
        ] {
            let got = kitbag.call_in_test("probe", arguments.clone());
            assert!(got.ends_with("refused (not-permitted)"), "{arguments}: {got}");
        }
    }
    for name in [".gitignore", "git", ".gitkeep", "digit", "kitbag.toml", "git~", "git~x"] {
        let got = kitbag.call_in_test("probe", write(&format!("/data/{name}"), "fine"));
        assert!(got.ends_with("4 bytes"), "{got}");
    }
}

#[test]
fn kitbags_own_files_stay_below_a_writable_directory() {
    let workspace = Workspace::with_own_cache();
    workspace.config(&probe(
        "grants.filesystem = [{ host = \"..\", guest = \"/all\", mode = \"rw\" }]\n",
    ));
    workspace.own_config("");
    fs::hard_link(
        workspace.home().join(".config/kitbag/config.toml"),
        workspace.outside().join("second-name"),
    )
    .unwrap();
    for arguments in [
        write("/all/home/.config/kitbag/config.toml", "[tools]"),
        write("/all/home/.config/kitbag/new", ""),
        write("/all/second-name", "[tools]"),
        write("/all/cache/new", ""),
        json!({ "do": "rename", "old": "/all/cache", "new": "/all/moved" }),
        json!({ "do": "rename", "old": "/all/home/.config", "new": "/all/moved" }),
        json!({ "do": "rename", "old": "/all/workspace", "new": "/all/moved" }),
        json!({ "do": "rename", "old": "/all/workspace/.kitbag", "new": "/all/moved" }),
    ] {
        let run = workspace.run(&["run", "probe", "--args", &arguments.to_string()]);
        let got = run.success();
        assert!(got.ends_with("refused (not-permitted)\n"), "{arguments}: {got}");
    }
    let run =
        workspace.run(&["run", "probe", "--args", &write("/all/home/mine", "fine").to_string()]);
    assert_eq!(run.success(), "write /all/home/mine: 4 bytes\n");
    // Other processes use the default directories, even if the environment of this one names
    // others.
    let elsewhere = workspace.outside().join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    fs::create_dir_all(workspace.home().join(".cache/kitbag")).unwrap();
    for path in [".config/kitbag/config.toml", ".cache/kitbag/new"] {
        let arguments = write(&format!("/all/home/{path}"), "x").to_string();
        let places = [("XDG_CONFIG_HOME", elsewhere), ("KITBAG_CACHE_DIR", elsewhere)];
        let run = workspace.run_with(&["run", "probe", "--args", &arguments], "", &places);
        assert!(run.stdout.ends_with("refused (not-permitted)\n"), "{}", run.shown());
    }
}

#[test]
fn a_tool_may_create_the_config_home_but_not_kitbags_directory() {
    let workspace = Workspace::new();
    workspace.remove_own_config();
    let home = workspace.home();
    workspace.config(&probe(&format!(
        "grants.filesystem = [{{ host = {home:?}, guest = \"/home\", mode = \"rw\", protected = [] }}]\n"
    )));
    fs::create_dir_all(home.join("mine/kitbag")).unwrap();
    let check = |action: &str, more: &[&str], expected: &str| {
        let action = format!("do={action}");
        let run = workspace.run(&[&["run", "probe", &action], more].concat());
        let sentence = run.success();
        assert!(sentence.trim_end().ends_with(expected), "{action} {more:?}: {sentence}");
    };
    let refused = "refused (not-permitted)";
    check("rename", &["old=/home/mine", "new=/home/.config"], refused);
    check("symlink", &["target=mine", "path=/home/.config"], refused);
    check("write", &["path=/home/.config", "text=x"], refused);
    check("mkdir", &["path=/home/.config"], "done");
    check("mkdir", &["path=/home/.config/other"], "done");
    check("mkdir", &["path=/home/.config/kitbag"], refused);
    check("rename", &["old=/home/mine/kitbag", "new=/home/.config/kitbag"], refused);
    check("symlink", &["target=../mine/kitbag", "path=/home/.config/kitbag"], refused);
    check("rename", &["old=/home/.config", "new=/home/moved"], refused);
    assert!(!home.join(".config/kitbag").exists());
}
