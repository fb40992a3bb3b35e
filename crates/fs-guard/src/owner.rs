//! Checks whether another user could have written a file: its owner and permissions, and those of
//! its parent directories.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kitbag_base::FileId;
use kitbag_base::text::shown;

use crate::open::{Link, Located, OpenError, locate, open_by_hand};
use crate::sys::{OpenAs, Stat, effective_user, has_access_list, read_again};

/// In a directory with this bit, only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;
const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// Why a file or directory is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distrust {
    /// The owner is neither the caller nor root.
    Owner {
        /// The user id of the owner.
        uid: u32,
    },
    /// Every user can write the file.
    WorldWritable {
        /// The permissions.
        mode: u32,
    },
    /// A group can write the file, and may have other members than the caller.
    GroupWritable {
        /// The group id.
        gid: u32,
        /// The permissions.
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
    /// Returns a fix.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Owner { .. } => "make it yours with `chown`",
            Self::WorldWritable { .. } => "use `chmod o-w`",
            Self::GroupWritable { .. } => "use `chmod g-w`",
        }
    }
}

/// The directories in which other users may write.
///
/// Equal values lead to equal decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owners {
    /// The workspace. It is checked, but its parent directories are not.
    pub root: Option<FileId>,
    /// The caller's home directory. Its parent directories are not checked.
    pub home: Option<FileId>,
    /// Directories whose whole contents are trusted.
    pub trusted: Vec<FileId>,
}

/// Why a file was not opened as trusted.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// Another user could have written or placed the file.
    #[error("`{}` {reason}; {}", shown(&path.to_string_lossy()), reason.remedy())]
    Distrusted {
        /// The file or one of its parent directories.
        path: PathBuf,
        /// Why it is not trusted.
        reason: Distrust,
    },
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Owners {
    /// Opens a file by an absolute path without links and checks the file and its parent
    /// directories, starting at the workspace, the home directory or the root.
    ///
    /// Each directory is checked on its handle, and the next one is opened relative to it. If no
    /// other user can write these directories, no other user has placed the file.
    ///
    /// # Errors
    ///
    /// [`OwnerError::Distrusted`] names the first file or directory that another user can write.
    pub fn open(&self, path: &Path) -> Result<(File, Stat), OwnerError> {
        let mut walk = Walk::new(self, path);
        let file =
            open_by_hand(path, OpenAs::File, |directory, depth| walk.enter(directory, depth))?;
        let stat = Stat::of(&file).map_err(OpenError::from)?;
        walk.note(path, || distrust(&stat, Some(&file)));
        walk.end()?;
        Ok((file, stat))
    }

    /// Opens a file by an absolute path, follows links, and checks the links and the file as
    /// [`open`](Self::open) does.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_following_links(&self, path: &Path) -> Result<(File, Stat), OwnerError> {
        match self.open(path) {
            Err(OwnerError::Open(OpenError::Link { .. })) => {
                let located = locate(path)?;
                self.check_links(&located.links)?;
                let (file, stat) = self.open(&located.path)?;
                match stat.id() == located.id() {
                    true => Ok((file, stat)),
                    false => {
                        let reason = "it was replaced while it was opened; try again";
                        Err(OpenError::from(io::Error::other(reason)).into())
                    }
                }
            }
            other => other,
        }
    }

    /// Checks the followed links and the parent directories of the target as [`open`](Self::open)
    /// does.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn check_located(&self, located: &Located) -> Result<(), OwnerError> {
        self.check_links(&located.links)?;
        match located.links.is_empty() {
            true => Ok(()),
            false => self.walk(&located.path)?.1.end(),
        }
    }

    /// Checks links and their parent directories: other users must not be able to replace a link.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn check_links(&self, links: &[Link]) -> Result<(), OwnerError> {
        links.iter().try_for_each(|link| self.check_link(link))
    }

    /// Checks the parent directories of a path and opens the last one.
    fn walk<'a>(&'a self, path: &'a Path) -> Result<(File, Walk<'a>), OpenError> {
        let parent = path.parent().unwrap_or(path);
        let mut walk = Walk::new(self, path);
        let enter = |directory: &File, depth| walk.enter(directory, depth);
        let directory = open_by_hand(parent, OpenAs::Directory, enter)?;
        walk.enter(&directory, parent.components().count() - 1)?;
        Ok((directory, walk))
    }

    fn check_link(&self, link: &Link) -> Result<(), OwnerError> {
        let path = &link.path;
        let Some(name) = path.file_name() else { return Ok(()) };
        let (directory, mut walk) = self.walk(path)?;
        let stat = Stat::at(&directory, name).map_err(OpenError::from)?;
        walk.note(path, || distrust_owner(&stat));
        walk.end()
    }
}

/// The result of checking the directories on a path.
struct Walk<'a> {
    owners: &'a Owners,
    path: &'a Path,
    /// The first file or directory that another user can write.
    found: Option<(PathBuf, Distrust)>,
    is_in_workspace: bool,
    is_trusted: bool,
}

impl<'a> Walk<'a> {
    fn new(owners: &'a Owners, path: &'a Path) -> Self {
        Self { owners, path, found: None, is_in_workspace: false, is_trusted: false }
    }

    /// Checks the directory at a depth below the root.
    fn enter(&mut self, directory: &File, depth: usize) -> io::Result<()> {
        let stat = Stat::of(directory)?;
        let id = stat.id();
        self.is_trusted |= self.owners.trusted.contains(&id);
        if self.owners.root == Some(id) {
            self.is_in_workspace = true;
            self.found = None;
            return Ok(());
        }
        if self.owners.home == Some(id) && !self.is_in_workspace {
            self.found = None;
        }
        let path: PathBuf = self.path.components().take(depth + 1).collect();
        self.note(&path, || {
            // A handle gives no access to the access control list.
            let opened = is_group_writable(&stat).then(|| read_again(directory).ok()).flatten();
            distrust_place(&stat, opened.as_ref())
        });
        Ok(())
    }

    fn note(&mut self, path: &Path, reason: impl FnOnce() -> Option<Distrust>) {
        if self.found.is_none() && !self.is_trusted {
            self.found = reason().map(|reason| (path.to_owned(), reason));
        }
    }

    fn end(self) -> Result<(), OwnerError> {
        match self.found {
            Some((path, reason)) if !self.is_trusted => {
                Err(OwnerError::Distrusted { path, reason })
            }
            _ => Ok(()),
        }
    }
}

/// Returns why the contents of a directory are not trusted. In a sticky directory
/// such as `/tmp`, other users can neither replace nor remove files that they do not own.
pub fn distrust_place(stat: &Stat, opened: Option<&File>) -> Option<Distrust> {
    match stat.mode() & STICKY != 0 {
        true => distrust_owner(stat),
        false => distrust(stat, opened),
    }
}

/// Returns why a file or directory with these properties is not trusted. Without a
/// descriptor, it is assumed to have an access control list.
pub fn distrust(stat: &Stat, opened: Option<&File>) -> Option<Distrust> {
    let (mode, gid) = (stat.mode(), stat.group());
    distrust_owner(stat).or_else(|| {
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Some(Distrust::WorldWritable { mode });
        }
        let is_shared = || opened.is_none_or(has_access_list) || !is_private_group(gid);
        (is_group_writable(stat) && is_shared()).then_some(Distrust::GroupWritable { gid, mode })
    })
}

/// Returns why the owner of a file is not trusted, independent of its permissions.
pub fn distrust_owner(stat: &Stat) -> Option<Distrust> {
    let uid = stat.owner();
    (!is_trusted(uid)).then_some(Distrust::Owner { uid })
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == effective_user()
}

/// Returns true if the permission bits or an access control list let the group write a file.
pub fn is_group_writable(stat: &Stat) -> bool {
    stat.mode() & WRITABLE_BY_GROUP != 0
}

/// Returns true if the caller is the only member of a group, according to the system's files.
fn is_private_group(gid: u32) -> bool {
    match (read_system_file("/etc/group"), read_system_file("/etc/passwd")) {
        (Some(groups), Some(accounts)) => is_private(gid, &groups, &accounts, is_trusted),
        _ => false,
    }
}

/// Reads a system file that lists users or groups.
pub(crate) fn read_system_file(path: &str) -> Option<String> {
    // Far more than a system with the maximum number of users stores here.
    const MAX_BYTES: u64 = 1 << 20;
    let mut text = String::with_capacity(8 << 10);
    File::open(path).ok()?.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_BYTES).then_some(text)
}

/// Returns true if a group belongs to one user alone: it has the user's name, is the user's primary
/// group, and has no other member. Unknown groups are treated as shared. So is every group if a
/// line is malformed, since the system may read it differently (for example blanks before a number)
/// or, if the line starts with `+` or `-`, add other members.
///
/// Source: group(5), passwd(5).
fn is_private(gid: u32, groups: &str, accounts: &str, is_trusted: impl Fn(u32) -> bool) -> bool {
    let accounts: Option<Vec<_>> = accounts.lines().map(account).collect();
    let groups: Option<Vec<_>> = groups.lines().map(group).collect();
    let (Some(accounts), Some(groups)) = (accounts, groups) else { return false };
    let mut has_group = false;
    for (name, _, members) in groups.iter().filter(|(_, id, _)| *id == gid) {
        let is_users = |user: &str| {
            let mut of_name = accounts.iter().filter(|account| account.name == user).peekable();
            of_name.peek().is_some() && of_name.all(|account| is_trusted(account.user))
        };
        let is_first = accounts.iter().any(|account| account.name == *name && account.group == gid);
        let mut members = members.split(',').filter(|member| !member.is_empty());
        if !is_first || !is_users(name) || !members.all(is_users) {
            return false;
        }
        has_group = true;
    }
    let mut of_group = accounts.iter().filter(|account| account.group == gid);
    has_group && of_group.all(|account| is_trusted(account.user))
}

struct Account<'a> {
    name: &'a str,
    user: u32,
    group: u32,
    home: &'a str,
}

/// Parses a line of `/etc/passwd`. Returns `None` if the line is malformed.
fn account(line: &str) -> Option<Account<'_>> {
    let fields: Vec<_> = line.split(':').collect();
    let [name, _password, user, group, _comment, home, _shell] = fields[..] else { return None };
    Some(Account { name: plain(name)?, user: number(user)?, group: number(group)?, home })
}

/// Returns the home directory of a user if a line of `/etc/passwd` defines it.
pub(crate) fn home(line: &str, user: u32) -> Option<PathBuf> {
    // Most lines belong to other users and are not parsed further.
    line.split(':').nth(2).and_then(number).filter(|found| *found == user)?;
    Some(PathBuf::from(account(line)?.home))
}

/// Parses the name, number and members of a group. Returns `None` if the line is malformed.
fn group(line: &str) -> Option<(&str, u32, &str)> {
    let fields: Vec<_> = line.split(':').collect();
    let [name, _password, gid, members] = fields[..] else { return None };
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    (!members.contains(is_odd)).then_some((plain(name)?, number(gid)?, members))
}

/// Returns the name if it is valid.
fn plain(name: &str) -> Option<&str> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    let is_name = !name.is_empty() && !name.starts_with(['+', '-']) && !name.contains(is_odd);
    is_name.then_some(name)
}

/// Parses a number that consists of digits only.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Creates a directory with `a/b/file` and the link `a/link` to the file.
    fn fixture() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "x").unwrap();
        symlink("b/file", path.join("a/link")).unwrap();
        for (inside, mode) in [("a", 0o755), ("a/b", 0o755), ("a/b/file", 0o644)] {
            fs::set_permissions(path.join(inside), Permissions::from_mode(mode)).unwrap();
        }
        (directory, path)
    }

    /// Returns the reported paths of the fixture if one path has this mode.
    fn found(inside: &str, mode: u32, root: Option<&str>, trusted: Option<&str>) -> [String; 2] {
        let (_directory, path) = fixture();
        fs::set_permissions(path.join(inside), Permissions::from_mode(mode)).unwrap();
        let id = |inside: &str| locate(&path.join(inside)).unwrap().id();
        let trusted = trusted.map(id).into_iter().collect();
        let owners = Owners { root: root.map(id), home: Some(id("")), trusted };
        let text = |result: Result<(), OwnerError>| match result {
            Ok(()) => String::new(),
            Err(OwnerError::Distrusted { path: found, .. }) => {
                found.strip_prefix(&path).unwrap().display().to_string()
            }
            Err(error) => panic!("{error}"),
        };
        let link = locate(&path.join("a/link")).unwrap();
        let file = owners.open(&path.join("a/b/file")).map(|(_, stat)| {
            assert_eq!(stat.id(), id("a/b/file"));
        });
        [text(file), text(owners.check_located(&link))]
    }

    #[test]
    fn paths_writable_by_others_are_named() {
        let check = |inside: &str, mode: u32, file: &str, link: &str| {
            assert_eq!(found(inside, mode, None, None), [file, link], "{inside} {mode:o}");
        };
        check("a", 0o755, "", "");
        check("a/b/file", 0o646, "a/b/file", "");
        check("a/b/file", 0o1646, "a/b/file", "");
        check("a/b", 0o757, "a/b", "a/b");
        check("a", 0o777, "a", "a");
        // Other users cannot replace files that they do not own there.
        check("a/b", 0o1777, "", "");
        check("a", 0o1777, "", "");
    }

    #[test]
    fn workspaces_are_checked_and_trusted_directories_are_not() {
        let check = |inside: &str, root: Option<&str>, trusted: Option<&str>, expected: &str| {
            let [file, _] = found(inside, 0o757, root, trusted);
            assert_eq!(file, expected, "{inside} {root:?} {trusted:?}");
        };
        check("a", Some(""), None, "a");
        check("a", Some("a"), None, "");
        check("a/b", Some("a"), None, "a/b");
        check("a/b", Some("a/b"), None, "");
        check("a/b/file", Some("a/b"), None, "a/b/file");
        check("a/b", None, Some("a"), "");
        check("a/b", None, Some("a/b"), "");
        check("a/b/file", None, Some("a/b"), "");
        check("a", Some(""), Some("a/b"), "");
    }

    #[test]
    fn parents_of_the_home_directory_are_not_checked() {
        let (_directory, path) = fixture();
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o777)).unwrap();
        let is_opened = |home: &str| {
            let home = Some(locate(&path.join(home)).unwrap().id());
            Owners { home, ..Owners::default() }.open(&path.join("a/b/file")).is_ok()
        };
        assert_eq!(["", "a", "a/b"].map(is_opened), [false, false, true]);
    }

    #[test]
    fn links_that_others_cannot_replace_are_followed() {
        let (_directory, path) = fixture();
        let owners = Owners { home: Some(locate(&path).unwrap().id()), ..Owners::default() };
        let is_opened = || owners.open_following_links(&path.join("a/link")).is_ok();
        assert!(is_opened());
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o777)).unwrap();
        assert!(!is_opened());
    }

    #[test]
    fn open_refuses_links() {
        let (_directory, path) = fixture();
        let opened = Owners::default().open(&path.join("a/link"));
        assert!(matches!(opened, Err(OwnerError::Open(OpenError::Link { .. }))), "{opened:?}");
    }

    #[test]
    fn groups_are_shared_unless_proven_private() {
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
        // Another member, an unknown member, and a user with this primary group.
        check("ada:x:1000:bob\n", &alone, 1000, false);
        check("ada:x:1000:ghost\n", &alone, 1000, false);
        check("ada:x:1000:\n", ACCOUNTS, 1000, false);
        // A group without a user of its name, another user's group, and an unknown group.
        check("staff:x:1000:\n", &alone, 1000, false);
        check("bob:x:1001:\n", &alone, 1001, false);
        check("ada:x:1000:\n", &alone, 1003, false);
        check("", "", 1000, false);
        // Duplicate lines, and lines that add other members.
        check("ada:x:1000:\nada:x:1000:bob\n", &alone, 1000, false);
        check("ada:x:1000:\n+:::\n", &alone, 1000, false);
        check("ada:x:1000:\n", &format!("{alone}+::::::\n"), 1000, false);
        check("ada:x:1000:\n", &format!("{alone}ada:x:1001:1000:::\n"), 1000, false);
        // Lines that the system may read differently, in any group.
        for line in [
            "team:x: 1000:bob",
            "team:x:+1000:bob",
            " team:x:1000:bob",
            "team:x:1000: bob",
            "team:x:1000:bob:",
            "team:x:1000",
            "team:x::bob",
            "# team",
            "",
            "team:x:1000:bob\r",
        ] {
            check(&format!("ada:x:1000:\n{line}\n"), &alone, 1000, false);
        }
        for line in ["eve:x:1002: 1000::/:/bin/sh", "eve:x:1002:1000", " eve:x:1002:1000::/:", ""] {
            check("ada:x:1000:\n", &format!("{alone}{line}\n"), 1000, false);
        }
    }

    #[test]
    fn account_homes_are_read_from_their_line() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(home(line, 1000), expected.map(PathBuf::from), "{line}");
        };
        check("ada:x:1000:1000:Ada:/home/ada:/bin/sh", Some("/home/ada"));
        check("bob:x:1001:1001:Bob:/home/bob:/bin/sh", None);
        check("ada:x:1000:1000:/home/ada", None);
    }
}
