//! A person is asked on their terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Child;

use super::greedy;
use crate::support::Workspace;

/// `kitbag trust` on a terminal.
struct Session {
    terminal: File,
    child: Child,
    seen: String,
}

impl Session {
    fn start(workspace: &Workspace) -> Self {
        let pty = nix::pty::openpty(None, None).unwrap();
        let slave = || pty.slave.try_clone().unwrap();
        let mut command = workspace.command();
        let child =
            command.arg("trust").stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        drop(pty.slave);
        let mut session = Self { terminal: File::from(pty.master), child, seen: String::new() };
        session.read_until(|seen| seen.contains("Trust this?"));
        session
    }

    fn read_until(&mut self, is_enough: impl Fn(&str) -> bool) {
        let mut bytes = [0; 4096];
        while !is_enough(&self.seen) {
            // Linux ends a terminal that is no longer open with an error.
            match self.terminal.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(read) => self.seen.push_str(&String::from_utf8_lossy(&bytes[..read])),
            }
        }
    }

    /// Types an answer, and returns how the process ends and what was on the terminal.
    fn answer(mut self, text: &str) -> (i32, String) {
        self.terminal.write_all(text.as_bytes()).unwrap();
        self.read_until(|_| false);
        (self.child.wait().unwrap().code().unwrap(), self.seen)
    }
}

#[test]
fn a_person_is_asked_on_their_terminal_and_only_a_yes_counts() {
    let workspace = greedy();
    for no in ["\n", "no\n", "n\n", "maybe\n", "yes please\n", "\u{4}"] {
        let (code, seen) = Session::start(&workspace).answer(no);
        assert_eq!(code, 3, "{no:?}: {seen}");
        assert!(seen.contains("nothing was trusted"), "{no:?}: {seen}");
        assert!(!workspace.runs_planted(), "{no:?}");
    }
    for yes in ["yes\n", "y\n"] {
        let (code, seen) = Session::start(&workspace).answer(yes);
        assert_eq!(code, 0, "{yes:?}: {seen}");
        assert!(workspace.runs_planted(), "{yes:?}");
        workspace.run(&["trust", "--revoke"]).success();
    }
}

#[test]
fn what_was_shown_is_trusted_and_not_what_has_become_of_it() {
    let workspace = greedy();
    let session = Session::start(&workspace);
    workspace.config(&super::CONFIG.replace("evil.example", "worse.example"));
    let (code, seen) = session.answer("yes\n");
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("evil.example") && !seen.contains("worse.example"), "{seen}");
    assert!(!workspace.runs_planted());
    workspace.config(super::CONFIG);
    assert!(workspace.runs_planted());
}

#[test]
fn nothing_of_a_file_reaches_the_terminal_unescaped() {
    let workspace = greedy();
    workspace.config(&format!("{}# \u{202e}evil\n", super::CONFIG));
    workspace.file(".kitbag/scripts/steal.py", "print(\"\u{1b}[2J\")\n");
    let (_, seen) = Session::start(&workspace).answer("no\n");
    assert!(!seen.contains('\u{202e}') && !seen.contains("\u{1b}[2J"), "{seen:?}");
    assert!(seen.contains("evil"), "{seen}");
}
