//! How connections of tools are made.

use std::path::PathBuf;
use std::sync::Arc;

use kitbag_policy::http::ProxyRules;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// How connections of tools are made. Default: without a proxy, with the authorities of the
/// system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The proxies, with what goes without them. `None`: the user config names none.
    pub proxies: Option<Sourced<ProxyRules>>,
    /// Who resolves names, if connections go through a proxy.
    pub resolve: Sourced<NameResolution>,
    /// A variable of the environment that names a proxy, if the user config ignores it.
    pub ignored_proxy: Option<&'static str>,
    /// Files with the certificates of authorities that are trusted besides those of the
    /// system.
    pub roots: Vec<Sourced<RootFile>>,
}

impl Network {
    /// Whether a proxy resolves names, so that nothing checks their addresses. Grants of every
    /// host are not affected.
    pub fn proxy_resolves(&self) -> bool {
        let proxies = self.proxies.as_ref().map(|proxies| &proxies.value);
        proxies.is_some_and(|proxies| proxies.resolves && !proxies.is_empty())
    }
}

/// Who resolves the names of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum NameResolution {
    /// kitbag resolves names and checks the addresses.
    #[default]
    Kitbag,
    /// The proxy resolves names.
    Proxy,
}

impl NameResolution {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kitbag => "kitbag",
            Self::Proxy => "proxy",
        }
    }
}

/// A file with the certificates of authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFile {
    /// The file; absolute.
    pub path: PathBuf,
    /// What is in it: PEM, with one certificate at least, each of which can be the root of
    /// another.
    pub pem: Arc<[u8]>,
}
