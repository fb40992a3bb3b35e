//! Files that another program executes: no tool can change them in any way, unless its grant allows
//! it.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Attempts;
use super::anchors::write;
use crate::support::{CallInTest, Workspace, probe, snapshot};

/// `probe` with a writable workspace, further keys of the grant, and files that other programs run.
fn workspace(keys: &str) -> Workspace {
    let grant = format!("{{ host = \".\", guest = \"/workspace\", mode = \"rw\"{keys} }}");
    let workspace = Workspace::with_probe(&format!("grants.filesystem = [{grant}]\n"));
    for path in [".vscode/tasks.json", ".github/workflows/ci.yml", ".husky/pre-commit", ".bashrc"] {
        workspace.file(path, "theirs");
    }
    for path in ["notes.txt", "meta/tasks.json", "github/workflows/own.yml", "made/x"] {
        workspace.file(path, "own");
    }
    fs::create_dir(workspace.path("empty")).unwrap();
    workspace
}

fn named(action: &str, path: &str) -> Value {
    json!({ "do": action, "path": path })
}

fn between(action: &str, old: &str, new: &str) -> Value {
    json!({ "do": action, "old": old, "new": new })
}

fn held(path: &str, old: &str, new: &str, name: &str) -> Value {
    json!({ "do": "held", "path": path, "old": old, "new": new, "name": name })
}

/// Every way to change files that another program runs.
fn attacks() -> Vec<Value> {
    vec![
        write(".bashrc", "evil"),
        write(".BashRC", "evil"),
        write(".vscode/tasks.json", "evil"),
        write(".vscode/Tasks.JSON", "evil"),
        write(".github/workflows/new.yml", "evil"),
        write("deep/.husky", "evil"),
        json!({ "do": "append", "path": ".husky/pre-commit", "text": "evil" }),
        named("truncate", ".bashrc"),
        named("set-times", ".bashrc"),
        named("remove", ".bashrc"),
        named("mkdir", "made/.husky"),
        named("mkdir", "made/.idea"),
        // Under another name.
        write("linked", "evil"),
        write("linked-directory/tasks.json", "evil"),
        write("made/../.vscode/tasks.json", "evil"),
        between("link", ".bashrc", "second"),
        between("rename", ".bashrc", "aside"),
        between("rename", "notes.txt", ".zshrc"),
        between("rename", "notes.txt", ".vscode/launch.json"),
        between("rename", "notes.txt", "made/mine.Code-Workspace"),
        write("mine.code-workspace", "evil"),
        json!({ "do": "symlink", "target": "notes.txt", "path": ".zshrc" }),
        // A directory that is renamed to the protected name, or from it.
        between("rename", "meta", "made/.vscode"),
        between("rename", "github", "made/.github"),
        between("rename", "empty", "made/.claude"),
        between("rename", ".vscode", "aside"),
        between("rename", ".github", "aside"),
        json!({ "do": "symlink", "target": "../meta", "path": "made/.vscode" }),
        // Dot files configure programs that no list knows.
        write(".unheard-of", "evil"),
        named("mkdir", "made/.unheard-of"),
        between("rename", "notes.txt", "made/.unheard-of"),
        between("link", "notes.txt", ".unheard-of"),
        json!({ "do": "symlink", "target": "notes.txt", "path": ".unheard-of" }),
        // Name patterns.
        write("lefthook-local.yml", "evil"),
        write("_vimrc", "evil"),
        write("mise.local.toml", "evil"),
        write("opencode.jsonc", "evil"),
        // A file that is open while it gets the protected name.
        held("empty", "empty", "made/.vscode", "tasks.json"),
        held(".vscode", ".vscode", "aside", "tasks.json"),
        held("made", "made", ".config", "autostart"),
        // The target of a protected name or its directory.
        write("env.sh", "evil"),
        write("editor/tasks.json", "evil"),
    ]
}

/// Existing links.
fn links(workspace: &Workspace) {
    workspace.file("env.sh", "theirs");
    workspace.file("editor/tasks.json", "theirs");
    workspace.file("deep/x", "");
    symlink(".bashrc", workspace.path("linked")).unwrap();
    symlink(".vscode", workspace.path("linked-directory")).unwrap();
    symlink("env.sh", workspace.path(".zprofile")).unwrap();
    symlink("../editor", workspace.path("deep/.vscode")).unwrap();
}

#[test]
fn files_run_by_other_programs_cannot_be_changed() {
    let workspace = workspace("");
    links(&workspace);
    let mut attempts = Attempts::new(&workspace);
    for attack in attacks() {
        let got = attempts.attempt(attack.clone());
        assert!(got.ends_with("refused (not-permitted)"), "{attack}: {got}");
    }
    attempts.about("What lies beside it is.");
    for allowed in [
        write(".vscode/notes.md", "fine"),
        write(".github/ISSUE_TEMPLATE.md", "fine"),
        write("tasks.json", "fine"),
        write(".gitignore", "fine"),
        write("made/.gitattributes", "*.md text"),
        named("mkdir", "made/.github"),
        named("mkdir", "made/workflows"),
        between("rename", "notes.txt", "moved.txt"),
        json!({ "do": "read", "path": ".vscode/tasks.json" }),
    ] {
        let got = attempts.attempt(allowed.clone());
        assert!(!got.contains("refused"), "{allowed}: {got}");
    }
    for path in [".vscode/tasks.json", ".husky/pre-commit", ".bashrc", "env.sh"] {
        assert_eq!(fs::read_to_string(workspace.path(path)).unwrap(), "theirs", "{path}");
    }
    snapshot!("ways_to_change_what_runs", &attempts.report);
}

#[test]
fn the_same_attacks_work_without_protection() {
    for attack in attacks() {
        let workspace = workspace(", protected = []");
        links(&workspace);
        let got = workspace.kitbag().call_in_test("probe", attack.clone());
        // The file system may distinguish upper and lower case.
        assert!(!got.contains("not-permitted"), "{attack}: {got}");
    }
}

#[test]
fn a_grant_adds_names_to_the_list() {
    let workspace =
        workspace(", protected = [\"default\", \"AGENTS.md\", \"CLAUDE.md\", \"*.mk\"]");
    let kitbag = workspace.kitbag();
    for path in [".envrc", "made/agents.md", "CLAUDE.md", "rules.mk", "a.code-workspace"] {
        let got = kitbag.call_in_test("probe", write(path, "evil"));
        assert!(got.ends_with("refused (not-permitted)"), "{path}: {got}");
    }
    // Without the key they are ordinary documents of the project.
    let workspace = self::workspace("");
    let got = workspace.kitbag().call_in_test("probe", write("AGENTS.md", "fine"));
    assert!(got.starts_with("write "), "{got}");
}

#[test]
fn a_grant_replaces_the_protected_names() {
    let workspace = workspace(", protected = [\"Makefile\", \"ci/run\"]");
    workspace.file("ci/run", "theirs");
    let kitbag = workspace.kitbag();
    for path in ["Makefile", "made/makefile", "ci/run"] {
        let got = kitbag.call_in_test("probe", write(path, "evil"));
        assert!(got.ends_with("refused (not-permitted)"), "{got}");
    }
    for path in [".bashrc", "run"] {
        let got = kitbag.call_in_test("probe", write(path, "fine"));
        assert!(got.ends_with("4 bytes"), "{got}");
    }
    workspace.config(&probe(
        "grants.filesystem = [{ host = \".\", guest = \"/a\", mode = \"rw\", protected = [\"a/b/c\"] }]\n",
    ));
    let run = workspace.run(&["check"]);
    assert_eq!(run.code, 4, "{}", run.shown());
    assert!(run.stderr.contains("`a/b/c` cannot be protected"), "{}", run.shown());
}

#[test]
fn existing_dot_files_are_edited_and_named_ones_created() {
    let workspace = workspace(", protected = [\"default\", \"!.newrc\"]");
    workspace.file(".ordinary", "theirs");
    let kitbag = workspace.kitbag();
    for path in [".ordinary", ".newrc", "made/.NewRC"] {
        let got = kitbag.call_in_test("probe", write(path, "fine"));
        assert!(got.ends_with("4 bytes"), "{path}: {got}");
    }
    for path in [".otherrc", ".bashrc"] {
        let got = kitbag.call_in_test("probe", write(path, "evil"));
        assert!(got.ends_with("refused (not-permitted)"), "{path}: {got}");
    }
}

#[test]
fn files_named_in_the_git_configuration_are_protected() {
    let workspace = workspace("");
    let config = "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../shared/git.conf\n\
                  [filter \"x\"]\n\tclean = ./clean.sh %f\n";
    workspace.file(".git/config", config);
    workspace.file("tools/hooks/pre-commit", "theirs");
    workspace.file("shared/git.conf", "[core]\n\tpager = bin/pager\n");
    workspace.file("meta/linked", "theirs");
    let kitbag = workspace.kitbag();
    let attacks = [
        write("tools/hooks/pre-commit", "evil"),
        write("tools/hooks/pre-push", "evil"),
        write("clean.sh", "evil"),
        write("shared/git.conf", "evil"),
        between("rename", "tools/hooks", "aside"),
        between("rename", "tools", "aside"),
        between("rename", "notes.txt", "clean.sh"),
        between("rename", "meta", "bin"),
    ];
    for attack in attacks {
        let got = kitbag.call_in_test("probe", attack.clone());
        assert!(got.ends_with("refused (not-permitted)"), "{attack}: {got}");
    }
    let got = kitbag.call_in_test("probe", write("tools/readme.md", "fine"));
    assert!(got.ends_with("4 bytes"), "{got}");
    // Without the configuration they are ordinary files.
    fs::remove_file(workspace.path(".git/config")).unwrap();
    let got = kitbag.call_in_test("probe", write("tools/hooks/pre-push", "fine"));
    assert!(got.ends_with("4 bytes"), "{got}");
}
