//! The input of this crate. It does not access the environment otherwise.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_contract::ToolName;
use kitbag_policy::{Access, VariableGrant};

use crate::layers::limits::{LIMITS, LimitFlags, with_limits};
use crate::layers::origin::{Origin, Sourced};
use crate::layers::path::settled;
use crate::read::file::Layer;

macro_rules! define {
    ([$($function:ident)*] $($key:ident: $param:ident $map:ident $form:ident, $variable:literal $parse:expr,
       $untrusted:expr, [$($default:literal)?], $($help:literal),*;)*) => {
        /// All environment variables that affect kitbag.
        ///
        /// Any other name that starts with `KITBAG_` causes a warning. Variables of limits are read
        /// here; the others are for the caller to act on.
        pub const VARIABLES: [&str; LIMITS.len() + 6] = [
            $($variable,)*
            "KITBAG_WORKSPACE",
            "KITBAG_CONFIG",
            "KITBAG_CACHE_DIR",
            "KITBAG_STATE_DIR",
            TRUST_VARIABLE,
            "KITBAG_PASSPHRASE",
        ];
    };
}

with_limits!(define);

/// The variable that trusts the workspace: `1`, or `0` as if it were not set.
pub const TRUST_VARIABLE: &str = "KITBAG_TRUST_WORKSPACE";

/// The source of trust in the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustSource {
    /// [`TRUST_VARIABLE`], otherwise `[trust] workspaces` of the user config, otherwise the record
    /// in the state directory. Without any of them the workspace is untrusted.
    #[default]
    Recorded,
    /// The caller's decision.
    Said(Sourced<bool>),
    /// A review: the files are read as if they were trusted, to show a person their requests. No
    /// tool may run.
    Asked,
}

/// The sources of the configuration, and its environment.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// The directory in which the search for the workspace starts; absolute. The search continues
    /// in its parents.
    pub start: PathBuf,
    /// The named workspace, with the origin of the name. Relative to `start`. `None`: the workspace
    /// is searched for.
    pub workspace: Option<Sourced<PathBuf>>,
    /// The user config; absolute. The file must exist, so this is `None` if there is none.
    pub user_file: Option<PathBuf>,
    /// The usual path of the user config, which need not exist; absolute. It is not read: messages
    /// name it if `user_file` is `None`.
    pub usual_user_file: Option<PathBuf>,
    /// The state directory, with its origin; absolute. `None`: no state is kept. No tool may change
    /// it.
    pub state: Option<Sourced<PathBuf>>,
    /// The path under which the workspace's storage and rates are stored, if it is not the workspace:
    /// each snapshot of a cluster has a directory of its own; absolute. It need not exist.
    pub state_path: Option<PathBuf>,
    /// The roots of this machine by name: directories that grants name as `$ROOT/NAME`; absolute.
    /// A grant of another root stays a name, and its tool does not run here.
    pub roots: BTreeMap<String, PathBuf>,
    /// The source of trust in the workspace.
    pub trust: TrustSource,
    /// A configuration to read instead of a file, to check it before it is written.
    pub proposal: Option<Proposal>,
    /// The directory for `~/`; absolute.
    pub home: Option<PathBuf>,
    /// The environment variables that start with `KITBAG_`, with their values. Other variables are
    /// ignored, and so are empty values of known variables.
    pub environment: Vec<(String, String)>,
    /// The environment variables that tools can be granted. `None`: no variables.
    pub variables: Option<&'a Variables>,
    /// The grants of the command line for one call of a tool.
    pub call_grants: Option<CallGrants>,
    /// Limits from the command line.
    pub flags: LimitFlags,
    /// The built-in tools.
    pub builtins: &'a [BuiltinTool<'a>],
    /// A tool that is not configured. It replaces a tool of the same name.
    pub component: Option<ComponentTool>,
    /// A script that is not configured. It replaces a tool of the same name.
    pub script: Option<ScriptFile>,
    /// The tools whose components the embedding program provides as bytes. Tables with their names
    /// configure them; no other tool may have such a name.
    pub bytes_tools: Vec<ToolName>,
    /// Settings of tools from the embedding program, as the text of a user config. They override all
    /// files, and no ceiling limits them.
    pub program: Option<String>,
    /// `true` isolates mistakes in the user config, as [`load_isolated`](crate::load_isolated)
    /// isolates those in a workspace.
    pub isolates_own: bool,
    /// `true` if the tools are for a server: `[serve] tools` then selects the tools that it offers
    /// to clients.
    pub is_server: bool,
    /// The tools that a server offers, by names or globs, with their origin. They replace the
    /// configured lists.
    pub served_tools: Option<Sourced<Vec<String>>>,
    /// Files and directories with the caller's own secrets, which no tool reads or changes;
    /// absolute. They need not exist. The state directory, the secret store and its key are
    /// included automatically.
    pub private: Vec<PathBuf>,
    /// Directories and files that no tool may change, such as the compile cache and the trust
    /// store; absolute. They need not exist. The files read here, `.git` and `.kitbag` are included
    /// automatically.
    pub protected: Vec<PathBuf>,
}

/// A configuration to read instead of the file of its layer, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The layer: the user config, or the workspace's file.
    pub layer: Layer,
    /// The text of the whole file.
    pub text: String,
}

/// Grants of the command line, for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGrants {
    /// The called tool.
    pub tool: String,
    /// The grants, each as `KIND=GRANT`: `http=https://api.github.com/**`, `http={ url = "…" }`,
    /// `env=LANG`, `storage` or `storage=1MiB`, `tools=search=search_files` or `tools=caller`.
    pub grants: Vec<String>,
}

/// Environment variables, which tools are granted by name. `Debug` shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<OsString, OsString>);

pub(crate) enum VariableValue {
    /// A value that can be given to a guest.
    Text(Arc<str>),
    /// The reason why a value cannot be given to a guest.
    Unusable(&'static str),
}

/// A tool whose component the caller names. It has the grants and limits of a tool without
/// configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentTool {
    /// The name of the tool in calls.
    pub name: ToolName,
    /// The file of the component. Relative to [`Sources::start`].
    pub wasm: PathBuf,
}

/// A tool whose script the caller names. It has the grants and limits of a script in
/// `.kitbag/scripts` without configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// The name of the tool in calls.
    pub name: ToolName,
    /// The file. Relative to [`Sources::start`].
    pub path: PathBuf,
}

/// The tool's own name of the built-in that runs scripts.
pub const PYTHON: &str = "python";

/// The properties of a built-in tool that the configuration depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltinTool<'a> {
    /// The tool's own name.
    pub name: &'a str,
    /// The group that `[toolsets]` switches: one of [`TOOLSETS`](crate::TOOLSETS). A tool in any
    /// other toolset is always on.
    pub toolset: &'a str,
    /// The requested access to the workspace. The tool gets it by default while it is on.
    pub workspace: Option<Access>,
    /// `true` if the tool stores data between its calls. It then gets the default storage while it
    /// is on, unless storage is configured.
    pub keeps: bool,
    /// The guest paths of the directories that each call gives to the tool.
    pub given_by_call: &'a [&'a str],
    /// The required kinds of grants, each with a line of `grants` in TOML. A tool without any grant
    /// of such a kind is off unless configuration turns it on.
    pub required: &'a [(&'a str, &'a str)],
    /// `true` if the tool requests the tools that its caller may call. It gets them by default.
    pub calls: bool,
}

impl BuiltinTool<'_> {
    /// The default limit of `tool_calls` for a built-in that may call any tool.
    pub(crate) const CALLS: u64 = 200;

    /// Returns the memory that the documented inputs need, if that is more than the default: a
    /// document of 16 MiB as values, a page or text of 16 MiB with its conversion, or the snapshot
    /// of Python with the objects of a script.
    pub(crate) fn memory(&self) -> Option<ByteSize> {
        match self.toolset {
            "data" => Some(ByteSize::mib(256)),
            "text" | "search" | "python" => Some(ByteSize::mib(128)),
            _ => None,
        }
    }

    /// The memory in a workspace that is not trusted, if that must be more than other tools have:
    /// the snapshot of Python takes most of theirs.
    pub(crate) fn untrusted_memory(&self) -> Option<ByteSize> {
        (self.toolset == PYTHON).then(|| ByteSize::mib(64))
    }
}

impl<'a> From<&'a str> for BuiltinTool<'a> {
    /// Returns a tool without requests, in a toolset of its own.
    fn from(name: &'a str) -> Self {
        Self { name, toolset: name, ..Self::default() }
    }
}

impl Variables {
    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<VariableValue> {
        let value = self.0.get(OsStr::new(name))?;
        Some(match value.to_str() {
            None => VariableValue::Unusable("is not UTF-8"),
            Some(value) if value.len() > VariableGrant::VALUE_BYTES => {
                VariableValue::Unusable("is larger than the limit of 32 KiB")
            }
            Some(value) => VariableValue::Text(value.into()),
        })
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").finish_non_exhaustive()
    }
}

impl Sources<'_> {
    pub(crate) fn variable_trusts(&self) -> bool {
        self.environment.iter().any(|(name, value)| name == TRUST_VARIABLE && value == "1")
    }

    pub(crate) fn proposed(&self, layer: Layer) -> Option<&str> {
        let proposal = self.proposal.as_ref().filter(|proposal| proposal.layer == layer);
        proposal.map(|proposal| &*proposal.text)
    }

    /// Returns the local time zone in the variable `TZ`: `Europe/Paris`, optionally after `:` or as
    /// the path of the zone's file.
    pub(crate) fn local_zone(&self) -> Option<Sourced<String>> {
        let VariableValue::Text(text) = self.variables?.get("TZ")? else { return None };
        let name = text.strip_prefix(':').unwrap_or(&text);
        let name = name.rsplit_once("/zoneinfo/").map_or(name, |(_, name)| name);
        let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_in_name);
        let value = name.to_owned();
        is_name.then(|| Sourced { value, origin: Origin::environment("TZ") })
    }

    /// Returns the absolute path of a path that the caller names relative to `start`.
    pub(crate) fn named_path(&self, path: &Path) -> PathBuf {
        settled(&settled(&self.start).join(path))
    }

    pub(crate) fn own_file(&self) -> Option<&Path> {
        self.user_file.as_deref().or(self.usual_user_file.as_deref())
    }
}
