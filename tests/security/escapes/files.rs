//! Files: no access outside the grants, and no changes without a grant to write.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use super::{Attempts, Probe};
use crate::support::{CallInTest, Workspace, guest, probe, snapshot};

/// `probe` with the workspace at `/workspace`, for reading or writing.
fn workspace(mode: &str) -> Workspace {
    workspace_of(Probe::Tool, mode)
}

fn workspace_of(probe: Probe, mode: &str) -> Workspace {
    let grant = format!(
        "[tools.probe.grants]\nfilesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"{mode}\" }}]\n"
    );
    let workspace = probe.workspace(&grant);
    workspace.file("inside.txt", "inside");
    workspace.file("sub/deep.txt", "deep");
    fs::write(workspace.outside().join("secret.txt"), "the secret").unwrap();
    workspace
}

/// Acts on this exact path below `/workspace`.
fn raw(action: &str, path: &str) -> Value {
    json!({ "do": action, "preopen": "/workspace", "path": path })
}

fn secret(workspace: &Workspace) -> String {
    fs::read_to_string(workspace.outside().join("secret.txt")).unwrap()
}

#[test]
fn paths_cannot_leave_a_granted_directory() {
    for probe in Probe::ALL {
        let workspace = workspace_of(probe, "rw");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("What is granted can be read.");
        attempts.attempt(raw("read", "inside.txt"));
        attempts.attempt(raw("read", "sub/../inside.txt"));
        attempts.about("A path that goes up leads nowhere.");
        for path in
            ["../secret.txt", "sub/../../secret.txt", "sub/../../workspace/inside.txt", "..", "../"]
        {
            attempts.attempt(raw("read", path));
        }
        attempts.about("Nor does an absolute one.");
        let absolute = workspace.outside().join("secret.txt");
        attempts.attempt(raw("read", "/etc/passwd"));
        attempts.attempt(raw("read", "/proc/self/environ"));
        attempts.attempt(json!({ "do": "read", "path": "/proc/self/environ" }));
        attempts.attempt(json!({ "do": "stat", "path": "/etc" }));
        let got = attempts
            .workspace
            .call("probe", probe.arguments(&raw("read", absolute.to_str().unwrap())));
        assert!(got.ends_with("refused (not-permitted)"), "{got}");
        attempts.about("Every other operation refuses the same path.");
        for action in [
            "list",
            "stat",
            "lstat",
            "readlink",
            "mkdir",
            "rmdir",
            "remove",
            "truncate",
            "set-times",
        ] {
            attempts.attempt(raw(action, "../secret.txt"));
        }
        attempts.attempt(
            json!({ "do": "write", "preopen": "/workspace", "path": "../secret.txt", "text": "x" }),
        );
        attempts.attempt(
            json!({ "do": "append", "preopen": "/workspace", "path": "../new.txt", "text": "x" }),
        );
        for action in ["link", "rename"] {
            attempts.attempt(json!({
                "do": action, "old": "../secret.txt", "old_preopen": "/workspace",
                "new": "stolen.txt", "new_preopen": "/workspace",
            }));
            attempts.attempt(json!({
                "do": action, "old": "inside.txt", "old_preopen": "/workspace",
                "new": "../given.txt", "new_preopen": "/workspace",
            }));
        }
        attempts.about("Odd paths are an error, or the directory itself.");
        for path in [
            "",
            ".",
            "./",
            "inside.txt/",
            "inside.txt/.",
            "sub//deep.txt",
            "a\0b",
            "inside.txt\0.png",
        ] {
            attempts.attempt(raw("stat", path));
        }
        attempts.attempt(raw("stat", &"x".repeat(4096)));
        attempts.attempt(raw("stat", &"x/".repeat(2048)));
        snapshot!("outside by path", &attempts.report);
        assert_eq!(secret(&workspace), "the secret");
        assert!(!workspace.outside().join("given.txt").exists());
    }
}

#[test]
fn no_symbolic_link_leads_out() {
    for probe in Probe::ALL {
        let workspace = workspace_of(probe, "rw");
        let link = |target: &str, path: &str| symlink(target, workspace.path(path)).unwrap();
        link("../secret.txt", "relative");
        symlink(workspace.outside().join("secret.txt"), workspace.path("absolute")).unwrap();
        link("relative", "chain");
        link("..", "up");
        link("../nothing-there", "dangling");
        link("/proc/self", "proc");
        link("loop", "loop");
        link("inside.txt", "good");
        link("../", "slash");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("A link that stays inside is followed.");
        attempts.attempt(raw("read", "good"));
        attempts.about("A link that was there before does not lead out: as the last component…");
        for path in ["relative", "absolute", "chain", "dangling", "loop"] {
            attempts.attempt(raw("read", path));
            attempts.attempt(
                json!({ "do": "write", "preopen": "/workspace", "path": path, "text": "x" }),
            );
        }
        attempts.about("…and in the middle.");
        for path in [
            "up/secret.txt",
            "sub/../up/secret.txt",
            "proc/environ",
            "proc/cwd/secret.txt",
            "slash/secret.txt",
        ] {
            attempts.attempt(raw("read", path));
            attempts.attempt(raw("list", path));
        }
        attempts.about("A slash at the end makes no difference.");
        for path in ["relative/", "up/", "slash/", "proc/", "sub/../up/"] {
            for action in ["read", "list", "stat", "remove", "rmdir"] {
                attempts.attempt(raw(action, path));
            }
            attempts.attempt(json!({
                "do": "rename", "old": path, "old_preopen": "/workspace",
                "new": "moved", "new_preopen": "/workspace",
            }));
            attempts.attempt(json!({
                "do": "rename", "old": "inside.txt", "old_preopen": "/workspace",
                "new": path, "new_preopen": "/workspace",
            }));
        }
        attempts.about("Nor does one that the tool makes itself.");
        for target in ["../secret.txt", "..", "../", "sub/../../secret.txt"] {
            attempts.attempt(json!({
                "do": "symlink", "target": target, "preopen": "/workspace", "path": "mine",
            }));
            attempts.attempt(raw("read", "mine"));
            attempts.attempt(raw("read", "mine/secret.txt"));
            attempts.attempt(raw("remove", "mine"));
        }
        attempts.attempt(json!({
            "do": "symlink", "target": "/etc/passwd", "preopen": "/workspace", "path": "mine",
        }));
        attempts.attempt(raw("read", "mine"));
        attempts
            .about("What can be asked of a link without following it tells no more than its text.");
        attempts.attempt(raw("lstat", "relative"));
        attempts.attempt(raw("readlink", "relative"));
        snapshot!("symbolic links", &attempts.report);
        assert_eq!(secret(&workspace), "the secret");
        assert!(!workspace.outside().join("nothing-there").exists());
    }
}

#[test]
fn times_beyond_the_valid_dates_are_refused() {
    let workspace = workspace("rw");
    let mut attempts = Attempts::new(&workspace);
    for seconds in [0, u64::MAX] {
        attempts.attempt(json!({
            "do": "set-times", "preopen": "/workspace", "path": "inside.txt", "seconds": seconds,
        }));
    }
    attempts.about("The next call works.");
    attempts.attempt(raw("read", "inside.txt"));
    snapshot!("times", &attempts.report);
    // WASI 0.3 has fewer seconds, which the system may round.
    let workspace = workspace_of(Probe::Asynchronous, "rw");
    let mut attempts = Attempts::of(Probe::Asynchronous, &workspace);
    attempts.attempt(json!({
        "do": "set-times", "preopen": "/workspace", "path": "inside.txt", "seconds": i64::MAX,
    }));
    let got = attempts.attempt(raw("read", "inside.txt"));
    assert_eq!(got, "read inside.txt: 6 bytes: inside");
}

#[test]
fn a_directory_swapped_for_a_link_leads_nowhere() {
    let workspace = workspace("rw");
    fs::create_dir(workspace.outside().join("treasure")).unwrap();
    fs::write(workspace.outside().join("treasure/deep.txt"), "the secret").unwrap();
    let kitbag = workspace.kitbag();
    let (real, aside) = (workspace.path("sub"), workspace.path("aside"));
    let treasure = workspace.outside().join("treasure");
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                fs::rename(&real, &aside).unwrap();
                symlink(&treasure, &real).unwrap();
                fs::remove_file(&real).unwrap();
                fs::rename(&aside, &real).unwrap();
            }
        });
        let mut seen = BTreeSet::new();
        for _ in 0..500 {
            for (action, text) in [("read", ""), ("write", "deep")] {
                let arguments = json!({ "do": action, "preopen": "/workspace", "path": "sub/deep.txt", "text": text });
                seen.insert(kitbag.call_in_test("probe", arguments));
            }
        }
        stop.store(true, Ordering::Relaxed);
        for got in seen {
            assert!(!got.contains("secret"), "{got}");
        }
    });
    let kept = fs::read_to_string(workspace.outside().join("treasure/deep.txt")).unwrap();
    assert_eq!(kept, "the secret");
}

#[test]
fn a_read_only_directory_cannot_be_changed() {
    for probe in Probe::ALL {
        let workspace = workspace_of(probe, "ro");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("Reading works.");
        attempts.attempt(raw("read", "inside.txt"));
        attempts.attempt(raw("list", "sub"));
        attempts.about("Changing does not.");
        for action in ["truncate", "mkdir", "rmdir", "remove", "set-times"] {
            attempts.attempt(raw(action, "inside.txt"));
        }
        attempts.attempt(raw("mkdir", "new"));
        attempts.attempt(raw("rmdir", "sub"));
        for action in ["write", "append"] {
            for path in ["inside.txt", "new.txt"] {
                attempts.attempt(
                    json!({ "do": action, "preopen": "/workspace", "path": path, "text": "x" }),
                );
            }
        }
        attempts.attempt(
            json!({ "do": "set-size", "preopen": "/workspace", "path": "inside.txt", "bytes": 0 }),
        );
        attempts.attempt(
        json!({ "do": "symlink", "target": "inside.txt", "preopen": "/workspace", "path": "l" }),
    );
        for action in ["link", "rename"] {
            attempts.attempt(json!({ "do": action, "old": "inside.txt", "new": "other.txt" }));
        }
        attempts.about("Opening for writing is refused, whatever the flags.");
        for (open, flags) in [
            (json!(["truncate"]), json!(["read"])),
            (json!(["truncate"]), json!([])),
            (json!(["create"]), json!(["read"])),
            (json!(["create", "exclusive"]), json!([])),
            (json!([]), json!(["write"])),
            (json!([]), json!(["read", "write"])),
            (json!([]), json!(["read", "mutate-directory"])),
        ] {
            attempts.attempt(json!({
            "do": "open", "preopen": "/workspace", "path": "inside.txt", "open": open, "flags": flags,
        }));
        }
        snapshot!("read-only", &attempts.report);
        assert_eq!(fs::read_to_string(workspace.path("inside.txt")).unwrap(), "inside");
        let mut names: Vec<_> = fs::read_dir(workspace.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, [".kitbag", "inside.txt", "sub"]);
    }
}

#[test]
fn files_cannot_move_between_directories_with_other_rights() {
    for probe in Probe::ALL {
        let workspace = Workspace::new();
        workspace.config(&probe.table(
            "[tools.probe.grants]\nfilesystem = [\n  { host = \"in\", guest = \"/in\" },\n  \
         { host = \"out\", guest = \"/out\", mode = \"rw\" },\n  \
         { host = \"also\", guest = \"/also\", mode = \"rw\" },\n]\n",
        ));
        workspace.file("in/precious.txt", "precious");
        workspace.file("out/mine.txt", "mine");
        workspace.file("also/there.txt", "there");
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("Between two writable directories a file may move.");
        attempts
            .attempt(json!({ "do": "rename", "old": "/out/mine.txt", "new": "/also/mine.txt" }));
        attempts.attempt(json!({ "do": "link", "old": "/also/mine.txt", "new": "/out/mine.txt" }));
        attempts.about("Out of and into a read-only one it may not, and it gets no second name.");
        for action in ["link", "rename"] {
            attempts.attempt(
                json!({ "do": action, "old": "/in/precious.txt", "new": "/out/stolen.txt" }),
            );
            attempts
                .attempt(json!({ "do": action, "old": "/out/mine.txt", "new": "/in/planted.txt" }));
        }
        snapshot!("across directories", &attempts.report);
        assert!(!workspace.path("out/stolen.txt").exists());
        assert!(!workspace.path("in/planted.txt").exists());
    }
}

#[test]
fn the_configuration_and_git_are_never_written() {
    for probe in Probe::ALL {
        let workspace = workspace_of(probe, "rw");
        workspace.file(".kitbag/tools/other.wasm", "");
        workspace.file(".git/config", "[core]");
        workspace.file(".git/hooks/pre-commit", "#!/bin/sh");
        workspace.file("sub/.git", "gitdir: ../.git");
        workspace.file("control/config", "[core]");
        symlink(".git", workspace.path("alias")).unwrap();
        symlink(".git/config", workspace.path("alias-of-file")).unwrap();
        symlink(".git/new", workspace.path("alias-of-nothing")).unwrap();
        let before = fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
        let write = |path: &str| json!({ "do": "write", "preopen": "/workspace", "path": path, "text": "x" });
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("Elsewhere in the same directory the tool may write.");
        attempts.attempt(write("control/config"));
        attempts.attempt(write("control/new"));
        attempts.about("Reading is granted.");
        attempts.attempt(raw("read", ".git/config"));
        attempts.attempt(raw("list", ".git"));
        attempts.about("Writing is not, by whatever name.");
        for path in [
            ".kitbag/config.toml",
            ".kitbag/tools/new.wasm",
            ".kitbag/tools/other.wasm",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/hooks/new",
            ".GIT/config",
            "sub/.git",
            "sub/../.git/config",
            "./.git/./config",
            ".git//config",
            "alias/config",
            "alias/hooks/../config",
            "alias-of-file",
            "alias-of-nothing",
            "new/.git",
        ] {
            attempts.attempt(write(path));
        }
        attempts.about("Nor is any other change.");
        attempts.attempt(raw("truncate", ".git/config"));
        attempts.attempt(raw("mkdir", ".git/new"));
        attempts.attempt(raw("mkdir", "control/.git"));
        attempts.attempt(raw("remove", ".git/config"));
        attempts.attempt(raw("remove", "alias/config"));
        attempts.attempt(raw("rmdir", ".kitbag"));
        attempts.attempt(raw("set-times", ".git/config"));
        attempts.attempt(
            json!({ "do": "set-size", "preopen": "/workspace", "path": ".git/config", "bytes": 0 }),
        );
        attempts.attempt(
            json!({ "do": "append", "preopen": "/workspace", "path": ".git/config", "text": "x" }),
        );
        attempts.attempt(
        json!({ "do": "symlink", "target": "control", "preopen": "/workspace", "path": ".git/x" }),
    );
        attempts.about("A second name, a new name, and a swap of the whole directory are refused.");
        for (action, old, new) in [
            ("link", ".git/config", "handle"),
            ("link", "alias/config", "handle"),
            ("link", "control/config", ".git/planted"),
            ("rename", ".git", "git"),
            ("rename", "control", ".git"),
            ("rename", ".git/config", "config"),
            ("rename", "control/config", ".git/hooks/pre-commit"),
            ("rename", ".kitbag", "kitbag"),
        ] {
            attempts.attempt(json!({ "do": action, "old": old, "new": new }));
        }
        attempts.about("A directory that was opened first gives no way round it.");
        attempts.attempt(json!({
        "do": "open", "preopen": "/workspace", "path": ".git/config", "flags": ["read", "write"],
    }));
        attempts.attempt(json!({
        "do": "open", "preopen": "/workspace", "path": ".git", "flags": ["read", "mutate-directory"],
    }));
        snapshot!("configuration and git", &attempts.report);
        assert_eq!(fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap(), before);
        assert_eq!(fs::read_to_string(workspace.path(".git/config")).unwrap(), "[core]");
        assert_eq!(
            fs::read_to_string(workspace.path(".git/hooks/pre-commit")).unwrap(),
            "#!/bin/sh"
        );
        assert_eq!(fs::read_dir(workspace.path(".git")).unwrap().count(), 2);
    }
}

#[test]
fn the_host_checks_grants_again() {
    use kitbag::contract::{Action, Limits};
    use kitbag::host::{Call, ComponentSource, Guard, GuardedPaths, Host, HostOptions, RunContext};
    use kitbag::policy::{Access, DirectoryGrant, Grants};
    let workspace = Workspace::new();
    let own = vec![workspace.home()];
    let guard = Arc::new(Guard::new(GuardedPaths { own, ..GuardedPaths::default() }));
    let call = |host: &std::path::Path, access: Access, arguments: &str| {
        let sandbox = Host::new(HostOptions::default());
        let alone = RunContext::default();
        let source = ComponentSource::File(guest("probe").into());
        let component = sandbox.component(&source, &Limits::default(), &alone);
        let guest = "/data".parse().unwrap();
        let directories = vec![DirectoryGrant {
            host: host.to_owned(),
            guest,
            access,
            include: Vec::new(),
            protected: None,
            identity: None,
        }];
        let call = Call {
            name: "probe".into(),
            function: None,
            action: Action::Run,
            arguments: arguments.into(),
            answers: "{}".into(),
            grants: Grants::from(directories).into(),
            guard: Arc::clone(&guard),
            secrets: Default::default(),
            storage: None,
            tools: None,
            limits: Limits::default(),
        };
        let completion = sandbox.call_blocking(&component.unwrap(), &call, &alone);
        workspace.redact(&format!("{:?}", completion.result.map_err(|error| error.to_string())))
    };
    let mut text = String::new();
    for (path, access) in [
        (workspace.home(), Access::ReadOnly),
        (workspace.home(), Access::ReadWrite),
        (workspace.home().join(".."), Access::ReadWrite),
        (workspace.path(".kitbag"), Access::ReadWrite),
        (workspace.path("nowhere"), Access::ReadOnly),
    ] {
        text.push_str(&format!(
            "{access} {}\n  {}\n",
            workspace.redact(&path.display().to_string()),
            call(&path, access, r#"{ "do": "list", "path": "/data/a" }"#)
        ));
    }
    snapshot!("the host's own check", &text);
    // A call that opens no file is not affected by a missing directory.
    let printed = call(&workspace.path("nowhere"), Access::ReadOnly, r#"{ "do": "print" }"#);
    assert!(printed.starts_with("Ok(Success("), "{printed}");
}

#[test]
fn a_fifo_a_device_and_a_socket_are_not_opened() {
    for probe in Probe::ALL {
        let workspace = workspace_of(probe, "rw");
        let make = |path: &str, kind| {
            mknodat(CWD, workspace.path(path), kind, Mode::RUSR | Mode::WUSR, 0).unwrap();
        };
        make("fifo", FileType::Fifo);
        symlink("fifo", workspace.path("link-to-fifo")).unwrap();
        let _socket = UnixListener::bind(workspace.path("socket")).unwrap();
        let mut attempts = Attempts::of(probe, &workspace);
        attempts.about("They can be seen, and none is opened: that would wait for a writer.");
        for path in ["fifo", "link-to-fifo", "socket"] {
            attempts.attempt(raw("stat", path));
            attempts.attempt(raw("read", path));
            attempts.attempt(
                json!({ "do": "write", "preopen": "/workspace", "path": path, "text": "x" }),
            );
        }
        attempts.about("Listing the directory goes on.");
        attempts.attempt(raw("list", "."));
        let devices = probe.workspace(
        "[tools.probe.grants]\nfilesystem = [{ host = \"/dev\", guest = \"/dev\", mode = \"ro\" }]\n",
    );
        let mut more = Attempts::of(probe, &devices);
        for path in ["/dev/zero", "/dev/null", "/dev/tty"] {
            more.attempt(json!({ "do": "read", "path": path }));
        }
        attempts.about("Nor is a device, where a person has granted them.");
        attempts.report.push_str(&more.report);
        snapshot!("fifo, device, socket", &attempts.report);
    }
}

#[test]
fn kitbags_own_directories_cannot_be_granted_for_writing() {
    let workspace = Workspace::with_own_cache();
    fs::create_dir_all(workspace.cache().join("sub")).unwrap();
    let check = |mode: &str| {
        workspace.config(&probe(&format!(
            "[tools.probe.grants]\nfilesystem = [{{ host = \"../cache/sub\", guest = \"/all\", mode = \"{mode}\" }}]\n"
        )));
        workspace.run(&["run", "probe", "do=preopens"])
    };
    assert!(check("ro").success().ends_with("preopens: /all\n"));
    let refused = check("rw");
    snapshot!("grant of the cache", &refused.shown());
}
