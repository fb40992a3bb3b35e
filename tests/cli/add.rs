//! `kitbag add`, `update` and `remove`: the screen that a person sees, their approval, and the
//! files that are written, completely or not at all.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::support::crafted::describing;
use crate::support::terminal::{on_a_hasty_terminal, on_a_terminal};
use crate::support::{Run, Workspace, guest};

/// The description of the downloaded component.
fn weather() -> Value {
    json!({
        "name": "weather",
        "description": "Tells the weather of a place.",
        "inputSchema": { "type": "object", "properties": { "place": { "type": "string" } } },
        "grants": { "filesystem": [{ "guest": "/workspace" }], "env": ["LANG"] },
    })
}

/// A workspace with a downloaded component beside it.
fn downloaded(name: &str, component: &[u8]) -> (Workspace, PathBuf) {
    let workspace = Workspace::new();
    let path = workspace.home().join("Downloads").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, component).unwrap();
    (workspace, path)
}

fn weather_downloaded() -> (Workspace, PathBuf) {
    downloaded("weather-1.2.wasm", &describing(&weather().to_string()))
}

fn add(workspace: &Workspace, path: &std::path::Path, options: &[&str]) -> Run {
    let path = path.to_str().unwrap();
    workspace.run(&[&["add", path][..], options].concat())
}

fn read(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.path(path)).unwrap_or_default()
}

/// Every file below a directory, with its content.
fn files(workspace: &Workspace) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut left, mut files) = (vec![workspace.root()], Vec::new());
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => files.push((path.clone(), fs::read(&path).unwrap_or_default())),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn text_typed_before_the_question_adds_nothing() {
    let (workspace, path) = weather_downloaded();
    let before = files(&workspace);
    let arguments = ["add", path.to_str().unwrap()];
    let (_, terminal) = on_a_hasty_terminal(&workspace, &arguments, "yes\nyes\n", "n\n");
    assert!(terminal.contains("`weather` was not added"), "{terminal}");
    assert_eq!(files(&workspace), before);
}

#[test]
fn non_components_are_refused() {
    let (workspace, path) = weather_downloaded();
    let before = files(&workspace);
    let home = workspace.home();
    let fifo = home.join("fifo.wasm");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let large = home.join("large.wasm");
    fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    let text = home.join("text.wasm");
    fs::write(&text, "hello").unwrap();
    let empty = home.join("empty");
    fs::create_dir(&empty).unwrap();
    let two = home.join("two");
    fs::create_dir(&two).unwrap();
    fs::copy(&path, two.join("a.wasm")).unwrap();
    fs::copy(&path, two.join("b.wasm")).unwrap();
    let linked = home.join("linked");
    fs::create_dir(&linked).unwrap();
    symlink(&path, linked.join("a.wasm")).unwrap();
    let outside = home.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("skill.toml"), "[wasm]\nentry = \"../Downloads/weather-1.2.wasm\"\n")
        .unwrap();
    for (path, code, expected) in [
        (&fifo, 7, "is a FIFO, not a regular file"),
        (&large, 7, "a component may have at most"),
        (&text, 7, "this is not WebAssembly"),
        (&empty, 2, "has no component"),
        (&two, 2, "has several components: name `a.wasm` or `b.wasm`"),
        (&linked, 2, "is a symbolic link, which is not followed"),
        (&outside, 2, "which is outside"),
        (&home.join("absent.wasm"), 2, "does not exist"),
    ] {
        let refused = add(&workspace, path, &["--yes"]);
        assert_eq!(refused.code, code, "{}", refused.shown());
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.shown());
    }
    assert_eq!(files(&workspace), before);
}

#[test]
fn concurrent_commands_lose_no_changes() {
    const COMMANDS: usize = 12;
    let (workspace, path) = weather_downloaded();
    add(&workspace, &path, &["--yes", "--name", "first"]).success();
    let children: Vec<_> = (0..COMMANDS)
        .map(|number| {
            let mut command = workspace.command();
            command.args([
                "add",
                path.to_str().unwrap(),
                "--yes",
                "--name",
                &format!("tool_{number}"),
            ]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let (config, lock) =
        (read(&workspace, ".kitbag/config.toml"), read(&workspace, ".kitbag/kitbag.lock"));
    for number in 0..COMMANDS {
        let table = format!("[tools.tool_{number}]");
        assert!(config.contains(&table) && lock.contains(&table), "{table}\n{config}\n{lock}");
        assert_eq!(workspace.run(&["run", &format!("tool_{number}")]).success(), "ok\n");
    }
    // Only one of several additions with the same name succeeds.
    let children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = workspace.command();
            command.args(["add", path.to_str().unwrap(), "--yes", "--name", "same"]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let added = children.into_iter().filter_map(|mut child| child.wait().unwrap().code());
    assert_eq!(added.filter(|code| *code == 0).count(), 1);
}

#[test]
fn the_next_command_finishes_a_killed_one() {
    let (workspace, path) = weather_downloaded();
    add(&workspace, &path, &["--yes", "--name", "first"]).success();
    let start = std::time::Instant::now();
    add(&workspace, &path, &["--yes", "--name", "timed"]).success();
    let takes = start.elapsed();
    workspace.run(&["remove", "timed"]).success();
    let (old_config, old_lock) =
        (read(&workspace, ".kitbag/config.toml"), read(&workspace, ".kitbag/kitbag.lock"));
    const KILLS: u32 = 12;
    for number in 0..KILLS {
        let mut command = workspace.command();
        command.args(["add", path.to_str().unwrap(), "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Late, when files are written.
        std::thread::sleep(takes.mul_f64(0.5 + f64::from(number) / f64::from(KILLS)));
        let _ = child.kill();
        child.wait().unwrap();
        let (config, lock) =
            (read(&workspace, ".kitbag/config.toml"), read(&workspace, ".kitbag/kitbag.lock"));
        let is_new = |text: &str| text.contains("[tools.weather]");
        assert!(config == old_config || is_new(&config), "{config}");
        assert!(lock == old_lock || is_new(&lock), "{lock}");
        // The approved component runs, with its grants and its digest.
        let run = workspace.run(&["run", "weather"]);
        assert!(run.code != 0 || is_new(&config) && is_new(&lock), "{}", run.shown());
        assert_eq!(workspace.run(&["run", "first"]).success(), "ok\n");
        let is_whole = workspace.path(".kitbag/tools/weather.wasm").exists();
        if !is_whole {
            add(&workspace, &path, &["--yes"]).success();
        }
        assert_eq!(workspace.run(&["run", "weather"]).success(), "ok\n");
        workspace.run(&["remove", "weather"]).success();
        assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), old_lock);
    }
    // Staged files may remain, but do not become tools.
    let tools = workspace.listed();
    assert!(
        tools.iter().all(|tool| !tool["name"].as_str().unwrap().starts_with("kitbag")),
        "{tools:?}"
    );
}

/// Removes digests, which change with each build of the guests, and the progress of a slow
/// compilation, which a terminal clears before the next text.
fn without_digests(text: &str) -> String {
    let line = |line: &str| {
        let line = line.rsplit("\u{1b}[K").next().unwrap_or(line);
        match line.split_once(" (") {
            Some((before, after)) if after.contains(" digest ") => format!("{before} (…"),
            _ => line.trim_end().to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_on_adding_tools_is_real() {
    let page =
        fs::read_to_string(crate::support::repository().join("docs/adding-tools.md")).unwrap();
    let (_, block) = page.split_once("<!-- add -->\n```console\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let bytes = fs::read(guest("settings")).unwrap();
    let (workspace, path) = downloaded("settings.wasm", &bytes);
    let arguments = ["add", path.to_str().unwrap()];
    let (added, terminal) = on_a_terminal(&workspace, &arguments, "customize\nno\n");
    let run = workspace.run(&["run", "settings", "key=a"]).success();
    let shown = format!(
        "$ kitbag add ~/Downloads/settings.wasm\n{terminal}{added}$ kitbag run settings key=a\n{run}"
    );
    assert_eq!(without_digests(&shown), without_digests(block));
}

#[test]
fn a_killed_update_leaves_no_unapproved_component() {
    let (workspace, old) = weather_downloaded();
    add(&workspace, &old, &["--yes"]).success();
    let mut says = weather();
    says["description"] = json!("Tells more.");
    let new = workspace.home().join("new.wasm");
    fs::write(&new, describing(&says.to_string())).unwrap();
    let files = [&old, &new].map(|path| path.to_str().unwrap().to_owned());
    let start = std::time::Instant::now();
    workspace.run(&["update", "weather", &files[1], "--yes"]).success();
    let takes = start.elapsed();
    const KILLS: u32 = 8;
    for number in 0..KILLS {
        let file = &files[number as usize % 2];
        let mut command = workspace.command();
        command.args(["update", "weather", file, "--yes"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(takes.mul_f64(0.5 + f64::from(number) / f64::from(KILLS)));
        let _ = child.kill();
        child.wait().unwrap();
        let run = workspace.run(&["run", "weather"]);
        assert!(matches!(run.code, 0 | 6), "{}", run.shown());
        workspace.run(&["update", "weather", file, "--yes"]).success();
        assert_eq!(workspace.run(&["run", "weather"]).success(), "ok\n");
        let is = fs::read(workspace.path(".kitbag/tools/weather.wasm")).unwrap();
        assert_eq!(is, fs::read(file).unwrap());
    }
}
