//! `kitbag dev`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::commands::Global;
use crate::commands::author::{Project, build, test};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;

/// The time between two looks at the files. Notices of the system would need a descriptor for each
/// directory.
const PERIOD: Duration = Duration::from_millis(300);

/// Directories and files that a build writes.
const WRITTEN: [&str; 8] = [
    "Cargo.lock",
    "__pycache__",
    "build",
    "node_modules",
    "package-lock.json",
    "target",
    "venv",
    "wit_world",
];

/// Maximum number of files that are watched.
const MOST_FILES: usize = 10_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag dev
  kitbag dev word-count")]
pub(crate) struct Args {
    /// The directory of the project [default: the current directory]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

type Files = BTreeMap<PathBuf, Option<SystemTime>>;

impl Args {
    pub(crate) fn run(self, global: &Global) -> Result<Exit, CliError> {
        let project = Project::find(self.directory.as_deref(), global)?;
        loop {
            // Changes during the build start the next one.
            let files = files(&project.directory);
            match build_and_test(&project, global) {
                Ok(text) => output::data(&text)?,
                Err(error @ CliError::Output(_)) => return Err(error),
                Err(error) => output::note(&error.report()),
            }
            output::note("waiting for changes; Ctrl-C ends");
            wait(&project.directory, &files);
        }
    }
}

fn build_and_test(project: &Project, global: &Global) -> Result<String, CliError> {
    build::build(project, global)?;
    test::run(project, None, false, global).map(|report| report.text())
}

/// Waits until the files of a project are different.
fn wait(directory: &Path, before: &Files) {
    while files(directory) == *before {
        thread::sleep(PERIOD);
    }
}

/// Returns the files of a project that a person writes, with the times of their changes.
fn files(directory: &Path) -> Files {
    let mut found = Files::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if found.len() == MOST_FILES || name.starts_with('.') || WRITTEN.contains(&&*name) {
                continue;
            }
            // Links are not followed.
            let Ok(metadata) = entry.metadata() else { continue };
            match metadata.is_dir() {
                true => directories.push(entry.path()),
                false => drop(found.insert(entry.path(), metadata.modified().ok())),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_build_are_not_watched() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for file in ["src/lib.rs", "cases.txt", "target/a", ".venv/b", "build/c", "Cargo.lock"] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found: Vec<_> = files(root).into_keys().collect();
        assert_eq!(found, [root.join("cases.txt"), root.join("src/lib.rs")]);
    }
}
