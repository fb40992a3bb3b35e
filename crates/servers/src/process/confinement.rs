//! The plan of a confinement: paths, limits, and what the system must enforce.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "servers are confined on Linux only")
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kitbag_policy::server::Confinement;

use super::{Start, StartError};

/// Programs, libraries and public data of the system. Those that do not exist are skipped.
const SYSTEM: [&str; 48] = [
    "/bin",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/terminfo",
    "/etc/timezone",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/run/current-system/sw",
    "/sbin",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var/lib/ca-certificates",
];

/// Files of the system for resolving names, with `network = true`.
const NETWORK: [&str; 8] = [
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/networks",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
];

/// Devices that can be read and written.
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// The default of `memory`: private memory of each process.
pub(super) const MEMORY: u64 = 4 << 30;
/// The default of `processes`: processes and threads of the server.
pub(super) const PROCESSES: u64 = 512;
/// Open files of each process.
pub(super) const FILES: u64 = 4096;
/// The size of each file that is written.
pub(super) const FILE_BYTES: u64 = 4 << 30;
/// The size of a private temporary directory in memory.
pub(super) const TEMPORARY_BYTES: u64 = 256 << 20;
/// The first version of Landlock that bounds truncation: Linux 6.2.
pub(super) const LANDLOCK: u32 = 3;
/// The first version of Landlock that bounds signals: Linux 6.12.
pub(super) const LANDLOCK_SIGNALS: u32 = 6;

/// The features of the system for confining servers.
#[derive(Clone, Debug)]
pub struct Support {
    /// The version of Landlock's interface, or why there is none.
    pub landlock: Result<u32, String>,
    /// Success if processes, mounts and networks can be separated by namespaces; or why not.
    pub namespaces: Result<(), String>,
    /// Success if system calls can be filtered; or why not.
    pub seccomp: Result<(), String>,
    /// Success if the largest number of processes can be enforced; or why not.
    pub processes: Result<(), String>,
    /// The smallest number of processes that can be enforced.
    pub least_processes: u32,
}

/// A confinement that this system can enforce.
#[derive(Debug)]
pub(super) struct Rules {
    /// Paths that can be read, and whose files can be executed.
    pub(super) read: BTreeSet<PathBuf>,
    /// Paths that can be changed.
    pub(super) write: BTreeSet<PathBuf>,
    /// Devices that can be read and written.
    pub(super) devices: Vec<PathBuf>,
    /// Paths below `write` that cannot be changed.
    pub(super) fixed: Vec<PathBuf>,
    /// The private temporary directory.
    pub(super) temporary: PathBuf,
    /// True if the server gets its own namespaces.
    pub(super) namespaces: bool,
    pub(super) network: bool,
    pub(super) memory: u64,
    pub(super) processes: u64,
}

impl Support {
    /// Returns what is left if namespaces are not used.
    pub(super) fn with_namespaces(&self, are_used: bool) -> Self {
        let mut support = self.clone();
        if !are_used {
            let reason = "they are switched off";
            support.namespaces = support.namespaces.and(Err(reason.to_owned()));
            support.processes = support.processes.and(Err(reason.to_owned()));
        }
        support
    }

    /// Returns an error if this number of processes cannot be enforced.
    fn limits_processes(&self, processes: u32) -> Result<(), String> {
        if let Err(reason) = &self.processes {
            return Err(format!("`processes` cannot be enforced: {reason}"));
        }
        let least = self.least_processes;
        if processes < least {
            return Err(format!("as root, the least number of `processes` is {least}"));
        }
        Ok(())
    }

    /// Returns an error if servers cannot be confined here: the reason, for a person.
    ///
    /// # Errors
    ///
    /// The missing feature of the kernel.
    pub fn confinement(&self) -> Result<(), String> {
        let version = self.landlock.clone()?;
        self.seccomp.clone()?;
        if version < LANDLOCK {
            return Err(format!(
                "Landlock has version {version} here, and {LANDLOCK} is the first that protects \
                 files from being truncated (Linux 6.2)"
            ));
        }
        match &self.namespaces {
            Err(reason) if version < LANDLOCK_SIGNALS => Err(format!(
                "other processes can be protected neither by namespaces ({reason}) nor by Landlock \
                 (version {version} here, {LANDLOCK_SIGNALS} is needed: Linux 6.12)"
            )),
            _ => Ok(()),
        }
    }
}

/// Returns the rules of a confinement. `parts` are the files of the program.
pub(super) fn rules(
    confine: &Confinement,
    start: &Start<'_>,
    parts: BTreeSet<PathBuf>,
    temporary: &Path,
    support: &Support,
) -> Result<Rules, StartError> {
    support.confinement().map_err(StartError::Confinement)?;
    let granted = |key: &'static str, paths: &[PathBuf]| {
        let checked = paths.iter().map(|path| check(key, path, start));
        checked.collect::<Result<BTreeSet<_>, _>>()
    };
    let write = granted("write", &confine.write)?;
    let mut read = granted("read", &confine.read)?;
    read.extend(parts);
    read.extend(existing(&SYSTEM));
    if confine.network {
        read.extend(existing(&NETWORK));
    }
    let fixed: Vec<PathBuf> =
        start.fixed.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let fixed: Vec<PathBuf> = fixed
        .into_iter()
        .filter(|path| write.iter().any(|granted| path.starts_with(granted)))
        .collect();
    if let (Some(path), Err(reason)) = (fixed.first(), &support.namespaces) {
        let granted = write.iter().find(|granted| path.starts_with(granted));
        return Err(StartError::Path {
            key: "write",
            path: granted.unwrap_or(path).clone(),
            reason: format!(
                "it contains `{}`, which can be protected only with namespaces ({reason}): name \
                 directories beside it",
                kitbag_base::text::shown_path(path)
            ),
        });
    }
    if let Some(processes) = confine.processes {
        support.limits_processes(processes).map_err(StartError::Confinement)?;
    }
    Ok(Rules {
        read,
        write,
        devices: existing(&DEVICES).collect(),
        fixed,
        temporary: temporary.to_owned(),
        namespaces: support.namespaces.is_ok(),
        network: confine.network,
        memory: confine.memory.map_or(MEMORY, kitbag_base::ByteSize::as_u64),
        processes: confine.processes.map_or(PROCESSES, u64::from),
    })
}

/// Returns a granted path without links, if it exists and does not reach what is hidden.
fn check(key: &'static str, path: &Path, start: &Start<'_>) -> Result<PathBuf, StartError> {
    let refuse = |reason: String| StartError::Path { key, path: path.to_owned(), reason };
    let real = path.canonicalize().map_err(|error| refuse(error.to_string()))?;
    for hidden in start.hidden {
        let hidden = hidden.canonicalize().unwrap_or_else(|_| hidden.clone());
        if hidden.starts_with(&real) || real.starts_with(&hidden) {
            return Err(refuse(format!(
                "no confined server may reach `{}`, where kitbag keeps its own files: name \
                 directories beside it",
                kitbag_base::text::shown_path(&hidden)
            )));
        }
    }
    Ok(real)
}

/// Returns whether a file or directory of a program can be read without being granted: not a home
/// directory, a directory around it, or one around kitbag's own files.
pub(super) fn is_program_directory(path: &Path, home: Option<&Path>, hidden: &[PathBuf]) -> bool {
    let is_around = |other: &Path| {
        let other = other.canonicalize().unwrap_or_else(|_| other.to_owned());
        other.starts_with(path)
    };
    let is_beneath = |other: &PathBuf| path.starts_with(other);
    path.parent().is_some()
        && !home.is_some_and(is_around)
        && !hidden.iter().any(|it| is_around(it) || is_beneath(it))
}

fn existing(paths: &[&str]) -> impl Iterator<Item = PathBuf> {
    paths.iter().map(PathBuf::from).filter(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(landlock: Result<u32, String>, namespaces: bool, seccomp: bool) -> Support {
        let available = |is: bool| if is { Ok(()) } else { Err("not here".to_owned()) };
        Support {
            landlock,
            namespaces: available(namespaces),
            seccomp: available(seccomp),
            processes: available(namespaces),
            least_processes: 1,
        }
    }

    #[test]
    fn missing_features_are_errors() {
        assert_eq!(support(Ok(6), false, true).confinement(), Ok(()));
        assert_eq!(support(Ok(3), true, true).confinement(), Ok(()));
        let error = |support: Support| support.confinement().unwrap_err();
        assert_eq!(error(support(Err("none".to_owned()), true, true)), "none");
        assert_eq!(error(support(Ok(7), true, false)), "not here");
        assert!(error(support(Ok(2), true, true)).contains("Linux 6.2"));
        assert!(error(support(Ok(5), false, true)).contains("Linux 6.12"));
        assert!(error(support(Ok(5), true, true).with_namespaces(false)).contains("switched off"));
        let limits = |support: Support| support.limits_processes(8);
        assert_eq!(limits(support(Ok(7), true, true)), Ok(()));
        assert!(limits(support(Ok(7), false, true)).unwrap_err().contains("cannot be enforced"));
        let root = Support { least_processes: 301, ..support(Ok(7), true, true) };
        assert!(limits(root).unwrap_err().contains("301"));
    }

    #[test]
    fn home_directories_are_not_parts_of_programs() {
        let hidden = [PathBuf::from("/nonexistent/home/me/.local/state/kitbag")];
        let home = Path::new("/nonexistent/home/me");
        let is = |path: &str| is_program_directory(Path::new(path), Some(home), &hidden);
        for path in ["/nonexistent/home/me/.local/lib", "/opt/tool/lib"] {
            assert!(is(path), "{path}");
        }
        for path in [
            "/",
            "/nonexistent/home",
            "/nonexistent/home/me",
            "/nonexistent/home/me/.local",
            "/nonexistent/home/me/.local/state/kitbag/bin",
        ] {
            assert!(!is(path), "{path}");
        }
    }

    #[test]
    fn paths_of_the_system_are_apart_from_homes() {
        for path in SYSTEM.iter().chain(&NETWORK) {
            assert!(!path.starts_with("/home") && !path.starts_with("/root"), "{path}");
        }
        assert!(SYSTEM.is_sorted() && NETWORK.is_sorted() && DEVICES.is_sorted());
    }
}
