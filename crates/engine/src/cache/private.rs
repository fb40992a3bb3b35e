//! Private directories and files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use kitbag_fs_guard::sys::{create_private_directory, effective_user};
use kitbag_fs_guard::{FileKind, Stat};

use crate::sys::{create_at, remove_at, rename_at};

/// The prefix of files that are being written.
const PARTIAL: &str = ".partial-";

/// Returns true if a file has the name of a temporary file of [`write_whole`].
pub(super) fn is_partial(name: &str) -> bool {
    let numbers = name.strip_prefix(PARTIAL).and_then(|numbers| numbers.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Checks that a file or directory is private, or returns the problem.
pub(super) fn private(file: &File, kind: FileKind) -> Result<Stat, String> {
    let stat = Stat::of(file).map_err(|error| error.to_string())?;
    if stat.kind() != kind {
        return Err("of another type".into());
    }
    if stat.owner() != effective_user() {
        return Err("owned by another user".into());
    }
    let mode = stat.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("writable by others (mode {mode:03o})"));
    }
    // A tool or program could write the file through its other name.
    if kind == FileKind::File && stat.link_count() > 1 {
        return Err("hard-linked under another name".into());
    }
    // Read access would reveal to others which tools are used; the mode of the directory prevents
    // it.
    if kind == FileKind::Directory && mode & 0o077 != 0 {
        return Err(format!("open to others (mode {mode:03o})"));
    }
    Ok(stat)
}

/// Creates a private directory and its missing parents.
pub(super) fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match create_private_directory(path) {
        // Another process was faster; the owner is checked next.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Writes a temporary file and renames it.
pub(super) fn write_whole(directory: &File, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = format!("{PARTIAL}{}-{number}", std::process::id());
    let mut file = match create_at(directory, &partial) {
        // Left by a process with our process id that was killed.
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
