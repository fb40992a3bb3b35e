//! A keeper process for each server, which runs between kitbag and the program.
//!
//! Kitbag clones itself. The clone is the keeper: it calls only functions that allocate no memory
//! and take no lock, because other threads of kitbag may hold locks at the time of the clone, and it
//! runs no other program, so that servers work in programs that embed kitbag. It clones the process
//! that becomes the program ([`program`]), releases its copy of kitbag's memory, and waits
//! ([`keeper`]).
//!
//! The keeper knows that kitbag has ended by a pipe whose other end only kitbag holds.

mod call;
mod keeper;
mod landlock;
mod namespaces;
mod probe;
mod program;
mod seccomp;

use std::ffi::{CString, NulError, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use tokio::io::unix::AsyncFd;

use self::call::Arguments;
use self::keeper::Streams;
use self::namespaces::Namespaces;
use self::program::Jail;
use super::{Failure, Job, Started};
use crate::process::Ended;

pub(in crate::process) use self::probe::support;

/// Everything that the clones need, prepared before the first clone.
struct Prepared {
    program: CString,
    arguments: Arguments,
    variables: Arguments,
    directory: CString,
    jail: Option<Jail>,
}

/// The keeper of a server. The server ends when this is dropped.
#[derive(Debug)]
pub(in crate::process) struct Keeper {
    process: AsyncFd<OwnedFd>,
    id: u32,
    /// The keeper ends the server when this is closed.
    life: Option<OwnedFd>,
    ended: Option<Ended>,
}

/// A step of a clone, as a number in the message to kitbag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Step {
    Identity,
    Mounts,
    Processes,
    Clone,
    Streams,
    Limits,
    Capabilities,
    Files,
    Directory,
    Filter,
    Execute,
}

/// A step of a clone that failed.
#[derive(Clone, Copy)]
struct Failed {
    step: Step,
    error: rustix::io::Errno,
}

pub(in crate::process) fn start(job: &Job<'_>) -> Result<Started, Failure> {
    let prepared = prepare(job)?;
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(Failure::at("opening a pipe"));
    let (stdin, our_stdin) = pipe()?;
    let (our_stdout, stdout) = pipe()?;
    let (our_stderr, stderr) = pipe()?;
    let (life, our_life) = pipe()?;
    let (our_report, report) = pipe()?;

    let streams = Streams { stdin, stdout, stderr, life, report };
    let flags = prepared.jail.as_ref().and_then(|jail| jail.namespaces.as_ref());
    let flags = flags.map_or(0, Namespaces::flags);
    let (id, process) =
        call::clone_with_blocked_signals(flags, || keeper::run(&prepared, &streams))
            .map_err(Failure::at("cloning the process"))?;
    drop(streams);

    let process = call::watch_process(process).map_err(Failure::at("waiting for its end"))?;
    let keeper = Keeper { process, id, life: Some(our_life), ended: None };
    // Ends when the program has started, because the other end is closed then.
    let mut message = [0; 5];
    let mut length = 0;
    while length < message.len() {
        match rustix::io::read(&our_report, &mut message[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::at("reading the report of its start")(error)),
        }
    }
    if length == message.len() {
        let [step, error @ ..] = message;
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(error));
        return Err(Failure { step: Step::text(step), error });
    }
    Ok(Started { keeper, stdin: our_stdin, stdout: our_stdout, stderr: our_stderr })
}

fn prepare(job: &Job<'_>) -> Result<Prepared, Failure> {
    let text = |text: &OsStr| -> Result<CString, Failure> {
        let no_nul = |_: NulError| io::Error::new(io::ErrorKind::InvalidInput, "a NUL character");
        CString::new(text.as_bytes()).map_err(no_nul).map_err(Failure::at("its command"))
    };
    let arguments = job.command.iter().map(|argument| text(OsStr::new(argument)));
    let variables = job.variables.iter().map(|(name, value)| {
        let mut variable = name.clone();
        variable.push("=");
        variable.push(value);
        text(&variable)
    });
    Ok(Prepared {
        program: text(job.program.as_os_str())?,
        arguments: Arguments::new(arguments.collect::<Result<_, _>>()?),
        variables: Arguments::new(variables.collect::<Result<_, _>>()?),
        directory: text(job.directory.as_os_str())?,
        jail: job.rules.map(|rules| Jail::new(rules, support())).transpose()?,
    })
}

/// Returns a path as text for the system. Paths from the system have no NUL character.
fn path_text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

impl Keeper {
    pub(in crate::process) fn id(&self) -> u32 {
        self.id
    }

    pub(in crate::process) async fn ended(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.ended {
                return ended;
            }
            // Readable once the process has ended.
            let Ok(mut ready) = self.process.readable().await else { return Ended::Signal(9) };
            self.ended = reap(self.process.get_ref(), WaitIdOptions::NOHANG);
            ready.clear_ready();
        }
    }

    /// Sends `SIGTERM` to the server.
    pub(in crate::process) fn terminate(&self) {
        // It fails if the keeper has ended.
        let _ = pidfd_send_signal(self.process.get_ref(), Signal::TERM);
    }

    /// Makes the keeper kill everything.
    pub(in crate::process) fn kill(&mut self) {
        self.life = None;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.kill();
        if self.ended.is_none() {
            // The keeper needs milliseconds.
            reap(self.process.get_ref(), WaitIdOptions::empty());
        }
    }
}

/// Waits for the end of a process. Returns nothing if it still runs, with `NOHANG`.
fn reap(process: &OwnedFd, options: WaitIdOptions) -> Option<Ended> {
    let id = WaitId::PidFd(process.as_fd());
    let status = loop {
        match waitid(id.clone(), WaitIdOptions::EXITED | options) {
            Ok(status) => break status?,
            Err(rustix::io::Errno::INTR) => {}
            // The embedding program reaped it.
            Err(_) => return Some(Ended::Signal(9)),
        }
    };
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    Some(match (status.exit_status(), status.terminating_signal()) {
        // The keeper reports signals as shells do.
        (Some(code @ 129..=192), _) => Ended::Signal(byte(code - 128)),
        (Some(code), _) => Ended::Status(byte(code)),
        (None, signal) => Ended::Signal(signal.map_or(9, byte)),
    })
}

impl Step {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Identity, "taking its identity in a namespace of users"),
        (Self::Mounts, "protecting directories in its namespace of mounts"),
        (Self::Processes, "limiting the number of its processes"),
        (Self::Clone, "cloning the process"),
        (Self::Streams, "connecting its streams"),
        (Self::Limits, "setting its limits"),
        (Self::Capabilities, "giving up privileges"),
        (Self::Files, "restricting files with Landlock"),
        (Self::Directory, "entering its working directory"),
        (Self::Filter, "filtering system calls"),
        (Self::Execute, "executing the program"),
    ];

    /// Returns the words for the number of a step.
    fn text(number: u8) -> &'static str {
        let step = Self::ALL.iter().find(|(step, _)| *step as u8 == number);
        step.map_or("an unknown step", |(_, text)| text)
    }

    /// Returns a function for `map_err`.
    fn failed(self) -> impl FnOnce(rustix::io::Errno) -> Failed {
        move |error| Failed { step: self, error }
    }
}
