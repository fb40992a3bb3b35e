//! Features of Python: snippets with CPython's answers, run by the component.
//!
//! `answers.py` stores the answers in `features/*.txt`. Features that differ are listed in
//! `docs/python.md`, between its marks.

use std::fmt::Write;
use std::fs;

use kitbag::Kitbag;
use serde_json::json;

use super::{Snippet, snippets};
use crate::support::{CallInTest, Workspace, repository};

/// Defines `run_feature`, which `answers.py` uses with CPython.
const RUN_FEATURE: &str = include_str!("run_feature.py");
/// Snippets of one call. Their answers fit into one answer of the tool.
const BATCH: usize = 40;
const FEATURES: &str = "tests/tools/python/features";
const PAGE: &str = "docs/python.md";
const START: &str = "<!-- differences: written by tests/tools/python/features.rs -->\n";
const END: &str = "<!-- end of differences -->\n";

/// Reads the features of all subjects, in order.
fn features() -> Vec<Snippet> {
    let directory = repository().join(FEATURES);
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.iter().flat_map(|name| snippets(&format!("{FEATURES}/{}", name.display()))).collect()
}

/// Runs features in one call, each in a namespace of its own. If the call fails, it runs them in
/// calls of their own.
fn run(kitbag: &Kitbag, features: &[Snippet]) -> Vec<String> {
    let snippets: Vec<_> = features.iter().map(|feature| &feature.code).collect();
    let code = format!("{RUN_FEATURE}\n[run_feature(snippet) for snippet in snippets]");
    let answer =
        kitbag.call_in_test("python", json!({ "code": code, "inputs": { "snippets": snippets } }));
    match serde_json::from_str(&answer) {
        Ok(answers) => answers,
        Err(_) if features.len() == 1 => vec![answer],
        Err(_) => features.chunks(1).flat_map(|feature| run(kitbag, feature)).collect(),
    }
}

#[test]
fn features_agree_with_cpython() {
    let workspace = Workspace::with_toolsets(&["python"]).with_time();
    let kitbag = workspace.kitbag();
    let features = features();
    let answers = features.chunks(BATCH).flat_map(|batch| run(&kitbag, batch));
    let mut differ = 0;
    let mut listed = String::new();
    for (Snippet { code, expected }, answer) in features.iter().zip(answers) {
        if answer != *expected {
            differ += 1;
            let comment = |text: &str| text.replace('\n', "\n#   ");
            let (answer, expected) = (comment(&answer), comment(expected));
            write!(listed, "\n{code}\n# CPython: {expected}\n# kitbag: {answer}\n").unwrap();
        }
    }
    let total = features.len();
    let agree = total - differ;
    let text = format!(
        "{START}\nThe tests run {total} snippets of Python, and {agree} give CPython's answer. The \
         others:\n\n```python{listed}```\n\n{END}"
    );
    assert!(total >= 400, "{total}");
    assert!(agree * 100 >= total * 97, "{text}");
    check_page(&text);
}

/// Compares a part of the page with the text that it should have.
fn check_page(text: &str) {
    let path = repository().join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let start = page.find(START).unwrap();
    let end = page.find(END).unwrap() + END.len();
    if page[start..end] == *text {
        return;
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(path, format!("{}{text}{}", &page[..start], &page[end..])).unwrap();
        return;
    }
    panic!(
        "{PAGE} differs; review it after `INSTA_UPDATE=always cargo test --test main features`\n{text}"
    );
}
