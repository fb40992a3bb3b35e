//! Platform-specific code: a program and its children as a process group that is killed as a whole.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The process group of a program that was not waited for yet.
#[derive(Clone, Copy)]
pub(crate) struct Group(Pid);

/// A change of a program's state.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    Ended,
    /// The program was stopped, as by the system when it reads the terminal.
    Stopped,
}

impl Group {
    /// Starts a program in its own process group.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let group = Self(Pid::from_child(&child));
        Ok((child, group))
    }

    /// Waits until the program has ended or was stopped. Its process id remains reserved.
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

    /// Kills the group. The program must not have been waited for.
    pub(crate) fn kill(self) {
        // The processes may have ended already.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}
