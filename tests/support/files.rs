//! A workspace for the tools that work on files.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::{Run, Workspace};

impl Workspace {
    /// A workspace whose files can be read and changed by the tools of `files`.
    pub(crate) fn of_files() -> Self {
        Self::with_toolsets(&["files", "write"])
    }

    /// Calls a tool with the binary, with these answers to its questions.
    pub(crate) fn tool(&self, tool: &str, arguments: &Value, answers: &[&str]) -> Run {
        let arguments = arguments.to_string();
        let answers = answers.iter().flat_map(|answer| ["--answer", answer]);
        let call: Vec<_> = ["run", tool, "--args", &arguments].into_iter().chain(answers).collect();
        self.run(&call)
    }

    /// Starts a call without waiting for its end.
    pub(crate) fn start(&self, tool: &str, arguments: &Value, answers: &[&str]) -> Child {
        let mut command = self.command();
        command.args(["run", tool, "--args", &arguments.to_string()]);
        command.args(answers.iter().flat_map(|answer| ["--answer", answer]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
