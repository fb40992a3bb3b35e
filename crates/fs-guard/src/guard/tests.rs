use std::os::unix::fs::symlink;

use super::*;
use crate::open::locate;

fn id_at(path: &Path) -> FileId {
    locate(path).unwrap().id()
}

#[test]
fn named_paths_are_sealed_and_their_parents_pinned() {
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
fn missing_parents_may_be_created_but_not_their_targets() {
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
    // A dangling link is treated like a missing entry.
    fs::remove_dir(root.join("config")).unwrap();
    symlink("elsewhere", root.join("config")).unwrap();
    let dangling = table();
    assert!(!dangling.is_outdated());
    fs::create_dir(root.join("elsewhere")).unwrap();
    assert!(dangling.is_outdated());
    check(&table(), "elsewhere", "kitbag", [true, true]);
}

#[test]
fn topics_are_sealed_unless_granted_by_name() {
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
fn links_in_writable_directories_are_suspect() {
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
fn private_files_are_known_by_path_identity_and_hard_links() {
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
    // A configured link means its target.
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
    // A replacement of the store has the store's name.
    fs::remove_file(root.join("keys/secrets.key")).unwrap();
    fs::write(root.join("keys/secrets.key"), "").unwrap();
    check("keys", "secrets.key", true);
    // A missing directory on the way to a private file makes the table incomplete when it exists.
    assert!(table.lacks(id_at(&root), "Missing") && !table.lacks(id_at(&root), "keys"));
    assert!(!table.lacks(id_at(&root.join("keys")), "missing"));
    fs::create_dir(root.join("missing")).unwrap();
    assert!(!guard.private().lacks(id_at(&root), "missing"));
    // The next call sees later changes: a directory that replaced another, and a file with a new
    // hard link.
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
    // Tools may not change it either.
    let table = guard.table(&[Writable::new(root.clone(), id_at(&root))]);
    let found = Some(id_at(&root.join("keys/secrets.key")));
    assert!(table.forbids(id_at(&root.join("keys")), "secrets.key", found, EntryChange::Content));
    assert!(table.forbids(id_at(&root), "keys", None, EntryChange::Remove));
}

#[test]
fn private_table_is_rebuilt_when_a_parent_changes() {
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
fn account_files_are_private_in_every_configuration() {
    let account = private_places_of_account();
    let state = account.iter().find(|path| path.ends_with(".local/state/kitbag")).unwrap();
    assert!(account.iter().any(|path| path.ends_with(".config/kitbag/secrets.key")));
    assert_eq!(Guard::default().private_above(&canonical(state)), Some(canonical(state)));
}
