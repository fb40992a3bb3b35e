//! Reads the configuration, and builds the toolbox with the tools of the program.

use std::path::PathBuf;
use std::sync::Arc;

use kitbag_config::{
    AuditSync, BuiltinTool, Config, ConfigErrors, Network, Origin, Sourced, Sources,
};
use kitbag_contract::ToolName;
use kitbag_host::{ClientOptions, Concurrency, DiskCache, Host, HostOptions, ServerMemory};
use kitbag_secrets::Secrets;
use kitbag_state::audit::{AuditLog, AuditSize, Auditor, Syncing, Writing};
use kitbag_toolbox::{Toolbox, ToolboxError};

use crate::builder::{Builder, CachePlace};
use crate::kitbag::Kitbag;
use crate::places::Places;
#[cfg(feature = "servers")]
use crate::program_servers::AddServerError;
use crate::secret_sources::secret_sources;
#[cfg(feature = "servers")]
use crate::server_pool;
use crate::{builtins, proposal};

/// Why a [`Kitbag`] cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A tool that the program provides is invalid.
    #[error(transparent)]
    Tool(#[from] ToolboxError),
    /// The tools of a server of the program were not added.
    #[cfg(feature = "servers")]
    #[error(transparent)]
    Server(#[from] AddServerError),
}

impl Builder {
    /// Returns the path of the workspace with links resolved, without reading its files.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] if the given workspace does not exist.
    pub fn find_workspace(&self) -> Result<PathBuf, ConfigErrors> {
        kitbag_config::find_workspace(&self.sources(&[]))
    }

    /// Reads the configuration and builds the toolbox. A mistake in the workspace's files is not
    /// an error: it disables the tool, topic or table that contains it, and [`Config::broken`]
    /// lists it.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] lists all mistakes in the user config. [`BuildError::Tool`] describes a
    /// mistake in a tool of this program, and `BuildError::Server` a server that does not start.
    pub fn build(mut self) -> Result<Kitbag, BuildError> {
        self.find_cache();
        let config = kitbag_config::load_isolated(&self.sources(&declarations()))?;
        let (kitbag, errors) = self.with_tools(config);
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(kitbag),
        }
    }

    /// Like [`build`](Self::build), but returns all mistakes at once, in any file.
    pub fn build_faulty(mut self) -> (Option<Kitbag>, Vec<BuildError>) {
        self.find_cache();
        let (config, errors) = kitbag_config::load_lenient(&self.sources(&declarations()));
        let mut errors: Vec<_> = errors.map(BuildError::Config).into_iter().collect();
        let Some(config) = config else { return (None, errors) };
        let (kitbag, more) = self.with_tools(config);
        errors.extend(more);
        (Some(kitbag), errors)
    }

    fn find_cache(&mut self) {
        self.places.cache = match std::mem::take(&mut self.cache) {
            CachePlace::Usual => Places::from_environment(std::env::vars_os()).cache,
            CachePlace::Named(directory) => directory,
        };
    }

    /// Adds the tools of the program, and returns their errors.
    fn with_tools(mut self, mut config: Config) -> (Kitbag, Vec<BuildError>) {
        let mut errors = Vec::new();
        let tools = std::mem::take(&mut self.tools);
        let mut components = std::mem::take(&mut self.bytes_tools);
        if let Some((name, bytes)) = self.instead.take()
            && proposal::replace_component(&mut config, &name)
        {
            components.push((name.to_string(), bytes));
        }
        #[cfg(feature = "servers")]
        let servers = std::mem::take(&mut self.servers);
        let mut kitbag = self.with_config(config);
        for (name, bytes) in components {
            errors.extend(kitbag.add_component(&name, bytes).err().map(BuildError::Tool));
        }
        for tool in tools {
            match kitbag.toolbox.with_tool(tool) {
                Ok(toolbox) => kitbag.toolbox = toolbox,
                Err(error) => errors.push(error.into()),
            }
        }
        #[cfg(feature = "servers")]
        for (name, address) in servers {
            let added = Host::block_on(|| kitbag.add_server(name, address));
            let added = added.map_err(AddServerError::from).flatten();
            errors.extend(added.err().map(BuildError::Server));
        }
        (kitbag, errors)
    }

    fn sources<'a>(&'a self, builtins: &'a [BuiltinTool<'a>]) -> Sources<'a> {
        let start = self.start.clone().or_else(|| std::env::current_dir().ok());
        Sources {
            start: start.unwrap_or_else(|| PathBuf::from("/")),
            workspace: match &self.workspace {
                Some(root) => Some(Sourced { value: root.clone(), origin: Origin::Caller }),
                None => self.places.workspace.clone(),
            },
            user_file: self.places.user_file.clone(),
            usual_user_file: self.places.config_dir.as_ref().map(|dir| dir.join("config.toml")),
            state: self.places.state.clone(),
            state_path: self.state_path.clone(),
            roots: self.roots.clone(),
            trust: self.trust.clone(),
            proposal: self.proposal.clone(),
            home: self.places.home.clone(),
            environment: self.places.environment.clone(),
            variables: Some(&self.places.variables),
            call_grants: self.call_grants.clone(),
            flags: self.limits,
            builtins,
            component: self.component.clone(),
            script: self.script.clone(),
            // An invalid name is refused when the component is added.
            bytes_tools: self
                .bytes_tools
                .iter()
                .flat_map(|(name, _)| ToolName::new(name))
                .collect(),
            program: self.tool_configs.clone(),
            isolates_own: self.isolates_own,
            is_server: self.is_server,
            served_tools: self.served_tools.clone(),
            private: self.private.clone(),
            protected: self.places.own().into_iter().chain(self.protected.clone()).collect(),
        }
    }

    fn with_config(self, config: Config) -> Kitbag {
        let host = self.host.unwrap_or_else(|| {
            Host::new(HostOptions {
                cache: self.places.cache.clone().map(DiskCache::new),
                pool: !self.is_single_call,
                compiler: self.compiler,
                connections: connections(self.connections, &config.network),
                concurrency: match (self.concurrency, self.is_single_call) {
                    (Some(concurrency), _) => concurrency,
                    (None, true) => Concurrency::ONE,
                    (None, false) => Concurrency::default(),
                },
                memory: match (self.memory, self.is_server) {
                    (Some(memory), _) => ServerMemory::new(memory),
                    (None, true) => ServerMemory::new(config.server_memory.value),
                    (None, false) => ServerMemory::default(),
                },
            })
        });
        let allowed = config.allowed_leaks.value.iter().map(|it| it.leak.clone()).collect();
        let secrets = Secrets::new(secret_sources(&config), allowed);
        let auditor = auditor(&config, self.is_single_call);
        #[cfg(feature = "servers")]
        let servers = server_pool::servers(&self.places, &config, &host);
        let toolbox = Toolbox::new(host, config, &builtins::BUILTINS, secrets.into(), auditor);
        #[cfg(feature = "servers")]
        let toolbox = toolbox.with_servers(servers);
        Kitbag { toolbox, on_question: self.on_question, listener: self.listener }
    }
}

/// Returns the auditor that the user config defines. `None` without a state directory.
fn auditor(config: &Config, is_single_call: bool) -> Option<Arc<Auditor>> {
    /// Maximum number of log files for calls, approvals and trust. Details have half as many.
    const FILES: u64 = 8;
    let settings = &config.audit;
    let state = config.state.as_ref().filter(|_| settings.enable.value)?;
    let size = AuditSize { file: settings.size.value.as_u64() / (FILES + FILES / 2), files: FILES };
    let sync = match settings.sync.value {
        AuditSync::None => Syncing::None,
        AuditSync::Batch => Syncing::Batch,
        AuditSync::Each => Syncing::Each,
    };
    let writing = if is_single_call { Writing::Direct } else { Writing::Background };
    let log = AuditLog::new(&state.value, size);
    Some(Arc::new(Auditor::new(log, sync, writing)))
}

/// Combines the program's connection options with those of the user config.
fn connections(mut options: ClientOptions, network: &Network) -> ClientOptions {
    if options.proxies.is_empty() {
        let proxies = network.proxies.as_ref().map(|proxies| proxies.value.clone());
        options.proxies = proxies.unwrap_or_default();
    }
    for file in &network.roots {
        let added = options.roots.add_pem(&file.value.pem);
        added.expect("the configuration has checked the certificates");
    }
    options
}

/// Returns the declarations of the tools in this library, for the configuration.
fn declarations() -> Vec<BuiltinTool<'static>> {
    builtins::BUILTINS.iter().map(|builtin| builtin.declaration.clone()).collect()
}
