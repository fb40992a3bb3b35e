//! Platform-specific code: a program with all that it starts, as a
//! group that is ended as a whole.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// A program that was not waited for yet, and what it has started.
#[derive(Clone, Copy)]
pub(crate) struct Group(Pid);

/// What became of a program.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// It has ended.
    Ended,
    /// It was stopped, as the system does where it reads the terminal.
    Stopped,
}

impl Group {
    /// Starts a program in a group of its own.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let group = Self(Pid::from_child(&child));
        Ok((child, group))
    }

    /// Waits until the program has ended or was stopped. It keeps its number.
    pub(crate) fn watch(self) -> Change {
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.0), options) {
                Err(Errno::INTR) => {}
                Ok(Some(status)) if status.stopped() => return Change::Stopped,
                _ => return Change::Ended,
            }
        }
    }

    /// Ends all of it, as long as the program was not waited for.
    pub(crate) fn kill(self) {
        // They may have ended by themselves.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}
