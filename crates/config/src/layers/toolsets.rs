//! Toolsets: groups of built-in tools that are switched on and off together, and why a
//! tool is off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::ToolName;

use crate::layers::origin::{Origin, Sourced};
use crate::report::text::{own_file, shown_path};
use crate::trust::workspace::COMMAND;

/// The toolsets, each with the name of its component, as `[toolsets]` has them.
pub const TOOLSETS: [&str; 10] =
    ["learn", "files", "search", "data", "text", "time", "calc", "python", "fetch", "memory"];

/// The toolsets that are off until `[toolsets]` turns them on.
pub const OFF_BY_DEFAULT: [&str; 1] = ["memory"];

/// What `[toolsets]` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolsets {
    /// Whether the built-in tools that change files do so in the workspace. Default
    /// `false`.
    pub write: Sourced<bool>,
    /// The toolsets that are switched on or off, by name.
    pub switches: BTreeMap<&'static str, Sourced<bool>>,
    /// The local time zone of the user: an IANA name, which need not exist. Default: none.
    pub zone: Option<Sourced<String>>,
    /// The file in which a line would turn on what is off.
    pub(crate) file: Arc<Path>,
}

/// Why a tool is not offered, and the line that changes it.
///
/// Reads on after "the tool is": ``disabled by `enable = false` (.kitbag/config.toml:2:10)``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disabled {
    /// Its own table says so.
    #[error("disabled by `enable = false` ({origin})")]
    Tool {
        /// Where.
        origin: Origin,
    },
    /// Its toolset is switched off.
    #[error(
        "disabled by `[toolsets] {toolset} = false` ({origin}); set it to `true` to turn on \
         `{toolset}`"
    )]
    Toolset {
        /// The toolset.
        toolset: &'static str,
        /// Where.
        origin: Origin,
    },
    /// It keeps what a later call reads again, and no configuration lets it.
    #[error(
        "disabled: it stores text that later sessions read; to turn on `{toolset}`, set \
         `[toolsets] {toolset} = true` in `{}`",
        shown_path(file)
    )]
    OffByDefault {
        /// The toolset.
        toolset: &'static str,
        /// The file that would turn it on.
        file: Arc<Path>,
    },
    /// It changes files, and no configuration lets it.
    #[error(
        "disabled: tools that change files are off; to turn them on, set {}",
        write_line(origin, file)
    )]
    Write {
        /// Where `write` is `false`.
        origin: Origin,
        /// The file that would turn it on.
        file: Arc<Path>,
    },
    /// It reads the workspace, and there is none that tools read unasked.
    #[error(
        "disabled: `{}` {}; to turn on `{toolset}` everywhere, set `[toolsets] {toolset} = true` \
         in {}",
        shown_path(root),
        match is_home {
            true => "contains your home directory; choose a workspace with `--workspace DIRECTORY`",
            false => {
                "is not a workspace, because it has no usable `.kitbag` or `.git`; to use it as \
                 one, add `--workspace .`"
            }
        },
        own_file(file.as_deref())
    )]
    NoWorkspace {
        /// The toolset.
        toolset: String,
        /// Where the workspace would be; absolute.
        root: PathBuf,
        /// Whether that is `/`, or holds the home directory.
        is_home: bool,
        /// The user's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// It cannot do without a grant that no configuration gives it.
    #[error(
        "disabled: it needs a grant; {}",
        match empty {
            Some(origin) => format!("add one as in `{setting}` to the list at {origin}"),
            None => format!(
                "add `{setting}` under `[tools.{tool}.grants]` in {}",
                own_file(file.as_deref())
            ),
        }
    )]
    NotGranted {
        /// The tool.
        tool: ToolName,
        /// Such a grant, as it stands in a file.
        setting: String,
        /// Where a list stands that grants nothing of the kind.
        empty: Option<Origin>,
        /// The user's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// A server does not offer it.
    #[error("not served: no pattern of `{key}` ({origin}) matches it")]
    NotServed {
        /// `[serve] tools` or `--tools`.
        key: &'static str,
        /// Where the patterns stand.
        origin: Origin,
    },
    /// It is another name, which the user's own file does not give, for a tool that this file
    /// turns off.
    #[error("disabled: it is another name for `{other}`, which is {reason}")]
    Alias {
        /// The name in the user's own file.
        other: ToolName,
        /// Why that one is off.
        reason: Box<Disabled>,
    },
    /// Its code is that of a workspace that no person trusts.
    #[error("disabled: its workspace is not trusted; `{COMMAND}` shows its requests")]
    Untrusted,
    /// There is a mistake in what its name stands for.
    #[error("broken: {reason}")]
    Broken {
        /// The mistake, with its place.
        reason: Arc<str>,
    },
    /// There is a mistake in what may restrict it.
    #[error("off, because settings that may restrict it cannot be read: {reason}")]
    Unrestricted {
        /// The mistake, with its place.
        reason: Arc<str>,
    },
    /// It asks for more than a person trusted, since an edit of its workspace.
    #[error("off because {cause}; run `{COMMAND}`")]
    Edited {
        /// The edit.
        cause: String,
    },
    /// It is a script, and nothing in this binary runs one.
    #[error("disabled: it is a script, and this kitbag was built without `python`")]
    NoPython,
    /// It changes files, which it cannot in this workspace.
    #[error("disabled: it changes files, and {reason}")]
    NeverWritable {
        /// Why no grant can be given.
        reason: String,
    },
}

impl Disabled {
    /// Whether trust in the workspace would turn the tool on.
    pub fn is_trust(&self) -> bool {
        matches!(self, Self::Untrusted | Self::Edited { .. })
    }
}

impl Toolsets {
    /// Why a toolset is off as a whole, where it is.
    pub fn disabled(&self, name: &str) -> Option<Disabled> {
        match self.switches.get_key_value(name) {
            Some((_, Sourced { value: true, .. })) => None,
            Some((toolset, Sourced { origin, .. })) => {
                Some(Disabled::Toolset { toolset, origin: origin.clone() })
            }
            None => {
                let toolset = OFF_BY_DEFAULT.into_iter().find(|toolset| *toolset == name)?;
                Some(Disabled::OffByDefault { toolset, file: Arc::clone(&self.file) })
            }
        }
    }
}

impl Default for Toolsets {
    fn default() -> Self {
        let file = Arc::from(Path::new(""));
        Self { write: Sourced::default(false), switches: BTreeMap::new(), zone: None, file }
    }
}

fn write_line(origin: &Origin, file: &Path) -> String {
    match origin {
        Origin::Default => format!("`[toolsets] write = true` in `{}`", shown_path(file)),
        origin => format!("`[toolsets] write` to `true` ({origin})"),
    }
}
