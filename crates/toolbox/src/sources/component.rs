//! The component of a tool, and its location.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use kitbag_config::{BytesTool, ToolSource};
use kitbag_contract::Pin;
use kitbag_fs_guard::locate;
use kitbag_host::{CallError, ComponentFile, ComponentSource, LoadError};

use crate::error::ToolboxError;
use crate::registry::ToolboxState;

impl ToolboxState {
    pub(crate) fn component_source(
        &self,
        source: &ToolSource,
    ) -> Result<ComponentSource, ToolboxError> {
        match source {
            ToolSource::Builtin { name } => {
                Ok(ComponentSource::Embedded(self.builtin(&name.value)?.artifact))
            }
            ToolSource::Local(local) => {
                self.component_file(&local.wasm.value, &local.pins).map_err(|error| match error {
                    ToolboxError::Call(CallError::Load(LoadError::NotFound { path })) => {
                        ToolboxError::missing_component(path, local.wasm.origin.clone())
                    }
                    error => error,
                })
            }
            ToolSource::Script(_) => Ok(ComponentSource::Embedded(self.interpreter()?.artifact)),
            ToolSource::Bytes(BytesTool { component, .. }) => {
                let bytes = self.program.components.get(component).cloned();
                let missing = || CallError::Internal(format!("no source provides `{component}`"));
                Ok(ComponentSource::Bytes(bytes.ok_or_else(missing)?))
            }
            // The code of a native tool was found earlier, and a server is called instead.
            ToolSource::Native | ToolSource::Server(_) => {
                Err(CallError::Internal("the tool has no component".into()).into())
            }
        }
    }

    /// Returns the path of a component file. The path contains no links.
    fn component_file(
        &self,
        path: &Path,
        pins: &Arc<[Pin]>,
    ) -> Result<ComponentSource, ToolboxError> {
        let file = |path| {
            let (owners, pins) = (Some(Arc::clone(self.owners())), Arc::clone(pins));
            ComponentSource::File(ComponentFile { path, owners, pins })
        };
        let plain = || self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        if plain().contains(path.as_os_str()) {
            return Ok(file(path.to_owned()));
        }
        match locate(path) {
            Ok(located) if located.links.is_empty() && located.path == path => {
                plain().insert(located.path.clone().into());
                Ok(file(located.path))
            }
            Ok(located) => {
                if let Some(link) = self.guard().writable_link(&located.links) {
                    return Err(LoadError::Link { path: link.path.clone() }.into());
                }
                let checked = self.owners().check_located(&located);
                checked.map_err(|error| LoadError::from_owner(path, error))?;
                Ok(file(located.path))
            }
            Err(error) => Err(LoadError::from_open(path, error).into()),
        }
    }
}
