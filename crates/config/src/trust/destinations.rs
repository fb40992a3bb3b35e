//! The targets of the paths in a workspace's files: outside of the workspace, or elsewhere in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kitbag_base::ContentDigest;
use kitbag_base::text::shown;
use kitbag_contract::{Pin, ToolName};
use kitbag_fs_guard::{canonical, locate};
use kitbag_policy::server::{ServerAddress, ServerName};
use kitbag_policy::{Access, DirectoryGrant};
use kitbag_state::trust::TrustedPlace;

use crate::config::{Config, LocalTool, ToolSource};
use crate::layers::origin::Origin;
use crate::layers::path::is_led;
use crate::read::file::Layer;
use crate::trust::workspace::COMMAND;

pub(crate) const READ: &str = "read";

pub(crate) const READ_AND_WRITE: &str = "read and write";

const RUN: &str = "run";

impl Config {
    /// Returns the places that the files of the workspace name but that are not at their literal
    /// paths: places outside of it, and targets of links in it. They are topics, directories that
    /// tools are granted, and components outside; another component inside has another digest.
    pub fn named_places(&self) -> BTreeSet<TrustedPlace> {
        let root = canonical(&self.root.value);
        let mut places = BTreeSet::new();
        let mut name = |by: String, written: &Path, access: &str| {
            let is_missing = written.starts_with(DirectoryGrant::ROOTS);
            let path = if is_missing { written.to_owned() } else { canonical(written) };
            let is_led_inside = || match access {
                RUN => false,
                // The path of a grant is already canonical.
                _ if path == written => self.through_links.contains(&path),
                _ => locate(written).is_ok_and(|located| is_led(&located.links, &root)),
            };
            if !path.starts_with(&root) || is_led_inside() {
                let (path, access) = (path.to_string_lossy().into_owned(), access.to_owned());
                places.insert(TrustedPlace { by, path, access });
            }
        };
        for topic in
            self.topics.values().filter(|topic| self.is_of_workspace(&topic.subjects.origin))
        {
            name(by_topic(&topic.id), &topic.subjects.value, READ);
        }
        for server in self.servers.values().filter(|server| server.layer == Layer::Workspace) {
            let Some(address) = &server.address else { continue };
            let ServerAddress::Process(process) = &*address.value else { continue };
            let by = || by_server(&server.name);
            name(by(), &process.directory, RUN);
            let program = process.command.first().map(Path::new);
            if let Some(program) = program.filter(|program| program.is_absolute()) {
                name(by(), program, RUN);
            }
            if let Some(confine) = &process.confine {
                confine.read.iter().for_each(|path| name(by(), path, READ));
                confine.write.iter().for_each(|path| name(by(), path, READ_AND_WRITE));
            }
        }
        for tool in self.tools.values() {
            if self.is_of_workspace(tool.grants.origin_of(DirectoryGrant::KEY)) {
                let directories = tool.grants.value.directories.iter();
                for grant in directories.filter(|grant| !grant.is_temporary()) {
                    let access = match grant.access {
                        Access::ReadOnly => READ,
                        Access::ReadWrite => READ_AND_WRITE,
                    };
                    name(by_tool(&tool.name), &grant.host, access);
                }
            }
            if let ToolSource::Local(local) = &tool.source.value
                && self.is_of_workspace(&local.wasm.origin)
            {
                name(by_tool(&tool.name), &local.wasm.value, RUN);
            }
        }
        places
    }

    /// Returns the components that the workspace contains or names, by their names in a record of
    /// trust.
    pub fn workspace_components(&self) -> BTreeMap<String, PathBuf> {
        let mut components = BTreeMap::new();
        for path in self.content.iter().flat_map(|content| &content.components) {
            components.insert(path.clone(), self.root.value.join(path));
        }
        for tool in self.tools.values() {
            if let ToolSource::Local(local) = &tool.source.value
                && self.is_of_workspace(&local.wasm.origin)
            {
                components.insert(self.record_name(local), local.wasm.value.clone());
            }
        }
        components
    }

    /// Pins the components of the workspace to the digests in the record of trust, if there is a
    /// record.
    pub(crate) fn pin_components(&mut self) {
        /// A digest that no content has.
        const NONE: ContentDigest = ContentDigest([0; 32]);
        let Some(record) = self.workspace_trust.record().cloned() else { return };
        let mut tools = std::mem::take(&mut self.tools);
        for tool in tools.values_mut() {
            let ToolSource::Local(local) = &mut tool.source.value else { continue };
            if !self.is_of_workspace(&local.wasm.origin) {
                continue;
            }
            let digest = record.components.get(&self.record_name(local)).copied().flatten();
            local.add_pin(Pin {
                digest: digest.unwrap_or(NONE),
                recorded_in: "the trust record".into(),
                renewed_by: COMMAND.into(),
            });
        }
        self.tools = tools;
    }

    /// Returns the name of a component in a record of trust.
    fn record_name(&self, local: &LocalTool) -> String {
        let path = &local.wasm.value;
        let path = path.strip_prefix(&self.root.value).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }

    /// Returns whether a file of the workspace is the origin of a value.
    pub fn is_of_workspace(&self, origin: &Origin) -> bool {
        match origin {
            Origin::Found { .. } => true,
            Origin::File { path, .. } => {
                let file = self.files.iter().find(|file| file.shown() == path);
                file.is_some_and(|file| file.layer() != Layer::User)
            }
            _ => false,
        }
    }
}

/// Returns the name of a tool in a place.
pub(crate) fn by_tool(name: &ToolName) -> String {
    format!("tool `{name}`")
}

/// Returns the name of a server in a place.
pub(crate) fn by_server(name: &ServerName) -> String {
    format!("server `{name}`")
}

/// Returns the name of a topic in a place.
pub(crate) fn by_topic(id: &str) -> String {
    format!("topic `{}`", shown(id))
}
