//! The part of a workspace that other machines can use.

use std::collections::BTreeMap;
use std::path::Path;

use kitbag::Config;
use kitbag::base::text::{shown, shown_path};
use kitbag::config::Layer;
use kitbag::policy::DirectoryGrant;
use kitbag::trust::{TrustRecord, TrustedContent, digest_of};
use kitbag_cluster::snapshot::NewFile;

/// Returns the files to publish: exactly those that a person reviewed.
///
/// # Errors
///
/// One line for each file that other machines cannot have.
pub(super) fn files(
    root: &Path,
    record: &TrustRecord,
    content: &TrustedContent,
) -> Result<BTreeMap<String, NewFile>, Vec<String>> {
    let (mut files, mut problems) = (BTreeMap::new(), Vec::new());
    for (path, digest) in &record.files {
        match content.texts.get(digest).filter(|text| digest_of(text.as_bytes()) == *digest) {
            Some(text) => {
                files.insert(path.clone(), NewFile::Bytes(text.clone().into_bytes()));
            }
            None => problems.push(format!("`{}` is not UTF-8", shown(path))),
        }
    }
    for (path, digest) in &record.components {
        match digest {
            None => problems.push(format!("the component `{}` does not exist", shown(path))),
            Some(_) if Path::new(path).is_absolute() => problems.push(format!(
                "the component `{}` is outside the workspace: move it to `.kitbag/tools`",
                shown(path)
            )),
            Some(digest) => {
                files.insert(path.clone(), NewFile::File(root.join(path), *digest));
            }
        }
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

/// Returns one line for each setting of the workspace that names something of this machine.
pub(super) fn local_settings(config: &Config) -> Vec<String> {
    let mut lines = Vec::new();
    for tool in config.tools.values().filter(|tool| tool.is_enabled()) {
        if !config.is_of_workspace(tool.grants.origin_of(DirectoryGrant::KEY)) {
            continue;
        }
        for grant in tool.grants.value.directories.iter().filter(|grant| grant.is_here()) {
            lines.push(format!(
                "the tool `{}` is granted `{}`, a directory of this machine: grant a root, `host = \
                 \"$ROOT/NAME\"`, which workers have with `--root NAME=DIR`",
                tool.name,
                shown_path(&grant.host)
            ));
        }
    }
    for server in config.servers.values() {
        if server.layer == Layer::Workspace && server.disabled.is_none() {
            lines.push(format!(
                "the MCP server `{}` cannot be published: only tools in WebAssembly, scripts and \
                 built-in tools run on workers",
                server.name
            ));
        }
    }
    lines
}

/// Returns one line for each topic whose documents are not published.
pub(super) fn missing_documents(config: &Config) -> Vec<String> {
    let topics = config.topics.values();
    let of_workspace = topics.filter(|topic| config.is_of_workspace(&topic.subjects.origin));
    let line = |id: &str| format!("the documents of the topic `{}` are not published", shown(id));
    of_workspace.map(|topic| line(&topic.id)).collect()
}
