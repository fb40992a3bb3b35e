//! A server whose tools kitbag offers, and the record of its tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::shell;
use kitbag_base::text::{shown, shown_path};
use kitbag_contract::ToolName;
use kitbag_policy::server::{Confinement, Era, ServerAddress, ServerName, ToolDefinition};
use kitbag_policy::{ApprovalRule, SecretGrant};

use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Disabled;
use crate::read::file::Layer;
use crate::report::Diagnostic;

/// An MCP server: the table `[servers.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredServer {
    /// The name.
    pub name: ServerName,
    /// The layer of the file that defines the server: the workspace or the user.
    pub layer: Layer,
    /// The process or the URL. `None`: the server is off, and its address was not read.
    pub address: Option<Sourced<Arc<ServerAddress>>>,
    /// The secret that is added to each request to a remote server. `None`: it has none, or the user
    /// config has no secret of that name.
    pub secret: Option<SecretGrant>,
    /// The value of `enable`. Default `true`.
    pub enable: Sourced<bool>,
    /// The reason why its tools are not offered. `None`: they are offered.
    pub disabled: Option<Disabled>,
    /// The patterns of its tools, by the server's names. A tool must match every list. Default: all
    /// tools.
    pub tools: Vec<Sourced<Vec<String>>>,
    /// The start of the names of its tools, before `_`. Default: the name of the server. Empty: the
    /// tools have their own names.
    pub prefix: Sourced<String>,
    /// The calls that need approval, unless the table of a tool has a rule, by layer.
    pub approve: Vec<(Layer, Sourced<ApprovalRule>)>,
    /// The time after which the server ends if no call uses it. Default 10 minutes.
    pub idle: Sourced<Duration>,
    /// The record in `kitbag.lock`. `None`: it was not added yet, and offers no tool.
    pub recorded: Option<Arc<RecordedServer>>,
    /// The tools that are not offered because of their names, and other likely mistakes.
    pub warnings: Vec<Diagnostic>,
}

/// The record of a server in a lock file: its tools, as a person agreed to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedServer {
    /// The name that the server declares.
    pub name: Option<String>,
    /// The version that the server declares.
    pub version: Option<String>,
    /// The revision of the protocol that it spoke.
    pub protocol: Option<String>,
    /// The era of that revision. `None`: it is not known.
    pub era: Option<Era>,
    /// The command line or the URL at that time, for readers of the file.
    pub origin: Option<String>,
    /// The tools, by the server's names.
    pub tools: BTreeMap<String, Arc<ToolDefinition>>,
}

/// The record of a server, and its place in the lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedServer {
    /// The record.
    pub server: LockedServer,
    /// The place of the record.
    pub place: Origin,
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerTool {
    /// The server.
    pub server: ServerName,
    /// The server's name of the tool.
    pub tool: String,
    /// The address of the server.
    pub address: Arc<ServerAddress>,
    /// The recorded era of the server.
    pub era: Option<Era>,
    /// The recorded definition, which is the only one that a model sees.
    pub definition: Arc<ToolDefinition>,
    /// The layer of the file that defines the server.
    pub layer: Layer,
}

impl ConfiguredServer {
    /// The time after which an unused server ends, by default.
    pub const IDLE: Duration = Duration::from_secs(10 * 60);

    /// Returns a server without an address and a record.
    pub fn unrecorded(name: ServerName) -> Self {
        let reason = Disabled::NotRecorded { server: name.clone() };
        Self::off(name, Layer::User, reason)
    }

    /// Returns a server without an address.
    pub(crate) fn off(name: ServerName, layer: Layer, reason: Disabled) -> Self {
        let prefix = Sourced::default(name.to_string());
        Self {
            name,
            layer,
            address: None,
            secret: None,
            enable: Sourced::default(true),
            disabled: Some(reason),
            tools: Vec::new(),
            prefix,
            approve: Vec::new(),
            idle: Sourced::default(Self::IDLE),
            recorded: None,
            warnings: Vec::new(),
        }
    }

    /// Returns whether its tools are offered.
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }

    /// Returns the name of a tool for models, from the server's name of the tool.
    pub fn tool_name(&self, own: &str) -> Option<ToolName> {
        tool_name(&self.prefix.value, own)
    }
}

/// Describes an address, as the rest of a sentence that starts with the server: ``runs `x` with all
/// of your rights``.
pub fn address_words(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Remote(remote) => {
            let secret = remote.secret.as_ref();
            let secret = secret.map(|name| format!(" with your secret `{name}`"));
            format!("connects to `{}`{}", shown(&remote.url), secret.unwrap_or_default())
        }
        ServerAddress::Process(process) => {
            let command = shell::command(&process.command);
            let confine = match &process.confine {
                None => " with all of your rights".to_owned(),
                Some(confine) => format!(", confined: {}", confinement_words(confine)),
            };
            format!("runs `{}`{confine}", shown(&command))
        }
    }
}

/// Describes the access of a confined process.
pub fn confinement_words(confine: &Confinement) -> String {
    let paths = |verb: &str, paths: &[PathBuf]| {
        let paths: Vec<_> = paths.iter().map(|path| format!("`{}`", shown_path(path))).collect();
        (!paths.is_empty()).then(|| format!("{verb} {}", paths.join(", ")))
    };
    let network = if confine.network { "uses the network" } else { "no network" };
    let memory = confine.memory.map(|memory| format!("at most {memory} of memory"));
    let processes = confine.processes.map(|most| format!("at most {most} processes"));
    let words = [paths("reads", &confine.read), paths("writes", &confine.write)];
    let words = words.into_iter().chain([Some(network.to_owned()), memory, processes]);
    words.flatten().collect::<Vec<_>>().join("; ")
}

impl ServerTool {
    /// Returns the tool as it is written in `source`: `db/query`.
    pub fn source(&self) -> String {
        format!("{}/{}", self.server, shown(&self.tool))
    }
}

/// Returns the name of a server's tool for models: the prefix, `_`, and the tool's own name, in
/// which characters that a name cannot have become `_`. A long name ends in digits of its digest.
/// `None`: the own name is empty.
pub fn tool_name(prefix: &str, own: &str) -> Option<ToolName> {
    /// Digits of the digest at the end of a long name.
    const DIGITS: usize = 6;
    if own.is_empty() {
        return None;
    }
    let whole = if prefix.is_empty() { own.to_owned() } else { format!("{prefix}_{own}") };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let mut name: String = whole.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    if name.len() > ToolName::MAX_LEN {
        let digest = kitbag_state::trust::digest_of(whole.as_bytes()).to_string();
        name.truncate(ToolName::MAX_LEN - DIGITS - 1);
        name = format!("{name}_{}", &digest[..DIGITS]);
    }
    ToolName::new(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_server_tools_are_valid_and_short() {
        let check = |prefix: &str, own: &str, expected: &str| {
            assert_eq!(tool_name(prefix, own).unwrap().as_str(), expected);
        };
        check("db", "query", "db_query");
        check("", "query", "query");
        check("db", "read query/ü", "db_read_query__");
        check("", "2fa", "_2fa");
        check("2fa", "list", "_2fa_list");
        check("docs", &"a".repeat(43), &format!("docs_{}", "a".repeat(43)));
        let long = |last: &str| tool_name("docs", &format!("{}{last}", "a".repeat(60))).unwrap();
        assert_eq!(long("b").as_str().len(), ToolName::MAX_LEN);
        assert_ne!(long("b"), long("c"), "long names stay different");
        assert_eq!(tool_name("db", ""), None);
    }
}
