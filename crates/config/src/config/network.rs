//! The connections of tools.

use std::path::PathBuf;
use std::sync::Arc;

use kitbag_policy::http::ProxyRules;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::layers::origin::Sourced;

/// The connections of tools. Default: no proxy, and the root certificates of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The proxies and the destinations that skip them. `None`: the user config names no proxy.
    pub proxies: Option<Sourced<ProxyRules>>,
    /// The resolver of host names for connections through a proxy.
    pub resolve: Sourced<NameResolution>,
    /// An environment variable that names a proxy but that the user config ignores.
    pub ignored_proxy: Option<&'static str>,
    /// Files with root certificates to trust in addition to the system's.
    pub roots: Vec<Sourced<RootFile>>,
}

impl Network {
    /// Returns whether a proxy resolves names, so that their addresses are not checked. Grants of
    /// every host are not affected.
    pub fn proxy_resolves(&self) -> bool {
        let proxies = self.proxies.as_ref().map(|proxies| &proxies.value);
        proxies.is_some_and(|proxies| proxies.resolves && !proxies.is_empty())
    }
}

/// The resolver of host names.
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
    /// Returns the value as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kitbag => "kitbag",
            Self::Proxy => "proxy",
        }
    }
}

/// A file with root certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootFile {
    /// The file; absolute.
    pub path: PathBuf,
    /// The content: PEM, with at least one certificate. Each can be a trust anchor.
    pub pem: Arc<[u8]>,
}
