use std::os::unix::fs::symlink;

use super::*;
use crate::open::locate;

fn id_at(path: &Path) -> FileId {
    locate(path).unwrap().id()
}

#[test]
fn what_is_named_is_sealed_by_identity_and_by_name_and_what_leads_there_is_pinned() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("build/out")).unwrap();
    fs::create_dir_all(root.join("cache")).unwrap();
    fs::write(root.join("build/out/tool.wasm"), "").unwrap();
    symlink("out", root.join("build/current")).unwrap();
    let guard = Guard::new(GuardedPaths {
        own: vec![root.join("cache")],
        files: vec![root.join("build/current/tool.wasm"), root.join("missing/later.wasm")],
        ..GuardedPaths::default()
    });
    let table = guard.table(&[Writable::new(root.clone(), id_at(&root))]);
    let check = |parent: &str, name: &str, entry: bool, content: bool| {
        let parent = root.join(parent);
        let found = locate(&parent.join(name)).ok().map(|found| found.id());
        for (change, expected) in [
            (EntryChange::Put, entry),
            (EntryChange::Remove, entry),
            (EntryChange::Content, content),
        ] {
            let found = table.forbids(id_at(&parent), name, found, change);
            assert_eq!(found, expected, "{parent:?} {name} {change:?}");
        }
    };
    check("", "build", true, false);
    check("", "BUILD", true, false);
    check("build", "out", true, false);
    check("build", "current", true, false);
    check("build/out", "tool.wasm", true, true);
    check("build/out", "Tool.WASM", true, true);
    check("build/out", "other", false, false);
    check("", "cache", true, true);
    check("", "missing", true, false);
    check("", "other", false, false);
    check("build", ".git", true, true);
    assert!(table.is_root(id_at(&root)) && !table.is_root(id_at(&root.join("build"))));
    let cache = locate(&root.join("cache")).unwrap();
    assert!(table.seals(&cache.handle, cache.id()));
}

#[test]
fn a_directory_is_made_on_the_way_to_what_is_not_there_and_not_what_it_leads_to() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let guard = Guard::new(GuardedPaths {
        own: vec![root.join("config/kitbag")],
        files: vec![root.join("config/kitbag/config.toml")],
        ..GuardedPaths::default()
    });
    let table = || guard.table(&[Writable::new(root.clone(), id_at(&root))]);
    let check = |table: &GuardTable, parent: &str, name: &str, expected: [bool; 2]| {
        let parent = id_at(&root.join(parent));
        let changes = [EntryChange::NewDirectory, EntryChange::Put];
        let forbidden = changes.map(|change| table.forbids(parent, name, None, change));
        assert_eq!(forbidden, expected, "{name}");
    };
    let before = table();
    check(&before, "", "config", [false, true]);
    check(&before, "", "CONFIG", [false, true]);
    assert!(!before.is_outdated());
    fs::create_dir(root.join("config")).unwrap();
    assert!(before.is_outdated());
    let after = table();
    assert!(!after.is_outdated());
    check(&after, "config", "kitbag", [true, true]);
    check(&after, "config", "other", [false, false]);
    // A link that leads nowhere is as if nothing were there.
    fs::remove_dir(root.join("config")).unwrap();
    symlink("elsewhere", root.join("config")).unwrap();
    let dangling = table();
    assert!(!dangling.is_outdated());
    fs::create_dir(root.join("elsewhere")).unwrap();
    assert!(dangling.is_outdated());
    check(&table(), "elsewhere", "kitbag", [true, true]);
}

#[test]
fn a_topic_is_sealed_but_for_a_tool_that_it_is_granted_to() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("notes/in")).unwrap();
    let guard =
        Guard::new(GuardedPaths { topics: vec![root.join("notes")], ..GuardedPaths::default() });
    let check = |granted: &str, expected: bool| {
        let granted = root.join(granted);
        let table = guard.table(&[Writable::new(granted.clone(), id_at(&granted))]);
        let notes = locate(&root.join("notes")).unwrap();
        assert_eq!(table.seals(&notes.handle, notes.id()), expected, "{granted:?}");
    };
    check("", true);
    check("notes", false);
    check("notes/in", false);
}

#[test]
fn a_link_is_a_tools_where_some_tool_may_write_and_its_directory_has_no_guarded_name() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("open/.kitbag")).unwrap();
    fs::create_dir_all(root.join("closed")).unwrap();
    for link in ["open/link", "open/.kitbag/link", "closed/link"] {
        symlink("..", root.join(link)).unwrap();
    }
    let writable = vec![id_at(&root.join("open"))];
    let guard = Guard::new(GuardedPaths { writable, ..GuardedPaths::default() });
    let check = |path: &str, expected: Option<&str>| {
        let links = locate(&root.join(path)).unwrap().links;
        let found = guard.writable_link(&links).map(|link| link.path.clone());
        assert_eq!(found, expected.map(|link| root.join(link)), "{path}");
    };
    check("open/link", Some("open/link"));
    check("open/.kitbag/link", None);
    check("open/.kitbag/link/link", Some("open/link"));
    check("closed/link", None);
    check("closed/link/open/link", Some("open/link"));
}

#[test]
fn what_is_private_is_known_by_its_place_by_what_it_is_and_by_every_name_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("state/deep")).unwrap();
    fs::create_dir_all(root.join("keys")).unwrap();
    for file in ["state/deep/counts", "keys/secrets.key", "keys/other", "plain"] {
        fs::write(root.join(file), "").unwrap();
    }
    symlink("state", root.join("link")).unwrap();
    fs::hard_link(root.join("state/deep/counts"), root.join("counts")).unwrap();
    fs::hard_link(root.join("keys/secrets.key"), root.join("key")).unwrap();
    fs::hard_link(root.join("plain"), root.join("plain2")).unwrap();
    let guard = Guard::new(GuardedPaths {
        private: vec![
            root.join("link"),
            root.join("keys/secrets.key"),
            root.join("keys/later.age"),
            root.join("missing/later.age"),
        ],
        ..GuardedPaths::default()
    });
    let above = |path: &str| guard.private_above(&root.join(path));
    assert_eq!(above("state"), Some(root.join("state")));
    assert_eq!(above("state/deep/x"), Some(root.join("state")));
    assert_eq!(above("keys/secrets.key"), Some(root.join("keys/secrets.key")));
    assert_eq!((above("keys"), above("stated")), (None, None));
    let table = guard.private();
    let check = |parent: &str, name: &str, expected: bool| {
        let found = Stat::of_path(&root.join(parent).join(name)).ok();
        let hides = table.hides(id_at(&root.join(parent)), name, found.as_ref());
        assert_eq!(hides, expected, "{parent}/{name}");
    };
    check("", "state", true);
    check("", "STATE", true);
    // A link that a configuration names is the place itself.
    check("", "link", true);
    check("", "counts", true);
    check("", "key", true);
    check("", "plain2", false);
    check("", "keys", false);
    check("keys", "secrets.key", true);
    check("keys", "Secrets.KEY", true);
    check("keys", "later.age", true);
    check("keys", "other", false);
    check("", ".git", false);
    // What takes the place of the store meanwhile has its name.
    fs::remove_file(root.join("keys/secrets.key")).unwrap();
    fs::write(root.join("keys/secrets.key"), "").unwrap();
    check("keys", "secrets.key", true);
    assert!(!table.is_outdated());
    fs::create_dir(root.join("missing")).unwrap();
    assert!(table.is_outdated());
    // The next call meets what is there by then: a directory that took the place of another,
    // a file that has a second name only now.
    fs::rename(root.join("keys"), root.join("old")).unwrap();
    fs::create_dir(root.join("keys")).unwrap();
    fs::write(root.join("keys/secrets.key"), "").unwrap();
    fs::write(root.join("state/later"), "").unwrap();
    fs::hard_link(root.join("state/later"), root.join("later")).unwrap();
    let table = guard.private();
    let hides = |parent: &str, name: &str| {
        let found = Stat::of_path(&root.join(parent).join(name)).ok();
        table.hides(id_at(&root.join(parent)), name, found.as_ref())
    };
    assert!(hides("keys", "later.age") && hides("keys", "secrets.key"));
    assert!(hides("missing", "later.age") && hides("", "later"));
    assert!(!hides("old", "secrets.key"));
    // No tool changes it either.
    let table = guard.table(&[Writable::new(root.clone(), id_at(&root))]);
    let found = Some(id_at(&root.join("keys/secrets.key")));
    assert!(table.forbids(id_at(&root.join("keys")), "secrets.key", found, EntryChange::Content));
    assert!(table.forbids(id_at(&root), "keys", None, EntryChange::Remove));
}

#[test]
fn what_is_private_is_looked_up_anew_when_the_way_to_it_is_another() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for place in ["first/deep", "second/deep", "outer/inner/deep", "new/inner/deep"] {
        fs::create_dir_all(root.join(place)).unwrap();
        fs::write(root.join(place).join("key"), "").unwrap();
    }
    symlink("first", root.join("way")).unwrap();
    let private = vec![root.join("way/deep/key"), root.join("outer/inner/deep/key")];
    let guard = Guard::new(GuardedPaths { private, ..GuardedPaths::default() });
    let check = |place: &str, expected: bool| {
        let table = guard.private();
        let found = Stat::of_path(&root.join(place).join("key")).unwrap();
        assert_eq!(table.hides(id_at(&root.join(place)), "key", None), expected, "{place}");
        assert_eq!(table.has(&found), expected, "{place}");
        let above = guard.private_above(&root.join(place).join("key"));
        assert_eq!(above.is_some(), expected, "{place}");
    };
    check("first/deep", true);
    check("second/deep", false);
    check("outer/inner/deep", true);
    fs::remove_file(root.join("way")).unwrap();
    symlink("second", root.join("way")).unwrap();
    check("first/deep", false);
    check("second/deep", true);
    fs::rename(root.join("outer"), root.join("old")).unwrap();
    fs::rename(root.join("new"), root.join("outer")).unwrap();
    check("outer/inner/deep", true);
    check("old/inner/deep", false);
}

#[test]
fn what_the_account_keeps_is_private_whatever_a_configuration_names() {
    let account = private_places_of_account();
    let state = account.iter().find(|path| path.ends_with(".local/state/kitbag")).unwrap();
    assert!(account.iter().any(|path| path.ends_with(".config/kitbag/secrets.key")));
    assert_eq!(Guard::default().private_above(&canonical(state)), Some(canonical(state)));
}
