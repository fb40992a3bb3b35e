//! Commands of a cluster, against a real NATS server. They require a build with the feature `nats`.

#[allow(dead_code, unused_imports, unused_macros, reason = "a harness for more than these tests")]
mod support;

use std::fs;

use kitbag_test_servers::NatsServer;

use crate::support::{Run, Workspace};

const SCRIPT: &str = "\"\"\"Say hello.\"\"\"\nprint('hello')\n";

fn workspace() -> Workspace {
    let workspace = Workspace::with_toolsets(&["fetch", "python"]).untrusted();
    workspace.config("[tools.fetch.grants]\nhttp = [\"https://a.example/**\"]\n");
    workspace.file(".kitbag/scripts/hello.py", SCRIPT);
    workspace
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
    assert_eq!(refused.code, 6, "{}", refused.shown());
    assert!(refused.stderr.contains("tool `fetch` sends requests"), "{}", refused.stderr);
    assert!(refused.stderr.contains("nothing was published"), "{}", refused.stderr);
    let published = publish(&workspace, &server, &["--yes"]).success();
    let first = "published snapshot 1 of `team` at nats://127.0.0.1:";
    assert!(published.starts_with(first), "{published}");
    assert!(published.contains(": 2 files, 0 workers, 0 front ends\n"), "{published}");
    // The workspace is trusted now.
    assert_eq!(workspace.run(&["run", "hello"]).success(), "hello\n");
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
            "[tools.hello.grants]\nfilesystem = [{{ host = \"{host}\", guest = \"/data\" }}]\n"
        );
        workspace.config(&text);
        publish(&workspace, &server, &["--yes"])
    };
    let refused = grant(".");
    assert!(refused.stderr.contains("grant a root, `host = \"$ROOT/NAME\"`"), "{}", refused.stderr);
    grant("$ROOT/data").success();
    // This machine has no root of that name.
    let refused = workspace.run(&["run", "hello"]);
    assert_eq!(refused.code, 6, "{}", refused.shown());
    assert!(refused.stderr.contains("the tool needs the root `data`"), "{}", refused.stderr);
}

#[test]
fn permissions_are_those_of_the_listed_machines() {
    let (workspace, other) = (workspace(), Workspace::new());
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
