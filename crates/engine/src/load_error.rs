//! Why a component cannot be loaded.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kitbag_base::format_duration;
use kitbag_base::text::shown;
use kitbag_base::{ByteSize, ContentDigest};
use kitbag_contract::{ErrorKind, Pin};
use kitbag_fs_guard::{Distrust, OpenError, OwnerError};

use crate::metering::Metering;

/// A component that cannot be loaded.
///
/// One message serves every caller, so this can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such file.
    #[error("`{}` does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// It is there, but it is a directory, a FIFO, a device or a socket.
    #[error("`{}` is {found}, not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        found: &'static str,
    },
    /// There is a symbolic link on the way to it, which a tool could have made.
    #[error(
        "`{}` is a symbolic link, which is not followed where a tool may write; name the file that \
         it leads to",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Another user can have written it, or put it there.
    #[error(
        "`{}` is not run, since another user can change it: `{}` {reason}; {}, or add the directory \
         that holds it to `[trust] directories` in your own configuration",
        path.display(),
        found.display(),
        reason.remedy()
    )]
    Distrusted {
        /// The file.
        path: PathBuf,
        /// The file, or a directory on the way to it.
        found: PathBuf,
        /// Why that does not count.
        reason: Distrust,
    },
    /// It is not the component that was recorded.
    #[error(
        "`{}` is not run, since it is another component than the recorded one: its digest is \
         `{}…`, and {} has `{}…`; `{}` shows the difference",
        path.display(),
        beginning(found),
        pin.recorded_in,
        beginning(&pin.digest),
        pin.renewed_by
    )]
    Pinned {
        /// The file.
        path: PathBuf,
        /// The digest of what is there.
        found: ContentDigest,
        /// The digest that it must have.
        pin: Box<Pin>,
    },
    /// It cannot be read.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
    },
    /// It is too large to be compiled.
    #[error("`{}` has {size}; a component may have at most {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: ByteSize,
        /// The largest size.
        limit: ByteSize,
    },
    /// It is no component that kitbag can run.
    #[error("`{}`: {problem}", path.display())]
    Invalid {
        /// The file, or the name of an embedded tool.
        path: PathBuf,
        /// What is wrong with it.
        problem: InvalidComponent,
    },
    /// It would have to be compiled, and this build has no compiler.
    #[error(
        "this kitbag was built without the feature `compiler` and runs only its built-in tools and \
         what another kitbag of the same version has compiled into the cache"
    )]
    NoCompiler,
    /// A built-in tool has no native code for such a call, and this build has no compiler.
    #[error(
        "the built-in `{name}` has to be compiled {}, this kitbag was built without the feature \
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
        /// Whether it is to count its instructions.
        metering: Metering,
    },
    /// It would have to be compiled, and as many components are being compiled as
    /// may be at once.
    #[error("busy: as many components are being compiled as may be at once; try again later")]
    Busy,
    /// It would have to be compiled, and calls and other compilations have reserved the
    /// memory of the server.
    #[error(
        "busy: calls and compilations in progress leave no room for the {size} that compiling `{}` \
         may take; try again later, or raise `memory` under `[serve]`",
        path.display()
    )]
    NoCompilerMemory {
        /// The file.
        path: PathBuf,
        /// How much compiling it may take.
        size: ByteSize,
    },
    /// The components that are loaded leave no memory for it.
    #[error(
        "busy: the components that are in use leave no room for the {size} of code of `{}`; try \
         again later, or raise `memory` under `[serve]`",
        path.display()
    )]
    NoMemory {
        /// The file.
        path: PathBuf,
        /// The size of its code.
        size: ByteSize,
    },
    /// The process that compiled it ended without a result.
    #[error("`{}`: the compiler ended without a result: {reason}", path.display())]
    Compiler {
        /// The file.
        path: PathBuf,
        /// How it ended.
        reason: String,
    },
    /// It was being compiled when the call was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The engine could not be started.
    #[error("the engine cannot be started: {0}")]
    Engine(String),
}

impl LoadError {
    /// The kind of the error.
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

/// Why a file is no component that kitbag can run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidComponent {
    /// The file is empty.
    #[error("the file is empty; a tool is a WebAssembly component")]
    Empty,
    /// It does not start like WebAssembly.
    #[error("this is not WebAssembly; a tool is a component, built for `wasm32-wasip2`")]
    NotWasm,
    /// It holds native code.
    #[error(
        "this is a precompiled artifact, native code that kitbag never loads from a file; \
         name the component it was made from"
    )]
    Precompiled,
    /// It is a core module.
    #[error(
        "this is a core WebAssembly module, not a component; build it for `wasm32-wasip2`, or wrap \
         it with `wasm-tools component new`"
    )]
    CoreModule,
    /// It breaks off or breaks the rules of the format.
    #[error("this is not a valid component: {0}")]
    Malformed(String),
    /// It is valid, and uses a feature of WebAssembly that is off.
    #[error("the component needs a feature of WebAssembly that this kitbag does not offer: {0}")]
    Feature(String),
    /// It is made for WASI 0.3.
    #[error(
        "the component needs WASI 0.3, which this kitbag does not offer; build it for WASI 0.2, \
         with the target `wasm32-wasip2`"
    )]
    Wasi3,
    /// It exports no function `run`.
    #[error(
        "the component exports no `run`{}; a tool exports the world `tool` of `wit/tool.wit`, in \
         Rust with `kitbag_sdk::export!`",
        made_for(other)
    )]
    NoRun {
        /// The names of imports and exports that are those of another host.
        other: Vec<String>,
    },
    /// It exports what a program does, `wasi:cli/run`, and no function `run`.
    #[error(
        "the component is a program and no tool: it exports `wasi:cli/run`, not `run`; build a \
         library, in Rust with `crate-type = [\"cdylib\"]`, which exports the world `tool` of \
         `wit/tool.wit`"
    )]
    Program,
    /// Its `run` has another type.
    #[error(
        "the component's `run` has another type than a tool's\n   found: {found}\nexpected: {expected}"
    )]
    RunType {
        /// The type that `run` has.
        found: String,
        /// The type that `run` should have.
        expected: &'static str,
    },
    /// It was built for a version of the contract that we do not know.
    #[error(
        "the component was built for version {found} of the contract `{package}`, and this kitbag \
         speaks {known}; rebuild the tool or take another version of kitbag"
    )]
    ContractVersion {
        /// Name of the package.
        package: &'static str,
        /// The version it was built for.
        found: String,
        /// The version that we speak.
        known: &'static str,
    },
    /// It imports something that is not offered.
    #[error(
        "the component imports {}, which kitbag does not offer{}",
        list(imports),
        advice(imports)
    )]
    Imports {
        /// The imports, by name.
        imports: Vec<String>,
    },
    /// It imports something of the contract with another type.
    #[error(
        "the component imports `{import}` with another `{}` than there is\n   found: {found}\nexpected: \
         {expected}",
        shown(function)
    )]
    ImportType {
        /// The import, by name.
        import: String,
        /// The function.
        function: String,
        /// The type that it has.
        found: String,
        /// The type that it should have.
        expected: &'static str,
    },
    /// One of its functions is larger than any that a compiler makes.
    #[error(
        "a function of the component has {size}, more than the {limit} that are compiled; split it"
    )]
    LargeFunction {
        /// Its size.
        size: ByteSize,
        /// The largest size.
        limit: ByteSize,
    },
    /// One of its functions would take the compiler more memory than any that a
    /// compiler makes.
    #[error("a function of the component {what} than the {limit} that are compiled; split it")]
    HeavyFunction {
        /// What it has too much of.
        what: &'static str,
        /// How much of that may be.
        limit: u64,
    },
    /// It declares more than any that a compiler makes.
    #[error("the component has more than {limit} {what}, which is the limit; split it")]
    ManyDeclarations {
        /// What it has too much of.
        what: &'static str,
        /// How much of that may be.
        limit: u64,
    },
    /// Its instances would take the host more memory or time than any that a compiler
    /// makes.
    #[error(
        "all instances of the component's modules together {what} {size}, more than the {limit} \
         that they may; instantiate fewer, or smaller ones"
    )]
    LargeInstances {
        /// What is too large of them.
        what: &'static str,
        /// Its size, rounded up.
        size: ByteSize,
        /// The largest size.
        limit: ByteSize,
    },
    /// Compiling it takes too long.
    #[error(
        "the component takes longer than {} to compile; allow more with `limits.compile` of the \
         tool",
        format_duration(*limit)
    )]
    TooSlow {
        /// How long it may take: [`Limits::compile`](kitbag_contract::Limits::compile).
        limit: Duration,
    },
    /// Compiling it takes too much memory.
    #[error("the component takes more than {limit} of memory to compile")]
    TooMuchMemory {
        /// How much it may take.
        limit: ByteSize,
    },
    /// The compiler refused it.
    #[error("the component cannot be compiled: {0}")]
    Compile(String),
}

impl InvalidComponent {
    /// Whether it took too long to compile, and may take longer now.
    pub fn has_more_time(&self, time: Duration) -> bool {
        matches!(self, Self::TooSlow { limit } if *limit < time)
    }
}

impl LoadError {
    /// Names the component that is invalid.
    pub fn invalid(path: &Path, problem: InvalidComponent) -> Self {
        Self::Invalid { path: path.to_owned(), problem }
    }

    /// Why a component's file was not opened.
    pub fn from_open(path: &Path, error: OpenError) -> Self {
        match error {
            OpenError::Link { path } => Self::Link { path },
            OpenError::Io(error) => Self::from_io(path, &error),
            OpenError::Kernel { .. } => {
                Self::Unreadable { path: path.to_owned(), reason: error.to_string() }
            }
        }
    }

    /// The same, where it is looked at who may have written the file.
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

/// As much of a digest as tells it from another one to a person.
fn beginning(digest: &ContentDigest) -> String {
    digest.to_string()[..12].to_owned()
}

/// The first of these names, and how many there are besides.
fn list(imports: &[String]) -> String {
    const MOST: usize = 10;
    let (named, others) = imports.split_at(imports.len().min(MOST));
    let named: Vec<_> = named.iter().map(|import| format!("`{}`", shown(import))).collect();
    match others.len() {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}

/// The host that a component without `run` is made for, by the names of its interfaces.
fn made_for(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!(": it is made for another host, with {}", list(names)),
    }
}

/// What a person can do about an import, where we know it.
fn advice(imports: &[String]) -> String {
    let any = |prefix: &str| imports.iter().any(|import| import.starts_with(prefix));
    if any("wasi:") {
        "; it offers WASI 0.2: cli, clocks, filesystem, http for requests, io, random, and sockets \
         without a network"
            .into()
    } else {
        "; build the tool for `wasm32-wasip2` with imports from WASI 0.2 only".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_without_native_code_names_the_compiler_and_the_cache() {
        let error = LoadError::BuiltinUncompiled { name: "learn", metering: Metering::Fuel };
        assert_eq!(
            error.to_string(),
            "the built-in `learn` has to be compiled to count its instructions, this kitbag was \
             built without the feature `compiler`, and the cache has no entry for it; use a kitbag \
             with a compiler, which also fills the cache, or remove the limit `fuel`"
        );
    }
}
