//! Whose files count: a workspace's configuration is read only where no user but
//! the caller and root can have written it, or where the caller has named the workspace.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use kitbag_files::{
    Distrust, Link, OwnerError, Owners, distrust, distrust_owner, distrust_place, id_of, locate,
};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, stat, statat};

use crate::config::Trust;
use crate::error::Report;
use crate::file::SourceFile;
use crate::format::ConfigFile;
use crate::origin::Sourced;
use crate::path::{Bases, is_fixed};
use crate::problem::Problem;

/// Opens the files of a workspace and remembers the first that does not count.
#[derive(Debug, Default)]
pub(crate) struct Examiner {
    /// The root, once it was opened.
    owners: Owners,
    /// The file or directory, and why.
    pub(crate) distrusted: Option<(PathBuf, Distrust)>,
}

impl Examiner {
    /// Opens and examines the root of a workspace.
    pub(crate) fn root(&mut self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = fstat(&root)?;
        self.note(path, distrust_place(&stat, Some(root.as_fd())));
        self.owners.root = Some(id_of(&stat));
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
            self.note(path, distrust_owner(&stat));
            self.links(path);
            stat = statat(directory, name, AtFlags::empty())?;
        }
        let needs_acl = Mode::from_raw_mode(stat.st_mode).contains(Mode::WGRP);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened =
            needs_acl.then(|| openat(directory, name, flags, Mode::empty()).ok()).flatten();
        self.note(path, distrust(&stat, opened.as_ref().map(AsFd::as_fd)));
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    /// Examines the links in the workspace that lead from a path elsewhere, and where
    /// that is: a directory in which another user can put something else.
    fn links(&mut self, path: &Path) {
        // What leads nowhere is not read either.
        let Ok(mut located) = locate(path) else { return };
        // Those that lead to the workspace are not its own.
        let is_inside = |link: &Link| link.within.iter().any(|id| Some(*id) == self.owners.root);
        let outside = located.links.iter().take_while(|link| !is_inside(link)).count();
        located.links.drain(..outside);
        if let Err(OwnerError::Distrusted { path, reason }) = self.owners.check_links(&located) {
            self.note(&path, Some(reason));
        }
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

/// Checks that no user but the caller and root can have written the user's own file,
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
            Ok(stat) => check("its directory", distrust_place(&stat, Some(directory.as_fd()))),
            Err(_) => Ok(()),
        },
        _ => Ok(()),
    }
}
