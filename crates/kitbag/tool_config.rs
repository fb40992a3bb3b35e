//! Grants and limits that an embedding program sets in code.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use kitbag_base::{ByteSize, format_duration};
use kitbag_policy::Access;

use crate::Builder;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolConfig {
    /// `None`: as in the files.
    directories: Option<Vec<String>>,
    http: Option<Vec<String>>,
    environment: Option<Vec<String>>,
    others: Vec<(String, String)>,
    limits: Vec<(&'static str, String)>,
}

impl ToolConfig {
    /// Creates a configuration that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Grants no directories, requests and variables, except those that are added here.
    #[must_use]
    pub fn no_grants(mut self) -> Self {
        self.directories.get_or_insert_default();
        self.http.get_or_insert_default();
        self.environment.get_or_insert_default();
        self
    }

    /// Grants a directory of the host at a path in the guest, such as `/workspace`. A relative path
    /// is in the workspace.
    #[must_use]
    pub fn directory(mut self, host: impl AsRef<Path>, guest: &str, access: Access) -> Self {
        let host = quoted(&host.as_ref().to_string_lossy());
        let grant = format!("{{ host = {host}, guest = {}, mode = \"{access}\" }}", quoted(guest));
        self.directories.get_or_insert_default().push(grant);
        self
    }

    /// Grants `GET` and `HEAD` requests to URLs that match a pattern.
    #[must_use]
    pub fn http(mut self, pattern: &str) -> Self {
        self.http.get_or_insert_default().push(quoted(pattern));
        self
    }

    /// Grants requests with these methods to URLs that match a pattern.
    #[must_use]
    pub fn http_methods(mut self, pattern: &str, methods: &[&str]) -> Self {
        let methods: Vec<_> = methods.iter().map(|method| quoted(method)).collect();
        let grant = format!("{{ url = {}, methods = [{}] }}", quoted(pattern), methods.join(", "));
        self.http.get_or_insert_default().push(grant);
        self
    }

    /// Grants a variable of [`Places::variables`](crate::Places::variables).
    #[must_use]
    pub fn variable(mut self, name: &str) -> Self {
        self.environment.get_or_insert_default().push(quoted(name));
        self
    }

    /// Grants another kind, with a value in TOML as in a configuration file: `("storage",
    /// "\"1MiB\"")`.
    #[must_use]
    pub fn grant(mut self, kind: &str, toml: &str) -> Self {
        self.others.push((quoted(kind), toml.to_owned()));
        self
    }

    /// Limits the time of one call.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.limits.push(("time", quoted(&format_duration(time).to_string())));
        self
    }

    /// Limits the memory of one call.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.limits.push(("memory", quoted(&memory.to_string())));
        self
    }

    /// Limits the size of the answer.
    #[must_use]
    pub fn output(mut self, output: ByteSize) -> Self {
        self.limits.push(("output", quoted(&output.to_string())));
        self
    }

    /// Adds the settings of a tool to a configuration file.
    fn write(&self, tool: &str, text: &mut String) {
        let tool = quoted(tool);
        let _ = writeln!(text, "[tools.{tool}.grants]");
        let lists =
            [("filesystem", &self.directories), ("http", &self.http), ("env", &self.environment)];
        for (key, list) in lists {
            if let Some(list) = list {
                let _ = writeln!(text, "{key} = [{}]", list.join(", "));
            }
        }
        for (key, value) in &self.others {
            let _ = writeln!(text, "{key} = {value}");
        }
        let _ = writeln!(text, "[tools.{tool}.limits]");
        for (key, value) in &self.limits {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

impl Builder {
    /// Sets grants and limits of a tool, which override those in all files: built-in, configured,
    /// or added with [`component`](Self::component). The second call for a tool is a mistake.
    #[must_use]
    pub fn tool_config(mut self, tool: &str, config: ToolConfig) -> Self {
        config.write(tool, self.tool_configs.get_or_insert_default());
        self
    }
}

/// Formats a string in TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
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
            .time(Duration::from_millis(1500))
            .memory(ByteSize::mib(64));
        let mut text = String::new();
        config.write("a", &mut text);
        assert_eq!(
            text,
            "\
[tools.\"a\".grants]
filesystem = [{ host = \"a\\\"b\", guest = \"/workspace\", mode = \"rw\" }]
http = [{ url = \"https://a.example/**\", methods = [\"POST\"] }]
env = []
\"storage\" = true
[tools.\"a\".limits]
time = \"1s 500ms\"
memory = \"64 MiB\"
"
        );
        assert_eq!(quoted("\n\u{7f}"), r#""\u000A\u007F""#);
    }
}
