//! The clients: the form of a server in their configuration, and the path of the file.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kitbag::Places;
use serde_json::{Map, Value, json};

/// An MCP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cline, in Visual Studio Code
    Cline,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Goose
    Goose,
    /// Any other client that reads `mcpServers`
    Generic,
    /// opencode
    Opencode,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Json,
    Toml,
    /// Only printed, never written: no library preserves the comments of YAML.
    Yaml,
}

pub(crate) enum Connection<'a> {
    Program { command: &'a str, arguments: &'a [String] },
    Http { url: &'a str, token_variable: &'a str },
}

impl Client {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::ClaudeDesktop
            | Self::ClaudeCode
            | Self::Cline
            | Self::Cursor
            | Self::Gemini
            | Self::Generic
            | Self::Windsurf => "mcpServers",
            Self::Codex => "mcp_servers",
            Self::Goose => "extensions",
            Self::Opencode => "mcp",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
        }
    }

    pub(crate) fn format(self) -> FileFormat {
        match self {
            Self::Codex => FileFormat::Toml,
            Self::Goose => FileFormat::Yaml,
            _ => FileFormat::Json,
        }
    }

    /// Returns the arguments of the server in the shared file of a workspace, without paths of this
    /// machine. The client starts the server in the workspace, or names the workspace.
    pub(crate) fn portable_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Cursor | Self::VsCode => &["serve", "--workspace", "${workspaceFolder}"],
            _ => &["serve"],
        }
    }

    /// Returns the client's configuration of the server. The error explains why the client cannot
    /// express it.
    pub(crate) fn server(self, connection: &Connection<'_>) -> Result<Map<String, Value>, String> {
        let value = match *connection {
            Connection::Program { command, arguments } => match self {
                Self::ClaudeDesktop
                | Self::Cline
                | Self::Cursor
                | Self::Codex
                | Self::Gemini
                | Self::Generic
                | Self::Windsurf => json!({ "command": command, "args": arguments }),
                Self::Goose => json!({
                    "name": "kitbag",
                    "type": "stdio",
                    "enabled": true,
                    "cmd": command,
                    "args": arguments,
                }),
                Self::Opencode => {
                    let words = [command].into_iter().chain(arguments.iter().map(String::as_str));
                    json!({ "type": "local", "command": words.collect::<Vec<_>>(), "enabled": true })
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
                        return Err(
                            "Claude Desktop does not support HTTP servers in its file; omit \
                                    `--http`"
                                .into(),
                        );
                    }
                    Self::ClaudeCode => {
                        let headers = bearer(format!("${{{token_variable}}}"));
                        json!({ "type": "http", "url": url, "headers": headers })
                    }
                    Self::Cline => {
                        let headers = bearer(token_variable.to_owned());
                        json!({ "type": "streamableHttp", "url": url, "headers": headers })
                    }
                    Self::Codex => json!({ "url": url, "bearer_token_env_var": token_variable }),
                    Self::Cursor => {
                        let headers = bearer(format!("${{env:{token_variable}}}"));
                        json!({ "url": url, "headers": headers })
                    }
                    Self::Gemini => {
                        let headers = bearer(format!("${token_variable}"));
                        json!({ "httpUrl": url, "headers": headers })
                    }
                    Self::Generic => {
                        json!({ "url": url, "headers": bearer(token_variable.to_owned()) })
                    }
                    Self::Goose => json!({
                        "name": "kitbag",
                        "type": "streamable_http",
                        "enabled": true,
                        "uri": url,
                        "headers": bearer(token_variable.to_owned()),
                    }),
                    Self::Opencode => {
                        let headers = bearer(format!("{{env:{token_variable}}}"));
                        json!({ "type": "remote", "url": url, "headers": headers, "enabled": true })
                    }
                    Self::Windsurf => {
                        let headers = bearer(format!("${{env:{token_variable}}}"));
                        json!({ "serverUrl": url, "headers": headers })
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

    /// Returns the note on the token for a client that does not read environment variables.
    pub(crate) fn token_note(self, variable: &str) -> String {
        match self {
            Self::Cline | Self::Generic | Self::Goose | Self::Zed => {
                format!(
                    "variables are not expanded there: write the token in place of `{variable}`"
                )
            }
            _ => format!("set the variable `{variable}` to the token of the server"),
        }
    }

    /// Returns the file in a workspace, if the client reads one.
    pub(crate) fn workspace_file(self, workspace: &Path) -> Option<PathBuf> {
        let file = match self {
            Self::ClaudeCode => ".mcp.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => "opencode.json",
            Self::VsCode => ".vscode/mcp.json",
            _ => return None,
        };
        Some(workspace.join(file))
    }

    /// Returns the user's own file, which applies to every workspace. `None` if its path is not
    /// known.
    pub(crate) fn user_file(self) -> Option<PathBuf> {
        let places = Places::from_environment(std::env::vars_os());
        let home = places.home.unwrap_or_else(|| PathBuf::from("~"));
        let xdg_config = places.config_dir.as_deref().and_then(Path::parent);
        let config = match std::env::consts::OS {
            "macos" => home.join("Library/Application Support"),
            "windows" => PathBuf::from("%APPDATA%"),
            _ => xdg_config.map_or_else(|| home.join(".config"), Path::to_owned),
        };
        Some(match self {
            Self::Generic => return None,
            Self::ClaudeDesktop => config.join("Claude/claude_desktop_config.json"),
            Self::Cline => config.join(
                "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            Self::Gemini => home.join(".gemini/settings.json"),
            Self::Goose => home.join(".config/goose/config.yaml"),
            Self::Opencode => home.join(".config/opencode/opencode.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
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
        })
    }
}
