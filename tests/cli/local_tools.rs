//! Local tools: named in the configuration or found in `.kitbag/tools`, compiled once, and loaded
//! from the cache by the next process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kitbag::config::LimitFlags;

use crate::support::{Workspace, guest, snapshot};

/// A tool that was built elsewhere, under another package name.
fn stranger() -> Workspace {
    let workspace = Workspace::with_own_cache();
    fs::copy(guest("stranger"), workspace.path("count.wasm")).unwrap();
    workspace.config(
        "[tools.word_count]\nsource = \"local\"\nwasm = \"count.wasm\"\n\
         description = \"Count the words of a text\"\n\
         [tools.word_count.parameters.text]\ntype = \"string\"\nrequired = true\n",
    );
    workspace
}

#[test]
fn a_tool_from_another_package_is_compiled_once_and_cached() {
    let workspace = stranger();
    assert_eq!(workspace.run(&["cache", "--json"]).json()["entries"].as_array().unwrap().len(), 0);
    let first = workspace.run(&["run", "word_count", "text=one two three"]);
    assert!(first.stdout.contains('3'), "{}", first.shown());
    let entry = || fs::read_dir(workspace.cache()).unwrap().next().unwrap().unwrap();
    let written = entry().metadata().unwrap().modified().unwrap();
    let second = workspace.run(&["run", "word_count", "text=one two three"]);
    assert_eq!(second.success(), first.stdout);
    assert_eq!(fs::read_dir(workspace.cache()).unwrap().count(), 1);
    assert_eq!(entry().metadata().unwrap().modified().unwrap(), written);
    // A process that may not write to the cache can still read it.
    let in_library = workspace.kitbag();
    let component = in_library.toolbox().load("word_count").unwrap();
    assert!(!component.was_compiled());
}

#[test]
fn the_time_for_compiling_is_a_limit_that_the_error_names() {
    let workspace = stranger();
    let arguments = ["run", "word_count", "text=one two three"];
    let refused = workspace.run(&[&arguments[..], &["--compile", "1us"]].concat());
    assert_eq!(refused.code, 7, "{}", refused.shown());
    let message = "the component takes longer than 1us to compile; allow more with \
                   `limits.compile` of the tool, within the ceiling in the user config";
    assert!(refused.stderr.contains(message), "{}", refused.shown());
    // The same host tries again if the limit is raised.
    let server = workspace
        .builder()
        .limits(LimitFlags { compile: Some(Duration::from_nanos(1)), ..LimitFlags::default() });
    let server = server.build().unwrap();
    let error = server.toolbox().load("word_count").map(drop).unwrap_err();
    assert!(error.to_string().contains("longer than 1ns to compile"), "{error}");
    let host = server.toolbox().host().clone();
    let patient = workspace.builder().host(host).build().unwrap();
    assert!(patient.toolbox().load("word_count").unwrap().was_compiled());
}

#[test]
fn listing_and_describing_compile_nothing() {
    let workspace = stranger();
    let list = workspace.run(&["list"]);
    let describe = workspace.run(&["describe", "word_count"]);
    snapshot!("list", &list.shown());
    snapshot!("describe", &describe.shown());
    assert!(!workspace.cache().exists());
}

#[test]
fn a_change_of_the_component_is_a_new_entry() {
    let workspace = stranger();
    workspace.run(&["run", "word_count", "text=a"]).success();
    let mut bytes = fs::read(workspace.path("count.wasm")).unwrap();
    // An empty custom section at the end: different content, the same tool.
    bytes.extend([0, 2, 1, b'x']);
    fs::write(workspace.path("count.wasm"), bytes).unwrap();
    workspace.run(&["run", "word_count", "text=a"]).success();
    assert_eq!(fs::read_dir(workspace.cache()).unwrap().count(), 2);
}

/// Starts processes that run the tool.
fn start(workspace: &Workspace, count: usize) -> Vec<Child> {
    let start = |_| {
        let mut command = workspace.command();
        command.args(["run", "word_count", "text=one two"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    (0..count).map(start).collect()
}

/// Waits until all of them have printed the answer.
fn finish(children: Vec<Child>) {
    for child in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert!(String::from_utf8_lossy(&output.stdout).contains('2'));
        assert_eq!(stderr, "");
    }
}

/// Polls until there is a result.
fn see<T>(look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Some(seen) => return seen,
            None => assert!(start.elapsed() < Duration::from_secs(60), "there is nothing to see"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The claimed file of the cache.
fn claimed(workspace: &Workspace) -> Option<PathBuf> {
    let files = fs::read_dir(workspace.cache()).ok()?;
    let mut paths = files.flatten().map(|file| file.path());
    paths.find(|path| path.to_string_lossy().contains("/.lock-"))
}

/// Waits until a process waits for the lock of another process.
fn see_waiting(child: &Child, claim: &Path) {
    let files = format!("/proc/{}/fd", child.id());
    see(|| {
        let mut open = fs::read_dir(&files).ok()?.flatten();
        open.find(|file| fs::read_link(file.path()).is_ok_and(|path| path == claim)).map(drop)
    });
}

/// Waits for the first entry of the cache and for all processes, and checks that no other process
/// has written the entry again, which would be a different file.
fn finish_with_one_entry(workspace: &Workspace, children: Vec<Child>) {
    let entry = || {
        let mut files = fs::read_dir(workspace.cache()).ok()?.flatten();
        let entry = files.find(|file| !file.file_name().to_string_lossy().starts_with('.'))?;
        Some(entry.metadata().ok()?.ino())
    };
    let first = see(entry);
    finish(children);
    assert_eq!(entry(), Some(first), "it was compiled again");
    // No claim remains either.
    assert_eq!(fs::metadata(workspace.cached()).unwrap().ino(), first);
}

#[test]
fn concurrent_processes_with_an_empty_cache_compile_once() {
    let workspace = stranger();
    let children = start(&workspace, 8);
    finish_with_one_entry(&workspace, children);
}

#[test]
fn one_of_several_waiting_processes_compiles() {
    let workspace = stranger();
    let load = || workspace.kitbag().toolbox().load("word_count").unwrap().was_compiled();
    let compiled = std::thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(load));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(compiled.into_iter().filter(|compiled| *compiled).count(), 1);
}

#[test]
fn a_waiting_process_uses_the_artifact_of_the_other() {
    let workspace = stranger();
    workspace.run(&["run", "word_count", "text=a"]).success();
    let (path, made) = (workspace.cached(), workspace.outside().join("made"));
    fs::copy(&path, &made).unwrap();
    let claim = workspace.claim();
    let children = start(&workspace, 3);
    let name = claimed(&workspace).unwrap();
    children.iter().for_each(|child| see_waiting(child, &name));
    fs::rename(made, &path).unwrap();
    fs::remove_file(name).unwrap();
    drop(claim);
    let made = fs::metadata(&path).unwrap().ino();
    finish(children);
    assert_eq!(fs::metadata(workspace.cached()).unwrap().ino(), made, "it was compiled again");
}

#[test]
fn the_next_process_compiles_after_a_kill() {
    let workspace = stranger();
    let mut first = start(&workspace, 1).remove(0);
    let claim = see(|| claimed(&workspace));
    let others = start(&workspace, 3);
    others.iter().for_each(|child| see_waiting(child, &claim));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(claim.exists(), "it was over too soon");
    finish_with_one_entry(&workspace, others);
}

#[test]
fn the_cache_can_be_emptied() {
    let workspace = stranger();
    workspace.run(&["run", "word_count", "text=a"]).success();
    let size = |text: &str| text.contains(": 1 entry, ");
    assert!(size(&workspace.run(&["cache"]).success()));
    assert!(workspace.run(&["cache", "--clear"]).success().contains(": removed 1 entry, "));
    assert!(workspace.run(&["cache"]).success().starts_with("<cache>: 0 entries, 0 bytes\n"));
    workspace.run(&["run", "word_count", "text=a"]).success();
}
