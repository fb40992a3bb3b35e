//! `kitbag mcp-config`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kitbag::Places;
use kitbag::config::Origin;
use kitbag::contract::text::{printable, shown};
use serde_json::{Value, json};

use crate::commands::{Global, Limits};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  kitbag mcp-config vscode > .vscode/mcp.json")]
pub(crate) struct Args {
    /// The client
    #[arg(value_enum)]
    client: Client,
}

/// A program that starts servers of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Zed
    Zed,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(Limits::default())?;
        let root = &kitbag.toolbox().config().root;
        // Without a workspace the root is only where one was looked for.
        let workspace = (root.origin != Origin::Default).then_some(&*root.value);
        let program = std::env::current_exe().map_err(CliError::Program)?;
        let mut arguments = vec!["serve".to_owned()];
        if let Some(workspace) = workspace {
            arguments.extend(["--workspace".to_owned(), text(workspace)?.to_owned()]);
        }
        let command = text(&program)?;
        let value = self.client.configuration(command, &arguments);
        match global.json {
            true => output::json(&value)?,
            false => output::json_lines(&value)?,
        }
        let mut note = format!("this goes into {}", self.client.file(workspace));
        if self.client == Client::ClaudeCode {
            let words = std::iter::once(command).chain(arguments.iter().map(String::as_str));
            let words: Vec<_> = words.map(quoted).collect();
            note.push_str(", or: claude mcp add --transport stdio kitbag -- ");
            note.push_str(&words.join(" "));
        }
        output::note(&printable(&note).to_string());
        if workspace.is_none() {
            output::note(
                "there is no workspace here: the server will look for one where the client starts \
                 it; `--workspace` names one",
            );
        }
        Ok(Exit::Done)
    }
}

impl Client {
    /// What its configuration has to hold.
    fn configuration(self, command: &str, arguments: &[String]) -> Value {
        let plain = json!({ "command": command, "args": arguments });
        let typed = json!({ "type": "stdio", "command": command, "args": arguments });
        match self {
            Self::ClaudeDesktop | Self::Cursor => json!({ "mcpServers": { "kitbag": plain } }),
            Self::ClaudeCode => json!({ "mcpServers": { "kitbag": typed } }),
            Self::VsCode => json!({ "servers": { "kitbag": typed } }),
            Self::Zed => json!({ "context_servers": {
                "kitbag": { "command": command, "args": arguments, "env": {} },
            } }),
        }
    }

    /// The file that this goes into: the workspace's own where the client reads
    /// one there.
    fn file(self, workspace: Option<&Path>) -> String {
        let places = Places::from_environment(std::env::vars_os());
        let home = places.home.unwrap_or_else(|| PathBuf::from("~"));
        let xdg_config = places.config_dir.as_deref().and_then(Path::parent);
        let config = match std::env::consts::OS {
            "macos" => home.join("Library/Application Support"),
            "windows" => PathBuf::from("%APPDATA%"),
            _ => xdg_config.map_or_else(|| home.join(".config"), Path::to_owned),
        };
        let path = match (self, workspace) {
            (Self::ClaudeDesktop, _) => config.join("Claude/claude_desktop_config.json"),
            (Self::ClaudeCode, Some(workspace)) => workspace.join(".mcp.json"),
            (Self::ClaudeCode, None) => return "`.mcp.json` of a project".into(),
            (Self::Cursor, Some(workspace)) => workspace.join(".cursor/mcp.json"),
            (Self::Cursor, None) => home.join(".cursor/mcp.json"),
            (Self::VsCode, Some(workspace)) => workspace.join(".vscode/mcp.json"),
            (Self::VsCode, None) => config.join("Code/User/mcp.json"),
            (Self::Zed, _) => match std::env::consts::OS {
                "macos" => home.join(".config/zed/settings.json"),
                "windows" => config.join("Zed/settings.json"),
                _ => config.join("zed/settings.json"),
            },
        };
        format!("`{}`", path.display())
    }
}

/// A path as JSON can hold it.
fn text(path: &Path) -> Result<&str, CliError> {
    path.to_str().ok_or_else(|| {
        let path = path.to_string_lossy();
        CliError::Usage(format!("`{}` is not UTF-8, as JSON has to be", shown(&path)))
    })
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&b);
    match word.bytes().all(is_plain) && !word.is_empty() {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_read_something_else() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("/usr/bin/kitbag", "/usr/bin/kitbag");
        check("--workspace", "--workspace");
        check("", "''");
        check("my notes", "'my notes'");
        check("it's $HOME", r"'it'\''s $HOME'");
        check("~/x", "'~/x'");
    }
}
