//! Directories and files of the machine that runs the tests, as `files_wasi.rs` has those of
//! the host.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use kitbag_workspace::Kind;

use crate::entry::Entry;

/// A directory.
pub(crate) struct Directory(PathBuf);

pub(crate) use std::fs::File;

impl Directory {
    pub(crate) fn granted(path: &str) -> io::Result<Self> {
        Ok(Self(fs::canonicalize(path)?))
    }

    pub(crate) fn directory(&self, path: &str, _: bool) -> io::Result<Self> {
        Ok(Self(self.0.join(path)))
    }

    pub(crate) fn file(&self, path: &str, _: bool) -> io::Result<File> {
        File::open(self.0.join(path))
    }

    pub(crate) fn modified(&self, name: &str) -> io::Result<Duration> {
        let time = fs::symlink_metadata(self.0.join(name))?.modified()?;
        Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    pub(crate) fn entries(&self) -> io::Result<Vec<Entry>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            let name = entry.file_name().into_string().ok();
            Ok(Entry { name, kind: kind(entry.file_type()?) })
        };
        fs::read_dir(&self.0)?.map(entry).collect()
    }
}

fn kind(kind: fs::FileType) -> Kind {
    match kind {
        kind if kind.is_file() => Kind::File,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_symlink() => Kind::Link,
        _ => Kind::Other,
    }
}
