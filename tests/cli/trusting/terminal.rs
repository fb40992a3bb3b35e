//! Trust is requested on the terminal.

use super::greedy;
use crate::support::Workspace;
use crate::support::terminal::{Terminal, on_a_hasty_terminal, unwrapped};

/// The question, with the accepted answers.
const QUESTION: &str = "Trust this? [y]es / [n]o: ";

/// Starts a command on a terminal and waits for its question.
fn asked(workspace: &Workspace, arguments: &[&str]) -> Terminal {
    let mut command = workspace.command();
    command.env("PAGER", "cat").args(arguments);
    let mut terminal = Terminal::with_output(command);
    assert!(terminal.wait(|screen| screen.ends_with(QUESTION)), "{}", terminal.screen());
    terminal
}

/// Types an answer, and returns the exit code and the text on the terminal.
fn answer(mut terminal: Terminal, text: &str) -> (i32, String) {
    terminal.enter(text);
    let run = terminal.end();
    (run.code, run.stderr)
}

#[test]
fn only_yes_at_the_terminal_grants_trust() {
    let workspace = greedy();
    // The question is repeated after an invalid answer, also after Enter alone.
    for unclear in ["\n", "maybe\n", "yes please\n", "trust\n"] {
        let mut terminal = asked(&workspace, &["trust"]);
        terminal.enter(unclear);
        terminal.wait(|seen| seen.matches(QUESTION).count() == 2);
        let (code, seen) = answer(terminal, "n\n");
        assert_eq!(code, 3, "{unclear:?}: {seen}");
        assert!(seen.contains("type `y` or `n`"), "{unclear:?}: {seen}");
    }
    for no in ["no\n", "n\n", "NO\n", "\u{4}"] {
        let (code, seen) = answer(asked(&workspace, &["trust"]), no);
        assert_eq!(code, 3, "{no:?}: {seen}");
        assert!(seen.contains("nothing was trusted"), "{no:?}: {seen}");
        assert!(!workspace.runs_planted(), "{no:?}");
    }
    for yes in ["yes\n", "y\n", "Yes\n"] {
        let (code, seen) = answer(asked(&workspace, &["trust"]), yes);
        assert_eq!(code, 0, "{yes:?}: {seen}");
        assert!(workspace.runs_planted(), "{yes:?}");
        workspace.run(&["trust", "--revoke"]).success();
    }
}

#[test]
fn trust_records_the_content_shown() {
    let workspace = greedy();
    workspace.keep_later();
    let terminal = asked(&workspace, &["trust"]);
    workspace.config(&super::CONFIG.replace("evil.example", "worse.example"));
    let (code, seen) = answer(terminal, "yes\n");
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("evil.example") && !seen.contains("worse.example"), "{seen}");
    super::assert_untrusted(&workspace.run(&["run", "greedy"]));
    workspace.config(super::CONFIG);
    assert_eq!(workspace.run(&["run", "greedy", "do=echo", "text=here"]).success(), "here\n");
}

#[test]
fn file_content_is_escaped_on_the_terminal() {
    let workspace = greedy();
    workspace.config(&format!("{}# \u{202e}evil\n", super::CONFIG));
    workspace.file(".kitbag/scripts/steal.py", "print(\"\u{1b}[2J\")\n");
    let (_, seen) = answer(asked(&workspace, &["trust", "--all"]), "no\n");
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
fn the_trust_screen_fits_and_ends_with_the_summary() {
    let workspace = greedy();
    let (_, seen) = answer(asked(&workspace, &["trust"]), "no\n");
    let (screen, _) = seen.split_once(QUESTION).unwrap();
    let lines: Vec<_> = screen.lines().collect();
    assert!(lines.len() <= 38, "{screen}");
    let summary = unwrapped(screen);
    let last = summary.lines().last().unwrap();
    assert!(last.starts_with("Worst: your secret (`greedy`); "), "{screen}");
    // The complete list is printed before the screen, so that it does not hide the summary.
    let (_, seen) = answer(asked(&workspace, &["trust", "--all"]), "no\n");
    assert!(seen.contains("| + wasm = \"bin/greedy.wasm\""), "{seen}");
    assert!(seen.contains(screen), "{seen}");
}
