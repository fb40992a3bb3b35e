//! Packages, and the registries that hold them.
//!
//! A host describes the registry of a namespace in `/.well-known/wasm-pkg/registry.json`, the
//! protocol of the WebAssembly package tools.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::error::RegistryError;
use crate::reference::{OciReference, ReferenceError, is_tag};
use crate::web::Web;

/// The largest description of a registry.
const METADATA_BYTES: u64 = 64 << 10;

/// A package: `namespace:name@version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

/// The hosts that describe the registries of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageRegistries {
    /// The host of a namespace without an entry. Default: none.
    pub default: Option<String>,
    /// The hosts by namespace. `wasi` and `ba` have a default.
    pub namespaces: BTreeMap<String, String>,
}

/// The host that describes the registry of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageSource {
    /// The host.
    pub host: String,
    /// The artifact.
    pub reference: OciReference,
}

/// The description of a registry. Unknown fields are ignored, since they are for other programs.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    oci: Option<OciMetadata>,
    // The older form.
    oci_registry: Option<String>,
    oci_namespace_prefix: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciMetadata {
    registry: Option<String>,
    namespace_prefix: Option<String>,
}

impl PackageName {
    /// Parses a name with a version. `None`: the text has another form.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, ReferenceError>> {
        let (namespace, rest) = text.split_once(':')?;
        let (name, version) = rest.split_once('@')?;
        if !is_word(namespace) || !is_word(name) {
            return None;
        }
        let is_version = version.starts_with(|first: char| first.is_ascii_digit())
            && is_tag(&version.replace('+', "_"));
        Some(match is_version {
            true => Ok(Self {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                version: version.to_owned(),
            }),
            false => Err(ReferenceError::Package(text.to_owned())),
        })
    }
}

impl PackageRegistries {
    /// Returns the host that describes the registry of a namespace.
    pub fn host(&self, namespace: &str) -> Option<&str> {
        let own = self.namespaces.get(namespace).or(self.default.as_ref());
        // The defaults of the WebAssembly package tools.
        own.map(String::as_str).or(match namespace {
            "wasi" => Some("wasi.dev"),
            "ba" => Some("bytecodealliance.org"),
            _ => None,
        })
    }
}

impl Web {
    /// Finds the artifact of a package.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if no registry is configured for the namespace, or its host does not
    /// describe one.
    pub fn find_package(
        &self,
        package: &PackageName,
        registries: &PackageRegistries,
    ) -> Result<PackageSource, RegistryError> {
        let namespace = &package.namespace;
        let host = registries.host(namespace).ok_or_else(|| {
            let problem = format!(
                "no registry is configured for the namespace `{namespace}`; set `packages` or \
                 `namespaces.{namespace}` in `[registry]` of your user config"
            );
            RegistryError::invalid(package.to_string(), problem)
        })?;
        let access = self.access(host);
        let url = format!("{}://{host}/.well-known/wasm-pkg/registry.json", access.scheme());
        let answer = self.get(&url, host, access, METADATA_BYTES)?.success(host)?;
        let metadata: Metadata = serde_json::from_slice(&answer.body)
            .map_err(|error| RegistryError::invalid(&*url, error))?;
        let Metadata { oci, oci_registry, oci_namespace_prefix } = metadata;
        let (registry, prefix) = match oci {
            Some(OciMetadata { registry, namespace_prefix }) => (registry, namespace_prefix),
            None => (oci_registry, oci_namespace_prefix),
        };
        let registry = registry.ok_or_else(|| {
            RegistryError::invalid(
                &*url,
                "it names no OCI registry, the only kind that is supported",
            )
        })?;
        let prefix = prefix.unwrap_or_default();
        let tag = package.version.replace('+', "_");
        let text = format!("oci://{registry}/{prefix}{namespace}/{}:{tag}", package.name);
        let reference = text.parse().map_err(|error| RegistryError::invalid(&*url, error))?;
        Ok(PackageSource { host: host.to_owned(), reference })
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.namespace, self.name, self.version)
    }
}

fn is_word(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}
