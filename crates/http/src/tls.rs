//! The trust of TLS connections.

use std::sync::Arc;

use kitbag_base::text::variant_words;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The certificate authorities that may sign a server's certificate.
///
/// Default: those of the system, or of `SSL_CERT_FILE` and `SSL_CERT_DIR` as in other programs, or
/// Mozilla's built-in ones if there are none.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    own: Vec<CertificateDer<'static>>,
}

/// Why certificates cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// The text is not PEM.
    #[error("not a certificate in PEM: {0}")]
    Pem(String),
    /// The text has no certificate.
    #[error("the text has no PEM certificate")]
    Empty,
    /// The certificate cannot sign other certificates.
    #[error("a certificate is not a certificate authority: {0}")]
    Invalid(String),
}

impl Roots {
    /// Also trusts the certificates in a PEM text.
    ///
    /// # Errors
    ///
    /// If the text has no certificate, or an invalid one.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), RootsError> {
        let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let read = read.map_err(|error| RootsError::Pem(error.to_string()))?;
        if read.is_empty() {
            return Err(RootsError::Empty);
        }
        let mut store = RootCertStore::empty();
        for certificate in &read {
            let added = store.add(certificate.clone());
            added.map_err(|error| RootsError::Invalid(error.to_string()))?;
        }
        self.own.extend(read);
        Ok(())
    }

    /// Returns the TLS configuration: HTTP/2 if the server supports it, otherwise HTTP/1.1.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        let mut store = RootCertStore::empty();
        let system = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(system.certs);
        if store.is_empty() {
            store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        store.add_parsable_certificates(self.own.iter().cloned());
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?;
        let mut config = builder.with_root_certificates(store).with_no_client_auth();
        // A session ticket would reveal to a server that two tools belong to the same process.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Describes a TLS error. The library's messages contain type names.
pub(crate) fn words(error: &rustls::Error) -> String {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(problem) => {
            format!("invalid certificate: {}", variant_words(problem))
        }
        Error::AlertReceived(alert) => {
            format!("the server closed the connection with the alert `{}`", variant_words(alert))
        }
        Error::PeerIncompatible(problem) => {
            format!("the server is not compatible: {}", variant_words(problem))
        }
        Error::PeerMisbehaved(problem) => {
            format!("the server violated the protocol: {}", variant_words(problem))
        }
        Error::General(text) => text.clone(),
        error => variant_words(error),
    }
}
