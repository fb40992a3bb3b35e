//! What the caller hands over: this crate reads nothing else of its surroundings.

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
        /// Every variable of the environment that means something to kitbag.
        ///
        /// Any other name that starts with `KITBAG_` is a warning. Those of limits are read
        /// here; the others are for the caller to act on.
        pub const VARIABLES: [&str; LIMITS + 6] = [
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

/// The variable by which the files of the workspace count: `1`, or `0` as if it were not set.
pub const TRUST_VARIABLE: &str = "KITBAG_TRUST_WORKSPACE";

/// How it is known whether the files of the workspace count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustSource {
    /// By [`TRUST_VARIABLE`], else by `[trust] workspaces` of the user's own file, else by the
    /// record in the state directory. Without any of them they do not.
    #[default]
    Recorded,
    /// The caller says whether they do.
    Said(Sourced<bool>),
    /// They are read as if they did, to show a person what they ask, and nothing is to be run.
    Asked,
}

/// Where configuration comes from, and what it is measured against.
#[derive(Clone, Debug, Default)]
pub struct Sources<'a> {
    /// Directory from which the workspace is looked for upwards; absolute.
    pub start: PathBuf,
    /// The workspace where it was named, and by what. Nothing is looked for
    /// then. Relative to `start`.
    pub workspace: Option<Sourced<PathBuf>>,
    /// The person's own `config.toml`; absolute. It must exist, so this is
    /// `None` where there is none.
    pub user_file: Option<PathBuf>,
    /// Where the person's own `config.toml` would be, whether it exists or not;
    /// absolute. It is not read: messages name it where `user_file` is `None`.
    pub usual_user_file: Option<PathBuf>,
    /// Where kitbag keeps what it has to remember, and by what; absolute. `None`:
    /// nowhere. No tool may change it.
    pub state: Option<Sourced<PathBuf>>,
    /// How it is known whether the files of the workspace count.
    pub trust: TrustSource,
    /// A configuration that is read instead of a file, to check it before it is written.
    pub proposal: Option<Proposal>,
    /// What `~/` stands for; absolute.
    pub home: Option<PathBuf>,
    /// The variables of the environment that start with `KITBAG_`, with their
    /// values. Others are ignored, and so are empty values of known ones.
    pub environment: Vec<(String, String)>,
    /// The variables of the environment that tools can be granted. `None`: there are none.
    pub variables: Option<&'a Variables>,
    /// What the command line grants a tool for one call.
    pub call_grants: Option<CallGrants>,
    /// Limits given on the command line.
    pub flags: LimitFlags,
    /// The built-in tools.
    pub builtins: &'a [BuiltinTool<'a>],
    /// A tool that no configuration names. It takes the place of one of the same name.
    pub component: Option<ComponentTool>,
    /// A script that no configuration names. It takes the place of a tool of the same name.
    pub script: Option<ScriptFile>,
    /// The tools whose components the embedding program brings as bytes. Tables of their
    /// names configure them; no other tool has such a name.
    pub bytes_tools: Vec<ToolName>,
    /// Whether a mistake in the user's own file is isolated, too, as one in a workspace is by
    /// [`load_isolated`](crate::load_isolated).
    pub isolates_own: bool,
    /// Whether the tools are for a server: then `[serve] tools` chooses those that its
    /// clients are offered.
    pub is_server: bool,
    /// The tools that a server offers, by names or globs, and by what. Instead of what is
    /// configured.
    pub served_tools: Option<Sourced<Vec<String>>>,
    /// Files and directories of the caller's own secrets, which no tool reads or changes:
    /// absolute, and they need not exist. The state directory, the store of secrets and its
    /// key need not be named.
    pub private: Vec<PathBuf>,
    /// Directories and files that no tool may change, such as the compile cache
    /// and the trust store; absolute, and they need not exist. The files that
    /// are read here, `.git` and `.kitbag` need not be named.
    pub protected: Vec<PathBuf>,
}

/// A configuration that is read instead of the file of its layer, whether that exists or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Whose file it is: the user's own, or that of the workspace.
    pub layer: Layer,
    /// The text of the whole file.
    pub text: String,
}

/// Grants of the command line, for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallGrants {
    /// The tool that is called.
    pub tool: String,
    /// The grants, each as `KIND=GRANT`: `http=https://api.github.com/**`, `http={ url = "…" }`,
    /// `env=LANG`, `storage` or `storage=1MiB`, `tools=search=search_files` or `tools=caller`.
    pub grants: Vec<String>,
}

/// Variables of the environment, which tools are granted by name. `Debug` shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<OsString, OsString>);

pub(crate) enum VariableValue {
    /// It can be given to a guest.
    Text(Arc<str>),
    /// It cannot, and why.
    Unusable(&'static str),
}

/// A tool whose component was named instead of configured. It has the grants
/// and limits of a tool of which configuration says nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentTool {
    /// The name that it is called by.
    pub name: ToolName,
    /// The file of its component. Relative to [`Sources::start`].
    pub wasm: PathBuf,
}

/// A tool whose script was named instead of configured. It has the grants and limits of a
/// script in `.kitbag/scripts` of which configuration says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// The name that it is called by.
    pub name: ToolName,
    /// The file. Relative to [`Sources::start`].
    pub path: PathBuf,
}

/// The built-in tool that runs scripts, by its own name.
pub const PYTHON: &str = "python";

/// A built-in tool, as far as configuration has to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuiltinTool<'a> {
    /// Its own name.
    pub name: &'a str,
    /// The group that `[toolsets]` switches it with: one of [`TOOLSETS`](crate::TOOLSETS).
    /// One that is none of them is always on.
    pub toolset: &'a str,
    /// What it asks of the workspace, which it gets where it is on and configuration says
    /// nothing.
    pub workspace: Option<Access>,
    /// Whether it keeps something between its calls, for which it gets the default of storage
    /// where it is on and configuration says nothing of that.
    pub keeps: bool,
    /// Guest paths of the directories that are given to each of its calls.
    pub given_by_call: &'a [&'a str],
    /// The kinds of grants that it cannot do without, each as a line of `grants` in TOML:
    /// it is off where it is granted nothing of one and configuration does not turn it on.
    pub required: &'a [&'a str],
    /// Whether it asks for the tools that its caller may call, which it gets where
    /// configuration says nothing.
    pub calls: bool,
}

impl BuiltinTool<'_> {
    /// How many calls of other tools one call makes of a built-in that may make any.
    pub(crate) const CALLS: u64 = 200;

    /// The memory that its documented inputs take, if that is more than the default: a document
    /// of 16 MiB as values, a page or a text of 16 MiB with its result, and the snapshot of Python
    /// with the objects of a script.
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
    /// A tool that asks for nothing, in a toolset of its own.
    fn from(name: &'a str) -> Self {
        Self { name, toolset: name, ..Self::default() }
    }
}

impl Variables {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<VariableValue> {
        let value = self.0.get(OsStr::new(name))?;
        Some(match value.to_str() {
            None => VariableValue::Unusable("is not UTF-8"),
            Some(value) if value.len() > VariableGrant::VALUE_BYTES => {
                VariableValue::Unusable("has more than 32 KiB, the most that a tool is given")
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

    /// The local time zone as the variable `TZ` names it: `Europe/Paris`, also with `:` or the
    /// path of the zone's file in front.
    pub(crate) fn local_zone(&self) -> Option<Sourced<String>> {
        let VariableValue::Text(text) = self.variables?.get("TZ")? else { return None };
        let name = text.strip_prefix(':').unwrap_or(&text);
        let name = name.rsplit_once("/zoneinfo/").map_or(name, |(_, name)| name);
        let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/".contains(&byte);
        let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_in_name);
        let value = name.to_owned();
        is_name.then(|| Sourced { value, origin: Origin::environment("TZ") })
    }

    /// The absolute path of what the caller names relative to `start`.
    pub(crate) fn named_path(&self, path: &Path) -> PathBuf {
        settled(&settled(&self.start).join(path))
    }

    pub(crate) fn own_file(&self) -> Option<&Path> {
        self.user_file.as_deref().or(self.usual_user_file.as_deref())
    }
}
