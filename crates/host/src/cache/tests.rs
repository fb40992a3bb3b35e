use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use super::*;

const ARTIFACT: &[u8] = b"\x7fELF pretends to be native code";

/// A private directory with one good entry.
fn fixture() -> (tempfile::TempDir, DiskCache, Key) {
    let parent = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(parent.path().join("deep/cache"));
    let key = Key::of(b"the component", Metering::Off);
    let tool = kitbag_contract::ToolDescription { name: "tool".into(), ..Default::default() };
    let description = Description { tools: vec![tool], ..Description::default() };
    cache.store(key, ARTIFACT, Some(&description)).unwrap();
    (parent, cache, key)
}

fn entry_path(cache: &DiskCache, key: Key) -> PathBuf {
    cache.path().join(key.file_name())
}

/// Damages the entry in some way and checks that it is not trusted.
fn check(damage: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    damage(&entry_path(&cache, key));
    match cache.load(key) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{:?}", other.map(|entry| entry.map(|entry| entry.bytes))),
    }
    // What replaces it is trusted again.
    cache.store(key, ARTIFACT, None).unwrap();
    assert!(cache.load(key).unwrap().is_some());
}

/// Spoils the directory in some way and checks that it is not used.
fn check_directory(spoil: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    spoil(cache.path());
    for result in [cache.load(key).map(|_| ()), cache.store(key, ARTIFACT, None)] {
        match result {
            Err(CacheProblem::Directory { reason, .. }) => assert_eq!(reason, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_stored_is_loaded() {
    let (_parent, cache, key) = fixture();
    let entry = cache.load(key).unwrap().unwrap();
    assert_eq!(entry.artifact().bytes(), ARTIFACT);
    assert_eq!(entry.description.unwrap().tools[0].name, "tool");
    assert!(cache.load(Key::of(b"another component", Metering::Off)).unwrap().is_none());
}

#[test]
fn the_directory_and_its_entries_are_for_the_owner_alone() {
    let (_parent, cache, key) = fixture();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cache.path()), 0o700);
    assert_eq!(mode(&entry_path(&cache, key)), 0o600);
}

#[test]
fn an_entry_under_the_name_of_another_is_not_trusted() {
    let (_parent, cache, key) = fixture();
    let other = Key::of(b"another component", Metering::Off);
    fs::copy(entry_path(&cache, key), entry_path(&cache, other)).unwrap();
    match cache.load(other) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, "damaged"),
        _ => panic!("trusted"),
    }
}

#[test]
fn a_truncated_entry_is_not_trusted() {
    for length in [0, 7, HEADER - 1, HEADER, HEADER + 3] {
        let cut = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..length]).unwrap();
        };
        check(cut, "damaged");
    }
}

#[test]
fn an_entry_with_one_bit_changed_is_not_trusted() {
    let (_parent, cache, key) = fixture();
    let length = fs::metadata(entry_path(&cache, key)).unwrap().len();
    for index in 0..usize::try_from(length).unwrap() {
        let flip = |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[index] ^= 1;
            fs::write(path, bytes).unwrap();
        };
        check(flip, if index < MAGIC.len() { "foreign" } else { "damaged" });
    }
}

#[test]
fn an_entry_of_another_layout_is_not_trusted() {
    check(|path| fs::write(path, [b"kitbag\x00\x02", &[0; 100][..]].concat()).unwrap(), "foreign");
    check(|path| fs::write(path, [ARTIFACT, &[0; 100]].concat()).unwrap(), "foreign");
}

#[test]
fn an_entry_that_others_can_write_is_not_trusted() {
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap();
    check(open, "writable by others (mode 622)");
}

#[test]
fn a_link_a_directory_and_a_fifo_are_no_entries() {
    check(
        |path| {
            fs::rename(path, path.with_extension("elsewhere")).unwrap();
            symlink(path.with_extension("elsewhere"), path).unwrap();
        },
        "a symbolic link",
    );
    check_unreplaced(|path| fs::create_dir(path).unwrap(), "of another kind");
    check(
        |path| {
            fs::remove_file(path).unwrap();
            let fifo = FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        },
        "of another kind",
    );
}

/// As `check`, for what a file cannot replace.
fn check_unreplaced(damage: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    let path = entry_path(&cache, key);
    fs::remove_file(&path).unwrap();
    damage(&path);
    match cache.load(key) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{:?}", other.map(|entry| entry.is_some())),
    }
    assert!(matches!(cache.store(key, ARTIFACT, None), Err(CacheProblem::Write { .. })));
}

#[test]
fn a_directory_that_is_open_to_others_is_not_used() {
    let chmod = |mode| {
        move |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
    };
    let advice = "make it yours alone with `chmod 700`, or name another";
    check_directory(chmod(0o777), &format!("it is writable by others (mode 777); {advice}"));
    check_directory(chmod(0o755), &format!("it is open to others (mode 755); {advice}"));
}

#[test]
fn a_link_to_a_directory_is_not_used() {
    check_directory(
        |path| {
            fs::rename(path, path.with_extension("elsewhere")).unwrap();
            symlink(path.with_extension("elsewhere"), path).unwrap();
        },
        "it is a symbolic link or no directory; name a directory",
    );
}

#[test]
fn the_key_depends_on_the_content() {
    assert!(Key::of(b"a", Metering::Off) != Key::of(b"b", Metering::Off));
    assert!(Key::of(b"a", Metering::Off) != Key::of(b"a", Metering::Fuel));
    assert_eq!(Key::of(b"a", Metering::Off).to_string().len(), 64);
}

#[test]
fn clearing_removes_our_files_and_no_others() {
    let (_parent, cache, _) = fixture();
    fs::write(cache.path().join(format!("{PARTIAL}1-1")), "left behind").unwrap();
    fs::write(cache.path().join("letter.txt"), "mine").unwrap();
    assert_eq!(cache.entries().unwrap().len(), 1);
    assert_eq!(cache.clear().unwrap().len(), 2);
    assert_eq!(cache.entries().unwrap().len(), 0);
    assert!(cache.path().join("letter.txt").exists());
}

#[test]
fn what_a_killed_process_left_does_not_stand_in_the_way() {
    let (_parent, cache, key) = fixture();
    for number in 0..1_000 {
        let name = format!("{PARTIAL}{}-{number}", std::process::id());
        fs::write(cache.path().join(name), "half").unwrap();
    }
    cache.store(key, ARTIFACT, None).unwrap();
    assert!(cache.load(key).unwrap().is_some());
}

#[test]
fn a_cache_that_does_not_exist_is_empty() {
    let parent = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(parent.path().join("none"));
    assert!(cache.load(Key::of(b"x", Metering::Off)).unwrap().is_none());
    assert_eq!(cache.entries().unwrap(), []);
    assert_eq!(cache.clear().unwrap(), []);
    assert!(!cache.path().exists());
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o500).create(cache.path()).unwrap();
    assert!(cache.load(Key::of(b"x", Metering::Off)).unwrap().is_none());
}
