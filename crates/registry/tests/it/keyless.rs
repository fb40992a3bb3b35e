//! Signatures of identities, with a trust root of the tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use kitbag_registry::{RegistryError, Sha256Digest, Signature, Signer, TrustRoot, verify};
use kitbag_test_servers::{Keyless, Sigstore, VALID};
use serde_json::Value;

use crate::support::Fixture;

const MANIFEST: &[u8] = b"the manifest of an artifact";
const WORKFLOW: &str = "https://git.example/org/tool/.workflows/release.yml@refs/heads/main";
const ISSUER: &str = "https://tokens.git.example";

fn signer(identity: &str, issuer: &str) -> Signer {
    Signer::Identity { identity: identity.to_owned(), issuer: issuer.to_owned() }
}

fn workflow() -> Keyless {
    Keyless::new(WORKFLOW, ISSUER)
}

fn manifest_digest() -> String {
    Sha256Digest::of(MANIFEST).to_string()
}

fn root(services: &Sigstore) -> TrustRoot {
    TrustRoot::parse("root.json", &services.trust_root().to_string()).unwrap()
}

fn check(root: &TrustRoot, bundle: &Value, required: Signer) -> Result<Signature, RegistryError> {
    let bundles = [Bytes::from(bundle.to_string())];
    verify("oci://HOST/tool:1", MANIFEST, &bundles, &[&[required]], root)
}

/// Returns the reason why a bundle is not a signature of the workflow.
fn refused(services: &Sigstore, bundle: &Value) -> String {
    let error = check(&root(services), bundle, signer(WORKFLOW, ISSUER)).unwrap_err().to_string();
    let start = format!(
        "`oci://HOST/tool:1` must be signed by {WORKFLOW} ({ISSUER}), as your user config \
         requires, but a signature is not valid: "
    );
    error.strip_prefix(&start).unwrap_or_else(|| panic!("another error: {error}")).to_owned()
}

/// All forms of valid signatures.
fn forms(services: &Sigstore) -> Vec<(&'static str, Value)> {
    let version_2 = Keyless { is_version_2: true, ..workflow() };
    vec![
        ("statement", services.sign(&manifest_digest(), &workflow())),
        ("statement, version 2", services.sign(&manifest_digest(), &version_2)),
        ("message", services.sign_message(MANIFEST, &workflow())),
        ("message, version 2", services.sign_message(MANIFEST, &version_2)),
    ]
}

#[test]
fn signatures_of_identities_are_verified() {
    let services = Sigstore::new();
    let (root, by) = (root(&services), signer(WORKFLOW, ISSUER));
    for (form, bundle) in forms(&services) {
        let required = Signature::Signed { by: by.clone(), is_required: true };
        assert_eq!(check(&root, &bundle, by.clone()).expect(form), required);
        let bundles = [Bytes::from(bundle.to_string())];
        let found = verify("oci://HOST/tool:1", MANIFEST, &bundles, &[], &root).unwrap();
        assert_eq!(found, Signature::Signed { by: by.clone(), is_required: false }, "{form}");
    }
    let person = Keyless::new("ada@example.com", ISSUER);
    let bundle = services.sign(&manifest_digest(), &person);
    assert!(check(&root, &bundle, signer("ada@example.com", ISSUER)).is_ok());
}

#[test]
fn other_identities_and_issuers_are_refused() {
    let services = Sigstore::new();
    let others = [
        (Keyless { identity: "eve@example.com".to_owned(), ..workflow() }, "identity mismatch"),
        (Keyless { identity: WORKFLOW.replace("main", "eve"), ..workflow() }, "identity mismatch"),
        (Keyless { identity: format!("{WORKFLOW}/"), ..workflow() }, "identity mismatch"),
        (Keyless { issuer: "https://eve.example".to_owned(), ..workflow() }, "issuer mismatch"),
        (Keyless { issuer: String::new(), ..workflow() }, "issuer mismatch"),
    ];
    for (other, expected) in others {
        let reason = refused(&services, &services.sign(&manifest_digest(), &other));
        assert!(reason.to_lowercase().contains(expected), "{reason}");
    }
}

#[test]
fn services_of_others_are_refused() {
    let (services, other) = (Sigstore::new(), Sigstore::new());
    let version_2 = Keyless { is_version_2: true, ..workflow() };
    let with = |change: fn(&mut Sigstore, &Sigstore)| {
        let mut mixed = services.clone();
        change(&mut mixed, &other);
        mixed
    };
    let cases = [
        ("everything", other.clone(), workflow(), "log"),
        (
            "authority",
            with(|own, other| own.authority = other.authority.clone()),
            workflow(),
            "its certificate is of an authority that is not in the trust root",
        ),
        (
            "log of certificates",
            with(|own, other| own.certificates = other.certificates.clone()),
            workflow(),
            "SCT",
        ),
        (
            "log",
            with(|own, other| own.log = other.log.clone()),
            workflow(),
            "its log is not in the trust root",
        ),
        (
            "log, version 2",
            with(|own, other| own.log = other.log.clone()),
            version_2.clone(),
            "checkpoint",
        ),
        (
            "authority for timestamps",
            with(|own, other| own.stamps = other.stamps.clone()),
            version_2,
            "timestamp",
        ),
    ];
    for (case, signing, signature, expected) in cases {
        let bundle = signing.sign(&manifest_digest(), &signature);
        let reason = refused(&services, &bundle);
        assert!(reason.to_lowercase().contains(&expected.to_lowercase()), "{case}: {reason}");
        // The same bundle is valid with the matching trust root.
        assert!(check(&root(&signing), &bundle, signer(WORKFLOW, ISSUER)).is_ok(), "{case}");
    }
    // The root of this build.
    let bundle = services.sign(&manifest_digest(), &workflow());
    assert!(check(&TrustRoot::shipped().unwrap(), &bundle, signer(WORKFLOW, ISSUER)).is_err());
}

#[test]
fn a_proof_of_another_log_is_refused() {
    let (services, other) = (Sigstore::new(), Sigstore::new());
    let mut bundle = services.sign(&manifest_digest(), &workflow());
    let mut mixed = services.clone();
    mixed.log = other.log.clone();
    let foreign = mixed.sign(&manifest_digest(), &workflow());
    let entry = "/verificationMaterial/tlogEntries/0";
    // The promise of this log, with the checkpoint and the proof of the other one.
    let proof = foreign.pointer(&format!("{entry}/inclusionProof")).unwrap().clone();
    *bundle.pointer_mut(&format!("{entry}/inclusionProof")).unwrap() = proof;
    let reason = refused(&services, &bundle);
    assert!(reason.contains("inclusion proof verification failed"), "{reason}");
    // The whole entry of another signature, which the log did add.
    let later = services.sign(&manifest_digest(), &workflow());
    let mut bundle = services.sign(&manifest_digest(), &workflow());
    *bundle.pointer_mut(entry).unwrap() = later.pointer(entry).unwrap().clone();
    let reason = refused(&services, &bundle);
    assert!(reason.contains("does not match"), "{reason}");
}

#[test]
fn signatures_outside_of_the_certificate_are_refused() {
    let services = Sigstore::new();
    let valid = VALID as i64;
    for (after, is_valid) in
        [(-1, false), (0, true), (valid, true), (valid + 1, false), (365 * 86_400, false)]
    {
        for is_version_2 in [false, true] {
            let signature = Keyless { after, is_version_2, ..workflow() };
            let bundle = services.sign(&manifest_digest(), &signature);
            if is_valid {
                let found = check(&root(&services), &bundle, signer(WORKFLOW, ISSUER));
                assert!(found.is_ok(), "{after}: {found:?}");
                continue;
            }
            let reason = refused(&services, &bundle);
            let expected = if after < 0 { "was not valid yet" } else { "had expired" };
            let expected = format!("its certificate {expected} when it was logged");
            assert_eq!(reason, expected, "{after}");
        }
    }
    // A certificate that has been valid since, in a log of the future.
    let signature = Keyless { after: 100_000_000_000, ..workflow() };
    let reason = refused(&services, &services.sign(&manifest_digest(), &signature));
    assert!(reason.contains("in the future"), "{reason}");
}

#[test]
fn a_trust_root_has_times() {
    let services = Sigstore::new();
    let bundle = services.sign(&manifest_digest(), &workflow());
    for key in [
        "/tlogs/0/publicKey/validFor",
        "/ctlogs/0/publicKey/validFor",
        "/certificateAuthorities/0/validFor",
    ] {
        let mut text = services.trust_root();
        text.pointer_mut(key).unwrap()["end"] = "2024-05-01T00:00:00Z".into();
        let ended = TrustRoot::parse("root.json", &text.to_string()).unwrap();
        let found = check(&ended, &bundle, signer(WORKFLOW, ISSUER));
        assert!(found.is_err(), "{key}");
    }
}

#[test]
fn incomplete_certificates_and_bundles_are_refused() {
    let services = Sigstore::new();
    let check = |signature: Keyless, expected: &str| {
        let reason = refused(&services, &services.sign(&manifest_digest(), &signature));
        assert!(reason.contains(expected), "{expected}: {reason}");
    };
    check(Keyless { has_sct: false, ..workflow() }, "missing SCT");
    check(Keyless { is_for_code: false, ..workflow() }, "certificate chain validation failed");
    let without = |part: &str, is_version_2: bool, expected: &str| {
        let signature = Keyless { is_version_2, ..workflow() };
        let mut bundle = services.sign(&manifest_digest(), &signature);
        let (parent, key) = part.rsplit_once('/').unwrap();
        let parent = bundle.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        assert!(parent.remove(key).is_some(), "{part}");
        let reason = refused(&services, &bundle);
        assert!(reason.to_lowercase().contains(expected), "{part}: {reason}");
    };
    let material = "/verificationMaterial";
    without(&format!("{material}/tlogEntries"), false, "proof");
    without(&format!("{material}/tlogEntries/0/inclusionProof"), false, "proof");
    without(&format!("{material}/tlogEntries/0/inclusionPromise"), false, "timestamp");
    without(&format!("{material}/tlogEntries/0/inclusionProof"), true, "proof");
    without(&format!("{material}/timestampVerificationData"), true, "timestamp");
    // An entry without a checkpoint.
    without(&format!("{material}/tlogEntries/0/inclusionProof/checkpoint"), false, "checkpoint");
}

#[test]
fn signatures_of_other_content_are_refused() {
    let services = Sigstore::new();
    let other = Sha256Digest::of(b"another manifest").to_string();
    let reason = refused(&services, &services.sign(&other, &workflow()));
    assert!(reason.contains("artifact hash does not match any subject"), "{reason}");
    // A component, signed as a file.
    let reason = refused(&services, &services.sign_message(b"component", &workflow()));
    assert!(reason.contains("it signs other content, such as a file"), "{reason}");
    // The same bundle without a digest, or with the digest of the manifest.
    for digest in [None, Some(BASE64.encode(Sha256Digest::of(MANIFEST).0))] {
        let mut bundle = services.sign_message(b"component", &workflow());
        match digest {
            None => {
                bundle["messageSignature"].as_object_mut().unwrap().remove("messageDigest");
            }
            Some(digest) => bundle["messageSignature"]["messageDigest"]["digest"] = digest.into(),
        }
        let reason = refused(&services, &bundle);
        assert!(reason.contains("signature verification failed"), "{reason}");
    }
}

/// The fields of a bundle in Base64, whose bytes are all signed or compared.
fn encoded(value: &Value, path: &str, found: &mut Vec<String>) {
    let fields = [
        "rawBytes",
        "keyId",
        "signedEntryTimestamp",
        "rootHash",
        "canonicalizedBody",
        "payload",
        "sig",
        "signature",
        "digest",
    ];
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                encoded(value, &format!("{path}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                encoded(value, &format!("{path}/{at}"), found);
            }
        }
        Value::String(_) => {
            let name = path.rsplit('/').find(|part| part.parse::<usize>().is_err()).unwrap();
            if fields.contains(&name) || name == "hashes" {
                found.push(path.to_owned());
            }
        }
        _ => {}
    }
}

#[test]
fn every_flipped_byte_is_refused() {
    let services = Sigstore::new();
    let (root, by) = (root(&services), signer(WORKFLOW, ISSUER));
    for (form, bundle) in forms(&services) {
        let mut fields = Vec::new();
        encoded(&bundle, "", &mut fields);
        assert!(fields.len() >= 7, "{form}: {fields:?}");
        for field in fields {
            // Version 2 of the log names its key in the checkpoint and its tree there.
            if form.ends_with("version 2")
                && (field.ends_with("/keyId") || field.ends_with("/rootHash"))
            {
                continue;
            }
            let bytes = BASE64.decode(bundle.pointer(&field).unwrap().as_str().unwrap()).unwrap();
            // Each tenth byte, and the last.
            for at in (0..bytes.len()).step_by(10).chain([bytes.len() - 1]) {
                let (mut changed, mut bytes) = (bundle.clone(), bytes.clone());
                bytes[at] ^= 1;
                *changed.pointer_mut(&field).unwrap() = BASE64.encode(bytes).into();
                assert!(check(&root, &changed, by.clone()).is_err(), "{form}: {field}, byte {at}");
            }
        }
    }
}

#[test]
fn changed_timestamps_are_refused() {
    let services = Sigstore::new();
    let signature = Keyless { is_version_2: true, ..workflow() };
    let bundle = services.sign(&manifest_digest(), &signature);
    let field =
        "/verificationMaterial/timestampVerificationData/rfc3161Timestamps/0/signedTimestamp";
    let bytes = BASE64.decode(bundle.pointer(field).unwrap().as_str().unwrap()).unwrap();
    let time = b"20240601000100Z";
    let at = bytes.windows(time.len()).position(|window| window == time).unwrap();
    for at in [at + 9, bytes.len() - 1] {
        let (mut changed, mut bytes) = (bundle.clone(), bytes.clone());
        bytes[at] ^= 1;
        *changed.pointer_mut(field).unwrap() = BASE64.encode(bytes).into();
        let reason = refused(&services, &changed);
        assert!(reason.contains("TSA timestamp verification failed"), "{reason}");
    }
    // The timestamp of another signature.
    let other = services.sign(&manifest_digest(), &signature);
    let mut changed = bundle.clone();
    *changed.pointer_mut(field).unwrap() = other.pointer(field).unwrap().clone();
    let reason = refused(&services, &changed);
    assert!(reason.contains("TSA timestamp verification failed"), "{reason}");
}

#[test]
fn bundles_of_identities_are_found_in_a_registry() {
    let services = Sigstore::new();
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    let bundle = services.sign(&digest.to_string(), &workflow()).to_string();
    fixture.server.attach("org/tool", &digest.to_string(), &bundle);
    let registry = fixture.registry("org/tool:1");
    let pulled = registry.pull(&fixture.reference("org/tool:1")).unwrap();
    let bundles = registry.bundles(pulled.digest).unwrap();
    let by = signer(WORKFLOW, ISSUER);
    let required: &[&[Signer]] = &[std::slice::from_ref(&by)];
    let found = verify("tool", &pulled.signed, &bundles, required, &root(&services)).unwrap();
    assert_eq!(found, Signature::Signed { by, is_required: true });
}

#[test]
fn mistakes_of_trust_roots_are_named() {
    let check = |text: &str| {
        let error = TrustRoot::parse("`root.json`", text).unwrap_err().to_string();
        assert!(error.starts_with("`root.json` is not a trust root: "), "{error}");
    };
    check("");
    check("{}");
    let change = |key: &str, value: Value| {
        let mut root = Sigstore::new().trust_root();
        *root.pointer_mut(key).unwrap() = value;
        root.to_string()
    };
    check(&change("/tlogs/0/publicKey/rawBytes", "AAAA".into()));
    check(&change("/tlogs/0/logId/keyId", "AAAA".into()));
    check(&change("/certificateAuthorities/0/certChain/certificates/0/rawBytes", "AAAA".into()));
    check(&change("/certificateAuthorities/0/certChain/certificates", Value::Array(Vec::new())));
}
