//! Whose files count: a workspace's configuration is read only where nobody but the
//! caller and root can have written it, or where the caller has named the workspace.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fgetxattr, fstat, openat, stat, statat};
use rustix::io::Errno;

use crate::config::Trust;
use crate::error::{Problem, Report};
use crate::file::SourceFile;
use crate::format::ConfigFile;
use crate::origin::Sourced;
use crate::resolve::path::{Bases, is_fixed};
use crate::text::shown_path;

/// A workspace whose configuration is not read, because another user can change it.
///
/// Reads as ``the configuration in `/w/.kitbag` is ignored: `/w/.kitbag/config.toml`
/// belongs to user 1001; …``, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the configuration in `{}` is ignored: `{}` {reason}; {}, or add \"{}\" to `[trust] \
     directories` in {}",
    shown_path(&root.join(crate::discover::DIRECTORY)),
    shown_path(path),
    reason.remedy(),
    shown_path(root),
    crate::error::own_file(own_file)
)]
pub struct IgnoredWorkspace {
    /// The root of the workspace; absolute.
    pub root: PathBuf,
    /// The file or directory that another user can change; absolute.
    pub path: PathBuf,
    /// Why it does not count.
    pub reason: Distrust,
    /// The user's own file, where it is known.
    pub own_file: Option<Arc<Path>>,
}

/// Why a file or a directory does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distrust {
    /// It belongs to neither the caller nor root.
    Owner {
        /// The user it belongs to.
        uid: u32,
    },
    /// Every user can write it.
    WorldWritable {
        /// Its permissions.
        mode: u32,
    },
    /// A group can write it that is not, or may not be, the caller's alone.
    GroupWritable {
        /// The group.
        gid: u32,
        /// Its permissions.
        mode: u32,
    },
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner { uid } => write!(f, "belongs to user {uid}"),
            Self::WorldWritable { mode } => {
                write!(f, "is writable by every user (mode {mode:04o})")
            }
            Self::GroupWritable { gid, mode } => {
                write!(
                    f,
                    "is writable by group {gid}, which may have other members (mode {mode:04o})"
                )
            }
        }
    }
}

impl Distrust {
    /// What makes the file count, besides naming the workspace.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Owner { .. } => "make it yours with `chown`",
            Self::WorldWritable { .. } => "use `chmod o-w`",
            Self::GroupWritable { .. } => "use `chmod g-w`",
        }
    }
}

/// Opens the files of a workspace and remembers the first that does not count.
#[derive(Debug, Default)]
pub(crate) struct Examiner {
    /// The file or directory, and why.
    pub(crate) distrusted: Option<(PathBuf, Distrust)>,
}

impl Examiner {
    /// Opens and examines the root of a workspace.
    pub(crate) fn root(&mut self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        self.note(path, distrust_place(&stat, root.as_fd()));
        Ok(root)
    }

    /// Opens and examines a file or directory by its name in a directory.
    ///
    /// The result is examined again after it was opened: what was looked at by its
    /// name may have been replaced meanwhile.
    pub(crate) fn open(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &Path,
        path: &Path,
        flags: OFlags,
    ) -> rustix::io::Result<OwnedFd> {
        self.name(directory, name, path)?;
        // Not blocking: opening a FIFO would wait for a writer.
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(directory, name, flags, Mode::empty())?;
        self.note(path, distrust(&fstat(&opened)?, Some(opened.as_fd())));
        Ok(opened)
    }

    /// Examines a file or directory by its name in a directory, and what it leads to
    /// where it is a symbolic link. Returns what that is.
    pub(crate) fn name(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &Path,
        path: &Path,
    ) -> rustix::io::Result<FileType> {
        let mut stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            // A link has no permissions of its own, but an owner, who chose where it
            // leads.
            self.note(path, owner(&stat));
            stat = statat(directory, name, AtFlags::empty())?;
        }
        let needs_acl = Mode::from_raw_mode(stat.st_mode).contains(Mode::WGRP);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            needs_acl.then(|| openat(directory, name, flags, Mode::empty()).ok()).flatten();
        self.note(path, distrust(&stat, opened.as_ref().map(AsFd::as_fd)));
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    fn note(&mut self, path: &Path, reason: Option<Distrust>) {
        if let (None, Some(reason)) = (&self.distrusted, reason) {
            self.distrusted = Some((path.to_owned(), reason));
        }
    }
}

/// Reads the table `[trust]` of the user's own file.
pub(crate) fn trust(
    file: &SourceFile,
    config: &ConfigFile,
    home: Option<&Path>,
    report: &mut Report,
) -> Trust {
    let Some(written) = config.trust.as_ref().and_then(|trust| trust.directories.as_ref()) else {
        return Trust::default();
    };
    // Relative paths are refused before they would be taken relative to this.
    let bases = Bases { root: Path::new("/"), home };
    let at = written.at(file);
    let directories = at.value.iter().map(|directory| directory.at(file)).filter_map(|at| {
        let path = match is_fixed(at.value) {
            true => bases.absolute(at.value),
            false => Err(Problem::RelativePath { path: at.value.clone() }),
        };
        path.map_err(|problem| report.at(at, problem)).ok()
    });
    let directories = directories.collect();
    Trust { directories: Sourced { value: directories, origin: at.origin() } }
}

impl Trust {
    /// Whether the user has named this directory, and not one above it.
    pub(crate) fn names(&self, directory: &OwnedFd) -> bool {
        let Ok(this) = fstat(directory) else { return false };
        let is_this = |path: &PathBuf| {
            stat(path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (this.st_dev, this.st_ino))
        };
        self.directories.value.iter().any(is_this)
    }
}

/// Looks whether nobody but the caller and root can have written the user's own file,
/// where it was opened, or can put another one into its place.
///
/// # Errors
///
/// Says who can, and what helps.
pub(crate) fn check_own(path: &Path, opened: &rustix::io::Result<OwnedFd>) -> Result<(), String> {
    let Ok(file) = opened else { return Ok(()) };
    let check = |what: &str, reason: Option<Distrust>| match reason {
        Some(reason) => Err(format!("{what} {reason}; {}", reason.remedy())),
        None => Ok(()),
    };
    if let Ok(stat) = fstat(file) {
        check("it", distrust(&stat, Some(file.as_fd())))?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = path.parent().map(|parent| rustix::fs::open(parent, flags, Mode::empty()));
    match directory {
        Some(Ok(directory)) => match fstat(&directory) {
            Ok(stat) => check("its directory", distrust_place(&stat, directory.as_fd())),
            Err(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Why what lies in a directory does not count. In a sticky one, as `/tmp` is one,
/// others can neither replace nor remove what is not theirs.
fn distrust_place(stat: &Stat, opened: BorrowedFd<'_>) -> Option<Distrust> {
    match Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX) {
        true => owner(stat),
        false => distrust(stat, Some(opened)),
    }
}

/// Why a file or directory with these properties does not count. Without a
/// descriptor it counts as having an access control list.
fn distrust(stat: &Stat, opened: Option<BorrowedFd<'_>>) -> Option<Distrust> {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let bits = stat.st_mode & 0o7777;
    owner(stat).or_else(|| {
        if mode.contains(Mode::WOTH) {
            return Some(Distrust::WorldWritable { mode: bits });
        }
        let is_shared = || opened.is_none_or(has_acl) || !is_private_group(stat.st_gid);
        (mode.contains(Mode::WGRP) && is_shared())
            .then_some(Distrust::GroupWritable { gid: stat.st_gid, mode: bits })
    })
}

fn owner(stat: &Stat) -> Option<Distrust> {
    let uid = stat.st_uid;
    (!is_trusted(uid)).then_some(Distrust::Owner { uid })
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Whether other users than those of the group may write, which the bits for the group
/// stand for then.
fn has_acl(file: BorrowedFd<'_>) -> bool {
    let mut byte = [0_u8; 1];
    #[cfg(target_os = "linux")]
    let none = [Errno::NODATA, Errno::OPNOTSUPP];
    #[cfg(not(target_os = "linux"))]
    let none = [Errno::OPNOTSUPP];
    match fgetxattr(file, "system.posix_acl_access", &mut byte) {
        Err(error) => !none.contains(&error),
        Ok(_) => true,
    }
}

/// Whether a group is the caller's alone, as far as the system's files say.
fn is_private_group(gid: u32) -> bool {
    let read = |path: &str| {
        // Far more than a system with as many users as it can have keeps here.
        const MAX_BYTES: u64 = 1 << 20;
        let mut text = String::new();
        File::open(path).ok()?.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= MAX_BYTES).then_some(text)
    };
    match (read("/etc/group"), read("/etc/passwd")) {
        (Some(groups), Some(accounts)) => is_private(gid, &groups, &accounts, is_trusted),
        _ => false,
    }
}

/// Whether a group is one that a user has alone: it has the user's name, is the
/// user's first group, and has no other member. What cannot be found out counts as
/// shared.
///
/// Source: group(5), passwd(5); a line that starts with `+` or `-` takes in others.
fn is_private(gid: u32, groups: &str, accounts: &str, is_trusted: impl Fn(u32) -> bool) -> bool {
    let lines = |text: &str| text.lines().any(|line| line.starts_with(['+', '-']));
    if lines(groups) || lines(accounts) {
        return false;
    }
    let accounts: Vec<(&str, u32, u32)> = accounts.lines().filter_map(account).collect();
    let mut has_group = false;
    for (name, members) in groups.lines().filter_map(|line| group(line, gid)) {
        let is_users = |user: &str| {
            let mut of_name = accounts.iter().filter(|(name, ..)| *name == user).peekable();
            of_name.peek().is_some() && of_name.all(|(_, uid, _)| is_trusted(*uid))
        };
        let is_first = accounts.iter().any(|(user, _, first)| *user == name && *first == gid);
        let mut members = members.split(',').filter(|member| !member.is_empty());
        if !is_first || !is_users(name) || !members.all(is_users) {
            return false;
        }
        has_group = true;
    }
    has_group
        && accounts.iter().filter(|(_, _, first)| *first == gid).all(|(_, uid, _)| is_trusted(*uid))
}

/// Name, user and first group of an account.
fn account(line: &str) -> Option<(&str, u32, u32)> {
    let mut fields = line.split(':');
    let (name, _password) = (fields.next()?, fields.next()?);
    Some((name, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Name and members of a group, where it is this one.
fn group(line: &str, gid: u32) -> Option<(&str, &str)> {
    let mut fields = line.split(':');
    let (name, _password) = (fields.next()?, fields.next()?);
    let is_this = fields.next()?.parse() == Ok(gid);
    is_this.then(|| (name, fields.next().unwrap_or_default().trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_private_only_where_the_files_say_so() {
        const ACCOUNTS: &str = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\
                                bob:x:1001:1001::/home/bob:/bin/sh\neve:x:1002:1000::/:/bin/sh\n";
        let alone = ACCOUNTS.replace("eve:x:1002:1000", "eve:x:1002:1002");
        let check = |groups: &str, accounts: &str, gid: u32, expected: bool| {
            let is_trusted = |uid| uid == 0 || uid == 1000;
            assert_eq!(is_private(gid, groups, accounts, is_trusted), expected, "{groups:?}");
        };
        check("ada:x:1000:\n", &alone, 1000, true);
        check("ada:x:1000:ada,root\n", &alone, 1000, true);
        check("root:x:0:\n", &alone, 0, true);
        // Another member, one who is not known, and one whose first group it is.
        check("ada:x:1000:bob\n", &alone, 1000, false);
        check("ada:x:1000:ghost\n", &alone, 1000, false);
        check("ada:x:1000:\n", ACCOUNTS, 1000, false);
        // Not the group of a user, another user's, and not a group that is known.
        check("staff:x:1000:\n", &alone, 1000, false);
        check("bob:x:1001:\n", &alone, 1001, false);
        check("ada:x:1000:\n", &alone, 1003, false);
        check("", "", 1000, false);
        // Two lines, and lines that take in others.
        check("ada:x:1000:\nada:x:1000:bob\n", &alone, 1000, false);
        check("ada:x:1000:\n+:::\n", &alone, 1000, false);
        check("ada:x:1000:\n", &format!("{alone}+::::::\n"), 1000, false);
        check("ada:x:1000:\n", &format!("{alone}ada:x:1001:1000:::\n"), 1000, false);
    }
}
