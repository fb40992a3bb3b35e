//! What README and `docs/` say is what kitbag does.

use std::fs;

use super::test_sources;
use crate::support::{Workspace, cargo_run, guest, repository};

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// The first fenced block after a line that holds a text.
#[track_caller]
fn block_after(document: &str, marker: &str) -> String {
    let (_, rest) = document.split_once(marker).unwrap_or_else(|| panic!("no `{marker}`"));
    let (_, block) = rest.split_once("```").unwrap();
    let (_, block) = block.split_once('\n').unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// Runs a command in the repository itself, as README shows it.
fn in_repository(arguments: &[&str]) -> String {
    let workspace = Workspace::new();
    let output = workspace.command().current_dir(repository()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the lines of a session that start with `$ `, in an empty directory and one shell,
/// and returns the session as it was.
fn in_an_empty_directory(workspace: &Workspace, session: &str) -> String {
    fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
    let kitbag = workspace.command();
    let bin = workspace.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(kitbag.get_program(), bin.join("kitbag")).unwrap();
    let mut shown = String::new();
    for command in session.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", command]).current_dir(workspace.root()).env_clear();
        shell.env("HOME", workspace.home());
        shell.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let output = shell.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
        assert!(output.status.success(), "$ {command}\n{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "$ {command}");
        shown.push_str(&format!("$ {command}\n{}", text(&output.stdout)));
    }
    shown
}

#[test]
fn the_first_example_of_readme_works_anywhere() {
    let readme = read("README.md");
    let shown = block_after(&readme, "<!-- demonstration -->");
    assert_eq!(in_an_empty_directory(&Workspace::new(), &shown), shown);
}

/// With the component that the page says an own file names.
#[test]
fn the_examples_of_the_page_on_grants_are_taken_as_they_stand() {
    let workspace = Workspace::with_toolsets(&["search"]);
    fs::create_dir_all(workspace.home().join("notes")).unwrap();
    fs::create_dir_all(workspace.home().join("tools")).unwrap();
    let page = read("docs/grants.md");
    let blocks: Vec<_> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0)
        .filter(|block| block.contains("[tools."))
        .collect();
    for block in &blocks {
        let (before, rest) = block.split_once("[tools.").unwrap();
        let name = &rest[..rest.find(['.', ']']).unwrap()];
        let wasm = workspace.home().join(format!("tools/{name}.wasm"));
        fs::copy(guest("settings"), &wasm).unwrap();
        let own = match block.contains("source = ") {
            true => (*block).to_owned(),
            false => {
                let source = format!("source = \"local\"\nwasm = \"~/tools/{name}.wasm\"\n");
                let table = format!("[tools.{name}]\n");
                match rest.starts_with(&format!("{name}]")) {
                    true => block.replacen(&table, &format!("{table}{source}"), 1),
                    false => format!("{before}{table}{source}[tools.{rest}"),
                }
            }
        };
        workspace.own_config(&own);
        let run = workspace.run(&["check"]);
        assert_eq!(run.code, 0, "{own}\n{}", run.shown());
    }
    assert!(blocks.len() > 10, "{}", blocks.len());
}

#[test]
fn the_example_of_the_page_on_documents_works() {
    let shown = block_after(&read("docs/data.md"), "<!-- example -->");
    let workspace = Workspace::with_toolsets(&["data"]);
    assert_eq!(in_an_empty_directory(&workspace, &shown), shown);
}

#[test]
fn where_no_topic_is_configured_the_error_says_how_to_make_one() {
    let workspace = Workspace::new();
    let run = workspace.run(&["run", "learn", "topic=team"]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(run.stderr.contains("`[knowledge.NAME]` with `subjects ="), "{}", run.shown());
}

#[test]
fn every_document_of_the_topic_can_be_loaded() {
    let all = in_repository(&["run", "learn", "topic=kitbag", "subjects=**", "max_bytes=1000000"]);
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let is_summary = path.ends_with("SUMMARY.md");
        if !is_summary && path.extension().is_some_and(|extension| extension == "md") {
            let slug = path.file_stem().unwrap().to_str().unwrap();
            assert!(all.contains(&format!("<subject name=\"{slug}\">")), "{slug}");
        }
    }
}

#[test]
fn the_first_command_of_readme_works_through_cargo() {
    let readme = read("README.md");
    let command = "cargo run --release -- run learn topic=kitbag";
    assert!(readme.contains(command));
    // As it stands but for the profile, which `cargo test` has built already.
    let stdout = cargo_run(&["--", "run", "learn", "topic=kitbag"]);
    assert!(stdout.starts_with("# Topic: kitbag\n"), "{stdout}");
}

#[test]
fn the_configuration_of_readme_is_valid() {
    let readme = read("README.md");
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path(".kitbag/tools")).unwrap();
    fs::copy(guest("stranger"), workspace.path(".kitbag/tools/word_count.wasm")).unwrap();
    workspace.config(&block_after(&readme, "<!-- configuration -->"));
    let check = workspace.run(&["check"]);
    assert_eq!(check.code, 0, "{}", check.shown());
}

/// The name of a test in a page: at least three underscores, all lower case.
fn is_test_name(word: &str) -> bool {
    word.matches('_').count() > 2
        && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

#[test]
fn pages_name_only_existing_tests() {
    // An option of wasmtime.
    const OTHER_NAMES: [&str; 1] = ["linear_memory_keep_resident"];
    let sources = test_sources();
    let (mut named, mut missing) = (0, Vec::new());
    for entry in fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for name in page.split('`').filter(|word| is_test_name(word)) {
            named += 1;
            if !OTHER_NAMES.contains(&name) && !sources.contains(&format!("fn {name}(")) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
    assert!(named > 700, "{named}");
}
