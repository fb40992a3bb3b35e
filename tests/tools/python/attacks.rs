//! Scripts that take too much or try to leave the sandbox: `attacks.txt`, a script and the end of
//! its answer. `INSTA_UPDATE=always` writes the answers.

use std::fmt::Write;
use std::fs;
use std::sync::Mutex;
use std::thread;

use serde_json::json;

use super::{Snippet, snippets};
use crate::support::{CallInTest, Workspace, repository};

const FILE: &str = "tests/tools/python/attacks.txt";
const SECRET: &str = "kept-from-scripts";

/// Returns the last line of an answer. It depends on no limit of the time but that it was reached.
fn ending(answer: &str) -> String {
    let line = answer.trim_end().lines().last().unwrap_or_default();
    line.chars().take(200).collect()
}

#[test]
fn attacks_end_with_an_error_and_show_nothing() {
    let workspace = Workspace::with_toolsets(&["python"]);
    // The same tool twice, with a short time for scripts that would continue until its end.
    workspace.config(
        "[tools.python]\nsource = \"builtin\"\nbuiltin = \"python\"\nlimits.time = \"120s\"\n\
         [tools.hasty]\nsource = \"builtin\"\nbuiltin = \"python\"\nlimits.time = \"2s\"\n",
    );
    workspace.add_to_own_config("[ceiling]\ntime = \"120s\"\n");
    workspace.file("a.txt", "as it was\n");
    workspace.file(".env", format!("SECRET={SECRET}\n"));
    workspace.file("module.py", "value = 6 * 7\n");
    fs::write(workspace.outside().join("outside.txt"), SECRET).unwrap();
    let (before, root) = (workspace.tree(), workspace.root());
    let own_config = workspace.own_config_file();
    let kitbag = workspace.kitbag();
    let attacks = snippets(FILE);
    let next = Mutex::new(attacks.iter().enumerate());
    let answers = Mutex::new(vec![String::new(); attacks.len()]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((index, attack)) = next.lock().unwrap().next() else { return };
                    let is_endless = attack.expected.contains("limit: time");
                    let tool = if is_endless { "hasty" } else { "python" };
                    let answer = kitbag.call_in_test(tool, json!({ "code": attack.code }));
                    // The file that a person may change is named, if a grant is missing there.
                    let answer = answer.replace(own_config.to_str().unwrap(), "<user config>");
                    for leak in [SECRET, root.to_str().unwrap(), "/rustc", "/cargo"] {
                        assert!(!answer.contains(leak), "{}\n{answer}", attack.code);
                    }
                    assert!(!answer.starts_with("failed: trap"), "{}\n{answer}", attack.code);
                    answers.lock().unwrap()[index] = ending(&answer);
                }
            });
        }
    });
    assert_eq!(workspace.tree(), before, "a script has changed files");
    let mut written = String::new();
    let mut wrong = String::new();
    for (Snippet { code, expected }, answer) in attacks.iter().zip(answers.into_inner().unwrap()) {
        let answers: String = answer.lines().map(|line| format!("=> {line}\n")).collect();
        write!(written, "{code}\n{answers}\n").unwrap();
        if answer != *expected {
            write!(wrong, "{code}\n=> {expected}\nbut: {answer}\n\n").unwrap();
        }
    }
    if !wrong.is_empty() && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(repository().join(FILE), written.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
}
