//! Changes files atomically: all of them, or none if one cannot be changed.
//!
//! The new content of each file is written to a temporary file, synced, and renamed. If a call is
//! killed, each file has either the old or the new content.
//!
//! Another call may change a file between reading and replacing it. So the file is locked with a
//! lock file next to it and compared with the content that was read. If it differs, nothing is
//! changed and the caller plans the change again. The lock of a killed call is taken over.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kitbag_sdk::{ErrorInfo, Stop};
use kitbag_workspace::{Kind, Location, explain, stat, stat_link};

use crate::file::{Opened, WHOLE_BYTES};
use crate::leftover::{Purpose, leftovers, lock_name, temporary_name};

/// Maximum number of links that are followed, as in Linux.
const LINKS: usize = 40;

/// Maximum number of times that a change is planned again because another call was faster.
const ATTEMPTS: usize = 100;

/// Time after which an unchanged lock is taken over. A call holds a lock for a few operations
/// without waiting for the disk.
const ABANDONED: Duration = Duration::from_secs(2);

/// A file that is about to be changed.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The path as the caller gave it.
    pub(crate) location: Location,
    /// The location of the file after following symbolic links.
    file: Location,
    /// The content; `None` if the file does not exist.
    pub(crate) content: Option<Vec<u8>>,
    /// The number of its other hard links, which keep the old content.
    other_names: u64,
}

/// A change of a file.
pub(crate) struct Change {
    pub(crate) target: Target,
    /// The new content; `None` to remove the file.
    pub(crate) content: Option<Vec<u8>>,
    /// The file that is moved here. The change keeps its mode, and the target must not exist.
    pub(crate) from: Option<Target>,
}

impl Change {
    /// Creates a change of the content, or a new file. With `None`, creates a removal.
    pub(crate) fn new(target: Target, content: Option<Vec<u8>>) -> Self {
        Self { target, content, from: None }
    }

    /// Returns the paths that the change affects.
    fn targets(&self) -> impl Iterator<Item = &Target> {
        [Some(&self.target), self.from.as_ref()].into_iter().flatten()
    }

    /// Applies the change. `temporary` is the file with the new content.
    fn make(&self, temporary: &str) -> io::Result<()> {
        let path = &self.target.file.path;
        match (&self.content, &self.from) {
            (None, _) => fs::rename(path, temporary),
            (Some(_), None) => fs::rename(temporary, path),
            (Some(_), Some(from)) => {
                fs::rename(&from.file.path, path)?;
                let replaced = fs::rename(temporary, path);
                if replaced.is_err() {
                    let _ = fs::rename(path, &from.file.path);
                }
                replaced
            }
        }
    }

    /// Reverts the change.
    fn undo(&self, temporary: &str) -> io::Result<()> {
        let path = &self.target.file.path;
        let restore = |content: &[u8]| {
            let mut file = File::create_new(temporary)?;
            file.write_all(content)?;
            synced(file.sync_all())?;
            fs::rename(temporary, path)
        };
        match (&self.content, &self.from, &self.target.content) {
            (None, ..) => fs::rename(temporary, path),
            (Some(_), None, Some(content)) => restore(content),
            (Some(_), None, None) => fs::remove_file(path),
            (Some(_), Some(from), _) => {
                restore(from.content.as_deref().unwrap_or_default())?;
                fs::rename(path, &from.file.path)
            }
        }
    }
}

impl Target {
    /// Reads the file through symbolic links, and checks that it may be written.
    pub(crate) fn read(location: Location) -> Result<Self, ErrorInfo> {
        Self::read_as(location, false)
    }

    /// Like [`read`](Self::read). With `preview` no file is written, so the file need not be
    /// writable.
    pub(crate) fn read_as(location: Location, preview: bool) -> Result<Self, ErrorInfo> {
        let file = follow(&location)?;
        let found = match stat(&file.path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { location, file, content: None, other_names: 0 });
            }
            Err(error) => return Err(explain(&location, "written", &error)),
        };
        let given = &location.given;
        if found.kind == Kind::Directory {
            return Err(ErrorInfo::new(format!("`{given}` is a directory, not a file")));
        }
        let mut opened = Opened::at(Location { given: given.clone(), path: file.path.clone() })?;
        if opened.size > WHOLE_BYTES {
            return Err(opened.too_large("changing a file"));
        }
        // Renaming could replace the file even if its permissions forbid writing it.
        if !preview {
            let writable = OpenOptions::new().write(true).open(&file.path);
            writable.map_err(|error| explain(&location, "written", &error))?;
        }
        let Some(content) = opened.read_whole()? else {
            return Err(opened.too_large("changing a file"));
        };
        let other_names = found.links.saturating_sub(1);
        Ok(Self { location, file, content: Some(content), other_names })
    }

    /// Returns the note for a change that separates the file from its other hard links.
    pub(crate) fn other_names_note(&self) -> String {
        match self.other_names {
            0 => String::new(),
            1 => "[it had another name (a hard link), which still has the old content]\n".into(),
            more => {
                format!(
                    "[it had {more} other names (hard links), which still have the old \
                         content]\n"
                )
            }
        }
    }

    /// Returns the directory of the file and its name.
    fn place(&self) -> (String, &str) {
        match self.file.split() {
            Some((directory, name)) => (directory.path, name),
            None => ("/".into(), &self.file.path),
        }
    }

    fn beside(&self, name: &str) -> String {
        format!("{}/{name}", self.place().0.trim_end_matches('/'))
    }

    /// Returns true if the file is unchanged since it was read.
    fn is_unchanged(&self) -> bool {
        let Some(content) = &self.content else {
            return stat_link(&self.file.path).is_err_and(|it| it.kind() == ErrorKind::NotFound);
        };
        let same = || -> io::Result<bool> {
            let mut file = File::open(&self.file.path)?;
            let mut rest = content.as_slice();
            let mut chunk = vec![0; 64 << 10];
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(rest.is_empty()),
                    read => match rest.split_at_checked(read) {
                        Some((start, end)) if *start == chunk[..read] => rest = end,
                        _ => return Ok(false),
                    },
                }
            }
        };
        same().unwrap_or(false)
    }
}

/// Resolves a path, including its last component. The target need not exist.
fn follow(location: &Location) -> Result<Location, ErrorInfo> {
    let mut file = location.clone();
    for _ in 0..LINKS {
        match stat_link(&file.path) {
            Ok(found) if found.kind == Kind::Link => {}
            // Files that cannot be inspected are reported when they are read.
            _ => return Ok(file),
        }
        let link = fs::read_link(&file.path);
        let link = link.map_err(|error| explain(location, "followed", &error))?;
        let Some((directory, _)) = file.split() else { return Ok(file) };
        file = directory.join(&link.to_string_lossy());
    }
    let circle = io::Error::from_raw_os_error(libc::ELOOP);
    Err(explain(location, "followed", &circle))
}

/// Plans and applies changes. Plans again if another call was faster.
///
/// `plan` returns the changes and their description.
pub(crate) fn change(
    dry_run: bool,
    mut plan: impl FnMut() -> Result<(Vec<Change>, String), Stop>,
) -> Result<String, Stop> {
    for _ in 0..ATTEMPTS {
        let (changes, answer) = plan()?;
        if dry_run {
            return Ok(format!("[dry run: nothing was changed]\n{answer}"));
        }
        let is_change = |it: &Change| it.target.content != it.content;
        let changes: Vec<_> = changes.into_iter().filter(is_change).collect();
        if commit(&changes)? {
            return Ok(answer);
        }
    }
    Err(ErrorInfo::new("other calls keep changing the same files").transient().into())
}

/// Applies changes. Returns `false` if another call was faster, in which case nothing was changed.
fn commit(changes: &[Change]) -> Result<bool, ErrorInfo> {
    let mut leavings: Vec<String> = Vec::new();
    for target in changes.iter().flat_map(Change::targets) {
        let (directory, name) = target.place();
        leavings.extend(leftovers(&directory, name));
    }
    let mut staged = Staged::default();
    for change in changes {
        if let Err(error) = staged.write(change) {
            staged.discard();
            return Err(explain(&change.target.location, "written", &error));
        }
    }
    let mut targets: Vec<&Target> = changes.iter().flat_map(Change::targets).collect();
    // In a fixed order, so that calls do not deadlock.
    targets.sort_by(|one, other| one.file.path.cmp(&other.file.path));
    let mut locks = Locks::default();
    for target in &targets {
        if let Err(error) = locks.lock(target) {
            locks.release();
            staged.discard();
            return Err(explain(&target.location, "written", &error));
        }
    }
    if !targets.iter().all(|target| target.is_unchanged()) {
        locks.release();
        staged.discard();
        return Ok(false);
    }
    let mut done = Vec::new();
    for (change, temporary) in changes.iter().zip(&staged.files) {
        if let Err(error) = change.make(temporary) {
            let lost = undo(&done);
            locks.release();
            staged.discard();
            let failed = explain(&change.target.location, "written", &error);
            return Err(match lost {
                Some(lost) => ErrorInfo::new(format!("{}; and {lost}", failed.message)),
                None => failed,
            });
        }
        done.push((change, temporary));
    }
    locks.release();
    for (change, temporary) in &done {
        if change.content.is_none() {
            leavings.push((*temporary).clone());
        }
    }
    leavings.iter().for_each(|path| remove(path));
    for target in changes.iter().flat_map(Change::targets) {
        // Some file systems do not support this; the names exist anyway.
        let _ = File::open(format!("{}/.", target.place().0)).and_then(|it| it.sync_all());
    }
    Ok(true)
}

/// Temporary files with the new content.
#[derive(Default)]
struct Staged {
    /// One path for each change, in order: its temporary file, or the temporary path of a removed
    /// file.
    files: Vec<String>,
    /// Directories that were created for the changes.
    directories: Vec<String>,
}

impl Staged {
    fn write(&mut self, change: &Change) -> io::Result<()> {
        let target = &change.target;
        let (directory, name) = target.place();
        let purpose = match (&target.content, &change.content, &change.from) {
            (_, None, _) => Purpose::Remove,
            (Some(_), _, _) | (_, _, Some(_)) => Purpose::Replace,
            (None, _, None) => Purpose::Create,
        };
        let temporary = target.beside(&temporary_name(purpose, name));
        if let Some(content) = &change.content {
            self.directories.extend(make_directories(&directory)?);
            self.files.push(temporary.clone());
            let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
            file.write_all(content)?;
            synced(file.sync_all())?;
        } else {
            self.files.push(temporary);
        }
        Ok(())
    }

    fn discard(&self) {
        self.files.iter().for_each(|file| remove(file));
        remove_directories(&self.directories);
    }
}

/// Ignores the error of a file system that cannot sync.
fn synced(result: io::Result<()>) -> io::Result<()> {
    let is_missing = |code| matches!(code, Some(libc::EINVAL | libc::ENOTSUP));
    result.or_else(|error| if is_missing(error.raw_os_error()) { Ok(()) } else { Err(error) })
}

/// Creates a directory and its missing parents, all or none. Returns the created ones, outermost
/// first.
pub(crate) fn make_directories(path: &str) -> io::Result<Vec<String>> {
    let mut made = Vec::new();
    match make_missing(path, &mut made) {
        Ok(()) => Ok(made),
        Err(error) => {
            remove_directories(&made);
            Err(error)
        }
    }
}

fn make_missing(path: &str, made: &mut Vec<String>) -> io::Result<()> {
    match stat(path) {
        Ok(found) if found.kind == Kind::Directory => return Ok(()),
        Ok(_) => return Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    if let Some((above, _)) = path.rsplit_once('/')
        && !above.is_empty()
    {
        make_missing(above, made)?;
    }
    match fs::create_dir(path) {
        Ok(()) => made.push(path.to_owned()),
        // Another call was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Removes created directories if they are empty.
pub(crate) fn remove_directories(made: &[String]) {
    for directory in made.iter().rev() {
        let _ = fs::remove_dir(directory);
    }
}

/// Reverts applied changes, last one first. Returns the changes that are lost.
fn undo(done: &[(&Change, &String)]) -> Option<String> {
    let mut lost = Vec::new();
    for (change, temporary) in done.iter().rev() {
        if change.undo(temporary).is_err() {
            lost.push(format!("`{}`", change.target.location.given));
        }
    }
    (!lost.is_empty()).then(|| format!("{} could not be changed back", lost.join(", ")))
}

/// Removes a leftover file.
fn remove(path: &str) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}

/// Files that are locked.
#[derive(Default)]
struct Locks(Vec<String>);

impl Locks {
    fn lock(&mut self, target: &Target) -> io::Result<()> {
        /// A lock is held for a fraction of this time.
        const PAUSE: Duration = Duration::from_millis(1);
        let (directory, name) = target.place();
        if stat(&directory).is_err() {
            // The file was removed and its directory no longer exists.
            return Ok(());
        }
        let lock = target.beside(&lock_name(name));
        if self.0.contains(&lock) {
            return Ok(());
        }
        // Distinguishes locks.
        let token = temporary_name(Purpose::Replace, name);
        let mut seen: Option<(String, Instant)> = None;
        loop {
            match File::create_new(&lock) {
                Ok(mut file) => {
                    self.0.push(lock);
                    return file.write_all(token.as_bytes());
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
            let Ok(holder) = fs::read_to_string(&lock) else { continue };
            match &seen {
                Some((before, since)) if *before == holder => {
                    if since.elapsed() >= ABANDONED {
                        let _ = fs::remove_file(&lock);
                        seen = None;
                    }
                }
                _ => seen = Some((holder, Instant::now())),
            }
            sleep(PAUSE);
        }
    }

    fn release(&self) {
        for lock in &self.0 {
            let _ = fs::remove_file(lock);
        }
    }
}
