//! Directories and files that belong to one user alone.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, fsync, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

/// What the name of a file that is being written starts with.
const PARTIAL: &str = ".partial-";

/// Whether a file has the name of one that [`write_whole`] writes.
pub(super) fn is_partial(name: &str) -> bool {
    let numbers = name.strip_prefix(PARTIAL).and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Looks at a file or directory that has to be ours alone, or says what is wrong with
/// it.
pub(super) fn private(fd: impl AsFd, kind: FileType) -> Result<Stat, String> {
    let stat = fstat(fd).map_err(|error| io::Error::from(error).to_string())?;
    if FileType::from_raw_mode(stat.st_mode) != kind {
        return Err("of another kind".into());
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err("owned by another user".into());
    }
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.intersects(Mode::WGRP | Mode::WOTH) {
        return Err(format!("writable by others (mode {:03o})", mode.bits() & 0o777));
    }
    // By its other name a tool, or a program, could write it.
    if kind == FileType::RegularFile && stat.st_nlink > 1 {
        return Err("known by another name, too".into());
    }
    // Reading it would tell others which tools are used; only the directory's
    // mode decides that.
    if kind == FileType::Directory && mode.intersects(Mode::RWXG | Mode::RWXO) {
        return Err(format!("open to others (mode {:03o})", mode.bits() & 0o777));
    }
    Ok(stat)
}

/// Makes a directory that is ours alone, and what is missing above it.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match mkdirat(rustix::fs::CWD, path, Mode::RWXU) {
        // Another process was faster; whose it is is checked next.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file beside its place and moves it there.
pub(super) fn write_whole(directory: &OwnedFd, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = format!("{PARTIAL}{}-{number}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    // Only root can open it for writing again.
    let open = || openat(directory, &partial, flags, Mode::RUSR);
    let file = match open() {
        // Left behind by a process that had our number and was killed.
        Err(Errno::EXIST) => {
            unlinkat(directory, &partial, AtFlags::empty())?;
            open()?
        }
        other => other?,
    };
    let mut file = File::from(file);
    let written = parts
        .iter()
        .try_for_each(|part| file.write_all(part))
        .and_then(|()| Ok(fsync(&file)?))
        .and_then(|()| Ok(renameat(directory, &partial, directory, name)?));
    if written.is_err() {
        // The first error is the one to report.
        let _ = unlinkat(directory, &partial, AtFlags::empty());
    }
    written
}
