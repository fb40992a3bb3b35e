//! The clients: what their configuration says of a server, and in which file.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kitbag::Places;
use serde_json::{Map, Value, json};

/// A program that uses servers of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Zed
    Zed,
}

/// How a client reaches the server.
pub(super) enum Connection<'a> {
    /// It starts the program.
    Program { command: &'a str, arguments: &'a [String] },
    /// It connects to one that runs.
    Http { url: &'a str, token_variable: &'a str },
}

impl Client {
    /// The table of servers in its configuration.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
        }
    }

    /// Whether its configuration is TOML. That of the others is JSON.
    pub(super) fn has_toml(self) -> bool {
        self == Self::Codex
    }

    /// What its configuration says of the server. The error says why it cannot say it.
    pub(super) fn server(self, connection: &Connection<'_>) -> Result<Map<String, Value>, String> {
        let value = match *connection {
            Connection::Program { command, arguments } => match self {
                Self::ClaudeDesktop | Self::Cursor | Self::Codex => {
                    json!({ "command": command, "args": arguments })
                }
                Self::ClaudeCode | Self::VsCode => {
                    json!({ "type": "stdio", "command": command, "args": arguments })
                }
                Self::Zed => json!({ "command": command, "args": arguments, "env": {} }),
            },
            Connection::Http { url, token_variable } => {
                let bearer = |token: String| json!({ "Authorization": format!("Bearer {token}") });
                match self {
                    Self::ClaudeDesktop => {
                        return Err("Claude Desktop has no servers over HTTP in its file; leave \
                                    `--http` out"
                            .into());
                    }
                    Self::ClaudeCode => {
                        let headers = bearer(format!("${{{token_variable}}}"));
                        json!({ "type": "http", "url": url, "headers": headers })
                    }
                    Self::Codex => json!({ "url": url, "bearer_token_env_var": token_variable }),
                    Self::Cursor => {
                        let headers = bearer(format!("${{env:{token_variable}}}"));
                        json!({ "url": url, "headers": headers })
                    }
                    Self::VsCode => {
                        let headers = bearer(format!("${{env:{token_variable}}}"));
                        json!({ "type": "http", "url": url, "headers": headers })
                    }
                    Self::Zed => {
                        json!({ "url": url, "headers": bearer(token_variable.to_owned()) })
                    }
                }
            }
        };
        let Value::Object(server) = value else { unreachable!("each is an object") };
        Ok(server)
    }

    /// What has to be said of the token where the client reads no variable.
    pub(super) fn token_note(self, variable: &str) -> String {
        match self {
            Self::Zed => format!("Zed reads no variable: write the token in place of `{variable}`"),
            _ => format!("the token of the server goes into the variable `{variable}`"),
        }
    }

    /// The file: the workspace's own where there is one and the client reads it, else the
    /// user's.
    pub(super) fn file(self, workspace: Option<&Path>) -> PathBuf {
        match (self, workspace) {
            (Self::ClaudeCode, Some(workspace)) => workspace.join(".mcp.json"),
            (Self::Cursor, Some(workspace)) => workspace.join(".cursor/mcp.json"),
            (Self::VsCode, Some(workspace)) => workspace.join(".vscode/mcp.json"),
            _ => self.user_file(),
        }
    }

    /// The user's own file, which counts in every workspace.
    pub(super) fn user_file(self) -> PathBuf {
        let places = Places::from_environment(std::env::vars_os());
        let home = places.home.unwrap_or_else(|| PathBuf::from("~"));
        let xdg_config = places.config_dir.as_deref().and_then(Path::parent);
        let config = match std::env::consts::OS {
            "macos" => home.join("Library/Application Support"),
            "windows" => PathBuf::from("%APPDATA%"),
            _ => xdg_config.map_or_else(|| home.join(".config"), Path::to_owned),
        };
        match self {
            Self::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => home.join(".claude.json"),
            Self::Codex => {
                let own = std::env::var_os("CODEX_HOME").filter(|home| !home.is_empty());
                own.map_or_else(|| home.join(".codex"), PathBuf::from).join("config.toml")
            }
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::VsCode => config.join("Code/User/mcp.json"),
            Self::Zed => match std::env::consts::OS {
                "macos" => home.join(".config/zed/settings.json"),
                "windows" => config.join("Zed/settings.json"),
                _ => config.join("zed/settings.json"),
            },
        }
    }
}
