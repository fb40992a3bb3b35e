//! Faults of the machine: a full disk, a read-only directory, no home, a killed process. The answer
//! is correct regardless of the cache, no file is partially written, and one message names the
//! fault.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Run, Workspace, crafted, guest, snapshot};

/// A workspace with the smallest tool and a cache that does not exist yet.
fn tiny() -> Workspace {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/tiny.wasm", crafted::tool("a:b/c", ""));
    workspace
}

/// The names of the files in the cache.
fn cached(workspace: &Workspace) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workspace.cache()) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Runs a shell command in the workspace, where `$kitbag` is the binary.
fn shell(workspace: &Workspace, line: &str) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(workspace.root());
    command.env_clear().env("HOME", workspace.home()).env("PATH", "/usr/bin:/bin");
    command.env("KITBAG_CACHE_DIR", workspace.cache());
    command.env("KITBAG_TRUST_WORKSPACE", "1");
    command.env("kitbag", env!("CARGO_BIN_EXE_kitbag"));
    let output = command.output().unwrap();
    Run {
        // The exit code that a shell reports after a signal.
        code: output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap()),
        stdout: workspace.redact(&String::from_utf8_lossy(&output.stdout)),
        stderr: workspace.redact(&String::from_utf8_lossy(&output.stderr)),
    }
}

#[test]
fn a_full_disk_only_costs_the_cache_entry() {
    let workspace = tiny();
    // A limit on the file size simulates a full disk: the write fails halfway.
    let run = shell(&workspace, "ulimit -f 16; exec $kitbag run tiny");
    assert_eq!(run.stdout, "ok\n", "{}", run.shown());
    snapshot!("full disk", &run.stderr);
    assert_eq!(cached(&workspace), Vec::<String>::new());
    // With free space it is written.
    assert_eq!(workspace.run(&["run", "tiny"]).success(), "ok\n");
    assert_eq!(cached(&workspace).len(), 1);
}

#[test]
fn a_file_size_limit_is_an_error_and_ends_no_process() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\n\
         filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n",
    );
    workspace.run(&["run", "probe", "do=preopens"]).success();
    let report = [
        // Written by a tool in a call.
        "ulimit -f 0; exec $kitbag run probe do=write path=a text=hello",
        "ulimit -f 1; exec $kitbag run probe do=set-size write:=true path=a bytes:=1000000",
        // Written by kitbag.
        "ulimit -f 0; exec $kitbag list >list.txt",
        "ulimit -f 0; exec $kitbag --help >help.txt",
    ]
    .map(|line| format!("$ {line}\n{}\n", shell(&workspace, line).shown()));
    snapshot!("limit on the size of files", &report.concat());
}

#[test]
fn unwritable_output_has_its_own_exit_code() {
    let workspace = tiny();
    workspace.run(&["run", "tiny"]).success();
    let commands = [
        "run tiny",
        "run tiny --json",
        "run missing --json",
        "run --json --tiem 1s",
        "list",
        "describe tiny",
        "inspect .kitbag/tools/tiny.wasm",
        "check",
        "export --format mcp",
        "mcp-config cursor",
        "config --show",
        "config --schema",
        "cache",
        "completions bash",
        "man",
        "--help",
        "--version",
        "run --help",
    ];
    for command in commands {
        let run = shell(&workspace, &format!("exec $kitbag {command} >/dev/full"));
        assert_eq!(run.code, 8, "{command}: {}", run.shown());
        let expected = "error: standard output cannot be written\n\
                        caused by: No space left on device (os error 28)\n";
        assert!(run.stderr.ends_with(expected), "{command}: {}", run.shown());
    }
}

#[test]
fn a_low_limit_of_open_files_is_reported_with_a_fix() {
    let workspace = tiny();
    workspace.file("notes/a.md", "A");
    workspace.config("[knowledge.team]\nsubjects = \"notes\"\n");
    workspace.run(&["run", "tiny"]).success();
    for command in ["run tiny --json", "run learn topic=team --json", "check --json"] {
        let mut codes = Vec::new();
        // The dynamic loader needs one file before the program starts.
        for limit in 5..24 {
            let run = shell(&workspace, &format!("ulimit -n {limit}; exec $kitbag {command}"));
            codes.push(run.code);
            if run.code != 0 {
                let error =
                    format!("error: this process may have only {limit} files open at once\n");
                let hint = "hint: allow more, such as with `ulimit -n 1024`\n";
                let is_said = run.stderr.contains(&error) && run.stderr.ends_with(hint);
                assert!(is_said, "{command}, {limit}: {}", run.shown());
            }
            if run.code == 5 && !command.starts_with("check") {
                assert_eq!(run.json()["kind"], "limit", "{command}, {limit}: {}", run.shown());
            }
        }
        // A tool itself may also fail with 1, because it cannot open a file.
        let is_known = |code: &i32| [0, 1, 5].contains(code);
        assert!(codes.iter().all(is_known), "{command}: {codes:?}");
        assert_eq!((codes[0], codes[18]), (5, 0), "{command}: {codes:?}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let workspace = tiny();
    // A path at which not even root can create a directory.
    let nowhere = [("KITBAG_CACHE_DIR", "/proc/kitbag")];
    let run = workspace.run_with(&["run", "tiny"], "", &nowhere);
    snapshot!("no cache", &run.shown());
}

#[test]
fn without_a_home_only_the_cache_is_missing() {
    let workspace = tiny();
    let mut command = workspace.command();
    command.env_clear().env("KITBAG_TRUST_WORKSPACE", "1").args(["run", "tiny"]);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((&*output.stdout, &*stderr), (&b"ok\n"[..], ""));
    assert_eq!(cached(&workspace), Vec::<String>::new());
}

#[test]
fn a_killed_process_leaves_no_invalid_cache_entry() {
    let workspace = tiny();
    // Killed later each time, from before the use of the cache until after it, in steps of a
    // fortieth of a run, until some processes end before the kill.
    let start = std::time::Instant::now();
    workspace.run(&["run", "tiny"]).success();
    let step_time = start.elapsed() / 40;
    fs::remove_dir_all(workspace.cache()).unwrap();
    let (mut survived, mut killed) = (0, 0);
    for step in 0.. {
        let mut command = workspace.command();
        command.args(["run", "tiny"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        std::thread::sleep(step_time * step);
        let _ = child.kill();
        match child.wait().unwrap().success() {
            true => survived += 1,
            false => killed += 1,
        }
        let run = workspace.run(&["run", "tiny"]);
        assert_eq!((run.code, &*run.stdout, &*run.stderr), (0, "ok\n", ""), "step {step}");
        if step % 2 == 0 {
            fs::remove_dir_all(workspace.cache()).unwrap();
        }
        if survived == 5 {
            break;
        }
    }
    assert!(killed > 0, "none was killed");
    workspace.run(&["cache", "--clear"]).success();
    assert_eq!(cached(&workspace), Vec::<String>::new());
}

#[test]
fn two_hundred_concurrent_processes_share_an_empty_cache() {
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
fn the_cache_keeps_used_entries_within_its_limits() {
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
    // A use refreshes the date of an entry, at most once a day.
    used(&first, 31);
    tool(0);
    let age = || fs::metadata(&first).unwrap().modified().unwrap().elapsed().unwrap_or_default();
    assert!(age() < DAY);
    used(&first, 29);
    tool(1);
    assert_eq!(entries(), 2);
    // Entries that are too old, and the files of a killed process, are removed when a new entry is
    // added.
    used(&first, 31);
    let partial = workspace.cache().join(".partial-1-0");
    fs::write(&partial, "").unwrap();
    used(&partial, 2);
    tool(2);
    assert!(!first.exists() && !partial.exists());
    assert_eq!(entries(), 2);
    // If the cache is too large, the oldest entries are removed; these are sparse files.
    let entry = |name: &str| workspace.cache().join(format!("{}.kitbag", name.repeat(64)));
    for (name, days) in [("a", 3), ("b", 2), ("c", 1)] {
        let path = entry(name);
        fs::write(&path, "").unwrap();
        open(&path).set_len(1 << 30).unwrap();
        used(&path, days);
    }
    tool(3);
    let is_there = |name: &str| entry(name).exists();
    assert_eq!(["a", "b", "c"].map(is_there), [false, false, true]);
    assert_eq!(entries(), 4);
    let cache = workspace.run(&["cache"]).success();
    assert!(
        cache.ends_with("kept: at most 2 GiB, each for 30 days after its last use\n"),
        "{cache}"
    );
}

#[test]
fn a_failed_describe_is_not_stored() {
    let workspace = Workspace::with_own_cache();
    workspace.file(".kitbag/tools/probe.wasm", fs::read(guest("probe")).unwrap());
    // Enough address space to compile, but too little for a memory.
    let run = workspace.run_limited("-v 4000000", &["run", "probe", "do=echo", "text=x"]);
    assert!(run.stderr.contains("mmap failed"), "{}", run.shown());
    // Its own schema is known again: `text` is a string.
    let known = workspace.run(&["describe", "probe", "--json"]).json();
    let whole = Workspace::with_own_cache();
    whole.file(".kitbag/tools/probe.wasm", fs::read(guest("probe")).unwrap());
    whole.run(&["run", "probe", "do=echo", "text=x"]).success();
    workspace.run(&["run", "probe", "do=echo", "text=x"]).success();
    let known_again = workspace.run(&["describe", "probe", "--json"]).json();
    let expected = whole.run(&["describe", "probe", "--json"]).json();
    assert_eq!(known_again["inputSchema"], expected["inputSchema"], "{known}");
    assert_eq!(known_again["description"], expected["description"]);
}
