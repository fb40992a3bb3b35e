//! Native tests of the tools on a real directory.

mod patching;
mod paths;
mod reading;
mod round_trips;
mod writing;

use std::fs;
use std::path::PathBuf;

use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::{Call, Stop, Tool};
use serde::de::IgnoredAny;

use crate::Files;

#[test]
fn the_description_has_the_defaults_of_the_code() {
    let described: Value = serde_json::from_str(crate::DESCRIPTION).unwrap();
    let default = |tool: &str, argument: &str| {
        let tools = described["tools"].as_array().unwrap();
        let tool = tools.iter().find(|it| it["name"] == tool).unwrap();
        tool["inputSchema"]["properties"][argument]["default"].clone()
    };
    assert_eq!(default("read_file", "max_bytes"), crate::read::max_bytes());
    assert_eq!(default("list_dir", "limit"), crate::list::limit());
}

/// A working directory.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn file(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Calls a tool. Returns its answer, or an error or question on one line.
    fn call(&self, tool: &str, arguments: Value) -> String {
        self.call_with(tool, arguments, "{}")
    }

    fn call_with(&self, tool: &str, arguments: Value, answers: &str) -> String {
        let root = self.0.path().to_str().unwrap();
        let call = Call::new(tool, root, arguments.to_string(), answers);
        let answer = match Files::run(&call, IgnoredAny) {
            Ok(answer) => answer,
            Err(Stop::Error(error)) => format!("error: {}", error.message),
            Err(Stop::Question(question)) => format!("question: {}", question.text),
        };
        answer.replace(root, "<root>")
    }
}
