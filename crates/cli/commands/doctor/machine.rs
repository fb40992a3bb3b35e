//! The machine: kernel, limits, clock, and the program in `PATH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kitbag::base::ByteSize;

use super::check::{Check, Status};
use crate::sys;

/// The least address space with which calls run: the engine reserves several GiB without using them.
const ADDRESS_SPACE: u64 = 16 << 30;

/// The least number of files that a process must be able to open.
const FILES: u64 = 256;

/// A time before this version existed: 2026-01-01 UTC.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

pub(super) fn checks() -> Vec<Check> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = Kernel {
        release: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        has_openat2: sys::has_openat2(),
        has_landlock: read("/sys/kernel/security/lsm").split(',').any(|it| it.trim() == "landlock"),
    };
    let (address_space, files) = sys::process_limits();
    vec![
        kernel.check(),
        memory(address_space, read("/proc/sys/vm/overcommit_memory").trim()),
        open_files(files),
        clock(SystemTime::now()),
    ]
}

/// Returns the memory of the machine, or less if a control group has a limit. `None` if it is not
/// known.
pub(super) fn available_memory() -> Option<u64> {
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let limits = Path::new(group).ancestors().map(|group| root.join(group).join("memory.max"));
    // Version 1 of control groups.
    let limits = limits.chain([root.join("memory/memory.limit_in_bytes")]);
    let limit = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse().ok();
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let machine = machine.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    limits.filter_map(limit).chain(machine.map(|kib| kib << 10)).min()
}

struct Kernel {
    release: String,
    /// `None`: the system has no such call.
    has_openat2: Option<bool>,
    has_landlock: bool,
}

impl Kernel {
    fn check(&self) -> Check {
        let landlock = if self.has_landlock { "Landlock" } else { "no Landlock" };
        let system = format!("{} {}", std::env::consts::OS, self.release);
        let (status, text) = match self.has_openat2 {
            None => (Status::Warning, format!("{}: only Linux is tested", system.trim())),
            Some(true) => (Status::Ok, format!("{system}, openat2, {landlock} (not needed)")),
            Some(false) => (
                Status::Warning,
                format!(
                    "{system} has no openat2, or a sandbox refuses it: paths are opened directory \
                     by directory, which is slower; use Linux 5.6 or later"
                ),
            ),
        };
        Check::new("kernel", status, text)
    }
}

fn memory(address_space: Option<u64>, overcommit: &str) -> Check {
    let (status, text) = match (address_space, overcommit) {
        (Some(limit), _) if limit < ADDRESS_SPACE => (
            Status::Warning,
            format!(
                "the address space of a process is limited to {}, but the engine may reserve more \
                 without using it, so calls may fail; run `ulimit -v unlimited`, or limit memory with `[limits]`",
                ByteSize::bytes(limit)
            ),
        ),
        (_, "2") => (
            Status::Warning,
            "the kernel refuses memory that is reserved but not used (`vm.overcommit_memory` is 2), \
             so calls may fail; set it to 0"
                .to_owned(),
        ),
        _ => (Status::Ok, "the engine can reserve its address space".to_owned()),
    };
    Check::new("memory", status, text)
}

fn open_files(limit: Option<u64>) -> Check {
    let (status, text) = match limit {
        Some(limit) if limit < FILES => (
            Status::Warning,
            format!("a process may open only {limit} files; run `ulimit -n 1024` or more"),
        ),
        Some(limit) => (Status::Ok, format!("a process may open {limit} files")),
        None => (Status::Ok, "a process may open any number of files".to_owned()),
    };
    Check::new("open files", status, text)
}

fn clock(now: SystemTime) -> Check {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (status, text) = match since < EARLIEST {
        true => (
            Status::Error,
            "the clock shows a time before this version of kitbag: certificates, rates and the \
             audit log need the right time; set it",
        ),
        false => (Status::Ok, "plausible"),
    };
    Check::new("clock", status, text)
}

/// Checks that `PATH` leads to this program: clients find `kitbag` there.
pub(super) fn program() -> Check {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let name = format!("kitbag{}", std::env::consts::EXE_SUFFIX);
    let found = std::env::split_paths(&path).map(|it| it.join(&name)).find(|it| it.is_file());
    let canonical = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let own = std::env::current_exe().map(canonical);
    let (status, text) = match (found, own) {
        (_, Err(error)) => (Status::Warning, format!("its path is unknown: {error}")),
        (None, Ok(own)) => (
            Status::Warning,
            format!(
                "{} is not in your `PATH`, so clients whose entry names `kitbag` cannot start it; \
                 add its directory",
                own.display()
            ),
        ),
        (Some(found), Ok(own)) if canonical(found.clone()) != own => (
            Status::Warning,
            format!(
                "`PATH` leads to {}, not to this program, {}; remove one of them",
                found.display(),
                own.display()
            ),
        ),
        (Some(found), Ok(_)) => (Status::Ok, format!("{} in `PATH`", found.display())),
    };
    Check::new("program", status, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_clock_is_an_error() {
        assert_eq!(clock(SystemTime::UNIX_EPOCH).status, Status::Error);
        assert_eq!(clock(SystemTime::UNIX_EPOCH + EARLIEST).status, Status::Ok);
    }

    #[test]
    fn limits_that_stop_the_engine_are_named() {
        assert_eq!(memory(None, "0").status, Status::Ok);
        assert_eq!(memory(Some(u64::MAX), "1").status, Status::Ok);
        let limited = memory(Some(2 << 30), "0");
        assert_eq!(limited.status, Status::Warning);
        assert!(limited.text.contains("limited to 2 GiB"), "{}", limited.text);
        assert_eq!(memory(None, "2").status, Status::Warning);
        assert_eq!(open_files(Some(64)).status, Status::Warning);
        assert_eq!(open_files(Some(1024)).status, Status::Ok);
    }

    #[test]
    fn a_kernel_without_openat2_is_a_warning() {
        let check = |has_openat2| {
            let release = "5.4.0".to_owned();
            Kernel { release, has_openat2, has_landlock: false }.check().status
        };
        assert_eq!(check(Some(true)), Status::Ok);
        assert_eq!([check(Some(false)), check(None)], [Status::Warning; 2]);
    }
}
