//! Grants and limits that an embedding program sets in code.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kitbag_base::{ByteSize, format_duration};
use kitbag_policy::Access;
use toml::{Table, Value};

use crate::Builder;

// The kinds of grants whose values are lists.
const DIRECTORIES: &str = "filesystem";
const HTTP: &str = "http";
const VARIABLES: &str = "env";

/// The grants and limits of one tool, in place of configuration files.
///
/// A kind of grants that is set here replaces the kind in all files; other kinds are unchanged.
///
/// ```
/// use std::time::Duration;
///
/// use kitbag::policy::Access;
/// use kitbag::{Kitbag, ToolConfig};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path();
/// let config = ToolConfig::new()
///     .directory(path, "/workspace", Access::ReadOnly)
///     .http("https://api.example.com/**")
///     .time(Duration::from_secs(5));
/// let kitbag = Kitbag::builder().workspace(path).tool_config("read_file", config).build()?;
/// # assert_eq!(kitbag.toolbox().config().tools["read_file"].grants.value.http.grants.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolConfig {
    /// A kind that is absent is as in the files.
    grants: Table,
    limits: Table,
}

impl ToolConfig {
    /// Creates a configuration that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants no directories, requests and variables, except those that are added here.
    #[must_use]
    pub fn no_grants(mut self) -> Self {
        for kind in [DIRECTORIES, HTTP, VARIABLES] {
            self.list(kind);
        }
        self
    }

    /// Grants a directory of the host at a path in the guest, such as `/workspace`. A relative path
    /// is in the workspace.
    #[must_use]
    pub fn directory(mut self, host: impl AsRef<Path>, guest: &str, access: Access) -> Self {
        let host = host.as_ref().to_string_lossy().into_owned();
        let grant = [("host", host), ("guest", guest.into()), ("mode", access.to_string())];
        self.list(DIRECTORIES).push(grant.into_iter().collect::<BTreeMap<_, _>>().into());
        self
    }

    /// Grants `GET` and `HEAD` requests to URLs that match a pattern.
    #[must_use]
    pub fn http(mut self, pattern: &str) -> Self {
        self.list(HTTP).push(pattern.into());
        self
    }

    /// Grants requests with these methods to URLs that match a pattern.
    #[must_use]
    pub fn http_methods(mut self, pattern: &str, methods: &[&str]) -> Self {
        let grant = [("url", Value::from(pattern)), ("methods", Value::from(methods.to_vec()))];
        self.list(HTTP).push(grant.into_iter().collect::<BTreeMap<_, _>>().into());
        self
    }

    /// Grants a variable of [`Places::variables`](crate::Places::variables).
    #[must_use]
    pub fn variable(mut self, name: &str) -> Self {
        self.list(VARIABLES).push(name.into());
        self
    }

    /// Grants another kind, with a value in TOML as in a configuration file: `("storage",
    /// "\"1MiB\"")`. Text that is not a value in TOML is a string.
    #[must_use]
    pub fn grant(mut self, kind: &str, toml: &str) -> Self {
        let value = toml.parse::<Value>().unwrap_or_else(|_| toml.into());
        self.grants.insert(kind.to_owned(), value);
        self
    }

    /// Limits the time of one call.
    #[must_use]
    pub fn time(self, time: Duration) -> Self {
        self.limit("time", format_duration(time).to_string())
    }

    /// Limits the memory of one call.
    #[must_use]
    pub fn memory(self, memory: ByteSize) -> Self {
        self.limit("memory", memory.to_string())
    }

    /// Limits the size of the answer.
    #[must_use]
    pub fn output(self, output: ByteSize) -> Self {
        self.limit("output", output.to_string())
    }

    fn limit(mut self, name: &str, most: String) -> Self {
        self.limits.insert(name.to_owned(), most.into());
        self
    }

    /// Returns the grants of a kind whose value is a list.
    fn list(&mut self, kind: &str) -> &mut Vec<Value> {
        let list = self.grants.entry(kind).or_insert_with(|| Value::Array(Vec::new()));
        if !list.is_array() {
            *list = Value::Array(Vec::new());
        }
        list.as_array_mut().expect("the value is a list")
    }

    /// Returns the settings of a tool as a configuration file.
    fn written(self, tool: &str) -> String {
        let table = |key: &str, value: Table| Table::from_iter([(key.to_owned(), value.into())]);
        let mut settings = table("grants", self.grants);
        settings.insert("limits".into(), self.limits.into());
        table("tools", table(tool, settings)).to_string()
    }
}

impl Builder {
    /// Sets grants and limits of a tool, which override those in all files: built-in, configured,
    /// or added with [`component`](Self::component). The second call for a tool is a mistake.
    #[must_use]
    pub fn tool_config(mut self, tool: &str, config: ToolConfig) -> Self {
        self.tool_configs.get_or_insert_default().push_str(&config.written(tool));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_toml() {
        let config = ToolConfig::new()
            .no_grants()
            .directory("a\"b", "/workspace", Access::ReadWrite)
            .http_methods("https://a.example/**", &["POST"])
            .grant("storage", "true")
            .grant("config", "{ a = \"1\" }")
            .grant("secrets", "\n[tools.b.grants]")
            .time(Duration::from_millis(1500))
            .memory(ByteSize::mib(64));
        let written: Table = config.written("a\"]\n").parse().unwrap();
        let expected: Table = toml::toml! {
            [grants]
            filesystem = [{ host = "a\"b", guest = "/workspace", mode = "rw" }]
            http = [{ url = "https://a.example/**", methods = ["POST"] }]
            env = []
            storage = true
            config = { a = "1" }
            secrets = "\n[tools.b.grants]"
            [limits]
            time = "1s 500ms"
            memory = "64 MiB"
        };
        assert_eq!(written["tools"]["a\"]\n"], Value::Table(expected));
        assert_eq!(written["tools"].as_table().unwrap().len(), 1);
    }
}
