//! The form of the settings of registries.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::format::span::{StringOr, Table, Written};

/// Settings of `kitbag search`, of packages, and of the authorities for signatures.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Search and packages")]
pub(crate) struct RegistryConfig {
    /// The index of `kitbag search`: `oci://HOST/REPOSITORY:TAG`, whose digest the first search
    /// records, or the absolute path of a file. Default: none.
    #[schemars(extend("examples" = ["~/tools.json"]))]
    pub(crate) index: Option<Written<String>>,
    /// The host that describes the registry of packages whose namespace is not in `namespaces`.
    /// Default: none.
    #[schemars(extend("examples" = ["packages.example.com"]))]
    pub(crate) packages: Option<Written<String>>,
    /// The hosts that describe the registries of packages, by namespace. Default: `wasi.dev` for
    /// `wasi`, and `bytecodealliance.org` for `ba`.
    #[schemars(extend("default" = {}, "examples" = [{ "acme": "packages.example.com" }]))]
    pub(crate) namespaces: Option<Table<String>>,
    /// A file with the authorities that vouch for identities, in the JSON format of Sigstore: an
    /// absolute path, or a path that starts with `~/`. Default: the public services of Sigstore.
    #[schemars(extend("examples" = ["~/trusted_root.json"]))]
    pub(crate) trust_root: Option<Written<String>>,
}

/// Settings of the registries, repositories and URLs that a pattern matches.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Registry")]
pub(crate) struct RegistryRuleConfig {
    /// The signers, one of whom must have signed an artifact: the file of a public key in PEM, or a
    /// table with `identity` and `issuer`. If several patterns match, each requires its signers. A
    /// URL has no signatures and is refused. Default: signatures are shown, but not required.
    #[serde(alias = "signed-by")]
    #[schemars(extend("examples" = [["~/org.pub"]]))]
    pub(crate) signed_by: Option<Written<Vec<Written<StringOr<SignerConfig>>>>>,
    /// `true` allows a registry on this machine or in a private network.
    #[schemars(extend("default" = false))]
    pub(crate) private: Option<Written<bool>>,
    /// `true` connects without TLS, to registries with `private` only.
    #[schemars(extend("default" = false))]
    pub(crate) plain_http: Option<Written<bool>>,
    /// The user name for the registry. Default: the credentials of `docker login`.
    pub(crate) username: Option<Written<String>>,
    /// The name of the secret with the password or the access token. Required with `username`.
    #[schemars(extend("examples" = ["ghcr"]))]
    pub(crate) secret: Option<Written<String>>,
}

/// An identity in a certificate of Sigstore.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline, title = "Identity")]
pub(crate) struct SignerConfig {
    /// The e-mail address, or the URI of a workflow. Required.
    pub(crate) identity: Option<Written<String>>,
    /// The URL of the service that authenticated the identity. Required.
    #[schemars(extend("examples" = ["https://token.actions.githubusercontent.com"]))]
    pub(crate) issuer: Option<Written<String>>,
}
