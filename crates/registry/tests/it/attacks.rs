//! Registries that lie.

use kitbag_registry::{Access, Reference, Registry};
use kitbag_test_servers::{Answer, SeenRequest};
use serde_json::{Value, json};

use crate::support::{Fixture, LIMIT, PRIVATE, ada};

fn is_component(request: &SeenRequest, answer: &Answer) -> bool {
    request.path().contains("/blobs/sha256:") && answer.body.starts_with(b"component")
}

#[test]
fn one_flipped_byte_is_refused() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    fixture.server.change(|request, mut answer| {
        if is_component(request, &answer) {
            answer.body[3] ^= 1;
        }
        answer
    });
    let error = fixture.refused("org/tool:1");
    assert!(error.contains("but sha256:") && error.contains("was expected"), "{error}");
    // A manifest with another content than its digest.
    fixture.server.change(|request, mut answer| {
        if request.path().contains("/manifests/") {
            answer.body.push(b' ');
        }
        answer
    });
    for rest in ["org/tool:1", &format!("org/tool@{digest}")] {
        let error = fixture.refused(rest);
        assert!(error.contains("was expected"), "{error}");
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let answers: [fn(&mut Vec<u8>); 3] =
        [|body| body.truncate(4), |body| body.push(b'!'), |body| body.resize(32 << 20, 0)];
    for change in answers {
        fixture.server.change(move |request, mut answer| {
            if is_component(request, &answer) {
                change(&mut answer.body);
            }
            answer
        });
        let error = fixture.refused("org/tool:1");
        assert!(error.contains("declares 9") || error.contains("is larger than 9"), "{error}");
    }
}

#[test]
fn huge_components_are_refused_before_they_are_sent() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    fixture.server.change(|request, mut answer| {
        if request.path().ends_with("/manifests/1") {
            let mut manifest: Value = serde_json::from_slice(&answer.body).unwrap();
            manifest["layers"][0]["size"] = json!(1_u64 << 40);
            answer = Answer::ok("application/json", manifest.to_string());
        }
        answer
    });
    let error = fixture.refused("org/tool:1");
    assert!(error.contains("may have at most 64 MiB"), "{error}");
    let seen = fixture.server.seen();
    assert!(!seen.requests.iter().any(|it| it.method == "GET" && it.path().contains("/blobs/")));
    // A manifest without end.
    fixture.server.change(|_, mut answer| {
        answer.body.resize(5 << 20, b' ');
        answer.headers.clear();
        answer
    });
    let error = fixture.refused("org/tool:1");
    assert!(error.contains("is larger than"), "{error}");
}

#[test]
fn files_cannot_leave_their_directory() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    for name in ["../evil.toml", "/etc/evil", ".hidden", "a/b.toml", "tool.WASM", "a\u{202e}b", ""]
    {
        fixture.server.change(move |request, mut answer| {
            if request.path().ends_with("/manifests/1") {
                let mut manifest: Value = serde_json::from_slice(&answer.body).unwrap();
                let title = "org.opencontainers.image.title";
                manifest["layers"][1]["annotations"] = json!({ title: name });
                answer = Answer::ok("application/json", manifest.to_string());
            }
            answer
        });
        let error = fixture.refused("org/tool:1");
        assert!(error.contains("is not the name of a file beside it"), "{name}: {error}");
    }
}

#[test]
fn private_registries_need_a_line_in_the_configuration() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let before = fixture.server.seen().requests.len();
    for host in [fixture.server.host(), fixture.server.host().replace("localhost", "127.0.0.1")] {
        let reference = format!("oci://{host}/org/tool:1").parse().unwrap();
        let registry = Registry::new(&fixture.web, &reference, Access::default(), None);
        let error = registry.pull(&reference).unwrap_err().to_string();
        assert!(error.contains("write `private = true`"), "{error}");
    }
    let text = format!("https://{}/t.wasm#sha256={}", fixture.server.host(), "0".repeat(64));
    let Some(Ok(Reference::Url(url))) = Reference::parse(&text) else { panic!("it is a URL") };
    let error = fixture.web.component(&url, Access::default(), LIMIT).unwrap_err().to_string();
    assert!(error.contains("write `private = true`"), "{error}");
    assert_eq!(fixture.server.seen().requests.len(), before);
}

#[test]
fn redirects_to_private_addresses_are_refused() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let elsewhere = other.server.host();
    let targets = [
        format!("https://{elsewhere}/secret"),
        "https://10.0.0.1/secret".to_owned(),
        "https://169.254.169.254/latest".to_owned(),
        "http://example.com/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for target in targets {
        fixture.server.change({
            let target = target.clone();
            move |request, answer| match is_component(request, &answer) {
                true => Answer::redirect(307, &target),
                false => answer,
            }
        });
        let error = fixture.refused("org/tool:1");
        assert!(
            ["no `http` grant", "private network", "can be granted"]
                .iter()
                .any(|it| error.contains(it)),
            "{target}: {error}"
        );
    }
    assert!(other.server.seen().is_nothing());
}

#[test]
fn redirects_get_no_credentials() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    fixture.server.require_token();
    // Another path of the same host, which must not get credentials either.
    fixture.server.change(|request, answer| match request.path() {
        path if path.contains("/blobs/") => Answer::redirect(307, "/elsewhere"),
        "/elsewhere" => {
            let known = request.header("authorization").is_some();
            Answer::new(if known { 200 } else { 418 }, "")
        }
        _ => answer,
    });
    let reference = fixture.reference("org/tool:1");
    let registry = Registry::new(&fixture.web, &reference, PRIVATE, ada("secret"));
    let pulled = registry.pull(&reference).unwrap();
    let error = registry.artifact(&pulled, LIMIT).unwrap_err().to_string();
    assert!(error.contains("status 418"), "{error}");
}

#[test]
fn credentials_are_not_sent_to_a_plain_token_server() {
    let fixture = Fixture::new();
    fixture.server.change(|_, _| {
        let challenge = "Bearer realm=\"http://auth.example/token\",service=\"a\"";
        Answer::new(401, "{}").header("www-authenticate", challenge)
    });
    let reference = fixture.reference("org/tool:1");
    let registry = Registry::new(&fixture.web, &reference, PRIVATE, ada("secret"));
    let error = registry.pull(&reference).unwrap_err().to_string();
    assert!(error.contains("does not use `https`"), "{error}");
}

#[test]
fn a_tag_is_resolved_once() {
    let fixture = Fixture::new();
    let (_, first) = fixture.push("org/tool:1", b"component");
    fixture.push("org/tool:2", b"component of another version");
    let registry = fixture.registry("org/tool:1");
    let pulled = registry.pull(&fixture.reference("org/tool:1")).unwrap();
    // The tag moves between the manifest and the content.
    fixture.server.move_tag("org/tool", "1", "2");
    let artifact = registry.artifact(&pulled, LIMIT).unwrap();
    assert_eq!((&*artifact.component, artifact.digest), (&b"component"[..], first));
    // A reference with both does not follow the tag.
    let pinned = format!("org/tool:1@{first}");
    assert_eq!(&*fixture.pull(&pinned).unwrap().component, b"component");
    assert_ne!(fixture.pull("org/tool:1").unwrap().digest, first);
}
