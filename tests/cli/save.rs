//! `kitbag run --save`: the files that a tool returns.

use std::fs;

use crate::support::Workspace;

/// The files of a directory, sorted by name, with their content.
fn files(workspace: &Workspace, directory: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(workspace.path(directory)).unwrap().map(|entry| entry.unwrap());
    let read = |entry: fs::DirEntry| {
        let content = String::from_utf8(fs::read(entry.path()).unwrap()).unwrap();
        (entry.file_name().into_string().unwrap(), content)
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    files
}

#[test]
fn a_failed_save_leaves_no_file_and_prints_the_answer() {
    let workspace = Workspace::with_probe("");
    for as_json in [false, true] {
        // This process may write files of 4 KiB at most.
        let limited = format!(
            "ulimit -f 4 && exec \"$0\" run probe do=emit bytes:=100000 --save out{}",
            if as_json { " --json" } else { "" }
        );
        let binary = workspace.command();
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", &limited]).arg(binary.get_program()).current_dir(workspace.root());
        command.env_clear().env("HOME", workspace.home());
        command.env("KITBAG_CACHE_DIR", workspace.cache());
        command.env("KITBAG_TRUST_WORKSPACE", "1");
        let output = command.output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(8), "{stdout}{stderr}");
        assert!(stdout.contains("emit: 1 item taken"), "{stdout}");
        assert!(stderr.contains("error: `out/image-1.png` cannot be written"), "{stderr}");
        assert_eq!(files(&workspace, "out"), []);
        if as_json {
            let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
            assert!(value["emitted"][0]["data"].is_string(), "{value}");
        }
    }
}
