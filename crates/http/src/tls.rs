//! Whom a connection trusts.

use std::sync::Arc;

use kitbag_base::text::variant_words;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The authorities that may sign the certificate of a server.
///
/// Default: those of the system, which `SSL_CERT_FILE` and `SSL_CERT_DIR` name as for other
/// programs, or the built-in ones of Mozilla where there are none.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    own: Vec<CertificateDer<'static>>,
}

/// Roots that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// What is there is not PEM.
    #[error("not a certificate in PEM: {0}")]
    Pem(String),
    /// Nothing is there.
    #[error("there is no certificate in PEM")]
    Empty,
    /// A certificate cannot be the root of another.
    #[error("a certificate that is no authority: {0}")]
    Invalid(String),
}

impl Roots {
    /// Trusts the certificates of a text in PEM too.
    ///
    /// # Errors
    ///
    /// Where it holds none, or one that cannot be read.
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

    /// What a connection is set up with: HTTP/2 where the server has it, else HTTP/1.1.
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
        // A ticket would tell a server that two tools are of the same process.
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// An error of TLS in words. The texts of the library show its own types.
pub(crate) fn words(error: &rustls::Error) -> String {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(problem) => {
            format!("invalid certificate: {}", variant_words(problem))
        }
        Error::AlertReceived(alert) => {
            format!("the server broke off with the alert `{}`", variant_words(alert))
        }
        Error::PeerIncompatible(problem) => {
            format!("the server is not compatible: {}", variant_words(problem))
        }
        Error::PeerMisbehaved(problem) => {
            format!("the server broke the protocol: {}", variant_words(problem))
        }
        Error::General(text) => text.clone(),
        error => variant_words(error),
    }
}
