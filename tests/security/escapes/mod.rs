//! Attempts of a malicious tool to exceed its rights.
//!
//! Each attempt is a call through the library, and its result is in a reviewed snapshot. If it is
//! not obvious that the attempt would succeed without the protection, the snapshot also has the
//! same attempt with permission.

mod anchors;
mod checking;
mod compiling;
mod components;
mod data;
mod environment;
mod files;
mod guarded;
mod http;
mod links;
mod parties;
mod protected;
mod reports;
mod resources;
mod second_names;
mod secrets;
mod sequences;

use kitbag::Kitbag;
use serde_json::Value;

use crate::support::{CallInTest, Workspace};

/// Attempts of the tool `probe`, and the result of each.
struct Attempts<'a> {
    workspace: &'a Workspace,
    kitbag: Kitbag,
    report: String,
}

impl<'a> Attempts<'a> {
    fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, kitbag: workspace.kitbag(), report: String::new() }
    }

    /// States the subject of the following attempts.
    fn about(&mut self, text: &str) {
        if !self.report.is_empty() {
            self.report.push('\n');
        }
        self.report.push_str(&format!("# {text}\n"));
    }

    /// Makes an attempt, and records its result.
    fn attempt(&mut self, arguments: Value) -> String {
        let got = self.workspace.redact(&self.kitbag.call_in_test("probe", arguments));
        self.report.push_str(&got);
        self.report.push('\n');
        got
    }
}
