//! Cryptography for `sigstore-verify`, by `ring`.
//!
//! `ring` verifies signatures of messages, but not of digests, which `sigstore-verify` computes for
//! bundles of messages. The message is remembered while its bundles are verified: a signature of a
//! digest is valid if the message has the digest, and the signature is valid for the message.

use std::cell::RefCell;

use ring::digest::{self, Context};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair, UnparsedPublicKey, VerificationAlgorithm};
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, KeyAlgorithm, SigningKeyPair, SigningScheme,
    install_default_provider,
};
use sigstore_verify::types::HashAlgorithm;

type Result<T> = std::result::Result<T, Error>;

thread_local! {
    /// The message whose bundles this thread verifies.
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Registers the cryptography for the process.
pub(crate) fn install() {
    // An error means that it is registered already.
    let _ = install_default_provider(&Ring);
}

/// Remembers a message until the returned value is dropped.
pub(crate) fn remember(message: &[u8]) -> Remembered {
    MESSAGE.replace(message.to_vec());
    Remembered
}

pub(crate) struct Remembered;

impl Drop for Remembered {
    fn drop(&mut self) {
        MESSAGE.take();
    }
}

#[derive(Debug)]
struct Ring;

struct Hash(Context);

/// A key for signatures with P-256.
struct P256(EcdsaKeyPair);

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &digest::SHA256,
            HashAlgorithm::Sha2384 => &digest::SHA384,
            HashAlgorithm::Sha2512 => &digest::SHA512,
            other => return Err(Error::UnsupportedAlgorithm(other.to_string())),
        };
        Ok(Box::new(Hash(Context::new(algorithm))))
    }

    fn verify_raw(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let key = UnparsedPublicKey::new(algorithm(scheme)?, key);
        let invalid = |_| Error::Verification(format!("{} signature invalid", scheme.name()));
        key.verify(data, signature).map_err(invalid)
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        MESSAGE.with_borrow(|message| {
            let of_message = match scheme.hash_algorithm() {
                Some(algorithm) => {
                    let mut hash = self.hash(algorithm)?;
                    hash.update(message);
                    hash.finalize()
                }
                None => return Err(Error::UnsupportedAlgorithm(scheme.name().to_owned())),
            };
            if of_message != digest {
                return Err(Error::Verification("the digest is not of the artifact".to_owned()));
            }
            self.verify_raw(scheme, key, message, signature)
        })
    }

    fn key_pair_from_pkcs8_der(&self, pkcs8: &[u8]) -> Result<Box<dyn SigningKeyPair>> {
        let algorithm = &signature::ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new());
        let pair = pair.map_err(|error| Error::InvalidKeyFormat(error.to_string()))?;
        Ok(Box::new(P256(pair)))
    }
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl SigningKeyPair for P256 {
    fn algorithm(&self) -> KeyAlgorithm {
        KeyAlgorithm::EcdsaP256
    }

    fn public_key_bytes(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    fn sign_raw(&self, data: &[u8]) -> Result<Vec<u8>> {
        let signed = self.0.sign(&SystemRandom::new(), data);
        let signed = signed.map_err(|_| Error::Signing("the key cannot sign".to_owned()))?;
        Ok(signed.as_ref().to_vec())
    }

    fn sign_prehashed(&self, _digest: &[u8]) -> Result<Vec<u8>> {
        Err(Error::UnsupportedAlgorithm("signing a digest".to_owned()))
    }
}

fn algorithm(scheme: SigningScheme) -> Result<&'static dyn VerificationAlgorithm> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &signature::ED25519,
        SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        other => return Err(Error::UnsupportedAlgorithm(other.name().to_owned())),
    })
}
