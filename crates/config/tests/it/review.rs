//! Edits of a trusted workspace: tools that request nothing more stay trusted, other tools are off.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kitbag_config::{BuiltinTool, Config, Sourced, Sources, TrustChange, TrustSource, load};
use kitbag_policy::Access;
use kitbag_state::trust::{TrustRecord, TrustStore, TrustedContent, digest_of};
use serde::Deserialize;

use crate::support::Fixture;

static BUILTINS: [BuiltinTool<'static>; 4] = [
    BuiltinTool {
        name: "learn",
        toolset: "learn",
        workspace: None,
        keeps: false,
        given_by_call: &["/subjects"],
        required: &[],
        calls: false,
    },
    BuiltinTool {
        name: "read_file",
        toolset: "files",
        workspace: Some(Access::ReadOnly),
        keeps: false,
        given_by_call: &[],
        required: &[],
        calls: false,
    },
    BuiltinTool {
        name: "write_file",
        toolset: "files",
        workspace: Some(Access::ReadWrite),
        keeps: false,
        given_by_call: &[],
        required: &[],
        calls: false,
    },
    BuiltinTool {
        name: "python",
        toolset: "python",
        workspace: Some(Access::ReadOnly),
        keeps: false,
        given_by_call: &[],
        required: &[],
        calls: true,
    },
];

/// An edit and its effects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The trusted content of `.kitbag/config.toml`.
    trusted: String,
    /// The same file after the edit. Default: unchanged.
    edited: Option<String>,
    /// The trusted content of other files.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The files that the edit writes; an empty text removes a file.
    #[serde(default)]
    edited_files: BTreeMap<String, String>,
    /// The user config, before and after the edit.
    #[serde(default)]
    user: String,
    edited_user: Option<String>,
    /// The tools and topics that are off, with their causes.
    #[serde(default)]
    off: Vec<String>,
    /// Tools that are on.
    #[serde(default)]
    on: Vec<String>,
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    loosened: Vec<String>,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

fn sources(fixture: &Fixture, trust: TrustSource) -> Sources<'_> {
    let state = Some(Sourced::default(fixture.path("state")));
    Sources { trust, state, builtins: &BUILTINS, ..fixture.sources() }
}

/// Loads the configuration in effect with the record of trust.
fn recorded(fixture: &Fixture) -> Config {
    let sources = sources(fixture, TrustSource::Recorded);
    load(&sources).unwrap_or_else(|errors| panic!("{errors}"))
}

fn store(fixture: &Fixture) -> TrustStore {
    TrustStore::new(&fixture.path("state"))
}

/// Trusts the present files.
fn trust(fixture: &Fixture) {
    let config = load(&sources(fixture, TrustSource::Asked));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    let content = config.content.as_ref().unwrap();
    let mut record = TrustRecord::new(content.root.to_str().unwrap());
    record.files = content.files.clone();
    for (name, path) in config.workspace_components() {
        let digest = fs::read(path).ok().map(|bytes| digest_of(&bytes));
        record.components.insert(name, digest);
    }
    record.places = config.named_places();
    let texts = config.files.iter().map(|file| (file.digest(), file.content().into_owned()));
    store(fixture)
        .write(&record, &TrustedContent { asks: Vec::new(), texts: texts.collect() })
        .unwrap();
}

/// Returns a workspace with directories, a component and a user config with a secret.
fn workspace(config: &str, user: &str) -> Fixture {
    let secret = "[secrets.github]\nto = [\"https://api.github.com/**\"]\n";
    Fixture::new(config)
        .user(&format!("{user}\n{secret}"))
        .directory("w/docs")
        .directory("w/data/sub")
        .directory("h/notes")
        .file("w/.kitbag/tools/count.wasm", "count")
        .variables([("LANG", b"C"), ("CI", b"1")])
}

fn write(fixture: &Fixture, path: &str, text: &str) {
    let path = fixture.path(path);
    if text.is_empty() {
        fs::remove_file(path).unwrap();
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn lines(fixture: &Fixture, changes: &[TrustChange]) -> Vec<String> {
    changes.iter().map(|change| fixture.redact(&change.to_string())).collect()
}

#[test]
fn edits_are_limited_to_the_trusted_access() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases/review.toml");
    let cases: Cases = toml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let mut wrong = String::new();
    for case in &cases.case {
        let mut fixture = workspace(&case.trusted, &case.user);
        for (path, text) in &case.files {
            write(&fixture, path, text);
        }
        trust(&fixture);
        assert_eq!(recorded(&fixture).review, None, "{}", case.name);
        if let Some(edited) = &case.edited {
            write(&fixture, "w/.kitbag/config.toml", edited);
        }
        for (path, text) in &case.edited_files {
            write(&fixture, path, text);
        }
        if let Some(user) = &case.edited_user {
            fixture = fixture.user(user);
        }
        let config = recorded(&fixture);
        let is_on = |name: &String| config.tools.get(&**name).is_some_and(|tool| tool.is_enabled());
        let on = case.on.iter().filter(|name| is_on(name)).cloned().collect();
        let review = config.review.unwrap_or_default();
        let off: Vec<_> = review
            .off
            .iter()
            .map(|(subject, cause)| format!("{subject} is off because {cause}"))
            .collect();
        let changes = &review.changes;
        for (what, actual, expected) in [
            ("off", off, &case.off),
            ("on", on, &case.on),
            ("added", lines(&fixture, &changes.added), &case.added),
            ("removed", lines(&fixture, &changes.removed), &case.removed),
            ("loosened", lines(&fixture, &changes.loosened), &case.loosened),
        ] {
            if actual != *expected {
                wrong.push_str(&format!("{}: {what} = {actual:#?}\n", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Loads the configuration of a server with the record of trust.
fn served(fixture: &Fixture) -> Config {
    let sources = Sources { is_server: true, ..sources(fixture, TrustSource::Recorded) };
    load(&sources).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_server_offers_no_more_after_an_edit_of_serve_tools() {
    for (edited, is_file_read) in [
        ("[serve]\ntools = [\"learn\", \"read_file\"]\n", false),
        ("[serve]\ntools = [\"*\"]\n", false),
        ("[serve]\n", false),
        ("", false),
        ("[serve]\ntools = [\"l*\"]\n", true),
    ] {
        let fixture = workspace("[serve]\ntools = [\"learn\"]\n", "");
        trust(&fixture);
        let is_on = |config: &Config, name: &str| config.tools[name].is_enabled();
        assert!(is_on(&served(&fixture), "learn") && !is_on(&served(&fixture), "read_file"));
        write(&fixture, "w/.kitbag/config.toml", if edited.is_empty() { "\n" } else { edited });
        let config = served(&fixture);
        assert!(is_on(&config, "learn"), "{edited}");
        assert!(!is_on(&config, "read_file"), "{edited}");
        let review = config.review.unwrap_or_default();
        assert_eq!(review.off.is_empty(), is_file_read, "{edited}: {review:?}");
        // On the command line the list restricts nothing.
        assert!(is_on(&recorded(&fixture), "read_file"), "{edited}");
    }
}

#[test]
fn a_removed_kitbag_directory_keeps_its_workspace() {
    let fixture = workspace("[tools.read_file]\nenable = false\n", "");
    trust(&fixture);
    fs::create_dir_all(fixture.path("w/sub")).unwrap();
    let start = |path: &str| {
        let sources =
            Sources { start: fixture.path(path), ..sources(&fixture, TrustSource::Recorded) };
        load(&sources).unwrap_or_else(|errors| panic!("{errors}"))
    };
    assert!(!start("w/sub").tools["read_file"].is_enabled());
    fs::remove_dir_all(fixture.path("w/.kitbag")).unwrap();
    // The parent has no workspace, then a workspace, then a repository.
    for above in ["", ".kitbag", ".git"] {
        fs::create_dir_all(fixture.path(above)).unwrap();
        for path in ["w", "w/sub"] {
            let config = start(path);
            assert_eq!(config.root.value, fixture.path("w"), "{above} {path}");
            assert!(!config.tools["read_file"].is_enabled(), "{above} {path}");
            let review = config.review.as_ref().expect("an edit is known");
            assert!(!review.files.is_empty(), "{above} {path}");
        }
        if !above.is_empty() {
            fs::remove_dir(fixture.path(above)).unwrap();
        }
    }
    // Once trust is revoked, the parent takes effect again.
    store(&fixture).revoke(&fixture.path("w")).unwrap();
    fs::create_dir(fixture.path(".kitbag")).unwrap();
    assert_eq!(start("w/sub").root.value, fixture.path("").components().as_path());
}
