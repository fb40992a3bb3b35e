//! `search_files`, through the real binary. Its results are compared with ripgrep in
//! `guest-tools/search`.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::support::{CallInTest, Workspace};

/// A tree with every kind of skipped file.
fn workspace() -> Workspace {
    let workspace = Workspace::with_toolsets(&["search"]);
    for (path, content) in [
        (".gitignore", "/build\n*.log\n"),
        ("src/lib.rs", "/// One.\npub fn needle() {}\n\npub fn other() {}\n"),
        ("src/deep/mod.rs", "use super::needle;\n"),
        ("src/naïve — ümlaut.txt", "Ein Nädelchen, needle.\n"),
        ("build/out.rs", "fn needle() {}\n"),
        ("run.log", "needle\n"),
        (".hidden/a.txt", "needle\n"),
        (".env", "TOKEN=needle\n"),
        ("keys/server.pem", "needle\n"),
        ("empty.txt", ""),
        ("image.bin", "needle\0\n"),
    ] {
        workspace.file(path, content);
    }
    workspace.file("outside-target.txt", "nothing\n");
    fs::write(workspace.outside().join("outside.txt"), "needle\n").unwrap();
    symlink("../outside.txt", workspace.path("leaving.txt")).unwrap();
    symlink("src", workspace.path("again")).unwrap();
    mknodat(CWD, workspace.path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    workspace
}

#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let run = workspace.run(&[&["run", "search_files"], arguments].concat());
    assert_eq!(run.stdout.trim_end(), expected, "{}", run.stderr);
}

#[test]
fn lines_are_found_and_secrets_are_skipped_and_counted() {
    let workspace = workspace();
    check(
        &workspace,
        &["pattern=needle"],
        "src/lib.rs\n2:pub fn needle() {}\n\n\
         src/naïve — ümlaut.txt\n1:Ein Nädelchen, needle.\n\n\
         src/deep/mod.rs\n1:use super::needle;\n\
         [passed over 2 files that look like secrets, 1 binary file]",
    );
    check(
        &workspace,
        &["pattern=NEEDLE", "case=insensitive", "show=files", "types=[\"rust\"]", "path=src"],
        "src/lib.rs\nsrc/deep/mod.rs",
    );
    check(
        &workspace,
        &["pattern=needle", "hidden=true", "ignored=true", "show=counts", "globs=[\"!src/**\"]"],
        "run.log:1\n.hidden/a.txt:1\nbuild/out.rs:1\n\
         [passed over 2 files that look like secrets, 1 binary file]",
    );
}

#[test]
fn an_unsearchable_path_is_an_error_with_a_reason() {
    let workspace = workspace();
    let check = |path: &str, expected: &str| {
        let run = workspace.run(&["run", "search_files", "pattern=x", &format!("path={path}")]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    };
    check("scr", "error: `scr` does not exist; nearest: `src`");
    check(".env", "error: `.env` cannot be searched: it looks like a secret");
    check("fifo", "error: `fifo` cannot be searched: it is not a file");
    check("leaving.txt", "error: `leaving.txt` cannot be searched: the link leads out");
    check("../outside.txt", "error: `../outside.txt` cannot be searched");
    check("/etc/passwd", "error: `/etc/passwd` cannot be searched: it is outside");
}

#[test]
fn a_line_larger_than_the_memory_is_searched() {
    let workspace = Workspace::with_toolsets(&["search"]);
    workspace.file("long.txt", "x".repeat(40 << 20) + "needle");
    workspace.file("z.txt", "needle\n");
    check(&workspace, &["pattern=needle", "show=counts"], "long.txt:1\nz.txt:1");
}

#[test]
fn a_large_file_of_short_lines_is_searched_in_little_memory() {
    let workspace = Workspace::with_toolsets(&["search"]).with_time();
    workspace.file("large.txt", "a line of no interest\n".repeat(4_000_000) + "needle\n");
    check(&workspace, &["pattern=needle"], "large.txt\n4000001:needle");
}

#[test]
fn concurrent_calls_have_the_same_answer() {
    let workspace = workspace();
    let kitbag = workspace.kitbag();
    let ask = || kitbag.call_in_test("search_files", json!({ "pattern": "needle" }));
    let expected = ask();
    thread::scope(|scope| {
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), expected);
        }
    });
}
