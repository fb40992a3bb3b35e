//! Faults of the machine: a full disk, a directory that cannot be written, no
//! home, a process that is killed. The answer is right whatever becomes of the
//! cache, nothing is left half-written, and one message says what was wrong.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Workspace, crafted, snapshot};

/// A workspace with the smallest tool and a cache that does not exist yet.
fn tiny() -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/tiny.wasm", crafted::tool("a:b/c", ""));
    workspace
}

/// The names of what lies in the cache.
fn cached(workspace: &Workspace) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workspace.cache()) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_full_disk_costs_the_cache_entry_and_nothing_else() {
    let workspace = tiny();
    // A limit on the size of files stands for a full disk: the write fails in
    // the middle. The signal that comes with it is ignored, as for a full disk
    // there is none.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" run tiny"]);
    command.arg(env!("CARGO_BIN_EXE_kitbag")).current_dir(workspace.root());
    command.env_clear().env("HOME", workspace.home());
    command.env("KITBAG_CACHE_DIR", workspace.cache()).env("PATH", "/usr/bin:/bin");
    let output = command.output().unwrap();
    let stderr = workspace.redact(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{stderr}");
    snapshot("faults: full disk", &stderr);
    assert_eq!(cached(&workspace), Vec::<String>::new());
    // With room again it is written.
    assert_eq!(workspace.run(&["run", "tiny"]).success(), "ok\n");
    assert_eq!(cached(&workspace).len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let workspace = tiny();
    // Where nobody may make a directory, not even root.
    let nowhere = [("KITBAG_CACHE_DIR", "/proc/kitbag")];
    let run = workspace.run_with(&["run", "tiny"], "", &nowhere);
    snapshot("faults: no cache", &run.shown());
}

#[test]
fn without_a_home_everything_but_the_cache_works() {
    let workspace = tiny();
    let mut command = workspace.command();
    command.env_clear().args(["run", "tiny"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((&*output.stdout, &*stderr), (&b"ok\n"[..], ""));
    assert_eq!(cached(&workspace), Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let workspace = tiny();
    fs::remove_file(workspace.path(".kitbag/tools/tiny.wasm")).unwrap();
    // A link to something that nobody may read, not even root.
    std::os::unix::fs::symlink("/proc/self/mem", workspace.path(".kitbag/tools/tiny.wasm"))
        .unwrap();
    fs::create_dir(workspace.path(".kitbag/config.toml")).unwrap();
    let mut report = workspace.session(&[&["list"]]);
    fs::remove_dir(workspace.path(".kitbag/config.toml")).unwrap();
    report.push_str(&workspace.session(&[&["run", "tiny"]]));
    snapshot("faults: unreadable", &report);
}

#[test]
fn a_process_that_is_killed_leaves_nothing_that_is_believed() {
    let workspace = tiny();
    // Killed at ever later moments, from before the cache to after it: 60 steps
    // over one and a half times what a run takes here.
    let start = std::time::Instant::now();
    workspace.run(&["run", "tiny"]).success();
    let step_time = start.elapsed() * 3 / 2 / 60;
    fs::remove_dir_all(workspace.cache()).unwrap();
    let mut survived = 0;
    for step in 0..60 {
        let mut command = workspace.command();
        command.args(["run", "tiny"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        std::thread::sleep(step_time * step);
        let _ = child.kill();
        survived += u32::from(child.wait().unwrap().success());
        let run = workspace.run(&["run", "tiny"]);
        assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "ok\n", ""), "step {step}");
        if step % 2 == 0 {
            fs::remove_dir_all(workspace.cache()).unwrap();
        }
    }
    assert!((1..60).contains(&survived), "{survived} of 60 were not killed");
    workspace.run(&["cache", "--clear"]).success();
    assert_eq!(cached(&workspace), Vec::<String>::new());
}

#[test]
fn two_hundred_processes_at_once_share_an_empty_cache() {
    let workspace = tiny();
    let start = || {
        let mut command = workspace.command();
        command.args(["run", "tiny"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = (0..200).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((&*output.stdout, &*stderr), (&b"ok\n"[..], ""));
    }
    assert_eq!(cached(&workspace).len(), 1);
}

#[test]
fn the_cache_keeps_what_is_used_and_within_its_bounds() {
    use std::time::{Duration, SystemTime};
    const DAY: Duration = Duration::from_secs(86_400);
    let workspace = Workspace::with_own_cache();
    let tool = |number: usize| {
        let core = format!("(global i32 (i32.const {number}))");
        workspace
            .file(&format!(".kitbag/tools/t{number}.wasm"), crafted::tool_with_core(&core, ""));
        let name = format!("t{number}");
        assert_eq!(workspace.run(&["run", &name]).success(), "ok\n");
    };
    let entries = || fs::read_dir(workspace.cache()).unwrap().count();
    let open = |path: &Path| fs::File::options().write(true).open(path).unwrap();
    let used =
        |path: &Path, days: u32| open(path).set_modified(SystemTime::now() - DAY * days).unwrap();
    tool(0);
    let first = workspace.cached();
    // A use is noted, so that it counts as new, and not before a day has gone by.
    used(&first, 31);
    tool(0);
    let age = || fs::metadata(&first).unwrap().modified().unwrap().elapsed().unwrap_or_default();
    assert!(age() < DAY);
    used(&first, 29);
    tool(1);
    assert_eq!(entries(), 2);
    // What is too old goes when something new comes, and what a killed process left.
    used(&first, 31);
    let partial = workspace.cache().join(".partial-1-0");
    fs::write(&partial, "").unwrap();
    used(&partial, 2);
    tool(2);
    assert!(!first.exists() && !partial.exists());
    assert_eq!(entries(), 2);
    // What takes too much room goes too, the oldest first; these have no content.
    for (name, days) in [("a", 3), ("b", 2), ("c", 1)] {
        let path = workspace.cache().join(format!("{name}.kitbag"));
        fs::write(&path, "").unwrap();
        open(&path).set_len(1 << 30).unwrap();
        used(&path, days);
    }
    tool(3);
    let is_there = |name: &str| workspace.cache().join(format!("{name}.kitbag")).exists();
    assert_eq!(["a", "b", "c"].map(is_there), [false, false, true]);
    assert_eq!(entries(), 4);
    let cache = workspace.run(&["cache"]).success();
    assert!(
        cache.ends_with("kept: at most 2 GiB, each for 30 days after its last use\n"),
        "{cache}"
    );
}
