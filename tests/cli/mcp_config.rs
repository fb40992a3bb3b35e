//! `kitbag mcp-config`: the entry of the server in clients' files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Run, Workspace, snapshot};

const CLIENTS: [&str; 10] = [
    "claude-desktop",
    "claude-code",
    "cline",
    "codex",
    "cursor",
    "gemini",
    "opencode",
    "vscode",
    "windsurf",
    "zed",
];

/// The entry for these is shown, and not written.
const NOT_WRITTEN: [&str; 2] = ["generic", "goose"];

fn redact(text: &str) -> String {
    text.replace(env!("CARGO_BIN_EXE_kitbag"), "<kitbag>")
}

fn shown(arguments: &[&str], run: &Run) -> String {
    format!("$ kitbag {}\n{}\n", arguments.join(" "), redact(&run.shown()))
}

#[test]
fn a_client_is_told_how_to_start_the_server() {
    let workspace = Workspace::new();
    let mut report = String::new();
    for client in CLIENTS.into_iter().chain(NOT_WRITTEN) {
        let command = ["mcp-config", client];
        let run = workspace.run(&command);
        report.push_str(&shown(&command, &run));
        let one_line = workspace.run(&["mcp-config", client, "--json"]);
        assert_eq!(one_line.stdout.lines().count(), 1);
        if client != "codex" {
            assert_eq!(one_line.json(), run.json());
        }
    }
    snapshot!("in a workspace", &report);

    fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
    let mut report = String::new();
    for client in CLIENTS {
        let command = ["mcp-config", client];
        report.push_str(&shown(&command, &workspace.run(&command)));
    }
    snapshot!("without a workspace", &report);
}

#[test]
fn a_client_is_told_how_to_reach_a_server_over_http() {
    let workspace = Workspace::new();
    let mut report = String::new();
    for client in CLIENTS.into_iter().chain(NOT_WRITTEN) {
        let command = ["mcp-config", client, "--http", "http://127.0.0.1:8620"];
        report.push_str(&shown(&command, &workspace.run(&command)));
    }
    let http = ["mcp-config", "claude-code", "--http"];
    for more in [
        &["https://example.org/mcp", "--token-variable", "TOKEN"][..],
        &["https://example.org/mcp", "--token-variable", "a b"],
        &["127.0.0.1:8620"],
    ] {
        let command = [&http[..], more].concat();
        report.push_str(&shown(&command, &workspace.run(&command)));
    }
    snapshot!("over HTTP", &report);
}

#[test]
fn a_client_is_told_of_the_workspace_that_was_named() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path("it's mine")).unwrap();
    let run = workspace.run(&["mcp-config", "claude-code", "-w", "it's mine"]);
    let arguments = run.json()["mcpServers"]["kitbag"]["args"].clone();
    // The file is in that workspace, where other people use it.
    assert_eq!(arguments, json!(["serve"]));
    assert!(
        run.stderr.ends_with(" serve --workspace '<workspace>/it'\\''s mine'\n"),
        "{}",
        run.stderr
    );
}

/// The file of a client in a workspace, and what a user has there.
fn file_of(workspace: &Workspace, client: &str) -> (PathBuf, String) {
    let json = |table: &str| {
        format!(
            "{{\n  // What I use.\n  \"{table}\": {{\n    \"other\": {{ \"command\": \"npx\", \
             \"args\": [\"-y\", \"other\"] }}, // keep\n  }},\n  \"theme\":   \"dark\"\n}}\n"
        )
    };
    let home = workspace.home();
    match client {
        "claude-desktop" => {
            (home.join(".config/Claude/claude_desktop_config.json"), json("mcpServers"))
        }
        "claude-code" => (workspace.path(".mcp.json"), json("mcpServers")),
        "codex" => (
            home.join(".codex/config.toml"),
            "# What I use.\nmodel   = \"x\" # keep\n\n[mcp_servers.other]\ncommand = 'npx'\n"
                .into(),
        ),
        "cursor" => (workspace.path(".cursor/mcp.json"), json("mcpServers")),
        "vscode" => (workspace.path(".vscode/mcp.json"), json("servers")),
        "gemini" => (workspace.path(".gemini/settings.json"), json("mcpServers")),
        "opencode" => (workspace.path("opencode.json"), json("mcp")),
        "windsurf" => (home.join(".codeium/windsurf/mcp_config.json"), json("mcpServers")),
        "cline" => {
            let directory = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings";
            (home.join(directory).join("cline_mcp_settings.json"), json("mcpServers"))
        }
        _ => (home.join(".config/zed/settings.json"), json("context_servers")),
    }
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The names in the directory of a file.
fn beside(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own = path.file_name().unwrap().to_string_lossy();
    let mut names: Vec<_> = names.filter(|name| name.starts_with(&*own)).collect();
    names.sort();
    names
}

#[test]
fn the_server_is_added_to_a_clients_file_and_the_rest_of_it_stays() {
    let mut report = String::new();
    for client in CLIENTS {
        let workspace = Workspace::new();
        let (path, mine) = file_of(&workspace, client);
        write(&path, &mine);
        let command = ["mcp-config", client, "--write"];
        report.push_str(&shown(&command, &workspace.run(&command)));
        let written = fs::read_to_string(&path).unwrap();
        report.push_str(&format!("--- the file\n{}\n", redact(&workspace.redact(&written))));
        // Each line that was there is there, in the same order.
        let mut lines = written.lines();
        assert!(mine.lines().all(|line| lines.any(|other| other == line)), "{written}");
        let name = path.file_name().unwrap().to_str().unwrap();
        let backup = path.with_file_name(format!("{name}.backup"));
        assert_eq!(fs::read_to_string(&backup).unwrap(), mine);
        // Once more changes nothing.
        let again = workspace.run(&[&command[..], &["--json"]].concat()).json();
        assert_eq!((&again["changed"], &again["backup"]), (&json!(false), &Value::Null));
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        // Over HTTP it is the same server, and the first copy stays what it is. The last
        // has no such servers.
        let http = [&command[..], &["--http", "http://127.0.0.1:8620/mcp", "--json"]].concat();
        let changed = workspace.run(&http);
        if client == "claude-desktop" {
            assert_eq!(changed.code, 2, "{}", changed.shown());
            continue;
        }
        assert_eq!(changed.json()["changed"], true, "{}", changed.shown());
        assert_eq!(fs::read_to_string(&backup).unwrap(), mine);
        assert_eq!(beside(&path).len(), 3, "{:?}", beside(&path));
        let over_http = fs::read_to_string(&path).unwrap();
        assert!(over_http.contains("8620/mcp") && !over_http.contains("\"serve\""), "{over_http}");
    }
    snapshot!("written", &report);
}

#[test]
fn a_file_that_does_not_exist_is_made() {
    for client in CLIENTS {
        let workspace = Workspace::new();
        let (path, _) = file_of(&workspace, client);
        workspace.run(&["mcp-config", client, "--write"]).success();
        assert!(fs::read_to_string(&path).unwrap().contains("kitbag"));
        assert_eq!(beside(&path).len(), 1, "{:?}", beside(&path));
    }
    let workspace = Workspace::new();
    workspace.run(&["mcp-config", "claude-code", "--write", "--user"]).success();
    assert!(!workspace.path(".mcp.json").exists());
    let own = fs::read(workspace.home().join(".claude.json")).unwrap();
    let own: Value = serde_json::from_slice(&own).unwrap();
    assert_eq!(own["mcpServers"]["kitbag"]["type"], "stdio");
}

#[test]
fn the_file_of_a_workspace_names_nothing_of_this_machine() {
    for client in ["claude-code", "cursor", "gemini", "opencode", "vscode"] {
        let workspace = Workspace::new();
        let (path, _) = file_of(&workspace, client);
        workspace.run(&["mcp-config", client, "--write"]).success();
        let written = fs::read_to_string(&path).unwrap();
        let home = workspace.outside().to_str().unwrap().to_owned();
        assert!(!written.contains(&home) && !written.contains("target"), "{written}");
        assert!(written.contains("\"kitbag\"") && written.contains("\"serve\""), "{written}");
        // The user's own file names the program and the workspace, if the client starts it
        // anywhere.
        workspace.run(&["mcp-config", client, "--write", "--user"]).success();
    }
    for client in NOT_WRITTEN {
        let workspace = Workspace::new();
        let run = workspace.run(&["mcp-config", client, "--write"]);
        assert_eq!(run.code, 2, "{}", run.shown());
        assert!(run.stderr.contains("leave `--write` out"), "{}", run.shown());
    }
}

#[test]
fn the_server_of_another_workspace_is_replaced_on_demand_only() {
    let mut report = String::new();
    // Their files are for all workspaces.
    for client in ["claude-desktop", "codex", "zed"] {
        let workspace = Workspace::new();
        let (path, _) = file_of(&workspace, client);
        workspace.run(&["mcp-config", client, "--write"]).success();
        let before = fs::read_to_string(&path).unwrap();
        fs::create_dir_all(workspace.path("notes/.kitbag")).unwrap();
        let mut check = |arguments: &[&str], code: i32| {
            let other = ["mcp-config", client, "--write", "--workspace", "notes"];
            let command = [&other[..], arguments].concat();
            let run = workspace.run(&command);
            assert_eq!(run.code, code, "{}", run.shown());
            report.push_str(&shown(&command, &run));
            fs::read_to_string(&path).unwrap()
        };
        assert_eq!(check(&[], 2), before);
        let both = check(&["--name", "notes"], 0);
        let value = |text: &str| match client {
            "codex" => text.matches("[mcp_servers.").count(),
            _ => text.matches("\"serve\"").count(),
        };
        assert_eq!((value(&before), value(&both)), (1, 2), "{both}");
        let replaced = check(&["--force"], 0);
        assert!(!replaced.contains("<workspace>\"") && replaced != both, "{replaced}");
        // Its own is brought up to date.
        assert_eq!(check(&[], 0), replaced);
    }
    // The file of a workspace holds what is for that.
    let workspace = Workspace::new();
    let other = r#"{"mcpServers":{"kitbag":{"command":"/old/kitbag","args":["serve","--workspace","/old"]}}}"#;
    workspace.file(".mcp.json", other);
    workspace.run(&["mcp-config", "claude-code", "--write"]).success();
    snapshot!("another workspace", &report);
}

#[test]
fn the_file_that_is_named_is_the_one_that_is_written() {
    let workspace = Workspace::new();
    fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
    for client in CLIENTS {
        let named = workspace.run(&["mcp-config", client]).stderr;
        let written = workspace.run(&["mcp-config", client, "--write"]).stdout;
        assert!(named.contains(&format!("`{}`", written.trim_end())), "{named}{written}");
    }
}

#[test]
fn a_link_to_a_clients_file_and_its_permissions_stay() {
    let workspace = Workspace::new();
    let real = workspace.outside().join("dotfiles/mcp.json");
    write(&real, "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    // In a workspace no command follows one.
    let link = workspace.home().join(".claude.json");
    symlink(&real, &link).unwrap();
    let write = ["mcp-config", "claude-code", "--write", "--user"];
    workspace.run(&write).success();
    assert_eq!(fs::read_link(&link).unwrap(), real);
    assert!(fs::read_to_string(&real).unwrap().contains("kitbag"));
    for path in [real.clone(), real.with_file_name("mcp.json.backup")] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }
    // One that leads nowhere is not replaced by a file.
    fs::remove_file(&real).unwrap();
    assert_eq!(workspace.run(&write).code, 2);
    assert!(link.is_symlink());
}

#[test]
fn a_file_that_cannot_be_changed_stays_as_it_is() {
    let workspace = Workspace::new();
    let mut report = String::new();
    let mut check = |content: &str, arguments: &[&str], code: i32| {
        let path = workspace.file(".mcp.json", content);
        let command = [&["mcp-config", "claude-code", "--write"], arguments].concat();
        let run = workspace.run(&command);
        assert_eq!(run.code, code, "{}", run.shown());
        if code != 0 {
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
            assert_eq!(beside(&path).len(), 1, "{:?}", beside(&path));
        }
        report.push_str(&shown(&command, &run));
    };
    check("{ \"mcpServers\": {", &[], 2);
    check("[]", &[], 2);
    check("{ \"mcpServers\": [] }", &[], 2);
    let other = r#"{ "mcpServers": { "kitbag": { "command": "npx", "args": ["kitbag"] } } }"#;
    check(other, &[], 2);
    check(other, &["--force"], 0);
    fs::write(workspace.path(".vscode"), "a file").unwrap();
    let run = workspace.run(&["mcp-config", "vscode", "--write"]);
    assert!(matches!(run.code, 2 | 8), "{}", run.shown());
    report.push_str(&shown(&["mcp-config", "vscode", "--write"], &run));
    snapshot!("not written", &report);
}

#[test]
fn the_program_is_named_by_the_path_that_it_was_called_by() {
    let workspace = Workspace::new();
    let bin = workspace.outside().join("bin");
    fs::create_dir(&bin).unwrap();
    let link = bin.join("kitbag");
    symlink(env!("CARGO_BIN_EXE_kitbag"), &link).unwrap();
    let named = |shell: &str| {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", shell]).current_dir(workspace.root()).env_clear();
        command.env("HOME", workspace.home()).env("PATH", &bin);
        let output = command.output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        PathBuf::from(value["mcpServers"]["kitbag"]["command"].as_str().unwrap())
    };
    assert_eq!(named("kitbag mcp-config claude-desktop"), link);
    assert_eq!(named(&format!("{} mcp-config claude-desktop", link.display())), link);
    let relative = named("../bin/kitbag mcp-config claude-desktop");
    assert_eq!(fs::read_link(&relative).unwrap(), Path::new(env!("CARGO_BIN_EXE_kitbag")));
    assert!(relative.is_absolute());
    // What a program calls itself is not believed.
    let fake = format!("exec -a /bin/sh {} mcp-config claude-desktop", link.display());
    let output = std::process::Command::new("/bin/bash")
        .args(["-c", &fake])
        .current_dir(workspace.root())
        .env("HOME", workspace.home())
        .output()
        .unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_kitbag")).canonicalize().unwrap();
    assert_eq!(value["mcpServers"]["kitbag"]["command"], own.to_str().unwrap());
}

#[test]
fn a_planted_link_leads_no_configuration_elsewhere() {
    let workspace = Workspace::new();
    let own = workspace.home().join("own.json");
    fs::write(&own, "{}").unwrap();
    symlink(&own, workspace.path(".mcp.json")).unwrap();
    symlink(workspace.home(), workspace.path(".vscode")).unwrap();
    for client in ["claude-code", "vscode"] {
        let run = workspace.run(&["mcp-config", client, "--write"]);
        assert_eq!(run.code, 2, "{client}: {}", run.shown());
        assert!(run.stderr.contains("is a symbolic link, and kitbag writes into"), "{run:?}");
    }
    assert_eq!(fs::read_to_string(&own).unwrap(), "{}");
    assert!(!workspace.home().join("mcp.json").exists());
    // The user's own file may be a link, such as one into a repository of theirs.
    symlink(&own, workspace.home().join(".claude.json")).unwrap();
    workspace.run(&["mcp-config", "claude-code", "--write", "--user"]).success();
    assert!(fs::read_to_string(&own).unwrap().contains("kitbag"));
}
