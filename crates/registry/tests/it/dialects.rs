//! Registries that answer in other ways than the specification asks for.

use bytes::Bytes;
use kitbag_registry::{Registry, Sha256Digest};
use kitbag_test_servers::{Answer, SeenRequest};
use serde_json::{Value, json};

use crate::support::{Fixture, LIMIT, ada};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn is_manifest(request: &SeenRequest) -> bool {
    request.path().contains("/manifests/")
}

/// Returns an answer with another value of a header field. `None`: without the field.
fn with_header(mut answer: Answer, name: &str, value: Option<&str>) -> Answer {
    answer.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    match value {
        Some(value) => answer.header(name, value),
        None => answer,
    }
}

#[test]
fn header_fields_may_be_missing() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    let fields: [(&str, Option<&str>); 5] = [
        ("docker-content-digest", None),
        ("docker-content-digest", Some("sha512:00")),
        ("content-type", None),
        ("content-type", Some("application/json")),
        ("content-type", Some("Application/vnd.OCI.image.manifest.v1+json ; charset=utf-8")),
    ];
    for (name, value) in fields {
        fixture.server.change(move |request, answer| match is_manifest(request) {
            true => with_header(answer, name, value),
            false => answer,
        });
        for rest in ["org/tool:1", &format!("org/tool@{digest}")] {
            let pulled = fixture.pull(rest).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!((&*pulled.component, pulled.digest), (&b"component"[..], digest));
        }
    }
}

#[test]
fn indexes_are_seen_without_their_type() {
    let fixture = Fixture::new();
    let (size, digest) = fixture.push("org/tool:arm", b"component");
    let entry = json!({ "mediaType": MANIFEST, "digest": digest.to_string(), "size": size });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] }).to_string();
    let types = [
        INDEX,
        "application/vnd.oci.image.index.v1+json; charset=utf-8",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "text/plain",
        MANIFEST,
    ];
    for media_type in types {
        fixture.server.put_manifest("org/tool", "1", media_type, index.as_bytes());
        assert_eq!(&*fixture.pull("org/tool:1").unwrap().component, b"component", "{media_type}");
    }
    // Content that programs could read in two ways.
    let both = json!({ "schemaVersion": 2, "manifests": [], "layers": [], "mediaType": MANIFEST });
    fixture.server.put_manifest("org/tool", "1", MANIFEST, both.to_string().as_bytes());
    let error = fixture.refused("org/tool:1");
    assert!(error.ends_with("it is both an index and a manifest"), "{error}");
}

#[test]
fn the_best_platform_is_chosen() {
    let fixture = Fixture::new();
    let mut entries = Vec::new();
    let platforms = [
        ("unknown", "unknown"),
        ("linux", "arm64"),
        ("linux", "amd64"),
        ("windows", "amd64"),
        ("wasip1", "wasm"),
    ];
    let check = |entries: &[Value], expected: &str| {
        let index =
            json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries }).to_string();
        fixture.server.put_manifest("org/tool", "1", INDEX, index.as_bytes());
        match fixture.pull("org/tool:1") {
            Ok(pulled) => assert_eq!(pulled.component, expected),
            Err(error) => assert!(error.to_string().ends_with(expected), "{error}"),
        }
    };
    let expected = [
        "it is an index without a usable manifest",
        "linux/arm64",
        "linux/amd64",
        "linux/amd64",
        "wasip1/wasm",
    ];
    for ((os, architecture), expected) in platforms.into_iter().zip(expected) {
        let name = format!("{os}/{architecture}");
        let (size, digest) = fixture.push(&format!("org/tool:{os}"), name.as_bytes());
        entries.push(json!({
            "mediaType": MANIFEST,
            "digest": digest.to_string(),
            "size": size,
            "platform": { "os": os, "architecture": architecture, "variant": "v8" },
        }));
        check(&entries, expected);
    }
    check(&[], "it is an index without a usable manifest");
}

#[test]
fn lists_may_be_null() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    fixture.server.change(move |request, answer| match request.path().contains("/referrers/") {
        true => Answer::ok(
            INDEX,
            r#"{"schemaVersion": 2, "manifests": null, "annotations": null, "subject": null}"#,
        ),
        false => answer,
    });
    let registry = fixture.registry("org/tool:1");
    assert_eq!(registry.bundles(digest).unwrap(), Vec::<Bytes>::new());
    let empty = json!({ "schemaVersion": 2, "config": { "mediaType": "a/b", "size": 2,
        "digest": Sha256Digest::of(b"{}").to_string() }, "layers": null });
    fixture.server.put_manifest("org/tool", "2", MANIFEST, empty.to_string().as_bytes());
    let error = fixture.refused("org/tool:2");
    assert!(error.ends_with("it contains no component"), "{error}");
}

#[test]
fn registries_without_the_api_for_referrers_have_a_tag() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    fixture.server.attach("org/tool", &digest.to_string(), "{\"a\": 1}");
    let page = || Answer::ok("text/html; charset=utf-8", "<!doctype html><p>Not found");
    let answers: Vec<Answer> = [400, 404, 405, 406, 410, 415, 501]
        .into_iter()
        .map(|status| Answer::new(status, "404 page not found"))
        .chain([page(), Answer::ok("application/json", "{}"), Answer::redirect(303, "/404")])
        .collect();
    for answer in answers {
        let shown = format!("{answer:?}");
        fixture.server.change(move |request, other| match request.path() {
            path if path.contains("/referrers/") => answer.clone(),
            "/404" => Answer::ok("text/html", "<!doctype html>"),
            _ => other,
        });
        let bundles = fixture.registry("org/tool:1").bundles(digest).unwrap();
        assert_eq!(bundles, ["{\"a\": 1}"], "{shown}");
    }
    // Errors are not an answer that there are none.
    for status in [401, 403, 429, 500, 503] {
        fixture.server.change(move |request, other| match request.path().contains("/referrers/") {
            true => Answer::new(status, "{}"),
            false => other,
        });
        assert!(fixture.registry("org/tool:1").bundles(digest).is_err(), "{status}");
    }
}

#[test]
fn all_pages_of_referrers_are_read() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    fixture.server.attach("org/tool", &digest.to_string(), "{\"a\": 1}");
    let tag = digest.to_string().replace(':', "-");
    let with = |link: &'static str| {
        let (path, tag) = (format!("/v2/org/tool/referrers/{digest}"), tag.clone());
        let last = fixture.registry("org/tool:1").bundles(digest).unwrap();
        assert_eq!(last.len(), 1);
        let index = json!({ "schemaVersion": 2, "manifests": [] }).to_string();
        let entries = fixture.server.manifest("org/tool", &tag);
        fixture.server.change(move |request, other| {
            if request.path() != path {
                return other;
            }
            match request.target.ends_with("?last=1") {
                true => Answer::ok(INDEX, entries.clone()),
                false => Answer::ok(INDEX, &*index).header("link", link),
            }
        });
        fixture.registry("org/tool:1").bundles(digest)
    };
    assert_eq!(with("<?last=1>; rel=\"next\"").unwrap().len(), 1);
    fixture.server.unchanged();
    assert_eq!(with("</a>; rel=\"prev\", <?last=1>; rel=next").unwrap().len(), 1);
    fixture.server.unchanged();
    // Another host, which must not get requests.
    assert_eq!(with("<https://10.0.0.1/?last=1>; rel=\"next\"").unwrap().len(), 0);
    fixture.server.unchanged();
    let error = with("<?page=2>; rel=\"next\"").unwrap_err().to_string();
    assert!(error.ends_with("there are more than 16 pages"), "{error}");
}

#[test]
fn challenges_may_be_incomplete() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let realm = format!("https://{}/token", fixture.server.host());
    let challenges = [
        format!("Bearer realm={realm},service=\"tests\""),
        format!("bearer service=tests , realm = \"{realm}\""),
        format!("Basic realm=\"tests\", Bearer realm=\"{realm}\",scope=\"\""),
        format!("Negotiate, Bearer error=\"invalid_token\",realm=\"{realm}\""),
    ];
    for challenge in challenges {
        fixture.server.require_token();
        let shown = challenge.clone();
        fixture.server.change(move |request, answer| match answer.status {
            401 if request.path() != "/token" => {
                with_header(answer, "www-authenticate", Some(&challenge))
            }
            _ => answer,
        });
        let before = fixture.server.seen().requests.len();
        let reference = fixture.reference("org/tool:1");
        let registry = Registry::new(&fixture.web, &reference, ada("secret"));
        let pulled = registry.pull(&reference).unwrap_or_else(|error| panic!("{shown}: {error}"));
        assert_eq!(&*registry.artifact(&pulled, LIMIT).unwrap().component, b"component");
        let seen = fixture.server.seen();
        let asked = seen.requests[before..].iter().find(|it| it.path() == "/token").unwrap();
        assert!(asked.target.contains("scope=repository%3Aorg%2Ftool%3Apull"), "{asked:?}");
    }
}

#[test]
fn long_errors_for_small_content_are_shown() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let text = format!("quota {}", "exceeded ".repeat(20));
    let body = json!({ "errors": [{ "code": "DENIED", "message": text }] }).to_string();
    fixture.server.change(move |request, answer| match request.path().contains("/blobs/") {
        true => Answer::new(403, &*body),
        false => answer,
    });
    let error = fixture.refused("org/tool:1");
    assert!(error.contains(": quota exceeded exceeded"), "{error}");
}
