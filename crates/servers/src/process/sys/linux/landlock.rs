//! Rules of Landlock for a confined server.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use ::landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};

use super::{Failure, path_text};
use crate::process::confinement::Rules;

/// A rule for a file that exists only in the server's own process or mounts.
pub(super) struct InnerRule {
    pub(super) path: CString,
    pub(super) access: u64,
    /// `Some(true)`: for a `/proc` that shows the server's processes only. `Some(false)`: for another
    /// `/proc`. `None`: for both.
    pub(super) own_proc: Option<bool>,
}

/// Files of a `/proc` that shows all processes of the system.
const SHARED_PROC: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
];

/// Returns a ruleset, and rules that the server's process must add.
pub(super) fn ruleset(
    rules: &Rules,
    has_namespaces: bool,
) -> Result<(OwnedFd, Vec<InnerRule>), Failure> {
    let read = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
    let device = make_bitflags!(AccessFs::{ReadFile | WriteFile});
    let write = read
        | make_bitflags!(AccessFs::{
            WriteFile | Truncate | Refer | RemoveDir | RemoveFile
                | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym
        });
    let failed = |error: ::landlock::RulesetError| Failure {
        step: "preparing Landlock's rules",
        error: io::Error::other(error),
    };
    // Everything that the kernel knows, but at least what `Support` requires.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V3))
        .map_err(failed)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V9))
        .map_err(failed)?
        .scope(Scope::from_all(ABI::V6))
        .map_err(failed)?;
    if !rules.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4)).map_err(failed)?;
    }
    let mut ruleset = ruleset.create().map_err(failed)?;
    let add = |ruleset: RulesetCreated, paths: &BTreeSet<PathBuf>, access: BitFlags<AccessFs>| {
        paths.iter().try_fold(ruleset, |ruleset, path| {
            let missing = |error: ::landlock::PathFdError| Failure {
                step: "opening a path of `confine`",
                error: io::Error::other(error),
            };
            let beneath = PathFd::new(path).map_err(missing)?;
            let of_file = AccessFs::from_file(ABI::V3);
            let access = if path.is_dir() { access } else { access & of_file };
            ruleset.add_rule(PathBeneath::new(beneath, access)).map_err(failed)
        })
    };
    ruleset = add(ruleset, &rules.read, read)?;
    ruleset = add(ruleset, &rules.write, write)?;
    ruleset = add(ruleset, &rules.devices.iter().cloned().collect(), device)?;
    let ruleset = Option::<OwnedFd>::from(ruleset).ok_or_else(|| Failure {
        step: "preparing Landlock's rules",
        error: io::Error::from(io::ErrorKind::Unsupported),
    })?;

    let inner = |path: &str, access: BitFlags<AccessFs>, own_proc| InnerRule {
        path: path_text(path.as_ref()),
        access: access.bits(),
        own_proc,
    };
    let of_file = read & AccessFs::from_file(ABI::V3);
    let mut inner_rules = vec![inner("/proc", read, Some(true))];
    inner_rules.extend(SHARED_PROC.map(|path| {
        let access = if path == "/proc/self" { read } else { of_file };
        inner(path, access, Some(false))
    }));
    inner_rules.push(InnerRule {
        path: path_text(&rules.temporary),
        access: write.bits(),
        own_proc: None,
    });
    if has_namespaces {
        inner_rules.push(inner("/dev/shm", write, None));
    }
    Ok((ruleset, inner_rules))
}
