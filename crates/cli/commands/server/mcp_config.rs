//! `kitbag mcp-config`.

pub(crate) mod client;
pub(crate) mod configured;
pub(crate) mod merge;

use std::path::{Path, PathBuf};

use kitbag::base::shell;
use kitbag::base::text::{printable, shown};
use kitbag::config::Origin;
use serde_json::{Map, Value, json};

use self::client::{Client, Connection, FileFormat};
use self::merge::{Others, ServerEntry};
use crate::commands::{Global, LimitArgs};
use crate::console::output;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files::links::refuse_links;
use crate::files::replace::Original;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kitbag mcp-config vscode
  kitbag mcp-config claude-code --write
  kitbag mcp-config zed --write --name kitbag-notes --workspace ~/notes
  kitbag mcp-config cursor --http http://127.0.0.1:8620/mcp --write")]
pub(crate) struct Args {
    /// The client
    #[arg(value_enum)]
    client: Client,
    /// Add the server to the client's file, and keep a copy of the previous file
    #[arg(long)]
    write: bool,
    /// Write the user's file of the client, not the one of the workspace
    #[arg(long, requires = "write")]
    user: bool,
    /// Name the server, for instance to distinguish workspaces in a file that they share
    #[arg(long, default_value = "kitbag", value_parser = server_name)]
    name: String,
    /// Replace another server of the same name
    #[arg(long, requires = "write")]
    force: bool,
    /// Connect to a running server, started with `kitbag serve --http`
    #[arg(long, value_name = "URL", value_parser = url)]
    http: Option<String>,
    /// The environment variable from which the client reads the server's token
    #[arg(
        long,
        value_name = "NAME",
        requires = "http",
        default_value = "MCP_KITBAG_TOKEN",
        value_parser = variable
    )]
    token_variable: String,
}

impl Args {
    pub(crate) fn run(self, global: Global) -> Result<Exit, CliError> {
        let kitbag = global.kitbag(LimitArgs::default())?;
        let root = &kitbag.toolbox().config().root;
        // Without a workspace the root is only the directory where the search started.
        let workspace = (root.origin != Origin::Default).then_some(&*root.value);
        let shared = workspace
            .filter(|_| !self.user)
            .and_then(|workspace| self.client.workspace_file(workspace));
        let program = called_as()?;
        let mut own = vec!["serve".to_owned()];
        if let Some(workspace) = workspace {
            own.extend(["--workspace".to_owned(), text(workspace)?.to_owned()]);
        }
        // The file of a workspace is shared, so it must not have paths of this machine.
        let (command, arguments) = match &shared {
            Some(_) => {
                let arguments = self.client.portable_arguments().iter();
                ("kitbag", arguments.map(|it| (*it).to_owned()).collect())
            }
            None => (text(&program)?, own.clone()),
        };
        let connection = match &self.http {
            Some(url) => Connection::Http { url, token_variable: &self.token_variable },
            None => Connection::Program { command, arguments: &arguments },
        };
        let is_in_path = || {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join("kitbag").is_file())
        };
        if shared.is_some() && self.http.is_none() && !is_in_path() {
            output::note(
                "the entry for a workspace has the command `kitbag`, which is not in your PATH",
            );
        }
        let server = self.client.server(&connection).map_err(CliError::Usage)?;
        match self.write {
            true => self.write(server, shared, workspace, global.json)?,
            false => {
                let own = match &self.http {
                    Some(url) => Connection::Http { url, token_variable: &self.token_variable },
                    None => Connection::Program { command: text(&program)?, arguments: &own },
                };
                self.print(server, &own, shared, global.json)?;
            }
        }
        if self.http.is_some() {
            output::note(&self.client.token_note(&self.token_variable));
        } else if workspace.is_none() {
            output::note(
                "there is no workspace here: the server will look for one where the client starts \
                 it; `--workspace` names one",
            );
        }
        Ok(Exit::Done)
    }

    /// Prints the entry and the path of its file. `own` is the connection with paths of this
    /// machine, for the client's own command.
    fn print(
        &self,
        server: Map<String, Value>,
        own: &Connection<'_>,
        shared: Option<PathBuf>,
        as_json: bool,
    ) -> Result<(), CliError> {
        let (table, name) = (self.client.table(), &*self.name);
        match (as_json, self.client.format()) {
            // JSON is valid YAML.
            (true, _) => output::json(&json!({ table: { name: server } }))?,
            (false, FileFormat::Toml) => {
                let text = merge::toml(
                    "",
                    &ServerEntry { table: &[table], name, value: &server },
                    Others::Keep,
                );
                output::data(&text.map_err(|error| CliError::Usage(error.to_string()))?)?;
            }
            (false, FileFormat::Json | FileFormat::Yaml) => {
                output::json_lines(&json!({ table: { name: server } }))?;
            }
        }
        let Some(file) = shared.or_else(|| self.client.user_file()) else {
            output::note("add this to the configuration of the client");
            return Ok(());
        };
        let mut note = format!("add this to `{}`", file.display());
        note.push_str(match self.client.format() {
            FileFormat::Yaml => "; JSON is valid YAML there",
            FileFormat::Json | FileFormat::Toml => ", or let `--write` add it",
        });
        if self.client == Client::ClaudeCode {
            let words: Vec<_> = match own {
                Connection::Program { command, arguments } => {
                    let words = ["stdio", name, "--", command].into_iter();
                    words.chain(arguments.iter().map(String::as_str)).map(shell::quoted).collect()
                }
                Connection::Http { url, token_variable } => {
                    let header = format!("Authorization: Bearer ${{{token_variable}}}");
                    ["http", name, url, "--header", &header].map(shell::quoted).into()
                }
            };
            note.push_str(", or: claude mcp add --transport ");
            note.push_str(&words.join(" "));
        }
        output::note(&printable(&note).to_string());
        Ok(())
    }

    /// Writes the server into the client's file and prints the path.
    fn write(
        &self,
        server: Map<String, Value>,
        shared: Option<PathBuf>,
        workspace: Option<&Path>,
        as_json: bool,
    ) -> Result<(), CliError> {
        let is_shared = shared.is_some();
        let file = shared.or_else(|| self.client.user_file());
        let merge = match self.client.format() {
            FileFormat::Json => merge::json,
            FileFormat::Toml => merge::toml,
            FileFormat::Yaml => {
                return Err(CliError::Usage(
                    "the file of this client is YAML, which `--write` cannot change without losing \
                     its comments; omit `--write` to print the entry"
                        .into(),
                ));
            }
        };
        let Some(file) = file else {
            return Err(CliError::Usage(
                "the file of this client is unknown; omit `--write` to print the entry".into(),
            ));
        };
        let path = file.display().to_string();
        if let Some(workspace) = workspace.filter(|_| is_shared) {
            refuse_links(workspace, &file)?;
        }
        let original = Original::read(&file)
            .map_err(|source| CliError::Read { path: path.clone(), source })?;
        let untouched = |why: &dyn std::fmt::Display| {
            CliError::Usage(format!("`{}` is unchanged: {why}", shown(&path)))
        };
        let old = str::from_utf8(original.content()).map_err(|error| untouched(&error))?;
        let table = [self.client.table()];
        let entry = ServerEntry { table: &table, name: &self.name, value: &server };
        let others = match (self.force, is_shared) {
            (true, _) => Others::Replace,
            (false, false) => Others::KeepWorkspaces { own: workspace },
            (false, true) => Others::Keep,
        };
        let new = merge(old, &entry, others).map_err(|error| untouched(&error))?;
        let is_changed = new != old;
        let backup = match is_changed {
            true => original
                .replace_with_backup(new.as_bytes())
                .map_err(|source| CliError::Save { path: path.clone(), source })?,
            false => None,
        };
        if as_json {
            return output::json(&json!({ "file": path, "changed": is_changed, "backup": backup }));
        }
        output::data(&path)?;
        match (is_changed, backup) {
            (false, _) => output::note("it already has this entry"),
            (true, None) => {}
            (true, Some(backup)) => {
                output::note(&format!("the previous version is in `{}`", backup.display()));
            }
        }
        Ok(())
    }
}

/// Returns the path by which this program was called, without following links: the target may be
/// another version tomorrow.
pub(crate) fn called_as() -> Result<PathBuf, CliError> {
    let own = std::env::current_exe().map_err(CliError::Program)?;
    let is_own = |path: &PathBuf| {
        let same = path.canonicalize().ok().zip(own.canonicalize().ok());
        path.is_absolute() && same.is_some_and(|(path, own)| path == own)
    };
    let name = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let called = match name.components().count() {
        // Found by a shell in `PATH`.
        1 if !name.has_root() => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|directory| directory.join(&name)).find(is_own)
        }
        _ => std::path::absolute(&name).ok().filter(is_own),
    };
    Ok(called.unwrap_or(own))
}

pub(crate) fn text(path: &Path) -> Result<&str, CliError> {
    path.to_str().ok_or_else(|| {
        let path = path.to_string_lossy();
        CliError::Usage(format!("`{}` is not UTF-8, as JSON must be", shown(&path)))
    })
}

/// Parses the URL of a server. A URL without a path gets the path of `kitbag serve`.
fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '<' | '>' | '`');
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(is_plain) => {
            let has_path = rest.trim_end_matches('/').contains('/');
            let path = if has_path { "" } else { kitbag::mcp::HTTP_PATH };
            let text = if has_path { text } else { text.trim_end_matches('/') };
            Ok(format!("{text}{path}"))
        }
        _ => Err("write it as `http://127.0.0.1:8620/mcp`".into()),
    }
}

/// Parses the name of a server, which every client must accept.
pub(crate) fn server_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match (1..=64).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(name.to_owned()),
        false => Err("it takes 1 to 64 letters, digits, `_` and `-`".into()),
    }
}

fn variable(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_name && !name.is_empty() {
        true => Ok(name.to_owned()),
        false => Err("it takes letters, digits and `_`, and does not start with a digit".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_needs_a_host_and_gets_the_default_path() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(url(text).ok().as_deref(), expected, "{text}");
        };
        check("http://127.0.0.1:8620", Some("http://127.0.0.1:8620/mcp"));
        check("http://127.0.0.1:8620/", Some("http://127.0.0.1:8620/mcp"));
        check("https://example.org/tools/mcp", Some("https://example.org/tools/mcp"));
        check("127.0.0.1:8620", None);
        check("http://", None);
        check("http:///mcp", None);
        check("http://a b", None);
        check("file:///etc/passwd", None);
    }
}
