//! Pieces of the configuration: the parts that a mistake breaks, and the tools that may be less
//! restricted without them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kitbag_base::text::{alternatives, shown};
use kitbag_contract::ToolName;
use kitbag_policy::server::ServerName;

use super::Diagnostic;
use crate::format::key::KeyPath;
use crate::layers::toolsets::TOOLSETS;
use crate::read::file::{Layer, SourceFile};

/// The part of the configuration that a mistake breaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The whole configuration, for a mistake in a flag, a variable or the workspace itself.
    #[default]
    Everything,
    /// A file that cannot be understood, with the words in it. `None`: the words are unknown.
    File(Option<Arc<BTreeSet<String>>>),
    /// A lock file: the records of the tools of its layer.
    Lock,
    /// A file that affects nothing else, such as a component with an invalid name.
    Component,
    /// The tool of this name.
    Tool(String),
    /// The server of this name.
    Server(String),
    /// The topic of this id.
    Topic(String),
    /// The person of this name, who has a token.
    Person(String),
    /// The value of this dotted key, which affects more than one tool.
    Key(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The layer of its file. `None`: the piece is not in a file.
    pub(crate) layer: Option<Layer>,
    pub(crate) piece: Piece,
    /// Names of tools and toolsets in an unknown key, which may restrict them.
    pub(crate) names: Vec<String>,
}

/// The tools that may run with fewer restrictions if a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restricts<'a> {
    /// No tool.
    Nothing,
    /// Every tool.
    All,
    /// Tools that reach files.
    Files,
    /// Tools that send requests.
    Network,
    /// Components and scripts of a layer.
    Code(Layer),
    /// Components of a layer that have a record.
    Recorded(Layer),
    /// Built-in tools that change files.
    Writing,
    /// All built-in tools.
    Builtins,
    /// All tools of servers.
    Servers,
    /// The tools of a toolset.
    Toolset(&'a str),
    /// The tools that a server offers.
    Served,
    /// The memory of a server.
    ServerMemory,
    /// All topics.
    Topics,
}

/// A piece of the configuration that is omitted because of a mistake in it.
///
/// Reads as ``.kitbag/config.toml:4:1: unknown key `desciption` in `tools.a`; did you mean
/// `description`? (the tool `a` is off)``, in one line.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The first mistake in the piece.
    pub diagnostic: Diagnostic,
    /// The number of further mistakes in the piece.
    pub more: usize,
    /// `true` if the piece belongs to the user config.
    pub is_own: bool,
    pub(crate) consequence: String,
}

impl Piece {
    /// Returns the piece that the value of a dotted key belongs to.
    pub(crate) fn of_key(path: &KeyPath<'_>) -> Self {
        match &*path.keys() {
            ["tools", name, ..] => Self::Tool((*name).to_owned()),
            ["servers", name, ..] => Self::Server((*name).to_owned()),
            ["knowledge", id, ..] => Self::Topic((*id).to_owned()),
            ["serve", "tokens", name, ..] => Self::Person((*name).to_owned()),
            _ => Self::Key(path.to_string()),
        }
    }

    pub(crate) fn label(&self) -> String {
        match self {
            Self::Everything | Self::File(_) | Self::Lock | Self::Component => String::new(),
            Self::Tool(name) => format!("tools.{name}"),
            Self::Server(name) => format!("servers.{name}"),
            Self::Topic(id) => format!("knowledge.{id}"),
            Self::Person(name) => format!("serve.tokens.{name}"),
            Self::Key(key) => key.clone(),
        }
    }

    /// Returns the piece for a file that is not valid TOML.
    pub(crate) fn of_text(file: &SourceFile) -> Self {
        Self::File(words(file.text()).map(Arc::new))
    }
}

/// Returns the words of a text that may be keys. Returns `None` if an escape may hide a word.
fn words(text: &str) -> Option<BTreeSet<String>> {
    let has_escapes = ["\\u", "\\U", "\\x"].iter().any(|escape| text.contains(escape));
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    (!has_escapes).then(|| words.map(str::to_owned).collect())
}

impl<'a> Restricts<'a> {
    /// The top-level keys that restrict tools without naming them.
    pub(crate) const KEYS: [&'static str; 11] = [
        "limits",
        "servers",
        "secret_files",
        "serve",
        "knowledge",
        "ceiling",
        "deny",
        "network",
        "audit",
        "approve",
        "output",
    ];

    /// Returns the restriction that the value of a dotted key may be.
    pub(crate) fn of_key(key: &'a str, layer: Layer) -> Self {
        let mut parts = key.split('.');
        let (table, rest) = (parts.next().unwrap_or_default(), parts.next());
        let is_own = layer == Layer::User;
        match (table, rest) {
            ("limits" | "tools", _) => Self::All,
            ("servers", _) => Self::Servers,
            ("secret_files", _) => Self::Files,
            ("serve", Some("memory")) => Self::ServerMemory,
            // These restrict callers, not tools.
            (
                "serve",
                Some(
                    "session_idle" | "unknown_arguments" | "tokens" | "discovery" | "tool_tokens"
                    | "pinned" | "result_size",
                ),
            ) => Self::Nothing,
            ("serve", _) => Self::Served,
            ("knowledge", _) => Self::Topics,
            ("toolsets", None) => Self::Builtins,
            ("toolsets", Some("write")) => Self::Writing,
            ("toolsets", Some(name)) if TOOLSETS.contains(&name) => Self::Toolset(name),
            // Other layers have no such keys.
            ("ceiling" | "approve" | "output", _) if is_own => Self::All,
            ("audit", None | Some("required")) if is_own => Self::All,
            ("deny" | "network", _) if is_own => Self::Network,
            _ => Self::Nothing,
        }
    }
}

impl Broken {
    /// Formats one line: the place, the problem, its fix, and its consequence.
    fn line(&self) -> String {
        let more = match self.more {
            0 => String::new(),
            1 => "; 1 more mistake".to_owned(),
            more => format!("; {more} more mistakes"),
        };
        format!(
            "{} ({}{more}; `kitbag check` shows everything)",
            self.diagnostic.line(),
            self.consequence
        )
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

/// Describes the consequence of a mistake. `off` are the tools that are off because of it.
/// `is_trusted`: the file belongs to the user or to a trusted workspace.
pub(crate) fn consequence(piece: &Piece, off: &BTreeSet<&str>, is_trusted: bool) -> String {
    let left_out = match piece {
        Piece::Tool(name) if is_trusted && ToolName::new(name).is_ok() => {
            return format!("the tool `{name}` is off");
        }
        Piece::Server(name) if is_trusted && ServerName::new(name.as_str()).is_ok() => {
            return format!("the server `{name}` is off");
        }
        Piece::Topic(id) => return format!("the topic `{}` is ignored", shown(id)),
        Piece::Person(name) => {
            return format!("the token of `{}` is not accepted", shown(name));
        }
        Piece::Key(key) => format!("`{key}` is ignored"),
        Piece::Tool(_) | Piece::Server(_) => "this is ignored".to_owned(),
        Piece::File(_) | Piece::Lock | Piece::Component | Piece::Everything => {
            "the file is ignored".to_owned()
        }
    };
    if !is_trusted {
        return format!("{left_out}, and the workspace is not trusted");
    }
    let off: Vec<_> = off.iter().collect();
    match (off.is_empty(), off.len() > 1) {
        (true, _) => left_out,
        (false, several) => {
            let (tools, are) = if several { ("tools", "are") } else { ("tool", "is") };
            let names = alternatives(&off).replace(" or ", " and ");
            format!("{left_out}, and it may restrict the {tools} {names}, which {are} off")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_unless_an_escape_hides_them() {
        let found = words("[tools.read_file]\napprove = \"always\" # a-b\n").unwrap();
        let expected = ["a-b", "always", "approve", "read_file", "tools"];
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        assert_eq!(words("\"secret\\u005ffiles\" = 1"), None);
    }

    #[test]
    fn restricting_keys_are_known_by_their_tables() {
        let check = |key, layer, expected| assert_eq!(Restricts::of_key(key, layer), expected);
        check("limits.time", Layer::Workspace, Restricts::All);
        check("toolsets.python", Layer::Workspace, Restricts::Toolset("python"));
        check("toolsets.later", Layer::Workspace, Restricts::Nothing);
        check("toolsets", Layer::Workspace, Restricts::Builtins);
        check("ceiling.memory", Layer::Workspace, Restricts::Nothing);
        check("ceiling.memory", Layer::User, Restricts::All);
        check("deny", Layer::User, Restricts::Network);
        check("audit.size", Layer::User, Restricts::Nothing);
        check("audit.required", Layer::User, Restricts::All);
        check("later", Layer::User, Restricts::Nothing);
    }
}
