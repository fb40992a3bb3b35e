//! `kitbag run --save`: what a tool gave as files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::{Workspace, snapshot};

/// The files of a directory with their content, by name.
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
fn what_a_tool_gives_becomes_files() {
    let workspace = Workspace::with_probe("");
    let emit = ["run", "probe", "do=emit", "kind=all"];
    let said = workspace.session(&[
        &[&emit[..], &["--save", "new/out"]].concat(),
        &[&emit[..], &["--save", "new/out", "--json"]].concat(),
        &["run", "probe", "do=emit", "then=fail", "--save", "failed"],
        &["run", "probe", "do=echo", "text=x", "--save", "nothing"],
        &["run", "probe", "do=emit", "uri=file:///../../../x.txt", "kind=text", "--save", "up"],
    ]);
    snapshot!("session", &said);
    let names = |directory: &str| -> Vec<String> {
        files(&workspace, directory).into_iter().map(|(name, _)| name).collect()
    };
    // Twice, and the second time beside the first.
    assert_eq!(
        names("new/out"),
        [
            "a-2.png",
            "a-3.png",
            "a-4.png",
            "a.png",
            "audio-2-2.png",
            "audio-2.png",
            "image-1-2.png",
            "image-1.png",
        ]
    );
    assert!(files(&workspace, "new/out").iter().all(|(_, content)| content == "xxxx"));
    assert_eq!(names("failed"), ["image-1.png"]);
    assert_eq!(names("nothing"), [""; 0]);
    assert_eq!(names("up"), ["x.txt"]);
    assert!(!workspace.path("x.txt").exists() && !workspace.outside().join("x.txt").exists());
}

#[test]
fn no_file_is_replaced_and_no_link_is_followed() {
    let workspace = Workspace::with_probe("");
    let kept = workspace.file("out/image-1.png", "mine");
    let elsewhere = workspace.outside().join("elsewhere");
    symlink(&elsewhere, workspace.path("out/image-1-2.png")).unwrap();
    workspace.run(&["run", "probe", "do=emit", "--save", "out"]).success();
    assert_eq!(fs::read_to_string(kept).unwrap(), "mine");
    assert!(!elsewhere.exists());
    assert_eq!(fs::read_to_string(workspace.path("out/image-1-3.png")).unwrap(), "xxxx");
    let mode = workspace.path("out/image-1-3.png").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o600, 0o600);
    assert_eq!(mode & 0o111, 0);
}

#[test]
fn a_directory_that_cannot_be_written_is_an_error_before_the_call() {
    let workspace = Workspace::with_probe("");
    workspace.file("taken", "a file");
    for place in ["taken", "taken/below", "/proc/kitbag"] {
        let run = workspace.run(&["run", "probe", "do=emit", "--save", place]);
        assert_eq!((run.code, &*run.stdout), (8, ""), "{}", run.shown());
        assert!(run.stderr.starts_with(&format!("error: `{place}` cannot be written\n")));
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_and_the_answer_is_printed() {
    let workspace = Workspace::with_probe("");
    for as_json in [false, true] {
        // Files of this process may have 4 KiB.
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

#[test]
fn a_planted_link_leads_no_file_elsewhere() {
    let workspace = Workspace::with_probe("");
    let elsewhere = workspace.outside().join("autostart");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, workspace.path("out")).unwrap();
    fs::create_dir(workspace.path("deep")).unwrap();
    symlink(&elsewhere, workspace.path("deep/out")).unwrap();
    let absolute = workspace.path("out/sub");
    for directory in ["out", "out/sub", "deep/out", "./deep/../out", absolute.to_str().unwrap()] {
        let run = workspace.run(&["run", "probe", "do=emit", "kind=text", "--save", directory]);
        assert_eq!(run.code, 2, "{directory}: {}", run.shown());
        assert!(run.stderr.contains("out` is a symbolic link, and kitbag writes into"), "{run:?}");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // A link outside of the workspace is the user's own.
    let own = workspace.outside().join("own");
    symlink(&elsewhere, &own).unwrap();
    workspace
        .run(&["run", "probe", "do=emit", "kind=text", "--save", own.to_str().unwrap()])
        .success();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
}

#[test]
fn saved_files_get_no_protected_or_secret_name() {
    let workspace = Workspace::with_probe("");
    let save = |uri: &str, directory: &str| {
        let uri = format!("uri=file:///{uri}");
        workspace.run(&["run", "probe", "do=emit", "kind=text", &uri, "--save", directory])
    };
    for uri in ["lefthook.yml", "server.key", "id.pem", "terraform.tfvars"] {
        save(uri, "out").success();
        assert!(!workspace.path("out").join(uri).exists(), "{uri}");
    }
    let names: Vec<_> = files(&workspace, "out").into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["resource-1-2.bin", "resource-1.bin", "resource-1.tfvars", "resource-1.yml"]
    );
    for directory in [".git/hooks", ".kitbag", ".ssh", ".github/workflows"] {
        let run = save("a.txt", directory);
        assert_eq!(run.code, 2, "{directory}: {}", run.shown());
        assert!(run.stderr.contains("nothing is saved in"), "{}", run.stderr);
        assert!(!workspace.path(directory).join("a.txt").exists());
    }
}
