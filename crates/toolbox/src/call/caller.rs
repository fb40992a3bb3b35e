//! The caller of a call.

use std::fmt;
use std::sync::Arc;

use kitbag_contract::ToolName;

/// The caller of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user of this system, on the command line.
    User(Arc<str>),
    /// A client of the server, identified to the extent that its identity was verified.
    Client(Arc<str>),
    /// A person who shares a server with others, by the name of their token.
    Person(Arc<str>),
    /// The program that embeds kitbag, by the name that it declares.
    Program(Arc<str>),
    /// Another tool.
    Tool(ToolName),
    /// kitbag itself, which checks arguments.
    Host,
}

impl Caller {
    /// Returns the user that runs this process.
    pub fn this_user() -> Self {
        Self::User(kitbag_fs_guard::sys::real_user().to_string().into())
    }

    /// Returns the caller's name in the storage: `user/1000`, `client/http`,
    /// `person/NAME`, `program/NAME`. The
    /// name is unique to the caller.
    pub fn storage_name(&self) -> String {
        match self {
            Self::User(name) => format!("user/{name}"),
            Self::Client(name) => format!("client/{name}"),
            Self::Person(name) => format!("person/{name}"),
            Self::Program(name) => format!("program/{name}"),
            Self::Tool(name) => format!("tool/{name}"),
            Self::Host => "kitbag".to_owned(),
        }
    }

    /// Returns the caller with this name in the storage. `None` if there is none.
    pub fn from_storage_name(name: &str) -> Option<Self> {
        let (kind, name) = name.split_once('/')?;
        match kind {
            "user" => Some(Self::User(name.into())),
            "client" => Some(Self::Client(name.into())),
            "person" => Some(Self::Person(name.into())),
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
            Self::Person(name) => write!(f, "person {name}"),
            Self::Program(name) => write!(f, "program {name}"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Host => f.write_str("kitbag"),
        }
    }
}
