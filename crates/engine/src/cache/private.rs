//! Directories and files that belong to one user alone.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kitbag_fs_guard::sys::{create_private_directory, effective_user};
use kitbag_fs_guard::{FileKind, Stat};

use crate::sys::{create_at, remove_at, rename_at};

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
pub(super) fn private(file: &File, kind: FileKind) -> Result<Stat, String> {
    let stat = Stat::of(file).map_err(|error| error.to_string())?;
    if stat.kind() != kind {
        return Err("of another kind".into());
    }
    if stat.owner() != effective_user() {
        return Err("owned by another user".into());
    }
    let mode = stat.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("writable by others (mode {mode:03o})"));
    }
    // By its other name a tool, or a program, could write it.
    if kind == FileKind::File && stat.link_count() > 1 {
        return Err("known by another name, too".into());
    }
    // Reading it would tell others which tools are used; only the directory's
    // mode decides that.
    if kind == FileKind::Directory && mode & 0o077 != 0 {
        return Err(format!("open to others (mode {mode:03o})"));
    }
    Ok(stat)
}

/// Makes a directory that is ours alone, and what is missing above it.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match create_private_directory(path) {
        // Another process was faster; whose it is is checked next.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file beside its place and moves it there.
pub(super) fn write_whole(directory: &File, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = format!("{PARTIAL}{}-{number}", std::process::id());
    let mut file = match create_at(directory, &partial) {
        // Left behind by a process that had our number and was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_at(directory, &partial)?;
            create_at(directory, &partial)?
        }
        other => other?,
    };
    let written = parts
        .iter()
        .try_for_each(|part| file.write_all(part))
        .and_then(|()| file.sync_all())
        .and_then(|()| rename_at(directory, &partial, name));
    if written.is_err() {
        // The first error is the one to report.
        let _ = remove_at(directory, &partial);
    }
    written
}
