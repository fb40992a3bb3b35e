//! A person at a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::{Run, Workspace};

/// How long the terminal may stay unchanged before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command on a terminal.
pub(crate) struct Terminal {
    person: File,
    child: Child,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    /// Starts a command whose input and errors are on a terminal, where `before` is already typed.
    pub(crate) fn start(command: Command, before: &str) -> Self {
        Self::open(command, before, None, false)
    }

    /// Starts a command whose input and errors are on a terminal that wraps no line, because the
    /// length of a path differs between machines.
    pub(crate) fn wide(command: Command) -> Self {
        let size = nix::pty::Winsize { ws_row: 24, ws_col: 1000, ws_xpixel: 0, ws_ypixel: 0 };
        Self::open(command, "", Some(size), false)
    }

    /// Starts a command whose input, output and errors are on a terminal of 40 lines.
    pub(crate) fn with_output(command: Command) -> Self {
        let size = nix::pty::Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        Self::open(command, "", Some(size), true)
    }

    /// Starts a command whose input, output and errors are on a terminal that wraps no line.
    pub(crate) fn wide_with_output(command: Command) -> Self {
        let size = nix::pty::Winsize { ws_row: 60, ws_col: 1000, ws_xpixel: 0, ws_ypixel: 0 };
        Self::open(command, "", Some(size), true)
    }

    fn open(
        mut command: Command,
        before: &str,
        size: Option<nix::pty::Winsize>,
        has_output: bool,
    ) -> Self {
        let terminal = nix::pty::openpty(size.as_ref(), None).unwrap();
        let mut person = File::from(terminal.master);
        person.write_all(before.as_bytes()).unwrap();
        let slave = || Stdio::from(terminal.slave.try_clone().unwrap());
        command.stdin(slave()).stderr(slave());
        command.stdout(if has_output { slave() } else { Stdio::piped() });
        let child = command.spawn().unwrap();
        // The terminal closes when the last process closes it, so this process must not keep it
        // open.
        drop((terminal.slave, command));
        let (sender, output) = channel();
        let mut screen = person.try_clone().unwrap();
        thread::spawn(move || {
            let mut part = [0; 1024];
            // Linux returns an error when reading from a terminal that is closed.
            while let Ok(length @ 1..) = screen.read(&mut part) {
                if sender.send(part[..length].to_owned()).is_err() {
                    return;
                }
            }
        });
        Self { person, child, output, seen: Vec::new() }
    }

    /// Reads until the screen shows it. Returns false if the command ended first.
    #[track_caller]
    pub(crate) fn wait(&mut self, mut is_shown: impl FnMut(&str) -> bool) -> bool {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(part) => self.seen.extend(part),
                Err(RecvTimeoutError::Disconnected) => return false,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("the terminal shows nothing more after\n{}", self.screen());
                }
            }
            if is_shown(&self.screen()) {
                return true;
            }
        }
    }

    pub(crate) fn enter(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).unwrap();
    }

    /// The text on the terminal.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen).replace('\r', "")
    }

    /// Waits for the end of the command. `stderr` is the text on the terminal.
    #[track_caller]
    pub(crate) fn end(mut self) -> Run {
        while self.wait(|_| false) {}
        let stderr = self.screen();
        let output = self.child.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        Run { code: output.status.code().unwrap_or(-1), stdout, stderr }
    }
}

/// Runs the binary on a terminal with a typing person, and returns its standard output and the text
/// on the terminal.
#[track_caller]
pub(crate) fn on_a_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    typed: &str,
) -> (String, String) {
    on_a_watched_terminal(workspace, arguments, typed, |_| {})
}

/// Like [`on_a_terminal`], with a reaction to the text on the terminal.
#[track_caller]
pub(crate) fn on_a_watched_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    typed: &str,
    watch: impl FnMut(&str),
) -> (String, String) {
    let mut command = workspace.command();
    command.args(arguments);
    let run = answered(Terminal::start(command, ""), typed, watch);
    (run.stdout, run.stderr)
}

/// Like [`on_a_terminal`], with a person who types text before the command starts.
#[track_caller]
pub(crate) fn on_a_hasty_terminal(
    workspace: &Workspace,
    arguments: &[&str],
    before: &str,
    typed: &str,
) -> (String, String) {
    let mut command = workspace.command();
    command.args(arguments);
    let run = answered(Terminal::start(command, before), typed, |_| {});
    (run.stdout, run.stderr)
}

/// Types a line at each question. After the last line, it ends the input.
#[track_caller]
pub(crate) fn answered(mut terminal: Terminal, typed: &str, mut watch: impl FnMut(&str)) -> Run {
    let mut answers = typed.split_inclusive('\n');
    let mut answered = 0;
    loop {
        let is_asked = terminal.wait(|screen| {
            watch(screen);
            waits(&screen[answered..])
        });
        if !is_asked {
            return terminal.end();
        }
        answered = terminal.screen().len();
        terminal.enter(answers.next().unwrap_or("\u{4}"));
    }
}

/// The text of a terminal in which the rows of each wrapped line are joined.
pub(crate) fn unwrapped(shown: &str) -> String {
    shown.replace("\r\n", "\n").replace("\n    ", "")
}

/// Returns true if the terminal shows a question that waits for its answer.
fn waits(shown: &str) -> bool {
    let line = shown.rsplit('\n').next().unwrap_or_default();
    line.contains("[n]o") && line.ends_with(": ") || line.starts_with('(') && line.ends_with(") ")
}
