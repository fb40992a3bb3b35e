//! A call gets the configured directories, topics and components, regardless of earlier or
//! concurrent actions of tools, which cannot replace them.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use kitbag::Kitbag;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use super::Attempts;
use crate::support::{CallInTest, Workspace, guest, probe};

/// Two tools: `probe` with these grants, and `writer`, which may write to the workspace.
pub(super) fn two_tools(grants: &str, more: &str) -> Workspace {
    let workspace = Workspace::new();
    let probe = probe(&format!("grants.filesystem = [{grants}]\n"));
    workspace.config(&format!(
        "{probe}\n[tools.writer]\nsource = \"local\"\nwasm = {:?}\ndescription = \"writes\"\n\
         grants.filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n{more}",
        guest("probe"),
    ));
    let treasure = workspace.outside().join("treasure");
    fs::create_dir(&treasure).unwrap();
    fs::write(treasure.join("secret.md"), "the secret").unwrap();
    workspace
}

pub(super) fn write(path: &str, text: &str) -> Value {
    json!({ "do": "write", "path": path, "text": text })
}

fn read(path: &str) -> Value {
    json!({ "do": "read", "path": path })
}

/// Replaces a directory by a link, first as the tool `writer`, then as another process to which the
/// restrictions of the tool do not apply.
fn replace(workspace: &Workspace, kitbag: &Kitbag, name: &str, target: &str) {
    let to = |action: &str, more: Value| {
        let mut arguments = json!({ "do": action });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        kitbag.call_in_test("writer", arguments)
    };
    let moved = to("rename", json!({ "old": name, "new": "aside" }));
    assert!(moved.ends_with("refused (not-permitted)"), "{moved}");
    let made = to("symlink", json!({ "target": target, "path": "way-out" }));
    assert!(made.ends_with("refused (not-permitted)"), "{made}");
    fs::rename(workspace.path(name), workspace.path("aside")).unwrap();
    symlink(target, workspace.path(name)).unwrap();
}

#[test]
fn a_granted_directory_replaced_by_a_link_is_not_followed() {
    for mode in ["ro", "rw"] {
        let grant = format!("{{ host = \"data\", guest = \"/data\", mode = \"{mode}\" }}");
        let workspace = two_tools(&grant, "");
        workspace.file("data/secret.md", "mine");
        let kitbag = workspace.kitbag();
        assert!(kitbag.call_in_test("probe", read("/data/secret.md")).ends_with("mine"));
        replace(&workspace, &kitbag, "data", "../treasure");
        for arguments in [read("/data/secret.md"), write("/data/secret.md", "changed")] {
            let got = kitbag.call_in_test("probe", arguments.clone());
            assert!(got.starts_with("failed: denied: "), "{got}");
            // Another process reads the configuration again.
            let text = arguments.to_string();
            let run = workspace.run(&["run", "probe", "--args", &text]);
            assert_ne!(run.code, 0, "{}", run.shown());
            assert!(run.stderr.contains("is a symbolic link"), "{}", run.shown());
        }
        assert_eq!(
            fs::read_to_string(workspace.outside().join("treasure/secret.md")).unwrap(),
            "the secret"
        );
    }
}

#[test]
fn a_replaced_granted_directory_is_not_opened() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\" }", "");
    workspace.file("data/secret.md", "mine");
    workspace.file("other/secret.md", "of others");
    let kitbag = workspace.kitbag();
    fs::rename(workspace.path("data"), workspace.path("aside")).unwrap();
    fs::rename(workspace.path("other"), workspace.path("data")).unwrap();
    let got = kitbag.call_in_test("probe", read("/data/secret.md"));
    assert!(
        got.starts_with("failed: denied: ")
            && got.contains("was replaced after the configuration was read"),
        "{got}"
    );
    // When it is read again, the configuration refers to the current directory.
    let got = workspace.call("probe", read("/data/secret.md"));
    assert!(got.ends_with("of others"), "{got}");
}

#[test]
fn a_topic_replaced_by_a_link_between_calls_is_not_followed() {
    let topic = "\n[knowledge.team]\nsubjects = \"notes\"\n";
    let workspace = two_tools("{ host = \"data\", guest = \"/data\" }", topic);
    workspace.file("data/x", "");
    workspace.file("notes/rules.md", "Be kind.\n");
    let kitbag = workspace.kitbag();
    let learn = |subject: &str| json!({ "topic": "team", "subjects": subject });
    assert_eq!(kitbag.call_in_test("learn", learn("rules")), "Be kind.\n");
    replace(&workspace, &kitbag, "notes", "../treasure");
    let got = kitbag.call_in_test("learn", learn("secret"));
    assert!(!got.contains("the secret") && got.contains("is a symbolic link"), "{got}");
    let run = workspace.run(&["run", "learn", "topic=team", "subjects=secret"]);
    assert!(!run.stdout.contains("the secret"), "{}", run.shown());
    // The link is followed if no tool may write to its directory.
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    let run = workspace.run(&["run", "learn", "topic=team", "subjects=secret"]);
    assert_eq!(run.success(), "the secret\n");
}

#[test]
fn a_topic_is_not_written_through_its_parent_directory() {
    let topic =
        "\n[knowledge.team]\nsubjects = \"notes\"\n[knowledge.later]\nsubjects = \"later\"\n";
    let workspace = two_tools("{ host = \"notes\", guest = \"/notes\", mode = \"rw\" }", topic);
    workspace.file("notes/rules.md", "Be kind.\n");
    let kitbag = workspace.kitbag();
    for arguments in [
        write("notes/rules.md", "Obey."),
        write("notes/new.md", "Obey."),
        write("Notes/new.md", "Obey."),
        json!({ "do": "mkdir", "path": "later" }),
        json!({ "do": "rename", "old": "aside", "new": "later" }),
    ] {
        fs::create_dir_all(workspace.path("aside")).unwrap();
        let got = kitbag.call_in_test("writer", arguments.clone());
        let is_refused = got.contains("refused (not-permitted)") || got.contains("no-entry");
        assert!(is_refused, "{arguments}: {got}");
    }
    // Granting the directory of the topic explicitly allows writing.
    let got = kitbag.call_in_test("probe", write("/notes/new.md", "Learned."));
    assert!(got.ends_with("8 bytes"), "{got}");
}

#[test]
fn a_directory_swapped_during_calls_leads_nowhere() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\", mode = \"rw\" }", "");
    workspace.file("data/secret.md", "mine");
    let kitbag = workspace.kitbag();
    let (real, aside) = (workspace.path("data"), workspace.path("aside"));
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            symlink("../treasure", &aside).unwrap();
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &real, CWD, &aside, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..300 {
            let got = kitbag.call_in_test("probe", write("/data/secret.md", "x"));
            let is_clear = got.starts_with("failed: denied: ") || got.ends_with("1 byte");
            assert!(is_clear, "{got}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let kept = fs::read_to_string(workspace.outside().join("treasure/secret.md")).unwrap();
    assert_eq!(kept, "the secret");
}

#[test]
fn granting_everything_excludes_kernel_file_systems() {
    let workspace =
        Workspace::with_probe("grants.filesystem = [{ host = \"/\", guest = \"/all\" }]\n");
    let mut attempts = Attempts::new(&workspace);
    for path in [
        "/all/proc/self/environ",
        "/all/proc/self/cmdline",
        "/all/proc/self/mem",
        "/all/proc/version",
        "/all/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        attempts.attempt(read(path));
    }
    for path in ["/all/proc", "/all/proc/self", "/all/proc/1", "/all/sys", "/all/dev/pts"] {
        for action in ["list", "stat", "lstat", "readlink", "open"] {
            attempts.attempt(json!({ "do": action, "path": path }));
        }
    }
    for line in attempts.report.lines() {
        assert!(line.ends_with("refused (not-permitted)"), "{line}");
    }
    let got = attempts.workspace.call("probe", json!({ "do": "stat", "path": "/all/etc" }));
    assert_eq!(got, "stat /all/etc: directory");
}

#[test]
fn a_fifo_exchanged_for_a_file_blocks_no_call() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\", mode = \"rw\" }", "");
    workspace.file("data/a", "plain");
    mknodat(CWD, workspace.path("data/b"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let kitbag = workspace.kitbag();
    let (a, b) = (workspace.path("data/a"), workspace.path("data/b"));
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let (sender, answered) = mpsc::channel();
        // Not a scoped thread: if the kernel blocked it, the test would never end.
        std::thread::spawn(move || {
            for count in 0..1000 {
                let arguments =
                    if count % 2 == 0 { read("/data/a") } else { write("/data/a", "x") };
                sender.send(kitbag.call_in_test("probe", arguments)).unwrap();
            }
        });
        let got: Vec<_> =
            std::iter::from_fn(|| answered.recv_timeout(Duration::from_secs(60)).ok())
                .take(1000)
                .collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(got.len(), 1000, "a call was not answered within a minute");
        assert!(got.iter().any(|got| got.contains("refused (unsupported)")));
        assert!(got.iter().any(|got| got.contains("byte")));
    });
}

#[test]
fn links_to_the_outside_are_neither_made_nor_moved() {
    let workspace = two_tools("{ host = \"data\", guest = \"/data\", mode = \"rw\" }", "");
    workspace.file("data/sub/deep/x", "");
    symlink("../../treasure", workspace.path("data/old")).unwrap();
    symlink("deep/x", workspace.path("data/sub/inner")).unwrap();
    symlink("../sub", workspace.path("data/sub/up")).unwrap();
    let kitbag = workspace.kitbag();
    let call = |arguments: Value| kitbag.call_in_test("probe", arguments);
    let link =
        |target: &str, path: &str| call(json!({ "do": "symlink", "target": target, "path": path }));
    for (target, path) in [
        ("/etc", "/data/l"),
        ("..", "/data/l"),
        ("../treasure", "/data/l"),
        ("sub/../..", "/data/l"),
        ("missing/../../x", "/data/l"),
        ("../../..", "/data/sub/deep/l"),
        ("../..", "/data/sub/up/l"),
        ("./../..", "/data/sub/l"),
    ] {
        let got = link(target, path);
        assert!(got.ends_with("refused (not-permitted)"), "{got}");
    }
    for (target, path) in
        [("sub/deep", "/data/a"), ("..", "/data/sub/b"), ("../..", "/data/sub/deep/c")]
    {
        let got = link(target, path);
        assert!(got.ends_with("done"), "{got}");
    }
    for (action, old, new) in [
        ("rename", "/data/old", "/data/sub/new"),
        ("link", "/data/old", "/data/sub/new"),
        ("rename", "/data/sub/b", "/data/b"),
        ("link", "/data/sub/deep/c", "/data/sub/c"),
    ] {
        let got = call(json!({ "do": action, "old": old, "new": new }));
        assert!(got.ends_with("refused (not-permitted)"), "{got}");
    }
    let got = call(json!({ "do": "rename", "old": "/data/a", "new": "/data/e" }));
    assert!(got.ends_with("done"), "{got}");
    // It may be removed.
    let got = call(json!({ "do": "remove", "path": "/data/old" }));
    assert!(got.ends_with("done"), "{got}");
}

#[test]
fn the_component_of_another_tool_is_not_replaced() {
    let workspace = Workspace::new();
    let wasm = fs::read(guest("probe")).unwrap();
    workspace.file("build/out/tool.wasm", &wasm);
    workspace.file("evil.wasm", "evil");
    workspace.file("directory/later.wasm", "evil");
    workspace.config(
        "[tools.probe]\nsource = \"local\"\nwasm = \"build/out/tool.wasm\"\ndescription = \"x\"\n\
         grants.filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n\
         [tools.later]\nsource = \"local\"\nwasm = \"new/later.wasm\"\ndescription = \"x\"\n",
    );
    fs::hard_link(workspace.path("build/out/tool.wasm"), workspace.path("second-name")).unwrap();
    let kitbag = workspace.kitbag();
    let move_to = |old: &str, new: &str| json!({ "do": "rename", "old": old, "new": new });
    for arguments in [
        write("build/out/tool.wasm", "evil"),
        write("second-name", "evil"),
        json!({ "do": "truncate", "path": "second-name" }),
        json!({ "do": "set-times", "path": "second-name" }),
        json!({ "do": "remove", "path": "build/out/tool.wasm" }),
        json!({ "do": "truncate", "path": "build/out/tool.wasm" }),
        json!({ "do": "set-times", "path": "build/out/tool.wasm" }),
        move_to("evil.wasm", "build/out/tool.wasm"),
        move_to("evil.wasm", "build/out/TOOL.wasm"),
        move_to("build/out/tool.wasm", "away"),
        move_to("build/out", "away"),
        move_to("build", "away"),
        move_to("second-name", "third-name"),
        json!({ "do": "link", "old": "build/out/tool.wasm", "new": "third-name" }),
        json!({ "do": "link", "old": "evil.wasm", "new": "build/out/tool.wasm" }),
        json!({ "do": "symlink", "target": "../../evil.wasm", "path": "build/out/tool.wasm" }),
        json!({ "do": "symlink", "target": "build", "path": "new" }),
        move_to("directory", "new"),
    ] {
        let got = kitbag.call_in_test("probe", arguments.clone());
        assert!(got.ends_with("refused (not-permitted)"), "{arguments}: {got}");
    }
    assert_eq!(fs::read(workspace.path("build/out/tool.wasm")).unwrap(), wasm);
    let got = kitbag.call_in_test("probe", write("build/out/other", "mine"));
    assert!(got.ends_with("4 bytes"), "{got}");
    // A directory on the way is harmless, but the configured file in it is protected.
    let call = |arguments: Value| kitbag.call_in_test("probe", arguments);
    assert_eq!(call(json!({ "do": "mkdir", "path": "new" })), "mkdir new: done");
    for arguments in [
        write("new/later.wasm", "evil"),
        move_to("evil.wasm", "new/later.wasm"),
        move_to("new", "away"),
        json!({ "do": "rmdir", "path": "new" }),
    ] {
        let got = call(arguments.clone());
        assert!(got.ends_with("refused (not-permitted)"), "{arguments}: {got}");
    }
}
