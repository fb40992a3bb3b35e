//! The compiling process: its start, its limits and its end.

use std::io;
use std::os::fd::{AsFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

/// Why a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCause {
    /// Its processor time is exhausted.
    OutOfTime,
    /// It aborted, as Rust does without memory.
    Aborted,
}

/// The limits of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessLimits {
    /// Used memory, in bytes.
    pub(crate) memory: u64,
    /// Used or reserved memory, in bytes.
    pub(crate) addresses: u64,
    /// Processor time of all threads, in seconds.
    pub(crate) seconds: u64,
}

/// Sets the name of a program in process lists.
pub(crate) fn set_process_name(command: &mut Command, name: &str) {
    command.arg0(name);
}

/// Makes reads and writes fail instead of blocking.
///
/// # Errors
///
/// Errors of the system.
pub(crate) fn set_nonblocking(pipe: &impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfl(pipe, OFlags::NONBLOCK)?)
}

/// Waits until one of a process's pipes is ready, or the time is over.
///
/// # Errors
///
/// Errors of the system.
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

/// Returns why a process was ended. `None` if it exited or for other reasons.
pub(crate) fn exit_cause(status: ExitStatus) -> Option<ExitCause> {
    match status.signal().and_then(Signal::from_named_raw)? {
        Signal::XCPU => Some(ExitCause::OutOfTime),
        Signal::ABORT => Some(ExitCause::Aborted),
        _ => None,
    }
}

/// Lowers the priority of this process by `niceness`.
pub(crate) fn lower_priority(niceness: i32) {
    // On failure, the process continues unchanged.
    let _ = rustix::process::nice(niceness);
}

/// Closes inherited file descriptors except for the standard streams: child processes inherit every
/// descriptor that their parent left open.
///
/// Must be called before this process opens anything.
pub(crate) fn close_inherited() {
    /// Used if the descriptors cannot be listed.
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
        // The descriptor of the list is closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Ends this process with its parent and at these limits, but never above inherited limits. Forbids
/// writing files.
///
/// # Errors
///
/// Errors of the system, or if the parent has ended.
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

/// Makes the kernel kill this process when its parent ends.
#[cfg(target_os = "linux")]
fn end_with_parent() -> io::Result<()> {
    use rustix::process::set_parent_process_death_signal;
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// On other systems, the limit of processor time ends the process.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> io::Result<()> {
    Ok(())
}
