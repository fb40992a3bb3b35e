//! What counts of a workspace that is not trusted: that which can only narrow.

use std::fs;

use serde_json::Value;

use super::greedy;
use crate::support::{Workspace, probe};

/// What `describe --json` says of a tool.
fn described(workspace: &Workspace, tool: &str) -> Value {
    workspace.run(&["describe", tool, "--json"]).json()
}

#[test]
fn limits_are_lower_until_a_workspace_is_trusted() {
    let workspace = greedy();
    let text = workspace.run(&["describe", "read_file"]).success();
    for (limit, value) in
        [("Memory", "32 MiB"), ("Time", "10s"), ("Output size", "256 KiB"), ("Written", "64 MiB")]
    {
        let expected = format!("{limit} [the workspace is not trusted]\n  {value}\n");
        assert!(text.contains(&expected), "{limit}: {text}");
    }
    workspace.trust();
    let text = workspace.run(&["describe", "read_file"]).success();
    assert!(text.contains("Time [default]\n  30s\n"), "{text}");
}

#[test]
fn the_user_raises_those_limits_and_the_workspace_lowers_them_only() {
    let workspace = Workspace::with_toolsets(&["files"]).untrusted();
    let time = |tool: &str| {
        let text = workspace.run(&["describe", tool]).success();
        let (_, rest) = text.split_once("\nTime [").unwrap();
        rest.lines().take(2).collect::<Vec<_>>().join(" ")
    };
    let own = "<home>/.config/kitbag/config.toml";
    workspace.config("[limits]\ntime = \"20s\"\n");
    assert_eq!(time("read_file"), "the workspace is not trusted]   10s");
    workspace.config("[limits]\ntime = \"2s\"\n");
    assert_eq!(time("read_file"), ".kitbag/config.toml:2:8]   2s");
    workspace.own_config("[limits]\ntime = \"25s\"\n");
    assert_eq!(time("read_file"), ".kitbag/config.toml:2:8]   2s");
    workspace.config("[limits]\ntime = \"28s\"\n");
    assert_eq!(time("read_file"), format!("{own}:2:8]   25s"));
    workspace.own_config("[tools.read_file.limits]\ntime = \"3s\"\n");
    workspace.config("[tools.read_file.limits]\ntime = \"9s\"\n");
    assert_eq!(time("read_file"), format!("{own}:2:8]   3s"));
    workspace.config("[tools.read_file.limits]\ntime = \"1s\"\n");
    assert_eq!(time("read_file"), ".kitbag/config.toml:2:8]   1s");
    let flag = workspace.run(&["run", "read_file", "path=none", "--time", "1m"]);
    assert_eq!(flag.code, 1, "{}", flag.shown());
}

#[test]
fn switches_switch_off_and_never_on() {
    let workspace = Workspace::with_toolsets(&["files", "search"]).untrusted();
    workspace.config(
        "[toolsets]\nwrite = true\nmemory = true\nsearch = false\n\
         [tools.list_dir]\nenable = false\n[tools.make_dir]\nenable = true\n\
         [tools.remember]\nenable = true\n",
    );
    let names: Vec<_> = workspace.listed().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["file_info", "learn", "read_file", "read_media"]);
    workspace.trust();
    let names: Vec<_> = workspace.listed().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&"make_dir".into()) && !names.contains(&"list_dir".into()), "{names:?}");
}

#[test]
fn a_grant_that_narrows_counts_and_one_that_widens_does_not() {
    let workspace = Workspace::with_toolsets(&["files"]).untrusted();
    workspace.file("docs/rules.md", "Be kind.\n");
    workspace.file("docs/.env", "token\n");
    workspace.file("other.md", "Other.\n");
    std::os::unix::fs::symlink(workspace.home(), workspace.path("link")).unwrap();
    let directories = |tool: &str| -> Vec<String> {
        let json = described(&workspace, tool);
        let grants = json["grants"]["filesystem"]["value"].as_array().cloned().unwrap_or_default();
        grants
            .iter()
            .map(|grant| {
                let part = |key: &str| grant[key].as_str().unwrap_or_default().to_owned();
                format!("{} {} {}", part("mode"), part("host"), grant["include"])
            })
            .collect()
    };
    workspace.config(
        "[tools.read_file.grants]\nfilesystem = [\n\
         { host = \"docs\", guest = \"/docs\", mode = \"rw\", include = [\".env\"] },\n\
         { host = \"~\", guest = \"/home\" },\n{ host = \"link\", guest = \"/link\" },\n\
         { host = \"none\", guest = \"/none\" }]\n\
         [tools.list_dir.grants]\nfilesystem = []\n",
    );
    assert_eq!(directories("read_file"), ["ro <workspace>/docs null"]);
    assert_eq!(directories("list_dir"), [""; 0]);
    assert_eq!(directories("file_info"), ["ro <workspace> null"]);
    let read = |path: &str| workspace.run(&["run", "read_file", &format!("path={path}")]);
    // At the path that it has anyway.
    assert!(read("docs/rules.md").success().contains("Be kind."));
    assert_ne!(read("docs/.env").code, 0);
    assert_ne!(read("/docs/rules.md").code, 0);
    assert_ne!(read("/workspace/other.md").code, 0);
}

#[test]
fn an_untrusted_workspace_opens_no_secrets_by_their_directory() {
    let workspace = Workspace::with_toolsets(&["files", "search"]).untrusted();
    let secrets = [
        (".ssh", "id_rsa"),
        (".aws", "credentials"),
        (".docker", "config.json"),
        (".git", "config"),
        ("gh", "hosts.yml"),
        ("keys.pem", "inner"),
        ("deep/.aws", "credentials"),
    ];
    for (directory, file) in secrets {
        workspace.file(&format!("{directory}/{file}"), "the-secret\n");
        workspace.config(&format!(
            "[tools.read_file.grants]\nfilesystem = [{{ host = \"{directory}\", guest = \
             \"/workspace\" }}]\n[knowledge.notes]\nsubjects = \"{directory}\"\n\
             description = \"Notes.\"\n"
        ));
        let subject = file.split('.').next().unwrap();
        for arguments in [
            ["run", "read_file", &format!("path={file}")],
            ["run", "read_file", &format!("path={directory}/{file}")],
            ["run", "learn", &format!("topic=notes subjects={subject}")],
            ["run", "learn", &format!("topic=notes subjects={file}")],
        ] {
            let arguments: Vec<_> = arguments.iter().flat_map(|text| text.split(' ')).collect();
            let run = workspace.run(&arguments);
            assert!(!run.stdout.contains("the-secret"), "{arguments:?}: {}", run.shown());
        }
    }
}

#[test]
fn an_untrusted_workspace_does_not_rename_the_paths_of_a_rule() {
    let workspace = Workspace::with_toolsets(&["files"]).untrusted();
    workspace.own_config("[tools.read_file]\napprove = { when = { path = \"private/**\" } }\n");
    workspace.file("private/plan.md", "the plan\n");
    let read = |path: &str| workspace.run(&["run", "read_file", &format!("path={path}")]);
    assert!(read("private/plan.md").shown().contains("needs the approval of a person"));
    for guest in ["/workspace", "/s", "/workspace/public"] {
        workspace.config(&format!(
            "[tools.read_file.grants]\nfilesystem = [{{ host = \"private\", guest = \"{guest}\" }}]\n"
        ));
        let paths =
            ["plan.md", "private/plan.md", "/workspace/private/plan.md", "/workspace/plan.md"];
        for path in paths.into_iter().chain(["/s/plan.md", "public/plan.md"]) {
            let run = read(path);
            assert!(!run.stdout.contains("the plan"), "{guest} {path}: {}", run.shown());
        }
    }
}

#[test]
fn what_the_user_grants_a_tool_of_their_own_is_narrowed_and_never_widened() {
    let workspace = Workspace::new().untrusted();
    workspace.own_config(&probe(
        "[tools.probe.grants]\nhttp = [\"https://a.example/**\"]\nenv = [\"LANG\"]\n\
         [ceiling.grants]\nhttp = [\"https://b.example/**\"]\nenv = [\"CI\"]\n",
    ));
    let lines = || {
        let text = workspace.run(&["describe", "probe"]).success();
        let (_, rest) = text.split_once("\nGrants").unwrap();
        rest.lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let is_held = |what: &str| lines().iter().any(|line| line.contains(what));
    assert!(is_held("https://a.example/**") && is_held("env LANG"));
    // Within the ceiling is not enough without trust.
    workspace.config(
        "[tools.probe.grants]\nhttp = [\"https://a.example/x\", \"https://b.example/**\"]\n\
         env = [\"CI\"]\nconfig = { base = \"https://evil.example\" }\n",
    );
    assert!(is_held("https://a.example/x"));
    for beyond in ["b.example", "env", "evil.example"] {
        assert!(!is_held(&format!("GET, HEAD  https://{beyond}")), "{:?}", lines());
        assert!(
            !lines().iter().any(|line| line.trim_start().starts_with("env CI")),
            "{:?}",
            lines()
        );
    }
    assert!(!is_held("base"), "{:?}", lines());
    workspace.trust();
    assert!(is_held("https://b.example/**") && is_held("base"), "{:?}", lines());
}

#[test]
fn a_ceiling_limits_the_kinds_that_it_names_and_no_others() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nhttp = [\"https://a.example/**\"]\nenv = [\"LANG\"]\n",
    )
    .untrusted();
    workspace.own_config("[ceiling.grants]\nhttp = []\n");
    workspace.trust();
    let text = workspace.run(&["describe", "probe"]).success();
    assert!(text.contains("\n  env LANG"), "{text}");
    assert!(!text.contains("GET, HEAD  https://a.example"), "{text}");
}

#[test]
fn an_own_table_for_a_tool_of_a_workspace_that_is_not_trusted_is_no_mistake() {
    let workspace = greedy();
    let own = fs::read_to_string(workspace.own_config_file()).unwrap();
    let rules: String = ["greedy", "planted", "steal", "elsewhere"]
        .map(|tool| format!("[tools.{tool}]\napprove = \"always\"\nrate = \"100/s\"\n"))
        .concat();
    fs::write(workspace.own_config_file(), format!("{rules}{own}")).unwrap();
    for tool in ["greedy", "planted", "steal"] {
        super::assert_untrusted(&workspace.run(&["run", tool]));
    }
    let absent = |workspace: &Workspace| {
        let checked = workspace.run(&["check"]);
        let lines = checked.stderr.lines().filter(|line| line.contains("there is no tool"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let elsewhere = "warning: <home>/.config/kitbag/config.toml:10:8: there is no tool `elsewhere` \
                     here, and its table has no effect";
    assert_eq!(absent(&workspace), [elsewhere]);
    // Once it is trusted, what the user says of them holds.
    workspace.trust();
    workspace.keep_later();
    assert_eq!(absent(&workspace), [elsewhere]);
    for tool in ["greedy", "planted", "steal"] {
        let run = workspace.run(&["run", tool, "do=echo", "text=x"]);
        assert!(matches!(run.code, 2 | 10), "{}", run.shown());
    }
    let run = workspace.run(&["run", "planted", "do=echo", "text=x"]);
    assert!(run.stderr.contains("needs the approval of a person"), "{}", run.shown());
    assert!(!workspace.run(&["list"]).stderr.contains("elsewhere"));
    // A mistyped rule would do nothing: each command says what was meant.
    workspace.own_config("[tools.plantd]\napprove = \"always\"\n");
    for command in [&["check"][..], &["config", "--show"], &["list"], &["run", "learn"]] {
        let run = workspace.run(command);
        assert_eq!(
            run.stderr.matches("there is no tool `plantd` here").count(),
            1,
            "{}",
            run.shown()
        );
        assert!(run.stderr.contains("did you mean `planted`?"), "{}", run.shown());
    }
}
