//! Directories and files of the test machine, with the interface of `files_wasi.rs`.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, UNIX_EPOCH};

use kitbag_workspace::{Kind, Listed, list};

/// A directory, by its path.
pub(crate) struct Directory(String);

pub(crate) use std::fs::File;

impl Directory {
    pub(crate) fn granted(path: &str) -> io::Result<Self> {
        Ok(Self(path.to_owned()))
    }

    pub(crate) fn directory(&self, path: &str, _: bool) -> io::Result<Self> {
        Ok(Self(self.join(path)))
    }

    pub(crate) fn file(&self, path: &str, _: bool) -> io::Result<File> {
        File::open(self.join(path))
    }

    pub(crate) fn modified(&self, name: &str) -> io::Result<Duration> {
        let time = fs::symlink_metadata(self.join(name))?.modified()?;
        Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    pub(crate) fn list(
        &self,
        visit: impl FnMut(&str, Kind) -> ControlFlow<()>,
    ) -> io::Result<Listed> {
        list(&self.0, visit)
    }

    fn join(&self, path: &str) -> String {
        format!("{}/{path}", self.0)
    }
}
