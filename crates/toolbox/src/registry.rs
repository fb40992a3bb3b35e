//! What a toolbox holds, and finding a tool, its component and its code in that.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kitbag_audit::Auditor;
use kitbag_config::{BuiltinTool, BytesTool, Config, Tool as ConfiguredTool, ToolSource};
use kitbag_contract::text::nearest;
use kitbag_contract::{Pin, ToolName};
use kitbag_files::{Guard, Owners, locate};
#[cfg(feature = "storage")]
use kitbag_host::Storage;
use kitbag_host::{CallError, ComponentFile, ComponentSource, EmbeddedArtifact, Host, LoadError};
use kitbag_policy::Access;
use kitbag_rates::Counts;
use kitbag_screening::Screen;
use kitbag_secrets::Secrets;

use crate::approval::Approvals;
use crate::error::{NearestTool, ToolboxError};
use crate::native::NativeTool;
use crate::program::ProgramTools;
use crate::tool::Tool;
use crate::{audit, resolve, script};

/// A tool that is part of the binary.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Its own name.
    pub name: &'static str,
    /// The group that `[toolsets]` switches it with: the name of its component.
    pub toolset: &'static str,
    /// Its component, which may have other tools, too.
    pub artifact: EmbeddedArtifact,
    /// What it says of itself, as the JSON of [`kitbag_contract::ToolDescription`].
    pub description: &'static str,
    /// What it asks of the workspace, which it gets where configuration says nothing and it
    /// is on.
    pub workspace: Option<Access>,
    /// Whether it keeps something between its calls, as much as storage has by default.
    pub keeps: bool,
    /// Guest paths of the directories that are given to each of its calls.
    pub given_by_call: &'static [&'static str],
    /// The kinds of grants that it cannot do without, each as a line of `grants` in TOML.
    pub required: &'static [&'static str],
    /// Whether it asks for the tools that its caller may call, which it gets where
    /// configuration says nothing.
    pub calls: bool,
}

impl Builtin {
    /// The tool as configuration has to know it.
    pub fn declaration(&self) -> BuiltinTool<'static> {
        let Self { name, toolset, workspace, keeps, given_by_call, required, calls, .. } = *self;
        BuiltinTool { name, toolset, workspace, keeps, given_by_call, required, calls }
    }
}

/// What a toolbox holds.
pub(crate) struct Inner {
    pub(crate) host: Host,
    pub(crate) config: Config,
    pub(crate) builtins: &'static [Builtin],
    pub(crate) program: ProgramTools,
    pub(crate) resolved: resolve::Resolved,
    /// What no tool changes, made at the first call that needs it.
    pub(crate) guard: OnceLock<Arc<Guard>>,
    pub(crate) owners: OnceLock<Arc<Owners>>,
    /// How often tools with a rate were called.
    pub(crate) counts: Arc<Counts>,
    /// What calls are logged by. `None`: they are not.
    pub(crate) auditor: Option<Arc<Auditor>>,
    /// What answers are looked through for, made at the first that is.
    pub(crate) screen: OnceLock<Screen>,
    /// What was approved in this process.
    pub(crate) approvals: Arc<Approvals>,
    /// The digests of the grants that tools were called with, by tool.
    pub(crate) grant_digests: audit::GrantDigests,
    /// Where the values of secrets come from.
    pub(crate) secrets: Arc<Secrets>,
    /// What the tools of the workspace keep. `None`: there is no state directory.
    #[cfg(feature = "storage")]
    pub(crate) storage: Option<Storage>,
    /// Paths of components on which no link was found. The host follows none.
    pub(crate) plain: Mutex<HashSet<PathBuf>>,
}

/// What goes on where a toolbox is made anew.
pub(crate) struct Kept {
    pub(crate) counts: Arc<Counts>,
    pub(crate) auditor: Option<Arc<Auditor>>,
    pub(crate) approvals: Arc<Approvals>,
}

impl Inner {
    /// The code of a tool, where the embedding program brought it.
    pub(crate) fn native(&self, tool: &Tool) -> Option<Arc<dyn NativeTool>> {
        match tool.source {
            ToolSource::Native => Some(self.program.natives.get(&tool.name)?.tool()),
            ToolSource::Builtin { .. }
            | ToolSource::Local(_)
            | ToolSource::Script(_)
            | ToolSource::Bytes(_) => None,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<&ConfiguredTool, ToolboxError> {
        match self.config.tools.get(name) {
            Some(tool) => match &tool.disabled {
                None => Ok(tool),
                Some(reason) => Err(ToolboxError::Disabled {
                    name: name.to_owned(),
                    reason: Box::new(reason.clone()),
                }),
            },
            None => {
                let all = self.config.tools.keys().map(ToolName::as_str);
                let nearest = nearest(name, all).map(|nearest| NearestTool {
                    name: nearest.to_owned(),
                    disabled: self.config.tools[nearest].disabled.clone().map(Box::new),
                });
                let enabled = self.config.tools.iter().filter(|(_, tool)| tool.is_enabled());
                let known = enabled.map(|(name, _)| name.to_string()).collect();
                Err(ToolboxError::UnknownTool { name: name.to_owned(), nearest, known })
            }
        }
    }

    pub(crate) fn builtin(&self, name: &str) -> Result<&'static Builtin, ToolboxError> {
        self.builtins
            .iter()
            .find(|builtin| builtin.name == name)
            .ok_or_else(|| ToolboxError::unknown_tool(name, self.builtins.iter().map(|b| b.name)))
    }

    /// Whether the component of a built-in has other tools, too.
    pub(crate) fn shares_component(&self, name: &str) -> bool {
        let own = self.builtins.iter().find(|builtin| builtin.name == name);
        own.is_some_and(|own| {
            let same = |other: &&Builtin| other.artifact == own.artifact;
            self.builtins.iter().filter(same).count() > 1
        })
    }

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
            ToolSource::Script(_) => {
                Ok(ComponentSource::Embedded(script::interpreter(self)?.artifact))
            }
            ToolSource::Bytes(BytesTool { component, .. }) => {
                let bytes = self.program.components.get(component).cloned();
                let missing = || CallError::Internal(format!("nothing brings `{component}`"));
                Ok(ComponentSource::Bytes(bytes.ok_or_else(missing)?))
            }
            // Its code is found before.
            ToolSource::Native => {
                Err(CallError::Internal("native code has no component".into()).into())
            }
        }
    }

    /// Where the component of a file lies, without links on the way.
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
        if plain().contains(path) {
            return Ok(file(path.to_owned()));
        }
        match locate(path) {
            Ok(located) if located.links.is_empty() && located.path == path => {
                plain().insert(located.path.clone());
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

    /// Where no other user may have written a component, or exchanged a link that leads to
    /// a topic.
    pub(crate) fn owners(&self) -> &Arc<Owners> {
        self.owners.get_or_init(|| Arc::new(self.config.owners()))
    }

    /// What none of the tools changes, whatever it is granted, and what looks like a secret.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        self.guard.get_or_init(|| Arc::new(self.config.guard()))
    }
}
