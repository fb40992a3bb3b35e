//! The settings of a workspace's tools.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_config::{
    CallGrants, ComponentTool, LimitFlags, Origin, Proposal, ScriptFile, Sourced, TrustSource,
};
use kitbag_contract::{Answer, Question, ToolName};
use kitbag_host::{ClientOptions, Concurrency, Host, Listener};
#[cfg(feature = "servers")]
use kitbag_policy::server::{ServerAddress, ServerName};
use kitbag_toolbox::NativeTool;

use crate::callback::OnQuestion;
use crate::places::Places;

/// Builds a [`Kitbag`](crate::Kitbag).
#[derive(Default)]
pub struct Builder {
    pub(crate) start: Option<PathBuf>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) places: Places,
    pub(crate) cache: CachePlace,
    pub(crate) protected: Vec<PathBuf>,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) call_grants: Option<CallGrants>,
    pub(crate) proposal: Option<Proposal>,
    pub(crate) instead: Option<(ToolName, Arc<[u8]>)>,
    pub(crate) state_path: Option<PathBuf>,
    pub(crate) roots: BTreeMap<String, PathBuf>,
    pub(crate) trust: TrustSource,
    pub(crate) limits: LimitFlags,
    pub(crate) is_single_call: bool,
    pub(crate) is_server: bool,
    pub(crate) isolates_own: bool,
    pub(crate) served_tools: Option<Sourced<Vec<String>>>,
    pub(crate) memory: Option<ByteSize>,
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) compiler: Option<PathBuf>,
    pub(crate) connections: ClientOptions,
    pub(crate) host: Option<Host>,
    pub(crate) on_question: Option<OnQuestion>,
    pub(crate) listener: Option<Arc<dyn Listener>>,
    pub(crate) tools: Vec<Arc<dyn NativeTool>>,
    pub(crate) component: Option<ComponentTool>,
    pub(crate) script: Option<ScriptFile>,
    pub(crate) bytes_tools: Vec<(String, Arc<[u8]>)>,
    /// The settings of tools, as the text of a configuration file.
    pub(crate) tool_configs: Option<String>,
    #[cfg(feature = "servers")]
    pub(crate) servers: Vec<(ServerName, ServerAddress)>,
}

#[derive(Default)]
pub(crate) enum CachePlace {
    /// The cache directory of the program `kitbag`.
    #[default]
    Usual,
    Named(Option<PathBuf>),
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
    /// [`Kitbag::trust_question`](crate::Kitbag::trust_question). Do not call tools in this mode.
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
    /// leave less restricted are disabled. [`Config::broken`](crate::Config::broken) lists the omitted parts. Default: a
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
    /// [`HostOptions::compiler`](kitbag_host::HostOptions::compiler). Default: this process compiles them.
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
    /// tool takes to compile. [`Toolbox::call`](crate::Toolbox::call) accepts a listener for a single call.
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
}
