//! Systems other than Linux: a process group, and no confinement.

use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Failure, Job, Started};
use crate::process::{Ended, Support};

/// A process group. It is killed when this is dropped.
#[derive(Debug)]
pub(in crate::process) struct Keeper {
    child: Child,
    ended: Option<Ended>,
}

pub(in crate::process) fn support() -> &'static Support {
    static SUPPORT: OnceLock<Support> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        let reason = "servers are confined on Linux only";
        Support {
            landlock: Err(reason.to_owned()),
            namespaces: Err(reason.to_owned()),
            seccomp: Err(reason.to_owned()),
            processes: Err(reason.to_owned()),
            least_processes: 1,
        }
    })
}

pub(in crate::process) fn start(job: &Job<'_>) -> Result<Started, Failure> {
    debug_assert!(job.rules.is_none(), "`support` refuses a confinement");
    let mut child = Command::new(job.program)
        .arg0(job.command.first().map_or("", String::as_str))
        .args(job.command.iter().skip(1))
        .env_clear()
        .envs(job.variables)
        .current_dir(job.directory)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::at("starting the program"))?;
    let missing = || Failure {
        step: "opening its streams",
        error: std::io::Error::from(std::io::ErrorKind::BrokenPipe),
    };
    let stdin = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
    let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
    let stderr = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
    Ok(Started { keeper: Keeper { child, ended: None }, stdin, stdout, stderr })
}

impl Keeper {
    pub(in crate::process) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(in crate::process) async fn ended(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.ended {
                return ended;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                self.kill_group(Signal::KILL);
                self.ended = Some(ended(status));
            } else {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    pub(in crate::process) fn terminate(&self) {
        self.kill_group(Signal::TERM);
    }

    pub(in crate::process) fn kill(&mut self) {
        self.kill_group(Signal::KILL);
    }

    fn kill_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            // It fails if all of its processes have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Status(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, signal) => Ended::Signal(signal.and_then(|it| it.try_into().ok()).unwrap_or(0)),
    }
}
