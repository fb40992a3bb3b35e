//! What a workspace names outside of itself is part of what is trusted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::SECRET;
use crate::support::{CallInTest, Run, Workspace};

/// A workspace with a topic in a directory that is a link to the user's `.ssh`.
fn linked() -> Workspace {
    let workspace = Workspace::new().untrusted();
    for directory in [".ssh", "notes"] {
        fs::create_dir(workspace.home().join(directory)).unwrap();
    }
    fs::write(workspace.home().join(".ssh/key.txt"), SECRET).unwrap();
    fs::write(workspace.home().join("notes/key.txt"), "a note\n").unwrap();
    workspace.config("[knowledge.keys]\nsubjects = \"docs\"\n");
    symlink(workspace.home().join("notes"), workspace.path("docs")).unwrap();
    workspace
}

/// Has a link lead elsewhere.
fn relink(link: &Path, to: &Path) {
    fs::remove_file(link).unwrap();
    symlink(to, link).unwrap();
}

/// That a run says why the workspace is not trusted any more.
#[track_caller]
fn assert_leads_elsewhere(run: &Run) {
    let reason =
        "off because the target of a path changed since you trusted it; run `kitbag trust`";
    assert!(run.stderr.contains(reason), "{}", run.shown());
}

const LOAD: [&str; 4] = ["run", "learn", "topic=keys", "subjects=key"];

#[test]
fn a_link_of_the_workspace_leads_out_of_it_only_where_that_was_trusted() {
    let workspace = linked();
    let refused = workspace.run(&LOAD);
    assert_ne!(refused.code, 0, "{}", refused.shown());
    assert!(!refused.stdout.contains("note"), "{}", refused.shown());
    let asked = workspace.run(&["trust"]).stdout;
    let place = "topic `keys` reads `<home>/notes`, which is outside of the workspace\n";
    assert!(asked.contains(place), "{asked}");
    workspace.trust();
    assert_eq!(workspace.run(&LOAD).success(), "a note\n");

    // The same bytes of configuration, and another place.
    relink(&workspace.path("docs"), &workspace.home().join(".ssh"));
    let refused = workspace.run(&LOAD);
    assert_ne!(refused.code, 0, "{}", refused.shown());
    assert_leads_elsewhere(&refused);
    let asked = workspace.run(&["trust"]).stdout;
    assert!(
        asked.contains("reads outside the workspace: topic `keys` reads `<home>/.ssh`, which"),
        "{asked}"
    );
    assert!(asked.contains("- topic `keys` reads `<home>/notes`, which is outside"), "{asked}");
}

/// The library, which trusts what is recorded.
fn with_state(workspace: &Workspace) -> kitbag::Kitbag {
    let state = kitbag::config::Sourced::default(workspace.home().join(".local/state/kitbag"));
    let places = kitbag::Places {
        cache: Some(workspace.cache().to_owned()),
        state: Some(state),
        home: Some(workspace.home()),
        ..kitbag::Places::default()
    };
    kitbag::Kitbag::builder().workspace(workspace.root()).places(places).build().unwrap()
}

#[test]
fn a_directory_that_becomes_a_link_after_the_start_is_not_read_through_it() {
    let workspace = linked();
    fs::remove_file(workspace.path("docs")).unwrap();
    workspace.file("docs/key.md", "inside\n");
    workspace.trust();
    let kitbag = with_state(&workspace);
    let load = || kitbag.call_in_test("learn", json!({ "topic": "keys", "subjects": "key" }));
    assert_eq!(load(), "inside\n");
    fs::remove_dir_all(workspace.path("docs")).unwrap();
    symlink(workspace.home().join(".ssh"), workspace.path("docs")).unwrap();
    let refused = load();
    assert!(!refused.contains("secret"), "{refused}");
    assert!(refused.contains("which is not trusted"), "{refused}");
}

#[test]
fn a_granted_directory_outside_is_shown_and_another_one_is_asked_about() {
    let workspace = Workspace::with_probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \"data\", guest = \"/data\", mode = \"rw\" }]\n",
    )
    .untrusted();
    for directory in ["one", "two"] {
        fs::create_dir(workspace.home().join(directory)).unwrap();
    }
    symlink(workspace.home().join("one"), workspace.path("data")).unwrap();
    let asked = workspace.run(&["trust"]).stdout;
    let line = "tool `probe` reads and changes `<home>/one`, which is outside of the workspace\n";
    assert!(asked.contains(line), "{asked}");
    workspace.trust();
    let write = ["run", "probe", "do=write", "path=/data/a", "text=x"];
    workspace.run(&write).success();
    relink(&workspace.path("data"), &workspace.home().join("two"));
    assert_eq!(workspace.run(&write).code, 6);
    assert!(!workspace.home().join("two/a").exists());
}

#[test]
fn a_granted_directory_that_becomes_a_link_to_another_one_inside_is_asked_about() {
    let grants = "[tools.probe.grants]\nfilesystem = [{ host = \"sub/data\", guest = \"/data\", \
                  mode = \"rw\" }]\n";
    let write = ["run", "probe", "do=write", "path=/data/a", "text=x"];
    // The directory itself, one on the way to it, and the whole workspace.
    for (link, to, led) in
        [("sub/data", "../src", "src"), ("sub", "other", "other/data"), ("sub/data", "..", ".")]
    {
        let workspace = Workspace::with_probe(grants).untrusted();
        for directory in ["sub/data", "src", "other/data"] {
            fs::create_dir_all(workspace.path(directory)).unwrap();
        }
        workspace.trust();
        workspace.run(&write).success();
        fs::rename(workspace.path(link), workspace.path("aside")).unwrap();
        symlink(to, workspace.path(link)).unwrap();
        let refused = workspace.run(&write);
        assert_eq!(refused.code, 6, "{link}: {}", refused.shown());
        assert_leads_elsewhere(&refused);
        let written = workspace.path(led).join("a");
        assert!(!written.exists(), "{link}");

        if led == "." {
            // The tool could exchange the link itself then, so that it is off.
            workspace.trust();
            let refused = workspace.run(&write);
            assert_eq!(refused.code, 4, "{}", refused.shown());
            assert!(!written.exists(), "{link}");
            continue;
        }
        let asked = workspace.run(&["trust"]).stdout;
        assert!(asked.contains("- tool `probe` reads and changes `sub/data`\n"), "{link}: {asked}");
        let line = format!("+ tool `probe` reads and changes `{led}`\n");
        assert!(asked.contains(&line), "{link}: {asked}");
        workspace.trust();
        workspace.run(&write).success();
        assert!(written.exists(), "{link}");
        // And back: the directory is there again.
        fs::remove_file(workspace.path(link)).unwrap();
        fs::rename(workspace.path("aside"), workspace.path(link)).unwrap();
        assert_eq!(workspace.run(&write).code, 6, "{link}");
    }
}

#[test]
fn a_topic_that_becomes_a_link_to_another_directory_inside_is_asked_about() {
    let workspace = linked();
    fs::remove_file(workspace.path("docs")).unwrap();
    workspace.file("docs/key.md", "inside\n");
    workspace.file("private/key.md", "not for models\n");
    // So that there is something to trust.
    workspace.file(".kitbag/scripts/hello.py", "print(1)\n");
    workspace.trust();
    assert_eq!(workspace.run(&LOAD).stderr, "");
    fs::rename(workspace.path("docs"), workspace.path("aside")).unwrap();
    symlink("private", workspace.path("docs")).unwrap();
    let run = workspace.run(&LOAD);
    assert_leads_elsewhere(&run);
    let asked = workspace.run(&["trust"]).stdout;
    assert!(asked.contains("+ topic `keys` reads `private`\n"), "{asked}");
    workspace.trust();
    assert_eq!(workspace.run(&LOAD).success(), "not for models\n");
}

#[test]
fn a_topic_that_becomes_a_link_inside_after_the_start_is_not_read_through_it() {
    let workspace = linked();
    fs::remove_file(workspace.path("docs")).unwrap();
    workspace.file("docs/key.md", "inside\n");
    workspace.file("private/key.md", "not for models\n");
    workspace.trust();
    let kitbag = with_state(&workspace);
    let load = || kitbag.call_in_test("learn", json!({ "topic": "keys", "subjects": "key" }));
    assert_eq!(load(), "inside\n");
    fs::remove_dir_all(workspace.path("docs")).unwrap();
    symlink("private", workspace.path("docs")).unwrap();
    let refused = load();
    assert!(!refused.contains("not for models"), "{refused}");
    assert!(refused.contains("which is not trusted"), "{refused}");
}

#[test]
fn paths_of_the_users_own_file_do_not_lead_out_through_links_of_the_workspace() {
    // In a repository without any configuration of kitbag's, too.
    let workspace = linked();
    fs::remove_file(workspace.path(".kitbag/config.toml")).unwrap();
    workspace.own_config("[knowledge.keys]\nsubjects = \"docs\"\n");
    let refused = workspace.run(&LOAD);
    assert!(!refused.stdout.contains("note"), "{}", refused.shown());
    assert!(refused.stderr.contains("which is not trusted"), "{}", refused.shown());
    workspace.own_config(&crate::support::probe(
        "[tools.probe.grants]\nfilesystem = [{ host = \"docs\", guest = \"/docs\" }]\n",
    ));
    let refused = workspace.run(&["run", "probe", "do=list", "path=/docs"]);
    assert_eq!(refused.code, 4, "{}", refused.shown());
    assert!(refused.stderr.contains("a link leads out of the workspace"), "{}", refused.shown());
}
