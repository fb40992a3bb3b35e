//! `$TEMP`: a private directory of each run, initially empty and removed after the run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{Run, Workspace, probe, until};

/// A workspace whose `probe` has such a directory, and the system directory that contains them.
fn workspace() -> (Workspace, PathBuf) {
    let workspace = Workspace::new();
    workspace.config(&probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \"$TEMP\", guest = \"/tmp\" },\n\
         { host = \".\", guest = \"/workspace\" }]\n",
    ));
    let system = workspace.outside().join("tmp");
    fs::create_dir(&system).unwrap();
    (workspace, system)
}

fn run(workspace: &Workspace, system: &Path, arguments: &[&str]) -> Run {
    let arguments = [&["run", "probe"], arguments].concat();
    workspace.run_with(&arguments, "", &[("TMPDIR", system.to_str().unwrap())])
}

/// The existing temporary directories.
fn made(system: &Path) -> Vec<PathBuf> {
    fs::read_dir(system).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn each_run_has_its_own_directory_until_its_end() {
    let (workspace, system) = workspace();
    let write = run(&workspace, &system, &["do=write", "path=/tmp/a", "text=x"]);
    assert_eq!(write.success(), "write /tmp/a: 1 byte\n");
    assert_eq!(made(&system), [] as [PathBuf; 0]);
    let list = run(&workspace, &system, &["do=list", "path=/tmp"]);
    assert_eq!(list.success(), "list /tmp: empty\n");
    // The run leaves a marker there, and then ends.
    for (end, code) in [("fail", 1), ("panic", 7), ("unreachable", 7), ("exit", 7), ("ask", 3)] {
        let run = run(&workspace, &system, &["do=print", &format!("then={end}")]);
        assert_eq!(run.code, code, "{end}: {}", run.shown());
        assert_eq!(made(&system), [] as [PathBuf; 0], "{end}");
    }
    let limited = run(
        &workspace,
        &system,
        &["do=gather", "path=/tmp/a", "until=/tmp/a", "then=spin", "--time", "300ms"],
    );
    assert_eq!(limited.code, 5, "{}", limited.shown());
    assert_eq!(made(&system), [] as [PathBuf; 0]);
    // The run after a question has another directory.
    let kept = ["do=tmp"];
    for _ in 0..2 {
        let run = run(&workspace, &system, &kept);
        assert_eq!(run.success(), "tmp: marker absent, left one\n");
    }
}

#[test]
fn concurrent_runs_do_not_see_each_other() {
    let (workspace, system) = workspace();
    let mut client = Client::start_in(&workspace, &[("TMPDIR", system.to_str().unwrap())])
        .after_handshake(json!({}));
    let arguments = json!({ "do": "gather", "path": "/tmp/mine", "until": "/workspace/signal" });
    let first = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    // Until the run has created its file.
    let find = || made(&system).into_iter().find(|path| path.join("mine").exists());
    until(|| find().is_some());
    let of_first = find().unwrap();
    assert_eq!(fs::metadata(&of_first).unwrap().permissions().mode() & 0o777, 0o700);
    let mut second = |arguments| client.call("probe", arguments)["content"][0]["text"].clone();
    assert_eq!(second(json!({ "do": "list", "path": "/tmp" })), "list /tmp: empty");
    // Nor through any path to it.
    let name = of_first.file_name().unwrap().to_str().unwrap();
    for path in [
        format!("/tmp/../{name}/mine"),
        format!("../{name}/mine"),
        of_first.join("mine").to_str().unwrap().to_owned(),
    ] {
        for preopen in ["/tmp", "/workspace"] {
            let said = second(json!({ "do": "read", "preopen": preopen, "path": path }));
            assert!(said.as_str().unwrap().contains("refused"), "{path}: {said}");
        }
    }
    workspace.file("signal", "");
    let answer = client.answer(first);
    assert_eq!(answer["result"]["content"][0]["text"], "gather /tmp/mine: let go", "{answer}");
    assert_eq!(made(&system), [] as [PathBuf; 0]);
}

#[test]
fn it_is_removed_after_an_interrupt_or_with_the_server() {
    let (workspace, system) = workspace();
    let wait = || until(|| made(&system).iter().any(|path| path.join("mine").exists()));
    let mut command = workspace.command();
    command.args(["run", "probe", "do=gather", "path=/tmp/mine", "until=/workspace/never"]);
    let mut child = command.env("TMPDIR", &system).spawn().unwrap();
    wait();
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(made(&system), [] as [PathBuf; 0]);
    // Cancelled by the client, and by the end of the client.
    let mut client = Client::start_in(&workspace, &[("TMPDIR", system.to_str().unwrap())])
        .after_handshake(json!({}));
    let arguments = json!({ "do": "gather", "path": "/tmp/mine", "until": "/workspace/never" });
    let call = json!({ "name": "probe", "arguments": arguments });
    let id = client.send("tools/call", call.clone());
    wait();
    client.notify("notifications/cancelled", json!({ "requestId": id }));
    until(|| made(&system).is_empty());
    client.send("tools/call", call);
    wait();
    // Enough files that removing them takes longer than ending the process.
    for n in 0..2_000 {
        fs::write(made(&system)[0].join(n.to_string()), "").unwrap();
    }
    assert!(client.close().0.success());
    assert_eq!(made(&system), [] as [PathBuf; 0]);
}

#[test]
fn links_cannot_leave_it_and_no_content_stays() {
    let (workspace, system) = workspace();
    workspace.file("secret.txt", "secret");
    fs::write(system.join("other"), "other").unwrap();
    let refused = |arguments: &[&str]| {
        let run = run(&workspace, &system, arguments);
        assert!(run.stdout.contains("refused"), "{arguments:?}: {}", run.shown());
    };
    for target in ["/etc", "../other", "..", "/workspace"] {
        refused(&["do=symlink", &format!("target={target}"), "path=/tmp/link"]);
    }
    // Files cannot be moved or linked between it and a read-only directory.
    for how in ["rename", "link"] {
        refused(&[&format!("do={how}"), "old=/workspace/secret.txt", "new=/tmp/a"]);
    }
    refused(&["do=read", "preopen=/tmp", "path=../other"]);
    // Remaining files are removed with it, but not the target of a link inside.
    let linked = run(&workspace, &system, &["do=symlink", "target=a", "path=/tmp/link"]);
    assert_eq!(linked.success(), "symlink /tmp/link to a: done\n");
    let names: Vec<_> =
        made(&system).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["other"]);
}
