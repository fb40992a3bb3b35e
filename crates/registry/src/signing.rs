//! Signing with a key.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;
use sigstore_verify::types::pae;
use zeroize::Zeroizing;

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::push::{NewArtifact, NewLayer};
use crate::signature::{BUNDLE_TYPE, SIGNED, Signer};

/// Maximum size of a key's file.
const FILE_BYTES: u64 = 64 << 10;

/// The type of statements in bundles.
pub(crate) const STATEMENT_TYPE: &str = "application/vnd.in-toto+json";

/// The start of a public P-256 key in DER, before its point. Source: RFC 5480.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A private P-256 key.
pub struct SigningKey {
    pair: EcdsaKeyPair,
}

impl SigningKey {
    /// Reads a key from a file, as [`Self::from_pem`].
    ///
    /// # Errors
    ///
    /// [`RegistryError::Key`] if the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, RegistryError> {
        let name = path.display().to_string();
        let mut pem = Zeroizing::new(Vec::new());
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut pem));
        read.map_err(|error| RegistryError::Key(format!("`{name}` cannot be read: {error}")))?;
        Self::from_pem(&name, &pem)
    }

    /// Parses a key in PEM: `PRIVATE KEY`, which is PKCS #8 without a passphrase.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Key`] if it is another kind of key.
    pub fn from_pem(name: &str, pem: &[u8]) -> Result<Self, RegistryError> {
        let invalid = |reason: &str| {
            let create = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256";
            RegistryError::Key(format!(
                "`{name}` is not a P-256 key in PEM (`PRIVATE KEY`): {reason}; `{create}` creates one"
            ))
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem)
            .map_err(|_| invalid("it has no such section"))?;
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            der.secret_pkcs8_der(),
            &SystemRandom::new(),
        );
        let pair = pair.map_err(|error| invalid(&error.to_string()))?;
        Ok(Self { pair })
    }

    /// Returns the public key: DER of a `SubjectPublicKeyInfo`.
    pub fn public_key(&self) -> Vec<u8> {
        [&P256_PREFIX, self.pair.public_key().as_ref()].concat()
    }

    /// Signs a manifest of this size and digest. Returns the artifact that refers to it.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Key`] if the system has no random numbers.
    pub fn sign(&self, (size, digest): (u64, Sha256Digest)) -> Result<NewArtifact, RegistryError> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "digest": { "sha256": digest.hex() } }],
            "predicateType": SIGNED,
            "predicate": {},
        });
        let payload = statement.to_string();
        let signed = self.pair.sign(&SystemRandom::new(), &pae(STATEMENT_TYPE, payload.as_bytes()));
        let signed = signed.map_err(|_| RegistryError::Key("the key cannot sign".to_owned()))?;
        let bundle = json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {
                "publicKey": { "hint": Signer::fingerprint(&self.public_key()) },
            },
            "dsseEnvelope": {
                "payload": BASE64.encode(&payload),
                "payloadType": STATEMENT_TYPE,
                "signatures": [{ "sig": BASE64.encode(signed) }],
            },
        });
        let annotations = [
            ("dev.sigstore.bundle.content", "dsse-envelope"),
            ("dev.sigstore.bundle.predicateType", SIGNED),
        ];
        Ok(NewArtifact {
            config: None,
            artifact_type: Some(BUNDLE_TYPE.to_owned()),
            layers: vec![NewLayer {
                media_type: BUNDLE_TYPE.to_owned(),
                title: None,
                bytes: bundle.to_string().into(),
            }],
            annotations: annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            subject: Some((size, digest)),
        })
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(…)")
    }
}
