//! Checks calls of tools against files of calls and answers.
//!
//! Each call of a case file is one line with the tool's name and its arguments as JSON. The lines
//! below it have the answer after `= `, or the error after `! `, with the sign on each line. Lines
//! that begin with `#` and empty lines are kept.
//!
//! ```text
//! # Fractions are exact.
//! calculate {"expression":"1/3 + 1/6"}
//! = {"result":"0.5","exact":true}
//! ```
//!
//! With the environment variable `BLESS`, the answers in a file are rewritten. Reviewing the diff
//! then reviews the behaviour.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

/// Makes each call of a file and compares the answers with those in the file. `call` receives the
/// name of a tool and its arguments.
///
/// # Panics
///
/// Lists the differences. Also panics if the file cannot be read or has no cases.
#[track_caller]
pub fn check(path: impl AsRef<Path>, call: impl Fn(&str, &str) -> Result<String, String>) {
    let path = path.as_ref();
    let shown = path.display();
    let expected =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{shown} cannot be read: {error}"));
    let (mut found, mut differences, mut calls) = (String::new(), String::new(), 0);
    let mut lines = expected.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        found.push_str(line);
        found.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        calls += 1;
        let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
        let answer = answer(call(tool, arguments));
        let mut wanted = String::new();
        while let Some((_, line)) =
            lines.next_if(|(_, line)| line.starts_with('=') || line.starts_with('!'))
        {
            wanted.push_str(line);
            wanted.push('\n');
        }
        if wanted != answer {
            differences +=
                &format!("{shown}:{}: {line}\nexpected:\n{wanted}found:\n{answer}\n", at + 1);
        }
        found.push_str(&answer);
    }
    assert!(calls > 0, "{shown} has no case");
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, found).unwrap_or_else(|error| panic!("{shown}: {error}"));
    } else {
        assert!(differences.is_empty(), "{differences}");
    }
}

/// Formats an answer for the file.
fn answer(result: Result<String, String>) -> String {
    let (sign, text) = match result {
        Ok(text) => ('=', text),
        Err(text) => ('!', text),
    };
    text.split('\n').map(|line| format!("{sign} {line}").trim_end().to_owned() + "\n").collect()
}
