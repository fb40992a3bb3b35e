//! The contents of a toolbox, and the lookup of its tools.

pub(crate) mod catalog;
pub mod definitions;
pub(crate) mod lock;
mod prefetch;
pub(crate) mod resolve;
pub(crate) mod tool;
mod toolbox;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, OnceLock};

use kitbag_base::text::nearest;
use kitbag_config::{Config, ConfiguredTool, ToolSource};
use kitbag_contract::ToolName;
use kitbag_fs_guard::{Guard, Owners};
#[cfg(feature = "storage")]
use kitbag_host::Storage;
use kitbag_host::{ComponentBytes, ComponentIdentity, EventSink, Host, RunContext};
use kitbag_policy::screening::Screen;
use kitbag_secrets::Secrets;
use kitbag_state::audit::Auditor;
use kitbag_state::rates::Counts;

use crate::approval::memory::Approvals;
use crate::audit;
use crate::builtins::Builtin;
use crate::builtins::component_skills::ComponentSkills;
use crate::error::{NearestTool, ToolboxError};
use crate::registry::tool::Tool;
use crate::remote::RemoteRunner;
use crate::sources::native::{Native, NativeTool};
use crate::sources::server::ServerPool;

/// The tools of one configuration, ready for calls.
///
/// Cheap to clone; clones share everything. Data of a tool is read only when the tool is requested
/// by name.
#[derive(Clone)]
pub struct Toolbox(pub(crate) Arc<ToolboxState>, pub(crate) EventSink);

pub(crate) struct ToolboxState {
    pub(crate) host: Host,
    pub(crate) config: Config,
    pub(crate) builtins: &'static [Builtin],
    pub(crate) program: ProgramTools,
    pub(crate) resolved: ResolvedTools,
    /// The guard of files that no tool may change, created at the first call that needs it.
    pub(crate) guard: OnceLock<Arc<Guard>>,
    pub(crate) owners: OnceLock<Arc<Owners>>,
    /// The skills in components, read when a topic is first requested.
    pub(crate) component_skills: OnceLock<ComponentSkills>,
    pub(crate) counts: Arc<Counts>,
    /// The log of calls. `None`: calls are not logged.
    pub(crate) auditor: Option<Arc<Auditor>>,
    /// The screen for answers, created when the first answer is screened.
    pub(crate) screen: OnceLock<Screen>,
    pub(crate) approvals: Arc<Approvals>,
    /// The digests of the grants that tools were called with, by tool.
    pub(crate) grant_digests: audit::GrantDigests,
    pub(crate) secrets: Arc<Secrets>,
    /// The storage of the workspace's tools. `None`: there is no state directory.
    #[cfg(feature = "storage")]
    pub(crate) storage: Option<Storage>,
    /// Paths of components without links. The host does not follow links.
    pub(crate) plain: Mutex<HashSet<OsString>>,
    /// The connections to servers.
    pub(crate) servers: ServerPool,
    /// Makes the calls of this toolbox elsewhere. `None`: calls are made here.
    pub(crate) remote: Option<Arc<dyn RemoteRunner>>,
}

/// The tools of the embedding program, by name.
#[derive(Clone, Default)]
pub(crate) struct ProgramTools {
    pub(crate) natives: BTreeMap<ToolName, Native>,
    /// The components that the program has as bytes.
    pub(crate) components: BTreeMap<ToolName, ComponentBytes>,
}

pub(crate) struct ReloadState {
    pub(crate) counts: Arc<Counts>,
    pub(crate) auditor: Option<Arc<Auditor>>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) servers: ServerPool,
    pub(crate) remote: Option<Arc<dyn RemoteRunner>>,
}

/// The resolved tools. They are the same for every call, until the component whose description was
/// read is replaced.
#[derive(Default)]
pub(crate) struct ResolvedTools(pub(crate) Mutex<HashMap<ToolName, ResolvedTool>>);

/// A resolved tool, and the component whose description was read for it.
pub(crate) struct ResolvedTool {
    pub(crate) asked: Option<ComponentIdentity>,
    pub(crate) tool: Arc<Tool>,
}

impl Toolbox {
    /// Creates a toolbox from the configuration and the tools in the binary.
    ///
    /// `config` was loaded with the names of `builtins`. `secrets` reads the values of the secrets
    /// in the configuration. `auditor` logs calls.
    pub fn new(
        host: Host,
        config: Config,
        builtins: &'static [Builtin],
        secrets: Arc<Secrets>,
        auditor: Option<Arc<Auditor>>,
    ) -> Self {
        let (program, events) = (ProgramTools::default(), EventSink::default());
        let counts = Arc::new(match &config.state {
            None => Counts::in_memory(),
            Some(state) => Counts::in_directory(&state.value, config.state_path()),
        });
        let approvals = Arc::new(Approvals::new(host.options().memory.state.clone()));
        let servers = Default::default();
        let kept = ReloadState { counts, auditor, approvals, servers, remote: None };
        Self::from_parts(host, config, builtins, program, kept, secrets, events)
    }

    pub(crate) fn from_parts(
        host: Host,
        config: Config,
        builtins: &'static [Builtin],
        program: ProgramTools,
        ReloadState { counts, auditor, approvals, servers, remote }: ReloadState,
        secrets: Arc<Secrets>,
        events: EventSink,
    ) -> Self {
        let (resolved, guard) = (ResolvedTools::default(), OnceLock::new());
        let plain = Mutex::default();
        let owners = OnceLock::new();
        // The storage is first read when a tool uses it.
        #[cfg(feature = "storage")]
        let storage =
            config.state.as_ref().map(|state| Storage::new(&state.value, config.state_path()));
        let state = ToolboxState {
            host,
            config,
            builtins,
            program,
            resolved,
            guard,
            owners,
            component_skills: OnceLock::new(),
            counts,
            auditor,
            screen: OnceLock::new(),
            approvals,
            grant_digests: audit::GrantDigests::default(),
            secrets,
            #[cfg(feature = "storage")]
            storage,
            plain,
            servers,
            remote,
        };
        Self(Arc::new(state), events)
    }

    /// Returns the same toolbox with a different receiver for the events of loading. Calls have
    /// their own receivers.
    #[must_use]
    pub fn with_events(&self, events: EventSink) -> Self {
        Self(Arc::clone(&self.0), events)
    }

    pub(crate) fn loading(&self) -> RunContext {
        RunContext { events: self.1.clone(), ..RunContext::default() }
    }

    /// Returns the configuration in effect.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Returns the log of calls. `None` if calls are not logged.
    pub fn auditor(&self) -> Option<&Auditor> {
        self.0.auditor.as_deref()
    }

    /// Returns the host that runs the calls.
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// Returns the storage of the workspace's tools, which keeps data between calls. `None` if
    /// there is no state directory.
    #[cfg(feature = "storage")]
    pub fn storage(&self) -> Option<&Storage> {
        self.0.storage.as_ref()
    }

    /// Returns true if an enabled tool has that name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.0.find(name).is_ok()
    }

    pub(crate) fn enabled(&self) -> impl Iterator<Item = (&ToolName, &ConfiguredTool)> {
        self.0.config.tools.iter().filter(|(_, tool)| tool.is_enabled())
    }
}

impl ToolboxState {
    /// Returns the code of a tool if the embedding program provides it.
    pub(crate) fn native(&self, tool: &Tool) -> Option<Arc<dyn NativeTool>> {
        match tool.source {
            ToolSource::Native => Some(self.program.natives.get(&tool.name)?.tool()),
            ToolSource::Builtin { .. }
            | ToolSource::Local(_)
            | ToolSource::Script(_)
            | ToolSource::Bytes(_)
            | ToolSource::Server(_) => None,
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

    pub(crate) fn component_skills(&self) -> &ComponentSkills {
        self.component_skills.get_or_init(|| ComponentSkills::read(self))
    }

    /// Returns the owners check: no other user may have written a component, or replaced a link
    /// that leads to a topic.
    pub(crate) fn owners(&self) -> &Arc<Owners> {
        self.owners.get_or_init(|| Arc::new(self.config.owners()))
    }

    /// Returns the guard of files that look like secrets, or that no tool may change under any
    /// grant.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        self.guard.get_or_init(|| Arc::new(self.config.guard()))
    }
}

impl ProgramTools {
    pub(crate) fn remove(&mut self, name: &ToolName) {
        self.natives.remove(name);
        self.components.remove(name);
    }
}
