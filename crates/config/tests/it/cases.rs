//! Cases as data files: the files of a workspace, and the configuration that results from them.
//!
//! ```text
//! === case a_workspace_lowers_a_limit
//! === config
//! [limits]
//! time = "5s"
//! --- rows limits.time
//! limits.time = "5s" # .kitbag/config.toml:2:8
//! ```
//!
//! A case is named like a test and starts with an empty workspace. The next sections are its
//! state: `config` and `user` (the files), `file PATH`, `directory PATH`, `link PATH -> TARGET`,
//! `variable NAME=VALUE` of kitbag, `env NAME=VALUE` for tools, `builtins NAME`, `homeless`, and
//! `record SERVER` and `user_record SERVER`, the definitions of tools in a lock file.
//! Sections that start with `---` have the expected output; [`output`] defines their kinds. `/t` is
//! the directory of the case, with the workspace `w` and the home directory `h`.
//!
//! `INSTA_UPDATE=always` writes the output of all cases.

use std::fs;
use std::path::Path;

use crate::case_output::{builtins, output};
use crate::support::Fixture;

#[test]
fn cases_have_their_recorded_output() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases");
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
    assert!(paths.len() > 10, "{}", paths.len());
    let is_update = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    let mut wrong = String::new();
    for path in paths {
        let expected = fs::read_to_string(&path).unwrap();
        let actual: String = sections(&expected, "=== case ").into_iter().map(run).collect();
        if actual == expected {
            continue;
        }
        if is_update {
            fs::write(&path, &actual).unwrap();
            continue;
        }
        let mut lines = expected.lines().zip(actual.lines()).enumerate();
        let (at, (expected, actual)) = lines.find(|(_, (a, b))| a != b).unwrap_or_default();
        wrong += &format!("{}:{}\n- {expected}\n+ {actual}\n", path.display(), at + 1);
    }
    assert!(wrong.is_empty(), "{wrong}`INSTA_UPDATE=always` writes all differences");
}

/// Runs a case. Returns it with its actual output.
fn run(case: &str) -> String {
    let (title, steps) = case.split_once('\n').unwrap();
    let mut shown = format!("{title}\n");
    let mut fixture = Fixture::empty();
    for step in sections(steps, "") {
        let (head, content) = step.split_once('\n').unwrap();
        shown += &format!("{head}\n");
        if let Some(head) = head.strip_prefix("--- ") {
            shown += &output(&fixture, head);
            continue;
        }
        shown += content;
        let head = head.strip_prefix("=== ").unwrap();
        let (kind, rest) = head.split_once(' ').unwrap_or((head, ""));
        fixture = match kind {
            "config" => fixture.file("w/.kitbag/config.toml", content),
            "user" => fixture.user(content),
            "file" => fixture.file(rest, content),
            "directory" => fixture.directory(rest),
            "link" => {
                let (path, to) = rest.split_once(" -> ").unwrap();
                fixture.link(path, to)
            }
            "variable" => {
                let (name, value) = rest.split_once('=').unwrap();
                fixture.variable(name, value)
            }
            "env" => {
                let (name, value) = rest.split_once('=').unwrap();
                fixture.granted_variable(name, value.as_bytes())
            }
            "builtins" => fixture.builtins(builtins(rest)),
            "homeless" => fixture.homeless(),
            "record" => fixture.record("w/.kitbag/kitbag.lock", rest, content),
            "user_record" => fixture.record("h/kitbag.lock", rest, content),
            _ => panic!("{title}: `{head}` is not a section"),
        };
    }
    shown
}

/// Returns the parts of a text that start with a line of `=== ` or `--- ` and `begin`.
fn sections<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let is_start = |line: &str| match begin {
        "" => line.starts_with("=== ") || line.starts_with("--- "),
        begin => line.starts_with(begin),
    };
    let mut starts = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is_start(line) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start..end]).collect()
}
