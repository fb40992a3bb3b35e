//! Toolsets: groups of built-in tools that are switched on and off together. Also the reasons why a
//! tool is off.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_base::shell;
use kitbag_base::text::shown_path;
use kitbag_contract::ToolName;
use kitbag_policy::server::ServerName;

use crate::layers::origin::{Origin, Sourced};
use crate::report::text::own_file;
use crate::trust::workspace::COMMAND;

/// The toolsets, each with the name of its component, in the order of `[toolsets]`.
pub const TOOLSETS: [&str; 10] =
    ["learn", "files", "search", "data", "text", "time", "calc", "python", "fetch", "memory"];

/// The toolsets that are off unless `[toolsets]` turns them on.
pub const OFF_BY_DEFAULT: [&str; 1] = ["memory"];

/// The settings of `[toolsets]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolsets {
    /// `true` lets the built-in tools that change files change files in the workspace. Default
    /// `false`.
    pub write: Sourced<bool>,
    /// The toolsets that are switched on or off, by name.
    pub switches: BTreeMap<&'static str, Sourced<bool>>,
    /// The local time zone of the user: an IANA name, which need not exist. Default: none.
    pub zone: Option<Sourced<String>>,
    /// The file to edit to turn a toolset on.
    pub(crate) file: Arc<Path>,
}

/// The reason why a tool is not offered, and the line that changes it.
///
/// Completes the sentence "the tool is …": ``disabled by `enable = false`
/// (.kitbag/config.toml:2:10)``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Disabled {
    /// The tool's own table disables it.
    #[error("disabled by `enable = false` ({origin})")]
    Tool {
        /// The place of `enable`.
        origin: Origin,
    },
    /// The tool's toolset is switched off.
    #[error(
        "disabled by `[toolsets] {toolset} = false` ({origin}); set it to `true` to turn on \
         `{toolset}`"
    )]
    Toolset {
        /// The toolset.
        toolset: &'static str,
        /// The place of the switch.
        origin: Origin,
    },
    /// The tool stores data that later calls read, and no configuration turns it on.
    #[error(
        "disabled: it stores text that later sessions read; to turn on `{toolset}`, set \
         `[toolsets] {toolset} = true` in `{}`",
        shown_path(file)
    )]
    OffByDefault {
        /// The toolset.
        toolset: &'static str,
        /// The file to edit to turn it on.
        file: Arc<Path>,
    },
    /// The tool changes files, and no configuration allows that.
    #[error(
        "disabled: tools that change files are off; to turn them on, set {}",
        write_line(origin, file)
    )]
    Write {
        /// The place of `write = false`.
        origin: Origin,
        /// The file to edit to turn it on.
        file: Arc<Path>,
    },
    /// The tool reads the workspace, but tools read no workspace here by default.
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
        /// The root of the presumed workspace; absolute.
        root: PathBuf,
        /// `true` if the root is `/` or contains the home directory.
        is_home: bool,
        /// The path of the user config, if it is known.
        file: Option<Arc<Path>>,
    },
    /// The tool requires a grant that no configuration gives it.
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
        /// An example of such a grant, as it is written in a file.
        setting: String,
        /// The place of a list of this kind that grants nothing.
        empty: Option<Origin>,
        /// The path of the user config, if it is known.
        file: Option<Arc<Path>>,
    },
    /// The server does not offer the tool.
    #[error("not served: no pattern of `{key}` ({origin}) matches it")]
    NotServed {
        /// `[serve] tools`, `--tools`, or the `tools` of a person.
        key: Cow<'static, str>,
        /// The place of the patterns.
        origin: Origin,
    },
    /// The name is a workspace's other name for a tool that the user config turns off.
    #[error("disabled: it is another name for `{other}`, which is {reason}")]
    Alias {
        /// The name in the user config.
        other: ToolName,
        /// The reason why the tool is off under that name.
        reason: Box<Disabled>,
    },
    /// The code of the tool belongs to an untrusted workspace.
    #[error("disabled: its workspace is not trusted; `{COMMAND}` shows its requests")]
    Untrusted,
    /// A setting of an untrusted workspace would turn the tool on.
    #[error(
        "disabled: `{setting}` ({origin}) takes effect once you trust the workspace; run \
         `{COMMAND}`"
    )]
    UntrustedSwitch {
        /// The setting, as it is written in the file.
        setting: String,
        /// The place of the setting.
        origin: Origin,
    },
    /// The definition of the tool has a mistake.
    #[error("broken: {reason}")]
    Broken {
        /// The mistake, with its place.
        reason: Arc<str>,
    },
    /// A setting that may restrict the tool has a mistake.
    #[error("off, because settings that may restrict it cannot be read: {reason}")]
    Unrestricted {
        /// The mistake, with its place.
        reason: Arc<str>,
    },
    /// The tool requests more than a person trusted, because of an edit of its workspace.
    #[error("off because {cause}; run `{COMMAND}`")]
    Edited {
        /// The edit.
        cause: String,
    },
    /// The server of the tool is off.
    #[error("off with its server `{server}`, which is {reason}")]
    Server {
        /// The server.
        server: ServerName,
        /// The reason why the server is off.
        reason: Box<Disabled>,
    },
    /// The server has no record, so its tools are not known.
    #[error(
        "not added yet; to see its tools and record them, run `{}`",
        shell::command(["kitbag", "update", server.as_str()])
    )]
    NotRecorded {
        /// The server.
        server: ServerName,
    },
    /// The server belongs to a workspace, and is not within the ceiling of the user config.
    #[error("disabled: {reason}")]
    BeyondCeiling {
        /// The access beyond the ceiling, and the way to allow it.
        reason: Arc<str>,
    },
    /// The tool is a script, and this binary has no Python.
    #[error("disabled: it is a script, and this kitbag was built without `python`")]
    NoPython,
    /// The tool changes files, which is not possible in this workspace.
    #[error("disabled: it changes files, and {reason}")]
    NeverWritable {
        /// The reason why write access cannot be granted.
        reason: String,
    },
}

impl Disabled {
    /// Returns whether trust in the workspace would turn the tool on.
    pub fn is_trust(&self) -> bool {
        match self {
            Self::Untrusted | Self::UntrustedSwitch { .. } | Self::Edited { .. } => true,
            Self::Server { reason, .. } => reason.is_trust(),
            _ => false,
        }
    }
}

impl Toolsets {
    /// Returns the reason why a whole toolset is off, if it is.
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
