//! Signatures of artifacts: Sigstore bundles that refer to a manifest.

use bytes::Bytes;
use kitbag_base::ByteSize;
use kitbag_base::text::shown;
use oci_spec::image::Descriptor;
use sigstore_verify::crypto::{KeyAlgorithm, verify_signature};
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};
use sigstore_verify::types::{
    Bundle, DerPublicKey, HashAlgorithm, Sha256Hash, SignatureBytes, SignatureContent, Statement,
};
use sigstore_verify::{VerificationPolicy, Verifier};
use url::Url;

use crate::digest::Sha256Digest;
use crate::error::RegistryError;
use crate::manifest;
use crate::provider;
use crate::push::{INDEX_TYPE, referrers_tag};
use crate::registry::{Content, MANIFEST_BYTES, Registry};
use crate::signing::STATEMENT_TYPE;
use crate::web::Answer;

/// The media type of a Sigstore bundle, and the type of its artifact.
pub const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// The start of the types of all versions of bundles.
const BUNDLE_TYPES: &str = "application/vnd.dev.sigstore.bundle";

/// The statement of a signature. Source: cosign's "Bundle format for OCI artifacts".
pub(crate) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// Statements that count as a signature: that an artifact is signed, and that it was built. Other
/// statements may say anything, such as that the artifact is vulnerable.
const STATEMENTS: [&str; 2] = [SIGNED, "https://slsa.dev/provenance/v1"];

/// The reason to refuse the signature of a file in an artifact.
const OTHER_CONTENT: &str = "it signs other content, such as a file, instead of the artifact's \
     manifest; `kitbag push --sign` and `cosign sign` sign the manifest";

/// The most pages of manifests that refer to a manifest.
const MOST_PAGES: usize = 16;

/// The most bundles that are read, and the most bytes of each.
const MOST_BUNDLES: usize = 16;
const BUNDLE_BYTES: ByteSize = ByteSize::mib(1);

/// Someone whose signature is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The holder of a key.
    Key {
        /// The name of the key for messages, such as the path of its file.
        name: String,
        /// The public key: DER of a `SubjectPublicKeyInfo`.
        der: Vec<u8>,
    },
    /// An identity in a certificate of Sigstore.
    Identity {
        /// The e-mail address, or the URI of a workflow.
        identity: String,
        /// The URL of the service that authenticated the identity.
        issuer: String,
    },
}

/// The state of an artifact's signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// There is no signature.
    Unsigned,
    /// There are signatures, but no signer is required, and none has a valid certificate.
    Unknown,
    /// A signer signed the artifact.
    Signed {
        /// The signer.
        by: Signer,
        /// True if the user config requires the signer.
        is_required: bool,
    },
}

/// The authorities that vouch for identities.
#[derive(Clone, Debug)]
pub struct TrustRoot(TrustedRoot);

impl Signer {
    /// Returns a short fingerprint of a key, for messages and records.
    pub fn fingerprint(der: &[u8]) -> String {
        Sha256Digest::of(der).hex()[..16].to_owned()
    }
}

impl std::fmt::Display for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key { name, der } => {
                write!(f, "key {} ({})", Self::fingerprint(der), shown(name))
            }
            Self::Identity { identity, issuer } => {
                write!(f, "{} ({})", shown(identity), shown(issuer))
            }
        }
    }
}

impl std::fmt::Display for Signature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsigned => f.write_str("unsigned"),
            Self::Unknown => f.write_str("signed by an unknown signer, which counts as unsigned"),
            Self::Signed { by, is_required: true } => write!(f, "signed by {by}"),
            Self::Signed { by, is_required: false } => {
                write!(f, "signed by {by}, which your user config does not require")
            }
        }
    }
}

impl TrustRoot {
    /// Returns the root of the public Sigstore services that is part of this build.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Key`] if it cannot be read.
    pub fn shipped() -> Result<Self, RegistryError> {
        Self::parse("the trust root of this build", SIGSTORE_PRODUCTION_TRUSTED_ROOT)
    }

    /// Parses a trust root in Sigstore's JSON format.
    ///
    /// # Errors
    ///
    /// [`RegistryError::Key`] names the file.
    pub fn parse(name: &str, text: &str) -> Result<Self, RegistryError> {
        let invalid = |error: &dyn ToString| {
            RegistryError::Key(format!("{name} is not a trust root: {}", error.to_string()))
        };
        provider::install();
        let root = TrustedRoot::from_json(text).map_err(|error| invalid(&error))?;
        Verifier::new(&root).map_err(|error| invalid(&error))?;
        Ok(Self(root))
    }
}

impl Registry<'_> {
    /// Returns the bundles that refer to a manifest, without verifying them.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] if they cannot be read. A registry without any has none.
    pub fn bundles(&self, subject: Sha256Digest) -> Result<Vec<Bytes>, RegistryError> {
        let is_bundle = |descriptor: &&Descriptor| {
            let kind = descriptor.artifact_type().as_ref().map(ToString::to_string);
            kind.is_none_or(|kind| kind.starts_with(BUNDLE_TYPES))
        };
        let referrers = self.referrers(subject)?;
        let mut bundles = Vec::new();
        for descriptor in referrers.iter().filter(is_bundle).take(MOST_BUNDLES) {
            let digest = descriptor.digest().to_string().parse();
            let digest =
                digest.map_err(|error| RegistryError::invalid(self.url("referrers"), error))?;
            let content = self.manifest(None, Some(digest))?;
            let manifest = manifest::manifest(&content, manifest::read(&content)?)?;
            let is_layer =
                |layer: &&Descriptor| layer.media_type().to_string().starts_with(BUNDLE_TYPES);
            if let Some(layer) = manifest.layers().iter().find(is_layer) {
                bundles.push(self.layer(&content.url, layer, BUNDLE_BYTES)?);
            }
        }
        Ok(bundles)
    }

    /// Returns the manifests that refer to a manifest: by the API for referrers, or by their tag.
    fn referrers(&self, subject: Sha256Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let mut url = self.url(&format!("referrers/{subject}"));
        let mut found = Vec::new();
        for page in 0..MOST_PAGES {
            let answer = self.get(&url, Some(INDEX_TYPE), MANIFEST_BYTES)?;
            let is_absent =
                matches!(answer.status.as_u16(), 400 | 404 | 405 | 406 | 410 | 415 | 501);
            let next = next_page(&answer);
            // A registry without the API. Some registries answer every request with a page for people.
            let content = Content::from(match is_absent {
                true => return self.tagged_referrers(subject),
                false => answer.success(&self.host)?,
            });
            let value = manifest::read(&content);
            let is_index = content.media_type().as_deref() == Some(INDEX_TYPE);
            match value {
                Ok(value) if is_index || value.get("manifests").is_some() => {
                    found.extend(manifest::index(&content, value)?.manifests().iter().cloned());
                }
                _ if page == 0 && !is_index => return self.tagged_referrers(subject),
                Ok(_) => return Err(RegistryError::invalid(&*content.url, "it is not an index")),
                Err(error) => return Err(error),
            }
            match next {
                Some(next) => url = next,
                None => return Ok(found),
            }
        }
        Err(RegistryError::invalid(url, format!("there are more than {MOST_PAGES} pages")))
    }

    fn tagged_referrers(&self, subject: Sha256Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let content = match self.manifest(Some(&referrers_tag(subject)), None) {
            Ok(content) => content,
            Err(RegistryError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        Ok(manifest::index(&content, manifest::read(&content)?)?.manifests().clone())
    }
}

/// Returns the URL of the next page, which must be at the registry.
fn next_page(answer: &Answer) -> Option<String> {
    let links = answer.headers.get_all("link").iter().filter_map(|value| value.to_str().ok());
    let next = links.flat_map(|links| links.split(',')).find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |it: &str| matches!(it.trim(), "rel=\"next\"" | "rel=next");
        parameters.split(';').any(is_next).then_some(target)
    })?;
    let base = Url::parse(&answer.url).ok()?;
    let next = base.join(next).ok()?;
    (next.origin() == base.origin()).then(|| next.into())
}

/// Verifies the bundles of a manifest, given its bytes. `required` has lists of signers: each list
/// must contain a signer who signed the manifest.
///
/// # Errors
///
/// [`RegistryError::Signature`] if a required signature is missing, with the reason for each bundle.
pub fn verify(
    name: &str,
    manifest: &[u8],
    bundles: &[Bytes],
    required: &[&[Signer]],
    root: &TrustRoot,
) -> Result<Signature, RegistryError> {
    provider::install();
    let _message = provider::remember(manifest);
    let verifier = Verifier::new(&root.0)
        .map_err(|error| RegistryError::Key(format!("the trust root is not valid: {error}")))?;
    let bundles: Vec<_> = bundles.iter().map(|bytes| read(bytes)).collect();
    let mut signature = match bundles.is_empty() {
        true => Signature::Unsigned,
        false => Signature::Unknown,
    };
    for signers in required {
        let mut problems = Vec::new();
        let found = signers.iter().find(|signer| {
            bundles.iter().any(|bundle| {
                let verified = bundle
                    .as_ref()
                    .map_err(Clone::clone)
                    .and_then(|bundle| is_signed(&verifier, bundle, manifest, signer));
                verified.map_err(|problem| problems.push(problem)).is_ok()
            })
        });
        let Some(by) = found else {
            let signers: Vec<_> = signers.iter().map(ToString::to_string).collect();
            problems.dedup();
            let problem = match problems.is_empty() {
                true => "it is unsigned".to_owned(),
                false => problems.join("; "),
            };
            return Err(RegistryError::Signature(format!(
                "`{}` must be signed by {}, as your user config requires, but {problem}",
                shown(name),
                signers.join(" or ")
            )));
        };
        signature = Signature::Signed { by: by.clone(), is_required: true };
    }
    if signature == Signature::Unknown {
        let known = bundles.iter().flatten().find_map(|it| identity(&verifier, it, manifest));
        if let Some(by) = known {
            signature = Signature::Signed { by, is_required: false };
        }
    }
    Ok(signature)
}

/// Parses a bundle with a statement that counts as a signature.
fn read(bytes: &[u8]) -> Result<Bundle, String> {
    let text = str::from_utf8(bytes).map_err(|_| "its signature is not text".to_owned())?;
    let bundle = Bundle::from_json(text)
        .map_err(|error| format!("its signature is not a Sigstore bundle: {error}"))?;
    if let SignatureContent::DsseEnvelope(envelope) = &bundle.content {
        let statement: Statement = serde_json::from_slice(envelope.payload.as_bytes())
            .map_err(|error| format!("its signature has no statement: {error}"))?;
        if !STATEMENTS.contains(&&*statement.predicate_type) {
            let kind = shown(&statement.predicate_type).to_string();
            return Err(format!("the statement `{kind}` is not a signature"));
        }
    }
    Ok(bundle)
}

fn is_signed(
    verifier: &Verifier,
    bundle: &Bundle,
    manifest: &[u8],
    signer: &Signer,
) -> Result<(), String> {
    let verified = match signer {
        _ if is_about_other_content(bundle, manifest) => Err(OTHER_CONTENT.to_owned()),
        Signer::Key { der, .. } => is_signed_with(der, bundle, manifest),
        Signer::Identity { identity, issuer } => {
            let policy = VerificationPolicy::new(identity.as_str(), issuer.as_str());
            let verified = verifier.verify(manifest, bundle, &policy);
            verified.map(drop).map_err(|error| reason(&error.to_string()))
        }
    };
    verified.map_err(|problem| format!("a signature is not valid: {problem}"))
}

/// Returns the reason for a refusal in plain words, for the errors that are debugging output.
fn reason(error: &str) -> String {
    let unknown = "its certificate is of an authority that is not in the trust root";
    let reasons = [
        ("CertExpired", "its certificate had expired when it was logged"),
        ("CertNotValidYet", "its certificate was not valid yet when it was logged"),
        ("UnknownIssuer", unknown),
        // An authority with the same name.
        ("InvalidSignatureForPublicKey", unknown),
        ("No log key valid", "its log is not in the trust root, or was not at that time"),
    ];
    let known = reasons.iter().find(|(name, _)| error.contains(name));
    known.map_or(error, |(_, reason)| reason).to_owned()
}

/// Verifies the signature of a bundle with a key. The key itself is trusted, so no log and no
/// authority for timestamps needs to prove when it was used. `Verifier` requires one of them.
fn is_signed_with(der: &[u8], bundle: &Bundle, manifest: &[u8]) -> Result<(), String> {
    let key = DerPublicKey::new(der.to_vec());
    let scheme = KeyAlgorithm::from_spki(&key).map_err(|error| error.to_string())?;
    let scheme = scheme.default_signing_scheme();
    let verify = |message: &[u8], signature: &SignatureBytes| {
        verify_signature(&key, message, signature, scheme).map_err(|error| error.to_string())
    };
    let envelope = match &bundle.content {
        SignatureContent::DsseEnvelope(envelope) => envelope,
        SignatureContent::MessageSignature(message) => {
            return verify(manifest, &message.signature);
        }
        _ => return Err("it has an unknown form".to_owned()),
    };
    if envelope.payload_type != STATEMENT_TYPE {
        return Err(format!("it has the type `{}`", shown(&envelope.payload_type)));
    }
    verify(&envelope.pae(), &envelope.signature.sig)?;
    let statement: Statement =
        serde_json::from_slice(envelope.payload.as_bytes()).map_err(|error| error.to_string())?;
    let is_about = statement.matches_sha256(&Sha256Hash::new(Sha256Digest::of(manifest).0));
    match statement.type_ == Statement::TYPE_V1 && is_about {
        true => Ok(()),
        false => Err("it is about another artifact".to_owned()),
    }
}

/// Returns true if the digest in a bundle of a message is not that of the manifest.
fn is_about_other_content(bundle: &Bundle, manifest: &[u8]) -> bool {
    let SignatureContent::MessageSignature(message) = &bundle.content else { return false };
    message.message_digest.as_ref().is_some_and(|digest| {
        digest.algorithm == HashAlgorithm::Sha2256
            && digest.digest.as_bytes() != Sha256Digest::of(manifest).0
    })
}

/// Returns the identity in a valid certificate.
fn identity(verifier: &Verifier, bundle: &Bundle, manifest: &[u8]) -> Option<Signer> {
    let policy = VerificationPolicy::any_identity();
    let verified = verifier.verify(manifest, bundle, &policy).ok()?;
    let identity = verified.identity()?.as_str().to_owned();
    Some(Signer::Identity { identity, issuer: verified.issuer()?.to_owned() })
}
