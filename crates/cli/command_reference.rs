//! `docs/commands.md`: every command and option, from the definitions of the command line.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use clap::{Arg, Command, CommandFactory};

use crate::Cli;

const INTRODUCTION: &str = "\
# Command reference

Every command and option of kitbag. This page is generated from the definitions of the command line;
`kitbag COMMAND --help` and `kitbag man COMMAND` show the same.
";

#[test]
fn the_command_reference_is_current() {
    let mut kitbag = Cli::command().disable_help_subcommand(true);
    kitbag.build();
    let mut page = INTRODUCTION.to_owned();
    let _ = write!(page, "\n{}\n", listed(&kitbag));
    let _ = write!(page, "\n## Global options\n\nEvery command takes these options.\n");
    options(&mut page, "option", kitbag.get_arguments().filter(|arg| arg.is_global_set()));
    page.push_str(&remarks(&kitbag, "##"));
    for command in kitbag.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(&mut page, command, "##");
    }
    assert_current("commands.md", &page);
}

/// Asserts that a page of `docs/` has the generated content, or writes it.
#[track_caller]
pub(crate) fn assert_current(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|current| current == page),
        "docs/{name} is stale: run `INSTA_UPDATE=always cargo test --bin kitbag reference` and \
         review the change",
    );
}

/// Lists the subcommands of a command as a table with summaries.
fn listed(command: &Command) -> String {
    let mut table = "| command | purpose |\n|---|---|".to_owned();
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_bin_name().unwrap();
        let about = command.get_about().unwrap().to_string();
        let _ = write!(table, "\n| [`{name}`](#{}) | {} |", name.replace(' ', "-"), cell(&about));
    }
    table
}

fn section(page: &mut String, command: &Command, level: &str) {
    let name = command.get_bin_name().unwrap();
    let about = command.get_long_about().or(command.get_about()).unwrap().to_string();
    let _ = write!(page, "\n{level} `{name}`\n\n{}\n", prose(&about));
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    let commands: Vec<_> = commands.collect();
    if !commands.is_empty() {
        let _ = write!(page, "\n{}\n", listed(command));
    } else {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
        let _ = write!(page, "\n```text\n{usage}\n```\n");
    }
    let own = || {
        let args = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set());
        args.filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
    };
    options(page, "argument", own().filter(|arg| arg.is_positional()));
    options(page, "option", own().filter(|arg| !arg.is_positional()));
    page.push_str(&remarks(command, &format!("{level}#")));
    for command in commands {
        section(page, command, &format!("{level}#"));
    }
}

fn options<'a>(page: &mut String, kind: &str, args: impl Iterator<Item = &'a Arg>) {
    let mut args = args.peekable();
    if args.peek().is_some() {
        let _ = write!(page, "\n| {kind} | default | meaning |\n|---|---|---|\n");
    }
    for arg in args {
        let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let help = arg.get_long_help().or(arg.get_help()).unwrap().to_string();
        let (mut help, mut default) = match help.split_once("[default: ") {
            Some((help, rest)) => {
                let (default, rest) = rest.split_once(']').unwrap();
                (format!("{}{rest}", help.trim_end()), default.to_owned())
            }
            None => (help, String::new()),
        };
        if arg.get_action().takes_values() {
            let written = arg.get_default_values().iter();
            let written: Vec<_> = written.map(|value| format!("`{}`", value.display())).collect();
            if default.is_empty() {
                default = written.join(", ");
            }
            let choices = arg.get_possible_values();
            let choices = choices.iter().filter(|choice| !choice.is_hide_set());
            let choices: Vec<_> =
                choices.map(|choice| format!("`{}`", choice.get_name())).collect();
            if !choices.is_empty() {
                let _ = write!(help, ". One of {}", choices.join(", "));
            }
        }
        let _ = writeln!(page, "| `{short}{arg}` | {} | {} |", cell(&default), cell(&prose(&help)));
    }
}

/// Returns the text after the options: paragraphs, and titled lists such as the examples.
fn remarks(command: &Command, level: &str) -> String {
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut shown = String::new();
    for paragraph in help.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        match paragraph.split_once(":\n") {
            Some((title, lines)) if lines.lines().all(|line| line.starts_with("  ")) => {
                let lines: Vec<_> = lines.lines().map(|line| &line[2..]).collect();
                let title = match level {
                    "##" => format!("## {title}"),
                    _ => format!("{title}:"),
                };
                let _ = write!(shown, "\n{title}\n\n```text\n{}\n```\n", lines.join("\n"));
            }
            _ => {
                let _ = write!(shown, "\n{}\n", prose(paragraph));
            }
        }
    }
    shown
}

/// Joins the lines of each paragraph.
fn prose(text: &str) -> String {
    let paragraphs = text.trim().split("\n\n");
    let paragraphs = paragraphs.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn cell(text: &str) -> String {
    text.replace("\n\n", " ").replace('|', "\\|")
}
