//! The servers of kitbag in the files of clients.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::Value;
use toml_edit::DocumentMut;

use super::client::{Client, FileFormat};
use super::merge::{as_json, starts_kitbag};

/// A file of a client that exists.
pub(crate) struct ClientFile {
    /// The name of the client, as `kitbag mcp-config` takes it.
    pub(crate) client: String,
    pub(crate) path: PathBuf,
    /// The programs of the servers that are kitbag. `None`: the file cannot be read.
    pub(crate) commands: Option<Vec<String>>,
}

/// Reads the files of all clients for this workspace and user. Goose is omitted: its file is YAML.
pub(crate) fn client_files(workspace: Option<&Path>) -> Vec<ClientFile> {
    let mut files = Vec::new();
    for client in Client::value_variants() {
        let Some(name) = client.to_possible_value() else { continue };
        let shared = workspace.and_then(|workspace| client.workspace_file(workspace));
        for path in [shared, client.user_file()].into_iter().flatten() {
            if client.format() == FileFormat::Yaml || !path.is_file() {
                continue;
            }
            let parsed = fs::read_to_string(&path).ok();
            let parsed = parsed.and_then(|text| parse(&text, client.format()));
            let commands = parsed.map(|file| commands(&file[client.table()]));
            files.push(ClientFile { client: name.get_name().to_owned(), path, commands });
        }
    }
    files
}

/// Parses the file of a client. Empty text is an empty configuration.
pub(crate) fn parse(text: &str, format: FileFormat) -> Option<Value> {
    match format {
        FileFormat::Json => {
            let text = text.trim_start_matches('\u{feff}');
            match text.trim() {
                "" => Some(Value::Null),
                text => CstRootNode::parse(text, &ParseOptions::default()).ok()?.to_serde_value(),
            }
        }
        FileFormat::Toml => Some(as_json(text.parse::<DocumentMut>().ok()?.as_item())),
        FileFormat::Yaml => None,
    }
}

fn commands(servers: &Value) -> Vec<String> {
    let servers = servers.as_object().into_iter().flat_map(|servers| servers.values());
    let ours = servers.filter(|server| starts_kitbag(server));
    let command = |server: &Value| {
        let command = &server["command"];
        command.as_str().or_else(|| command.get(0)?.as_str()).map(str::to_owned)
    };
    ours.filter_map(command).collect()
}
