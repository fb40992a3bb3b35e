//! The process between kitbag and a server.
//!
//! In a namespace of processes the keeper is process 1, with which the kernel ends all others.
//! Elsewhere it adopts processes whose parents have ended, so that it can find and kill them all,
//! daemons included.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, write};
use rustix::process::DumpableBehavior;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, set_dumpable_behavior, setsid, wait,
};
use rustix::thread::{Timespec, nanosleep, set_name};

use super::{Failed, Prepared, Step, call, program};

/// The descriptors of the clones.
pub(super) struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Its other end is closed when kitbag ends.
    pub(super) life: OwnedFd,
    /// Receives a step that failed.
    pub(super) report: OwnedFd,
}

/// Bytes of memory around the stack's end and around the thread's variables that are not released.
const KEPT: usize = 256 << 10;
/// The time for ending after a signal: 300 ms.
const TERMINATION_STEPS: u32 = 30;
const TERMINATION_STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// The exit status of a keeper that killed its server, as shells report it.
const KILLED: i32 = 128 + 9;

/// Starts the program and waits for its end. All signals are blocked.
pub(super) fn run(prepared: &Prepared, streams: &Streams) -> ! {
    match start(prepared, streams) {
        Ok((server, signals)) => watch(server, signals.as_fd(), streams.life.as_fd()),
        Err(failed) => report(failed, streams),
    }
}

/// Sends a failed step to kitbag.
pub(super) fn report(failed: Failed, streams: &Streams) -> ! {
    let [a, b, c, d] = failed.error.raw_os_error().to_ne_bytes();
    // It fails if kitbag has ended.
    let _ = write(&streams.report, &[failed.step as u8, a, b, c, d]);
    call::exit(1)
}

fn start(prepared: &Prepared, streams: &Streams) -> Result<(Pid, OwnedFd), Failed> {
    // Without a terminal: its keys send signals to groups of processes.
    let _ = setsid();
    let _ = set_name(c"server-keeper");
    let namespaces = prepared.jail.as_ref().and_then(|jail| jail.namespaces.as_ref());
    let own_proc = namespaces.map(|namespaces| namespaces.enter()).transpose()?;
    let clone = |error| Failed { step: Step::Clone, error };
    let signals = call::signal_descriptor(&[libc::SIGCHLD, libc::SIGTERM]).map_err(clone)?;
    let keeper = getpid();
    set_child_subreaper(Some(keeper)).map_err(clone)?;
    match Pid::from_raw(call::clone_again().map_err(clone)?) {
        None => program::run(prepared, streams, keeper, own_proc.unwrap_or(false)),
        Some(server) => Ok((server, signals)),
    }
}

/// Waits until the server ends or `life` is closed, and ends everything.
fn watch(server: Pid, signals: BorrowedFd<'_>, life: BorrowedFd<'_>) -> ! {
    call::close_all_but(signals, life);
    // The copy of kitbag's memory is unreadable for other processes of the user.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    release_memory();
    let mut status = None;
    loop {
        let mut ready = [
            PollFd::from_borrowed_fd(life, PollFlags::IN),
            PollFd::from_borrowed_fd(signals, PollFlags::IN),
        ];
        let _ = poll(&mut ready, None);
        let is_over = !ready[0].revents().is_empty();
        let mut signal = [0; 128];
        while read(signals, &mut signal) == Ok(128) {
            if signal[..4] == libc::SIGTERM.to_ne_bytes() {
                let _ = kill_process_group(server, Signal::TERM);
            }
        }
        let _ = reap(server, &mut status);
        if is_over && status.is_none() {
            terminate(server, signals, &mut status);
        }
        if is_over || status.is_some() {
            kill_all(server, &mut status);
            call::exit(status.unwrap_or(KILLED));
        }
    }
}

/// Gives the server some time to end, as its input has ended.
fn terminate(server: Pid, signals: BorrowedFd<'_>, status: &mut Option<i32>) {
    let _ = kill_process_group(server, Signal::TERM);
    for _ in 0..TERMINATION_STEPS {
        let mut ready = [PollFd::from_borrowed_fd(signals, PollFlags::IN)];
        let _ = poll(&mut ready, Some(&TERMINATION_STEP));
        while read(signals, &mut [0; 128]) == Ok(128) {}
        let _ = reap(server, status);
        if status.is_some() {
            break;
        }
    }
}

/// Takes the results of all processes that have ended. `Err` if none is left.
fn reap(server: Pid, status: &mut Option<i32>) -> Result<(), Errno> {
    while let Some((process, ended)) = wait(WaitOptions::NOHANG)? {
        if process == server {
            *status = Some(exit_status(ended));
        }
    }
    Ok(())
}

fn exit_status(ended: WaitStatus) -> i32 {
    ended.exit_status().or(ended.terminating_signal().map(|signal| 128 + signal)).unwrap_or(KILLED)
}

/// Kills all processes that the server started, until none is left.
fn kill_all(server: Pid, status: &mut Option<i32>) {
    let _ = kill_process_group(server, Signal::KILL);
    while reap(server, status).is_ok() {
        kill_children();
        let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 });
    }
}

/// Kills the children of this process. Their children become its own.
fn kill_children() {
    let path = c"/proc/thread-self/children";
    let Ok(file) = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return };
    let mut buffer = [0; 4096];
    let Ok(count) = read(&file, &mut buffer) else { return };
    let mut number = 0_i32;
    for byte in &buffer[..count] {
        match byte {
            b'0'..=b'9' => {
                number = number.saturating_mul(10).saturating_add(i32::from(byte - b'0'));
            }
            // A number that the buffer cuts is not followed by a space.
            _ => {
                if let Some(process) = Pid::from_raw(number) {
                    let _ = kill_process(process, Signal::KILL);
                }
                number = 0;
            }
        }
    }
}

/// Releases the copy of kitbag's memory, which holds secrets and would grow as kitbag changes its
/// own. The stack and the variables of this thread remain.
fn release_memory() {
    let path = c"/proc/thread-self/maps";
    let Ok(file) = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return };
    let here = std::ptr::from_ref(&file).addr();
    let kept = [here, call::thread_variables()]
        .map(|address| (address.saturating_sub(KEPT), address.saturating_add(KEPT)));
    let mut buffer = [0; 4096];
    let mut length = 0;
    while let Ok(count @ 1..) = read(&file, &mut buffer[length..]) {
        length += count;
        let mut start = 0;
        while let Some(end) = buffer[start..length].iter().position(|byte| *byte == b'\n') {
            if let Some(range) = private_memory(&buffer[start..start + end]) {
                release(range, kept);
            }
            start += end + 1;
        }
        buffer.copy_within(start..length, 0);
        length -= start;
        if length == buffer.len() {
            // A line is shorter than this: a path has at most 4,096 bytes, and these have none.
            length = 0;
        }
    }
}

/// Returns the range of a line of `maps`, if it is private writable memory without a name.
fn private_memory(line: &[u8]) -> Option<(usize, usize)> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let range = fields.next()?;
    let (permissions, _offset, _device, inode) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let is_anonymous = match fields.next() {
        None => true,
        Some(name) => name == b"[heap]",
    };
    if permissions != b"rw-p" || inode != b"0" || !is_anonymous {
        return None;
    }
    let dash = range.iter().position(|byte| *byte == b'-')?;
    Some((hexadecimal(&range[..dash])?, hexadecimal(&range[dash + 1..])?))
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some((number << 4) | digit as usize)
    })
}

/// Releases the pages of a range that are not in two kept ranges.
fn release((start, end): (usize, usize), mut kept: [(usize, usize); 2]) {
    const PAGE: usize = 1 << 16;
    if kept[0] > kept[1] {
        kept.swap(0, 1);
    }
    let mut from = start;
    for (kept_start, kept_end) in kept.into_iter().chain([(end, end)]) {
        // Whole pages of any size are kept.
        let to = (kept_start / PAGE * PAGE).min(end);
        if from < to {
            #[expect(unsafe_code, reason = "memory that is never used again")]
            // SAFETY: this process uses only its stack, the variables of its thread, and its code
            // from here on; `kept` holds the first two, and code is not writable. It never returns.
            unsafe {
                call::release(from, to);
            }
        }
        from = from.max(kept_end.next_multiple_of(PAGE));
    }
}
