//! Errors of loading a component.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kitbag_base::format_duration;
use kitbag_base::text::shown;
use kitbag_base::{ByteSize, ContentDigest};
use kitbag_contract::{ErrorKind, Pin};
use kitbag_fs_guard::{Distrust, OpenError, OwnerError};

use crate::inspect::Omission;
use crate::metering::Metering;

/// Why a component cannot be loaded.
///
/// Implements `Clone`, since several callers may receive the same error.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// The file does not exist.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// The path of the file.
        path: PathBuf,
    },
    /// The path is a directory, a FIFO, a device or a socket.
    #[error("`{}` is {found}, not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// The type of the object, with its article.
        found: &'static str,
    },
    /// The path contains a symbolic link that a tool could have created.
    #[error(
        "`{}` is a symbolic link, which is not followed because a tool may write it; name its \
         target",
        path.display()
    )]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
    /// Another user could have written or placed the file.
    #[error(
        "kitbag does not run `{}`, because another user can change it: `{}` {reason}; {}, or add \
         its directory to `[trust] directories` in your user config",
        path.display(),
        found.display(),
        reason.remedy()
    )]
    Distrusted {
        /// The path of the file.
        path: PathBuf,
        /// The file or one of its parent directories.
        found: PathBuf,
        /// Why it is not trusted.
        reason: Distrust,
    },
    /// The component differs from the recorded one.
    #[error(
        "kitbag does not run `{}`, because it differs from the recorded component: its digest is \
         `{}…`, but {} has `{}…`; `{}` shows the difference",
        path.display(),
        beginning(found),
        pin.recorded_in,
        beginning(&pin.digest),
        pin.renewed_by
    )]
    Pinned {
        /// The path of the file.
        path: PathBuf,
        /// The digest of the file.
        found: ContentDigest,
        /// The expected digest.
        pin: Box<Pin>,
    },
    /// The file cannot be read.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },
    /// The file is too large to be compiled.
    #[error("`{}` has {size}; a component may have at most {limit}", path.display())]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The size of the file.
        size: ByteSize,
        /// The size limit.
        limit: ByteSize,
    },
    /// The file is not a component that kitbag can run.
    #[error("`{}`: {problem}", path.display())]
    Invalid {
        /// The path of the file, or the name of an embedded tool.
        path: PathBuf,
        /// The problem.
        problem: InvalidComponent,
    },
    /// The component must be compiled, but this build has no compiler.
    #[error(
        "this kitbag was built without the feature `compiler` and runs only its built-in tools and \
         components that another kitbag of the same version has compiled into the cache"
    )]
    NoCompiler,
    /// A built-in tool has no native code for such a call, and this build has no compiler.
    #[error(
        "the built-in `{name}` must be compiled {}, but this kitbag was built without the feature \
         `compiler`, and the cache has no entry for it; use a kitbag with a compiler, which also \
         fills the cache{}",
        match metering {
            Metering::Off => "first",
            Metering::Fuel => "to count its instructions",
        },
        match metering {
            Metering::Off => "",
            Metering::Fuel => ", or remove the limit `fuel`",
        }
    )]
    BuiltinUncompiled {
        /// The name of its component.
        name: &'static str,
        /// The metering of the call.
        metering: Metering,
    },
    /// The component must be compiled, but the limit of concurrent compilations is reached.
    #[error("busy: the limit of concurrent compilations is reached; try again later")]
    Busy,
    /// The component must be compiled, but calls and other compilations have reserved the memory of
    /// the server.
    #[error(
        "busy: calls and compilations in progress leave no room for the {size} that compiling `{}` \
         may take; try again later, or raise `memory` under `[serve]`",
        path.display()
    )]
    NoCompilerMemory {
        /// The path of the file.
        path: PathBuf,
        /// The memory limit of the compilation.
        size: ByteSize,
    },
    /// Loaded components leave no memory for the component.
    #[error(
        "busy: the components that are in use leave no room for the {size} of code of `{}`; try \
         again later, or raise `memory` under `[serve]`",
        path.display()
    )]
    NoMemory {
        /// The path of the file.
        path: PathBuf,
        /// The size of the native code.
        size: ByteSize,
    },
    /// The compiling process ended without a result.
    #[error("`{}`: the compiler ended without a result: {reason}", path.display())]
    Compiler {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The call was cancelled during compilation.
    #[error("cancelled")]
    Cancelled,
    /// The engine cannot be started.
    #[error("the engine cannot be started: {0}")]
    Engine(String),
}

impl LoadError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::MissingFile,
            Self::Link { .. } => ErrorKind::Link,
            Self::Distrusted { .. } => ErrorKind::Distrusted,
            Self::Pinned { .. } => ErrorKind::Changed,
            Self::Busy | Self::NoMemory { .. } | Self::NoCompilerMemory { .. } => {
                ErrorKind::LoadBusy
            }
            Self::Compiler { .. } => ErrorKind::Compiler,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Engine(_) => ErrorKind::System,
            Self::NotAFile { .. }
            | Self::Unreadable { .. }
            | Self::TooLarge { .. }
            | Self::Invalid { .. }
            | Self::NoCompiler
            | Self::BuiltinUncompiled { .. } => ErrorKind::Component,
        }
    }
}

/// Why a file is not a component that kitbag can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidComponent {
    /// The file is empty.
    #[error("the file is empty; a tool is a WebAssembly component")]
    Empty,
    /// The file does not start like WebAssembly.
    #[error("this is not WebAssembly; a tool is a component, built for `wasm32-wasip2`")]
    NotWasm,
    /// The file is native code.
    #[error(
        "this is a precompiled artifact, native code that kitbag never loads from a file; \
         name the component it was made from"
    )]
    Precompiled,
    /// The file is a core module for an unknown host.
    #[error(
        "this is a core WebAssembly module that kitbag cannot call{}; kitbag runs modules with \
         `_start` for WASI preview 1; build other tools as components, for `wasm32-wasip2`",
        has(items)
    )]
    Module {
        /// The modules from which it imports, and its exports.
        items: Vec<String>,
    },
    /// The module cannot be translated to a component.
    #[error("the module cannot be translated to a component: {0}")]
    Translate(String),
    /// The component has an item of a name that only kitbag may use.
    #[error("the component has `{}`, a name that is reserved for kitbag", shown(name))]
    Reserved {
        /// The name.
        name: String,
    },
    /// The file is truncated or violates the format.
    #[error("this is not a valid component: {0}")]
    Malformed(String),
    /// The component uses a feature of WebAssembly that is disabled.
    #[error("the component needs a feature of WebAssembly that this kitbag does not offer: {0}")]
    Feature(String),
    /// The component is made for another release of WASI 0.3.
    #[error(
        "the component needs WASI {}, which this kitbag does not offer; build it for WASI 0.3.0, \
         or for WASI 0.2 with the target `wasm32-wasip2`",
        shown(version)
    )]
    WasiVersion {
        /// The version.
        version: String,
    },
    /// The component has no export that kitbag can call.
    #[error(
        "the component has no export that kitbag can call{}; a tool exports the world `tool` of \
         `wit/tool.wit`, in Rust with `kitbag_sdk::export!`, or is a command with `wasi:cli/run`",
        made_for(other)
    )]
    NoRun {
        /// Imports and exports of another host.
        other: Vec<String>,
    },
    /// The component exports functions, but none that can be called with JSON.
    #[error("the component exports no function that kitbag can call{}", omissions(omitted))]
    NoFunction {
        /// The exported functions.
        omitted: Vec<Omission>,
    },
    /// A function of IronClaw's interfaces has a type that no known version has.
    #[error(
        "the component is made for IronClaw, but the type of `{}` in `{}` is not that of the versions \
         0.2 to 0.4.1, which this kitbag supports",
        shown(function),
        shown(interface)
    )]
    AgentType {
        /// The name of the interface, with its version.
        interface: String,
        /// The name of the function.
        function: String,
    },
    /// The type of `run` is not that of a tool.
    #[error(
        "the type of the component's `run` is not that of a tool\n   found: {found}\nexpected: {expected}"
    )]
    RunType {
        /// The actual type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// The component was built for an unknown version of the contract.
    #[error(
        "the component was built for version {found} of the contract `{package}`, but this kitbag \
         supports {known}; rebuild the tool or use another version of kitbag"
    )]
    ContractVersion {
        /// The name of the package.
        package: &'static str,
        /// The version that the component was built for.
        found: String,
        /// The supported version.
        known: &'static str,
    },
    /// The component has imports that are not provided.
    #[error(
        "the component imports {}, which kitbag does not provide{}",
        list(imports),
        advice(imports)
    )]
    Imports {
        /// The names of the imports.
        imports: Vec<String>,
    },
    /// An import of the contract has another type.
    #[error(
        "the component imports `{import}` with a different type of `{}`\n   found: {found}\nexpected: \
         {expected}",
        shown(function)
    )]
    ImportType {
        /// The name of the import.
        import: String,
        /// The name of the function.
        function: String,
        /// The actual type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A function is larger than compilers generate.
    #[error("a function of the component has {size}, which exceeds the limit of {limit}; split it")]
    LargeFunction {
        /// The size of the function.
        size: ByteSize,
        /// The size limit.
        limit: ByteSize,
    },
    /// Compiling a function would take more memory than for any compiler-generated function.
    #[error("a function of the component {what} than {limit}, which is the limit; split it")]
    HeavyFunction {
        /// The exceeded property.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The component has more declarations than compilers generate.
    #[error("the component has more than {limit} {what}, which is the limit; split it")]
    ManyDeclarations {
        /// The exceeded property.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The instances would take more memory or time than those of compiler-generated components.
    #[error(
        "all instances of the component's modules together {what} {size}, which exceeds the \
         limit of {limit}; instantiate fewer or smaller modules"
    )]
    LargeInstances {
        /// The exceeded property.
        what: &'static str,
        /// The size, rounded up.
        size: ByteSize,
        /// The size limit.
        limit: ByteSize,
    },
    /// Compiling the component takes too long.
    #[error(
        "the component takes longer than {} to compile; allow more with `limits.compile` of the \
         tool, within the ceiling in the user config",
        format_duration(*limit)
    )]
    TooSlow {
        /// The time limit: [`Limits::compile`](kitbag_contract::Limits::compile).
        limit: Duration,
    },
    /// Compiling the component takes too much memory.
    #[error("the component needs more than {limit} of memory to compile")]
    TooMuchMemory {
        /// The memory limit.
        limit: ByteSize,
    },
    /// The compiler refused the component.
    #[error("the component cannot be compiled: {0}")]
    Compile(String),
}

impl InvalidComponent {
    /// Returns true if compiling took too long, but may take longer now.
    pub fn has_more_time(&self, time: Duration) -> bool {
        matches!(self, Self::TooSlow { limit } if *limit < time)
    }
}

impl LoadError {
    /// Creates the error for an invalid component.
    pub fn invalid(path: &Path, problem: InvalidComponent) -> Self {
        Self::Invalid { path: path.to_owned(), problem }
    }

    /// Converts an error of opening a component's file.
    pub fn from_open(path: &Path, error: OpenError) -> Self {
        match error {
            OpenError::Link { path } => Self::Link { path },
            OpenError::Io(error) => Self::from_io(path, &error),
            OpenError::Kernel { .. } => {
                Self::Unreadable { path: path.to_owned(), reason: error.to_string() }
            }
        }
    }

    /// Converts an error of opening a file with an owner check.
    pub fn from_owner(path: &Path, error: OwnerError) -> Self {
        match error {
            OwnerError::Open(error) => Self::from_open(path, error),
            OwnerError::Distrusted { path: found, reason } => {
                Self::Distrusted { path: path.to_owned(), found, reason }
            }
        }
    }

    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            _ => Self::Unreadable { path, reason: error.to_string() },
        }
    }
}

/// Returns a prefix of a digest that is long enough for people.
fn beginning(digest: &ContentDigest) -> String {
    digest.to_string()[..12].to_owned()
}

/// Formats the first of these names and the number of others.
fn list(imports: &[String]) -> String {
    const MOST: usize = 10;
    let (named, others) = imports.split_at(imports.len().min(MOST));
    let named: Vec<_> = named.iter().map(|import| format!("`{}`", shown(import))).collect();
    match others.len() {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}

/// The hosts whose tools kitbag does not run, by the prefix of their interfaces.
const HOSTS: [(&str, &str); 5] = [
    ("act:", "ACT"),
    ("near:agent/", "IronClaw"),
    ("wasi:http/incoming-handler", "an HTTP server"),
    ("wasi:http/handler", "an HTTP server"),
    ("spin:", "Spin"),
];

/// Names the host that a component was made for, by its interfaces.
fn made_for(names: &[String]) -> String {
    let host = HOSTS.iter().find(|(prefix, _)| names.iter().any(|name| name.starts_with(prefix)));
    match (names, host) {
        ([], _) => String::new(),
        (names, None) => format!(": it is made for another host, with {}", list(names)),
        (names, Some((_, host))) => format!(": it is made for {host}, with {}", list(names)),
    }
}

/// Names the items of a module.
fn has(items: &[String]) -> String {
    let has = |name: &str| items.iter().any(|item| item == name);
    match items {
        [] => ": it has no imports and exports".to_owned(),
        items if has("handle") && has("allocate") => format!(
            ": it is made for clawhive, whose design does not define the types of its functions and \
             the length of a result; it has {}",
            list(items)
        ),
        items => format!(": it has {}", list(items)),
    }
}

/// Names functions and the reasons why they cannot be called.
fn omissions(omitted: &[Omission]) -> String {
    const MOST: usize = 5;
    let reasons: Vec<_> = omitted.iter().map(ToString::to_string).collect();
    match reasons.get(..MOST) {
        None if reasons.is_empty() => String::new(),
        None => format!(": {}", reasons.join(", ")),
        Some(first) => format!(": {}, …", first.join(", ")),
    }
}

/// Returns advice about an import, if known.
fn advice(imports: &[String]) -> String {
    let any = |prefix: &str| imports.iter().any(|import| import.starts_with(prefix));
    if any("extism:host/user::") {
        "; the functions of `extism:host/user` are those of the plugin's own host".into()
    } else if any("blufio::") {
        "; Blufio has no such function".into()
    } else if any("wasi:") {
        "; it provides WASI 0.2 and 0.3.0: cli, clocks, filesystem, http for requests, io, random, and \
         sockets without a network"
            .into()
    } else {
        "; build the tool for `wasm32-wasip2` with imports from WASI 0.2 only".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_native_code_names_compiler_and_cache() {
        let error = LoadError::BuiltinUncompiled { name: "learn", metering: Metering::Fuel };
        assert_eq!(
            error.to_string(),
            "the built-in `learn` must be compiled to count its instructions, but this kitbag was \
             built without the feature `compiler`, and the cache has no entry for it; use a kitbag \
             with a compiler, which also fills the cache, or remove the limit `fuel`"
        );
    }
}
