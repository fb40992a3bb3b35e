//! `kitbag import` and `--undo` with generated files of clients: every byte is restored, and no
//! secret is printed or written to the configuration.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::support::Workspace;

/// The value of all secrets.
const SECRET: &str = "hunter2hunter2hunter2";

/// A client and its file: `~/` is in the home directory, other paths are in the workspace.
const FILES: [(&str, &str, &str); 11] = [
    ("claude-code", "~/.claude.json", "mcpServers"),
    ("claude-code", ".mcp.json", "mcpServers"),
    ("claude-desktop", "~/.config/Claude/claude_desktop_config.json", "mcpServers"),
    ("cursor", "~/.cursor/mcp.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", "~/.config/Code/User/mcp.json", "servers"),
    ("vscode", ".vscode/mcp.json", "servers"),
    ("gemini", "~/.gemini/settings.json", "mcpServers"),
    ("windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers"),
    ("servers.json", "servers.json", "mcpServers"),
    ("codex", "~/.codex/config.toml", "mcp_servers"),
];

/// Servers in JSON: some that are moved, and some that stay.
const JSON: [&str; 10] = [
    r#"{"command":"npx","args":["-y","server"]}"#,
    r#"{"command":"/bin/server","args":[1,true,""],"env":{"A":"b","A_TOKEN":"SECRET"}}"#,
    r#"{"type":"stdio","command":"server","env":{"B":"${B}","C_KEY":"${OTHER}"},"disabled":true}"#,
    r#"{"type":"http","url":"https://mcp.example.com/mcp","headers":{"Authorization":"Bearer SECRET"}}"#,
    r#"{"url":"https://mcp.example.com/x","headers":{"X-Api-Key":"SECRET","X-Org":"5"}}"#,
    r#"{"type":"sse","url":"https://mcp.example.com/sse"}"#,
    r#"{"command":"kitbag","args":["serve"]}"#,
    r#"{"args":[]}"#,
    r#"{"command":"server","args":["--token","SECRET"]}"#,
    r#""text""#,
];

/// The same in TOML, below the heading of a server.
const TOML: [&str; 5] = [
    "command = \"npx\"\nargs = [\"-y\", \"server\"] # quick\n",
    "command = 'server'\nenv = { A = \"b\", A_TOKEN = \"SECRET\" }\n",
    "url = \"https://mcp.example.com/mcp\"\nbearer_token_env_var = \"T\"\nenabled = false\n",
    "args = []\n",
    "command = \"server\"\nargs = [\"--token\", \"SECRET\"]\n",
];

/// The names of servers.
const NAMES: [&str; 6] = ["a", "My Server", "my-server", "kitbag", "ü", "a.b"];

fn json(table: &'static str) -> impl Strategy<Value = String> {
    let servers = prop::collection::vec((select(&NAMES[..]), select(&JSON[..])), 0..6);
    let style = (select(&["\n", "\r\n"][..]), any::<[bool; 5]>());
    (servers, style).prop_map(move |(servers, (end, [mark, comments, trailing, lines, last]))| {
        let (start, gap) = if lines { (end, "    ") } else { ("", "") };
        let remark = |text: &str| if comments { format!("/* {text} */ ") } else { String::new() };
        let servers: Vec<_> = servers
            .iter()
            .map(|(name, server)| format!("{start}{gap}{}\"{name}\": {server}", remark("a server")))
            .collect();
        let comma = if trailing && !servers.is_empty() { "," } else { "" };
        format!(
            "{}{}{{{start}\"other\": [1,  2], {start}\"{table}\":{{{}{comma}{start}}},{start}\
             \"last\": null{start}}}{}",
            if mark { "\u{feff}" } else { "" },
            remark("mine"),
            servers.join(","),
            if last { end } else { "" },
        )
    })
}

fn toml() -> impl Strategy<Value = String> {
    let servers = prop::collection::vec((select(&NAMES[..]), select(&TOML[..])), 0..6);
    (servers, any::<bool>()).prop_map(|(mut servers, last)| {
        servers.sort_by_key(|(name, _)| *name);
        servers.dedup_by_key(|(name, _)| *name);
        let tables = servers.iter().map(|(name, server)| {
            format!("# The next server.\n[mcp_servers.\"{name}\"]\n{server}\n")
        });
        let text = format!("model = \"x\" # mine\n\n{}[tui]\na = 1\n", tables.collect::<String>());
        if last { text } else { text.trim_end().to_owned() }
    })
}

#[test]
fn an_undone_import_restores_every_byte() {
    let file = (0..FILES.len()).prop_flat_map(|at| {
        let table = FILES[at].2;
        let text = if table == "mcp_servers" { toml().boxed() } else { json(table).boxed() };
        (Just(at), text)
    });
    let config = "# Mine.\n[limits]\ntime = \"20s\" # enough\n";
    let has_config = any::<[bool; 2]>();
    let mut runner =
        TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&(file, has_config), |((at, text), [has_own, has_shared])| {
        let workspace = Workspace::new();
        let (source, path, _) = FILES[at];
        let path = match path.strip_prefix("~/") {
            Some(below) => workspace.home().join(below),
            None => workspace.path(path),
        };
        fs::remove_dir_all(workspace.path(".kitbag")).unwrap();
        if has_shared {
            workspace.file(".kitbag/config.toml", config);
        }
        match has_own {
            true => workspace.own_config(config),
            false => workspace.remove_own_config(),
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace("SECRET", SECRET);
        fs::write(&path, &text).unwrap();
        let before = contents(&workspace);
        let import = workspace.run(&["import", source, "--yes"]);
        let shown = import.shown();
        prop_assert_eq!(import.code, 0, "{}{}", shown, text);
        prop_assert!(!shown.contains(SECRET), "{}", shown);
        let moved = contents(&workspace);
        let written = moved.iter().filter(|(path, _)| path.ends_with("kitbag/config.toml"));
        for (path, content) in written {
            prop_assert!(!String::from_utf8_lossy(content).contains(SECRET), "{:?}", path);
        }
        if moved == before {
            return Ok(());
        }
        let check = workspace.run(&["list"]);
        prop_assert_eq!(check.code, 0, "{}{}", check.shown(), text);
        let undo = workspace.run(&["import", source, "--undo"]);
        prop_assert_eq!(undo.code, 0, "{}", undo.shown());
        prop_assert_eq!(contents(&workspace), before, "{}", text);
        Ok(())
    });
    checked.unwrap();
}

/// The files of the workspace and of the user, except the state and the key of the store.
fn contents(workspace: &Workspace) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut left) = (Vec::new(), vec![workspace.root(), workspace.home()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_own = path.ends_with(".local") || path.ends_with("secrets.key");
            match path.is_dir() {
                _ if is_own => {}
                true => left.push(path),
                false => files.push((path.clone(), fs::read(path).unwrap())),
            }
        }
    }
    files.sort();
    files
}
