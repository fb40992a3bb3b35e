//! The configuration in effect: the layers merged and checked, with defaults.

mod audit;
mod command;
mod directory;
mod discovery;
mod grants;
mod network;
mod output;
mod parameters;
mod person;
mod record;
mod registry;
pub(crate) mod rows;
mod secret_files;
mod secrets;
mod server;
mod tool;
mod topic;
mod trust;

pub use audit::{Audit, AuditSync};
pub use command::{CommandTemplate, ComponentCall, Template};
pub(crate) use directory::{DIRECTORY, FILE, LOCK, SCRIPTS, SKILLS, TOOLS, own_directories};
pub use discovery::{Discovery, DiscoveryMode};
pub use grants::ConfiguredGrants;
pub(crate) use grants::workspace_grant;
pub use network::{NameResolution, Network, RootFile};
pub use output::{Output, ScreenAction, Screening};
pub use parameters::{Parameter, ParameterType, Parameters};
pub use person::{Person, PersonName, PersonNameError};
pub use record::{LockedDownload, LockedManifest, LockedTool, Recorded};
pub use registry::{AcceptedSigner, NamedContent, Registries, RegistryRule};
pub(crate) use secret_files::SecretFiles;
pub use secrets::{
    LeakAllowance, Secret, SecretStore, SecretStoreKind, secret_destinations, set_secret_command,
};
pub use server::{
    ConfiguredServer, LockedServer, RecordedServer, ServerTool, address_words, confinement_words,
    tool_name as server_tool_name,
};
pub(crate) use tool::writable;
pub use tool::{
    BytesTool, ConfiguredTool, LocalTool, ScriptTool, ToolApproval, ToolRate, ToolSource,
};
pub use topic::{Topic, USER_SKILLS, WORKSPACE_SKILLS};
pub use trust::{IgnoredWorkspace, Trust};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{ToolName, UnknownArguments};
use kitbag_fs_guard::{Guard, GuardedPaths, Located, Owners, locate};
use kitbag_policy::http::Deny;
use kitbag_policy::server::ServerName;
use kitbag_policy::{ApprovalRule, ClassRule, SecretName, SecretSource, is_of_class};

use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::{Disabled, Toolsets};
use crate::read::file::SourceFile;
use crate::report::{Broken, Diagnostic};
use crate::trust::review::TrustReview;
use crate::trust::workspace::{WorkspaceContent, WorkspaceTrust};

/// The configuration in effect, each value with its origin.
#[derive(Clone, Debug)]
pub struct Config {
    /// The root of the workspace; absolute. If no workspace was found, the directory in which the
    /// search started.
    pub root: Sourced<PathBuf>,
    /// The path under which storage and rates are stored, if it is not the root.
    pub state_path: Option<PathBuf>,
    /// `true` if the root has a `.kitbag` directory that takes effect.
    pub has_workspace: bool,
    /// The workspace whose configuration was not read because another user can change it.
    pub ignored: Option<IgnoredWorkspace>,
    /// The workspaces that the user trusts by name.
    pub trust: Trust,
    /// The trust state of the workspace: whether its files take effect.
    pub workspace_trust: WorkspaceTrust,
    /// The edits of a trusted workspace since a person trusted it. `None`: no edits. If the
    /// configuration was read to show its requests, the edits turn nothing off.
    pub review: Option<TrustReview>,
    /// The files that configure the workspace, if the configuration was read to show its requests.
    pub content: Option<WorkspaceContent>,
    /// The pieces that are omitted because of mistakes in them.
    pub broken: Vec<Broken>,
    /// Likely mistakes without effect: unknown variables, and components of the workspace that have
    /// the name of a tool in the user config.
    pub warnings: Vec<Diagnostic>,
    /// Names in lists of the files that match no tool of this binary: a mistake, or meant for
    /// another workspace or binary.
    pub unmatched: Vec<Diagnostic>,
    /// Tables of the user config for tools that do not exist: a mistake, or meant for another
    /// workspace.
    pub absent: Vec<Diagnostic>,
    /// The directory in which kitbag keeps its state, outside of every workspace. `None`: no state
    /// is kept.
    pub state: Option<Sourced<PathBuf>>,
    /// The files that were read, the weakest layer first.
    pub files: Vec<SourceFile>,
    /// The highest limits that the files of the workspace may set.
    pub ceiling: EffectiveLimits,
    /// The widest grants for the files and components of the workspace.
    pub grant_ceiling: ConfiguredGrants,
    /// Requests over HTTP that no tool may make, regardless of its grants. Default: none.
    pub deny: Sourced<Arc<Deny>>,
    /// The connections of tools, set in the user config only.
    pub network: Network,
    /// Registries of tools, set in the user config only.
    pub registries: Registries,
    /// The audit log, set in the user config only.
    pub audit: Audit,
    /// The approval rule for tools without a rule of their own in the user config. `None`: no call
    /// needs approval.
    pub approve_default: Option<Sourced<ApprovalRule>>,
    /// The handling of questions of a class, by its name or by a prefix and `*`.
    pub approve_classes: Vec<(String, Sourced<ClassRule>)>,
    /// The handling of answers before a model reads them, set in the user config only.
    pub output: Output,
    /// Limits of a tool without limits of its own.
    pub limits: EffectiveLimits,
    /// Names of files that look like secrets, in addition to the built-in list.
    pub secret_files: SecretFiles,
    /// The user's secrets by name, without their values.
    pub secrets: BTreeMap<SecretName, Secret>,
    /// The store of secret values.
    pub secret_store: SecretStore,
    /// Strings that look like a key or a token but are not secret, by the user config. Default:
    /// none.
    pub allowed_leaks: Sourced<Vec<LeakAllowance>>,
    /// The memory of a whole server. Default 2 GiB.
    pub server_memory: Sourced<ByteSize>,
    /// The time after which a session over HTTP ends if its client sends nothing and has no
    /// stream open. Default 30 minutes.
    pub session_idle: Sourced<Duration>,
    /// How a server offers many tools and large results.
    pub discovery: Discovery,
    /// The handling of arguments that a tool's schema does not have, in calls by a client, a
    /// program or a tool.
    pub unknown_arguments: Sourced<UnknownArguments>,
    /// The people who may use a server over HTTP, set in the user config only.
    pub people: BTreeMap<PersonName, Person>,
    /// The toolsets, as switched by `[toolsets]`.
    pub toolsets: Toolsets,
    /// The MCP servers by name, including disabled servers.
    pub servers: BTreeMap<ServerName, ConfiguredServer>,
    /// The tools by name, including disabled tools.
    pub tools: BTreeMap<ToolName, ConfiguredTool>,
    /// The topics by id, including disabled topics.
    pub topics: BTreeMap<String, Topic>,
    /// The path of the user config, if it is known; the file need not exist.
    pub own_file: Option<PathBuf>,
    /// Paths that no tool may read: those that the caller named, the state directory, and the
    /// secret store with its key; absolute.
    pub private: Vec<PathBuf>,
    /// Paths that the caller named and that no tool may change; absolute.
    pub protected: Vec<PathBuf>,
    /// Links in `.kitbag/tools` with the name of a part of a tool, including dangling links;
    /// absolute.
    pub(crate) tool_links: Vec<PathBuf>,
    /// The granted directories that a link in the workspace leads to; canonical.
    pub(crate) through_links: BTreeSet<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

impl Config {
    /// Returns the home directory of the user. `None`: it is unknown.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the path under which the workspace's storage and rates are stored.
    pub fn state_path(&self) -> &Path {
        self.state_path.as_deref().unwrap_or(&self.root.value)
    }

    /// Returns the paths that no tool may change, and the names that look like secrets.
    pub fn guard(&self) -> Guard {
        let mut paths = GuardedPaths {
            own: own_directories(
                &self.root.value,
                self.protected.iter().chain(self.state.as_ref().map(|state| &state.value)),
            ),
            private: self.private.clone(),
            files: self
                .files
                .iter()
                .map(|file| file.path().to_owned())
                // Also if the file could not be read.
                .chain(self.own_file.clone())
                .collect(),
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
                let directories = directories.filter(|grant| grant.is_here());
                paths.granted.extend(directories.map(|grant| grant.host.clone()));
            }
        }
        paths.files.extend(self.network.roots.iter().map(|roots| roots.value.path.clone()));
        paths.files.extend(self.registries.trust_root.iter().map(|root| root.value.path.clone()));
        let signers = self.registries.rules.iter().filter_map(|rule| rule.signed_by.as_ref());
        paths.files.extend(signers.flat_map(|list| &list.value).filter_map(|it| match it {
            AcceptedSigner::Key(key) => Some(key.path.clone()),
            AcceptedSigner::Identity { .. } => None,
        }));
        paths.files.extend(self.programs());
        paths.files.extend_from_slice(&self.tool_links);
        paths.granted.push(self.root.value.clone());
        paths.granted.sort();
        paths.granted.dedup();
        Guard::new(paths).with_secrets(self.secret_files.secret_names())
    }

    /// Returns the programs that the host runs for secrets, and the files among their arguments,
    /// such as a script; only absolute paths. A program without a path is found through `PATH`,
    /// which holds programs that users run themselves.
    fn programs(&self) -> impl Iterator<Item = PathBuf> {
        let commands = self.secrets.values().filter_map(|secret| match &secret.source.value {
            SecretSource::Command(command) => Some(command),
            SecretSource::Variable(_) | SecretSource::Store => None,
        });
        let of_store = self.secret_store.passphrase_command.iter().map(|command| &command.value);
        commands.chain(of_store).flat_map(|command| {
            let words = command.iter().map(PathBuf::from).enumerate();
            let is_run = |(at, path): &(usize, PathBuf)| {
                // A directory among the arguments is a working directory.
                path.is_absolute() && (*at == 0 || path.is_file())
            };
            words.filter(is_run).map(|(_, path)| path)
        })
    }

    /// Returns a tool without configuration whose component the embedding program provides.
    pub fn bytes_tool(&self, name: &ToolName) -> ConfiguredTool {
        let root = locate(&self.root.value).ok();
        let identity = root.as_ref().map(Located::id);
        let host = root.map_or_else(|| self.root.value.clone(), |located| located.path);
        let mut grants = ConfiguredGrants::default();
        let directories = Sourced::default(vec![workspace_grant(host, identity)]);
        grants.set(|grants| &mut grants.directories, directories);
        let source =
            BytesTool { component: name.clone(), call: ComponentCall::default(), parameters: None };
        let source = Sourced { value: ToolSource::Bytes(source), origin: Origin::Caller };
        let approve = self.default_approval();
        ConfiguredTool {
            grants,
            approve,
            ..ConfiguredTool::of_caller(name.clone(), source, self.limits.clone())
        }
    }

    /// Returns the handling of a question of this class: the strictest rule that matches.
    pub fn class_rule(&self, class: &str) -> Option<&Sourced<ClassRule>> {
        let meant = self.approve_classes.iter().filter(|(of, _)| is_of_class(of, class));
        meant.map(|(_, rule)| rule).max_by_key(|rule| rule.value)
    }

    /// Returns the approval rule of a tool without configuration.
    pub fn default_approval(&self) -> ToolApproval {
        let mut approval = ToolApproval::default();
        approval.add_default(self.approve_default.as_ref());
        approval
    }

    /// Returns this configuration with only the tools that a person may use. `None` as the person
    /// leaves no tool.
    #[must_use]
    pub fn for_person(&self, person: Option<(&PersonName, &Person)>) -> Self {
        let mut config = self.clone();
        let (key, origin, globs) = match person {
            None => ("serve.tokens".to_owned(), &Origin::Default, &[][..]),
            Some((_, Person { tools: None, .. })) => return config,
            Some((name, Person { tools: Some(tools), globs, .. })) => {
                (format!("serve.tokens.{name}.tools"), &tools.origin, &globs[..])
            }
        };
        for (name, tool) in config.tools.iter_mut().filter(|(_, tool)| tool.is_enabled()) {
            if !globs.iter().any(|glob| glob.matches(name.as_str())) {
                let (key, origin) = (key.clone().into(), origin.clone());
                tool.disabled = Some(Disabled::NotServed { key, origin });
            }
        }
        config
    }

    /// Returns the directories in which no other user may have written a component or replaced a
    /// link to a topic.
    pub fn owners(&self) -> Owners {
        let root = self.has_workspace.then_some(&*self.root.value);
        self.trust.owners(root, self.home.as_deref())
    }
}
