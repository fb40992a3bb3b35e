//! Features of the running kernel for confining servers.

use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, geteuid, waitid};

use super::call;
use super::namespaces::{LEAST_PID_MAX, Namespaces, Privilege};
use crate::process::Support;

/// The features of the system, and how kitbag uses them.
pub(in crate::process) struct Probed {
    support: Support,
    /// How namespaces are created. `None`: they cannot be.
    pub(super) privilege: Option<Privilege>,
    pub(super) is_root: bool,
    /// True if the number of processes in a namespace can be limited: since Linux 6.14.
    pub(super) limits_pids: bool,
}

impl Deref for Probed {
    type Target = Support;

    fn deref(&self) -> &Support {
        &self.support
    }
}

/// Returns what the system offers. The first call starts processes for a moment.
pub(in crate::process) fn support() -> &'static Probed {
    static PROBED: OnceLock<Probed> = OnceLock::new();
    PROBED.get_or_init(probe)
}

fn probe() -> Probed {
    let landlock = call::landlock_version().map_err(|error| match error {
        Errno::OPNOTSUPP => "Landlock is not enabled: see the kernel's option `lsm=`".to_owned(),
        _ => "this kernel has no Landlock, or a container's filter refuses it".to_owned(),
    });
    let seccomp = call::check_seccomp()
        .map_err(|error| format!("system calls cannot be filtered with seccomp: {error}"))
        .and_then(|()| match std::env::consts::ARCH {
            "x86_64" | "aarch64" | "riscv64" => Ok(()),
            other => Err(format!("there is no filter of system calls for {other}")),
        });
    let is_root = geteuid().is_root();
    let candidates: &[Privilege] =
        if is_root { &[Privilege::Root, Privilege::User] } else { &[Privilege::User] };
    let mut privilege = None;
    let mut reason = String::new();
    let mut own_proc = false;
    for candidate in candidates {
        match try_namespaces(*candidate) {
            Ok(shows_own) => {
                (privilege, own_proc) = (Some(*candidate), shows_own);
                break;
            }
            Err(error) => reason = error,
        }
    }
    let limits_pids = is_root && privilege == Some(Privilege::Root) && own_proc && try_pid_max();
    let processes = match (privilege, is_root) {
        (Some(Privilege::User), false) => Ok(()),
        (_, true) if limits_pids => Ok(()),
        (_, true) => Err("as root, that takes namespaces and Linux 6.14".to_owned()),
        (_, false) => Err(format!("that takes namespaces: {reason}")),
    };
    let namespaces = match privilege {
        Some(_) => Ok(()),
        None => Err(reason),
    };
    let least_processes = if is_root { LEAST_PID_MAX } else { 1 };
    let support = Support { landlock, namespaces, seccomp, processes, least_processes };
    Probed { support, privilege, is_root, limits_pids }
}

/// Creates namespaces for a moment. Returns whether `/proc` can show them alone.
fn try_namespaces(privilege: Privilege) -> Result<bool, String> {
    const SHARED_PROC: i32 = 1;
    const FAILED: i32 = 2;
    let namespaces = Namespaces::empty(privilege);
    let child = || {
        call::exit(match namespaces.enter() {
            Ok(true) => 0,
            Ok(false) => SHARED_PROC,
            Err(failed) => FAILED + failed.step as i32,
        })
    };
    let flags = namespaces.flags() | libc::CLONE_NEWNET;
    let (_, process) = call::clone_with_blocked_signals(flags, child)
        .map_err(|error| format!("namespaces cannot be created here ({error})"))?;
    match wait(&process) {
        Some(0) => Ok(true),
        Some(SHARED_PROC) => Ok(false),
        _ => {
            Err("namespaces have no effect on mounts here; Ubuntu restricts them by default: see \
                  `kernel.apparmor_restrict_unprivileged_userns`"
                .to_owned())
        }
    }
}

/// Returns whether a namespace has its own largest number of processes: since Linux 6.14.
fn try_pid_max() -> bool {
    // Older kernels would change the number of the whole system, so nothing is written here.
    let release = std::fs::read_to_string(Path::new("/proc/sys/kernel/osrelease"));
    let release = release.unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|it| it.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

fn wait(process: &OwnedFd) -> Option<i32> {
    loop {
        match waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED) {
            Err(Errno::INTR) => {}
            ended => return ended.ok()??.exit_status(),
        }
    }
}
