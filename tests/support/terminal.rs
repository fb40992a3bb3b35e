//! A person at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use super::Workspace;

/// Runs the binary on a terminal where a person types, and returns what went to
/// standard output and what stood on the terminal.
pub(crate) fn on_a_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    typed: &str,
) -> (String, String) {
    on_a_watched_terminal(workspace, arguments, typed, |_| {})
}

/// The text of a terminal with the rows of each line of kitbag's in one.
pub(crate) fn unwrapped(shown: &str) -> String {
    shown.replace("\r\n", "\n").replace("\n    ", "")
}

/// As [`on_a_terminal`], and reacts to what the terminal shows.
pub(crate) fn on_a_watched_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    typed: &str,
    mut watch: impl FnMut(&str),
) -> (String, String) {
    with_a_person(workspace, arguments, "", typed, &mut watch)
}

/// As [`on_a_terminal`], with a person who types something before the command starts.
pub(crate) fn on_a_hasty_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    before: &str,
    typed: &str,
) -> (String, String) {
    with_a_person(workspace, arguments, before, typed, &mut |_| {})
}

/// Whether a terminal shows a question that waits for its answer.
fn waits(shown: &str) -> bool {
    let line = shown.rsplit('\n').next().unwrap_or_default();
    line.contains("[n]o") && line.ends_with(": ") || line.starts_with('(') && line.ends_with(") ")
}

/// Runs a command on a terminal. Each line of `typed` is typed at a question, `before` earlier.
fn with_a_person(
    workspace: &Workspace,
    arguments: &[&str],
    before: &str,
    typed: &str,
    watch: &mut dyn FnMut(&str),
) -> (String, String) {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut person = File::from(terminal.master);
    person.write_all(before.as_bytes()).unwrap();
    let mut answers = typed.split_inclusive('\n');
    let mut answered = 0;
    let child = {
        let mut command = workspace.command();
        command.args(arguments).stdin(terminal.slave.try_clone().unwrap());
        command.stderr(terminal.slave).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let (mut seen, mut part) = (Vec::new(), [0; 1024]);
    let shown = |seen: &[u8]| String::from_utf8_lossy(seen).replace('\r', "");
    // Linux ends a terminal that is no longer open with an error.
    while let Ok(length @ 1..) = person.read(&mut part) {
        seen.extend_from_slice(&part[..length]);
        let text = shown(&seen);
        watch(&text);
        if waits(&shown(&seen[answered..])) {
            answered = seen.len();
            // One that has nothing more to say ends the input.
            person.write_all(answers.next().unwrap_or("\u{4}").as_bytes()).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), shown(&seen))
}
