//! Calls that change files and are killed while they run: each file has its old or its new content,
//! and the next call removes temporary files.

use std::collections::HashSet;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::files::names;

/// Kills a call as soon as it creates a name with this prefix in the directory, and returns true if
/// the call had not ended before.
fn kill_at(workspace: &Workspace, call: &Call, name: &str) -> bool {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let made = inotify::init(flags).unwrap();
    let flags = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&made, workspace.root(), flags).unwrap();
    let mut child = workspace.start(call.tool, &call.arguments, call.answers);
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&made, &mut buffer);
    loop {
        let mut ready = [PollFd::new(&made, PollFlags::IN), PollFd::new(&ended, PollFlags::IN)];
        poll(&mut ready, None).unwrap();
        let has_ended = !ready[1].revents().is_empty();
        let mut is_made = false;
        while let Ok(event) = events.next() {
            is_made |=
                event.file_name().is_some_and(|it| it.to_bytes().starts_with(name.as_bytes()));
        }
        if is_made || has_ended {
            break;
        }
    }
    // It may have just ended.
    let _ = child.kill();
    child.wait().unwrap().signal() == Some(Signal::KILL.as_raw())
}

struct Call {
    tool: &'static str,
    arguments: Value,
    answers: &'static [&'static str],
    /// The possible contents of a file: before and after.
    expected: Vec<(&'static str, [Option<String>; 2])>,
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn killed_calls_leave_whole_files_and_are_cleaned_up() {
    let [old, new] = ["old\n", "new\n"].map(|line| line.repeat(20_000));
    let contents = || [Some(old.clone()), Some(new.clone())];
    let calls = [
        Call {
            tool: "write_file",
            arguments: json!({ "path": "a", "content": new }),
            answers: &[],
            expected: vec![("a", contents())],
        },
        Call {
            tool: "edit_file",
            arguments: json!({
                "path": "a",
                "edits": [{ "old_text": "old", "new_text": "new", "all": true }],
            }),
            answers: &[],
            expected: vec![("a", contents())],
        },
        Call {
            tool: "apply_patch",
            arguments: json!({
                "patch": "*** Begin Patch\n*** Update File: c\n@@\n-1\n+2\n*** Delete File: b\n\
                          *** End Patch",
            }),
            answers: &["remove=true"],
            expected: vec![
                ("b", [Some(old.clone()), None]),
                ("c", [Some("1\n".into()), Some("2\n".into())]),
            ],
        },
        Call {
            tool: "remove_path",
            arguments: json!({ "path": "in", "recursive": true }),
            answers: &["remove=true"],
            expected: vec![],
        },
    ];
    let mut killed = HashSet::new();
    for call in &calls {
        for name in [".kitbag-tmp-", ".kitbag-lock-", ".kitbag-old-"] {
            // A fast call may end before it is killed: these two calls are then repeated.
            let has_to_be =
                matches!(call.tool, "write_file" | "edit_file") && name == ".kitbag-tmp-";
            for round in 0..100 {
                if round >= 4 && (!has_to_be || killed.contains(&(call.tool, name))) {
                    break;
                }
                let workspace = Workspace::of_files();
                workspace.file("a", &old);
                workspace.file("b", &old);
                workspace.file("c", "1\n");
                for number in 0..50 {
                    workspace.file(&format!("in/{number}"), "x");
                }
                if kill_at(&workspace, call, name) {
                    killed.insert((call.tool, name));
                }
                for (path, expected) in &call.expected {
                    let found = read(&workspace.path(path));
                    assert!(expected.contains(&found), "{} {name} {path}", call.tool);
                }
                if call.tool == "remove_path" {
                    // Either untouched or completely moved away.
                    let left = fs::read_dir(workspace.path("in")).map_or(50, Iterator::count);
                    assert_eq!(left, 50);
                    workspace.file("in/again", "");
                } else if call.tool == "apply_patch" {
                    workspace.file("b", &old);
                    workspace.file("c", "1\n");
                } else {
                    workspace.file("a", &old);
                }
                workspace.tool(call.tool, &call.arguments, call.answers).success();
                let left = names(&workspace.root());
                assert!(
                    !left.iter().any(|it| it.starts_with(".kitbag-")),
                    "{} {left:?}",
                    call.tool
                );
            }
        }
    }
    // For the other calls it depends on the system.
    assert!(killed.contains(&("write_file", ".kitbag-tmp-")), "{killed:?}");
    assert!(killed.contains(&("edit_file", ".kitbag-tmp-")), "{killed:?}");
}
