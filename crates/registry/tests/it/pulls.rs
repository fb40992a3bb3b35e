//! Artifacts that are pushed and pulled.

use std::io::Write;

use bytes::Bytes;
use kitbag_registry::{
    Access, INDEX_TYPE, NewArtifact, NewLayer, PackageRegistries, Reference, Registry, Sha256Digest,
};
use kitbag_test_servers::{Answer, Authority};
use serde_json::json;

use crate::support::{Fixture, LIMIT, ada, artifact, web};

#[test]
fn pushed_artifacts_are_pulled_by_tag_and_digest() {
    let fixture = Fixture::new();
    let (_, digest) = fixture.push("org/tool:1.0", b"component");
    for rest in ["org/tool:1.0", &format!("org/tool@{digest}"), &format!("org/tool:2@{digest}")] {
        let pulled = fixture.pull(rest).unwrap();
        assert_eq!(&*pulled.component, b"component");
        assert_eq!((&*pulled.files[0].name, pulled.digest), ("skill.toml", digest));
    }
    // The same content has the same digest, and is not uploaded again.
    let uploads = || fixture.server.seen().requests.iter().filter(|it| it.method == "POST").count();
    let before = uploads();
    assert_eq!(fixture.push("org/tool:1.1", b"component").1, digest);
    assert_eq!(uploads(), before);
}

#[test]
fn large_components_are_uploaded_in_parts() {
    let fixture = Fixture::new();
    let component: Vec<u8> = (0..40 << 20).map(|at: u32| (at >> 3) as u8).collect();
    fixture.push("org/tool:1", &component);
    let seen = fixture.server.seen();
    assert_eq!(seen.requests.iter().filter(|it| it.method == "PATCH").count(), 2);
    assert_eq!(fixture.pull("org/tool:1").unwrap().component, component);
}

#[test]
fn tokens_are_requested_and_kept() {
    let fixture = Fixture::new();
    fixture.server.require_token();
    let reference = fixture.reference("org/tool:1");
    let with = |credentials| Registry::new(&fixture.web, &reference, credentials);
    for credentials in [None, ada("wrong")] {
        let error = with(credentials).push(Some("1"), &artifact(b"component")).unwrap_err();
        assert!(error.to_string().contains("log in with `docker login localhost"), "{error}");
    }
    let registry = with(ada("secret"));
    registry.push(Some("1"), &artifact(b"component")).unwrap();
    let pulled = registry.artifact(&registry.pull(&reference).unwrap(), LIMIT).unwrap();
    assert_eq!(&*pulled.component, b"component");
    let seen = fixture.server.seen();
    assert_eq!(seen.requests.iter().filter(|it| it.path() == "/token").count(), 3);
}

#[test]
fn plugins_of_container_images_are_found() {
    let fixture = Fixture::new();
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(6);
    header.set_mode(0o644);
    archive.append_data(&mut header.clone(), "other.txt", &b"other!"[..]).unwrap();
    archive.append_data(&mut header, "plugin.wasm", &b"plugin"[..]).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&archive.into_inner().unwrap()).unwrap();
    let media_type = "application/vnd.docker.image.rootfs.diff.tar.gzip".to_owned();
    let image = NewArtifact {
        config: Some(("application/vnd.docker.container.image.v1+json".into(), json!({}))),
        layers: vec![NewLayer { media_type, title: None, bytes: gzip.finish().unwrap().into() }],
        ..NewArtifact::default()
    };
    let (size, digest) = fixture.registry("org/image:1").push(Some("amd64"), &image).unwrap();
    let manifest = |digest: &str, os: &str, architecture: &str| {
        json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": digest,
            "size": size,
            "platform": { "os": os, "architecture": architecture },
        })
    };
    let other = Sha256Digest::of(b"attestation").to_string();
    let media_type = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": media_type, "manifests": [
        manifest(&other, "unknown", "unknown"),
        manifest(&digest.to_string(), "linux", "amd64"),
    ]});
    let index = index.to_string();
    fixture.server.put_manifest("org/image", "1", media_type, index.as_bytes());
    let pulled = fixture.pull("org/image:1").unwrap();
    assert_eq!((&*pulled.component, pulled.is_image), (&b"plugin"[..], true));
    assert_eq!(pulled.digest, Sha256Digest::of(index.as_bytes()));
}

#[test]
fn packages_are_found_by_their_namespace() {
    let fixture = Fixture::new();
    fixture.push("org/acme/tool:1.2.0", b"component");
    let host = fixture.server.host();
    fixture.server.change({
        let host = host.clone();
        move |request, answer| match request.path() {
            "/.well-known/wasm-pkg/registry.json" => {
                let oci = json!({ "registry": host, "namespacePrefix": "org/" });
                let metadata = json!({ "preferredProtocol": "oci", "oci": oci });
                Answer::ok("application/json", metadata.to_string())
            }
            _ => answer,
        }
    });
    let Some(Ok(Reference::Package(package))) = Reference::parse("acme:tool@1.2.0") else {
        panic!("it is a package");
    };
    let none = PackageRegistries::default();
    let error = fixture.web.find_package(&package, &none).unwrap_err();
    assert!(error.to_string().contains("no registry is configured for the namespace `acme`"));
    let own = PackageRegistries { default: Some(host), ..PackageRegistries::default() };
    let found = fixture.web.find_package(&package, &own).unwrap().reference;
    assert_eq!(found, fixture.reference("org/acme/tool:1.2.0"));
    let other = web(&Authority::new(), |_| Access::default());
    let refused = other.find_package(&package, &own);
    assert!(refused.unwrap_err().to_string().contains("private = true"));
}

#[test]
fn indexes_are_read_from_artifacts() {
    let fixture = Fixture::new();
    let text = json!({ "version": 1, "tools": [
        { "name": "count", "reference": "oci://ghcr.io/org/count:1" },
    ]});
    let layer = NewLayer {
        media_type: INDEX_TYPE.to_owned(),
        title: Some("tools.json".to_owned()),
        bytes: Bytes::from(text.to_string()),
    };
    let artifact = NewArtifact {
        artifact_type: Some(INDEX_TYPE.to_owned()),
        layers: vec![layer],
        ..NewArtifact::default()
    };
    let registry = fixture.registry("org/tools:1");
    registry.push(Some("1"), &artifact).unwrap();
    let pulled = registry.pull(&fixture.reference("org/tools:1")).unwrap();
    assert_eq!(registry.index(&pulled).unwrap().tools[0].name, "count");
    fixture.push("org/tool:1", b"component");
    let pulled = registry.pull(&fixture.reference("org/tools:1")).unwrap();
    assert!(registry.artifact(&pulled, LIMIT).is_err());
}
