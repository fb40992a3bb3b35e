//! Consent prompts at the terminal: one vocabulary for all commands.

use std::io::{self, BufRead, IsTerminal};

use kitbag::base::text::printable;
use kitbag::base::wrap::wrapped;
use kitbag::toolbox::consent::{Consent, ScreenSize, cut_barred};

use crate::console::output;
use crate::error::CliError;
use crate::sys;

/// The answers to a yes-or-no question.
pub(crate) const YES_OR_NO: &str = "[y]es / [n]o";

/// Maximum lines of a screen, including the question.
const MOST_LINES: usize = 40;

/// Minimum lines of a screen, including the question.
const FEWEST_LINES: usize = 16;

/// Lines of the question and its answer.
const QUESTION_LINES: usize = 2;

/// Columns of text that is not written to a terminal.
const COLUMNS: usize = 100;

/// An answer that a person can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Yes,
    YesOnce,
    /// Approve this call and similar calls in this session.
    Always,
    No,
    /// Decide on each group of grants.
    Customize,
    /// Show the omitted lines, then ask again.
    ShowAll,
}

impl Choice {
    /// Returns the short and the long word for a choice.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::Yes | Self::YesOnce => ["y", "yes"],
            Self::Always => ["a", "always"],
            Self::No => ["n", "no"],
            Self::Customize => ["c", "customize"],
            Self::ShowAll => ["s", "show"],
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Yes => "[y]es",
            Self::YesOnce => "[y]es, once",
            Self::Always => "[a]lways in this session",
            Self::No => "[n]o",
            Self::Customize => "[c]ustomize",
            Self::ShowAll => "[s]how all",
        }
    }
}

pub(crate) fn is_interactive(as_json: bool) -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal() && !as_json
}

/// Shows a consent request: on the terminal if a person is asked there, otherwise as data. `all`
/// shows everything first, in a pager if there is one.
pub(crate) fn show(consent: &Consent, all: bool, is_interactive: bool) -> Result<(), CliError> {
    match (is_interactive, all) {
        (false, true) => output::data(&consent.all(size_of_data())),
        (false, false) => output::data(&consent.screen(size_of_data())),
        (true, all) => {
            if all {
                output::paged(&consent.all(screen_size()))?;
            }
            output::note(&consent.screen(screen_size()));
            Ok(())
        }
    }
}

/// Asks until one of these answers is typed. An empty line, or input typed before the question was
/// shown, is not an answer. `None`: the input ended.
pub(crate) fn ask(question: &str, choices: &[Choice]) -> Result<Option<Choice>, CliError> {
    let labels: Vec<_> = choices.iter().map(|choice| choice.label()).collect();
    let prompt = format!("{question} {}: ", labels.join(" / "));
    loop {
        let Some(line) = typed(&prompt)? else { return Ok(None) };
        let typed = line.trim().to_lowercase();
        if let Some(choice) = choices.iter().find(|choice| choice.words().contains(&&*typed)) {
            return Ok(Some(*choice));
        }
        let words: Vec<_> = choices.iter().map(|choice| choice.words()[0]).collect();
        output::note(&format!("type {}", kitbag::base::text::alternatives(&words)));
    }
}

/// Asks for approval of a call. Untrusted lines are cut to a screen, and all of them are shown on
/// request. `None`: the input ended.
pub(crate) fn approve(text: &str, has_always: bool) -> Result<Option<Choice>, CliError> {
    let (call, question) = text.rsplit_once('\n').unwrap_or(("", text));
    let (shown, is_cut) = cut_barred(call, screen_size(), "`s` shows everything");
    output::note(&shown);
    let choices = [
        Some(Choice::YesOnce),
        has_always.then_some(Choice::Always),
        Some(Choice::No),
        is_cut.then_some(Choice::ShowAll),
    ];
    let choices: Vec<_> = choices.into_iter().flatten().collect();
    loop {
        match ask(question, &choices)? {
            Some(Choice::ShowAll) => output::paged(&on_screen(call))?,
            answer => return Ok(answer),
        }
    }
}

/// Asks for yes or no. The end of the input means no.
pub(crate) fn agrees(question: &str) -> Result<bool, CliError> {
    Ok(ask(question, &[Choice::Yes, Choice::No])? == Some(Choice::Yes))
}

/// Writes a question and reads a line. `None`: the input ended.
pub(crate) fn typed(prompt: &str) -> Result<Option<String>, CliError> {
    let mut line = String::new();
    let asked = output::ask(prompt);
    let read = asked.and_then(|()| io::stdin().lock().read_line(&mut line));
    let read = read.map_err(|source| CliError::Read { path: "standard input".into(), source })?;
    Ok((read > 0).then_some(line))
}

/// Returns the space on the terminal above the question.
pub(crate) fn screen_size() -> ScreenSize {
    let default = ScreenSize::default();
    let (lines, columns) = sys::terminal_size().unwrap_or((default.lines, default.columns));
    let lines = lines.clamp(FEWEST_LINES, MOST_LINES) - QUESTION_LINES;
    ScreenSize { lines, columns, is_wrapped: true }
}

/// Escapes control characters and wraps lines for the screen.
pub(crate) fn on_screen(text: &str) -> String {
    wrapped(&printable(text).to_string(), screen_size().columns)
}

fn size_of_data() -> ScreenSize {
    ScreenSize { lines: MOST_LINES - QUESTION_LINES, columns: COLUMNS, is_wrapped: false }
}
