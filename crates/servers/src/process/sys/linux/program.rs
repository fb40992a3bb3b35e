//! The process that becomes the program of a server.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, getppid, set_parent_process_death_signal, setrlimit,
    setsid,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use seccompiler::BpfProgram;

use super::keeper::{Streams, report};
use super::landlock::{self, InnerRule};
use super::namespaces::{Namespaces, Privilege};
use super::{Failed, Failure, Prepared, Step, call, seccomp};
use crate::process::confinement::{FILE_BYTES, FILES, Rules};
use crate::process::sys::linux::probe::Probed;

/// The confinement of a program, as the kernel takes it.
pub(super) struct Jail {
    pub(super) namespaces: Option<Namespaces>,
    ruleset: OwnedFd,
    inner_rules: Vec<InnerRule>,
    filters: Vec<BpfProgram>,
    limits: Vec<(Resource, u64)>,
    /// Capabilities that remain.
    capabilities: CapabilitySet,
}

impl Jail {
    pub(super) fn new(rules: &Rules, probed: &Probed) -> Result<Self, Failure> {
        let privilege = probed.privilege.filter(|_| rules.namespaces);
        let namespaces = privilege.map(|privilege| {
            let by_root = probed.is_root;
            Namespaces::new(rules, privilege, by_root && probed.limits_pids)
        });
        let (ruleset, inner_rules) = landlock::ruleset(rules, namespaces.is_some())?;
        let mut limits = vec![
            (Resource::Core, 0),
            (Resource::Data, rules.memory),
            (Resource::Nofile, FILES),
            (Resource::Fsize, FILE_BYTES),
            (Resource::Memlock, 64 << 10),
            (Resource::Msgqueue, 0),
        ];
        if privilege == Some(Privilege::User) && !probed.is_root {
            // Counted in the namespace of users, so for this server alone.
            limits.push((Resource::Nproc, rules.processes));
        }
        // Root changes files of others in directories that were granted, as without confinement.
        let capabilities = match probed.is_root {
            true => CapabilitySet::DAC_OVERRIDE,
            false => CapabilitySet::empty(),
        };
        let filters = seccomp::filters(rules, namespaces.is_some())?;
        Ok(Self { namespaces, ruleset, inner_rules, filters, limits, capabilities })
    }

    fn enter(&self, directory: &CString, own_proc: bool) -> Result<(), Failed> {
        for (resource, limit) in &self.limits {
            // Never above the limits of kitbag.
            let most = rustix::process::getrlimit(*resource).maximum.unwrap_or(u64::MAX);
            let limit = Some((*limit).min(most));
            setrlimit(*resource, Rlimit { current: limit, maximum: limit })
                .map_err(Step::Limits.failed())?;
        }
        set_no_new_privs(true).map_err(Step::Capabilities.failed())?;
        self.drop_capabilities().map_err(Step::Capabilities.failed())?;
        let files = |error| Failed { step: Step::Files, error };
        for rule in &self.inner_rules {
            if rule.own_proc.is_some_and(|expected| expected != own_proc) {
                continue;
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            match open(rule.path.as_c_str(), flags, Mode::empty()) {
                Ok(file) => {
                    call::add_landlock_rule(self.ruleset.as_fd(), file.as_fd(), rule.access)
                        .map_err(files)?;
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(files(error)),
            }
        }
        call::enforce_landlock(self.ruleset.as_fd()).map_err(files)?;
        chdir(directory.as_c_str()).map_err(Step::Directory.failed())?;
        call::close_others_on_exec().map_err(Step::Streams.failed())?;
        for filter in &self.filters {
            // It allocates nothing.
            seccompiler::apply_filter(filter)
                .map_err(|_| Failed { step: Step::Filter, error: Errno::INVAL })?;
        }
        Ok(())
    }

    fn drop_capabilities(&self) -> Result<(), Errno> {
        clear_ambient_capability_set()?;
        for capability in CapabilitySet::all().difference(self.capabilities).iter() {
            match remove_capability_from_bounding_set(capability) {
                // It is unknown to this kernel, or the process has no privileges to give up.
                Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
        }
        let permitted = rustix::thread::capabilities(None)?.permitted & self.capabilities;
        set_capabilities(
            None,
            CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() },
        )
    }
}

/// Becomes the program of a server.
pub(super) fn run(prepared: &Prepared, streams: &Streams, keeper: Pid, own_proc: bool) -> ! {
    report(become_program(prepared, streams, keeper, own_proc), streams)
}

fn become_program(prepared: &Prepared, streams: &Streams, keeper: Pid, own_proc: bool) -> Failed {
    let start = || -> Result<(), Failed> {
        let clone = |error| Failed { step: Step::Clone, error };
        // A group of its own, to which the keeper sends signals.
        setsid().map_err(clone)?;
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(clone)?;
        if getppid() != Some(keeper) {
            call::exit(1);
        }
        call::reset_signals();
        connect(streams).map_err(Step::Streams.failed())?;
        match &prepared.jail {
            Some(jail) => jail.enter(&prepared.directory, own_proc),
            None => {
                chdir(prepared.directory.as_c_str()).map_err(Step::Directory.failed())?;
                call::close_others_on_exec().map_err(Step::Streams.failed())
            }
        }
    };
    if let Err(failed) = start() {
        return failed;
    }
    let error = call::execute(&prepared.program, &prepared.arguments, &prepared.variables);
    Failed { step: Step::Execute, error }
}

/// Makes the pipes standard input, output and error.
fn connect(streams: &Streams) -> Result<(), Errno> {
    let pipes = [&streams.stdin, &streams.stdout, &streams.stderr];
    for (number, pipe) in (0..).zip(pipes) {
        call::copy_descriptor(pipe.as_fd(), number)?;
    }
    Ok(())
}
