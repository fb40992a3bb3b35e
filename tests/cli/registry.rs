//! `kitbag push`, `add` with a reference, `update` and `search` against a registry on loopback.

mod documented;

use std::fs;

use kitbag_test_servers::{Answer, Authority, Keyless, OciRegistry, Sigstore, signing_key};
use serde_json::json;

use crate::support::crafted::describing;
use crate::support::{Run, Workspace, snapshot};

/// A registry, and the workspaces of an author and of a user.
struct Fixture {
    registry: OciRegistry,
    author: Workspace,
    user: Workspace,
}

fn component(version: &str, variables: &[&str]) -> Vec<u8> {
    let description = json!({
        "name": "count",
        "description": format!("Counts words, version {version}."),
        "inputSchema": { "type": "object" },
        "grants": { "env": variables },
    });
    describing(&description.to_string())
}

impl Fixture {
    /// Both users trust the registry's certificate and allow loopback. `signed_by` are the files of
    /// keys that the user requires.
    fn new(signed_by: &[&str]) -> Self {
        let authority = Authority::new();
        let registry = OciRegistry::start(&authority.local());
        let fixture = Self { registry, author: Workspace::new(), user: Workspace::new() };
        for workspace in [&fixture.author, &fixture.user] {
            let home = workspace.home();
            fs::write(home.join("ca.pem"), authority.pem()).unwrap();
            let host = fixture.registry.host();
            let settings = format!(
                "[network]\nroots = [\"~/ca.pem\"]\n[registries.\"{host}\"]\nprivate = true\n"
            );
            workspace.add_to_own_config(&settings);
        }
        fs::create_dir(fixture.user.home().join("keys")).unwrap();
        for name in ["org", "eve"] {
            let (private, public) = signing_key();
            fs::write(fixture.author.home().join(format!("{name}.pem")), private).unwrap();
            fs::write(fixture.user.home().join(format!("{name}.pub")), &public).unwrap();
            fs::write(fixture.user.home().join(format!("keys/{name}.pub")), public).unwrap();
        }
        if !signed_by.is_empty() {
            fixture.user.add_to_own_config(&format!(
                "[registries.\"{}/org/*\"]\nsigned_by = {signed_by:?}\n",
                fixture.registry.host()
            ));
        }
        fixture
    }

    fn reference(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.registry.host())
    }

    fn push(&self, rest: &str, component: &[u8], key: Option<&str>) -> Run {
        self.author.file("count.wasm", component);
        let (reference, file) = (self.reference(rest), self.author.path("count.wasm"));
        let mut arguments = vec!["push", &*reference, file.to_str().unwrap()];
        let key = key.map(|key| self.author.home().join(key).display().to_string());
        arguments.extend(key.iter().flat_map(|key| ["--sign", key.as_str()]));
        self.author.run(&arguments)
    }

    fn add(&self, rest: &str, options: &[&str]) -> Run {
        self.user.run(&[&["add", &*self.reference(rest)][..], options].concat())
    }

    fn update(&self, options: &[&str]) -> Run {
        self.user.run(&[&["update", "count"][..], options].concat())
    }

    /// Returns a result without the values that differ between runs.
    fn shown(&self, run: &Run) -> String {
        let text = format!("exit code: {}\n{}{}", run.code, run.stdout, run.stderr);
        let text = self.user.redact(&text.replace(&self.registry.host(), "HOST"));
        let digests = regex_lite::Regex::new("sha256:[0-9a-f]{64}|key [0-9a-f]{16}|[0-9a-f]{12}…");
        let digests = digests.unwrap();
        digests.replace_all(&text, "<digest>").into_owned()
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.user.path(".kitbag/kitbag.lock")).unwrap_or_default()
    }
}

#[test]
fn tools_are_pushed_signed_added_and_updated() {
    let fixture = Fixture::new(&["~/org.pub"]);
    let mut screens = Vec::new();
    let mut show = |what: &str, run: Run| {
        screens.push(format!("=== {what}\n{}", fixture.shown(&run)));
        run.code
    };
    let pushed = fixture.push("org/count:1.0", &component("1.0", &["LANG"]), Some("org.pem"));
    assert_eq!(show("push", pushed), 0);
    assert_eq!(show("add", fixture.add("org/count:1.0", &["--yes", "--grant", "requested"])), 0);
    assert_eq!(show("describe", fixture.user.run(&["describe", "count"])), 0);
    assert_eq!(show("update without a difference", fixture.update(&[])), 0);
    let lock = fixture.lock();
    // The tag moves: a version that requests more.
    fixture.push("org/count:1.0", &component("1.1", &["LANG", "TZ"]), Some("org.pem")).success();
    assert_eq!(show("update after the tag has moved", fixture.update(&[])), 3);
    assert_eq!(fixture.lock(), lock);
    assert_eq!(show("update --yes", fixture.update(&["--yes"])), 0);
    assert_ne!(fixture.lock(), lock);
    snapshot!("push, add and update", &screens.join("\n"));
}

#[test]
fn wrong_signers_and_unsigned_tools_are_refused() {
    let fixture = Fixture::new(&["~/org.pub"]);
    let component = component("1.0", &[]);
    let mut screens = Vec::new();
    for (tag, key) in [("1.0", None), ("2.0", Some("eve.pem"))] {
        fixture.push(&format!("org/count:{tag}"), &component, key).success();
        let before = fixture.registry.seen().requests.len();
        let run = fixture.add(&format!("org/count:{tag}"), &["--yes"]);
        assert_eq!(run.code, 6);
        // The component is not read before its signature is accepted.
        let digest = format!("/v2/org/count/blobs/{}", fixture.registry.put_blob(&component));
        let seen = fixture.registry.seen();
        assert!(!seen.requests[before..].iter().any(|it| it.path() == digest));
        screens.push(fixture.shown(&run));
        // Another signature of the same content must not count for this test.
        fixture.registry.remove_tag("org/count", tag);
    }
    snapshot!("wrong signers", &screens.join("\n"));
    // An update must meet the same requirement.
    fixture.push("org/count:3.0", &component, Some("org.pem")).success();
    fixture.add("org/count:3.0", &["--yes"]).success();
    fixture.push("org/count:3.0", &self::component("4.0", &[]), Some("eve.pem")).success();
    let run = fixture.update(&["--yes"]);
    assert!(run.code == 6 && run.stderr.contains("a signature is not valid"), "{run:?}");
    // A URL cannot be signed.
    let url = format!("https://{}/org/count#sha256={}", fixture.registry.host(), "0".repeat(64));
    let run = fixture.user.run(&["add", &url, "--yes"]);
    assert!(run.code == 6 && run.stderr.contains("a URL has no signatures"), "{run:?}");
}

#[test]
fn unsigned_tools_are_called_unsigned() {
    let fixture = Fixture::new(&[]);
    fixture.push("org/count:1.0", &component("1.0", &[]), None).success();
    let added = fixture.add("org/count:1.0", &["--yes"]);
    assert!(added.stdout.contains("\n  unsigned\n"), "{}", added.stdout);
    assert!(fixture.user.run(&["list"]).stdout.contains("downloaded and unsigned: count"));
    assert!(fixture.user.run(&["describe", "count"]).stdout.contains(", unsigned\n"));
    let value = fixture.user.run(&["describe", "count", "--json"]).json();
    assert_eq!(value["download"]["signer"], json!(null));
}

#[test]
fn flipped_bytes_and_lies_add_nothing() {
    let fixture = Fixture::new(&[]);
    fixture.push("org/count:1.0", &component("1.0", &[]), None).success();
    let flip = |request: &kitbag_test_servers::SeenRequest, mut answer: Answer| {
        if request.path().contains("/blobs/") && answer.body.starts_with(b"\0asm") {
            answer.body[100] ^= 1;
        }
        answer
    };
    fixture.registry.change(flip);
    let run = fixture.add("org/count:1.0", &["--yes"]);
    assert!(run.code == 6 && run.stderr.contains("was expected"), "{run:?}");
    assert_eq!(fixture.lock(), "");
    // A registry that answers differently the second time: the digest is pinned.
    fixture.registry.unchanged();
    fixture.add("org/count:1.0", &["--yes"]).success();
    let before = fs::read(fixture.user.path(".kitbag/tools/count.wasm")).unwrap();
    fixture.registry.change(flip);
    assert_eq!(fixture.update(&["--yes"]).code, 6);
    assert_eq!(fs::read(fixture.user.path(".kitbag/tools/count.wasm")).unwrap(), before);
}

#[test]
fn a_broken_rule_downloads_nothing() {
    let fixture = Fixture::new(&[]);
    fixture.push("org/count:1.0", &component("1.0", &[]), None).success();
    let before = fixture.registry.seen().requests.len();
    for rule in ["signed_by = [\"~/absent.pub\"]", "signed_by = 1", "signedby = []"] {
        let text = fs::read_to_string(fixture.user.own_config_file()).unwrap();
        fixture.user.add_to_own_config(&format!("[registries.\"*/org/*\"]\n{rule}\n"));
        let run = fixture.add("org/count:1.0", &["--yes"]);
        assert_ne!(run.code, 0, "{rule}: {run:?}");
        fs::write(fixture.user.own_config_file(), text).unwrap();
    }
    assert_eq!(fixture.registry.seen().requests.len(), before);
}

#[test]
fn a_workspace_cannot_change_registries() {
    let fixture = Fixture::new(&["~/eve.pub"]);
    fixture.push("org/count:1.0", &component("1.0", &[]), Some("org.pem")).success();
    let host = fixture.registry.host();
    fixture.user.config(&format!("[registries.\"{host}/org/*\"]\nsigned_by = []\n"));
    let run = fixture.add("org/count:1.0", &["--yes"]);
    assert!(run.code != 0 && fixture.lock().is_empty(), "{run:?}");
}

#[test]
fn manifests_of_artifacts_are_translated() {
    let fixture = Fixture::new(&[]);
    fixture.author.file("count.wasm", component("1.0", &[]));
    let skill =
        "name = \"count\"\nversion = \"1.0.0\"\n[capabilities]\nnetwork = [\"api.example.com\"]\n";
    fixture.author.file("skill.toml", skill);
    let [file, manifest] =
        ["count.wasm", "skill.toml"].map(|name| fixture.author.path(name).display().to_string());
    let reference = fixture.reference("org/count:1.0");
    fixture.author.run(&["push", &reference, &file, "--manifest", &manifest]).success();
    fixture.add("org/count:1.0", &["--yes"]).success();
    assert!(fixture.lock().contains("file = \"skill.toml\""), "{}", fixture.lock());
}

#[test]
fn indexes_are_pinned_by_the_first_search() {
    let fixture = Fixture::new(&[]);
    let reference = fixture.reference("org/tools:1");
    let push = |names: &[&str]| {
        let entries = names.iter().map(|name| {
            json!({ "name": name, "reference": fixture.reference(&format!("org/{name}:1.0")),
                "description": format!("Counts {name}."), "tags": ["text"] })
        });
        let index = json!({ "version": 1, "tools": entries.collect::<Vec<_>>() }).to_string();
        let file = fixture.author.file("tools.json", &index).display().to_string();
        fixture.author.run(&["push", &reference, &file]).success();
    };
    let search = |options: &[&str]| {
        fixture.user.run(&[&["search", "--index", &*reference][..], options].concat())
    };
    let mut screens = Vec::new();
    let mut show = |what: &str, run: Run| {
        screens.push(format!("=== {what}\n{}", fixture.shown(&run)));
        assert_eq!(run.code, 0, "{run:?}");
    };
    push(&["words", "lines"]);
    show("first search", search(&["text"]));
    show("second search", search(&["words"]));
    show("update without a difference", search(&["--update"]));
    // The tag moves. The recorded version is still searched.
    push(&["words", "bytes"]);
    show("search after the tag has moved", search(&["text"]));
    let found = search(&["text", "--json"]).json();
    assert_eq!(
        (found[0]["name"].as_str(), found[1]["name"].as_str()),
        (Some("words"), Some("lines"))
    );
    show("update", search(&["--update"]));
    show("search after the update", search(&["text"]));
    snapshot!("pinned indexes", &screens.join("\n"));
    // The registry has deleted the recorded version.
    push(&["files"]);
    fixture.registry.change(|request, answer| {
        match request.path().contains("/manifests/sha256:") {
            true if answer.status == 200 && request.method == "GET" => Answer::new(404, "{}"),
            _ => answer,
        }
    });
    let run = search(&["text"]);
    assert!(run.code == 2 && run.stderr.contains("search --update"), "{run:?}");
}

#[test]
fn indexes_with_a_digest_and_files_are_read_as_they_are() {
    let fixture = Fixture::new(&[]);
    let entry = json!({ "name": "count", "reference": fixture.reference("org/count:1.0") });
    let index = json!({ "version": 1, "tools": [entry] }).to_string();
    let file = fixture.author.file("tools.json", &index).display().to_string();
    let reference = fixture.reference("org/tools:1");
    let pushed = fixture.author.run(&["push", &reference, &file, "--json"]).json();
    let pinned = format!("{reference}@{}", pushed["digest"].as_str().unwrap());
    fs::write(fixture.author.path("tools.json"), index.replace("count", "lines")).unwrap();
    fixture.author.run(&["push", &reference, &file]).success();
    let found = fixture.user.run(&["search", "--json", "--index", &pinned]).json();
    assert_eq!(found[0]["name"], "count");
    let local = fixture.author.run(&["search", "nothing", "--json", "--index", &file]).json();
    assert_eq!(local, json!([]));
    for index in [&pinned, &file] {
        let run = fixture.user.run(&["search", "--update", "--index", index]);
        assert!(run.code == 2 && run.stderr.contains("`--update` is for an index"), "{run:?}");
    }
}

#[test]
fn indexes_must_be_signed_if_a_rule_requires_it() {
    let fixture = Fixture::new(&["~/org.pub"]);
    let file = fixture.author.file("tools.json", "{\"version\": 1, \"tools\": []}");
    let reference = fixture.reference("org/tools:1");
    fixture.author.run(&["push", &reference, file.to_str().unwrap()]).success();
    let run = fixture.user.run(&["search", "--index", &reference]);
    assert!(run.code == 6 && run.stderr.contains("but it is unsigned"), "{run:?}");
    let key = fixture.author.home().join("org.pem").display().to_string();
    fixture.author.run(&["push", &reference, file.to_str().unwrap(), "--sign", &key]).success();
    fixture.user.run(&["search", "--index", &reference]).success();
}

#[test]
fn signatures_of_identities_are_required() {
    let identity = "https://git.example/org/count/release.yml@refs/heads/main";
    let issuer = "https://tokens.git.example";
    let fixture = Fixture::new(&[]);
    let services = Sigstore::new();
    let pushed = fixture.push("org/count:1.0", &component("1.0", &[]), None).stdout;
    let digest = pushed.split('@').nth(1).unwrap().split(',').next().unwrap();
    let bundle = services.sign(digest, &Keyless::new(identity, issuer)).to_string();
    fixture.registry.attach("org/count", digest, &bundle);
    let home = fixture.user.home();
    fs::write(home.join("root.json"), services.trust_root().to_string()).unwrap();
    fs::write(home.join("other.json"), Sigstore::new().trust_root().to_string()).unwrap();
    let config = fs::read_to_string(fixture.user.own_config_file()).unwrap();
    let add = |root: &str, identity: &str, issuer: &str| {
        let host = fixture.registry.host();
        fs::write(fixture.user.own_config_file(), &config).unwrap();
        fixture.user.add_to_own_config(&format!(
            "[registry]\ntrust_root = \"~/{root}.json\"\n[registries.\"{host}/org/*\"]\nsigned_by \
             = [{{ identity = \"{identity}\", issuer = \"{issuer}\" }}]\n"
        ));
        fixture.add("org/count:1.0", &["--yes"])
    };
    let mut screens = Vec::new();
    for (what, run) in [
        ("another trust root", add("other", identity, issuer)),
        ("another identity", add("root", "eve@example.com", issuer)),
        ("another issuer", add("root", identity, "https://eve.example")),
    ] {
        assert_eq!((run.code, fixture.lock()), (6, String::new()), "{what}");
        screens.push(format!("=== {what}\n{}", fixture.shown(&run)));
    }
    let run = add("root", identity, issuer);
    assert_eq!(run.code, 0, "{run:?}");
    screens.push(format!("=== the required signer\n{}", fixture.shown(&run)));
    snapshot!("signatures of identities", &screens.join("\n"));
    assert!(fixture.lock().contains(&format!("signer = \"{identity} ({issuer})\"")));
}

#[test]
fn redirects_to_private_addresses_name_the_setting() {
    let fixture = Fixture::new(&[]);
    fixture.push("org/count:1.0", &component("1.0", &[]), None).success();
    fixture.registry.change(|request, answer| match request.path().contains("/blobs/") {
        true => Answer::redirect(307, "https://10.0.0.1/store?signature=abc"),
        false => answer,
    });
    let run = fixture.add("org/count:1.0", &["--yes"]);
    assert_eq!((run.code, fixture.lock()), (6, String::new()));
    snapshot!("redirect to a private address", &fixture.shown(&run));
}
