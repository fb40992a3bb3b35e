//! The files of a client, and the tables of servers in them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use kitbag::base::text::{alternatives, shown};
use kitbag::config::Layer;
use serde_json::Value;

use crate::commands::server::mcp_config::client::{Client, FileFormat};
use crate::commands::server::mcp_config::configured::parse;
use crate::commands::server::mcp_config::merge::{self, MergeError};
use crate::error::CliError;
use crate::files::replace::Original;

/// The clients whose servers can be imported.
const CLIENTS: [Client; 8] = [
    Client::ClaudeCode,
    Client::ClaudeDesktop,
    Client::Cline,
    Client::Codex,
    Client::Cursor,
    Client::Gemini,
    Client::VsCode,
    Client::Windsurf,
];

/// The table of Claude Code with the settings of each project, in the user's file.
const PROJECTS: &str = "projects";

/// Tables of servers in a file of an unknown client, and a client that writes such a table.
const TABLES: [(&[&str], Client); 4] = [
    (&["mcpServers"], Client::Generic),
    (&["servers"], Client::VsCode),
    (&["mcp", "servers"], Client::VsCode),
    (&["mcp_servers"], Client::Codex),
];

/// The origin of the servers: a client, or a file.
#[derive(Clone, Debug)]
pub(super) enum ImportSource {
    Client(Client),
    File(PathBuf),
}

/// A file with servers.
pub(super) struct ClientFile {
    pub(super) client: Client,
    pub(super) path: PathBuf,
    pub(super) original: Original,
    pub(super) tables: Vec<ServersTable>,
}

/// The servers in one table of a file.
pub(super) struct ServersTable {
    /// The keys that lead to the table.
    pub(super) keys: Vec<String>,
    /// The configuration to which the servers are moved.
    pub(super) layer: Layer,
    pub(super) servers: Vec<(String, Value)>,
    /// Names that several servers have.
    pub(super) repeated: Vec<String>,
    /// True if the table already has a server that is kitbag.
    pub(super) has_kitbag: bool,
    /// The table is in a file that a team may share.
    pub(super) is_shared: bool,
}

impl ImportSource {
    /// Parses an argument: the name of a client, otherwise the path of a file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(client) = Client::from_str(text, false)
            && CLIENTS.contains(&client)
        {
            return Ok(Self::Client(client));
        }
        let path = PathBuf::from(text);
        if text.contains(['/', '\\', '.']) || path.is_file() {
            return Ok(Self::File(path));
        }
        let names: Vec<_> = CLIENTS.into_iter().map(name_of).collect();
        Err(format!("write {}, or the path of a file", alternatives(&names)))
    }

    /// Returns the name under which an import is recorded.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Client(client) => name_of(*client),
            Self::File(path) => {
                let real = path.canonicalize().or_else(|_| std::path::absolute(path));
                real.unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned()
            }
        }
    }

    /// Reads the files. `workspace` is the root of the workspace. `is_user`: only the user's own
    /// files of a client, or a file for all workspaces.
    pub(super) fn files(
        &self,
        workspace: &Path,
        is_user: bool,
    ) -> Result<Vec<ClientFile>, CliError> {
        match self {
            Self::Client(client) => {
                let own = client.user_file().map(|path| (path, Layer::User));
                let shared = client.workspace_file(workspace).filter(|_| !is_user);
                let shared = shared.map(|path| (path, Layer::Workspace));
                let paths: Vec<_> = [own, shared].into_iter().flatten().collect();
                let existing: Vec<_> = paths.iter().filter(|(path, _)| path.is_file()).collect();
                if existing.is_empty() {
                    let paths: Vec<_> = paths.iter().map(|(path, _)| display(path)).collect();
                    return Err(CliError::Usage(format!(
                        "{} has no configuration here: there is no {}",
                        name_of(*client),
                        alternatives(&paths)
                    )));
                }
                let read = |(path, layer): &&(PathBuf, Layer)| {
                    let mut tables = vec![(vec![client.table().to_owned()], *layer)];
                    if *client == Client::ClaudeCode && *layer == Layer::User && !is_user {
                        let keys = [PROJECTS, "", client.table()].map(str::to_owned).to_vec();
                        tables.push((keys, Layer::Workspace));
                    }
                    ClientFile::read(*client, path, tables, workspace)
                };
                existing.iter().map(read).collect()
            }
            Self::File(path) => {
                let unreadable = |source| CliError::Read { path: display(path), source };
                path.metadata().map_err(unreadable)?;
                let path = std::path::absolute(path).map_err(unreadable)?;
                let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
                let is_inside = path.starts_with(workspace) || path.starts_with(root);
                let layer = if is_inside && !is_user { Layer::Workspace } else { Layer::User };
                let known = CLIENTS.into_iter().find(|client| {
                    client.workspace_file(workspace).as_ref() == Some(&path)
                        || client.user_file().as_ref() == Some(&path)
                });
                let tables = match known {
                    Some(client) => vec![(vec![client.table().to_owned()], layer)],
                    None => {
                        let keys = TABLES.iter().map(|(keys, _)| keys);
                        keys.map(|keys| (keys.iter().map(|key| (*key).to_owned()).collect(), layer))
                            .collect()
                    }
                };
                let is_toml = path.extension().is_some_and(|extension| extension == "toml");
                let client = match known {
                    Some(client) => client,
                    None if is_toml => Client::Codex,
                    None => Client::Generic,
                };
                let mut file = ClientFile::read(client, &path, tables, workspace)?;
                if file.tables.is_empty() {
                    let tables: Vec<_> = TABLES.iter().map(|(keys, _)| keys.join(".")).collect();
                    return Err(CliError::Usage(format!(
                        "`{}` has no table {}",
                        shown(&display(&path)),
                        alternatives(&tables)
                    )));
                }
                if known.is_none() {
                    let first = &file.tables[0].keys;
                    let of_table = TABLES.iter().find(|(keys, _)| keys.iter().eq(first.iter()));
                    file.client = of_table.map_or(file.client, |(_, client)| *client);
                }
                Ok(vec![file])
            }
        }
    }
}

impl ClientFile {
    fn read(
        client: Client,
        path: &Path,
        tables: Vec<(Vec<String>, Layer)>,
        workspace: &Path,
    ) -> Result<Self, CliError> {
        let unreadable = |source| CliError::Read { path: display(path), source };
        let original = Original::read(path).map_err(unreadable)?;
        let invalid = |why: &str| {
            CliError::Usage(format!("nothing was moved: `{}`: {why}", shown(&display(path))))
        };
        let text = str::from_utf8(original.content()).map_err(|_| invalid("it is not UTF-8"))?;
        let format = client.format();
        let whole = match format {
            FileFormat::Json => {
                // For the place of the mistake.
                merge::repeated_json(text, &[]).map_err(|error| invalid(&error.to_string()))?;
                parse(text, format)
            }
            FileFormat::Toml | FileFormat::Yaml => parse(text, format),
        };
        let whole = whole.ok_or_else(|| {
            let error = text.parse::<toml_edit::DocumentMut>().err();
            invalid(&error.map_or_else(|| "it has another form".into(), |error| error.to_string()))
        })?;
        let mut file = Self { client, path: path.to_owned(), original, tables: Vec::new() };
        for (mut keys, layer) in tables {
            if let [first, project, _] = &mut keys[..]
                && first == PROJECTS
            {
                let Some(own) = project_of(&whole[PROJECTS], workspace) else { continue };
                *project = own;
            }
            let found = keys.iter().try_fold(&whole, |value, key| value.get(key));
            let Some(found) = found.filter(|found| !found.is_null()) else { continue };
            let Some(servers) = found.as_object() else {
                return Err(invalid(&format!(
                    "its `{}` is not a table of servers",
                    keys.join(".")
                )));
            };
            let repeated = match format {
                FileFormat::Json => {
                    let words: Vec<_> = keys.iter().map(String::as_str).collect();
                    merge::repeated_json(file.text(), &words)
                        .map_err(|error: MergeError| invalid(&error.to_string()))?
                }
                FileFormat::Toml | FileFormat::Yaml => Vec::new(),
            };
            file.tables.push(ServersTable {
                is_shared: layer == Layer::Workspace && keys[0] != PROJECTS,
                layer,
                has_kitbag: servers.values().any(merge::starts_kitbag),
                servers: servers.iter().map(|(name, it)| (name.clone(), it.clone())).collect(),
                repeated,
                keys,
            });
        }
        Ok(file)
    }

    pub(super) fn text(&self) -> &str {
        str::from_utf8(self.original.content()).expect("checked when the file was read")
    }
}

/// Returns the key of a workspace among the projects in the file of Claude Code.
fn project_of(projects: &Value, workspace: &Path) -> Option<String> {
    let real = workspace.canonicalize().ok();
    let is_own = |path: &&String| {
        let path = Path::new(path.as_str());
        path == workspace || real.is_some() && path.canonicalize().ok() == real
    };
    projects.as_object()?.keys().find(is_own).cloned()
}

fn name_of(client: Client) -> String {
    let value = client.to_possible_value();
    value.map_or_else(|| "the client".to_owned(), |value| value.get_name().to_owned())
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
