//! Snapshots are accepted only from publishers, only as signed, and never backwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use async_nats::jetstream;
use kitbag_test_servers::{Authority, NatsServer};
use serde_json::json;
use tokio::time::timeout;

use super::directory::is_complete;
use super::manifest::is_inside;
use super::*;
use crate::connection::{Nats, connect};
use crate::identity::{Identity, Purpose};
use crate::members::Members;
use crate::names::Names;

fn manifest(publisher: &Identity, counter: u64) -> Manifest {
    Manifest {
        version: 1,
        workspace: "team".to_owned(),
        counter,
        seconds: 0,
        publisher: publisher.public().to_owned(),
        members: Members::default(),
        files: BTreeMap::new(),
    }
}

fn only(identity: &Identity) -> BTreeSet<String> {
    BTreeSet::from([identity.public().to_owned()])
}

/// Signs a manifest that no publisher would write.
fn signed(identity: &Identity, manifest: &serde_json::Value) -> SignedManifest {
    use base64::Engine as _;
    let text = manifest.to_string();
    let signature = identity.sign(Purpose::Snapshot, text.as_bytes());
    let signature = base64::engine::general_purpose::STANDARD.encode(signature);
    let value = json!({ "manifest": text, "signature": signature });
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_signed_manifest_is_accepted_from_a_publisher() {
    let (publisher, other) = (Identity::generate(), Identity::generate());
    let published = manifest(&publisher, 1);
    let signed = published.sign(&publisher).unwrap();
    assert_eq!(signed.accept("team", &only(&publisher), None).unwrap(), published);
    let refused = signed.accept("team", &only(&other), None).unwrap_err();
    assert!(matches!(refused, SnapshotError::Publisher { .. }), "{refused}");
    let refused = signed.accept("other", &only(&publisher), None).unwrap_err();
    assert!(matches!(refused, SnapshotError::Invalid { .. }), "{refused}");
}

#[test]
fn a_changed_manifest_is_refused() {
    let publisher = Identity::generate();
    let signed = manifest(&publisher, 1).sign(&publisher).unwrap();
    let text = serde_json::to_string(&signed).unwrap();
    let changed = text.replace(r#"\"counter\":1"#, r#"\"counter\":2"#);
    assert_ne!(changed, text);
    let changed = SignedManifest::parse("team", changed.as_bytes()).unwrap();
    let refused = changed.accept("team", &only(&publisher), None).unwrap_err();
    assert!(matches!(refused, SnapshotError::Signature(_)), "{refused}");
    // Another key signed for the publisher.
    let forged = manifest(&publisher, 1).sign(&Identity::generate()).unwrap();
    let refused = forged.accept("team", &only(&publisher), None).unwrap_err();
    assert!(matches!(refused, SnapshotError::Signature(_)), "{refused}");
}

#[test]
fn an_older_snapshot_is_refused() {
    let publisher = Identity::generate();
    let old = manifest(&publisher, 1).sign(&publisher).unwrap();
    let new = manifest(&publisher, 2).sign(&publisher).unwrap();
    let fork = Manifest { seconds: 1, ..manifest(&publisher, 2) }.sign(&publisher).unwrap();
    let known = Some(Known { counter: 2, digest: new.digest() });
    let publishers = only(&publisher);
    assert!(new.accept("team", &publishers, known).is_ok());
    let refused = old.accept("team", &publishers, known).unwrap_err();
    assert!(matches!(refused, SnapshotError::Older { counter: 1, known: 2, .. }), "{refused}");
    let refused = fork.accept("team", &publishers, known).unwrap_err();
    assert!(matches!(refused, SnapshotError::Fork { counter: 2, .. }), "{refused}");
}

#[test]
fn a_manifest_of_another_version_is_named() {
    let publisher = Identity::generate();
    let mut value = serde_json::to_value(manifest(&publisher, 1)).unwrap();
    // A newer version may add fields to the first one.
    value["more"] = json!(true);
    assert!(signed(&publisher, &value).accept("team", &only(&publisher), None).is_ok());
    let newer = json!({ "version": 2, "publisher": publisher.public() });
    let refused = signed(&publisher, &newer).accept("team", &only(&publisher), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the snapshot of `team` has format 2, but this kitbag reads format 1: update kitbag on this \
         machine"
    );
}

#[test]
fn paths_stay_in_the_workspace() {
    for path in [".kitbag/config.toml", "a/b.wasm", "ä"] {
        assert!(is_inside(path), "{path}");
    }
    for path in ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a/.", "a\0", "a\\b"] {
        assert!(!is_inside(path), "{path}");
    }
    let publisher = Identity::generate();
    let mut value = serde_json::to_value(manifest(&publisher, 1)).unwrap();
    let digest = "0".repeat(64);
    value["files"] = json!({ "../.bashrc": { "digest": digest, "size": 1 } });
    assert!(signed(&publisher, &value).accept("team", &only(&publisher), None).is_err());
    value["files"] = json!({ "a": { "digest": digest, "size": 1u64 << 40 } });
    assert!(signed(&publisher, &value).accept("team", &only(&publisher), None).is_err());
}

#[test]
fn the_known_number_never_decreases() {
    let directory = tempfile::tempdir().unwrap();
    let known = KnownSnapshots::new(&directory.path().join("state"));
    let digest = kitbag_state::trust::digest_of(b"");
    assert_eq!(known.find("team").unwrap(), None);
    known.record("team", Known { counter: 3, digest }).unwrap();
    known.record("team", Known { counter: 2, digest }).unwrap();
    known.record("other", Known { counter: 1, digest }).unwrap();
    assert_eq!(known.find("team").unwrap(), Some(Known { counter: 3, digest }));
}

/// A server and the state directory of a publisher.
struct Place {
    server: NatsServer,
    directory: tempfile::TempDir,
    names: Names,
}

impl Place {
    fn new() -> Self {
        let (server, directory) = (NatsServer::start(), tempfile::tempdir().unwrap());
        Self { server, directory, names: Names::new("team").unwrap() }
    }

    async fn client(&self, identity: &Identity) -> async_nats::Client {
        let nats = Nats { urls: vec![self.server.url()], ..Nats::default() };
        connect(&nats, identity).await.unwrap()
    }

    fn known(&self) -> KnownSnapshots {
        KnownSnapshots::new(&self.directory.path().join("state"))
    }
}

fn files(config: &str) -> NewSnapshot {
    let files = [(".kitbag/config.toml", config), (".kitbag/tools/a.wasm", "component")];
    let bytes = |text: &str| NewFile::Bytes(text.as_bytes().to_owned());
    let files = files.map(|(path, text)| (path.to_owned(), bytes(text)));
    NewSnapshot { members: Members::default(), files: files.into() }
}

#[tokio::test]
async fn a_snapshot_is_unpacked_as_published() {
    let place = Place::new();
    let publisher = Identity::generate();
    let client = place.client(&publisher).await;
    assert!(matches!(
        SnapshotStore::open(&client, &place.names).await,
        Err(SnapshotError::Missing(_))
    ));
    let store = SnapshotStore::create(&client, &place.names, 1).await.unwrap();
    assert_eq!(store.newest().await.unwrap(), None);
    let (known, publishers) = (place.known(), only(&publisher));
    let first = store.publish(&publisher, &publishers, &known, files("a")).await.unwrap();
    let second = store.publish(&publisher, &publishers, &known, files("b")).await.unwrap();
    assert_eq!((first.counter, second.counter), (1, 2));

    let store = SnapshotStore::open(&client, &place.names).await.unwrap();
    let signed = store.newest().await.unwrap().unwrap();
    let manifest = signed.accept("team", &publishers, None).unwrap();
    assert_eq!(manifest, second);
    let cache = place.directory.path().join("cache");
    let workspace = store.unpack(&cache, signed.digest(), &manifest).await.unwrap();
    assert_eq!(fs::read_to_string(workspace.join(".kitbag/config.toml")).unwrap(), "b");
    assert_eq!(fs::read_to_string(workspace.join(".kitbag/tools/a.wasm")).unwrap(), "component");

    // A file that was changed or added on this machine is noticed.
    for path in [".kitbag/tools/a.wasm", ".kitbag/tools/b.wasm"] {
        fs::write(workspace.join(path), "other").unwrap();
        assert!(!is_complete(&workspace, &manifest));
        assert_eq!(store.unpack(&cache, signed.digest(), &manifest).await.unwrap(), workspace);
        assert!(is_complete(&workspace, &manifest), "{path}");
    }
}

#[tokio::test]
async fn a_replaced_component_is_refused() {
    let place = Place::new();
    let publisher = Identity::generate();
    let client = place.client(&publisher).await;
    let store = SnapshotStore::create(&client, &place.names, 1).await.unwrap();
    let (known, publishers) = (place.known(), only(&publisher));
    let manifest = store.publish(&publisher, &publishers, &known, files("a")).await.unwrap();
    let digest = manifest.files[".kitbag/tools/a.wasm"].digest;
    let cache = place.directory.path().join("cache");
    let objects = jetstream::new(client).get_object_store("kitbag-components-team").await.unwrap();
    // The same size, another size, and absent.
    for text in ["COMPONENT", "a much longer component"] {
        objects.put(digest.to_string().as_str(), &mut text.as_bytes()).await.unwrap();
        let refused = store.unpack(&cache, digest, &manifest).await.unwrap_err();
        assert!(matches!(refused, SnapshotError::Content { .. }), "{refused}");
    }
    objects.delete(digest.to_string()).await.unwrap();
    let refused = store.unpack(&cache, digest, &manifest).await.unwrap_err();
    assert!(matches!(refused, SnapshotError::Content { .. }), "{refused}");
    // Publishing repairs the file.
    let manifest = store.publish(&publisher, &publishers, &known, files("a")).await.unwrap();
    store.unpack(&cache, digest, &manifest).await.unwrap();
}

#[tokio::test]
async fn a_replayed_snapshot_is_refused() {
    let place = Place::new();
    let (publisher, machine) = (Identity::generate(), place.directory.path().join("worker"));
    let client = place.client(&publisher).await;
    let store = SnapshotStore::create(&client, &place.names, 1).await.unwrap();
    let (known, publishers) = (place.known(), only(&publisher));
    store.publish(&publisher, &publishers, &known, files("a")).await.unwrap();
    let old = store.newest().await.unwrap().unwrap();
    store.publish(&publisher, &publishers, &known, files("b")).await.unwrap();
    let new = store.newest().await.unwrap().unwrap();

    let worker = KnownSnapshots::new(&machine);
    let accepted = new.accept("team", &publishers, worker.find("team").unwrap()).unwrap();
    worker.record("team", Known { counter: accepted.counter, digest: new.digest() }).unwrap();
    // An attacker who can write to the bucket brings the old value back.
    let bucket = jetstream::new(client).get_key_value("kitbag-snapshots-team").await.unwrap();
    bucket.put("team", serde_json::to_vec(&old).unwrap().into()).await.unwrap();
    let replayed = store.newest().await.unwrap().unwrap();
    let refused = replayed.accept("team", &publishers, worker.find("team").unwrap()).unwrap_err();
    assert!(matches!(refused, SnapshotError::Older { counter: 1, known: 2, .. }), "{refused}");
    // The publisher's next number is not affected.
    let next = store.publish(&publisher, &publishers, &known, files("c")).await.unwrap();
    assert_eq!(next.counter, 3);
}

#[tokio::test]
async fn a_watch_survives_a_restart_of_the_server() {
    let mut place = Place::new();
    let publisher = Identity::generate();
    let client = place.client(&publisher).await;
    let store = SnapshotStore::create(&client, &place.names, 1).await.unwrap();
    let (known, publishers) = (place.known(), only(&publisher));
    store.publish(&publisher, &publishers, &known, files("a")).await.unwrap();
    let mut watch = store.watch();
    let patience = Duration::from_secs(60);
    let first = timeout(patience, watch.next()).await.unwrap();
    assert_eq!(first.accept("team", &publishers, None).unwrap().counter, 1);
    place.server.kill();
    place.server.start_again();
    // The client connects again with a pause.
    let published = async {
        while let Err(error) = store.publish(&publisher, &publishers, &known, files("b")).await {
            assert!(matches!(error, SnapshotError::Nats { .. }), "{error}");
        }
    };
    timeout(patience, published).await.unwrap();
    loop {
        let next = timeout(patience, watch.next()).await.unwrap();
        if next.accept("team", &publishers, None).unwrap().counter > 1 {
            break;
        }
    }
}

#[tokio::test]
async fn two_publishers_at_once_conflict_or_follow() {
    let place = Place::new();
    let (one, other) = (Identity::generate(), Identity::generate());
    let client = place.client(&one).await;
    let store = SnapshotStore::create(&client, &place.names, 1).await.unwrap();
    let publishers = BTreeSet::from([one.public().to_owned(), other.public().to_owned()]);
    let known = place.known();
    let elsewhere = KnownSnapshots::new(&place.directory.path().join("elsewhere"));
    let (first, second) = tokio::join!(
        store.publish(&one, &publishers, &known, files("a")),
        store.publish(&other, &publishers, &elsewhere, files("b")),
    );
    let published: Vec<_> = [&first, &second].into_iter().flatten().map(|it| it.counter).collect();
    match published[..] {
        [1] => {}
        [a, b] => assert_ne!(a, b),
        _ => panic!("{first:?} {second:?}"),
    }
}

#[tokio::test]
async fn only_the_named_roots_may_sign_a_server() {
    let directory = tempfile::tempdir().unwrap();
    let (authority, identity) = (Authority::new(), Identity::generate());
    let server = NatsServer::start_with("", Some(&authority.local()));
    let (own, foreign) = (directory.path().join("own"), directory.path().join("foreign"));
    fs::write(&own, authority.pem()).unwrap();
    fs::write(&foreign, Authority::new().pem()).unwrap();
    let nats = |roots| Nats { urls: vec![server.url()], roots, ..Nats::default() };
    connect(&nats(Some(own)), &identity).await.unwrap();
    for roots in [Some(foreign), None] {
        let refused = connect(&nats(roots), &identity).await.unwrap_err().to_string();
        assert!(refused.starts_with("no connection to NATS at `tls://127.0.0.1:"), "{refused}");
    }
    // A server without TLS is refused by a client that requires it.
    let plain = NatsServer::start();
    let url = plain.url().replace("nats://", "tls://");
    let nats = Nats { urls: vec![url], ..Nats::default() };
    assert!(connect(&nats, &identity).await.is_err());
}
