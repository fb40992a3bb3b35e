//! Who makes a call.

use std::fmt;
use std::sync::Arc;

use kitbag_contract::ToolName;

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user of this system, on the command line.
    User(Arc<str>),
    /// A client of the server, as far as its identity was proved.
    Client(Arc<str>),
    /// The program that embeds kitbag, by the name that it gives.
    Program(Arc<str>),
    /// Another tool.
    Tool(ToolName),
    /// kitbag itself, to check arguments.
    Host,
}

impl Caller {
    /// The user whose process this is.
    pub fn this_user() -> Self {
        Self::User(kitbag_fs_guard::sys::real_user().to_string().into())
    }

    /// The caller as names in the storage have it: `user/1000`, `client/http`, `program/NAME`.
    /// Two callers have never the same.
    pub fn storage_name(&self) -> String {
        match self {
            Self::User(name) => format!("user/{name}"),
            Self::Client(name) => format!("client/{name}"),
            Self::Program(name) => format!("program/{name}"),
            Self::Tool(name) => format!("tool/{name}"),
            Self::Host => "kitbag".to_owned(),
        }
    }

    /// The caller of such a name. `None`: there is none.
    pub fn from_storage_name(name: &str) -> Option<Self> {
        let (kind, name) = name.split_once('/')?;
        match kind {
            "user" => Some(Self::User(name.into())),
            "client" => Some(Self::Client(name.into())),
            "program" => Some(Self::Program(name.into())),
            _ => None,
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user {name}"),
            Self::Client(name) => write!(f, "client {name}"),
            Self::Program(name) => write!(f, "program {name}"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Host => f.write_str("kitbag"),
        }
    }
}
