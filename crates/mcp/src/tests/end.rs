//! The end of a server.

use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kitbag_config::{Sources, load};
use kitbag_host::{Host, HostOptions};
use kitbag_secrets::Secrets;
use kitbag_state::audit::{AuditLog, AuditSize, Auditor, Syncing, Writing};
use kitbag_toolbox::Toolbox;
use serde_json::json;

use super::client::Client;
use super::native_tools::{NoSecrets, Probe};
use crate::Server;
use crate::server::background::{Background, Precompile};

/// A toolbox with the tool `probe`, which logs its calls below `root/state`.
fn audited(root: &std::path::Path) -> Toolbox {
    // Created by the log, since it has to be private.
    let log = AuditLog::new(&root.join("state"), AuditSize::default());
    let auditor = Arc::new(Auditor::new(log, Syncing::Batch, Writing::Background));
    let config = load(&Sources { start: root.to_owned(), ..Sources::default() }).unwrap();
    let secrets = Arc::new(Secrets::new(NoSecrets, Vec::new()));
    let host = Host::new(HostOptions::default());
    let toolbox = Toolbox::new(host, config, &[], secrets, Some(auditor));
    toolbox.with_tool(Arc::new(Probe)).unwrap()
}

#[test]
fn an_ended_server_has_written_every_line_of_the_audit_log() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let toolbox = audited(&root);
    let reload = toolbox.clone();
    let server = Server::new(toolbox.clone(), Box::new(move || Ok(reload.clone())), None).unwrap();
    let mut client = Client::start(server.clone()).after_handshake(json!({}));
    for _ in 0..3 {
        client.call(json!({ "do": "echo" }));
    }
    client.close().0.unwrap();
    server.finish();
    let lines = fs::read_to_string(root.join("state/audit/audit-000001.jsonl")).unwrap();
    assert_eq!(lines.matches(r#""event":"call""#).count(), 3, "{lines}");
    // The log has these lines although a thread still holds the toolbox.
    drop(toolbox);
}

/// A toolbox that is being loaded until the background is stopped.
struct Loading {
    toolbox: Toolbox,
    started: Sender<()>,
    stopped: Mutex<Receiver<()>>,
}

impl Precompile for Loading {
    fn toolbox(&self) -> &Toolbox {
        self.started.send(()).unwrap();
        // Ends when the sender is dropped.
        let _ = self.stopped.lock().unwrap().recv();
        &self.toolbox
    }

    fn learned(&self, _: &str) {}

    fn is_over(&self) -> bool {
        false
    }
}

#[test]
fn the_end_waits_for_the_thread_in_the_background() {
    let directory = tempfile::tempdir().unwrap();
    let toolbox = audited(&directory.path().canonicalize().unwrap());
    let (started, has_started) = channel();
    let (stop, stopped) = channel();
    let background = Arc::new(Background::default());
    background.load_builtins(Loading { toolbox, started, stopped: Mutex::new(stopped) });
    has_started.recv().unwrap();
    let ending = Arc::clone(&background);
    let end = std::thread::spawn(move || ending.stop(Duration::from_secs(60)));
    drop(stop);
    end.join().unwrap();
    // The thread has dropped its toolbox, and with it the sender.
    has_started.try_iter().for_each(drop);
    assert!(
        has_started
            .try_recv()
            .is_err_and(|error| error == std::sync::mpsc::TryRecvError::Disconnected)
    );
}
