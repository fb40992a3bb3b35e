//! Namespaces of a confined server: processes, mounts, IPC and network.

use std::ffi::{CStr, CString, c_int};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};

use super::{Failed, Step, call, path_text};
use crate::process::confinement::{Rules, TEMPORARY_BYTES};

/// `MOUNT_ATTR_RDONLY`
const READ_ONLY: u64 = 1;
/// `MOUNT_ATTR_NOSUID`
const NO_SETUID: u64 = 2;
/// The smallest number that the kernel accepts as `pid_max`.
pub(super) const LEAST_PID_MAX: u32 = 301;

/// How this process can create namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// With the privileges of root.
    Root,
    /// With those of a new namespace of users.
    User,
}

/// The namespaces of a server, and the mounts in them.
pub(super) struct Namespaces {
    flags: c_int,
    /// Lines for `uid_map` and `gid_map`.
    identity: Option<[CString; 2]>,
    write: Vec<CString>,
    fixed: Vec<CString>,
    temporary: Option<CString>,
    temporary_options: CString,
    pid_max: Option<CString>,
}

impl Namespaces {
    pub(super) fn new(rules: &Rules, privilege: Privilege, limits_processes: bool) -> Self {
        let mut namespaces = Self::empty(privilege);
        if !rules.network {
            namespaces.flags |= libc::CLONE_NEWNET;
        }
        namespaces.write = rules.write.iter().map(|path| path_text(path)).collect();
        namespaces.fixed = rules.fixed.iter().map(|path| path_text(path)).collect();
        namespaces.temporary = Some(path_text(&rules.temporary));
        let pid_max = rules.processes.max(LEAST_PID_MAX.into());
        let text = CString::new(pid_max.to_string()).unwrap_or_default();
        namespaces.pid_max = limits_processes.then_some(text);
        namespaces
    }

    /// Returns namespaces with nothing to write, as the probe needs them.
    pub(super) fn empty(privilege: Privilege) -> Self {
        let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
        let mut identity = None;
        if privilege == Privilege::User {
            flags |= libc::CLONE_NEWUSER;
            let same = |id: u32| CString::new(format!("{id} {id} 1\n")).unwrap_or_default();
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            identity = Some([same(user.as_raw()), same(group.as_raw())]);
        }
        let options = format!("size={TEMPORARY_BYTES},nr_inodes=65536,mode=700");
        Self {
            flags,
            identity,
            write: Vec::new(),
            fixed: Vec::new(),
            temporary: None,
            temporary_options: CString::new(options).unwrap_or_default(),
            pid_max: None,
        }
    }

    /// Returns the flags for `clone`.
    pub(super) fn flags(&self) -> c_int {
        self.flags
    }

    /// Sets up the namespaces of this process, which was cloned with the flags. Returns whether
    /// `/proc` shows these processes only.
    pub(super) fn enter(&self) -> Result<bool, Failed> {
        if let Some([user, group]) = &self.identity {
            let identity = |error| Failed { step: Step::Identity, error };
            write_file(c"/proc/self/setgroups", b"deny").map_err(identity)?;
            write_file(c"/proc/self/uid_map", user.to_bytes()).map_err(identity)?;
            write_file(c"/proc/self/gid_map", group.to_bytes()).map_err(identity)?;
        }
        let own_proc = self.mount().map_err(Step::Mounts.failed())?;
        if let Some(pid_max) = &self.pid_max {
            let limited = write_file(c"/proc/sys/kernel/pid_max", pid_max.to_bytes());
            limited.map_err(Step::Processes.failed())?;
        }
        if own_proc {
            call::set_mount_attributes(c"/proc", READ_ONLY, 0).map_err(Step::Mounts.failed())?;
        }
        Ok(own_proc)
    }

    fn mount(&self) -> Result<bool, Errno> {
        // New mounts of the system appear here; mounts of this namespace are invisible outside.
        let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change(c"/", propagation)?;
        for path in &self.write {
            mount_bind_recursive(path.as_c_str(), path.as_c_str())?;
        }
        call::set_mount_attributes(c"/", READ_ONLY | NO_SETUID, 0)?;
        for path in &self.write {
            call::set_mount_attributes(path, 0, READ_ONLY)?;
        }
        for path in &self.fixed {
            mount_bind_recursive(path.as_c_str(), path.as_c_str())?;
            call::set_mount_attributes(path, READ_ONLY, 0)?;
        }
        let memory = |path: &CStr| {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount(c"tmpfs", path, c"tmpfs", flags, self.temporary_options.as_c_str())
        };
        if let Some(path) = &self.temporary {
            memory(path)?;
        }
        match memory(c"/dev/shm") {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        // Containers hide parts of `/proc`, and then it cannot be mounted again.
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount(c"proc", c"/proc", c"proc", flags, None).is_ok())
    }
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(&file, text).map(drop)
}
