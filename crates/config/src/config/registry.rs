//! Registries: their access, signers and credentials, and the index of tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use kitbag_glob::Glob;
use kitbag_policy::SecretName;

use crate::layers::origin::{Origin, Sourced};

/// Registries, set in the user config only.
#[derive(Clone, Debug, Default)]
pub struct Registries {
    /// The rules in the order of the file.
    pub rules: Vec<RegistryRule>,
    /// The index of `kitbag search`: a reference or an absolute path.
    pub index: Option<Sourced<String>>,
    /// The host that describes the registry of other namespaces.
    pub packages: Option<Sourced<String>>,
    /// The hosts that describe the registries of namespaces.
    pub namespaces: BTreeMap<String, Sourced<String>>,
    /// The authorities that vouch for identities. `None`: those of the build.
    pub trust_root: Option<Sourced<NamedContent>>,
}

/// Settings of the registries that a pattern matches.
#[derive(Clone, Debug)]
pub struct RegistryRule {
    /// The pattern: a host, or a host and a path with `*` for one level and `**` for any number.
    pub pattern: String,
    /// The place of the table.
    pub origin: Origin,
    pub(crate) glob: Glob,
    /// The accepted signers. `None`: no signature is required.
    pub signed_by: Option<Sourced<Vec<AcceptedSigner>>>,
    /// True if the registry may be on this machine or in a private network.
    pub private: Option<Sourced<bool>>,
    /// True if connections are not encrypted.
    pub plain_http: Option<Sourced<bool>>,
    /// The user name.
    pub username: Option<Sourced<String>>,
    /// The secret with the password.
    pub secret: Option<Sourced<SecretName>>,
}

/// Someone whose signature is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedSigner {
    /// The holder of a key.
    Key(NamedContent),
    /// An identity in a certificate of Sigstore.
    Identity {
        /// The e-mail address, or the URI of a workflow.
        identity: String,
        /// The URL of the service that authenticated the identity.
        issuer: String,
    },
}

/// A file with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedContent {
    /// The file; absolute.
    pub path: PathBuf,
    /// The content: for a key, DER of a `SubjectPublicKeyInfo`.
    pub bytes: Arc<[u8]>,
}

impl Registries {
    /// Returns the rules for a name: host and repository, or host and path of a URL.
    pub fn rules_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a RegistryRule> {
        let host = name.split('/').next().unwrap_or_default();
        self.rules.iter().filter(move |rule| match rule.pattern.contains('/') {
            true => rule.glob.matches(name),
            // A pattern without a path is for the whole registry.
            false => rule.glob.matches(host),
        })
    }
}
