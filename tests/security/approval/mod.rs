//! Asking a person before a call: `approve`.
//!
//! Each test of a protection is an attack on it.

mod clients;
mod command_line;
mod inner;
mod library;
mod people;
mod rules;
mod server;
mod shown;

use std::fs;

use serde_json::{Value, json};

use crate::support::{Workspace, guest};

/// A workspace whose `probe` may change files, with this rule in the user config.
fn workspace(approve: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.own_config(&probe(&format!("approve = {approve}\n")));
    workspace
}

/// The table of a `probe` that may change files.
fn probe(keys: &str) -> String {
    format!(
        "[tools.probe]\nsource = \"local\"\nwasm = {:?}\n{keys}\
         grants.filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n",
        guest("probe"),
    )
}

/// The arguments of a call that writes a file.
fn write(path: &str, text: &str) -> Value {
    json!({ "do": "write", "path": path, "text": text })
}

/// The content of a file of the workspace, if the file exists.
fn content(workspace: &Workspace, path: &str) -> Option<String> {
    fs::read_to_string(workspace.path(path)).ok()
}

/// The approval lines of the audit log: the answer, who gave it, and the tool.
fn logged(workspace: &Workspace) -> Vec<String> {
    let lines = workspace.run(&["audit", "--json", "--all"]).success();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let approvals = lines.filter(|line| line["event"] == "approval");
    let shown = approvals.map(|line| {
        let field = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        assert_eq!(field("arguments_digest").len(), 64, "{line}");
        format!("{} {} by {}, {}", field("tool"), field("answer"), field("by"), field("caller"))
    });
    let user = format!("user {}", rustix::process::getuid().as_raw());
    shown.map(|line| line.replace(&user, "user")).collect()
}
