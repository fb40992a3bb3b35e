//! `kitbag doctor` on working and broken installations, and `kitbag --version --verbose`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::{Run, Workspace};

/// The directory of the tested program.
fn bin() -> &'static str {
    Path::new(env!("CARGO_BIN_EXE_kitbag")).parent().unwrap().to_str().unwrap()
}

fn examined(workspace: &Workspace, env: &[(&str, &str)]) -> Value {
    workspace.run_with(&["doctor", "--json"], "", env).json()
}

/// Returns the status and the text of a check.
#[track_caller]
fn found<'a>(report: &'a Value, name: &str) -> (&'a str, &'a str) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == name);
    let check = check.unwrap_or_else(|| panic!("no `{name}` in {report:#}"));
    (check["status"].as_str().unwrap(), check["text"].as_str().unwrap())
}

#[track_caller]
fn check_found(report: &Value, name: &str, status: &str, text: &str) {
    let found = found(report, name);
    assert!(found.0 == status && found.1.contains(text), "{name}: {found:?}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_working_installation_has_no_errors() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let env = [("PATH", bin())];
    let Run { code, stdout, stderr } = workspace.run_with(&["doctor"], "", &env);
    assert_eq!((code, &*stderr), (0, ""), "{stdout}");
    assert!(stdout.starts_with(&format!("kitbag {}", env!("CARGO_PKG_VERSION"))), "{stdout}");
    assert!(stdout.contains("\n0 errors, "), "{stdout}");
    assert!(!stdout.contains("<home>") && stdout.contains("~/.config/kitbag"), "{stdout}");
    let report = examined(&workspace, &env);
    for (name, text) in [
        ("config directory", "yours, mode 7"),
        ("state directory", ""),
        ("cache directory", "yours, mode 700, writable"),
        ("configuration", "tool"),
        ("cache", "can be loaded"),
        ("workspace", "is trusted"),
        ("secrets", "none"),
        ("tool call", "`calculate` runs in its sandbox"),
        ("program", "kitbag in `PATH`"),
        ("clients", "none has an entry"),
        ("clock", "plausible"),
    ] {
        check_found(&report, name, "ok", text);
    }
    assert_eq!(report["build"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn broken_directories_are_errors() {
    let workspace = Workspace::new();
    let outside = workspace.outside();
    let open = outside.join("open");
    fs::create_dir(&open).unwrap();
    set_mode(&open, 0o777);
    let file = outside.join("file");
    fs::write(&file, "").unwrap();
    // A directory of another user, also if the tests run as root.
    let foreign = outside.join("foreign");
    fs::create_dir(&foreign).unwrap();
    let is_root = foreign.metadata().unwrap().uid() == 0;
    if is_root {
        chown(&foreign, Some(1), None).unwrap();
    }
    let foreign = if is_root { &*foreign } else { Path::new("/") };
    for (variable, name) in
        [("KITBAG_STATE_DIR", "state directory"), ("KITBAG_CACHE_DIR", "cache directory")]
    {
        let report = |path: &Path| examined(&workspace, &[(variable, path.to_str().unwrap())]);
        check_found(&report(&open), name, "error", "others can use it (mode 777); run `chmod go= ");
        check_found(&report(&file), name, "error", "it is not a directory; repair it, or set `");
        check_found(&report(foreign), name, "error", "it belongs to user ");
    }
    // No user can create a directory there.
    let env = [("KITBAG_STATE_DIR", "/proc/nowhere/state")];
    check_found(&examined(&workspace, &env), "state directory", "error", "it cannot be created: ");
    assert_eq!(workspace.run_with(&["doctor"], "", &env).code, 4);
    set_mode(workspace.own_config_file().parent().unwrap(), 0o777);
    let report = examined(&workspace, &[]);
    check_found(&report, "config directory", "error", "run `chmod go-w ");
}

#[test]
fn a_running_server_is_found_without_a_token_or_a_log_line() {
    let workspace = Workspace::new();
    let server = HttpServer::start(&workspace, &[]);
    let address = server.address.to_string();
    let check = || workspace.run(&["doctor", "--server", &address, "--json"]);
    let logged = || workspace.run(&["audit", "--all", "--json"]).shown();
    let before = logged();
    let run = check();
    assert_eq!(run.code, 0, "{}", run.shown());
    let report = run.json();
    check_found(&report, "server", "ok", &format!("it answers at {address}"));
    assert_eq!(report["checks"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(logged(), before);
    drop(server);
    let run = check();
    assert_eq!(run.code, 4, "{}", run.shown());
    check_found(&run.json(), "server", "error", "no server of kitbag answers at ");
}

#[test]
fn mistakes_in_the_configuration_are_not_quoted() {
    let workspace = Workspace::new();
    workspace.own_config("[limits]\ntime = \"hunter2-secret\"\n");
    let run = workspace.run(&["doctor"]);
    assert_eq!(run.code, 4, "{}", run.shown());
    assert!(run.stdout.contains("1 mistake; `kitbag check` shows them"), "{}", run.shown());
    assert!(!run.stdout.contains("hunter2"), "{}", run.shown());
}

#[test]
fn an_untrusted_workspace_is_a_warning() {
    let workspace = Workspace::with_probe("").untrusted();
    let run = workspace.run(&["doctor", "--json"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    let text = "is not trusted, so its tools are off; review it with `kitbag trust`";
    check_found(&run.json(), "workspace", "warning", text);
}

#[test]
fn a_cut_cache_entry_is_found_and_replaced() {
    let mut workspace = Workspace::with_probe("");
    workspace.use_own_cache();
    workspace.run(&["run", "probe", "do=echo", "text=x"]).success();
    let entry = workspace.cached();
    let content = fs::read(&entry).unwrap();
    fs::write(&entry, &content[..content.len() / 2]).unwrap();
    check_found(
        &examined(&workspace, &[]),
        "cache",
        "warning",
        "was damaged; it was compiled again",
    );
    check_found(&examined(&workspace, &[]), "cache", "ok", "can be loaded");
    // The entry of a tool that is no longer configured.
    workspace.config("");
    fs::write(&entry, &content[1..]).unwrap();
    let text = "is damaged: it is compiled again at its next use";
    check_found(&examined(&workspace, &[]), "cache", "warning", text);
    workspace.run(&["cache", "--clear"]).success();
    check_found(&examined(&workspace, &[]), "cache", "ok", "can be loaded");
}

#[test]
fn too_little_memory_for_a_server_is_a_warning() {
    let workspace = Workspace::new();
    workspace.own_config("[serve]\nmemory = \"1000000GiB\"\n");
    let text = "`kitbag serve` may use 1000000 GiB, but this machine or container has only ";
    check_found(&examined(&workspace, &[]), "server memory", "warning", text);
    workspace.own_config("[serve]\nmemory = \"384MiB\"\n");
    check_found(&examined(&workspace, &[]), "server memory", "ok", "may use 384 MiB");
}

#[test]
fn entries_of_clients_that_start_nothing_are_errors() {
    let workspace = Workspace::new();
    let entry = |command: &str| {
        json!({ "mcpServers": { "kitbag": {
            "command": command, "args": ["serve"], "env": { "KEY": "hunter2-secret" },
        } } })
    };
    workspace.file(".mcp.json", entry("/nowhere/kitbag").to_string());
    let home = workspace.home();
    fs::create_dir_all(home.join(".cursor")).unwrap();
    let own = entry(env!("CARGO_BIN_EXE_kitbag")).to_string();
    fs::write(home.join(".cursor/mcp.json"), format!("// Mine.\n{own}")).unwrap();
    fs::create_dir_all(home.join(".gemini")).unwrap();
    fs::write(home.join(".gemini/settings.json"), "{").unwrap();
    fs::create_dir_all(home.join(".codex")).unwrap();
    let codex = "[mcp_servers.tools]\ncommand = \"kitbag\"\nargs = [\"serve\"]\n";
    fs::write(home.join(".codex/config.toml"), codex).unwrap();
    let report = examined(&workspace, &[("PATH", bin())]);
    let text = "starts /nowhere/kitbag, which does not exist; run `kitbag mcp-config claude-code";
    check_found(&report, "client claude-code", "error", text);
    check_found(&report, "client cursor", "ok", "~/.cursor/mcp.json starts ");
    check_found(&report, "client gemini", "warning", "has a mistake");
    check_found(&report, "client codex", "ok", "starts kitbag");
    assert!(!report.to_string().contains("hunter2"), "{report}");
    // Without `PATH`, a name leads nowhere.
    let report = examined(&workspace, &[]);
    check_found(&report, "client codex", "error", "starts kitbag, which does not exist");
    check_found(&report, "program", "warning", "is not in your `PATH`");
    assert_eq!(workspace.run(&["doctor"]).code, 4);
}

#[test]
fn another_program_in_path_is_a_warning() {
    let workspace = Workspace::new();
    let other = workspace.outside().join("kitbag");
    fs::write(&other, "").unwrap();
    let path = format!("{}:{}", workspace.outside().display(), bin());
    let report = examined(&workspace, &[("PATH", &path)]);
    check_found(&report, "program", "warning", "not to this program");
}

#[test]
fn low_limits_of_the_process_are_warnings() {
    let workspace = Workspace::new();
    for (limit, name, text) in [
        ("-v 15728640", "memory", "the address space of a process is limited to 15 GiB"),
        ("-n 128", "open files", "a process may open only 128 files; run `ulimit -n 1024`"),
    ] {
        let run = workspace.run_limited(limit, &["doctor", "--json"]);
        check_found(&run.json(), name, "warning", text);
    }
}

#[test]
fn a_damaged_store_of_secrets_is_an_error() {
    let workspace = Workspace::new();
    workspace.own_config(
        "[secrets.key]\nto = [\"https://a.example/**\"]\n[secret_store]\nkind = \"key-file\"\n",
    );
    let state = workspace.home().join(".local/state/kitbag");
    fs::create_dir_all(&state).unwrap();
    set_mode(&state, 0o700);
    for file in
        [state.join("secrets.age"), workspace.own_config_file().with_file_name("secrets.key")]
    {
        fs::write(&file, "damaged").unwrap();
        set_mode(&file, 0o600);
    }
    let report = examined(&workspace, &[]);
    check_found(&report, "secrets", "error", "`kitbag secret list` shows the cause");
}

#[test]
fn the_verbose_version_describes_the_build() {
    let workspace = Workspace::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(workspace.run(&["--version"]).success(), format!("kitbag {version}\n"));
    let text = workspace.run(&["--version", "--verbose"]).success();
    let keys: Vec<_> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(
        keys,
        ["kitbag", "commit:", "target:", "profile:", "features:", "engine:", "tools:"]
    );
    let build = workspace.run(&["--version", "--json"]).json();
    assert_eq!(build["version"], version);
    assert!(build["engine"].as_str().unwrap().starts_with("wasmtime "), "{build}");
    assert!(build["tools"].as_array().unwrap().contains(&json!("python")), "{build}");
}
