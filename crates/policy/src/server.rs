//! MCP servers whose tools kitbag offers: their addresses, and the definitions of their tools.
//!
//! A server is a process that kitbag starts, or a remote server that it connects to. All types are
//! plain: `kitbag-config` reads them, and `kitbag-servers` connects.

use std::borrow::Borrow;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::addresses::Block;
use crate::secret::SecretName;
use crate::variable::VariableName;

/// The name of a server, which matches `^[a-z0-9][a-z0-9_-]{0,31}$`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(String);

/// The error for a string that is not a valid server name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a server: it takes lower-case letters, digits, `_` and `-`, starts \
     with a letter or a digit, and has at most {max} characters",
    shown(name), max = ServerName::MAX_LEN
)]
pub struct ServerNameError {
    /// The invalid name.
    pub name: String,
}

/// The address of a server. A server whose address changes is another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A process that kitbag starts.
    Process(ServerProcess),
    /// A server that kitbag connects to.
    Remote(RemoteServer),
}

/// A server as a process of this machine, which speaks MCP over its standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProcess {
    /// The program and its arguments; no shell is used. A program without a slash is found through
    /// `PATH` when the server starts.
    pub command: Vec<String>,
    /// The working directory; absolute.
    pub directory: PathBuf,
    /// The variables of its environment, in addition to `PATH`, `HOME` and `LANG`.
    pub environment: Vec<ServerVariable>,
    /// The confinement. `None`: the process has all of the user's rights.
    pub confine: Option<Confinement>,
}

/// A variable in the environment of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVariable {
    /// The name.
    pub name: VariableName,
    /// The value.
    pub value: ServerValue,
}

/// The value of a variable of a server. `Debug` does not show a text.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerValue {
    /// A text that is not secret.
    Text(String),
    /// The value of a secret of the user.
    Secret(SecretName),
    /// The value of the variable in the environment of kitbag, if it is set.
    Inherit,
}

/// The access of a confined process. Programs and libraries of the system can always be read and
/// run, and a private temporary directory can be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files and directories that it may read; absolute and canonical.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read and write; absolute and canonical.
    pub write: Vec<PathBuf>,
    /// `true` lets it use the network.
    pub network: bool,
    /// The largest memory of each of its processes. `None`: unlimited.
    pub memory: Option<ByteSize>,
    /// The largest number of its processes and threads. `None`: unlimited.
    pub processes: Option<u32>,
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteServer {
    /// The URL of its MCP endpoint.
    pub url: String,
    /// The secret of the user that is added to each request, by its own placement.
    pub secret: Option<SecretName>,
    /// Further headers, by name; their values are not secret.
    pub headers: Vec<(String, String)>,
    /// Blocks of addresses that the host may have in addition to public ones.
    pub addresses: Vec<Block>,
}

/// The era of the protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Sessions that start with `initialize`: revisions until 2025-11-25.
    Initialize,
    /// Requests without sessions: revisions since 2026.
    Stateless,
}

/// A tool, as its server defines it. A definition that is not equal has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The server's name of the tool.
    pub name: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The hints about its behaviour, which are claims of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl ServerName {
    /// The longest name, in bytes (all ASCII).
    pub const MAX_LEN: usize = 32;

    /// Creates a name if the string is valid.
    ///
    /// # Errors
    ///
    /// [`ServerNameError`] contains the string if it does not have the form above.
    pub fn new(name: impl Into<String>) -> Result<Self, ServerNameError> {
        let name = name.into();
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_name = (1..=Self::MAX_LEN).contains(&name.len())
            && name.bytes().all(|byte| is_letter(byte) || byte == b'_' || byte == b'-')
            && name.bytes().next().is_some_and(is_letter);
        if is_name { Ok(Self(name)) } else { Err(ServerNameError { name }) }
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ServerProcess {
    /// Creates a process with all of the user's rights. A program without a slash is found through
    /// `PATH`; the directory is absolute.
    ///
    /// ```
    /// use kitbag_policy::server::{Confinement, ServerProcess, ServerValue};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let process = ServerProcess::new("mcp-server-sqlite", "/srv/app")
    ///     .arguments(["--db-path", "app.db"])
    ///     .variable("LOG_LEVEL".parse()?, ServerValue::Text("warn".into()))
    ///     .confine(Confinement::default().write("/srv/app/app.db"));
    /// assert_eq!(process.command, ["mcp-server-sqlite", "--db-path", "app.db"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(program: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        Self {
            command: vec![program.into()],
            directory: directory.into(),
            environment: Vec::new(),
            confine: None,
        }
    }

    /// Adds arguments of the program.
    #[must_use]
    pub fn arguments<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.command.extend(arguments.into_iter().map(A::into));
        self
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn variable(mut self, name: VariableName, value: ServerValue) -> Self {
        self.environment.push(ServerVariable { name, value });
        self
    }

    /// Confines the process.
    #[must_use]
    pub fn confine(mut self, confinement: Confinement) -> Self {
        self.confine = Some(confinement);
        self
    }
}

impl Confinement {
    /// Lets the process read a file or directory. The path is absolute and canonical.
    #[must_use]
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Lets the process read and write a file or directory. The path is absolute and canonical.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Lets the process use the network.
    #[must_use]
    pub fn network(mut self) -> Self {
        self.network = true;
        self
    }

    /// Limits the memory of each process.
    #[must_use]
    pub fn memory(mut self, most: ByteSize) -> Self {
        self.memory = Some(most);
        self
    }

    /// Limits the number of processes and threads.
    #[must_use]
    pub fn processes(mut self, most: u32) -> Self {
        self.processes = Some(most);
        self
    }
}

impl RemoteServer {
    /// Creates a server with the URL of its MCP endpoint, without a secret. Its host must have a
    /// public address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), secret: None, headers: Vec::new(), addresses: Vec::new() }
    }

    /// Adds a secret to each request, by the placement of the secret.
    #[must_use]
    pub fn secret(mut self, name: SecretName) -> Self {
        self.secret = Some(name);
        self
    }

    /// Adds a header to each request. The value must not be secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Permits addresses of the host in this block, in addition to public addresses.
    #[must_use]
    pub fn addresses(mut self, block: Block) -> Self {
        self.addresses.push(block);
        self
    }
}

impl From<ServerProcess> for ServerAddress {
    fn from(process: ServerProcess) -> Self {
        Self::Process(process)
    }
}

impl From<RemoteServer> for ServerAddress {
    fn from(remote: RemoteServer) -> Self {
        Self::Remote(remote)
    }
}

impl ServerAddress {
    /// Returns whether the server is a process that has all of the user's rights.
    pub fn has_all_rights(&self) -> bool {
        matches!(self, Self::Process(ServerProcess { confine: None, .. }))
    }

    /// Returns the secrets that the server receives.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretName> {
        let (variables, secret) = match self {
            Self::Process(process) => (&process.environment[..], None),
            Self::Remote(remote) => (&[][..], remote.secret.as_ref()),
        };
        let of_variables = variables.iter().filter_map(|variable| match &variable.value {
            ServerValue::Secret(name) => Some(name),
            ServerValue::Text(_) | ServerValue::Inherit => None,
        });
        of_variables.chain(secret)
    }
}

/// Hides a text, in which people write tokens.
impl fmt::Debug for ServerValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(…)"),
            Self::Secret(name) => write!(f, "Secret({name})"),
            Self::Inherit => f.write_str("Inherit"),
        }
    }
}

impl FromStr for ServerName {
    type Err = ServerNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<String> for ServerName {
    type Error = ServerNameError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_are_short_and_lower_case() {
        let check = |name: &str, expected: bool| {
            assert_eq!(ServerName::new(name).is_ok(), expected, "{name:?}");
        };
        for name in ["db", "0", "my-server_2", &"a".repeat(32)] {
            check(name, true);
        }
        for name in ["", "-a", "_a", "Db", "a b", "a/b", "ä", &"a".repeat(33)] {
            check(name, false);
        }
    }

    #[test]
    fn definitions_ignore_unknown_and_null_members() {
        let text = r#"{ "name": "a", "inputSchema": {}, "title": null, "icons": [], "_meta": {} }"#;
        let definition: ToolDefinition = serde_json::from_str(text).unwrap();
        let again = serde_json::to_string(&definition).unwrap();
        assert_eq!(again, r#"{"name":"a","inputSchema":{}}"#);
    }
}
