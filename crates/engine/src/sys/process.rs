//! The process that compiles: how it is started, what it may use, and how it ended.

use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// Why a process ended that did not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCause {
    /// It has used its processor time.
    OutOfTime,
    /// It gave up, as Rust does without memory.
    Aborted,
}

/// What this process may use at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLimits {
    /// Memory that is used, in bytes.
    pub(crate) memory: u64,
    /// Memory that is used or reserved, in bytes.
    pub(crate) addresses: u64,
    /// Processor time of all threads, in seconds.
    pub(crate) seconds: u64,
}

/// Starts a program so that lists of processes show it under this name.
pub(crate) fn set_process_name(command: &mut Command, name: &str) {
    command.arg0(name);
}

/// Lets reading and writing fail where it would wait.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, OFlags::NONBLOCK)?)
}

/// Waits until one of the pipes of a process can be used, or the time is over.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn wait_for_pipes(
    output: &ChildStdout,
    input: Option<&ChildStdin>,
    time: Duration,
) -> io::Result<()> {
    let mut fds = vec![PollFd::new(output, PollFlags::IN)];
    if let Some(input) = input {
        fds.push(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::OUT));
    }
    match poll(&mut fds, Some(&Timespec::try_from(time).unwrap_or_default())) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Why a process ended. `None`: by itself, or for another reason.
pub(crate) fn exit_cause(status: ExitStatus) -> Option<ExitCause> {
    match status.signal().and_then(Signal::from_named_raw)? {
        Signal::XCPU => Some(ExitCause::OutOfTime),
        Signal::ABORT => Some(ExitCause::Aborted),
        _ => None,
    }
}

/// Lets other processes run before this one. `niceness` is how much is added to it.
pub(crate) fn lower_priority(niceness: i32) {
    // One that cannot be lowered goes on all the same.
    let _ = rustix::process::nice(niceness);
}

/// Closes what this process was started with besides the three streams: a descriptor that its
/// parent left open goes on to everything that it starts.
///
/// Nothing of this process is open yet.
pub(crate) fn close_inherited() {
    /// Where there is no list of them.
    const MOST: u64 = 1 << 16;
    let first = rustix::stdio::raw_stderr() + 1;
    let listed = std::fs::read_dir("/dev/fd").map(|files| {
        let numbers = files.flatten().flat_map(|file| file.file_name().to_str()?.parse().ok());
        numbers.filter(|number| *number >= first).collect::<Vec<RawFd>>()
    });
    let numbers = listed.unwrap_or_else(|_| {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(MOST).min(MOST);
        (first..i32::try_from(limit).unwrap_or(i32::MAX)).collect()
    });
    for number in numbers {
        // That of the list is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Ends this process with its parent, and at these limits, but never above one that it was
/// started with. It writes no file.
///
/// # Errors
///
/// Those of the system, and where the parent has ended.
pub(crate) fn limit_this_process(parent: u32, limits: ProcessLimits) -> io::Result<()> {
    end_with_parent()?;
    // It may have ended before.
    if parent_id() != parent {
        return Err(io::Error::other("the process that started this has ended"));
    }
    let set = |resource, value: u64| {
        let Rlimit { current, maximum } = getrlimit(resource);
        let value = Some([current, maximum].into_iter().flatten().fold(value, u64::min));
        setrlimit(resource, Rlimit { current: value, maximum: value })
    };
    set(Resource::Data, limits.memory)?;
    set(Resource::As, limits.addresses)?;
    set(Resource::Cpu, limits.seconds)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Core, 0)?;
    Ok(())
}

/// Has the kernel kill this process when the one that started it ends.
#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    use rustix::process::set_parent_process_death_signal;
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Elsewhere its own limit of processor time ends it.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> io::Result<()> {
    Ok(())
}
