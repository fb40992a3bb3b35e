//! A built-in tool as a local tool: its component, and the configuration that gives it the same
//! grants.

use std::fmt::Write as _;
use std::path::Path;

use kitbag_config::{ConfiguredTool, ToolSource};
use kitbag_contract::WORKSPACE_GUEST_PATH;
use kitbag_policy::Access;

use crate::builtins::Builtin;
use crate::error::ToolboxError;
use crate::registry::Toolbox;

/// The files that make a built-in tool a local tool.
#[derive(Clone, Debug)]
pub struct Ejected {
    /// The tool's own name in its component.
    pub name: &'static str,
    /// The content of the component file.
    pub component: Vec<u8>,
    /// The text of its manifest, `NAME.toml`: `replaces` and the grants.
    pub manifest: String,
}

impl Toolbox {
    /// Returns a built-in tool, by the name that it is called by, in the form of a local tool. The
    /// tool need not be enabled.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::UnknownTool`] if no built-in tool has that name.
    pub fn eject(&self, name: &str) -> Result<Ejected, ToolboxError> {
        let configured = self.0.config.tools.get(name);
        let own = match configured.map(|tool| &tool.source.value) {
            Some(ToolSource::Builtin { name }) => name.value.as_str(),
            _ => name,
        };
        let builtin = self.0.builtin(own)?;
        let configured = configured.filter(|tool| tool.is_enabled());
        Ok(Ejected {
            name: builtin.declaration.name,
            component: builtin.artifact.component(),
            manifest: manifest(builtin, configured, &self.0.config.root.value),
        })
    }
}

fn manifest(builtin: &Builtin, configured: Option<&ConfiguredTool>, root: &Path) -> String {
    let string = |text: &str| toml::Value::from(text).to_string();
    let entry = |host: &str, guest: &str, access: Access, more: &str| {
        let (host, guest) = (string(host), string(guest));
        format!("{{ host = {host}, guest = {guest}, mode = \"{access}\"{more} }}")
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let granted = configured.into_iter().flat_map(|tool| &tool.grants.value.directories);
    let mut grants: Vec<_> = granted
        .map(|grant| {
            let host = match grant.host.strip_prefix(&root) {
                Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
                Ok(inside) => inside,
                Err(_) => &grant.host,
            };
            let include = grant.include.iter().map(|glob| string(glob)).collect::<Vec<_>>();
            let mut more = match include.is_empty() {
                true => String::new(),
                false => format!(", include = [{}]", include.join(", ")),
            };
            if let Some(protected) = &grant.protected {
                let names: Vec<_> = protected.iter().map(|name| string(name)).collect();
                let _ = write!(more, ", protected = [{}]", names.join(", "));
            }
            entry(&host.to_string_lossy(), grant.guest.as_str(), grant.access, &more)
        })
        .collect();
    if configured.is_none() {
        let workspace = |access| entry(".", WORKSPACE_GUEST_PATH, access, "");
        grants.extend(builtin.declaration.workspace.map(workspace));
    }
    let mut text = format!("replaces = {}\n\n[grants]\n", string(builtin.declaration.name));
    for guest in builtin.declaration.given_by_call {
        let _ = writeln!(
            text,
            "# Each call of the built-in receives a directory automatically; a local tool needs a \
             grant:\n# filesystem = [{}]",
            entry("DIRECTORY", guest, Access::ReadOnly, "")
        );
    }
    let _ = writeln!(text, "filesystem = [{}]", grants.join(", "));
    text
}
