//! A toolbox for programs that give tools to a language model.
//!
//! A tool is a WebAssembly component in a sandbox that can reach only what was granted. Some tools
//! are part of this library, others are files named in a workspace's `.kitbag/config.toml`; both
//! are called the same way.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # std::fs::create_dir_all(directory.path().join(".kitbag"))?;
//! # std::fs::create_dir_all(directory.path().join("notes"))?;
//! # std::fs::write(directory.path().join("notes/rules.md"), "Be kind.\n")?;
//! # std::fs::write(
//! #     directory.path().join(".kitbag/config.toml"),
//! #     "[knowledge.team]\nsubjects = \"notes\"\n",
//! # )?;
//! # let workspace = directory.path();
//! use kitbag::{Kitbag, Outcome};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let kitbag = Kitbag::builder().workspace(workspace).build()?;
//! let arguments = json!({ "topic": "team", "subjects": "rules" });
//! let outcome = kitbag.call("learn", arguments).await?;
//! assert_eq!(outcome, Outcome::Success("Be kind.\n".into()));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! The library prints nothing. It reads only the environment variables that set the cache
//! directory, unless [`Builder::places`] provides more.

mod builtins;
mod places;
#[cfg(feature = "servers")]
mod program_servers;
mod proposal;
mod requests;
mod secret_sources;
#[cfg(feature = "servers")]
mod server_pool;
#[cfg(feature = "servers")]
mod sign_in_store;
mod tool_config;
mod trust_question;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_config::{
    AuditSync, BuiltinTool, CallGrants, ComponentTool, LimitFlags, Network, Origin, Proposal,
    ScriptFile, Sourced, Sources, TrustSource,
};
use kitbag_contract::ToolName;
use kitbag_host::{DiskCache, Host, HostOptions, ServerMemory};
use kitbag_secrets::Secrets;
use kitbag_state::audit::{AuditLog, AuditSize, Auditor, Syncing, Writing};

pub use kitbag_base as base;
pub use kitbag_config::{self as config, Config, ConfigErrors};
pub use kitbag_contract::{
    self as contract, Answer, AnswerError, AnswerType, Content, ErrorInfo, LogLevel, Outcome,
    Progress, Question,
};
pub use kitbag_host::{
    self as host, Cancellation, ClientOptions, Compiling, Completion, Concurrency, EventSink,
    Listener,
};
#[cfg(feature = "serve")]
pub use kitbag_mcp as mcp;
pub use kitbag_policy as policy;
pub use kitbag_secrets as secrets;
#[cfg(feature = "store")]
pub use kitbag_secrets::store as secret_store;
#[cfg(feature = "servers")]
pub use kitbag_servers as servers;
pub use kitbag_state::audit;
pub use kitbag_state::trust;
pub use kitbag_toolbox::{
    self as toolbox, Arguments, CallContext, CallOutcome, Caller, FrontEnd, Invocation, NativeCall,
    NativeTool, NoAnswers, Reply, Summary, Tool, Toolbox, ToolboxError,
};
pub use places::Places;
#[cfg(feature = "servers")]
pub use program_servers::AddServerError;
#[cfg(feature = "store")]
pub use secret_sources::open_store;
pub use secret_sources::{PASSPHRASE_VARIABLE, secret_sources};
#[cfg(feature = "servers")]
pub use sign_in_store::sign_in_store;
pub use tool_config::ToolConfig;
pub use trust_question::{TrustQuestion, TrustQuestionError};

/// Compiles the Rust code of the page on embedding.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct EmbeddingPage;

/// The tools of one workspace, ready to be called.
///
/// Cheap to create: no tool is read and no engine is started before the first call. Cheap to
/// clone: clones share everything. Several threads may call at once.
#[derive(Clone)]
pub struct Kitbag {
    toolbox: Toolbox,
    on_question: Option<OnQuestion>,
    listener: Option<Arc<dyn Listener>>,
}

/// Builds a [`Kitbag`].
#[derive(Default)]
pub struct Builder {
    start: Option<PathBuf>,
    workspace: Option<PathBuf>,
    places: Places,
    cache: CachePlace,
    protected: Vec<PathBuf>,
    private: Vec<PathBuf>,
    call_grants: Option<CallGrants>,
    proposal: Option<Proposal>,
    instead: Option<(ToolName, Arc<[u8]>)>,
    state_path: Option<PathBuf>,
    roots: BTreeMap<String, PathBuf>,
    trust: TrustSource,
    limits: LimitFlags,
    is_single_call: bool,
    is_server: bool,
    isolates_own: bool,
    served_tools: Option<Sourced<Vec<String>>>,
    memory: Option<ByteSize>,
    concurrency: Option<Concurrency>,
    compiler: Option<PathBuf>,
    connections: ClientOptions,
    host: Option<Host>,
    on_question: Option<OnQuestion>,
    listener: Option<Arc<dyn Listener>>,
    tools: Vec<Arc<dyn NativeTool>>,
    component: Option<ComponentTool>,
    script: Option<ScriptFile>,
    bytes_tools: Vec<(String, Arc<[u8]>)>,
    /// The settings of tools, as the text of a configuration file.
    tool_configs: Option<String>,
    #[cfg(feature = "servers")]
    servers: Vec<(policy::server::ServerName, policy::server::ServerAddress)>,
}

#[derive(Default)]
enum CachePlace {
    /// The cache directory of the program `kitbag`.
    #[default]
    Usual,
    Named(Option<PathBuf>),
}

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

type OnQuestion =
    Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send>> + Send + Sync>;

impl Kitbag {
    /// Creates a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the names of the tools in this library.
    pub fn builtin_names() -> Vec<&'static str> {
        builtins::BUILTINS.iter().map(|builtin| builtin.declaration.name).collect()
    }

    /// Returns the names of the toolsets in this library.
    pub fn toolset_names() -> Vec<&'static str> {
        let toolsets = builtins::BUILTINS.iter().map(|builtin| builtin.declaration.toolset);
        let mut toolsets: Vec<_> = toolsets.collect();
        toolsets.sort_unstable();
        toolsets.dedup();
        toolsets
    }

    /// Calls a tool and returns its outcome.
    ///
    /// `arguments` is a JSON object; defaults of the tool's schema are filled in. The configured
    /// answers are tried first for a question, then the callback of [`Builder::on_question`];
    /// without an answer, the question is the outcome.
    ///
    /// The call runs on its own thread, so any executor works, and the future may be sent to
    /// another thread. Dropping the future ends the call.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] for an unknown tool, invalid arguments, an exceeded limit or a trap. An
    /// error that the tool itself returns is an [`Outcome::Error`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Outcome, ToolboxError> {
        Ok(self.complete(tool, arguments).await?.result?)
    }

    /// Like [`call`](Self::call), but also returns the tool's emitted content, its output and its
    /// resource usage.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] if the call was not made. Any later failure is in the completion.
    pub async fn complete(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Completion, ToolboxError> {
        self.invoke(Invocation::tool(tool, arguments)).await
    }

    /// Like [`complete`](Self::complete), for an invocation, which may have its own grants and
    /// limits.
    ///
    /// # Errors
    ///
    /// See [`complete`](Self::complete).
    pub async fn invoke(&self, invocation: Invocation) -> Result<Completion, ToolboxError> {
        let events = self.listener.clone().map(EventSink::new).unwrap_or_default();
        let context = CallContext::default().with_events(events);
        let mut front_end = Callback(self.on_question.clone());
        let Ok(completion) =
            self.toolbox.call(invocation, context, &mut front_end).await?.completion();
        Ok(completion)
    }

    /// Adds a tool that is code of this program. Existing clones and running calls are unchanged;
    /// a server gets the new toolbox with
    #[cfg_attr(feature = "serve", doc = "[`mcp::Server::set_toolbox`].")]
    #[cfg_attr(not(feature = "serve"), doc = "its `set_toolbox`.")]
    ///
    /// # Errors
    ///
    /// See [`Toolbox::with_tool`].
    pub fn add_tool(&mut self, tool: impl NativeTool + 'static) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_tool(Arc::new(tool))?;
        Ok(())
    }

    /// Adds a tool whose component is given as bytes. [`add_tool`](Self::add_tool) adds a tool
    /// that is code.
    ///
    /// # Errors
    ///
    /// See [`Toolbox::with_component`].
    pub fn add_component(
        &mut self,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_component(name, bytes)?;
        Ok(())
    }

    /// Removes a tool that this program added, here or with the builder.
    ///
    /// # Errors
    ///
    /// See [`Toolbox::without_tool`].
    pub fn remove_tool(&mut self, name: &str) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.without_tool(name)?;
        Ok(())
    }

    /// Returns the toolbox, for listing the tools and for all other operations.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }
}

/// Passes questions to the callback of [`Builder::on_question`].
struct Callback(Option<OnQuestion>);

impl FrontEnd for Callback {
    type Abort = Infallible;

    async fn ask(
        &mut self,
        question: &Question,
        _: Option<&AnswerError>,
    ) -> Result<Reply, Infallible> {
        let answer = match &self.0 {
            Some(ask) => ask(question.clone()).await,
            None => None,
        };
        Ok(match answer {
            Some(value) => Reply::Answer(Sourced { value, origin: Origin::Caller }),
            None => Reply::NobodyToAsk,
        })
    }
}

impl Builder {
    /// Sets the workspace: the directory that contains `.kitbag/`. Default: the nearest such
    /// directory upwards from [`start`](Self::start).
    #[must_use]
    pub fn workspace(mut self, root: impl Into<PathBuf>) -> Self {
        self.workspace = Some(root.into());
        self
    }

    /// Sets the directory from which the workspace is searched upwards. Default: the current
    /// directory.
    #[must_use]
    pub fn start(mut self, directory: impl Into<PathBuf>) -> Self {
        self.start = Some(directory.into());
        self
    }

    /// Sets the user's directories and the environment variables that tools can be granted.
    /// Default: only the workspace's own files are used, there are no variables, and compiled
    /// tools are stored in the usual [`cache`](Self::cache).
    #[must_use]
    pub fn places(mut self, places: Places) -> Self {
        self.cache = CachePlace::Named(places.cache.clone());
        self.places = places;
        self
    }

    /// Sets whether the workspace is trusted, regardless of its content. Default: if
    /// [`places`](Self::places) has a state directory, as recorded there or as set in the user
    /// config; otherwise the workspace is not trusted, and only settings that restrict access and
    /// topics in the workspace take effect.
    #[must_use]
    pub fn trust_workspace(self, is_trusted: bool) -> Self {
        self.trust(TrustSource::Said(Sourced { value: is_trusted, origin: Origin::Caller }))
    }

    /// Stores the workspace's storage and rates under this path instead of the workspace's, so that
    /// another directory can continue them. The path must be absolute and need not exist.
    #[must_use]
    pub fn state_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_path = Some(path.into());
        self
    }

    /// Adds a root: a directory that grants name as `$ROOT/NAME`. The path must be absolute.
    #[must_use]
    pub fn root(mut self, name: impl Into<String>, directory: impl Into<PathBuf>) -> Self {
        self.roots.insert(name.into(), directory.into());
        self
    }

    /// Sets how trust in the workspace is determined. [`trust_workspace`](Self::trust_workspace)
    /// sets a fixed value.
    #[must_use]
    pub fn trust(mut self, trust: TrustSource) -> Self {
        self.trust = trust;
        self
    }

    /// Reads the files of an untrusted workspace to show its requests to a person, with
    /// [`Kitbag::trust_question`]. Do not call tools in this mode.
    #[must_use]
    pub fn ask_trust(self) -> Self {
        self.trust(TrustSource::Asked)
    }

    /// Stores compiled tools in this private directory, which is created if missing. Default: the
    /// cache of the program `kitbag`, which is `KITBAG_CACHE_DIR`, `$XDG_CACHE_HOME/kitbag` or
    /// `~/.cache/kitbag`, and which is limited in size and age.
    #[must_use]
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = CachePlace::Named(Some(directory.into()));
        self
    }

    /// Disables the cache: each process compiles tools again, and nothing is written.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.cache = CachePlace::Named(None);
        self
    }

    /// Adds files and directories of the program that no tool may change, regardless of its
    /// grants, in addition to kitbag's own. Paths must be absolute and need not exist.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Adds files and directories with secrets of the program that no tool may read or change,
    /// regardless of its grants. Paths must be absolute and need not exist.
    #[must_use]
    pub fn private(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.private.extend(paths);
        self
    }

    /// Adds grants to the configured grants of one tool, each as `KIND=GRANT`, such as
    /// `http=https://api.github.com/**`, `storage=1MiB` or `tools=search=search_files`. A ceiling
    /// in the user config for the kind limits them.
    #[must_use]
    pub fn call_grants(mut self, grants: CallGrants) -> Self {
        self.call_grants = Some(grants);
        self
    }

    /// Sets limits of all tools, overriding the configuration. `compile` limits the compilation of
    /// a tool, by default to one minute: a development build takes many times as long as a
    /// release.
    #[must_use]
    pub fn limits(mut self, limits: LimitFlags) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of calls that run at once, and the number of calls that wait.
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Expects a single call, as on a command line: no memory is reserved for further calls, and a
    /// concurrent call waits, unless [`concurrency`](Self::concurrency) is set.
    #[must_use]
    pub fn single_call(mut self) -> Self {
        self.is_single_call = true;
        self
    }

    /// Limits the total memory of calls, components and messages to the configured
    /// `[serve] memory`, and offers only the tools in `[serve] tools`. Default: no limit, and every
    /// enabled tool.
    #[must_use]
    pub fn as_server(mut self) -> Self {
        self.is_server = true;
        self
    }

    /// Tolerates mistakes in the user config by using its safe parts: tools that a mistake may
    /// leave less restricted are disabled. [`Config::broken`] lists the omitted parts. Default: a
    /// mistake in the user config is an error, and only mistakes in a workspace are isolated.
    #[must_use]
    pub fn isolate_own(mut self) -> Self {
        self.isolates_own = true;
        self
    }

    /// Offers only the tools whose names match one of these names or globs, overriding
    /// `[serve] tools`; for a [`as_server`](Self::as_server).
    #[must_use]
    pub fn served_tools(mut self, patterns: Sourced<Vec<String>>) -> Self {
        self.served_tools = Some(patterns);
        self
    }

    /// Limits the total memory of calls, components and messages, overriding the configuration.
    /// The minimum is 384 MiB; smaller values are raised to it.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Sets the program that compiles tools, each in its own process: see
    /// [`HostOptions::compiler`]. Default: this process compiles them.
    #[must_use]
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(program.into());
        self
    }

    /// Sets the options for connections of tools: trusted roots, name resolution and proxies.
    /// `[network]` of the user config adds roots, and its proxies are used if none are set here.
    /// Default: the settings of the system, and no proxy.
    #[must_use]
    pub fn connections(mut self, options: ClientOptions) -> Self {
        self.connections = options;
        self
    }

    /// Uses an existing host, so that its loaded components stay loaded and both toolboxes share
    /// its places for calls. The builder's settings for these places, connections (including the
    /// configured `[network]`), the cache, [`memory`](Self::memory) and
    /// [`single_call`](Self::single_call) then have no effect.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// Sets the callback for questions of tools, and for kitbag's own questions before calls that
    /// need approval ([`Question::approval`]), with the answers `yes`, `always` or `no`. Show a
    /// person [`Question::shown`], which names the tool that asks. `None` leaves a question
    /// unanswered, and does not approve a call.
    #[must_use]
    pub fn on_question<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.on_question = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Sets the listener for all calls: it receives log messages, progress, and the time that a
    /// tool takes to compile. [`Toolbox::call`] accepts a listener for a single call.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Adds a tool that is code of this program. Configuration must not use its name.
    #[must_use]
    pub fn tool(mut self, tool: impl NativeTool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a tool whose component is this file, relative to [`start`](Self::start), without
    /// configuration. It replaces a tool of the same name, and has the default grants and limits
    /// of a configured tool: read access to the workspace. At most one such tool is supported.
    #[must_use]
    pub fn component_file(mut self, name: ToolName, wasm: impl Into<PathBuf>) -> Self {
        self.component = Some(ComponentTool { name, wasm: wasm.into() });
        self
    }

    /// Adds a tool that is this Python script, relative to [`start`](Self::start), without
    /// configuration. The script is read when the configuration is read. The tool has the default
    /// grants and limits of a script, and replaces a tool of the same name.
    #[must_use]
    pub fn script_file(mut self, name: ToolName, path: impl Into<PathBuf>) -> Self {
        self.script = Some(ScriptFile { name, path: path.into() });
        self
    }

    /// Adds a tool whose component is given as bytes. Like the component of a file, it is compiled
    /// at its first use and stored in the [`cache`](Self::cache).
    ///
    /// The tool has the grants and limits that are configured for its name, in a table without
    /// `source` and `wasm`. By default it may read the workspace, like a tool of a file. Add a
    /// component with several tools once for each tool, under the tool's own name.
    #[must_use]
    pub fn component(mut self, name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.bytes_tools.push((name.into(), bytes.into()));
        self
    }

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
