//! Paths outside the workspace that it names are part of its trust.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::SECRET;
use crate::support::{CallInTest, Workspace};

/// A workspace with a topic whose directory is a link to the user's `.ssh`.
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

/// The library, with the state directory that holds the trust records.
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
fn a_directory_replaced_by_a_link_is_not_read() {
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
fn a_topic_replaced_by_an_inner_link_is_not_read() {
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
