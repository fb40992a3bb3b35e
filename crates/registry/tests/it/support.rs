//! A client with its own registry.

use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_http::{Client, ClientOptions, Nameservers, Roots};
use kitbag_registry::{
    Access, Artifact, COMPONENT_TYPE, Credentials, NewArtifact, NewLayer, OciReference, Registry,
    RegistryError, Sha256Digest, WASM_CONFIG_TYPE, Web,
};
use kitbag_test_servers::{Authority, OciRegistry};
use serde_json::json;

/// The largest component of these tests.
pub(crate) const LIMIT: ByteSize = ByteSize::mib(64);

/// Access to a registry on this machine.
pub(crate) const PRIVATE: Access = Access { is_private: true, is_plain: false };

pub(crate) struct Fixture {
    pub(crate) server: OciRegistry,
    pub(crate) web: Web,
}

impl Fixture {
    /// The registry may be on this machine, and no other host.
    pub(crate) fn new() -> Self {
        Self::with(&Authority::new(), Vec::new())
    }

    /// These hosts may also be on this machine.
    pub(crate) fn with(authority: &Authority, hosts: Vec<String>) -> Self {
        let server = OciRegistry::start(&authority.local());
        let own = server.host();
        let web = web(authority, move |name| {
            let host = name.split('/').next().unwrap_or_default();
            match host == own || hosts.iter().any(|it| it == host) {
                true => PRIVATE,
                false => Access::default(),
            }
        });
        Self { server, web }
    }

    pub(crate) fn reference(&self, rest: &str) -> OciReference {
        format!("oci://{}/{rest}", self.server.host()).parse().unwrap()
    }

    pub(crate) fn registry(&self, rest: &str) -> Registry<'_> {
        Registry::new(&self.web, &self.reference(rest), None)
    }

    /// Pushes a component under a reference. Returns the size and the digest of the manifest.
    pub(crate) fn push(&self, rest: &str, component: &[u8]) -> (u64, Sha256Digest) {
        let tag = self.reference(rest).tag;
        self.registry(rest).push(tag.as_deref(), &artifact(component)).unwrap()
    }

    pub(crate) fn pull(&self, rest: &str) -> Result<Artifact, RegistryError> {
        let registry = self.registry(rest);
        registry.artifact(&registry.pull(&self.reference(rest))?, LIMIT)
    }

    /// Returns the message for a pull that is refused.
    pub(crate) fn refused(&self, rest: &str) -> String {
        let error = self.pull(rest).expect_err("the pull is refused").to_string();
        error.replace(&self.server.host(), "HOST")
    }
}

/// Connections that trust an authority.
pub(crate) fn web(authority: &Authority, access: impl Fn(&str) -> Access + 'static) -> Web {
    web_with(authority, Nameservers::default(), access)
}

pub(crate) fn web_with(
    authority: &Authority,
    nameservers: Nameservers,
    access: impl Fn(&str) -> Access + 'static,
) -> Web {
    let mut roots = Roots::default();
    roots.add_pem(authority.pem().as_bytes()).unwrap();
    let client = Client::new(ClientOptions { roots, nameservers, ..ClientOptions::default() });
    Web::new(client, access).unwrap()
}

/// An artifact with a component and a manifest beside it.
pub(crate) fn artifact(component: &[u8]) -> NewArtifact {
    let layer = |media_type: &str, title: &str, bytes: &[u8]| NewLayer {
        media_type: media_type.to_owned(),
        title: Some(title.to_owned()),
        bytes: Bytes::copy_from_slice(bytes),
    };
    NewArtifact {
        config: Some((WASM_CONFIG_TYPE.to_owned(), json!({ "architecture": "wasm" }))),
        layers: vec![
            layer(COMPONENT_TYPE, "tool.wasm", component),
            layer("application/toml", "skill.toml", b"name = \"tool\"\n"),
        ],
        annotations: [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())].into(),
        ..NewArtifact::default()
    }
}

/// Credentials of the token server.
pub(crate) fn ada(password: &str) -> Option<Credentials> {
    Some(Credentials::Password { user: "ada".to_owned(), password: password.to_owned().into() })
}
