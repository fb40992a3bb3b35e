//! Registries that lie.

use std::io::Read;

use kitbag_http::Nameservers;
use kitbag_registry::{Access, NewArtifact, NewLayer, Reference, Registry};
use kitbag_test_servers::{Answer, Authority, Behaviour, Dns, SeenRequest, Server};
use serde_json::{Value, json};

use crate::support::{Fixture, LIMIT, ada, artifact, web, web_with};

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
    let web = web(&Authority::new(), |_| Access::default());
    for host in [fixture.server.host(), fixture.server.host().replace("localhost", "127.0.0.1")] {
        let reference = format!("oci://{host}/org/tool:1").parse().unwrap();
        let registry = Registry::new(&web, &reference, None);
        let error = registry.pull(&reference).unwrap_err().to_string();
        assert!(error.contains("write `private = true`"), "{error}");
    }
    let text = format!("https://{}/t.wasm#sha256={}", fixture.server.host(), "0".repeat(64));
    let Some(Ok(Reference::Url(url))) = Reference::parse(&text) else { panic!("it is a URL") };
    let error = web.component(&url, LIMIT).unwrap_err().to_string();
    assert!(error.contains("write `private = true`"), "{error}");
    assert_eq!(fixture.server.seen().requests.len(), before);
}

#[test]
fn redirects_to_private_addresses_are_refused() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    fixture.push("org/tool:1", b"component");
    let elsewhere = other.server.host();
    let private = |host: &str| {
        format!(
            "which is on this machine or in a private network; if you trust it, write \
             `private = true` into `[registries.\"{host}\"]` of your user config"
        )
    };
    let plain = || "which is not a plain `https` URL".to_owned();
    let targets = [
        (format!("https://{elsewhere}/secret"), private(&elsewhere)),
        ("https://10.0.0.1/secret".to_owned(), private("10.0.0.1")),
        ("https://169.254.169.254/latest".to_owned(), private("169.254.169.254")),
        ("https://[::1]:4711/".to_owned(), private("[::1]:4711")),
        ("https://[fd00::1]/".to_owned(), private("[fd00::1]")),
        ("http://example.com/".to_owned(), plain()),
        (format!("http://{}/", fixture.server.host()), plain()),
        ("file:///etc/passwd".to_owned(), plain()),
        ("https://ada:secret@example.com/".to_owned(), plain()),
    ];
    for (target, reason) in targets {
        fixture.server.change({
            let target = format!("{target}?signature=abc");
            move |request, answer| match is_component(request, &answer) {
                true => Answer::redirect(307, &target),
                false => answer,
            }
        });
        let error = fixture.pull("org/tool:1").unwrap_err().to_string();
        assert!(error.ends_with(&format!("redirects to `{target}`, {reason}")), "{error}");
        assert!(error.starts_with(&format!("`https://{}/v2/", fixture.server.host())), "{error}");
    }
    assert!(other.server.seen().is_nothing());
}

#[test]
fn redirects_to_allowed_hosts_have_no_credentials() {
    let authority = Authority::new();
    let store = Server::start_tls(
        Behaviour::respond(|request| match request.header("authorization") {
            None => Answer::ok("application/octet-stream", "component"),
            // As of object stores that allow one kind of signature only.
            Some(_) => Answer::new(400, ""),
        }),
        &authority.local(),
    );
    let host = format!("localhost:{}", store.port());
    let fixture = Fixture::with(&authority, vec![host.clone()]);
    fixture.push("org/tool:1", b"component");
    fixture.push("org/tool:2", b"component of version 2");
    fixture.server.require_token();
    let query = "X-Amz-Credential=a%2Fb%2Bc&X-Amz-Date=1&sig=%7E~+/=&x=%20&empty=";
    let page = format!("<a href=\"https://{host}/?{query}\">Temporary Redirect</a>.");
    for status in [301, 302, 303, 307, 308] {
        let (target, page) = (format!("https://{host}/a%2Fb?{query}"), page.clone());
        fixture.server.change(move |request, answer| match is_component(request, &answer) {
            true => Answer::new(status, &*page).header("location", &target),
            false => answer,
        });
        let reference = fixture.reference("org/tool:1");
        let registry = Registry::new(&fixture.web, &reference, ada("secret"));
        let pulled = registry.pull(&reference).unwrap();
        assert_eq!(&*registry.artifact(&pulled, LIMIT).unwrap().component, b"component");
    }
    let seen = store.seen();
    assert_eq!(seen.requests.len(), 5);
    for request in &seen.requests {
        assert!(request.target.ends_with(&format!("/a%2Fb?{query}")), "{}", request.target);
    }
    // The answer of the other server is compared in the same way.
    let target = format!("https://{host}/");
    fixture.server.change(move |request, answer| match is_component(request, &answer) {
        true => Answer::redirect(302, &target),
        false => answer,
    });
    let reference = fixture.reference("org/tool:2");
    let registry = Registry::new(&fixture.web, &reference, ada("secret"));
    let pulled = registry.pull(&reference).unwrap();
    let error = registry.artifact(&pulled, LIMIT).unwrap_err().to_string();
    assert!(error.contains("has 9 bytes, but its manifest declares 22"), "{error}");
}

#[test]
fn endless_redirects_end() {
    let fixture = Fixture::new();
    fixture.push("org/tool:1", b"component");
    fixture.server.change(|request, answer| match request.path().contains("/blobs/") {
        true => Answer::redirect(307, &request.path().replace("/blobs/", "/blobs//blobs/")),
        false => answer,
    });
    let error = fixture.refused("org/tool:1");
    assert!(error.ends_with("it redirects more than 5 times"), "{error}");
    let seen = fixture.server.seen();
    let pulls = seen.requests.iter().filter(|it| it.method == "GET");
    assert_eq!(pulls.filter(|it| it.path().contains("blobs/sha256")).count(), 6);
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
    let registry = Registry::new(&fixture.web, &reference, ada("secret"));
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
    let registry = Registry::new(&fixture.web, &reference, ada("secret"));
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

#[test]
fn uploads_do_not_leave_the_registry() {
    let fixture = Fixture::new();
    let other = Fixture::new();
    for target in [format!("https://{}/", other.server.host()), "https://10.0.0.1/".to_owned()] {
        fixture.server.change(move |request, answer| match &*request.method {
            "POST" => answer_with(answer, &target),
            _ => answer,
        });
        let registry = fixture.registry("org/tool:1");
        let error = registry.push(Some("1"), &artifact(b"component")).unwrap_err().to_string();
        assert!(error.ends_with("it continues the upload at another host"), "{error}");
    }
    assert!(other.server.seen().is_nothing());
}

fn answer_with(mut answer: Answer, location: &str) -> Answer {
    answer.headers.retain(|(name, _)| name != "location");
    answer.header("location", location)
}

#[test]
fn counts_are_bounded() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1", b"component");
    let change = |from: usize, count: usize| {
        fixture.server.change(move |request, mut answer| {
            if request.path().ends_with("/manifests/1") {
                let mut manifest: Value = serde_json::from_slice(&answer.body).unwrap();
                let layers = manifest["layers"].as_array_mut().unwrap();
                let layer = layers[from].clone();
                layers.extend((0..count).map(|at| {
                    let mut layer = layer.clone();
                    let title = format!("file{at}.txt");
                    layer["annotations"] = json!({ "org.opencontainers.image.title": title });
                    layer
                }));
                answer = Answer::ok("application/json", manifest.to_string());
            }
            answer
        });
    };
    change(0, 1);
    let error = fixture.refused("org/tool:1");
    assert!(error.ends_with("it contains 2 components, but must contain one"), "{error}");
    change(1, 15);
    assert_eq!(fixture.pull("org/tool:1").unwrap().files.len(), 16);
    change(1, 16);
    let error = fixture.refused("org/tool:1");
    assert!(error.ends_with("it has more than 16 files beside its component"), "{error}");
    change(1, 300);
    let error = fixture.refused("org/tool:1");
    assert!(error.ends_with("has more than 256 layers"), "{error}");
    // Bundles: each one takes two requests.
    fixture.server.unchanged();
    fixture.server.attach("org/tool", &digest.to_string(), "{}");
    let tag = digest.to_string().replace(':', "-");
    let mut index: Value =
        serde_json::from_slice(&fixture.server.manifest("org/tool", &tag)).unwrap();
    let entries = index["manifests"].as_array_mut().unwrap();
    let entry = entries[0].clone();
    entries.resize(100, entry);
    let media_type = "application/vnd.oci.image.index.v1+json";
    fixture.server.put_manifest("org/tool", &tag, media_type, index.to_string().as_bytes());
    assert_eq!(fixture.registry("org/tool:1").bundles(digest).unwrap().len(), 16);
}

#[test]
fn large_files_beside_a_component_are_refused() {
    let fixture = Fixture::new();
    let mut large = artifact(b"component");
    large.layers[1].bytes = vec![b'#'; (1 << 20) + 1].into();
    fixture.registry("org/tool:1").push(Some("1"), &large).unwrap();
    let error = fixture.refused("org/tool:1");
    assert!(error.contains("may have at most 1 MiB"), "{error}");
}

#[test]
fn images_that_grow_are_refused() {
    let fixture = Fixture::new();
    // Two layers of a few kilobytes: an endless file before the plugin, and a large plugin.
    let layer = |name: &str, size: u64| {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let mut archive = tar::Builder::new(gzip);
        for (name, size) in [(name, size), ("plugin.wasm", 6)] {
            let mut header = tar::Header::new_gnu();
            header.set_size(size);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, std::io::repeat(b'0').take(size)).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    };
    let cases = [
        (layer("large.txt", 160 << 20), ""),
        (layer("plugin.wasm", 65 << 20), "`plugin.wasm` is larger than 64 MiB"),
    ];
    for (layer, expected) in cases {
        assert!(layer.len() < 1 << 20);
        let media_type = "application/vnd.oci.image.layer.v1.tar+gzip".to_owned();
        let image = NewArtifact {
            config: Some(("application/vnd.oci.image.config.v1+json".into(), json!({}))),
            layers: vec![NewLayer { media_type, title: None, bytes: layer.into() }],
            ..NewArtifact::default()
        };
        fixture.registry("org/image:1").push(Some("1"), &image).unwrap();
        let error = fixture.refused("org/image:1");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn tokens_come_from_a_plain_url_without_a_user() {
    let fixture = Fixture::new();
    for realm in ["https://ada:secret@auth.example/token", "data:token", "token"] {
        fixture.server.change(move |_, _| {
            let challenge = format!("Bearer realm=\"{realm}\"");
            Answer::new(401, "{}").header("www-authenticate", &challenge)
        });
        let reference = fixture.reference("org/tool:1");
        let registry = Registry::new(&fixture.web, &reference, ada("secret"));
        let error = registry.pull(&reference).unwrap_err().to_string();
        assert!(error.contains("the token server has no valid URL"), "{error}");
    }
    // A token server in a private network that no line allows.
    fixture.server.change(move |_, _| {
        Answer::new(401, "{}").header("www-authenticate", "Bearer realm=\"https://10.0.0.1/token\"")
    });
    let reference = fixture.reference("org/tool:1");
    let registry = Registry::new(&fixture.web, &reference, ada("secret"));
    let error = registry.pull(&reference).unwrap_err().to_string();
    assert!(error.contains("`[registries.\"10.0.0.1\"]`"), "{error}");
}

#[test]
fn names_with_private_addresses_are_refused() {
    let authority = Authority::new();
    let fixture = Fixture::with(&authority, Vec::new());
    fixture.push("org/tool:1", b"component");
    let dns = Dns::of(&[("registry.test", &[&["127.0.0.1"]]), ("mixed.test", &[&["10.0.0.1"]])]);
    let own = fixture.server.host();
    let web = web_with(&authority, Nameservers::These(vec![dns.address()]), {
        let own = own.clone();
        move |name| Access { is_private: name.starts_with(&own), is_plain: false }
    });
    let before = fixture.server.seen().connections;
    for name in ["registry.test", "mixed.test"] {
        let host = own.replace("localhost", name);
        let reference = format!("oci://{host}/org/tool:1").parse().unwrap();
        let error = Registry::new(&web, &reference, None).pull(&reference).unwrap_err().to_string();
        assert!(
            error.contains(&format!("`private = true` into `[registries.\"{host}\"]`")),
            "{error}"
        );
        // The target of a redirect.
        let target = format!("https://{host}/store");
        fixture.server.change(move |request, answer| match is_component(request, &answer) {
            true => Answer::redirect(307, &target),
            false => answer,
        });
        let reference = fixture.reference("org/tool:1");
        let registry = Registry::new(&web, &reference, None);
        let pulled = registry.pull(&reference).unwrap();
        let error = registry.artifact(&pulled, LIMIT).unwrap_err().to_string();
        assert!(
            error.contains(&format!("redirects to `https://{host}/store`, which is on")),
            "{error}"
        );
    }
    // One connection of this client to the registry itself.
    assert_eq!(fixture.server.seen().connections, before + 1);
}
