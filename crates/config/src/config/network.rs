//! How connections of tools are made.

use std::path::PathBuf;
use std::sync::Arc;

use kitbag_policy::http::Proxy;

use crate::origin::Sourced;

/// How connections of tools are made. Default: without a proxy, with the authorities of the
/// system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The proxy, with what goes without it. `None`: there is none.
    pub proxy: Option<Sourced<Proxy>>,
    /// Files with the certificates of authorities that are trusted besides those of the
    /// system.
    pub roots: Vec<Sourced<RootFile>>,
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
