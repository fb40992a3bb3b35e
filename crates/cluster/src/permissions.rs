//! The permissions of each member on NATS, as the configuration of a NATS server.
//!
//! Signatures protect the content of messages. These permissions are a second wall: a compromised
//! member cannot even send messages that are not part of its task.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;

use crate::connection::inbox;
use crate::members::Members;
use crate::names::Names;

/// The task of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A person who publishes snapshots, and creates the streams and buckets.
    Publisher,
    /// A machine that takes calls from clients.
    FrontEnd,
    /// A machine that runs calls.
    Worker,
}

/// The subjects that a member may use. All others are denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// The subjects to which it may send.
    pub publish: Vec<String>,
    /// The subjects that it may receive.
    pub subscribe: Vec<String>,
}

/// Returns the permissions of the owner of a public key.
pub fn permissions(names: &Names, role: Role, public: &str) -> Permissions {
    let workspace = names.workspace();
    let calls = names.call_stream();
    let value = |bucket: &str, keys: &str| format!("$KV.{bucket}.{keys}");
    let object = |store: &str| format!("$O.{store}.>");
    let mut publish = Vec::new();
    let mut subscribe = vec![format!("{}.>", inbox(public))];
    match role {
        Role::Publisher => {
            publish.push("$JS.API.>".to_owned());
            publish.push(value(&names.snapshot_bucket(), ">"));
            publish.push(object(&names.component_store()));
        }
        Role::FrontEnd => {
            for stream in streams(names) {
                publish.extend(reading(&stream));
            }
            publish.push(format!("$JS.API.STREAM.INFO.{calls}"));
            publish.push(names.every_call());
            publish.push(names.every_cancellation());
            // A front end records that it gave a call up. Only a worker's signature makes an answer.
            publish.push(value(&names.record_bucket(), ">"));
            publish.push(object(&names.body_store()));
            subscribe.push(format!("kitbag.reply.{public}.>"));
        }
        Role::Worker => {
            for stream in streams(names) {
                publish.extend(reading(&stream));
            }
            publish.push(format!("$JS.API.STREAM.INFO.{calls}"));
            // The consumers of a root are created by the first worker that has it.
            publish.push(format!("$JS.API.CONSUMER.CREATE.{calls}.>"));
            publish.push(format!("$JS.API.CONSUMER.INFO.{calls}.>"));
            publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.{calls}.>"));
            publish.push(format!("$JS.ACK.{calls}.>"));
            publish.push("kitbag.reply.>".to_owned());
            publish.push(value(&names.record_bucket(), ">"));
            publish.push(value(&names.worker_bucket(), &format!("{public}.>")));
            publish.push(object(&names.body_store()));
            subscribe.push(format!("kitbag.cancel.{workspace}.*"));
        }
    }
    Permissions { publish, subscribe }
}

/// Returns the streams of all buckets and object stores.
fn streams(names: &Names) -> [String; 5] {
    [
        format!("KV_{}", names.snapshot_bucket()),
        format!("KV_{}", names.record_bucket()),
        format!("KV_{}", names.worker_bucket()),
        format!("OBJ_{}", names.component_store()),
        format!("OBJ_{}", names.body_store()),
    ]
}

/// Returns the subjects for reading a stream: its values, and consumers for its own eyes.
fn reading(stream: &str) -> [String; 8] {
    [
        format!("$JS.API.STREAM.INFO.{stream}"),
        format!("$JS.API.STREAM.MSG.GET.{stream}"),
        format!("$JS.API.DIRECT.GET.{stream}.>"),
        // With and without a name.
        format!("$JS.API.CONSUMER.CREATE.{stream}"),
        format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
        format!("$JS.API.CONSUMER.INFO.{stream}.>"),
        format!("$JS.API.CONSUMER.DELETE.{stream}.>"),
        format!("$JS.FC.{stream}.>"),
    ]
}

/// Returns lines for the configuration of a NATS server: an account for the workspace, with a user
/// for each key.
pub fn server_config(names: &Names, publishers: &BTreeSet<String>, members: &Members) -> String {
    let mut text = format!(
        "# The account of the kitbag workspace `{0}` for nats-server.\n\
         # Its own configuration must have a line `include \"FILE\"`, and `jetstream {{ … }}`.\n\
         accounts {{\n  \"kitbag-{0}\": {{\n    jetstream: enabled\n    users: [\n",
        names.workspace()
    );
    let roles = [
        (Role::Publisher, "publisher", publishers),
        (Role::FrontEnd, "front end", &members.front_ends),
        (Role::Worker, "worker", &members.workers),
    ];
    for (role, word, keys) in roles {
        for public in keys {
            let Permissions { publish, subscribe } = permissions(names, role, public);
            let list = |subjects: &[String]| {
                let lines = subjects.iter().map(|subject| format!("          \"{subject}\"\n"));
                lines.collect::<String>()
            };
            write!(
                text,
                "      # {word}\n      {{ nkey: {public}, permissions: {{\n        publish: [\n{}        \
                 ]\n        subscribe: [\n{}        ]\n      }} }}\n",
                list(&publish),
                list(&subscribe),
            )
            .expect("a string grows");
        }
    }
    text.push_str("    ]\n  }\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_nats::jetstream;
    use async_nats::jetstream::stream::{Config, RetentionPolicy};
    use kitbag_test_servers::NatsServer;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::presence::{Presence, Workers};
    use crate::snapshot::{KnownSnapshots, NewFile, NewSnapshot, SnapshotStore};
    use crate::{Identity, Nats, connect};

    const PATIENCE: Duration = Duration::from_secs(60);

    struct Cluster {
        server: NatsServer,
        names: Names,
        publisher: Identity,
        front_end: Identity,
        worker: Identity,
    }

    impl Cluster {
        fn start() -> Self {
            let names = Names::new("team").unwrap();
            let [publisher, front_end, worker] = [(); 3].map(|()| Identity::generate());
            let own = |identity: &Identity| BTreeSet::from([identity.public().to_owned()]);
            let members = Members { front_ends: own(&front_end), workers: own(&worker) };
            let config = server_config(&names, &own(&publisher), &members);
            let server = NatsServer::start_with(&config, None);
            Self { server, names, publisher, front_end, worker }
        }

        async fn client(&self, identity: &Identity) -> async_nats::Client {
            let nats = Nats { urls: vec![self.server.url()], ..Nats::default() };
            connect(&nats, identity).await.unwrap()
        }

        /// Sends to a subject, and waits until the server's log has a refusal.
        async fn is_refused(&self, identity: &Identity, subject: &str) {
            let client = self.client(identity).await;
            client.publish(subject.to_owned(), "x".into()).await.unwrap();
            client.flush().await.unwrap();
            let (user, line) = (
                format!("nkey:{}\"", identity.public()),
                format!("Publish Violation - Subject \"{subject}\""),
            );
            let is_logged =
                || self.server.log().lines().any(|it| it.contains(&user) && it.contains(&line));
            for _ in 0..1000 {
                if is_logged() {
                    return;
                }
                sleep(Duration::from_millis(10)).await;
            }
            panic!("`{subject}` is allowed:\n{}", self.server.log());
        }
    }

    #[tokio::test]
    async fn members_can_do_their_task_and_no_other() {
        let cluster = Cluster::start();
        let Cluster { names, publisher, front_end, worker, server } = &cluster;
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");

        // The publisher creates everything.
        let client = cluster.client(publisher).await;
        let store = SnapshotStore::create(&client, names, 1).await.unwrap();
        Workers::create(&client, names, 1).await.unwrap();
        let stream = Config {
            name: names.call_stream(),
            subjects: vec![names.every_call()],
            retention: RetentionPolicy::WorkQueue,
            ..Config::default()
        };
        jetstream::new(client.clone()).create_stream(stream).await.unwrap();
        let publishers = BTreeSet::from([publisher.public().to_owned()]);
        let files = [("a".to_owned(), NewFile::Bytes(b"content".to_vec()))].into();
        let new = NewSnapshot { members: Members::default(), files };
        let known = KnownSnapshots::new(&state);
        store.publish(publisher, &publishers, &known, new).await.unwrap();

        // A worker reads snapshots and announces itself.
        let client = cluster.client(worker).await;
        let store = SnapshotStore::open(&client, names).await.unwrap();
        let signed = timeout(PATIENCE, store.watch().next()).await.unwrap_or_else(|_| {
            panic!("no snapshot:\n{}", server.log());
        });
        assert_eq!(store.newest().await.unwrap().as_ref(), Some(&signed));
        let manifest = signed.accept("team", &publishers, None).unwrap();
        let cache = directory.path().join("cache");
        store.unpack(&cache, signed.digest(), &manifest).await.unwrap();
        let workers = Workers::open(&client, names).await.unwrap();
        let presence =
            Presence { id: "a".into(), key: worker.public().into(), ..Presence::default() };
        workers.announce(&presence).await.unwrap();

        // A front end reads snapshots and workers, and puts calls into the queue.
        let client = cluster.client(front_end).await;
        SnapshotStore::open(&client, names).await.unwrap().newest().await.unwrap().unwrap();
        assert_eq!(Workers::open(&client, names).await.unwrap().all().await.unwrap(), [presence]);
        let context = jetstream::new(client);
        let call = "kitbag.call.team.any.normal.t";
        context.publish(call, "x".into()).await.unwrap().await.unwrap();

        let refused = server.log().matches("Violation").count();
        assert_eq!(refused, 0, "{}", server.log());
        let own = format!("$KV.kitbag-workers-team.{}.b", front_end.public());
        for (identity, subject) in [
            (worker, call),
            (worker, "kitbag.cancel.team.a"),
            (worker, "$KV.kitbag-snapshots-team.team"),
            (worker, "$O.kitbag-components-team.C.a"),
            (worker, &own),
            (worker, "$JS.API.STREAM.DELETE.kitbag-calls-team"),
            (worker, "$JS.API.STREAM.PURGE.KV_kitbag-records-team"),
            (worker, "$JS.API.STREAM.UPDATE.KV_kitbag-snapshots-team"),
            (front_end, "kitbag.reply.a.b.c.0"),
            (front_end, "$KV.kitbag-snapshots-team.team"),
            (front_end, "$O.kitbag-components-team.C.a"),
            (front_end, &own),
            (front_end, "$JS.API.CONSUMER.MSG.NEXT.kitbag-calls-team.any-normal"),
            (publisher, call),
            (publisher, "kitbag.reply.a.b.c.0"),
        ] {
            cluster.is_refused(identity, subject).await;
        }
        // A key that is not in the list does not get in.
        let nats = Nats { urls: vec![server.url()], ..Nats::default() };
        let refused = connect(&nats, &Identity::generate()).await.unwrap_err().to_string();
        assert!(refused.contains("authorization violation"), "{refused}");
    }

    #[tokio::test]
    async fn front_ends_cannot_read_the_replies_to_another() {
        let cluster = Cluster::start();
        let client = cluster.client(&cluster.front_end).await;
        let subject = format!("kitbag.reply.{}.>", cluster.worker.public());
        let _subscription = client.subscribe(subject).await.unwrap();
        client.flush().await.unwrap();
        while !cluster.server.log().contains("Subscription Violation") {
            sleep(Duration::from_millis(10)).await;
        }
    }
}
