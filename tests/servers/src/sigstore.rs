//! The services of Sigstore in memory: an authority for certificates, the log of certificates, the
//! log of signatures, and an authority for timestamps.
//!
//! Sources: RFC 6962 for the log of certificates, RFC 3161 and RFC 5652 for timestamps, and Rekor's
//! types `dsse` and `hashedrekord`.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
    SerialNumber, SigningKey, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use yasna::models::ObjectIdentifier;
use yasna::{Tag, construct_der};

/// The time at which certificates become valid: 2024-06-01, in seconds since the epoch.
pub const ISSUED: u64 = 1_717_200_000;

/// The seconds for which a certificate is valid.
pub const VALID: u64 = 600;

/// The type of a statement.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// The name of the authority for timestamps.
const STAMPS: &str = "kitbag tests timestamps";

const SCT_LIST: [u64; 10] = [1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
const IDENTITY_ISSUER: [u64; 9] = [1, 3, 6, 1, 4, 1, 57264, 1, 8];
const SHA256: [u64; 9] = [2, 16, 840, 1, 101, 3, 4, 2, 1];
const ECDSA_SHA256: [u64; 7] = [1, 2, 840, 10045, 4, 3, 2];
const SIGNED_DATA: [u64; 7] = [1, 2, 840, 113549, 1, 7, 2];
const TIMESTAMP: [u64; 9] = [1, 2, 840, 113549, 1, 9, 16, 1, 4];
const CONTENT_TYPE: [u64; 7] = [1, 2, 840, 113549, 1, 9, 3];
const MESSAGE_DIGEST: [u64; 7] = [1, 2, 840, 113549, 1, 9, 4];
const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];

/// The services. A test can replace a service by one from another instance.
#[derive(Clone)]
pub struct Sigstore {
    /// Issues certificates to identities.
    pub authority: Arc<IdentityAuthority>,
    /// The key of the log of certificates.
    pub certificates: Arc<KeyPair>,
    /// The key of the log of signatures.
    pub log: Arc<KeyPair>,
    /// Signs timestamps.
    pub stamps: Arc<TimestampAuthority>,
}

/// An authority that issues certificates to identities.
pub struct IdentityAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// The digest of its public key.
    key: [u8; 32],
    root: Certificate,
}

/// An authority that signs timestamps.
pub struct TimestampAuthority {
    key: KeyPair,
    leaf: Certificate,
    root: Certificate,
}

/// A signature to make.
#[derive(Clone, Debug)]
pub struct Keyless {
    /// The URI of a workflow, or an e-mail address.
    pub identity: String,
    /// The URL of the service that authenticated the identity.
    pub issuer: String,
    /// The seconds from the start of the certificate until the signature is logged.
    pub after: i64,
    /// True if the certificate has a timestamp of the log of certificates.
    pub has_sct: bool,
    /// True if the certificate is for signing code.
    pub is_for_code: bool,
    /// True for version 2 of the log, which has timestamps of an authority instead of its own.
    pub is_version_2: bool,
}

impl Keyless {
    /// A valid signature of an identity.
    pub fn new(identity: &str, issuer: &str) -> Self {
        Self {
            identity: identity.to_owned(),
            issuer: issuer.to_owned(),
            after: 60,
            has_sct: true,
            is_for_code: true,
            is_version_2: false,
        }
    }

    fn time(&self) -> u64 {
        ISSUED.saturating_add_signed(self.after)
    }
}

impl Sigstore {
    /// Creates services with new keys.
    #[expect(clippy::new_without_default, reason = "each one is another")]
    pub fn new() -> Self {
        let key = || KeyPair::generate().expect("a key");
        let (authority_key, stamp_key) = (key(), key());
        let params = authority("kitbag tests identities");
        let authority = IdentityAuthority {
            key: sha256(&authority_key.subject_public_key_info()),
            root: params.self_signed(&authority_key).expect("a certificate"),
            issuer: Issuer::new(params, authority_key),
        };
        let (params, root_key) = (self::authority(STAMPS), key());
        let root = params.self_signed(&root_key).expect("a certificate");
        let mut leaf = CertificateParams::default();
        leaf.serial_number = Some(SerialNumber::from(7));
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::TimeStamping];
        let leaf = leaf.signed_by(&stamp_key, &Issuer::new(params, root_key));
        let leaf = leaf.expect("a certificate");
        Self {
            authority: Arc::new(authority),
            certificates: Arc::new(key()),
            log: Arc::new(key()),
            stamps: Arc::new(TimestampAuthority { key: stamp_key, leaf, root }),
        }
    }

    /// The trust root of these services, in Sigstore's JSON format.
    pub fn trust_root(&self) -> Value {
        let since = json!({ "start": "2024-01-01T00:00:00Z" });
        let log = |key: &KeyPair| {
            json!({
                "baseUrl": "https://log.example",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": BASE64.encode(key.subject_public_key_info()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": since,
                },
                "logId": { "keyId": BASE64.encode(log_id(key)) },
            })
        };
        let authority = |chain: &[&Certificate]| {
            let chain = chain.iter().map(|it| json!({ "rawBytes": BASE64.encode(it.der()) }));
            json!({
                "subject": { "organization": "kitbag", "commonName": "tests" },
                "uri": "https://authority.example",
                "certChain": { "certificates": chain.collect::<Vec<_>>() },
                "validFor": since,
            })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log)],
            "certificateAuthorities": [authority(&[&self.authority.root])],
            "ctlogs": [log(&self.certificates)],
            "timestampAuthorities": [authority(&[&self.stamps.leaf, &self.stamps.root])],
        })
    }

    /// Signs the statement that the artifact with this digest is signed, as `cosign sign` does.
    pub fn sign(&self, digest: &str, signature: &Keyless) -> Value {
        let digest = digest.trim_start_matches("sha256:");
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "digest": { "sha256": digest } }],
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
        });
        let payload = statement.to_string();
        // Source: DSSE 1.0, "Pre-Authentication Encoding".
        let signed = format!("DSSEv1 {} {STATEMENT} {} {payload}", STATEMENT.len(), payload.len());
        let mut bundle = self.bundle(signed.as_bytes(), Some(payload.as_bytes()), signature);
        let made = bundle["signature"].take();
        bundle.as_object_mut().expect("an object").remove("signature");
        bundle["dsseEnvelope"] = json!({
            "payload": BASE64.encode(&payload),
            "payloadType": STATEMENT,
            "signatures": [{ "sig": made }],
        });
        bundle
    }

    /// Signs a message, as `cosign sign-blob` does.
    pub fn sign_message(&self, message: &[u8], signature: &Keyless) -> Value {
        let mut bundle = self.bundle(message, None, signature);
        let made = bundle["signature"].take();
        bundle.as_object_mut().expect("an object").remove("signature");
        bundle["messageSignature"] = json!({
            "messageDigest": {
                "algorithm": "SHA2_256",
                "digest": BASE64.encode(sha256(message)),
            },
            "signature": made,
        });
        bundle
    }

    /// Makes a bundle whose field `signature` is the signature, for its content.
    fn bundle(&self, signed: &[u8], payload: Option<&[u8]>, signature: &Keyless) -> Value {
        let key = KeyPair::generate().expect("a key");
        let made = key.sign(signed).expect("a signature");
        let certificate = self.certificate(&key, signature);
        let (kind, body) = entry(&certificate, signed, payload, &made, signature.is_version_2);
        let mut entry = self.logged(&body.to_string(), signature);
        entry["kindVersion"] = json!({ "kind": kind, "version": body["apiVersion"] });
        let mut material = json!({
            "certificate": { "rawBytes": BASE64.encode(certificate.der()) },
            "tlogEntries": [entry],
        });
        if signature.is_version_2 {
            let stamp = BASE64.encode(self.stamps.stamp(&made, signature.after));
            material["timestampVerificationData"] =
                json!({ "rfc3161Timestamps": [{ "signedTimestamp": stamp }] });
        }
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
            "signature": BASE64.encode(made),
        })
    }

    /// Issues a certificate, first without and then with the promise of the log of certificates.
    fn certificate(&self, key: &KeyPair, signature: &Keyless) -> Certificate {
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2024, 6, 1);
        params.not_after = params.not_before + Duration::from_secs(VALID);
        params.serial_number = Some(SerialNumber::from(11));
        params.distinguished_name = rcgen::DistinguishedName::new();
        let identity = signature.identity.clone().try_into().expect("a plain identity");
        params.subject_alt_names = vec![match signature.identity.contains("://") {
            true => SanType::URI(identity),
            false => SanType::Rfc822Name(identity),
        }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match signature.is_for_code {
            true => ExtendedKeyUsagePurpose::CodeSigning,
            false => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let issuer = construct_der(|writer| writer.write_utf8_string(&signature.issuer));
        params.custom_extensions =
            vec![CustomExtension::from_oid_content(&IDENTITY_ISSUER, issuer)];
        let issue = |params: &CertificateParams| {
            params.signed_by(key, &self.authority.issuer).expect("a certificate")
        };
        let certificate = issue(&params);
        if !signature.has_sct {
            return certificate;
        }
        let list = self.promise(&content_of(certificate.der()));
        let list = construct_der(|writer| writer.write_bytes(&list));
        params.custom_extensions.push(CustomExtension::from_oid_content(&SCT_LIST, list));
        issue(&params)
    }

    /// Promises to log a certificate. Returns the list with that promise.
    fn promise(&self, content: &[u8]) -> Vec<u8> {
        let time = (ISSUED * 1000).to_be_bytes();
        let length = (content.len() as u32).to_be_bytes();
        // Version 1, the kind of signature, and the kind of entry: a certificate without promises.
        let signed =
            [&[0, 0][..], &time, &[0, 1], &self.authority.key, &length[1..], content, &[0, 0]];
        let made = self.certificates.sign(&signed.concat()).expect("a signature");
        // ECDSA with SHA-256.
        let fields = [&[0][..], &log_id(&self.certificates), &time, &[0, 0], &[4, 3]];
        let promise = [&fields.concat()[..], &sized(&made)].concat();
        sized(&sized(&promise))
    }

    /// Adds an entry to a log with two others. Returns the entry of a bundle.
    fn logged(&self, body: &str, signature: &Keyless) -> Value {
        let leaf = |body: &[u8]| sha256(&[&[0], body].concat());
        let node = |left: [u8; 32], right: [u8; 32]| sha256(&[&[1], &left[..], &right].concat());
        let (before, after) = (leaf(b"before"), leaf(b"after"));
        let root = BASE64.encode(node(node(before, leaf(body.as_bytes())), after));
        let note = format!("log.example\n3\n{root}\n");
        let made = self.log.sign(note.as_bytes()).expect("a signature");
        let made = BASE64.encode([&log_id(&self.log)[..4], &made].concat());
        let hashes = [before, after].map(|hash| BASE64.encode(hash));
        let mut entry = json!({
            "logIndex": "1",
            "logId": { "keyId": BASE64.encode(log_id(&self.log)) },
            "inclusionProof": {
                "logIndex": "1",
                "treeSize": "3",
                "rootHash": root,
                "hashes": hashes,
                "checkpoint": { "envelope": format!("{note}\n\u{2014} log.example {made}\n") },
            },
            "canonicalizedBody": BASE64.encode(body),
        });
        if !signature.is_version_2 {
            let id: String = log_id(&self.log).iter().map(|byte| format!("{byte:02x}")).collect();
            let (time, body) = (signature.time(), BASE64.encode(body));
            // The fields are in the order of the canonical form.
            let signed = format!(
                r#"{{"body":"{body}","integratedTime":{time},"logID":"{id}","logIndex":1}}"#
            );
            let made = self.log.sign(signed.as_bytes()).expect("a signature");
            entry["integratedTime"] = json!(time.to_string());
            entry["inclusionPromise"] = json!({ "signedEntryTimestamp": BASE64.encode(made) });
        }
        entry
    }
}

impl TimestampAuthority {
    /// Returns a timestamp for a signature, these seconds after [`ISSUED`].
    fn stamp(&self, signature: &[u8], after: i64) -> Vec<u8> {
        let oid = ObjectIdentifier::from_slice;
        let start = date_time_ymd(2024, 6, 1);
        let distance = Duration::from_secs(after.unsigned_abs());
        let time = if after < 0 { start - distance } else { start + distance };
        let time = format!(
            "{}{:02}{:02}{:02}{:02}{:02}Z",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second()
        );
        let algorithm = |algorithm: &[u64]| {
            construct_der(|writer| {
                writer.write_sequence(|writer| writer.next().write_oid(&oid(algorithm)));
            })
        };
        let info = construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_u8(1);
                writer.next().write_oid(&oid(&[1, 2, 3, 4]));
                writer.next().write_sequence(|writer| {
                    writer.next().write_der(&algorithm(&SHA256));
                    writer.next().write_bytes(&sha256(signature));
                });
                writer.next().write_u8(1);
                let time = [&[0x18, time.len() as u8], time.as_bytes()].concat();
                writer.next().write_der(&time);
            });
        });
        let attributes = construct_der(|writer| {
            writer.write_set_of(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(&CONTENT_TYPE));
                    let set = |writer: &mut yasna::DERWriterSet<'_>| {
                        writer.next().write_oid(&oid(&TIMESTAMP));
                    };
                    writer.next().write_set_of(set);
                });
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(&MESSAGE_DIGEST));
                    let set = |writer: &mut yasna::DERWriterSet<'_>| {
                        writer.next().write_bytes(&sha256(&info));
                    };
                    writer.next().write_set_of(set);
                });
            });
        });
        let made = self.key.sign(&attributes).expect("a signature");
        // The set has an implicit tag in the message, but not in the signed content.
        let tagged = [&[0xa0], &attributes[1..]].concat();
        construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_oid(&oid(&SIGNED_DATA));
                writer.next().write_tagged(Tag::context(0), |writer| {
                    writer.write_sequence(|writer| {
                        writer.next().write_u8(3);
                        writer.next().write_set_of(|writer| {
                            writer.next().write_der(&algorithm(&SHA256));
                        });
                        writer.next().write_sequence(|writer| {
                            writer.next().write_oid(&oid(&TIMESTAMP));
                            let info = |writer: yasna::DERWriter<'_>| writer.write_bytes(&info);
                            writer.next().write_tagged(Tag::context(0), info);
                        });
                        writer.next().write_set_of(|writer| {
                            writer.next().write_sequence(|writer| {
                                writer.next().write_u8(1);
                                writer.next().write_sequence(|writer| {
                                    writer.next().write_der(&name(STAMPS));
                                    writer.next().write_u8(7);
                                });
                                writer.next().write_der(&algorithm(&SHA256));
                                writer.next().write_der(&tagged);
                                writer.next().write_der(&algorithm(&ECDSA_SHA256));
                                writer.next().write_bytes(&made);
                            });
                        });
                    });
                });
            });
        })
    }
}

/// Returns the kind and the body of an entry of the log.
fn entry(
    certificate: &Certificate,
    signed: &[u8],
    payload: Option<&[u8]>,
    made: &[u8],
    is_version_2: bool,
) -> (&'static str, Value) {
    let made = BASE64.encode(made);
    let hash = |bytes: &[u8]| {
        let hex: String = sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "algorithm": "sha256", "value": hex })
    };
    let pem = BASE64.encode(certificate.pem());
    match (is_version_2, payload) {
        (true, _) => {
            let verifier = json!({
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "x509Certificate": { "rawBytes": BASE64.encode(certificate.der()) },
            });
            let digest = BASE64.encode(sha256(signed));
            let record = json!({
                "data": { "algorithm": "SHA2_256", "digest": digest },
                "signature": { "content": made, "verifier": verifier },
            });
            let spec = json!({ "hashedRekordV002": record });
            ("hashedrekord", json!({ "apiVersion": "0.0.2", "kind": "hashedrekord", "spec": spec }))
        }
        (false, Some(payload)) => {
            let spec = json!({
                "envelopeHash": hash(signed),
                "payloadHash": hash(payload),
                "signatures": [{ "signature": made, "verifier": pem }],
            });
            ("dsse", json!({ "apiVersion": "0.0.1", "kind": "dsse", "spec": spec }))
        }
        (false, None) => {
            let spec = json!({
                "data": { "hash": hash(signed) },
                "signature": { "content": made, "publicKey": { "content": pem } },
            });
            ("hashedrekord", json!({ "apiVersion": "0.0.1", "kind": "hashedrekord", "spec": spec }))
        }
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Returns the DER of a name, as in the certificate of [`authority`].
fn name(name: &str) -> Vec<u8> {
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_set(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&ObjectIdentifier::from_slice(&COMMON_NAME));
                    writer.next().write_utf8_string(name);
                });
            });
        });
    })
}

/// Returns the signed content of a certificate.
fn content_of(certificate: &[u8]) -> Vec<u8> {
    let content = yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|reader| {
            let content = reader.next().read_der()?;
            reader.next().read_der()?;
            reader.next().read_der()?;
            Ok(content)
        })
    });
    content.expect("a certificate")
}

/// Returns bytes after their length in two bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

fn log_id(key: &KeyPair) -> [u8; 32] {
    sha256(&key.subject_public_key_info())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
