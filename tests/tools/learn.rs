//! `learn`, through the real binary, on a knowledge base that holds everything
//! that can be in one. The rules in detail are tested in `guest-tools/learn`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

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

/// Calls `learn` with each of these arguments and shows the calls.
fn session(workspace: &Workspace, calls: &[&[&str]]) -> String {
    let commands: Vec<_> = calls.iter().map(|call| [&["run", "learn"], *call].concat()).collect();
    workspace.session(&commands.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

#[test]
fn a_topic_is_listed() {
    let workspace = knowledge();
    snapshot!(
        "listing",
        &session(&workspace, &[
            &["topic=skills"],
            &["topic=TEAM skills"],
            &["topic=empty"],
            &["topic=gone"],
            &["topic=off"],
            &["topic=skils"],
        ]),
    );
}

#[test]
fn subjects_are_loaded() {
    let workspace = knowledge();
    snapshot!(
        "loading",
        &session(&workspace, &[
            &["topic=skills", "subjects=style"],
            &["topic=skills", "subjects=rust/example"],
            &["topic=skills", "subjects=style", "subjects=rust/*"],
            &["topic=skills", "subjects=*"],
            &["topic=skills", "subjects=basics"],
            &["topic=skills", "subjects=linked"],
            &["topic=skills", "subjects=tricky", "subjects=style"],
            &["topic=skills", "subjects=style", "subjects=no-such"],
        ]),
    );
    let all = workspace.run(&["run", "learn", "topic=skills", "subjects=**"]).success();
    for unseen in ["Not for you", "Not yet", "Known to those", "Outside of the topic"] {
        assert!(!all.contains(unseen), "{unseen}");
    }
    assert!(all.contains("Far down."));
}

#[test]
fn what_cannot_be_loaded_is_said() {
    let workspace = knowledge();
    snapshot!(
        "refusals",
        &session(&workspace, &[
            &["topic=skills", "subjects=salaries"],
            &["topic=skills", "subjects=salaries", "subjects=style"],
            &["topic=skills", "subjects=.drafts/idea"],
            &["topic=skills", "subjects=drafts/idea"],
            &["topic=skills", "subjects=secret-rules"],
            &["topic=skills", "subjects=leaving"],
            &["topic=skills", "subjects=up/outside"],
            &["topic=skills", "subjects=twice"],
            &["topic=skills", "subjects=twice.toml"],
            &["topic=skills", "subjects=photo", "subjects=latin1", "subjects=style"],
            &["topic=skills", "subjects=no-such"],
            &["topic=skills", "subjects=[", "subjects=style"],
            &["topic=skills", "subject=style"],
            &["topic=3", "--args", "{\"subjects\":{}}"],
        ]),
    );
}

#[test]
fn subjects_are_found_by_words() {
    let workspace = knowledge();
    let found = workspace.run(&["run", "learn", "topic=skills", "query=sentences about rust"]);
    assert_eq!(
        found.success(),
        "# Topic: Team Skills\n\n\
         ## Subjects for `sentences about rust`, best first:\n\n\
         - rust: About Rust.\n\
         - rust/deep/er/notes\n\
         - rust/errors\n\
         - rust/example\n\
         - linked: Write short sentences.\n\
         - style: Write short sentences.\n\n\
         Use the `learn` tool with the `subjects` argument to learn specific subjects.\n"
    );
    // Neither what is disabled nor what leaves the topic.
    let unseen = workspace.run(&["run", "learn", "topic=skills", "query=outside not"]).success();
    assert!(!unseen.contains("salaries") && !unseen.contains("Outside of"), "{unseen}");
}

#[test]
fn a_large_subject_is_cut_at_a_line_and_what_does_not_fit_is_named() {
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
fn the_topic_that_a_caller_makes_up_is_overwritten() {
    let workspace = knowledge();
    workspace.file("secret/plan.md", "The plan.\n");
    let arguments = json!({
        "topic": "skills", "subjects": "salaries",
        "_topic": { "id": "skills", "title": "x", "disabled": [], "learned": [] },
    });
    let run = workspace.run(&["run", "learn", "--args", &arguments.to_string()]);
    assert_eq!(run.code, 1, "{}", run.shown());
    assert!(!run.stdout.contains("business"), "{}", run.shown());
    let view = workspace.run(&["run", "learn", "topic=skills", "_view=prompt"]);
    assert_eq!(view.code, 2, "{}", view.shown());
}

#[test]
fn a_call_is_rendered_on_one_line() {
    let workspace = knowledge();
    let format = |arguments: &[&str]| {
        workspace.run(&[&["run", "learn", "--format-arguments"], arguments].concat()).success()
    };
    assert_eq!(format(&["topic=skills"]), "learn skills: list\n");
    let subjects = ["topic=skills", "subjects=ast-grep", "subjects=rules/*"];
    assert_eq!(format(&subjects), "learn skills: ast-grep, rules/*\n");
    assert_eq!(format(&["topic=unknown"]), "learn unknown: list\n");
}

#[test]
fn the_description_names_the_topics_and_the_schema_stays_the_same() {
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
fn it_imports_files_and_nothing_else() {
    let component = guest("learn");
    let shown = Workspace::new().run(&["inspect", component.to_str().unwrap(), "--json"]).json();
    let imports = shown["imports"].as_array().unwrap();
    let mut given: Vec<_> = imports.iter().map(|import| &import["offered"]).collect();
    given.retain(|offered| *offered != "types only");
    assert_eq!(given, ["files in granted directories", "granted directories"]);
}

#[test]
fn the_system_prompt_holds_what_is_learned_and_tells_of_the_rest() {
    let workspace = knowledge();
    snapshot!("prompt", &workspace.run(&["prompt"]).shown());
    let empty = Workspace::new().run(&["prompt"]);
    assert!(empty.stderr.contains("no topic is configured: `[knowledge.NAME]`"), "{}", empty.stderr);
    assert_eq!(empty.success(), "");
}

#[test]
fn the_binary_alone_runs_on_a_knowledge_base_anywhere() {
    let workspace = knowledge();
    let alone = tempfile::tempdir().unwrap();
    let binary = alone.path().join("kitbag");
    copy_binary(&binary);
    fs::create_dir_all(alone.path().join("docs")).unwrap();
    fs::write(alone.path().join("docs/only.md"), "Only this.\n").unwrap();
    fs::create_dir(alone.path().join(".kitbag")).unwrap();
    fs::write(alone.path().join(".kitbag/config.toml"), "[knowledge.k]\nsubjects = \"docs\"\n").unwrap();
    let output = std::process::Command::new(&binary)
        .args(["run", "learn", "topic=k", "subjects=only"])
        .current_dir(alone.path())
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Only this.\n");
    drop(workspace);
}

#[test]
fn a_disabled_subject_is_reached_by_no_name_no_pattern_and_no_link() {
    let workspace = Workspace::new();
    workspace.file("kb/hr/salaries.md", "Not for you.\n");
    workspace.file("kb/hr/.bonus.md", "Not for you.\n");
    workspace.file("kb/open.md", "Open.\n");
    fs::hard_link(workspace.path("kb/hr/salaries.md"), workspace.path("kb/second.md")).unwrap();
    symlink("hr/salaries.md", workspace.path("kb/alias.md")).unwrap();
    symlink("hr", workspace.path("kb/people")).unwrap();
    // What the topic leaves out is not had by another name either.
    workspace.file("kb/.staff/deep/pay.md", "Not for you.\n");
    fs::hard_link(workspace.path("kb/.staff/deep/pay.md"), workspace.path("kb/third.md")).unwrap();
    workspace.config(
        "[knowledge.skills]\nsubjects = \"kb\"\ndisabled = [\"hr/*\", \".staff/**\"]\n",
    );
    let learn = |subjects: &str| workspace.run(&["run", "learn", "topic=skills", subjects]);
    for name in ["hr/salaries", "hr/bonus", "alias", "people/salaries", "people/bonus", "hr/*"] {
        let run = learn(&format!("subjects={name}"));
        assert_eq!(run.code, 1, "{name}: {}", run.shown());
        assert_eq!(run.stderr, format!("error: subject `{name}` is disabled\n"));
    }
    let second = learn("subjects=second");
    assert_eq!(second.stderr, "error: Disabled: `second`.\n", "{}", second.shown());
    assert_eq!(
        learn("subjects=**").success(),
        "<subject name=\"open\">\nOpen.\n</subject>\n\nDisabled: `second`, `third`.\n"
    );
    let list = workspace.run(&["run", "learn", "topic=skills"]).success();
    assert!(list.contains("- open\n") && !list.contains("salaries"), "{list}");
}

#[test]
fn what_looks_like_a_secret_is_no_subject_unless_the_topic_includes_it() {
    let workspace = Workspace::new();
    workspace.file("open.md", "Open.\n");
    workspace.file(".note.md", "By name only.\n");
    for secret in [".env", "deploy/.ENV.local", "keys/server.pem", ".git/config", ".venv/x.md"] {
        workspace.file(secret, "token = 1234\n");
    }
    symlink(".env", workspace.path("alias.md")).unwrap();
    symlink(".git", workspace.path("repository")).unwrap();
    let topics = |include: &str| {
        workspace.config(&format!(
            "[knowledge.all]\nsubjects = \".\"\ninclude = {include}\n[knowledge.bare]\nsubjects = \"deploy\"\n"
        ));
    };
    let learn = |subjects: &str| workspace.run(&["run", "learn", "topic=all", subjects]);
    topics("[]");
    let names = ["env", "deploy/ENV.local", "keys/server", "git/config", "venv/x", "alias"];
    for name in names.into_iter().chain(["repository/config", "kitbag/config"]) {
        let run = learn(&format!("subjects={name}"));
        assert!(run.code == 1 && !run.shown().contains("1234"), "{name}: {}", run.shown());
    }
    assert_eq!(learn("subjects=note").success(), "By name only.\n");
    assert!(!learn("subjects=**").success().contains("1234"));
    topics("[\".env\", \".git/config\"]");
    assert_eq!(learn("subjects=env").success(), "token = 1234\n");
    assert_eq!(learn("subjects=git/config").success(), "token = 1234\n");
    assert_eq!(learn("subjects=keys/server").code, 1);
}
