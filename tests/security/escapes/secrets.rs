//! Files that look like secrets: no tool can open, change, move or link them unless a grant names
//! them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Attempts;
use crate::support::{CallInTest, Workspace, probe, snapshot};

/// The content of every secret in these tests.
const SECRET: &str = "token = 1234";

/// `probe` with these granted directories, in a workspace that contains secrets.
fn workspace(grants: &str) -> Workspace {
    let workspace =
        Workspace::with_probe(&format!("[tools.probe.grants]\nfilesystem = {grants}\n"));
    for path in [".env", "sub/.env.local", "keys/server.pem", ".ssh/id_rsa", ".ssh/config"] {
        workspace.file(path, SECRET);
    }
    workspace.file("open.txt", "open");
    workspace
}

/// The writable workspace, with further keys.
fn all(keys: &str) -> String {
    format!("[{{ host = \".\", guest = \"/workspace\", mode = \"rw\"{keys} }}]")
}

fn raw(action: &str, path: &str) -> Value {
    json!({ "do": action, "preopen": "/workspace", "path": path })
}

fn moved(action: &str, old: &str, new: &str) -> Value {
    json!({ "do": action, "old": old, "new": new })
}

#[test]
fn files_that_look_like_secrets_are_protected() {
    let workspace = workspace(&all(""));
    workspace.file("template/.env.example", "token =");
    symlink(".env", workspace.path("notes.txt")).unwrap();
    symlink("notes.txt", workspace.path("chain.txt")).unwrap();
    symlink(".ssh", workspace.path("shell")).unwrap();
    let mut attempts = Attempts::new(&workspace);
    attempts.about("A file beside it, and a template, can be read.");
    attempts.attempt(raw("read", "open.txt"));
    attempts.attempt(raw("read", "template/.env.example"));
    attempts.about("A secret cannot, by whatever path or link.");
    for path in [
        ".env",
        "./.env",
        "sub/../.env",
        ".env/",
        "sub/.env.local",
        "keys/server.pem",
        ".ssh/id_rsa",
        ".ssh/config",
        "notes.txt",
        "chain.txt",
        "shell/config",
    ] {
        attempts.attempt(raw("read", path));
    }
    attempts.about("The directory of a store is not listed.");
    attempts.attempt(raw("list", ".ssh"));
    attempts.attempt(raw("list", "shell"));
    attempts.about("A listing shows the name and no type; what lies in a store is not looked at.");
    attempts.attempt(raw("list", "sub"));
    attempts.attempt(raw("stat", "sub/.env.local"));
    attempts.attempt(raw("stat", "notes.txt"));
    attempts.attempt(raw("stat", ".ssh/config"));
    attempts.attempt(raw("stat", "shell/config"));
    attempts.about("Opening is refused, whatever the flags.");
    for (open, flags) in [
        (json!([]), json!(["read"])),
        (json!([]), json!([])),
        (json!([]), json!(["write"])),
        (json!([]), json!(["read", "write"])),
        (json!(["truncate"]), json!(["write"])),
        (json!(["create"]), json!(["read", "write"])),
        (json!(["create", "exclusive"]), json!([])),
    ] {
        attempts.attempt(json!({
            "do": "open", "preopen": "/workspace", "path": ".env", "open": open, "flags": flags,
        }));
    }
    attempts.about("So is every change.");
    for action in ["truncate", "remove", "set-times"] {
        attempts.attempt(raw(action, ".env"));
    }
    attempts.attempt(raw("mkdir", ".aws"));
    attempts.attempt(raw("rmdir", ".ssh"));
    attempts.attempt(
        json!({ "do": "write", "preopen": "/workspace", "path": "sub/.env", "text": "x" }),
    );
    attempts
        .attempt(json!({ "do": "write", "preopen": "/workspace", "path": "id_rsa", "text": "x" }));
    attempts.about("It gets no other name, and nothing else gets such a name.");
    for (action, old, new) in [
        ("rename", ".env", "x"),
        ("rename", "keys/server.pem", "keys/server.txt"),
        ("rename", ".ssh", "x"),
        ("rename", ".ssh/config", "x"),
        ("rename", "open.txt", ".netrc"),
        ("rename", "sub", ".aws"),
        ("link", ".env", "x"),
        ("link", ".ssh/config", "x"),
        ("link", "open.txt", "open.key"),
    ] {
        attempts.attempt(moved(action, old, new));
    }
    for (target, path) in
        [(".env", "x"), ("../.env", "sub/x"), (".ssh/config", "x"), ("open.txt", "id_rsa")]
    {
        attempts.attempt(json!({
            "do": "symlink", "target": target, "preopen": "/workspace", "path": path,
        }));
    }
    attempts.about("A directory that holds one may be moved, and it stays a secret there.");
    attempts.attempt(moved("rename", "sub", "moved"));
    attempts.attempt(raw("read", "moved/.env.local"));
    attempts.about("Nor is it there under another name by the next call.");
    attempts.attempt(raw("read", "x"));
    snapshot!("secrets", &attempts.report);
    for path in [".env", "moved/.env.local", "keys/server.pem", ".ssh/id_rsa", ".ssh/config"] {
        assert_eq!(fs::read_to_string(workspace.path(path)).unwrap(), SECRET, "{path}");
    }
    assert!(!attempts.report.contains("1234"));
}

#[test]
fn credential_files_of_programs_are_secrets_at_their_paths() {
    let workspace = workspace(&all(""));
    for path in [".docker/config.json", "gh/hosts.yml", ".cargo/credentials"] {
        workspace.file(path, SECRET);
    }
    for path in [".docker/Dockerfile", "app/config.json", "gradle.properties", "gh/main.go"] {
        workspace.file(path, "open");
    }
    let mut attempts = Attempts::new(&workspace);
    attempts.about("The names alone are ordinary.");
    for path in [".docker/Dockerfile", "app/config.json", "gradle.properties", "gh/main.go"] {
        attempts.attempt(raw("read", path));
    }
    attempts.about("Directory and file together are not.");
    for path in [".docker/config.json", ".docker/../gh/hosts.yml", ".cargo/credentials"] {
        attempts.attempt(raw("read", path));
    }
    attempts.attempt(raw("list", ".docker"));
    attempts.about("Nor does the file or its directory get another name.");
    for (action, old, new) in [
        ("rename", ".docker/config.json", "x.json"),
        ("link", ".docker/config.json", "x.json"),
        ("rename", ".docker", "docker"),
        ("rename", "gh", "x"),
        ("rename", ".cargo", ".docker/x"),
    ] {
        attempts.attempt(moved(action, old, new));
    }
    attempts.about("What lies above it may be moved, and a directory without it, too.");
    attempts.attempt(json!({ "do": "mkdir", "preopen": "/workspace", "path": "a" }));
    attempts.attempt(json!({ "do": "mkdir", "preopen": "/workspace", "path": "a/gh" }));
    attempts.attempt(moved("rename", "a/gh", "a/x"));
    snapshot!("stores", &attempts.report);
    for path in [".docker/config.json", "gh/hosts.yml", ".cargo/credentials"] {
        assert_eq!(fs::read_to_string(workspace.path(path)).unwrap(), SECRET, "{path}");
    }
    // A grant names it, or grants the directory itself.
    let read = |grants: &str, path: &str| {
        workspace.config(&probe(&format!("[tools.probe.grants]\nfilesystem = {grants}\n")));
        workspace.run(&["run", "probe", "do=read", &format!("path={path}")])
    };
    let include = all(", include = [\".docker/config.json\"]");
    assert!(read(&include, ".docker/config.json").stdout.contains(SECRET));
    assert!(!read(&include, "gh/hosts.yml").stdout.contains(SECRET));
    let store = "[{ host = \"gh\", guest = \"/workspace\" }]";
    assert!(read(store, "hosts.yml").stdout.contains(SECRET));
}

#[test]
fn a_secret_is_recognized_in_every_spelling() {
    let workspace = workspace(&all(""));
    let kitbag = workspace.kitbag();
    let names = [
        ".ENV",
        ".e\u{200c}nv",
        ".env.",
        ".env ",
        ".env::$DATA",
        "ENV~1",
        "\u{ff0e}env",
        ".env.Local",
        "ID_RSA",
        "Server.PEM",
        "a.b.Key",
        ".\u{17f}sh/x",
        ".SSH/config",
    ];
    for name in names {
        // On a file system that ignores the difference, this file is the secret.
        let file = workspace.path("spelled").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, SECRET).unwrap();
        let got = kitbag.call_in_test("probe", raw("read", &format!("spelled/{name}")));
        assert!(got.contains("refused (not-permitted)"), "{name:?}: {got}");
    }
}

#[test]
fn a_grant_opens_only_its_included_secrets() {
    let check = |grants: &str, read: &[&str], refused: &[&str]| {
        let workspace = workspace(grants);
        let kitbag = workspace.kitbag();
        let call = |path: &str| kitbag.call_in_test("probe", json!({ "do": "read", "path": path }));
        for path in read {
            assert!(call(path).contains(SECRET), "{grants} {path}: {}", call(path));
        }
        for path in refused {
            let got = call(path);
            assert!(
                !got.contains(SECRET) && got.contains("not-permitted"),
                "{grants} {path}: {got}"
            );
        }
    };
    check(
        &all(", include = [\".env\"]"),
        &["/workspace/.env"],
        &["/workspace/sub/.env.local", "/workspace/.ssh/config", "/workspace/keys/server.pem"],
    );
    check(
        &all(", include = [\"keys/*\", \".ssh\"]"),
        &["/workspace/keys/server.pem", "/workspace/.ssh/config"],
        &["/workspace/.env", "/workspace/.ssh/id_rsa"],
    );
    check(
        &all(", include = [\".ssh/id_*\"]"),
        &["/workspace/.ssh/id_rsa"],
        &["/workspace/.ssh/config"],
    );
    // A granted directory that is a store itself is granted with its whole content, through each of
    // the tool's directories.
    check(
        "[{ host = \".\", guest = \"/workspace\" }, { host = \".ssh\", guest = \"/keys\" }]",
        &["/keys/id_rsa", "/keys/config", "/workspace/.ssh/id_rsa"],
        &["/workspace/.env"],
    );
    check(
        "[{ host = \".\", guest = \"/workspace\" }, { host = \"sub\", guest = \"/sub\" }]",
        &[],
        &["/sub/.env.local", "/workspace/sub/.env.local"],
    );
}

#[test]
fn included_secrets_cannot_be_replaced_by_other_files() {
    let workspace = workspace(&all(", include = [\"open/*\"]"));
    workspace.file("open/a.txt", "a");
    let mut attempts = Attempts::new(&workspace);
    attempts.about("A directory that may hold secrets is not moved to what is included.");
    attempts.attempt(moved("rename", "keys", "open/keys"));
    attempts.attempt(moved("rename", "open", "aside"));
    attempts.attempt(moved("rename", "keys", "open"));
    attempts.attempt(moved("rename", "keys/server.pem", "open/server.pem"));
    attempts.attempt(raw("read", "open/server.pem"));
    attempts.attempt(raw("read", "open/keys/server.pem"));
    snapshot!("secrets beside what is included", &attempts.report);
    assert!(!attempts.report.contains("1234"));
}

#[test]
fn no_tool_reads_the_secret_storage_of_kitbag() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \"..\", guest = \"/all\", mode = \"rw\", \
         include = [\"**\"] }]\n",
    );
    let (state, own) = (".local/state/kitbag", ".config/kitbag");
    let home = workspace.home();
    for (directory, file) in [(state, "secrets.age"), (own, "secrets.key"), (own, "notes")] {
        fs::create_dir_all(home.join(directory)).unwrap();
        fs::write(home.join(directory).join(file), SECRET).unwrap();
    }
    fs::hard_link(home.join(state).join("secrets.age"), workspace.path("store")).unwrap();
    fs::hard_link(home.join(own).join("secrets.key"), workspace.path("key")).unwrap();
    let here = workspace.root().file_name().unwrap().to_str().unwrap().to_owned();
    symlink("../home/.local/state/kitbag/secrets.age", workspace.path("link")).unwrap();
    symlink("../home/.local/state", workspace.path("above")).unwrap();
    let run = |action: &str, path: &str| {
        let arguments = json!({ "do": action, "preopen": "/all", "path": path, "must": true });
        workspace.run(&["run", "probe", "--args", &arguments.to_string()])
    };
    assert!(run("read", "home/.config/kitbag/notes").shown().contains("1234"));
    for path in [
        "home/.local/state/kitbag/secrets.age",
        "home/.local/state/KITBAG/../kitbag/secrets.age",
        "home/.config/kitbag/secrets.key",
        &format!("{here}/store"),
        &format!("{here}/key"),
        &format!("{here}/link"),
        &format!("{here}/above/kitbag/secrets.age"),
    ] {
        let refused = run("read", path);
        assert!(!refused.shown().contains("1234"), "{path}: {}", refused.shown());
        assert_ne!(refused.code, 0, "{path}: {}", refused.shown());
    }
    for path in ["home/.local/state/kitbag", &format!("{here}/above/kitbag")] {
        let refused = run("list", path);
        assert!(!refused.stdout.contains("secrets.age"), "{path}: {}", refused.shown());
    }
    let why = workspace.run(&["why", "probe", "/all/home/.config/kitbag/secrets.key"]);
    assert_eq!(why.code, 6, "{}", why.shown());
    assert!(why.stdout.contains("where kitbag keeps secrets"), "{}", why.shown());
}
