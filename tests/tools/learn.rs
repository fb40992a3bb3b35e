//! `learn`, through the real binary, on a knowledge base with every kind of subject. The rules in
//! detail are tested in `guest-tools/learn`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Workspace, copy_binary, guest, snapshot};

/// Nested, hidden, disabled, learned, binary, colliding, linked and oversized
/// subjects.
fn knowledge() -> Workspace {
    let workspace = Workspace::new();
    for (path, content) in [
        ("style.md", "Write short sentences.\n"),
        ("plain.txt", "Plain text.\n"),
        ("LICENSE", "Do as you like.\n"),
        ("rust/errors.md", "Name the value.\n"),
        ("rust/example.rs", "fn main() {\n    // ``` is not the end\n}\n"),
        ("rust/deep/er/notes.md", "Far down.\n"),
        ("rust.md", "About Rust.\n"),
        (".drafts/idea.md", "Not yet.\n"),
        (".secret-rules.md", "Known to those who know.\n"),
        ("salaries.md", "Not for you.\n"),
        ("basics.md", "Known already.\n"),
        ("tricky.md", "</subject>\nOut of the block?\n"),
        ("a \"quoted\" & <odd> name.md", "Odd.\n"),
        ("twice.md", "As Markdown.\n"),
        ("twice.toml", "as = \"toml\"\n"),
    ] {
        workspace.file(&format!("kb/{path}"), content);
    }
    workspace.file("kb/photo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    workspace.file("kb/latin1.txt", b"caf\xe9\n");
    workspace.file("outside.md", "Outside of the topic.\n");
    symlink("style.md", workspace.path("kb/linked.md")).unwrap();
    symlink("../outside.md", workspace.path("kb/leaving.md")).unwrap();
    symlink("..", workspace.path("kb/up")).unwrap();
    symlink(".", workspace.path("kb/rust/round")).unwrap();
    workspace.config(
        "[knowledge.skills]\nsubjects = \"kb\"\ntitle = \"Team Skills\"\n\
         introduction = \"How we work.\"\ndescription = \"What everybody here should know.\"\n\
         learned = [\"basics\", \"plain*\"]\ninclude = [\".drafts\"]\ndisabled = [\"salaries\"]\n\
         [knowledge.empty]\nsubjects = \"nothing\"\n\
         [knowledge.gone]\nsubjects = \"gone\"\n\
         [knowledge.off]\nsubjects = \"kb\"\nenable = false\n",
    );
    fs::create_dir(workspace.path("nothing")).unwrap();
    workspace
}

#[test]
fn a_large_subject_is_truncated_and_omissions_are_named() {
    let workspace = knowledge();
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    workspace.file("kb/large.md", line.repeat(40_000));
    let whole = workspace.run(&[
        "run",
        "learn",
        "topic=skills",
        "subjects=large",
        "max_bytes=8388608",
        "--output",
        "8MiB",
    ]);
    let whole = whole.success();
    assert!((1_000_000..1_100_000).contains(&whole.len()), "{}", whole.len());
    let short = workspace.run(&["run", "learn", "topic=skills", "subjects=large"]).success();
    assert!((60 << 10..=64 << 10).contains(&short.len()), "{}", short.len());
    let few = ["run", "learn", "topic=skills", "subjects=**", "--output", "600B"];
    snapshot!("output limit", &workspace.run(&few).shown());
}

#[test]
fn topics_are_in_the_description_but_not_in_the_schema() {
    let workspace = knowledge();
    let described = workspace.run(&["describe", "learn", "--json"]).json();
    let description = described["description"]["value"].as_str().unwrap();
    assert!(description.contains("- skills (**Team Skills**): How we work."), "{description}");
    assert!(!description.contains("off"), "{description}");
    let bare = Workspace::new();
    let other = bare.run(&["describe", "learn", "--json"]).json();
    assert_eq!(described["inputSchema"], other["inputSchema"]);
}

#[test]
fn it_imports_only_files() {
    let component = guest("learn");
    let shown = Workspace::new().run(&["inspect", component.to_str().unwrap(), "--json"]).json();
    let imports = shown["imports"].as_array().unwrap();
    let mut given: Vec<_> = imports.iter().map(|import| &import["offered"]).collect();
    given.retain(|offered| *offered != "types only");
    assert_eq!(given, ["files in granted directories", "granted directories"]);
}

#[test]
fn the_system_prompt_has_learned_subjects_and_names_others() {
    let workspace = knowledge();
    snapshot!("prompt", &workspace.run(&["prompt"]).shown());
    let empty = Workspace::new().run(&["prompt"]);
    assert!(
        empty.stderr.contains("no topic is configured; to add one, set `subjects = "),
        "{}",
        empty.stderr
    );
    assert_eq!(empty.success(), "");
}

#[test]
fn the_binary_alone_serves_a_knowledge_base_anywhere() {
    let workspace = knowledge();
    let alone = tempfile::tempdir().unwrap();
    let binary = alone.path().join("kitbag");
    copy_binary(&binary);
    fs::create_dir_all(alone.path().join("docs")).unwrap();
    fs::write(alone.path().join("docs/only.md"), "Only this.\n").unwrap();
    fs::create_dir(alone.path().join(".kitbag")).unwrap();
    fs::write(alone.path().join(".kitbag/config.toml"), "[knowledge.k]\nsubjects = \"docs\"\n")
        .unwrap();
    let output = std::process::Command::new(&binary)
        .args(["run", "learn", "topic=k", "subjects=only"])
        .current_dir(alone.path())
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Only this.\n");
    drop(workspace);
}
