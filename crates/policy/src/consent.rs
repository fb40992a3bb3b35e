//! Grants and requests in the words in which a person consents to them, with their abilities and
//! risks.

mod risk;

pub use risk::{Risk, Severity};

use std::path::Path;

use kitbag_base::text::shown;

/// An ability that a request gives, in the order in which a summary counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ability {
    /// Sends secrets with requests.
    Secrets,
    /// Sends requests over the network.
    Network,
    /// Changes files outside the workspace.
    WriteOutside,
    /// Reads files outside the workspace.
    ReadOutside,
    /// Changes files in the workspace.
    WriteInside,
    /// Reads files in the workspace.
    ReadInside,
    /// Reads environment variables.
    Variables,
    /// Calls other tools.
    CallTools,
}

/// A grant in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantText {
    /// The use of the grant by the tool, such as `reads the workspace`. Escaped.
    pub line: String,
    /// The ability that the grant gives.
    pub ability: Option<Ability>,
    /// The risks of the grant.
    pub risks: Vec<Risk>,
}

/// The paths, names and network by which grants are classified.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The root of the workspace; canonical.
    pub root: &'a Path,
    /// The user's home directory; canonical.
    pub home: Option<&'a Path>,
    /// True if a proxy resolves the names of hosts.
    pub proxy_resolves: bool,
    /// Returns true if the files of a directory look like secrets, by its path.
    pub holds_secrets: fn(&Path) -> bool,
    /// Returns true if other programs run files of a directory, by the root and the path in it.
    pub holds_programs: fn(&Path, &str) -> bool,
}

impl GrantText {
    pub(crate) fn new(line: String, ability: Option<Ability>, risks: Vec<Risk>) -> Self {
        Self { line, ability, risks }
    }
}

/// Quotes third-party text as code. The text cannot end the quotes.
pub fn quoted(text: &str) -> String {
    format!("`{}`", shown(text).to_string().replace('`', "\\u{60}"))
}

/// Returns the text for a canonical path, which states if the path is in the workspace.
pub fn place(path: &Path, root: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => "the workspace".into(),
        Ok(inside) => quoted(&inside.to_string_lossy()),
        Err(_) => {
            format!("{}, which is outside the workspace", quoted(&path.to_string_lossy()))
        }
    }
}
