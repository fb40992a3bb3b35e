//! A person is asked on their terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Child;

use super::greedy;
use crate::support::Workspace;
use crate::support::terminal::{on_a_hasty_terminal, unwrapped};

/// The question, with the answers that it takes.
const QUESTION: &str = "Trust this? [y]es / [n]o: ";

/// `kitbag trust` on a terminal.
struct Session {
    terminal: File,
    child: Child,
    seen: String,
}

impl Session {
    fn start(workspace: &Workspace) -> Self {
        Self::with(workspace, &["trust"])
    }

    fn with(workspace: &Workspace, arguments: &[&str]) -> Self {
        let size = nix::pty::Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = nix::pty::openpty(&size, None).unwrap();
        let slave = || pty.slave.try_clone().unwrap();
        let mut command = workspace.command();
        command.env("PAGER", "cat");
        let child =
            command.args(arguments).stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        drop(pty.slave);
        let mut session = Self { terminal: File::from(pty.master), child, seen: String::new() };
        session.read_until(|seen| seen.ends_with(QUESTION));
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
    // What is no answer is asked again, Enter alone among it.
    for unclear in ["\n", "maybe\n", "yes please\n", "trust\n"] {
        let mut session = Session::start(&workspace);
        session.terminal.write_all(unclear.as_bytes()).unwrap();
        session.read_until(|seen| seen.matches(QUESTION).count() == 2);
        let (code, seen) = session.answer("n\n");
        assert_eq!(code, 3, "{unclear:?}: {seen}");
        assert!(seen.contains("type `y` or `n`"), "{unclear:?}: {seen}");
    }
    for no in ["no\n", "n\n", "NO\n", "\u{4}"] {
        let (code, seen) = Session::start(&workspace).answer(no);
        assert_eq!(code, 3, "{no:?}: {seen}");
        assert!(seen.contains("nothing was trusted"), "{no:?}: {seen}");
        assert!(!workspace.runs_planted(), "{no:?}");
    }
    for yes in ["yes\n", "y\n", "Yes\n"] {
        let (code, seen) = Session::start(&workspace).answer(yes);
        assert_eq!(code, 0, "{yes:?}: {seen}");
        assert!(workspace.runs_planted(), "{yes:?}");
        workspace.run(&["trust", "--revoke"]).success();
    }
}

#[test]
fn what_was_shown_is_trusted_and_not_what_has_become_of_it() {
    let workspace = greedy();
    workspace.keep_later();
    let session = Session::start(&workspace);
    workspace.config(&super::CONFIG.replace("evil.example", "worse.example"));
    let (code, seen) = session.answer("yes\n");
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("evil.example") && !seen.contains("worse.example"), "{seen}");
    super::assert_untrusted(&workspace.run(&["run", "greedy"]));
    workspace.config(super::CONFIG);
    assert_eq!(workspace.run(&["run", "greedy", "do=echo", "text=here"]).success(), "here\n");
}

#[test]
fn nothing_of_a_file_reaches_the_terminal_unescaped() {
    let workspace = greedy();
    workspace.config(&format!("{}# \u{202e}evil\n", super::CONFIG));
    workspace.file(".kitbag/scripts/steal.py", "print(\"\u{1b}[2J\")\n");
    let (_, seen) = Session::with(&workspace, &["trust", "--all"]).answer("no\n");
    assert!(!seen.contains('\u{202e}') && !seen.contains("\u{1b}[2J"), "{seen:?}");
    assert!(seen.contains("evil"), "{seen}");
}

#[test]
fn text_typed_before_the_question_trusts_nothing() {
    let workspace = greedy();
    let arguments = ["trust"];
    let (_, seen) = on_a_hasty_terminal(&workspace, &arguments, "yes\nyes\ny", "\nn\n");
    assert!(seen.contains("nothing was trusted"), "{seen}");
    assert!(!workspace.runs_planted());
}

#[test]
fn the_summary_is_next_to_the_question_and_the_screen_is_not_longer_than_the_terminal() {
    let workspace = greedy();
    let (_, seen) = Session::start(&workspace).answer("no\n");
    let (screen, _) = seen.split_once(QUESTION).unwrap();
    let lines: Vec<_> = screen.lines().collect();
    assert!(lines.len() <= 38, "{screen}");
    let summary = unwrapped(screen);
    let last = summary.lines().last().unwrap();
    assert!(last.starts_with("Worst: your secret (`greedy`); "), "{screen}");
    // All of it goes before the screen, where it does not hide the summary.
    let (_, seen) = Session::with(&workspace, &["trust", "--all"]).answer("no\n");
    assert!(seen.contains("| + wasm = \"bin/greedy.wasm\""), "{seen}");
    assert!(seen.replace('\r', "").contains(&screen.replace('\r', "")), "{seen}");
}
