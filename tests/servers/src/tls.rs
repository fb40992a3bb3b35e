//! A certificate authority for tests, and its certificates.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// A certificate authority that only clients with its root trust.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: rcgen::Certificate,
}

impl Authority {
    /// Creates an authority with a new key.
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "kitbag tests");
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("a certificate");
        Self { issuer: Issuer::new(params, key), root }
    }

    /// The root certificate in PEM, as in a file of roots.
    pub fn pem(&self) -> String {
        self.root.pem()
    }

    /// The root certificate in DER.
    pub fn der(&self) -> Vec<u8> {
        self.root.der().to_vec()
    }

    /// A certificate for `localhost`, 127.0.0.1 and ::1.
    pub fn local(&self) -> Tls {
        self.certificate(&["localhost", "127.0.0.1", "::1"])
    }

    /// A certificate for these names and addresses.
    pub fn certificate(&self, names: &[&str]) -> Tls {
        self.issue(names, 2099)
    }

    /// A certificate that has expired.
    pub fn expired(&self, names: &[&str]) -> Tls {
        self.issue(names, 2001)
    }

    fn issue(&self, names: &[&str], until: i32) -> Tls {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names that can be certified");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Tls {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
            protocols: vec!["h2".into(), "http/1.1".into()],
        }
    }
}

/// The TLS configuration of a server.
#[derive(Clone)]
pub struct Tls {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    /// The protocols that ALPN offers, by default HTTP/2 and HTTP/1.1. If empty, ALPN is disabled.
    pub protocols: Vec<String>,
}

impl Tls {
    /// Returns the same configuration with only HTTP/1.1.
    #[must_use]
    pub fn http1(mut self) -> Self {
        self.protocols = vec!["http/1.1".into()];
        self
    }

    /// The certificate in PEM, for a server that reads files.
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// The key in PEM, for a server that reads files.
    pub fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }

    /// Returns the configuration for `rustls`.
    pub(crate) fn server(&self) -> ServerConfig {
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key);
        let mut config = config.expect("a certificate and its key");
        config.alpn_protocols =
            self.protocols.iter().map(|name| name.clone().into_bytes()).collect();
        config
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    // Base64 is ASCII.
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
