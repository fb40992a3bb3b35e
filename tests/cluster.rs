//! Commands of a cluster, against a real NATS server. They require a build with the feature `nats`.

#[allow(dead_code, unused_imports, unused_macros, reason = "a harness for more than these tests")]
mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use kitbag_test_servers::{Behaviour, NatsServer, Server};
use serde_json::json;

use crate::support::mcp::{Client, texts};
use crate::support::{Run, Workspace, guest};

/// A workspace with the tools `settings`, which returns its configuration, and `request`, which
/// sends requests with these grants.
fn workspace_with(grants: &str) -> Workspace {
    let workspace = Workspace::new().untrusted();
    for name in ["settings", "request"] {
        workspace.file(&format!(".kitbag/tools/{name}.wasm"), fs::read(guest(name)).unwrap());
    }
    workspace.config(&format!(
        "[tools.settings.grants]\nconfig = {{ greeting = \"hello\" }}\n[tools.request.grants]\n{grants}\n"
    ));
    workspace
}

fn workspace() -> Workspace {
    workspace_with("http = [\"https://a.example/**\"]")
}

fn key(workspace: &Workspace) -> String {
    workspace.run(&["workers", "--key"]).success().trim().to_owned()
}

fn publish(workspace: &Workspace, server: &NatsServer, more: &[&str]) -> Run {
    let url = server.url();
    workspace.run(&[&["publish", "--nats", &url, "--name", "team"], more].concat())
}

#[test]
fn publish_shows_the_requests_and_trusts_them() {
    let (workspace, server) = (workspace(), NatsServer::start());
    let refused = publish(&workspace, &server, &[]);
    assert_eq!(refused.code, 3, "{}", refused.shown());
    assert!(refused.stdout.contains("tool `request` sends requests"), "{}", refused.shown());
    assert!(refused.stderr.contains("nothing was published"), "{}", refused.stderr);
    let published = publish(&workspace, &server, &["--yes"]).success();
    let first = "published snapshot 1 of `team` at nats://127.0.0.1:";
    assert!(published.contains(first), "{published}");
    assert!(published.contains(": 3 files, 0 workers, 0 front ends\n"), "{published}");
    // The workspace is trusted now.
    assert_eq!(workspace.run(&["run", "settings", "key=greeting"]).success(), "hello\n");
    let again = publish(&workspace, &server, &["--yes", "--json"]).json();
    assert_eq!((&again["snapshot"], &again["name"]), (&2.into(), &"team".into()));
    assert_eq!(again["publisher"], key(&workspace));
}

#[test]
fn members_are_kept_until_they_are_removed() {
    let (workspace, server) = (workspace(), NatsServer::start());
    let other = Workspace::new();
    let (worker, front_end) = (key(&other), key(&Workspace::new()));
    let more = ["--yes", "--json", "--worker", &worker, "--front-end", &front_end];
    let first = publish(&workspace, &server, &more).json();
    assert_eq!(first["workers"][0], worker);
    let second = publish(&workspace, &server, &["--yes", "--json", "--remove", &worker]).json();
    assert_eq!(second["workers"].as_array().map(Vec::len), Some(0));
    assert_eq!(second["front_ends"][0], front_end);
}

#[test]
fn directories_of_this_machine_are_not_published() {
    let (workspace, server) = (workspace(), NatsServer::start());
    let grant = |host: &str| {
        let text = format!(
            "[tools.settings.grants]\nfilesystem = [{{ host = \"{host}\", guest = \"/data\" }}]\n"
        );
        workspace.config(&text);
        publish(&workspace, &server, &["--yes"])
    };
    let refused = grant(".");
    assert!(refused.stderr.contains("grant a root, `host = \"$ROOT/NAME\"`"), "{}", refused.stderr);
    grant("$ROOT/data").success();
    // This machine has no root of that name.
    let refused = workspace.run(&["run", "settings"]);
    assert_eq!(refused.code, 6, "{}", refused.shown());
    assert!(refused.stderr.contains("the tool needs the root `data`"), "{}", refused.stderr);
}

#[test]
fn permissions_are_those_of_the_listed_machines() {
    let (workspace, other) = (workspace(), workspace());
    let (publisher, worker) = (key(&workspace), key(&other));
    let arguments = ["publish", "--permissions", "--name", "team", "--worker", &worker];
    let config = workspace.run(&arguments).success();
    let server = NatsServer::start_with(&config, None);
    publish(&workspace, &server, &["--yes", "--worker", &worker]).success();
    // A worker's key cannot publish, and cannot even create what a publisher creates.
    let refused = publish(&other, &server, &["--yes"]);
    assert_ne!(refused.code, 0);
    assert!(server.log().contains(&format!("nkey:{worker}")), "{}", server.log());
    assert_eq!(
        other.run(&["workers", "--nats", &server.url(), "--name", "team"]).success(),
        "there are no workers\n"
    );
    let json = workspace.run(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!((&json[0]["key"], &json[0]["role"]), (&publisher.into(), &"publisher".into()));
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new();
    key(&workspace);
    let path = workspace.path("key");
    fs::write(&path, "SUA\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let path = path.to_string_lossy().into_owned();
    let refused = workspace.run(&["workers", "--key", "--key-file", &path]);
    assert!(refused.stderr.contains("it is open to others (mode 644)"), "{}", refused.stderr);
}

/// A value in a worker's user config.
const VALUE: &str = "ghp_workers-own-value-7391";

/// A process that ends with the test.
struct Worker(Child);

impl Worker {
    /// Starts a worker, and waits until it takes calls.
    fn start(workspace: &Workspace, server: &NatsServer, more: &[&str]) -> Self {
        let mut command = workspace.command();
        command.args(["worker", "--nats", &server.url(), "--name", "team"]).args(more);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.find(|line| line.as_ref().unwrap().contains(" runs calls of `team`"));
        assert!(ready.is_some(), "the worker ended");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn client(workspace: &Workspace, server: &NatsServer) -> Client {
    let url = server.url();
    Client::start(workspace, &["--nats", &url, "--name", "team"]).after_handshake(json!({}))
}

#[test]
fn a_client_calls_a_tool_on_a_worker() {
    let (workspace, server) = (workspace(), NatsServer::start());
    let own = key(&workspace);
    publish(&workspace, &server, &["--yes", "--worker", &own, "--front-end", &own]).success();
    let mut worker = Worker::start(&workspace, &server, &[]);
    let url = server.url();
    let list = || workspace.run(&["workers", "--nats", &url, "--name", "team", "--json"]).json();
    support::until(|| list()[0]["readiness"] == "ready");
    assert_eq!(list()[0]["key"], own);
    let mut client = client(&workspace, &server);
    let greeting = json!({ "key": "greeting" });
    assert_eq!(texts(&client.call("settings", greeting.clone())), ["hello"]);

    // The worker takes a newer snapshot without a restart.
    workspace.config("[tools.settings.grants]\nconfig = { greeting = \"good day\" }\n");
    publish(&workspace, &server, &["--yes"]).success();
    support::until(|| list()[0]["snapshot"][0] == 2 && list()[0]["readiness"] == "ready");
    assert_eq!(texts(&client.call("settings", greeting)), ["good day"]);

    worker.signal("TERM");
    assert!(worker.0.wait().unwrap().success());
    assert_eq!(list().as_array().map(Vec::len), Some(0));
}

#[test]
fn values_of_secrets_are_in_no_message() {
    let destination = Server::start(Behaviour::Echo);
    // The log has every message.
    let server = NatsServer::start_with("debug: true\ntrace: true", None);
    let place = format!("{}/**", destination.url());
    let workspace = workspace_with(&format!("http = [{place:?}]\nsecrets = {{ github = {{}} }}"));
    workspace.own_config(&format!(
        "[secrets.github]\ncommand = [\"/bin/echo\", \"{VALUE}\"]\nto = [{place:?}]\n"
    ));
    let own = key(&workspace);
    publish(&workspace, &server, &["--yes", "--worker", &own, "--front-end", &own]).success();
    let _worker = Worker::start(&workspace, &server, &[]);
    let mut client = client(&workspace, &server);
    let called = client.call("request", json!({ "url": destination.url() }));
    let seen = destination.seen();
    let [request] = &seen.requests[..] else { panic!("{called} {seen:?}") };
    assert_eq!(request.header("authorization"), Some(format!("Bearer {VALUE}")));
    let log = server.log();
    assert!(log.contains("kitbag.call.team.any."), "calls are logged");
    assert!(!log.contains(VALUE));
    assert!(!called.to_string().contains(VALUE), "{called}");
}
