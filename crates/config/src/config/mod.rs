//! What is in effect: the layers merged, checked, and with defaults filled in.

mod audit;
mod directory;
mod grants;
mod network;
mod output;
mod parameters;
mod recorded;
pub(crate) mod rows;
mod secret_files;
mod secrets;
mod tool;
mod topic;
mod trust;

pub use audit::{Audit, AuditSync};
pub(crate) use directory::{DIRECTORY, FILE, LOCK, SCRIPTS, TOOLS, own_directories};
pub use grants::ConfiguredGrants;
pub(crate) use grants::workspace_grant;
pub use network::{NameResolution, Network, RootFile};
pub use output::{Output, ScreenAction, Screening};
pub use parameters::{Parameter, ParameterType, Parameters};
pub use recorded::{LockedManifest, LockedTool, Recorded};
pub(crate) use secret_files::SecretFiles;
pub use secrets::{
    LeakAllowance, Secret, SecretStore, SecretStoreKind, secret_destinations, set_secret_command,
};
pub(crate) use tool::writable;
pub use tool::{
    BytesTool, ConfiguredTool, LocalTool, ScriptTool, ToolApproval, ToolRate, ToolSource,
};
pub use topic::Topic;
pub use trust::{IgnoredWorkspace, Trust};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_contract::{ToolName, UnknownArguments};
use kitbag_fs_guard::{Guard, GuardedPaths, Located, Owners, locate};
use kitbag_policy::http::Deny;
use kitbag_policy::{ApprovalRule, ClassRule, SecretName, SecretSource, is_of_class};

use crate::layers::limits::EffectiveLimits;
use crate::layers::origin::{Origin, Sourced};
use crate::layers::toolsets::Toolsets;
use crate::read::file::SourceFile;
use crate::report::{Broken, Diagnostic};
use crate::trust::review::TrustReview;
use crate::trust::workspace::{WorkspaceContent, WorkspaceTrust};

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
    /// The edits of a trusted workspace since a person trusted it. `None`: there are none. If
    /// the configuration was read to show what it asks, nothing of it is off.
    pub review: Option<TrustReview>,
    /// What configures the workspace, where it was asked for what it asks.
    pub content: Option<WorkspaceContent>,
    /// The pieces that are left out, since there are mistakes in them.
    pub broken: Vec<Broken>,
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
    pub grant_ceiling: ConfiguredGrants,
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
    /// The time after which a session over HTTP ends if its client sends nothing and has no
    /// stream open. Default 30 minutes.
    pub session_idle: Sourced<Duration>,
    /// The handling of arguments that a tool's schema does not know, if a client, a program or
    /// a tool makes the call.
    pub unknown_arguments: Sourced<UnknownArguments>,
    /// What `[toolsets]` says.
    pub toolsets: Toolsets,
    /// The tools by name, those that are not enabled among them.
    pub tools: BTreeMap<ToolName, ConfiguredTool>,
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

impl Config {
    /// The home directory of the user. `None`: it is not known.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// What none of its tools changes, whatever it is granted, and what looks like a secret.
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
                // Also where it could not be read.
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
        Guard::new(paths).with_secrets(self.secret_files.secret_names())
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
    pub fn bytes_tool(&self, name: &ToolName) -> ConfiguredTool {
        let root = locate(&self.root.value).ok();
        let identity = root.as_ref().map(Located::id);
        let host = root.map_or_else(|| self.root.value.clone(), |located| located.path);
        let mut grants = ConfiguredGrants::default();
        let directories = Sourced::default(vec![workspace_grant(host, identity)]);
        grants.set(|grants| &mut grants.directories, directories);
        let source = BytesTool { component: name.clone(), parameters: None };
        let source = Sourced { value: ToolSource::Bytes(source), origin: Origin::Caller };
        let approve = self.default_approval();
        ConfiguredTool {
            grants,
            approve,
            ..ConfiguredTool::of_caller(name.clone(), source, self.limits.clone())
        }
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
        self.trust.owners(root, self.home.as_deref())
    }
}
