//! Cases as data: one file has the files of a workspace, commands, and what they print.
//!
//! ```text
//! # Lines before the first section say what the case shows.
//! === toolsets files write
//! === untrusted
//! === file .kitbag/config.toml
//! === own config
//! === stdin
//! === $ LANG=C kitbag run probe 'text=two words'
//! exit code: 0
//! --- stdout
//! ```
//!
//! Sections are steps and take effect in their order. `toolsets` and `untrusted` come first;
//! `stdin` is for the next command. `<workspace>`, `<outside>`, `<home>`, `<cache>` and `<guests>`
//! stand for directories. `INSTA_UPDATE=always` writes what the commands print.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use similar::TextDiff;

use super::{Workspace, repository};

const SECTION: &str = "=== ";

/// Runs every case below a directory of the repository, several at once.
#[track_caller]
pub(crate) fn check_case_files(directory: &str) {
    let entries = fs::read_dir(repository().join(directory)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
    assert!(!paths.is_empty(), "{directory} has no cases");
    let (left, failures) = (Mutex::new(paths), Mutex::new(String::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(path) = next(&left) {
                    if let Some(diff) = check(&path) {
                        writeln!(failures.lock().unwrap(), "{}\n{diff}", path.display()).unwrap();
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{failures}\nreview the difference after `INSTA_UPDATE=always cargo test --test main cases`"
    );
}

fn next(paths: &Mutex<Vec<PathBuf>>) -> Option<PathBuf> {
    paths.lock().unwrap().pop()
}

/// Runs one case. Returns the difference from what the file expects.
fn check(path: &Path) -> Option<String> {
    let expected = fs::read_to_string(path).unwrap();
    let actual = run(&expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if actual == expected {
        return None;
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(path, actual).unwrap();
        return None;
    }
    let diff = TextDiff::from_lines(&expected, &actual);
    Some(diff.unified_diff().header("expected", "actual").to_string())
}

/// Runs the commands of a case, and returns the case with what they printed.
fn run(case: &str) -> Result<String, String> {
    let start =
        if case.starts_with(SECTION) { 0 } else { case.find("\n=== ").map_or(0, |at| at + 1) };
    let (title, steps) = case.split_at(start);
    let mut shown = title.to_owned();
    let (mut toolsets, mut is_trusted) = (Vec::new(), true);
    let (mut workspace, mut stdin) = (None::<Workspace>, String::new());
    for step in sections(steps) {
        let (head, content) = step.split_once('\n').unwrap_or((step, ""));
        let head = head.strip_prefix(SECTION).ok_or("no section")?;
        writeln!(shown, "{SECTION}{head}").unwrap();
        match head.split_once(' ').unwrap_or((head, "")) {
            ("toolsets", names) => toolsets = names.split(' ').collect(),
            ("untrusted", "") => is_trusted = false,
            (kind, rest) => {
                let workspace = workspace.get_or_insert_with(|| {
                    let workspace = Workspace::with_toolsets(&toolsets);
                    if is_trusted { workspace } else { workspace.untrusted() }
                });
                let text = workspace.expand(content);
                match (kind, rest) {
                    ("file", path) => drop(workspace.file(path, text)),
                    ("own", "config") => workspace.own_config(&text),
                    ("stdin", "") => stdin = text,
                    ("$", command) => {
                        let printed = run_command(workspace, command, &std::mem::take(&mut stdin))?;
                        shown.push_str(&printed);
                        continue;
                    }
                    _ => return Err(format!("`{head}` is not a section")),
                }
            }
        }
        shown.push_str(content);
    }
    Ok(shown)
}

/// The sections of a case, each with its first line.
fn sections(steps: &str) -> Vec<&str> {
    let mut starts: Vec<_> = steps.match_indices("\n=== ").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    let ends = starts.iter().skip(1).copied().chain([steps.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &steps[start..end]).collect()
}

fn run_command(workspace: &Workspace, command: &str, stdin: &str) -> Result<String, String> {
    let words = shlex::split(command).ok_or("a quotation mark has no end")?;
    let words: Vec<_> = words.iter().map(|word| workspace.expand(word)).collect();
    let at = words.iter().position(|word| word == "kitbag").ok_or("the command is not kitbag")?;
    let variables = words[..at].iter().map(|it| it.split_once('=').ok_or("not a variable"));
    let variables = variables.collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<_> = words[at + 1..].iter().map(String::as_str).collect();
    Ok(workspace.run_with(&arguments, stdin, &variables).shown())
}
