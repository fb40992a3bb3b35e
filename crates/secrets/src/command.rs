//! Programs that print the value of a secret.
//!
//! Each program has its own process group. The whole group is killed when the program has ended,
//! when its time is over, and when the call that needs the value ends.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::call_end::{AtEnd, CallEnd};
use crate::read_error::ReadError;
use crate::sys::{Change, Group};
use crate::value::{SecretValue, ValueError};

/// The default time limit of a command: long enough to unlock something.
pub const COMMAND_TIME: Duration = Duration::from_secs(60);

/// Maximum size of the output that is read: a value, a line ending, and one more byte to detect
/// longer output.
const MOST_OUTPUT: usize = SecretValue::MOST_BYTES + 3;

/// An event while a command runs.
enum Event {
    /// The output has ended or is longer than a value.
    Output(io::Result<Zeroizing<Vec<u8>>>),
    /// The program has ended or was stopped.
    Changed(Change),
    /// The call that needs the value has ended.
    CallEnded,
}

/// Reads a value from the standard output of a command. The command has no standard input and no
/// terminal. Its standard error is discarded, since it may contain the value.
///
/// When this returns, and when `end` was ended, no process of its group is left.
///
/// # Errors
///
/// [`ReadError`] if the command fails, takes too long, or prints no value, and if the call has
/// ended.
pub fn read_command(
    command: &[String],
    time: Duration,
    end: &CallEnd,
) -> Result<SecretValue, ReadError> {
    let program = command.first().cloned().unwrap_or_default();
    if end.has_ended() {
        return Err(ReadError::CallEnded);
    }
    // The home directory and not the current one, which may be a workspace: some programs read
    // files there.
    let directory = std::env::home_dir().filter(|home| home.is_dir());
    let mut started = Command::new(&program);
    started
        .args(command.iter().skip(1))
        .current_dir(directory.as_deref().unwrap_or(Path::new("/")))
        .env_remove("KITBAG_PASSPHRASE")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let (sender, events) = mpsc::channel();
    let begun = end.start(|| {
        let (child, group) = Group::start(&mut started)?;
        let sender = sender.clone();
        let kill = move || {
            group.kill();
            notify(&sender, Event::CallEnded);
        };
        Ok::<_, io::Error>(((child, group), kill))
    });
    let ((child, group), at_end) = begun.map_err(|error| ReadError::NotStarted {
        program: program.clone(),
        reason: error.to_string(),
    })?;
    let begun = Begun { child, group, at_end, sender, events };
    let failed = |status: &dyn ToString| ReadError::Failed {
        program: program.clone(),
        status: status.to_string(),
    };
    let (status, bytes) = match begun.finish(time) {
        Ok((status, bytes)) => (status.map_err(|error| failed(&error))?, bytes),
        Err(Unfinished::TookTooLong) => return Err(ReadError::TookTooLong { program, time }),
        Err(Unfinished::Stopped) => return Err(ReadError::Stopped { program }),
        Err(Unfinished::CallEnded) => return Err(ReadError::CallEnded),
        Err(Unfinished::TooLong) => return Err(ValueError::TooLong.into()),
        Err(Unfinished::Output(error)) => return Err(failed(&error)),
    };
    if !status.success() {
        return Err(failed(&status));
    }
    Ok(SecretValue::new(bytes.to_vec())?)
}

/// Why a command was killed.
enum Unfinished {
    TookTooLong,
    Stopped,
    CallEnded,
    TooLong,
    Output(io::Error),
}

/// A command that runs.
struct Begun<'a> {
    child: Child,
    group: Group,
    at_end: AtEnd<'a>,
    sender: Sender<Event>,
    events: Receiver<Event>,
}

impl Begun<'_> {
    /// Waits for the command and kills its group.
    fn finish(
        self,
        time: Duration,
    ) -> Result<(io::Result<ExitStatus>, Zeroizing<Vec<u8>>), Unfinished> {
        let Self { mut child, group, at_end, sender, events } = self;
        read_output(&mut child, sender.clone());
        let finished = thread::scope(|scope| {
            scope.spawn(move || notify(&sender, Event::Changed(group.watch())));
            let finished = wait(&events, group, Instant::now() + time);
            group.kill();
            // Before its process id can be reused: it is reserved until the wait below.
            drop(at_end);
            finished
        });
        let status = child.wait();
        finished.map(|bytes| (status, bytes))
    }
}

/// Waits until a command has ended and its output is complete.
fn wait(
    events: &Receiver<Event>,
    group: Group,
    deadline: Instant,
) -> Result<Zeroizing<Vec<u8>>, Unfinished> {
    let (mut has_ended, mut output) = (false, None);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            // The output may be endless.
            Ok(Event::Output(Ok(bytes))) if bytes.len() == MOST_OUTPUT => {
                return Err(Unfinished::TooLong);
            }
            Ok(Event::Output(Ok(bytes))) => output = Some(bytes),
            Ok(Event::Output(Err(error))) => return Err(Unfinished::Output(error)),
            Ok(Event::Changed(Change::Ended)) => {
                // Child processes may keep the output open.
                group.kill();
                has_ended = true;
            }
            Ok(Event::Changed(Change::Stopped)) => return Err(Unfinished::Stopped),
            Ok(Event::CallEnded) => return Err(Unfinished::CallEnded),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(Unfinished::TookTooLong);
            }
        }
        if has_ended && let Some(bytes) = output.take() {
            return Ok(bytes);
        }
    }
}

/// Reads the output on a separate thread, which runs as long as any process keeps the output open.
fn read_output(child: &mut Child, sender: Sender<Event>) {
    let Some(mut output) = child.stdout.take() else { return };
    thread::spawn(move || {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MOST_OUTPUT));
        let read = output.by_ref().take(MOST_OUTPUT as u64).read_to_end(&mut bytes);
        notify(&sender, Event::Output(read.map(|_| bytes)));
    });
}

/// Reports an event if the receiver still waits.
fn notify(sender: &Sender<Event>, event: Event) {
    let _ = sender.send(event);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{BufRead, BufReader};
    use std::path::PathBuf;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn shell(script: &str, time: Duration) -> Result<String, ReadError> {
        shell_in(script, time, &CallEnd::default())
    }

    fn shell_in(script: &str, time: Duration, end: &CallEnd) -> Result<String, ReadError> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        read_command(&command, time, end).map(|value| value.reveal().to_owned())
    }

    /// Creates a FIFO in a temporary directory.
    fn fifo() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        (directory, path)
    }

    /// A script that keeps a FIFO open together with its child, and writes to it if a process is
    /// left.
    fn holding(fifo: &Path, then: &str) -> String {
        format!("exec 3>{fifo:?}; (echo started >&3; sleep 30; echo a child is left >&3) & {then}")
    }

    #[test]
    fn commands_return_their_output() {
        assert_eq!(shell("echo a-long-value; echo noise >&2", MINUTE).unwrap(), "a-long-value");
        // The command has no standard input to wait for.
        assert_eq!(shell("cat; echo a-long-value", MINUTE).unwrap(), "a-long-value");
        let short = ReadError::Value(ValueError::TooShort { bytes: 3 });
        assert_eq!(shell("echo abc", MINUTE), Err(short));
        let endless = ReadError::Value(ValueError::TooLong);
        assert_eq!(shell("yes", MINUTE), Err(endless));
        let failed = shell("echo a-long-value; exit 3", MINUTE).unwrap_err().to_string();
        assert_eq!(failed, "`/bin/sh` failed (exit status: 3); run it separately to see why");
        let absent = ["/nowhere/at-all".to_owned()];
        let absent = read_command(&absent, MINUTE, &CallEnd::default()).map(|_| ());
        let reason = "No such file or directory (os error 2)".to_owned();
        let program = "/nowhere/at-all".to_owned();
        assert_eq!(absent, Err(ReadError::NotStarted { program, reason }));
    }

    #[test]
    fn long_commands_are_killed() {
        let time = Duration::from_millis(50);
        let program = "/bin/sh".to_owned();
        let expected = ReadError::TookTooLong { program, time };
        assert_eq!(shell("exec sleep 600", time), Err(expected.clone()));
        // A command that has printed its value but does not end has failed.
        assert_eq!(shell("echo a-long-value; exec sleep 600 >&-", time), Err(expected));
    }

    #[test]
    fn no_process_is_left_after_a_command() {
        for (then, time, expected) in [
            ("sleep 30; echo it is left >&3", Duration::from_secs(1), None),
            ("echo a-long-value", MINUTE, Some("a-long-value")),
            // The child shares the output and is killed as well.
            ("exec 3>&-; exec echo a-long-value", MINUTE, Some("a-long-value")),
            ("exit 1", MINUTE, None),
        ] {
            let (_directory, fifo) = fifo();
            // Opening succeeds without a writer, so it does not depend on the progress of the
            // command.
            let own = File::options().read(true).write(true).open(&fifo).unwrap();
            let read = shell(&holding(&fifo, then), time);
            assert_eq!(read.ok().as_deref(), expected, "{then}");
            let output = File::open(&fifo).unwrap();
            drop(own);
            let output = io::read_to_string(output).unwrap();
            assert!(!output.contains("left"), "{then}: {output}");
        }
    }

    #[test]
    fn no_process_is_left_after_the_call() {
        let (_directory, fifo) = fifo();
        let script = holding(&fifo, "sleep 30; echo it is left >&3");
        let end = CallEnd::default();
        thread::scope(|scope| {
            let read = scope.spawn(|| shell_in(&script, MINUTE, &end));
            let mut lines = BufReader::new(File::open(&fifo).unwrap());
            let mut text = String::new();
            lines.read_line(&mut text).unwrap();
            end.end();
            lines.read_to_string(&mut text).unwrap();
            assert_eq!(text, "started\n");
            assert_eq!(read.join().unwrap(), Err(ReadError::CallEnded));
        });
        // No command is started either.
        let script = format!("echo started > {fifo:?}");
        assert_eq!(shell_in(&script, MINUTE, &end), Err(ReadError::CallEnded));
    }

    #[test]
    fn commands_that_read_the_terminal_are_killed() {
        // The signal that the system sends to a background process that reads a terminal.
        let stopped = shell("kill -TTIN $$; echo a-long-value", MINUTE).unwrap_err();
        assert_eq!(stopped, ReadError::Stopped { program: "/bin/sh".to_owned() });
        assert_eq!(
            stopped.to_string(),
            "`/bin/sh` reads the terminal, which is not available; unlock its store first, or let \
             it prompt in a window"
        );
    }
}
