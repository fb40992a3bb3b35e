//! Signatures that are valid, missing and forged.

use bytes::Bytes;
use kitbag_registry::{
    NewArtifact, RegistryError, Sha256Digest, Signature, Signer, SigningKey, TrustRoot, verify,
};
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::support::Fixture;

fn key() -> (SigningKey, Signer) {
    let key = SigningKey::from_pem("key", KeyPair::generate().unwrap().serialize_pem().as_bytes());
    let key = key.unwrap();
    let signer = Signer::Key { name: "org.pub".to_owned(), der: key.public_key() };
    (key, signer)
}

fn check(
    manifest: &[u8],
    bundles: &[Bytes],
    required: &[&[Signer]],
) -> Result<Signature, RegistryError> {
    verify("oci://HOST/tool:1", manifest, bundles, required, &TrustRoot::shipped().unwrap())
}

fn refused(manifest: &[u8], bundles: &[Bytes], required: &[&[Signer]]) -> String {
    check(manifest, bundles, required).unwrap_err().to_string()
}

fn bundle(artifact: &NewArtifact) -> Bytes {
    artifact.layers[0].bytes.clone()
}

#[test]
fn artifacts_are_signed_and_verified() {
    let fixture = Fixture::new();
    let pushed = fixture.push("org/tool:1", b"component");
    let registry = fixture.registry("org/tool:1");
    assert_eq!(registry.bundles(pushed.1).unwrap(), Vec::<Bytes>::new());
    let ((ada, ada_key), (bob, bob_key), (_, other)) = (key(), key(), key());
    for key in [&ada, &bob] {
        registry.push(None, &key.sign(pushed).unwrap()).unwrap();
    }
    let bundles = registry.bundles(pushed.1).unwrap();
    let manifest = &*registry.pull(&fixture.reference("org/tool:1")).unwrap().signed;
    assert_eq!(bundles.len(), 2);
    let signed = |by: &Signer| Signature::Signed { by: by.clone(), is_required: true };
    let either = [other.clone(), bob_key.clone()];
    assert_eq!(check(manifest, &bundles, &[&either]).unwrap(), signed(&bob_key));
    // Each rule of the configuration must be met.
    let [ada_only, bob_only] = [[ada_key.clone()], [bob_key.clone()]];
    assert_eq!(check(manifest, &bundles, &[&bob_only, &ada_only]).unwrap(), signed(&ada_key));
    assert!(check(manifest, &bundles, &[&ada_only, &[other]]).is_err());
    assert_eq!(check(manifest, &bundles, &[]).unwrap(), Signature::Unknown);
}

#[test]
fn missing_and_wrong_signatures_are_refused() {
    let ((ada, ada_key), (eve, _)) = (key(), key());
    let (digest, other) = (Sha256Digest::of(b"manifest"), Sha256Digest::of(b"other"));
    let required: &[&[Signer]] = &[&[ada_key]];
    let error = refused(b"manifest", &[], required);
    assert!(error.contains("but it is unsigned"), "{error}");
    assert_eq!(check(b"manifest", &[], &[]).unwrap(), Signature::Unsigned);
    for (key, signed) in [(&eve, digest), (&ada, other)] {
        let bundles = [bundle(&key.sign((8, signed)).unwrap())];
        let error = refused(b"manifest", &bundles, required);
        assert!(error.contains("a signature is not valid"), "{error}");
    }
    let own = bundle(&ada.sign((8, digest)).unwrap());
    assert!(check(b"manifest", &[own], required).is_ok());
}

#[test]
fn forged_bundles_are_refused() {
    let (ada, signer) = key();
    let digest = Sha256Digest::of(b"manifest");
    let own = bundle(&ada.sign((8, digest)).unwrap());
    let other = bundle(&ada.sign((8, Sha256Digest::of(b"other"))).unwrap());
    let required: &[&[Signer]] = &[&[signer]];
    let forged = |change: &dyn Fn(&mut Value, &Value)| {
        let [mut own, other] =
            [&own, &other].map(|it| serde_json::from_slice::<Value>(it).unwrap());
        change(&mut own, &other);
        Bytes::from(own.to_string())
    };
    let bundles = [
        // The payload of one signature with another signature.
        forged(&|own, other| {
            own["dsseEnvelope"]["signatures"] = other["dsseEnvelope"]["signatures"].clone()
        }),
        forged(&|own, other| {
            own["dsseEnvelope"]["payload"] = other["dsseEnvelope"]["payload"].clone()
        }),
        forged(&|own, _| own["dsseEnvelope"]["payloadType"] = "text/plain".into()),
        forged(&|own, _| own["dsseEnvelope"]["signatures"] = Value::Array(Vec::new())),
        forged(&|own, _| own["mediaType"] = "application/json".into()),
        Bytes::from_static(b"{}"),
        Bytes::from_static(b"\xff"),
    ];
    for bundle in bundles {
        let error = refused(b"manifest", std::slice::from_ref(&bundle), required);
        assert!(error.contains("must be signed by key "), "{error}");
    }
}

/// A bundle of a message, as of `cosign sign-blob --key`.
fn message_bundle(key: &KeyPair, message: &[u8], digest: Option<Sha256Digest>) -> Bytes {
    use base64::Engine as _;
    use rcgen::SigningKey as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let mut signature = json!({ "signature": engine.encode(key.sign(message).unwrap()) });
    if let Some(digest) = digest {
        signature["messageDigest"] =
            json!({ "algorithm": "SHA2_256", "digest": engine.encode(digest.0) });
    }
    let bundle = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": { "publicKey": { "hint": "" } },
        "messageSignature": signature,
    });
    bundle.to_string().into()
}

#[test]
fn signatures_of_messages_are_verified() {
    let kinds =
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519];
    for kind in kinds {
        let key = KeyPair::generate_for(kind).unwrap();
        let der = rcgen::PublicKeyData::subject_public_key_info(&key);
        let required: &[&[Signer]] = &[&[Signer::Key { name: "org.pub".to_owned(), der }]];
        let digest = |content: &[u8]| Some(Sha256Digest::of(content));
        for digest in [None, digest(b"manifest")] {
            let bundle = message_bundle(&key, b"manifest", digest);
            assert!(check(b"manifest", &[bundle], required).is_ok(), "{kind:?}");
        }
        // A component, signed as a file.
        let bundle = message_bundle(&key, b"component", digest(b"component"));
        let error = refused(b"manifest", &[bundle], required);
        assert!(error.contains("it signs other content, such as a file"), "{error}");
        for digest in [None, digest(b"manifest")] {
            let bundle = message_bundle(&key, b"component", digest);
            let error = refused(b"manifest", &[bundle], required);
            assert!(error.contains("a signature is not valid: Verification error"), "{error}");
        }
    }
}

#[test]
fn other_statements_are_not_signatures() {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let (ada, signer) = key();
    let digest = Sha256Digest::of(b"manifest");
    let mut value: Value =
        serde_json::from_slice(&bundle(&ada.sign((8, digest)).unwrap())).unwrap();
    let payload = value["dsseEnvelope"]["payload"].as_str().unwrap();
    let payload = String::from_utf8(engine.decode(payload).unwrap()).unwrap();
    let payload = payload.replace("sigstore.dev/cosign/sign", "example.com/vulnerable");
    value["dsseEnvelope"]["payload"] = engine.encode(payload).into();
    let error = refused(b"manifest", &[value.to_string().into()], &[&[signer]]);
    assert!(error.contains("vulnerable/v1` is not a signature"), "{error}");
}

#[test]
fn keys_of_other_kinds_are_refused() {
    let pem = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().serialize_pem();
    for text in [&*pem, "nothing"] {
        let error = SigningKey::from_pem("key.pem", text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("`key.pem` is not a P-256 key in PEM"), "{error}");
    }
}

#[test]
fn signed_content_of_another_type_is_refused() {
    use base64::Engine as _;
    use rcgen::SigningKey as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let key = KeyPair::generate().unwrap();
    let der = rcgen::PublicKeyData::subject_public_key_info(&key);
    let required: &[&[Signer]] = &[&[Signer::Key { name: "org.pub".to_owned(), der }]];
    let payload = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{ "digest": { "sha256": Sha256Digest::of(b"manifest").hex() } }],
        "predicateType": "https://sigstore.dev/cosign/sign/v1",
        "predicate": {},
    });
    let payload = payload.to_string();
    for (kind, is_valid) in [("application/vnd.in-toto+json", true), ("text/plain", false)] {
        let signed = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        let bundle = json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": { "publicKey": { "hint": "" } },
            "dsseEnvelope": {
                "payload": engine.encode(&payload),
                "payloadType": kind,
                "signatures": [{ "sig": engine.encode(key.sign(signed.as_bytes()).unwrap()) }],
            },
        });
        match check(b"manifest", &[bundle.to_string().into()], required) {
            Ok(_) => assert!(is_valid),
            Err(error) => assert!(!is_valid && error.to_string().contains("the type `text/plain`")),
        }
    }
}
