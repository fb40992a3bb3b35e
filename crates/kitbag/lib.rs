//! One toolbox for a program that gives tools to a language model.
//!
//! A tool is a WebAssembly component in a sandbox that holds only what was
//! granted to it. Some tools are part of this library, others are files that a
//! workspace's `.kitbag/config.toml` names; both are called the same way.
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
//! The library prints nothing. Of the environment it reads only the variables that say
//! where compiled tools are kept, unless [`Builder::places`] gives it more.

mod builtins;
mod places;
mod proposal;
mod requests;
mod secret_sources;
mod trust_question;

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
pub use kitbag_state::audit;
pub use kitbag_state::trust;
pub use kitbag_toolbox::{
    self as toolbox, Arguments, CallContext, CallOutcome, Caller, FrontEnd, Invocation, NativeCall,
    NativeTool, NoAnswers, Reply, Summary, Tool, Toolbox, ToolboxError,
};
pub use places::Places;
#[cfg(feature = "store")]
pub use secret_sources::open_store;
pub use secret_sources::{PASSPHRASE_VARIABLE, secret_sources};
pub use trust_question::{TrustQuestion, TrustQuestionError};

/// The Rust code of the page on embedding, which has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct EmbeddingPage;

/// The tools of one workspace, ready to be called.
///
/// Cheap to make: nothing of a tool is read and no engine is started before
/// the first call. Cheap to clone: clones share everything. Calls may come from
/// several threads at once.
#[derive(Clone)]
pub struct Kitbag {
    toolbox: Toolbox,
    on_question: Option<OnQuestion>,
    listener: Option<Arc<dyn Listener>>,
}

/// Says how a [`Kitbag`] is put together.
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
}

#[derive(Default)]
enum CachePlace {
    /// Where the program `kitbag` keeps them.
    #[default]
    Usual,
    Named(Option<PathBuf>),
}

/// A [`Kitbag`] that cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A tool that the program brings is.
    #[error(transparent)]
    Tool(#[from] ToolboxError),
}

type OnQuestion =
    Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send>> + Send + Sync>;

impl Kitbag {
    /// Starts to put one together.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The names of the tools inside this library.
    pub fn builtin_names() -> Vec<&'static str> {
        builtins::BUILTINS.iter().map(|builtin| builtin.declaration.name).collect()
    }

    /// Calls a tool and returns what it answered.
    ///
    /// `arguments` is a JSON object; defaults of the tool's schema are filled
    /// in. A question goes to the configured answers, then to the callback of
    /// [`Builder::on_question`]; without an answer it is the outcome.
    ///
    /// The call runs on a thread of its own, so any executor will do, and the
    /// future may be sent to another thread. Dropping it ends the call.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] for an unknown tool, arguments that do not fit, a limit
    /// that ran out, a trap. What the tool itself reports as an error is an
    /// [`Outcome::Error`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Outcome, ToolboxError> {
        Ok(self.complete(tool, arguments).await?.result?)
    }

    /// As [`call`](Self::call), and tells what the tool gave besides its text,
    /// what it printed, and what the call took.
    ///
    /// # Errors
    ///
    /// [`ToolboxError`] where the call was not made. How it ended otherwise is
    /// in the completion.
    pub async fn complete(
        &self,
        tool: &str,
        arguments: impl Into<Arguments>,
    ) -> Result<Completion, ToolboxError> {
        self.invoke(Invocation::tool(tool, arguments)).await
    }

    /// As [`complete`](Self::complete), for an invocation, which may have grants and
    /// limits of its own.
    ///
    /// # Errors
    ///
    /// As for [`complete`](Self::complete).
    pub async fn invoke(&self, invocation: Invocation) -> Result<Completion, ToolboxError> {
        let events = self.listener.clone().map(EventSink::new).unwrap_or_default();
        let context = CallContext::default().with_events(events);
        let mut front_end = Callback(self.on_question.clone());
        let Ok(completion) =
            self.toolbox.call(invocation, context, &mut front_end).await?.completion();
        Ok(completion)
    }

    /// Adds a tool that is code of this program. Clones that were made before, and calls
    /// that run, keep what they had; a server gets the new toolbox with
    #[cfg_attr(feature = "serve", doc = "[`mcp::Server::set_toolbox`].")]
    #[cfg_attr(not(feature = "serve"), doc = "its `set_toolbox`.")]
    ///
    /// # Errors
    ///
    /// As for [`Toolbox::with_tool`].
    pub fn add_tool(&mut self, tool: impl NativeTool + 'static) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_tool(Arc::new(tool))?;
        Ok(())
    }

    /// Adds a tool whose component this program has as bytes, as
    /// [`add_tool`](Self::add_tool) adds one that is code.
    ///
    /// # Errors
    ///
    /// As for [`Toolbox::with_component`].
    pub fn add_component(
        &mut self,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.with_component(name, bytes)?;
        Ok(())
    }

    /// Takes a tool away that this program added, here or with the builder.
    ///
    /// # Errors
    ///
    /// As for [`Toolbox::without_tool`].
    pub fn remove_tool(&mut self, name: &str) -> Result<(), ToolboxError> {
        self.toolbox = self.toolbox.without_tool(name)?;
        Ok(())
    }

    /// The tools, and everything else that can be asked of them.
    pub fn toolbox(&self) -> &Toolbox {
        &self.toolbox
    }
}

/// Puts questions to the callback of [`Builder::on_question`].
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
    /// The workspace: the directory that holds `.kitbag/`. Default: the nearest
    /// one upwards from [`start`](Self::start).
    #[must_use]
    pub fn workspace(mut self, root: impl Into<PathBuf>) -> Self {
        self.workspace = Some(root.into());
        self
    }

    /// Where the workspace is looked for upwards. Default: the current
    /// directory.
    #[must_use]
    pub fn start(mut self, directory: impl Into<PathBuf>) -> Self {
        self.start = Some(directory.into());
        self
    }

    /// Where the user keeps configuration and compiled tools, and the variables of the
    /// environment that tools can be granted. Default: only the workspace's own files count,
    /// there are no variables, and compiled tools are kept in the usual
    /// [`cache`](Self::cache).
    #[must_use]
    pub fn places(mut self, places: Places) -> Self {
        self.cache = CachePlace::Named(places.cache.clone());
        self.places = places;
        self
    }

    /// Whether the files of the workspace count, whatever is in them. Default: where
    /// [`places`](Self::places) has a state directory as a person has trusted them there, or as
    /// the user's own file says; elsewhere they do not, but for what narrows and for topics that
    /// lie in the workspace.
    #[must_use]
    pub fn trust_workspace(self, is_trusted: bool) -> Self {
        self.trust(TrustSource::Said(Sourced { value: is_trusted, origin: Origin::Caller }))
    }

    /// How it is known whether the files of the workspace count, as
    /// [`trust_workspace`](Self::trust_workspace) says for one program.
    #[must_use]
    pub fn trust(mut self, trust: TrustSource) -> Self {
        self.trust = trust;
        self
    }

    /// Reads the files of the workspace to show a person what they ask, with
    /// [`Kitbag::trust_question`]. Nothing is to be called then.
    #[must_use]
    pub fn ask_trust(self) -> Self {
        self.trust(TrustSource::Asked)
    }

    /// Keeps compiled tools in this private directory, which is made where it is missing.
    /// Default: where the program `kitbag` keeps them, `KITBAG_CACHE_DIR` or
    /// `$XDG_CACHE_HOME/kitbag` or `~/.cache/kitbag`, which is bounded in size and age.
    #[must_use]
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = CachePlace::Named(Some(directory.into()));
        self
    }

    /// Keeps compiled tools nowhere: each process compiles them anew, and nothing is
    /// written.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.cache = CachePlace::Named(None);
        self
    }

    /// Files and directories of the program's own that no tool changes, whatever it is
    /// granted, beside those of kitbag: absolute paths, which need not exist.
    #[must_use]
    pub fn protect(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.protected.extend(paths);
        self
    }

    /// Files and directories of the program's own secrets that no tool reads or changes,
    /// whatever it is granted: absolute paths, which need not exist.
    #[must_use]
    pub fn private(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.private.extend(paths);
        self
    }

    /// What one tool is granted besides what is configured, each as `KIND=GRANT`, such as
    /// `http=https://api.github.com/**`, `storage=1MiB` or `tools=search=search_files`. Where the
    /// user's own file has a ceiling of the kind it lies within that.
    #[must_use]
    pub fn call_grants(mut self, grants: CallGrants) -> Self {
        self.call_grants = Some(grants);
        self
    }

    /// Limits that hold for every tool, whatever is configured. That of `compile` is how
    /// long a tool may take to compile, one minute by default: in a development build it
    /// takes many times as long as in a release.
    #[must_use]
    pub fn limits(mut self, limits: LimitFlags) -> Self {
        self.limits = limits;
        self
    }

    /// How many calls run at once, and how many wait for one to end.
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Expects one call and no more, as on a command line: memory is not set
    /// aside for many, and one that comes meanwhile waits, unless
    /// [`concurrency`](Self::concurrency) says otherwise.
    #[must_use]
    pub fn single_call(mut self) -> Self {
        self.is_single_call = true;
        self
    }

    /// Bounds what calls, components and messages may take together, as
    /// `[serve] memory` of the configuration says, and offers the tools that
    /// `[serve] tools` says. Default: no bound, and every tool that is on.
    #[must_use]
    pub fn server(mut self) -> Self {
        self.is_server = true;
        self
    }

    /// Goes on where the user's own file has mistakes, with the parts that are safe: tools that a
    /// mistake may leave less restricted are off. [`Config::broken`] names what is left out.
    /// Default: such a mistake is an error, and only those in a workspace are isolated.
    #[must_use]
    pub fn isolate_own(mut self) -> Self {
        self.isolates_own = true;
        self
    }

    /// Offers the tools whose names fit one of these names or globs, and no others,
    /// whatever `[serve] tools` says; for a [`server`](Self::server).
    #[must_use]
    pub fn served_tools(mut self, patterns: Sourced<Vec<String>>) -> Self {
        self.served_tools = Some(patterns);
        self
    }

    /// Bounds what calls, components and messages may take together, whatever is
    /// configured. Less than 384 MiB counts as that.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The program that compiles tools, each in a process of its own: see
    /// [`HostOptions::compiler`]. Default: this process compiles them.
    #[must_use]
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(program.into());
        self
    }

    /// How connections for tools are made: whom they trust, who resolves names, and through
    /// which proxies. `[network]` of the user config adds roots to these, and its proxies are
    /// used if there are none here. Default: the settings of the system, and no proxy.
    #[must_use]
    pub fn connections(mut self, options: ClientOptions) -> Self {
        self.connections = options;
        self
    }

    /// Uses the host of another one, so that what it has loaded stays loaded and
    /// both share its places for calls. What this builder says of those, of connections (with
    /// `[network]` of its configuration), of the cache, of [`memory`](Self::memory) and of
    /// [`single_call`](Self::single_call) does not count then.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// Who answers a tool's questions, and kitbag's own before calls that need approval
    /// ([`Question::approval`]): `yes`, `always` or `no`. A person is shown [`Question::shown`],
    /// which names the tool that asks. `None` leaves a question unanswered,
    /// and does not approve a call.
    #[must_use]
    pub fn on_question<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.on_question = Some(Arc::new(move |question| Box::pin(ask(question))));
        self
    }

    /// Who hears what tools tell while they run: log messages and progress, of
    /// every call alike; and how long one takes that has to be compiled first.
    /// [`Toolbox::call`] takes one for a single call.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Adds a tool that is code of this program. No configuration may have its name.
    #[must_use]
    pub fn tool(mut self, tool: impl NativeTool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a tool whose component is this file, relative to [`start`](Self::start), which
    /// no configuration names. It takes the place of a tool of the same name, and has the
    /// grants and limits of one of which configuration says nothing else: the workspace to
    /// read. There is one at most.
    #[must_use]
    pub fn component_file(mut self, name: ToolName, wasm: impl Into<PathBuf>) -> Self {
        self.component = Some(ComponentTool { name, wasm: wasm.into() });
        self
    }

    /// Adds a tool that is this script of Python, relative to [`start`](Self::start), which no
    /// configuration names: it is read with the configuration, and has the grants and limits
    /// of a script of which configuration says nothing. A tool of the same name gives way.
    #[must_use]
    pub fn script_file(mut self, name: ToolName, path: impl Into<PathBuf>) -> Self {
        self.script = Some(ScriptFile { name, path: path.into() });
        self
    }

    /// Adds a tool whose component this program has as bytes. It is compiled at its first
    /// use, as one of a file is, and kept in the [`cache`](Self::cache).
    ///
    /// It has the grants and limits that configuration gives a tool of that name, in a
    /// table without `source` and `wasm`, and like one of a file it reads the workspace
    /// where that says nothing. A component that has several tools is added once for each,
    /// by the tool's own name.
    #[must_use]
    pub fn component(mut self, name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.bytes_tools.push((name.into(), bytes.into()));
        self
    }

    /// Where the workspace is, without links. None of its files is read.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] where the one that was named is not there.
    pub fn find_workspace(&self) -> Result<PathBuf, ConfigErrors> {
        kitbag_config::find_workspace(&self.sources(&[]))
    }

    /// Reads the configuration. A mistake in the files of the workspace is no error: it spoils
    /// the tool, the topic or the table that it is in, which [`Config::broken`] names.
    ///
    /// # Errors
    ///
    /// [`BuildError::Config`] holds everything that is wrong with the user's own file, and
    /// [`BuildError::Tool`] what is wrong with a tool of this program.
    pub fn build(mut self) -> Result<Kitbag, BuildError> {
        self.find_cache();
        let config = kitbag_config::load_isolated(&self.sources(&declarations()))?;
        let (kitbag, errors) = self.with_tools(config);
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(kitbag),
        }
    }

    /// As [`build`](Self::build), but returns everything that is wrong at once, whichever file it
    /// is in.
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

    /// Adds the tools of the program, and returns what is wrong with them.
    fn with_tools(mut self, mut config: Config) -> (Kitbag, Vec<BuildError>) {
        let mut errors = Vec::new();
        let tools = std::mem::take(&mut self.tools);
        let mut components = std::mem::take(&mut self.bytes_tools);
        if let Some((name, bytes)) = self.instead.take()
            && proposal::replace_component(&mut config, &name)
        {
            components.push((name.to_string(), bytes));
        }
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
        let toolbox = Toolbox::new(host, config, &builtins::BUILTINS, secrets.into(), auditor);
        Kitbag { toolbox, on_question: self.on_question, listener: self.listener }
    }
}

/// What logs calls, as the user's own file says. Without a state directory nothing does.
fn auditor(config: &Config, is_single_call: bool) -> Option<Arc<Auditor>> {
    /// How many files of calls, approvals and trust the log has at most. Details have half as many.
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

/// How connections are made: as the program says, and as the user's own file does besides.
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

/// The tools inside this library, as configuration has to know them.
fn declarations() -> Vec<BuiltinTool<'static>> {
    builtins::BUILTINS.iter().map(|builtin| builtin.declaration.clone()).collect()
}
