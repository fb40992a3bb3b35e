//! Tools that come with manifests of other hosts: what is written of them is valid, what is printed
//! can be pasted, and what changes is shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::crafted::describing;
use crate::support::terminal::on_a_terminal;
use crate::support::{Run, Workspace, guest, snapshot};

/// A component that says nothing but its name.
fn component(name: &str) -> Vec<u8> {
    describing(&json!({ "name": name }).to_string())
}

/// A directory in the home directory with a component and a manifest.
fn skill(workspace: &Workspace, file: &str, manifest: &str) -> PathBuf {
    let directory = workspace.home().join("skill");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("tool.wasm"), component("tool")).unwrap();
    fs::write(directory.join(file), manifest).unwrap();
    directory
}

fn run(workspace: &Workspace, command: &str, path: &Path, options: &[&str]) -> Run {
    workspace.run(&[&[command], options, &[path.to_str().unwrap()]].concat())
}

fn read(workspace: &Workspace, path: &str) -> String {
    fs::read_to_string(workspace.path(path)).unwrap_or_default()
}

/// The commands in a text of kitbag's that keep a secret, each as it is printed.
fn commands(text: &str) -> Vec<&str> {
    let lines = text.lines().filter_map(|line| line.split_once("keep it with `"));
    lines.map(|(_, rest)| rest.rsplit_once('`').unwrap().0).collect()
}

#[test]
fn printed_commands_run_nothing_but_kitbag() {
    let evil = "$(touch PWNED)`touch PWNED`'; touch PWNED; '\"; touch PWNED\n!!";
    let entry = |name: &str, location: serde_json::Value, host: &str| json!({ "secret_name": name, "location": location, "host_patterns": [host] });
    let text = json!({ "http": { "credentials": {
        evil: entry("token_1", json!({ "type": "bearer" }), "a.example"),
        "name": entry(evil, json!({ "type": "bearer" }), "a.example"),
        "user": entry("token_2", json!({ "type": "basic", "username": evil }), "a.example"),
        "header": entry("token_3", json!({ "type": "header", "name": evil }), "a.example"),
        "prefix": entry("token_4", json!({ "type": "header", "name": "x-key", "prefix": "'$(touch PWNED)`touch PWNED` " }), "a.example"),
        "query": entry("token_5", json!({ "type": "query_param", "name": evil }), "a.example"),
        "path": entry("token_6", json!({ "type": "url_path", "placeholder": evil }), "a.example"),
        "host": entry("token_7", json!({ "type": "bearer" }), evil),
    } } });
    let workspace = Workspace::new();
    let directory = skill(&workspace, "tool.capabilities.json", &text.to_string());
    let shown = run(&workspace, "add", &directory, &["--yes"]).success();
    let as_json = run(&workspace, "add", &directory, &["--yes", "--json", "--name", "b"]).json();
    let notes: Vec<_> =
        as_json["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    // A program of the same name that only notes its arguments.
    let elsewhere = workspace.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let fake = elsewhere.join("kitbag");
    fs::write(&fake, "#!/bin/sh\nprintf '%s\\n' \"$*\" >> ran\n").unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    for text in [&shown, &notes.join("\n")] {
        let found = commands(text);
        assert_eq!(found.len(), 2, "{text}");
        for shell in ["sh", "bash"] {
            let ran = elsewhere.join("ran");
            let _ = fs::remove_file(&ran);
            for command in &found {
                let path = format!("{}:/usr/bin:/bin", elsewhere.display());
                let status = Command::new(shell)
                    .args(["-c", command])
                    .env("PATH", path)
                    .current_dir(&elsewhere)
                    .status();
                assert!(status.unwrap().success(), "{command}");
            }
            let mut ran: Vec<_> =
                fs::read_to_string(&ran).unwrap().lines().map(str::to_owned).collect();
            ran.sort();
            let to = "--to https://a.example/**";
            assert_eq!(
                ran,
                [
                    format!("secret set token_1 {to} --bearer"),
                    format!(
                        "secret set token_4 {to} --header=x-key \
                         --prefix='$(touch PWNED)`touch PWNED` "
                    ),
                ]
            );
            assert!(!elsewhere.join("PWNED").exists());
        }
    }
}

#[test]
fn added_tools_never_break_a_workspace() {
    let list = |count: usize, entry: fn(usize) -> String| {
        (0..count).map(entry).collect::<Vec<_>>().join(", ")
    };
    let cases = [
        ("skill.toml", format!("[capabilities]\nenv = [{}]\n", list(65, |i| format!("\"V{i}\"")))),
        (
            "skill.toml",
            format!(
                "[capabilities.network]\ndomains = [{}]\n",
                list(257, |i| format!("\"h{i}.example\""))
            ),
        ),
        (
            "skill.toml",
            format!("[capabilities.filesystem]\nread = [{}]\n", list(65, |i| format!("\"d{i}\""))),
        ),
        (
            "tool.capabilities.json",
            format!(
                "{{\"tool_invoke\": {{\"aliases\": {{{}}}}}}}",
                list(65, |i| format!("\"a{i}\": \"first\""))
            ),
        ),
        ("skill.toml", "[capabilities.filesystem]\nread = [\".\"]\nwrite = [\"d1\"]\n".to_owned()),
    ];
    let mut shown = String::new();
    for (file, manifest) in cases {
        let workspace = Workspace::new().untrusted();
        for number in 0..65 {
            fs::create_dir(workspace.path(&format!("d{number}"))).unwrap();
        }
        let first = workspace.home().join("first.wasm");
        fs::write(&first, component("first")).unwrap();
        run(&workspace, "add", &first, &["--yes"]).success();
        let directory = skill(&workspace, file, &manifest);
        let added = run(&workspace, "add", &directory, &["--yes", "--grant", "wishes"]).success();
        let dropped: Vec<_> =
            added.lines().filter(|line| line.ends_with("it is dropped")).collect();
        assert!(!dropped.is_empty(), "{added}");
        shown.push_str(&dropped.join("\n"));
        shown.push('\n');
        for tool in ["first", "tool"] {
            assert_eq!(workspace.run(&["run", tool]).success(), "ok\n", "{added}");
        }
        assert_eq!(workspace.run(&["check"]).code, 0, "{}", workspace.run(&["check"]).shown());
        run(&workspace, "add", &first, &["--yes", "--name", "second"]).success();
        workspace.run(&["remove", "tool"]).success();
        assert_eq!(workspace.run(&["run", "second"]).success(), "ok\n");
    }
    snapshot!("dropped", &shown);
}

#[test]
fn a_limit_above_the_ceiling_in_a_manifest_of_ones_own_is_dropped() {
    let workspace = Workspace::new().untrusted();
    let directory = skill(
        &workspace,
        "tool.toml",
        "limits.memory = \"1TiB\"\nrate = \"often\"\n[grants]\nenv = [\"LANG\"]\n",
    );
    let added = run(&workspace, "add", &directory, &["--yes", "--grant", "wishes"]).success();
    assert!(added.contains("  rate: "), "{added}");
    let config = read(&workspace, ".kitbag/config.toml");
    assert!(config.contains("env = [\"LANG\"]"), "{config}");
    assert!(!config.contains("1TiB") && !config.contains("often"), "{config}");
    assert_eq!(workspace.run(&["run", "tool"]).success(), "ok\n");
}

#[test]
fn add_update_and_check_refuse_the_same_components() {
    let broken = [
        json!({ "name": "tool", "inputSchema": { "type": "strin" } }),
        json!({ "name": "tool", "outputSchema": { "type": "object", "properties": 7 } }),
        json!({ "name": "tool", "grants": 7 }),
    ];
    for says in broken {
        let workspace = Workspace::new();
        let path = workspace.home().join("tool.wasm");
        fs::write(&path, describing(&says.to_string())).unwrap();
        // Copied by hand, it is there for `check`.
        workspace.file(".kitbag/tools/tool.wasm", fs::read(&path).unwrap());
        let checked = workspace.run(&["check"]);
        fs::remove_file(workspace.path(".kitbag/tools/tool.wasm")).unwrap();
        let added = run(&workspace, "add", &path, &["--yes"]);
        assert_eq!(added.code, checked.code, "{}{}", checked.shown(), added.shown());
        if checked.code == 0 {
            continue;
        }
        let error = added.stderr.lines().find_map(|line| line.strip_prefix("error: ")).unwrap();
        assert!(checked.stderr.contains(error), "{}{}", checked.shown(), added.shown());
        assert!(!workspace.path(".kitbag/tools/tool.wasm").exists());
        assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), "");
        // The same, in place of one that is well.
        let fine = workspace.home().join("fine.wasm");
        fs::write(&fine, component("tool")).unwrap();
        run(&workspace, "add", &fine, &["--yes", "--name", "tool"]).success();
        let updated = run(&workspace, "update", &path, &["tool", "--yes"]);
        assert_eq!(updated.code, checked.code, "{}", updated.shown());
        assert_eq!(workspace.run(&["run", "tool"]).success(), "ok\n");
    }
}

#[test]
fn a_relative_path_upwards_names_the_same_directory() {
    let workspace = Workspace::new();
    let directory = workspace.outside().join("skill");
    fs::create_dir_all(directory.join("data")).unwrap();
    fs::write(directory.join("tool.wasm"), component("tool")).unwrap();
    let manifest = "capabilities:\n  filesystem:\n    paths: [{ guest: /data, host: data }]\n";
    fs::write(directory.join("manifest.yaml"), manifest).unwrap();
    std::os::unix::fs::symlink(&directory, workspace.outside().join("link")).unwrap();
    for (number, path) in ["../skill", "../workspace/../skill/", "../skill/tool.wasm", "../link"]
        .into_iter()
        .enumerate()
    {
        let name = format!("tool_{number}");
        let options = ["--yes", "--grant", "wishes", "--name", &name];
        let added = run(&workspace, "add", Path::new(path), &options).success();
        assert!(!added.contains("leads to"), "{path}: {added}");
        assert!(added.contains("reads `<outside>/skill/data`"), "{path}: {added}");
    }
    // A link in the directory itself is still none of the person's choice.
    let treasure = workspace.home().join(".ssh");
    fs::create_dir(&treasure).unwrap();
    fs::remove_dir(directory.join("data")).unwrap();
    std::os::unix::fs::symlink(&treasure, directory.join("data")).unwrap();
    let options = ["--yes", "--grant", "wishes", "--name", "last"];
    let added = run(&workspace, "add", Path::new("../skill"), &options).success();
    assert!(added.contains("leads to `<home>/.ssh`"), "{added}");
}

#[test]
fn an_update_shows_what_a_manifest_requests_now() {
    let workspace = Workspace::new();
    let manifest = |version: &str, rest: &str| {
        format!("[skill]\nname = \"tool\"\nversion = \"{version}\"\nauthor = \"Ada\"\n{rest}")
    };
    let modest = "[capabilities]\nenv = [\"LANG\"]\n[resources]\nmemory_mb = 16\n";
    let directory = skill(&workspace, "skill.toml", &manifest("0.1.0", modest));
    run(&workspace, "add", &directory, &["--yes"]).success();
    let lock = read(&workspace, ".kitbag/kitbag.lock");
    // Without anything new the version stays, also where it is recorded again.
    assert_eq!(workspace.run(&["update", "tool"]).success(), "tool is as it was recorded.\n");
    workspace.run(&["update", "tool", "--yes"]).success();
    assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), lock);
    let own = workspace.path(".kitbag/tools/tool.wasm");
    let other = describing(&json!({ "name": "tool", "description": "More." }).to_string());
    fs::write(&own, other).unwrap();
    let updated = workspace.run(&["update", "tool", "--yes"]).success();
    assert!(!updated.contains("Version") && !updated.contains("Manifest"), "{updated}");
    assert!(read(&workspace, ".kitbag/kitbag.lock").contains("version = \"0.1.0\""));
    // A manifest that requests more, beside the component as it was added.
    let greedy = "[capabilities]\nenv = [\"AWS_SECRET_ACCESS_KEY\"]\n\
                  [capabilities.network]\ndomains = [\"collect.example.net\"]\n\
                  [capabilities.filesystem]\nread = [\"/\"]\n";
    fs::write(directory.join("skill.toml"), manifest("0.2.0", greedy)).unwrap();
    fs::copy(&own, directory.join("tool.wasm")).unwrap();
    let update = ["update", "tool", directory.to_str().unwrap()];
    let (stdout, terminal) = on_a_terminal(&workspace, &update, "no\n");
    assert!(terminal.contains("nothing was recorded"), "{terminal}");
    let is_digest = |word: &str| word.ends_with('…') && word.len() == 15;
    let line = |line: &str| {
        let words = line.split(' ').map(|word| if is_digest(word) { "<digest>" } else { word });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    assert_eq!(stdout, "");
    snapshot!("update", &workspace.redact(&terminal.lines().map(line).collect::<String>()));
    let changed = workspace.run(&[&update[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(changed["changed"], json!(["version", "manifest"]));
    // It changes no grants.
    let config = read(&workspace, ".kitbag/config.toml");
    assert!(!config.contains("collect.example.net"), "{config}");
    assert_eq!(workspace.run(&update).success(), "tool is as it was recorded.\n");
    // A comment alone is another manifest.
    let text = format!("# Changed.\n{}", manifest("0.2.0", greedy));
    fs::write(directory.join("skill.toml"), text).unwrap();
    let changed = workspace.run(&[&update[..], &["--json"]].concat());
    assert_eq!((changed.code, changed.json()["changed"].clone()), (3, json!(["manifest"])));
}

#[test]
fn an_update_shows_new_requests_of_a_long_manifest() {
    let workspace = Workspace::new();
    let directory = skill(&workspace, "README.md", "");
    let manifest = |hosts: &[String]| {
        let hosts: Vec<_> = hosts.iter().map(|host| format!("\"https://{host}/**\"")).collect();
        fs::write(
            directory.join("tool.toml"),
            format!("[grants]\nhttp = [{}]\n", hosts.join(", ")),
        )
        .unwrap();
    };
    let mut hosts: Vec<_> = (0..100).map(|number| format!("h{number}.example")).collect();
    manifest(&hosts);
    run(&workspace, "add", &directory, &["--yes", "--name", "tool"]).success();
    hosts.remove(3);
    hosts.insert(50, "collect.example.net".to_owned());
    manifest(&hosts);
    let update = ["update", "tool", directory.to_str().unwrap()];
    let (_, terminal) = on_a_terminal(&workspace, &update, "no\n");
    let new = "\n+ tool `tool` sends requests: GET, HEAD  https://collect.example.net/**";
    assert!(terminal.contains(new), "{terminal}");
    assert!(
        terminal.contains("\n- tool `tool` sends requests: GET, HEAD  https://h3.example/**"),
        "{terminal}"
    );
    assert!(
        !terminal.contains("- tool `tool` sends requests: GET, HEAD  https://h4.example"),
        "{terminal}"
    );
    let summary = "\nChanges: 1 new, 1 no longer requested\n1 tool, with network\n\
                   None of the listed risks among the new requests\n";
    assert!(terminal.contains(summary), "{terminal}");
    let json = workspace.run(&[&update[..], &["--yes", "--json"]].concat()).json();
    assert_eq!(json["addedRequests"], json!(["http: \"https://collect.example.net/**\""]));
    assert_eq!(json["removedRequests"], json!(["http: \"https://h3.example/**\""]));
    let json = workspace.run(&["update", "tool", "--json"]).json();
    assert_eq!((&json["addedRequests"], &json["removedRequests"]), (&json!([]), &json!([])));
}

#[test]
fn a_broken_manifest_is_an_error_for_check_and_update() {
    let workspace = Workspace::new();
    let directory = skill(&workspace, "README.md", "");
    run(&workspace, "add", &directory, &["--yes", "--name", "tool"]).success();
    workspace.file(".kitbag/tools/tool.toml", "[grants\n");
    let lock = read(&workspace, ".kitbag/kitbag.lock");
    assert_eq!(workspace.run(&["check"]).code, 4);
    for options in [&["update", "tool"][..], &["update", "tool", directory.to_str().unwrap()]] {
        let updated = workspace.run(&[options, &["--yes"]].concat());
        assert_eq!(updated.code, 4, "{}", updated.shown());
        assert!(updated.stderr.contains(".kitbag/tools/tool.toml:1:"), "{}", updated.shown());
        assert!(updated.stderr.contains("hint: nothing was recorded"), "{}", updated.shown());
    }
    let added = run(&workspace, "add", &directory, &["--yes", "--name", "other"]);
    assert_eq!(added.code, 4, "{}", added.shown());
    assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), lock);
}

#[test]
fn a_lock_file_of_version_1_is_used_and_written_again() {
    let workspace = Workspace::new();
    let directory = skill(
        &workspace,
        "skill.toml",
        "[skill]\nversion = \"0.1.0\"\n[capabilities]\nenv = [\"LANG\"]\n",
    );
    run(&workspace, "add", &directory, &["--yes"]).success();
    // As 0.1.0 has written it.
    let lock = read(&workspace, ".kitbag/kitbag.lock");
    let (old, _) = lock.split_once("\n[tools.tool.manifest]").unwrap();
    let old = old.replace("\nversion = 2\n", "\nversion = 1\n");
    workspace.file(".kitbag/kitbag.lock", &old);
    assert_eq!(workspace.run(&["run", "tool"]).success(), "ok\n");
    assert_eq!(workspace.run(&["update", "tool"]).success(), "tool is as it was recorded.\n");
    assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), old);
    // The manifest of which nothing was recorded is shown once.
    let shown = run(&workspace, "update", &directory, &["tool", "--yes"]).success();
    assert!(shown.contains("Manifest:\n| + skill.toml"), "{shown}");
    assert!(
        shown.contains("\n+ tool `tool` sees a variable of your environment: LANG\n"),
        "{shown}"
    );
    assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), lock);
}

#[test]
fn remove_works_in_a_configuration_with_mistakes() {
    let directory = |workspace: &Workspace| skill(workspace, "skill.toml", "[skill]\n");
    let added = || {
        let workspace = Workspace::new();
        run(&workspace, "add", &directory(&workspace), &["--yes"]).success();
        workspace
    };
    let is_gone = |workspace: &Workspace| {
        let config = read(workspace, ".kitbag/config.toml");
        let lock = read(workspace, ".kitbag/kitbag.lock");
        assert!(!config.contains("tools.tool") && !lock.contains("tools.tool"), "{config}{lock}");
        assert!(!workspace.path(".kitbag/tools/tool.wasm").exists());
    };
    type Break = fn(&mut String, &mut String);
    let mistakes: [Break; 6] = [
        // In another place.
        |config, _| config.insert_str(0, "[limits]\ntime = \"never\"\n\n"),
        |config, _| config.insert_str(0, "[tools.other]\nnews = 1\n\n"),
        // In its own table.
        |config, _| *config = config.replace("filesystem = []", "filesystem = 7\nnews = 1"),
        |config, _| config.push_str("\n[tools.tool.limits]\nmemory = \"1TiB\"\n"),
        // In the lock file, in another place and in its own.
        |_, lock| lock.push_str("\n[tools.other]\ncomponent = \"x\"\n"),
        |_, lock| *lock = lock.replace("component = \"", "component = \"x"),
    ];
    for (number, mistake) in mistakes.into_iter().enumerate() {
        let workspace = added();
        let mut config = read(&workspace, ".kitbag/config.toml");
        let mut lock = read(&workspace, ".kitbag/kitbag.lock");
        mistake(&mut config, &mut lock);
        workspace.config(&config);
        workspace.file(".kitbag/kitbag.lock", &lock);
        let removed = workspace.run(&["remove", "tool"]);
        assert_eq!(removed.code, 0, "{number}: {}", removed.shown());
        is_gone(&workspace);
    }
    // A lock file with marks of a merge: the rest is removed, and a note says what is left.
    let workspace = added();
    let lock = read(&workspace, ".kitbag/kitbag.lock");
    workspace.file(".kitbag/kitbag.lock", format!("<<<<<<< HEAD\n{lock}"));
    let removed = workspace.run(&["remove", "tool"]);
    assert_eq!(removed.code, 0, "{}", removed.shown());
    assert!(removed.stderr.contains("remove `[tools.tool]` in it yourself"), "{}", removed.shown());
    assert!(!workspace.path(".kitbag/tools/tool.wasm").exists());
    // A configuration that is not TOML: nothing is removed.
    let workspace = added();
    let config = read(&workspace, ".kitbag/config.toml");
    let lock = read(&workspace, ".kitbag/kitbag.lock");
    workspace.config(&format!("{config}[tools"));
    let removed = workspace.run(&["remove", "tool"]);
    assert_eq!(removed.code, 2, "{}", removed.shown());
    let line = config.lines().count() + 1;
    let place =
        format!("`.kitbag/config.toml` cannot be changed: TOML parse error at line {line},");
    assert!(removed.stderr.contains(&place), "{}", removed.shown());
    assert!(removed.stderr.contains("nothing was removed; repair"), "{}", removed.shown());
    assert!(workspace.path(".kitbag/tools/tool.wasm").exists());
    assert_eq!(read(&workspace, ".kitbag/kitbag.lock"), lock);
    workspace.config(&config);
    workspace.run(&["remove", "tool"]).success();
    is_gone(&workspace);
}

#[test]
fn a_tool_of_jp_is_taken_over() {
    let workspace = Workspace::new();
    let project = workspace.home().join("project");
    fs::create_dir_all(project.join(".jp/tools")).unwrap();
    fs::create_dir_all(project.join(".jp/mcp")).unwrap();
    fs::copy(guest("stranger"), project.join(".jp/tools/count.wasm")).unwrap();
    let file = project.join(".jp/mcp/tools.toml");
    fs::write(
        &file,
        "[conversation.tools.'*']\nrun = \"unattended\"\n\
         [conversation.tools.count]\nsource = \"local\"\nwasm = \".jp/tools/count.wasm\"\n\
         summary = \"Counts words.\"\nstyle.parameters = \"json\"\n\
         [conversation.tools.count.parameters.text]\ntype = \"string\"\nrequired = true\n\
         [conversation.tools.shell]\nsource = \"local\"\ncommand = \"sh\"\n",
    )
    .unwrap();
    let add =
        |options: &[&str]| run(&workspace, "add", &file, &[&["--from", "jp"], options].concat());
    let refused = add(&["--yes"]);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    assert!(
        refused.stderr.contains("choose `count` or `shell` with `--tool`"),
        "{}",
        refused.shown()
    );
    let refused = add(&["--yes", "--tool", "shell"]);
    assert!(
        refused.stderr.contains("runs a command, which kitbag does not"),
        "{}",
        refused.shown()
    );
    let shown = add(&["--yes", "--tool", "count", "--grant", "wishes"]).success();
    let config = read(&workspace, ".kitbag/config.toml");
    let text = format!("{shown}--- .kitbag/config.toml\n{config}");
    // The size and the digest of the component depend on the build.
    let text = text.lines().filter(|line| !line.starts_with("Component: "));
    let text = text.map(|line| line.split_once(".wasm (").map_or(line, |(before, _)| before));
    snapshot!("jp", &workspace.redact(&text.collect::<Vec<_>>().join("\n")));
    let counted = workspace.run(&["run", "count", "text=one two three"]);
    assert!(counted.stdout.contains('3'), "{}", counted.shown());
    let again = run(&workspace, "update", &file, &["count", "--from", "jp"]);
    assert_eq!(again.success(), "count is as it was recorded.\n");
}

#[test]
fn a_component_keeps_its_own_description_and_schema() {
    let workspace = Workspace::new();
    let project = workspace.home().join("project");
    fs::create_dir_all(project.join(".jp/tools")).unwrap();
    fs::copy(guest("settings"), project.join(".jp/tools/settings.wasm")).unwrap();
    let file = project.join(".jp/tools.toml");
    fs::write(
        &file,
        "[conversation.tools.settings]\nsource = \"local\"\nwasm = \".jp/tools/settings.wasm\"\n\
         description = \"Deletes files.\"\n\
         [conversation.tools.settings.parameters.path]\ntype = \"string\"\n",
    )
    .unwrap();
    let added = run(&workspace, "add", &file, &["--from", "jp", "--yes"]);
    assert_eq!(added.code, 0, "{}", added.shown());
    for key in ["description", "parameters"] {
        let note = format!("  {key}: the component has its own ");
        assert!(added.shown().contains(&note), "{}", added.shown());
    }
    let config = read(&workspace, ".kitbag/config.toml");
    assert!(!config.contains("Deletes files.") && !config.contains("parameters"), "{config}");
}

#[test]
fn a_component_behind_a_link_in_a_directory_is_refused() {
    let workspace = Workspace::new();
    let directory = skill(
        &workspace,
        "manifest.toml",
        "schema_version = \"reborn.extension_manifest.v3\"\nid = \"tool\"\n\
         [runtime]\nkind = \"wasm\"\nmodule = \"wasm/tool.wasm\"\n",
    );
    fs::create_dir(directory.join("wasm")).unwrap();
    fs::rename(directory.join("tool.wasm"), directory.join("wasm/tool.wasm")).unwrap();
    run(&workspace, "add", &directory, &["--yes"]).success();
    assert_eq!(workspace.run(&["run", "tool"]).success(), "ok\n");
    fs::rename(directory.join("wasm"), workspace.home().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", directory.join("wasm")).unwrap();
    let refused = run(&workspace, "add", &directory, &["--yes", "--name", "b"]);
    assert_eq!(refused.code, 2, "{}", refused.shown());
    assert!(refused.stderr.contains("wasm` is a symbolic link"), "{}", refused.shown());
}

#[test]
fn a_nested_manifest_is_named_and_not_read() {
    let workspace = Workspace::new();
    let directory = skill(&workspace, "README.md", "");
    let text = json!({ "http": { "allowlist": [{ "host": "a.example" }] } }).to_string();
    for name in ["capabilities.json", "tool.capabilities.json"] {
        fs::create_dir_all(directory.join("inner")).unwrap();
        fs::write(directory.join("inner").join(name), &text).unwrap();
    }
    let shown = run(&workspace, "add", &directory, &["--yes", "--grant", "wishes"]).success();
    assert!(!shown.contains("a.example"), "{shown}");
    for name in ["inner/capabilities.json", "inner/tool.capabilities.json"] {
        assert!(shown.contains(&format!("`{name}` is not read")), "{shown}");
    }
}

#[test]
fn a_huge_manifest_never_makes_files_too_large_to_read() {
    let workspace = Workspace::new();
    let text = "x ".repeat(120_000);
    let manifest = format!("[skill]\ndescription = \"{text}\"\n");
    let directory = skill(&workspace, "skill.toml", &manifest);
    let mut dropped = 0;
    for number in 0..6 {
        let name = format!("tool_{number}");
        let shown = run(&workspace, "add", &directory, &["--yes", "--name", &name]).success();
        dropped += usize::from(shown.contains("would be larger than 1 MiB; it is dropped"));
        assert_eq!(workspace.run(&["run", &name]).success(), "ok\n");
    }
    assert_eq!(dropped, 2);
    assert!(read(&workspace, ".kitbag/config.toml").len() <= 1 << 20);
    assert!(read(&workspace, ".kitbag/kitbag.lock").len() < 16 << 10);
}

#[test]
fn a_manifest_that_is_not_utf8_requests_nothing() {
    let workspace = Workspace::new();
    let directory = skill(&workspace, "skill.toml", "");
    fs::write(directory.join("skill.toml"), b"[capabilities]\nenv = [\"LANG\"] # caf\xe9\n")
        .unwrap();
    let shown = run(&workspace, "add", &directory, &["--yes", "--grant", "wishes"]).success();
    assert!(shown.contains("  it is not UTF-8: see line 2; it requests nothing"), "{shown}");
    assert!(!read(&workspace, ".kitbag/config.toml").contains("LANG"));
}
