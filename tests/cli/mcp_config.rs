//! `kitbag mcp-config`: the entry of the server in the configuration files of clients.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Workspace;

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

#[test]
fn the_named_file_is_written() {
    let workspace = Workspace::new();
    fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
    for client in CLIENTS {
        let named = workspace.run(&["mcp-config", client]).stderr;
        let written = workspace.run(&["mcp-config", client, "--write"]).stdout;
        assert!(named.contains(&format!("`{}`", written.trim_end())), "{named}{written}");
    }
}

#[test]
fn the_entry_names_the_path_of_the_program_as_called() {
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
    // The program name in the arguments is not trusted.
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
