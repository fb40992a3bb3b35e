//! Attempts of a malicious tool to exceed its rights.
//!
//! Each attempt is a call through the library, and its result is in a reviewed snapshot. If it is
//! not obvious that the attempt would succeed without the protection, the snapshot also has the
//! same attempt with permission.

mod anchors;
mod asynchronous;
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
use serde_json::{Value, json};

use crate::support::{CallInTest, Workspace, guest};

/// The component of the tool `probe`. Both make the same attempts, and have the same results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// A tool for kitbag, with WASI 0.2.
    Tool,
    /// A command for WASI 0.3. It has no grants by default.
    Asynchronous,
}

impl Probe {
    const ALL: [Self; 2] = [Self::Tool, Self::Asynchronous];

    /// Returns the table of the tool, with further tables after it.
    fn table(self, tables: &str) -> String {
        let wasm = match self {
            Self::Tool => guest("probe"),
            Self::Asynchronous => guest("probe_async"),
        };
        format!(
            "[tools.probe]\nsource = \"local\"\nwasm = {wasm:?}\ndescription = \"tries things\"\n\
             {tables}"
        )
    }

    /// Returns a workspace with the tool under these tables.
    fn workspace(self, tables: &str) -> Workspace {
        let workspace = Workspace::new();
        workspace.config(&self.table(tables));
        workspace
    }

    /// Returns the arguments of a call that makes an attempt.
    fn arguments(self, attempt: &Value) -> Value {
        match self {
            Self::Tool => attempt.clone(),
            Self::Asynchronous => json!({ "args": [attempt.to_string()] }),
        }
    }
}

/// Attempts of the tool `probe`, and the result of each.
struct Attempts<'a> {
    workspace: &'a Workspace,
    kitbag: Kitbag,
    probe: Probe,
    report: String,
}

impl<'a> Attempts<'a> {
    fn new(workspace: &'a Workspace) -> Self {
        Self::of(Probe::Tool, workspace)
    }

    fn of(probe: Probe, workspace: &'a Workspace) -> Self {
        Self { workspace, kitbag: workspace.kitbag(), probe, report: String::new() }
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
        let arguments = self.probe.arguments(&arguments);
        let got = self.workspace.redact(&self.kitbag.call_in_test("probe", arguments));
        self.report.push_str(&got);
        self.report.push('\n');
        got
    }
}
