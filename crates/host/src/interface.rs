//! Interfaces that a component may import, as the modules that implement them declare them.

use kitbag_base::ByteSize;
use wasmtime::component::Linker;

use crate::call::state::State;

/// Interfaces with one version.
pub(crate) struct Interfaces {
    pub(crate) version: Version,
    /// Additional host memory of a call whose component imports one of them.
    pub(crate) bytes: ByteSize,
    /// The name of each interface, its purpose, and its link function.
    pub(crate) list: &'static [Interface],
}

pub(crate) type Interface = (&'static str, &'static str, Link);

pub(crate) type Link = fn(&mut Linker<State>) -> wasmtime::Result<()>;

/// The version of interfaces.
#[derive(Clone, Copy)]
pub(crate) enum Version {
    /// Any patch release of WASI 0.2.
    Wasi,
    /// WASI 0.3.0. Later releases may change interfaces that wasmtime calls experimental.
    Wasi3,
    /// Exactly this version: the interfaces have not been released.
    Exactly(&'static str),
}

impl Interfaces {
    /// Creates interfaces of WASI that need no host memory of their own.
    pub(crate) const fn of_wasi(list: &'static [Interface]) -> Self {
        Self { version: Version::Wasi, bytes: ByteSize::bytes(0), list }
    }

    /// Returns the interface with this name, without a version.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Interface> {
        self.list.iter().find(|(own, ..)| *own == name)
    }
}

impl Version {
    /// Returns true if an import with this version can be linked.
    pub(crate) fn includes(self, version: &str) -> bool {
        match self {
            Self::Exactly(own) => version == own,
            Self::Wasi3 => version == "0.3.0",
            Self::Wasi => semver::Version::parse(version)
                .is_ok_and(|version| (version.major, version.minor) == (0, 2)),
        }
    }
}
