//! What is in effect: the layers merged, checked, and with defaults filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::{ByteSize, FileId, Pin, ToolName, WORKSPACE_GUEST_PATH};
use kitbag_files::{Distrust, Guard, GuardedPaths, Located, Owners, SecretNames, locate};
use kitbag_policy::http::{Deny, Proxy};
use kitbag_policy::{
    Access, ApprovalRule, ClassRule, DirectoryGrant, Grants, GuestPath, Kind, Placement, Rates,
    SecretName, SecretPlace, SecretSource, is_of_class,
};
use kitbag_screening::Severity;
use kitbag_secrets::AllowedLeak;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::Diagnostic;
use crate::file::{Layer, SourceFile};
use crate::limit_set::EffectiveLimits;
use crate::lock::Recorded;
use crate::origin::{Origin, Sourced};
use crate::problem::Problem;
use crate::text::shown_path;
use crate::toolsets::{Disabled, Toolsets};
use crate::trust::owners;
use crate::workspace_trust::{WorkspaceContent, WorkspacePattern, WorkspaceTrust};

/// The directory that makes its parent a workspace.
pub(crate) const DIRECTORY: &str = ".kitbag";

/// The file in it.
pub(crate) const FILE: &str = "config.toml";

/// The file in it with what was recorded of tools.
pub(crate) const LOCK: &str = "kitbag.lock";

/// The directory in it whose components are tools without configuration.
pub(crate) const TOOLS: &str = "tools";

/// The directory in it whose scripts are tools.
pub(crate) const SCRIPTS: &str = "scripts";

/// Everything that is configured, with where each value came from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Root of the workspace; absolute. Where none was found, the directory
    /// from which it was looked for.
    pub root: Sourced<PathBuf>,
    /// Whether the root holds a directory `.kitbag` that counts.
    pub has_workspace: bool,
    /// The workspace that was found or named and whose configuration was not read,
    /// because another user can change it.
    pub ignored: Option<IgnoredWorkspace>,
    /// The workspaces that the user trusts by name.
    pub trust: Trust,
    /// Whether the files of the workspace count.
    pub workspace_trust: WorkspaceTrust,
    /// What configures the workspace, where it was asked for what it asks.
    pub content: Option<WorkspaceContent>,
    /// What is most likely a mistake and changes nothing: variables that mean nothing, and
    /// components of the workspace with the name of a tool of the user's own file.
    pub warnings: Vec<Diagnostic>,
    /// Names in lists of the files that mean no tool of this binary: a mistake, or for
    /// another workspace or binary.
    pub unmatched: Vec<Diagnostic>,
    /// Tables of the user's own file for tools that are not there: a mistake, or for another
    /// workspace.
    pub absent: Vec<Diagnostic>,
    /// Where kitbag keeps what it has to remember, outside of every workspace. `None`:
    /// nowhere.
    pub state: Option<Sourced<PathBuf>>,
    /// The files that were read, the weakest layer first.
    pub files: Vec<SourceFile>,
    /// What the files of the workspace may set a limit to, at most.
    pub ceiling: EffectiveLimits,
    /// What the files and components of the workspace can be granted, at most.
    pub grant_ceiling: ToolGrants,
    /// What no tool may ask for over HTTP, whatever it is granted. Default: nothing.
    pub deny: Sourced<Arc<Deny>>,
    /// How connections of tools are made, of the user's own file alone.
    pub network: Network,
    /// The audit log, of the user's own file alone.
    pub audit: Audit,
    /// Before which calls a person is asked of a tool of which the user's own file says nothing
    /// else. `None`: none.
    pub approve_default: Option<Sourced<ApprovalRule>>,
    /// What becomes of questions of a class, by its name or its beginning and `*`.
    pub approve_classes: Vec<(String, Sourced<ClassRule>)>,
    /// What becomes of answers before a model reads them, of the user's own file alone.
    pub output: Output,
    /// Limits of a tool that sets none of its own.
    pub limits: EffectiveLimits,
    /// Names of files that look like secrets, besides the built-in list.
    pub secret_files: SecretFiles,
    /// The user's secrets by name, without their values.
    pub secrets: BTreeMap<SecretName, Secret>,
    /// What keeps the values of secrets.
    pub secret_store: SecretStore,
    /// What looks like a key or a token and is none, as the user says. Default: nothing.
    pub allowed_leaks: Sourced<Vec<LeakAllowance>>,
    /// What a server may take altogether. Default 2 GiB.
    pub server_memory: Sourced<ByteSize>,
    /// What `[toolsets]` says.
    pub toolsets: Toolsets,
    /// The tools by name, those that are not enabled among them.
    pub tools: BTreeMap<ToolName, Tool>,
    /// The topics by id, those that are not enabled among them.
    pub topics: BTreeMap<String, Topic>,
    /// The user's own file, where it is known; it need not exist.
    pub own_file: Option<PathBuf>,
    /// What no tool reads: what the caller named, the state directory, the store of secrets
    /// and its key; absolute.
    pub private: Vec<PathBuf>,
    /// What the caller named that no tool may change; absolute.
    pub protected: Vec<PathBuf>,
    /// The links in `.kitbag/tools` that are named like a part of a tool, also those that
    /// lead to none yet; absolute.
    pub(crate) tool_links: Vec<PathBuf>,
    /// The granted directories to which a link in the workspace leads; canonical.
    pub(crate) through_links: BTreeSet<PathBuf>,
    /// The home directory of the caller.
    pub(crate) home: Option<PathBuf>,
}

/// A workspace whose configuration is not read, because another user can change it.
///
/// Reads as ``the configuration in `/w/.kitbag` is ignored: `/w/.kitbag/config.toml`
/// belongs to user 1001; …``, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the configuration in `{}` is ignored: `{}` {reason}; {}, or add \"{}\" to `[trust] \
     directories` in {}",
    shown_path(&root.join(DIRECTORY)),
    shown_path(path),
    reason.remedy(),
    shown_path(root),
    crate::problem::own_file(own_file)
)]
pub struct IgnoredWorkspace {
    /// The root of the workspace; absolute.
    pub root: PathBuf,
    /// The file or directory that another user can change; absolute.
    pub path: PathBuf,
    /// Why it does not count.
    pub reason: Distrust,
    /// The user's own file, where it is known.
    pub own_file: Option<Arc<Path>>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name that a model calls it by.
    pub name: ToolName,
    /// What the name stands for.
    pub source: Sourced<ToolSource>,
    /// What `enable` says. Default `true`. [`disabled`](Self::disabled) has more reasons.
    pub enable: Sourced<bool>,
    /// The group of a built-in tool, which `[toolsets]` switches.
    pub toolset: Option<String>,
    /// Why it is not offered. `None`: it is.
    pub disabled: Option<Disabled>,
    /// A display name.
    pub title: Option<Sourced<String>>,
    /// What it does, for the model. `None`: what the tool says of itself.
    pub description: Option<Sourced<String>>,
    /// What it may reach. Host directories are canonical and exist, unless the tool is
    /// not enabled. Default: for a component the workspace, read-only, at `/workspace`; for
    /// a built-in the workspace as it asks for it, else nothing.
    pub grants: ToolGrants,
    /// What one call may use up.
    pub limits: EffectiveLimits,
    /// How often each caller may call it: its own rate first, then those of the user's own
    /// file for other names of the same tool. All have to allow a call. Default: as often as
    /// they like.
    pub rates: Vec<ToolRate>,
    /// Before which calls a person is asked. Default: none.
    pub approve: ToolApproval,
    /// Preset answers, by the id of the question.
    pub answers: BTreeMap<String, Sourced<Value>>,
}

/// Before which calls of a tool a person is asked, as configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolApproval {
    /// The rules, one of which is enough to ask.
    pub rules: Vec<Sourced<ApprovalRule>>,
    /// The place in the user's own file that says `never`, so that what the tool says of itself
    /// does not count.
    pub never: Option<Origin>,
}

/// How often a tool may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRate {
    /// The rates, which hold together.
    pub rates: Sourced<Rates>,
    /// The tool whose calls they count: the tool itself, or another name for it that the
    /// user's own file limits.
    pub counted_as: ToolName,
}

/// What the name of a tool stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolSource {
    /// A tool that is part of kitbag. It has its own parameters.
    Builtin {
        /// Its own name, one of those the caller handed over.
        name: Sourced<String>,
    },
    /// A component in a file.
    Local(LocalTool),
    /// A script of Python in a file, which the built-in [`PYTHON`](crate::PYTHON) runs.
    Script(ScriptTool),
    /// A component that the embedding program brings as bytes.
    Bytes(BytesTool),
    /// Code of the embedding program, which no file names.
    Native,
}

/// A tool whose component is in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalTool {
    /// The component; absolute. It was not looked at and need not exist.
    pub wasm: Sourced<PathBuf>,
    /// The digests that it must have, all of them. Default: any will do.
    pub pins: Arc<[Pin]>,
    /// What `kitbag.lock` has of it. `None`: nothing, and what it says of itself counts as it is.
    pub recorded: Option<Arc<Recorded>>,
    /// In which lock file it is recorded: that of the workspace, or the user's own.
    pub layer: Layer,
    /// Whether it is one that the user builds: then any component will do that asks for no
    /// more than was recorded. Default `false`.
    pub dev: Sourced<bool>,
    /// The built-in that it replaces, which is there no longer.
    pub replaces: Option<Sourced<String>>,
    /// The arguments that it takes. `None`: what the tool says of itself.
    pub parameters: Option<Parameters>,
}

impl LocalTool {
    /// A tool of which nothing was recorded.
    pub(crate) fn new(
        wasm: Sourced<PathBuf>,
        replaces: Option<Sourced<String>>,
        parameters: Option<Parameters>,
    ) -> Self {
        let (pins, dev) = (Arc::default(), Sourced::default(false));
        Self { wasm, pins, recorded: None, layer: Layer::User, dev, replaces, parameters }
    }

    /// Has its component checked against one more digest, wherever it is loaded. One that the
    /// user builds has none.
    pub fn add_pin(&mut self, pin: Pin) {
        if !self.dev.value {
            self.pins = self.pins.iter().cloned().chain([pin]).collect();
        }
    }

    /// What was recorded of it, from now on: its digest among it.
    pub(crate) fn record(&mut self, name: &ToolName, recorded: Recorded) {
        self.add_pin(Pin {
            digest: recorded.tool.component,
            recorded_in: recorded.place.to_string().into(),
            renewed_by: format!("kitbag update {name}").into(),
        });
        self.recorded = Some(Arc::new(recorded));
    }
}

/// A tool that is a script of Python.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptTool {
    /// The file; absolute. It was read with the configuration.
    pub path: Sourced<PathBuf>,
    /// The built-in that it replaces, which is there no longer.
    pub replaces: Option<Sourced<String>>,
    /// The text of the file, which is what runs.
    pub code: Arc<str>,
    /// The arguments that it takes, each a variable of the script.
    pub parameters: Parameters,
    /// The JSON Schema of its answer, where that is JSON.
    pub output: Option<Sourced<Value>>,
    /// What it would like to be granted, in the form in which a component says it.
    pub asks: Map<String, Value>,
}

/// A tool whose component the embedding program brings.
#[derive(Clone, Debug, PartialEq)]
pub struct BytesTool {
    /// The name under which the program brings it.
    pub component: ToolName,
    /// The arguments that it takes. `None`: what the tool says of itself.
    pub parameters: Option<Parameters>,
}

/// What a tool may reach, and where each kind of it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolGrants {
    /// The grants.
    pub value: Grants,
    /// By the key of the kind.
    origins: BTreeMap<&'static str, Origin>,
    /// The place of a single grant, by the key of its kind and its line.
    places: BTreeMap<(&'static str, String), Origin>,
    /// What is most likely not as it was meant, each with its place: a grant that does not
    /// count, or that gives nothing.
    pub warnings: Vec<Sourced<Problem>>,
}

/// What the user trusts by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Roots of workspaces, and directories that hold components, that count although other
    /// users can change them; absolute. Default: none.
    pub directories: Sourced<Vec<PathBuf>>,
    /// Globs of workspaces whose files count without being looked at. Default: none.
    pub workspaces: Vec<WorkspacePattern>,
}

/// What the configuration changes of the built-in list of names that look like secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFiles {
    /// Globs of further names, of every layer. Default: none.
    pub names: Sourced<Vec<String>>,
    /// Globs of names that are no secrets, of the user's own file alone. Default: none.
    pub except: Sourced<Vec<String>>,
}

/// How connections of tools are made. Default: without a proxy, with the authorities of the
/// system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The proxy, with what goes without it. `None`: there is none.
    pub proxy: Option<Sourced<Proxy>>,
    /// Files with the certificates of authorities that are trusted besides those of the
    /// system.
    pub roots: Vec<Sourced<RootFile>>,
}

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Whether calls are logged.
    pub enable: Sourced<bool>,
    /// When lines are brought to the disk.
    pub sync: Sourced<AuditSync>,
    /// How large the log becomes; the oldest lines go.
    pub size: Sourced<ByteSize>,
    /// Whether arguments are logged as they are, and not by their digest alone.
    pub arguments: Sourced<bool>,
    /// Whether calls are refused while nothing can be logged.
    pub required: Sourced<bool>,
}

/// What becomes of answers before a model reads them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Whether answers of tools that reach the network or run foreign code stand between marks.
    /// Default: no.
    pub fence: Sourced<bool>,
    /// What becomes of answers that look like instructions to a model. `None`: nobody looks.
    pub screen: Option<Screening>,
}

/// What becomes of answers that look like instructions to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screening {
    /// For each severity what is done.
    pub actions: [(Severity, Sourced<ScreenAction>); 3],
    /// The names of rules that are not looked for.
    pub except: Vec<String>,
}

/// What is done with an answer that looks like instructions to a model, from the least to the
/// most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ScreenAction {
    /// Nothing.
    Pass,
    /// The client reads what was found.
    Mark,
    /// And the text stands between marks.
    Fence,
    /// The model reads what was found, and nothing of the answer.
    Block,
}

/// When lines of the audit log are brought to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum AuditSync {
    /// When the system does it.
    None,
    /// Together with those of 100 ms, after their calls were answered.
    Batch,
    /// Each before its call is answered.
    Each,
}

/// A file with the certificates of authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFile {
    /// The file; absolute.
    pub path: PathBuf,
    /// What is in it: PEM, with one certificate at least, each of which can be the root of
    /// another.
    pub pem: Arc<[u8]>,
}

/// A secret of the user: where its value comes from, and where it may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// Where it stands in the user's own file.
    pub origin: Origin,
    /// Where its value comes from. Default: the store.
    pub source: Sourced<SecretSource>,
    /// Where it may go. Default: nowhere.
    pub to: Sourced<Vec<SecretPlace>>,
    /// How the host adds it to a request. Default: as a bearer token.
    pub placement: Sourced<Placement>,
    /// Where its placeholder is replaced besides headers: in the query, and in the body.
    /// Default: in neither.
    pub placeholder: Sourced<(bool, bool)>,
}

/// What keeps the values of secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretStore {
    /// What it is, and how it is opened. `None`: none was chosen yet.
    pub kind: Option<Sourced<SecretStoreKind>>,
    /// The encrypted file; absolute. Default: `secrets.age` in the state directory. `None`:
    /// there is no such directory.
    pub file: Option<Sourced<PathBuf>>,
    /// The file with its key; absolute. Default: `secrets.key` beside the user's own file.
    /// `None`: it is not known where that is.
    pub key_file: Option<Sourced<PathBuf>>,
    /// The program that writes its passphrase, and that program's arguments. `None`: the
    /// variable `KITBAG_PASSPHRASE` has it.
    pub passphrase_command: Option<Sourced<Vec<String>>>,
}

/// Something that looks like a key or a token and is none, as the user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakAllowance {
    /// What is meant.
    pub leak: AllowedLeak,
    /// Why it is none; not empty.
    pub reason: String,
}

/// What a store is, and how it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SecretStoreKind {
    /// An encrypted file, which a key in another file opens.
    KeyFile,
    /// An encrypted file, which a passphrase opens.
    Passphrase,
    /// The keyring of the system, and no file.
    Keyring,
}

/// The parameters of a tool, or the properties of an object, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// Names and what is known of them, in the order of the file.
    pub entries: Vec<(String, Parameter)>,
}

/// A parameter of a tool, a property of an object, or the elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The type of its value. `None`: any JSON value.
    pub kind: Option<Sourced<ParameterType>>,
    /// What it means, for the model.
    pub description: Option<Sourced<String>>,
    /// Whether a call without it is refused. Default `false`.
    pub required: Sourced<bool>,
    /// The value that it has where a call gives none; fits `kind` and `choices`.
    pub default: Option<Sourced<Value>>,
    /// The values that it takes; each fits `kind`. `None`: any of its type.
    pub choices: Option<Sourced<Vec<Value>>>,
    /// What the elements of an array are. `None`: anything.
    pub items: Option<Box<Parameter>>,
    /// The keys that an object has. `None`: any.
    pub properties: Option<Parameters>,
}

/// The type of a parameter, by its name in JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ParameterType {
    /// Text.
    String,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list; `items` says of what.
    Array,
    /// Keys and values; `properties` says which.
    Object,
}

/// A topic of the team's knowledge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The id that it is asked for by.
    pub id: String,
    /// The directory of its documents; absolute. It need not exist.
    pub subjects: Sourced<PathBuf>,
    /// The directory that the documents have to lie in when they are read, by whatever links:
    /// canonical. `None`: they may lie anywhere.
    pub within: Option<PathBuf>,
    /// Whether it is offered. Default `true`.
    pub enable: Sourced<bool>,
    /// A display name; it can be asked for by that too. Default: the id.
    pub title: Sourced<String>,
    /// One line, for the system prompt.
    pub introduction: Option<Sourced<String>>,
    /// More, shown where its subjects are listed.
    pub description: Option<Sourced<String>>,
    /// Globs of the subjects that are in the system prompt already.
    pub learned: Sourced<Vec<String>>,
    /// Globs of dot directories, and of files that look like secrets, that are subjects
    /// all the same.
    pub include: Sourced<Vec<String>>,
    /// Globs or exact names of subjects that can never be loaded.
    pub disabled: Sourced<Vec<String>>,
    /// Each entry of `learned` and `disabled` with its own place, under the key of its list.
    pub entries: Vec<(&'static str, Sourced<String>)>,
}

impl Config {
    /// What none of its tools changes, whatever it is granted, and what looks like a secret.
    pub fn guard(&self) -> Guard {
        let mut paths = GuardedPaths {
            own: own_directories(
                &self.root.value,
                self.protected.iter().chain(self.state.as_ref().map(|state| &state.value)),
            ),
            private: self.private.clone(),
            files: self.files.iter().map(|file| file.path().to_owned()).collect(),
            topics: self.topics.values().map(|topic| topic.subjects.value.clone()).collect(),
            granted: self.trust.directories.value.clone(),
            writable: writable(&self.tools).collect(),
        };
        for tool in self.tools.values() {
            if let ToolSource::Local(local) = &tool.source.value {
                paths.files.push(local.wasm.value.clone());
            }
            if tool.is_enabled() {
                let directories = tool.grants.value.directories.iter();
                let directories = directories.filter(|grant| !grant.is_temporary());
                paths.granted.extend(directories.map(|grant| grant.host.clone()));
            }
        }
        paths.files.extend(self.network.roots.iter().map(|roots| roots.value.path.clone()));
        paths.files.extend(self.programs());
        paths.files.extend_from_slice(&self.tool_links);
        paths.granted.push(self.root.value.clone());
        paths.granted.sort();
        paths.granted.dedup();
        let SecretFiles { names, except } = &self.secret_files;
        Guard::new(paths).with_secrets(SecretNames::new(&names.value, &except.value))
    }

    /// What the host runs for secrets, as far as it has an absolute path: programs, and the
    /// files that are their arguments, such as a script. A program without one is found by
    /// `PATH`, where the user keeps what they run themselves.
    fn programs(&self) -> impl Iterator<Item = PathBuf> {
        let commands = self.secrets.values().filter_map(|secret| match &secret.source.value {
            SecretSource::Command(command) => Some(command),
            SecretSource::Variable(_) | SecretSource::Store => None,
        });
        let of_store = self.secret_store.passphrase_command.iter().map(|command| &command.value);
        commands.chain(of_store).flat_map(|command| {
            let words = command.iter().map(PathBuf::from).enumerate();
            let is_run = |(at, path): &(usize, PathBuf)| {
                // A directory as an argument is worked in.
                path.is_absolute() && (*at == 0 || path.is_file())
            };
            words.filter(is_run).map(|(_, path)| path)
        })
    }

    /// A tool whose component the embedding program brings and of which no configuration
    /// says anything.
    pub fn bytes_tool(&self, name: &ToolName) -> Tool {
        let root = locate(&self.root.value).ok();
        let identity = root.as_ref().map(Located::id);
        let host = root.map_or_else(|| self.root.value.clone(), |located| located.path);
        let mut grants = ToolGrants::default();
        let directories = Sourced::default(vec![workspace_grant(host, identity)]);
        grants.set(|grants| &mut grants.directories, directories);
        let source = BytesTool { component: name.clone(), parameters: None };
        let source = Sourced { value: ToolSource::Bytes(source), origin: Origin::Caller };
        let approve = self.default_approval();
        Tool { grants, approve, ..Tool::of_caller(name.clone(), source, self.limits.clone()) }
    }

    /// What becomes of a question of this class: the strictest rule of those that mean it.
    pub fn class_rule(&self, class: &str) -> Option<&Sourced<ClassRule>> {
        let meant = self.approve_classes.iter().filter(|(of, _)| is_of_class(of, class));
        meant.map(|(_, rule)| rule).max_by_key(|rule| rule.value)
    }

    /// Before which calls a person is asked of a tool of which no configuration says anything.
    pub fn default_approval(&self) -> ToolApproval {
        let mut approval = ToolApproval::default();
        approval.add_default(self.approve_default.as_ref());
        approval
    }

    /// Where no other user may have written a component, or exchanged a link that leads to
    /// a topic.
    pub fn owners(&self) -> Owners {
        let root = self.has_workspace.then_some(&*self.root.value);
        owners(root, self.home.as_deref(), &self.trust)
    }
}

/// What a component gets that says nothing of files: the workspace, to read.
pub(crate) fn workspace_grant(host: PathBuf, identity: Option<FileId>) -> DirectoryGrant {
    let guest = GuestPath::new(WORKSPACE_GUEST_PATH).expect("the contract's own path is one");
    DirectoryGrant {
        host,
        guest,
        access: Access::ReadOnly,
        include: Vec::new(),
        protected: None,
        identity,
    }
}

/// What is kitbag's own: what the caller named, and what the workspace holds, which may
/// be links.
pub(crate) fn own_directories<'a>(
    root: &Path,
    protected: impl IntoIterator<Item = &'a PathBuf>,
) -> Vec<PathBuf> {
    let directory = root.join(DIRECTORY);
    let own = [FILE, LOCK, TOOLS, SCRIPTS].map(|name| directory.join(name));
    [directory].into_iter().chain(own).chain(protected.into_iter().cloned()).collect()
}

/// The directories that some of these tools may write.
pub(crate) fn writable(tools: &BTreeMap<ToolName, Tool>) -> impl Iterator<Item = FileId> {
    let enabled = tools.values().filter(|tool| tool.is_enabled());
    let grants = enabled.flat_map(|tool| &tool.grants.value.directories);
    let writes = |grant: &&DirectoryGrant| grant.access == Access::ReadWrite;
    grants.filter(writes).filter_map(|grant| grant.identity)
}

impl ToolApproval {
    /// Adds what counts where the user's own file says nothing of the tool.
    pub(crate) fn add_default(&mut self, default: Option<&Sourced<ApprovalRule>>) {
        match default {
            None => {}
            Some(Sourced { value: ApprovalRule::Never, origin }) => {
                self.never = Some(origin.clone());
            }
            Some(rule) => self.rules.push(rule.clone()),
        }
    }
}

impl Tool {
    /// A tool of the embedding program, without grants, of which no configuration says
    /// anything.
    pub fn of_caller(name: ToolName, source: Sourced<ToolSource>, limits: EffectiveLimits) -> Self {
        Self {
            name,
            source,
            enable: Sourced::default(true),
            toolset: None,
            disabled: None,
            title: None,
            description: None,
            grants: ToolGrants::default(),
            limits,
            rates: Vec::new(),
            approve: ToolApproval::default(),
            answers: BTreeMap::new(),
        }
    }

    /// Whether it is offered.
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }
}

impl ToolSource {
    /// Whether it is a component that is not part of kitbag.
    pub fn is_component(&self) -> bool {
        match self {
            Self::Local(_) | Self::Bytes(_) => true,
            Self::Builtin { .. } | Self::Script(_) | Self::Native => false,
        }
    }

    /// The built-in that it replaces.
    pub fn replaces(&self) -> Option<&Sourced<String>> {
        match self {
            Self::Local(local) => local.replaces.as_ref(),
            Self::Script(script) => script.replaces.as_ref(),
            Self::Builtin { .. } | Self::Bytes(_) | Self::Native => None,
        }
    }

    /// The arguments of a component or a script as configuration says them. `None`: what the tool
    /// says of itself.
    pub fn parameters(&self) -> Option<&Parameters> {
        match self {
            Self::Local(local) => local.parameters.as_ref(),
            Self::Bytes(bytes) => bytes.parameters.as_ref(),
            Self::Script(script) => Some(&script.parameters),
            Self::Builtin { .. } | Self::Native => None,
        }
    }
}

impl ToolGrants {
    /// Sets the grants of a kind.
    pub(crate) fn set<T: Kind>(
        &mut self,
        kind: impl FnOnce(&mut Grants) -> &mut T,
        grants: Sourced<T>,
    ) {
        self.origins.insert(grants.value.key(), grants.origin);
        *kind(&mut self.value) = grants.value;
    }

    /// Says where a single grant stands, by the line that its kind writes of it.
    pub(crate) fn place(&mut self, kind: &'static str, line: String, origin: Origin) {
        self.places.insert((kind, line), origin);
    }

    /// Where a single grant stands, by the key of its kind and its line in
    /// [`Kind::lines`]; where the list stands if that is all that is known.
    pub fn place_of(&self, kind: &'static str, line: &str) -> &Origin {
        self.places.get(&(kind, line.to_owned())).unwrap_or_else(|| self.origin_of(kind))
    }

    /// Whether something says what is granted of a kind.
    pub fn has(&self, kind: &str) -> bool {
        self.origins.contains_key(kind)
    }

    /// Where the grants of a kind came from, by its key.
    pub fn origin_of(&self, kind: &str) -> &Origin {
        self.origins.get(kind).unwrap_or(&DEFAULT)
    }

    /// The kinds that the tool holds, or of which something says what it holds.
    pub fn kinds(&self) -> impl Iterator<Item = &dyn Kind> {
        let is_said = |kind: &&dyn Kind| !kind.is_empty() || self.origins.contains_key(kind.key());
        self.value.kinds().into_iter().filter(is_said)
    }

    /// Where they came from: the first place that is not the default.
    pub fn origin(&self) -> &Origin {
        self.origins.values().find(|origin| **origin != DEFAULT).unwrap_or(&DEFAULT)
    }
}

static DEFAULT: Origin = Origin::Default;

impl Default for SecretFiles {
    fn default() -> Self {
        Self { names: Sourced::default(Vec::new()), except: Sourced::default(Vec::new()) }
    }
}

impl Default for Trust {
    fn default() -> Self {
        Self { directories: Sourced::default(Vec::new()), workspaces: Vec::new() }
    }
}

impl Parameters {
    /// The JSON Schema of an object with these keys and no others, in the order
    /// of the file.
    pub fn input_schema(&self) -> Value {
        let properties: Map<_, _> = self
            .entries
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.schema()))
            .collect();
        let required: Vec<_> = self
            .entries
            .iter()
            .filter(|(_, parameter)| parameter.required.value)
            .map(|(name, _)| name.as_str())
            .collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }
}

impl Parameter {
    /// The JSON Schema of its value.
    pub fn schema(&self) -> Value {
        let mut schema = match &self.properties {
            Some(properties) => properties.input_schema(),
            None => match &self.kind {
                Some(kind) => json!({ "type": kind.value.as_str() }),
                None => json!({}),
            },
        };
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema[key] = value;
            }
        };
        set("description", self.description.as_ref().map(|text| text.value.clone().into()));
        set("enum", self.choices.as_ref().map(|choices| choices.value.clone().into()));
        set("default", self.default.as_ref().map(|default| default.value.clone()));
        set("items", self.items.as_ref().map(|items| items.schema()));
        schema
    }
}

impl SecretStoreKind {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeyFile => "key-file",
            Self::Passphrase => "passphrase",
            Self::Keyring => "keyring",
        }
    }
}

impl AuditSync {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Batch => "batch",
            Self::Each => "each",
        }
    }
}

impl Screening {
    /// What is done where something of this severity was found.
    pub fn action(&self, severity: Severity) -> ScreenAction {
        let found = self.actions.iter().find(|(of, _)| *of == severity);
        found.map_or(ScreenAction::Pass, |(_, action)| action.value)
    }
}

impl ScreenAction {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Mark => "mark",
            Self::Fence => "fence",
            Self::Block => "block",
        }
    }
}

impl ParameterType {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::String, Self::Number, Self::Integer, Self::Boolean, Self::Array, Self::Object];

    /// Its name in JSON Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}
