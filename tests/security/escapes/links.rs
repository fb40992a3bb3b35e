//! Links between a configured path and its target: no tool can replace a link or a directory on the
//! way, or create the missing target of a link.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use crate::support::mcp::Client;
use crate::support::{Workspace, guest, probe};

/// A workspace beside its home, in a directory that the tool `probe` may write as `/all`.
fn workspace() -> Workspace {
    Workspace::with_probe(GRANT)
}

const GRANT: &str = "grants.filesystem = [{ host = \"..\", guest = \"/all\", mode = \"rw\" }]\n";

/// A way from a configured path to its target, and attempts of a tool to redirect it.
struct Case {
    about: &'static str,
    /// Existing links, each with its target. These paths and the following ones are relative to the
    /// directory that the tool may write.
    links: &'static [(&'static str, &'static str)],
    /// Existing directories.
    directories: &'static [&'static str],
    /// Files that a person has moved, each with its new path.
    moved: &'static [(&'static str, &'static str)],
    /// Environment variables that name a path.
    variables: &'static [(&'static str, &'static str)],
    /// The calls of the tool, in order: `do`, a path, and a text.
    attempts: &'static [[&'static str; 3]],
}

const CONFIG: &str = "[limits]\ntime = \"7s\"\n";
const MANIFEST: &str = "description = \"planted\"\n";
const TOOLS: &str = "workspace/.kitbag/tools";

#[rustfmt::skip]
const CASES: [Case; 19] = [
    Case {
        about: "KITBAG_CONFIG, a chain",
        links: &[("workspace/l1", "real/c.toml"), ("workspace/l0.toml", "l1")],
        directories: &["workspace/real"],
        moved: &[("own.toml", "workspace/real/c.toml")],
        variables: &[("KITBAG_CONFIG", "workspace/l0.toml")],
        attempts: &[["remove", "workspace/l1", ""], ["write", "workspace/l1", CONFIG]],
    },
    Case {
        about: "KITBAG_CONFIG, through a directory",
        links: &[("workspace/current", "v1"), ("own-link.toml", "workspace/current/c.toml")],
        directories: &["workspace/v1"],
        moved: &[("own.toml", "workspace/v1/c.toml")],
        variables: &[("KITBAG_CONFIG", "own-link.toml")],
        attempts: &[
            ["remove", "workspace/current", ""],
            ["mkdir", "workspace/current", ""],
            ["write", "workspace/current/c.toml", CONFIG],
        ],
    },
    Case {
        about: "the workspace's configuration, a chain",
        links: &[
            ("workspace/l1", "real/c.toml"),
            ("workspace/.kitbag/config.toml", "../l1"),
        ],
        directories: &["workspace/real"],
        moved: &[("workspace/.kitbag/config.toml", "workspace/real/c.toml")],
        variables: &[],
        attempts: &[["remove", "workspace/l1", ""], ["write", "workspace/l1", CONFIG]],
    },
    Case {
        about: "the workspace's configuration, through a directory",
        links: &[
            ("workspace/conf/current", "v1"),
            ("workspace/.kitbag/config.toml", "../conf/current/kitbag.toml"),
        ],
        directories: &["workspace/conf/v1"],
        moved: &[("workspace/.kitbag/config.toml", "workspace/conf/v1/kitbag.toml")],
        variables: &[],
        attempts: &[
            ["remove", "workspace/conf/current", ""],
            ["mkdir", "workspace/conf/current", ""],
            ["write", "workspace/conf/current/kitbag.toml", CONFIG],
        ],
    },
    Case {
        about: "`.kitbag` itself",
        links: &[("workspace/conf/current", "v1"), ("workspace/.kitbag", "conf/current/kb")],
        directories: &["workspace/conf/v1"],
        moved: &[("workspace/.kitbag", "workspace/conf/v1/kb")],
        variables: &[],
        attempts: &[
            ["remove", "workspace/conf/current", ""],
            ["mkdir", "workspace/conf/current", ""],
            ["mkdir", "workspace/conf/current/kb", ""],
            ["write", "workspace/conf/current/kb/config.toml", CONFIG],
        ],
    },
    Case {
        about: "the usual directory of the user's own file, a chain",
        links: &[("home/dotfiles", "v2"), ("home/.config/kitbag", "../dotfiles/kitbag")],
        directories: &["home/.config", "home/v2/kitbag"],
        moved: &[("own.toml", "home/v2/kitbag/config.toml")],
        variables: &[],
        attempts: &[
            ["remove", "home/dotfiles", ""],
            ["mkdir", "home/dotfiles", ""],
            ["mkdir", "home/dotfiles/kitbag", ""],
            ["write", "home/dotfiles/kitbag/config.toml", CONFIG],
        ],
    },
    Case {
        about: "the usual directory of the user's own file, to nothing",
        links: &[("home/.config/kitbag", "../dot/kitbag")],
        directories: &["home/.config"],
        moved: &[],
        variables: &[],
        attempts: &[
            ["mkdir", "home/dot", ""],
            ["mkdir", "home/dot/kitbag", ""],
            ["write", "home/dot/kitbag/config.toml", CONFIG],
        ],
    },
    Case {
        about: "the directory of all configuration, to nothing",
        links: &[("home/.config", "dot/config")],
        directories: &[],
        moved: &[],
        variables: &[],
        attempts: &[
            ["mkdir", "home/dot", ""],
            ["mkdir", "home/dot/config", ""],
            ["mkdir", "home/dot/config/kitbag", ""],
            ["write", "home/dot/config/kitbag/config.toml", CONFIG],
        ],
    },
    Case {
        about: "the user's own file, to nothing",
        links: &[("home/.config/kitbag/config.toml", "../../dot/kitbag.toml")],
        directories: &["home/.config/kitbag"],
        moved: &[],
        variables: &[],
        attempts: &[["mkdir", "home/dot", ""], ["write", "home/dot/kitbag.toml", CONFIG]],
    },
    Case {
        about: "`tools`, to nothing",
        links: &[(TOOLS, "../tt")],
        directories: &[],
        moved: &[],
        variables: &[],
        attempts: &[
            ["mkdir", "workspace/tt", ""],
            ["write", "workspace/tt/evil.wasm", ""],
            ["write", "workspace/tt/evil.toml", MANIFEST],
        ],
    },
    Case {
        about: "`tools`, a chain",
        links: &[("workspace/l1", "real"), (TOOLS, "../l1")],
        directories: &["workspace/real"],
        moved: &[],
        variables: &[],
        attempts: &[
            ["remove", "workspace/l1", ""],
            ["mkdir", "workspace/l1", ""],
            ["write", "workspace/l1/evil.wasm", ""],
            ["write", "workspace/l1/evil.toml", MANIFEST],
        ],
    },
    Case {
        about: "a manifest, to nothing",
        links: &[("workspace/.kitbag/tools/zz.toml", "../../mm.toml")],
        directories: &[TOOLS],
        moved: &[("probe.wasm", "workspace/.kitbag/tools/zz.wasm")],
        variables: &[],
        attempts: &[["write", "workspace/mm.toml", MANIFEST]],
    },
    Case {
        about: "a manifest, a chain",
        links: &[
            ("workspace/l1", "real/m.toml"),
            ("workspace/.kitbag/tools/zz.toml", "../../l1"),
        ],
        directories: &[TOOLS, "workspace/real"],
        moved: &[
            ("probe.wasm", "workspace/.kitbag/tools/zz.wasm"),
            ("empty", "workspace/real/m.toml"),
        ],
        variables: &[],
        attempts: &[["remove", "workspace/l1", ""], ["write", "workspace/l1", MANIFEST]],
    },
    Case {
        about: "a component, to nothing",
        links: &[("workspace/.kitbag/tools/zz.wasm", "../../zz.wasm")],
        directories: &[TOOLS],
        moved: &[],
        variables: &[],
        attempts: &[["write", "workspace/zz.wasm", ""]],
    },
    Case {
        about: "a component, a chain",
        links: &[
            ("workspace/l1", "real/zz.wasm"),
            ("workspace/.kitbag/tools/zz.wasm", "../../l1"),
        ],
        directories: &[TOOLS, "workspace/real"],
        moved: &[("probe.wasm", "workspace/real/zz.wasm")],
        variables: &[],
        attempts: &[["remove", "workspace/l1", ""], ["write", "workspace/l1", ""]],
    },
    Case {
        about: "a component and a topic that the configuration names, to nothing",
        links: &[("named.wasm", "workspace/b/c.wasm"), ("topic", "workspace/k")],
        directories: &["workspace/b"],
        moved: &[],
        variables: &[],
        attempts: &[
            ["write", "workspace/b/c.wasm", ""],
            ["mkdir", "workspace/k", ""],
            ["write", "workspace/k/planted.md", "planted"],
        ],
    },
    Case {
        about: "a topic, a chain",
        links: &[("workspace/l1", "k"), ("topic", "workspace/l1")],
        directories: &["workspace/k"],
        moved: &[],
        variables: &[],
        attempts: &[
            ["remove", "workspace/l1", ""],
            ["mkdir", "workspace/l1", ""],
            ["write", "workspace/l1/planted.md", "planted"],
        ],
    },
    Case {
        about: "the cache, a chain",
        links: &[("workspace/l1", "real"), ("workspace/l0", "l1")],
        directories: &["workspace/real/kitbag"],
        moved: &[],
        variables: &[("KITBAG_CACHE_DIR", "workspace/l0/kitbag")],
        attempts: &[["remove", "workspace/l1", ""], ["mkdir", "workspace/l1", ""]],
    },
    Case {
        about: "the state, to nothing",
        links: &[("workspace/l0", "real")],
        directories: &[],
        moved: &[],
        variables: &[("KITBAG_STATE_DIR", "workspace/l0")],
        attempts: &[["mkdir", "workspace/real", ""], ["write", "workspace/real/x", "planted"]],
    },
];

/// Runs the attempts of a tool, and returns the result of each.
fn attempt(case: &Case, run: &dyn Fn(&[&str]) -> String) -> Vec<String> {
    let attempts = case.attempts.iter().map(|[action, path, text]| {
        let path = format!("path=/all/{path}");
        run(&["run", "probe", &format!("do={action}"), &path, &format!("text={text}")])
    });
    attempts.collect()
}

#[test]
fn links_of_configured_paths_cannot_be_changed() {
    for case in &CASES {
        let workspace = workspace();
        workspace.remove_own_config();
        let outside = workspace.outside().canonicalize().unwrap();
        let at = |path: &str| outside.join(path);
        workspace.config(&format!(
            "{}\n[tools.named]\nsource = \"local\"\nwasm = \"../named.wasm\"\n\
             [knowledge.team]\nsubjects = \"../topic\"\n",
            probe(GRANT)
        ));
        fs::write(at("own.toml"), "[limits]\ntime = \"9s\"\n").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::copy(guest("probe"), at("probe.wasm")).unwrap();
        case.directories.iter().for_each(|path| fs::create_dir_all(at(path)).unwrap());
        case.moved.iter().for_each(|(old, new)| fs::rename(at(old), at(new)).unwrap());
        for (path, target) in case.links {
            // The target of a top-level link is an absolute path.
            let target = if path.contains('/') { (*target).into() } else { at(target) };
            symlink(target, at(path)).unwrap();
        }
        let variables: Vec<_> = case
            .variables
            .iter()
            .map(|(name, path)| (*name, at(path).to_str().unwrap().to_owned()))
            .collect();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let run = |arguments: &[&str]| workspace.run_with(arguments, "", &variables).shown();
        let effect = || {
            let commands: [&[&str]; 3] =
                [&["config", "--show"], &["list"], &["run", "learn", "topic=team"]];
            commands.map(run)
        };

        let before = effect();
        let got = attempt(case, &run);
        let refused = got.iter().filter(|got| got.contains("refused (not-permitted)")).count();
        assert!(refused > 0, "{}: {got:?}", case.about);
        assert_eq!(effect(), before, "{}: {got:?}", case.about);
        for (path, target) in case.links {
            let found = fs::read_link(at(path)).unwrap();
            assert!(found.ends_with(target), "{}: {path}", case.about);
        }
    }
}

#[test]
fn a_server_guards_the_links_of_a_reloaded_configuration() {
    let workspace = Workspace::with_probe(&format!("title = \"At first\"\n{GRANT}"));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let title = |client: &mut Client| {
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        let probe = tools.iter().find(|tool| tool["name"] == "probe").unwrap().clone();
        (tools.len(), probe["title"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(title(&mut client), (2, "At first".to_owned()));

    fs::create_dir_all(workspace.path("conf/v1")).unwrap();
    let text = probe(&format!("title = \"By a link\"\n{GRANT}"));
    fs::write(workspace.path("conf/v1/kitbag.toml"), text).unwrap();
    symlink("v1", workspace.path("conf/current")).unwrap();
    symlink("../tt", workspace.path(".kitbag/tools")).unwrap();
    let link = workspace.path(".kitbag/config.new");
    symlink("../conf/current/kitbag.toml", &link).unwrap();
    fs::rename(link, workspace.path(".kitbag/config.toml")).unwrap();
    // It is also sent after the component has described itself.
    while title(&mut client).1 == "At first" {
        client.notification("notifications/tools/list_changed");
    }

    for (action, path) in [
        ("remove", "conf/current"),
        ("rename", "conf/v1"),
        ("rename", "conf"),
        ("write", "conf/v1/kitbag.toml"),
        ("mkdir", "tt"),
    ] {
        let at = |path: &str| format!("/all/workspace/{path}");
        let arguments = json!({
            "do": action, "path": at(path), "text": "x", "old": at(path), "new": at("aside"),
        });
        let call = json!({ "name": "probe", "arguments": arguments });
        let got = client.request("tools/call", call)["result"]["content"][0]["text"].to_string();
        assert!(got.contains("refused (not-permitted)"), "{action} {path}: {got}");
    }
    assert_eq!(title(&mut client), (2, "By a link".to_owned()));
    assert!(!Path::new(&workspace.path("tt")).exists());
}
