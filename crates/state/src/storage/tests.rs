use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::WorkspaceState;
use kitbag_base::ByteSize;
use kitbag_policy::StorageGrant;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// A state directory that does not exist yet.
struct Fixture {
    _directory: TempDir,
    state: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("a/state");
        Self { _directory: directory, state }
    }

    fn storage(&self) -> Storage {
        Storage::new(&self.state, Path::new("/w"))
    }

    /// Returns the file of the workspace.
    fn file(&self) -> PathBuf {
        let workspaces = self.state.join("workspaces");
        workspaces.read_dir().unwrap().next().unwrap().unwrap().path().join("storage.db")
    }
}

fn grant(bytes: u64, keys: u64) -> StorageGrant {
    StorageGrant::new(Some(ByteSize::bytes(bytes)), Some(keys)).unwrap()
}

fn sized(storage: &Storage, tool: &str, bytes: u64, keys: u64) -> Namespace {
    storage.namespace(tool, grant(bytes, keys), ByteSize::mib(16), None)
}

fn namespace(storage: &Storage, tool: &str) -> Namespace {
    storage.namespace(tool, StorageGrant::default(), ByteSize::mib(16), None)
}

fn all_keys(namespace: &Namespace) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let page = namespace.list_keys(cursor).unwrap();
        keys.extend(page.keys);
        match page.cursor {
            Some(next) => cursor = Some(next),
            None => return keys,
        }
    }
}

#[test]
fn values_exist_until_deleted() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    let notes = namespace(&storage, "notes");
    assert!(!fixture.state.exists(), "nothing is created before the first use");
    assert_eq!(notes.get("a").unwrap(), None);
    notes.set("a", b"1").unwrap();
    notes.set("a", &[0, 255]).unwrap();
    notes.set("é/ü", b"").unwrap();
    assert_eq!(notes.get("a").unwrap(), Some(vec![0, 255]));
    assert!(notes.exists("é/ü").unwrap() && !notes.exists("b").unwrap());
    // Another process reads the same values.
    let notes = namespace(&fixture.storage(), "notes");
    assert_eq!(notes.get("é/ü").unwrap(), Some(Vec::new()));
    assert_eq!(all_keys(&notes), ["a", "é/ü"]);
    notes.delete("a").unwrap();
    notes.delete("a").unwrap();
    assert_eq!(notes.get("a").unwrap(), None);
    let usage = Usage { tool: "notes".into(), keys: 1, bytes: ByteSize::bytes(5) };
    assert_eq!(storage.usage("notes").unwrap(), usage);
}

#[test]
fn tools_and_workspaces_are_separate() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    namespace(&storage, "a").set("k", b"of a").unwrap();
    let b = namespace(&storage, "b");
    assert_eq!(b.get("k").unwrap(), None);
    assert_eq!(b.list_keys(None).unwrap(), Keys::default());
    b.set("k", b"of b").unwrap();
    b.delete_many(&["k", "other"]).unwrap();
    assert_eq!(namespace(&storage, "a").get("k").unwrap(), Some(b"of a".to_vec()));
    let other = Storage::new(&fixture.state, Path::new("/w2"));
    assert_eq!(namespace(&other, "a").get("k").unwrap(), None);
    let names: Vec<_> = storage.namespaces().unwrap().into_iter().map(|it| it.tool).collect();
    assert_eq!(names, ["a"], "a tool without data is omitted");
}

#[test]
fn cursors_are_limited_to_one_tool() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    let (a, b) = (namespace(&storage, "a"), namespace(&storage, "b"));
    let entries: Vec<_> = (0..1500).map(|number| (format!("k{number}"), b"")).collect();
    a.set_many(&entries).unwrap();
    b.set_many(&entries).unwrap();
    let page = b.list_keys(None).unwrap();
    assert_eq!((page.keys.len(), page.cursor), (1000, Some(1000)));
    // Concurrent removals do not shift the pages.
    b.delete_many(&["k0", "k1200"]).unwrap();
    let rest = b.list_keys(page.cursor).unwrap();
    assert_eq!((rest.keys.len(), rest.cursor), (499, None));
    assert_eq!(rest.keys[0], "k1000");
    for cursor in [1500, 1 << 40, (1 << 40) - 1, u64::MAX, i64::MAX as u64] {
        assert_eq!(a.list_keys(Some(cursor)).unwrap(), Keys::default(), "{cursor}");
    }
}

#[test]
fn keys_have_1_to_1024_bytes() {
    let fixture = Fixture::new();
    let notes = namespace(&fixture.storage(), "notes");
    notes.set(&"k".repeat(KEY_BYTES), b"").unwrap();
    for key in [String::new(), "k".repeat(KEY_BYTES + 1)] {
        let error = Err(StorageError::Key { bytes: key.len() });
        assert_eq!(notes.get(&key).map(drop), error);
        assert_eq!(notes.set(&key, b""), error);
        assert_eq!(notes.exists(&key).map(drop), error);
        assert_eq!(notes.delete(&key), error);
        assert_eq!(notes.increment(&key, 1).map(drop), error);
        assert_eq!(notes.get_many(&["a", &key]).map(drop), error);
        assert_eq!(notes.set_many(&[("a", b""), (&key, b"")]), error);
        assert_eq!(notes.delete_many(&["a", &key]), error);
    }
    assert!(!notes.exists("a").unwrap());
}

#[test]
fn quotas_are_enforced_and_named() {
    let fixture = Fixture::new();
    let notes = sized(&fixture.storage(), "notes", 10, 3);
    let refused = |result: Result<(), StorageError>, expected: &str, line: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.missing().unwrap().entry, line);
    };
    let more_bytes = "storage = { quota = \"20 bytes\", keys = 3 }";
    notes.set("a", b"12345678").unwrap();
    let expected =
        "the storage is full: 9 bytes of 10 bytes are used, and this would need 11 bytes";
    refused(notes.set("b", b"1"), expected, more_bytes);
    refused(notes.set("a", b"1234567890"), expected, more_bytes);
    let expected =
        "the storage is full: 9 bytes of 10 bytes are used, and this would need 50 bytes";
    let line = "storage = { quota = \"80 bytes\", keys = 3 }";
    refused(notes.set("b", &[0; 40]), expected, line);
    // Replacing a larger value succeeds.
    notes.set_many(&[("b", "1"), ("a", "1")]).unwrap();
    notes.set("c", b"").unwrap();
    let expected = "the storage is full: 3 of 3 keys are used, and this would need 4";
    refused(notes.set("d", b""), expected, "storage = { quota = \"10 bytes\", keys = 6 }");
    refused(
        notes.increment("d", 1).map(drop),
        expected,
        "storage = { quota = \"10 bytes\", keys = 6 }",
    );
    notes.delete("c").unwrap();
    notes.set("d", b"").unwrap();
    // With a grant below the existing data, it can only shrink.
    let less = sized(&fixture.storage(), "notes", 2, 1);
    assert!(less.set("a", b"12").is_err());
    less.set("a", b"").unwrap();
    less.delete("b").unwrap();
    assert_eq!(all_keys(&notes), ["a", "d"]);
}

#[test]
fn several_values_are_set_atomically() {
    let fixture = Fixture::new();
    let notes = sized(&fixture.storage(), "notes", 10, 3);
    notes.set("a", b"1").unwrap();
    assert!(notes.set_many(&[("b", "12"), ("a", "12345"), ("c", "1234")]).is_err());
    assert_eq!(all_keys(&notes), ["a"]);
    assert_eq!(notes.get("a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(fixture.storage().usage("notes").unwrap().bytes, ByteSize::bytes(2));
    // The last value of a repeated key is used.
    notes.set_many(&[("b", "12345"), ("b", "1")]).unwrap();
    let got = notes.get_many(&["b", "x", "a", "b"]).unwrap();
    let entry = |key: &str, value: &[u8]| Some((key.to_owned(), value.to_vec()));
    assert_eq!(got, [entry("b", b"1"), None, entry("a", b"1"), entry("b", b"1")]);
    assert_eq!(fixture.storage().usage("notes").unwrap().bytes, ByteSize::bytes(4));
}

#[test]
fn increments_use_decimal_digits() {
    let fixture = Fixture::new();
    let notes = namespace(&fixture.storage(), "notes");
    assert_eq!(notes.increment("n", 5), Ok(5));
    assert_eq!(notes.increment("n", 0), Ok(5));
    assert_eq!(notes.get("n").unwrap(), Some(b"5".to_vec()));
    notes.set("n", b"18446744073709551614").unwrap();
    assert_eq!(notes.increment("n", 1), Ok(u64::MAX));
    assert!(matches!(notes.increment("n", 1), Err(StorageError::Number { .. })));
    for value in ["", " 1", "1\n", "-1", "1.0", "18446744073709551616", "\u{661}"] {
        notes.set("n", value.as_bytes()).unwrap();
        let error = notes.increment("n", 1).unwrap_err();
        assert_eq!(error.to_string(), "the value of `n` is not a number", "{value:?}");
        assert_eq!(notes.get("n").unwrap(), Some(value.as_bytes().to_vec()));
    }
}

#[test]
fn results_are_bounded() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    namespace(&storage, "notes").set("large", &[7; 6000]).unwrap();
    let notes = storage.namespace("notes", StorageGrant::default(), ByteSize::bytes(10_000), None);
    assert_eq!(notes.get_many(&["large"]).unwrap().len(), 1);
    let limit = ByteSize::bytes(10_000);
    // A repeated value would use unlimited memory of the host.
    assert_eq!(notes.get_many(&["large"; 2]), Err(StorageError::Answer { limit }));
    let many = vec!["large"; ANSWER_KEYS + 1];
    let count = many.len();
    assert_eq!(notes.get_many(&many), Err(StorageError::TooManyKeys { count }));
    assert_eq!(notes.delete_many(&many), Err(StorageError::TooManyKeys { count }));
    let entries = vec![("large", ""); count];
    assert_eq!(notes.set_many(&entries), Err(StorageError::TooManyKeys { count }));
    let small = storage.namespace("notes", StorageGrant::default(), ByteSize::bytes(5999), None);
    let limit = ByteSize::bytes(5999);
    assert_eq!(small.get("large"), Err(StorageError::Answer { limit }));
    // A page of keys is bounded as well.
    let keys: Vec<_> = (0..20).map(|number| (format!("{number:01000}"), "")).collect();
    namespace(&storage, "notes").set_many(&keys).unwrap();
    assert!(notes.list_keys(None).unwrap().keys.len() < 11);
    assert_eq!(all_keys(&notes).len(), 21);
}

#[test]
fn database_files_are_private() {
    let fixture = Fixture::new();
    let notes = namespace(&fixture.storage(), "notes");
    notes.set("a", b"1").unwrap();
    let directory = fixture.file().parent().unwrap().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for name in ["storage.db", "storage.db-wal", "storage.db-shm"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
}

/// Changes the file of a storage and returns the error of the next operation.
#[track_caller]
fn failure(change: impl FnOnce(&Path)) -> StorageError {
    let fixture = Fixture::new();
    {
        let notes = namespace(&fixture.storage(), "notes");
        for number in 0..500 {
            notes.set(&format!("k{number}"), &[7; 100]).unwrap();
        }
    }
    change(&fixture.file());
    let before = fs::symlink_metadata(fixture.file()).map(|it| it.len()).ok();
    let storage = fixture.storage();
    let notes = namespace(&storage, "notes");
    let error = notes.get("k499").unwrap_err();
    assert!(notes.set("k499", b"new").is_err());
    assert!(storage.namespaces().is_err());
    assert!(storage.clear("notes").is_err());
    let after = fs::symlink_metadata(fixture.file()).map(|it| it.len()).ok();
    assert_eq!(before, after, "nothing is created in its place");
    error
}

#[test]
fn damaged_files_are_errors() {
    let check = |change: &dyn Fn(&Path), expected: &str| {
        let error = failure(change);
        assert!(matches!(error, StorageError::Damaged { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("/storage.db` is damaged: "), "{text}");
        assert!(text.contains("restore it, or move it away"), "{text}");
        assert_eq!(error.for_tool(), "the storage is damaged");
    };
    check(&|file| fs::write(file, "").unwrap(), "it is empty");
    check(&|file| fs::write(file, "no database").unwrap(), "not a database");
    check(&|file| fs::write(file, [0; 8192]).unwrap(), "not a database");
    // Only the first page, and half of the pages.
    check(&|file| truncate(file, 4096), "malformed");
    check(&|file| truncate(file, fs::metadata(file).unwrap().len() / 2), "malformed");
    check(&|file| truncate(file, 100), "");
    check(
        &|file| {
            let mut content = fs::read(file).unwrap();
            content[4096..].fill(0xa5);
            fs::write(file, content).unwrap();
        },
        "malformed",
    );
    check(
        &|file| alter(file, "PRAGMA user_version = 2"),
        "it has format 2 of a different kitbag version",
    );
    check(&|file| alter(file, "PRAGMA application_id = 7"), "another program's database");
    check(&|file| alter(file, "DROP TABLE entries"), "no such table: entries");
    check(
        &|file| {
            fs::remove_file(file).unwrap();
            fs::write(file.with_extension("db-wal"), "left").unwrap();
        },
        "it is missing, but `storage.db-wal` exists",
    );
}

fn truncate(file: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

fn alter(file: &Path, text: &str) {
    rusqlite::Connection::open(file).unwrap().execute_batch(text).unwrap();
}

#[test]
fn storage_open_to_others_is_not_used() {
    let unusable = |change: &dyn Fn(&Path), expected: &str| {
        let error = failure(change);
        assert!(matches!(error, StorageError::Unusable(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.for_tool(), "the storage cannot be used");
    };
    let mode = |mode| fs::Permissions::from_mode(mode);
    unusable(&|file| fs::set_permissions(file, mode(0o620)).unwrap(), "mode 620");
    let directory = |file: &Path| file.parent().unwrap().to_owned();
    unusable(&|file| fs::set_permissions(directory(file), mode(0o750)).unwrap(), "mode 750");
    unusable(
        &|file| {
            fs::rename(file, file.with_extension("else")).unwrap();
            symlink(file.with_extension("else"), file).unwrap();
        },
        "it is not a file",
    );
    unusable(
        &|file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        },
        "it is not a file",
    );
}

#[test]
fn moved_files_are_replaced_by_new_ones() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    let notes = namespace(&storage, "notes");
    notes.set("a", b"1").unwrap();
    let directory = fixture.file().parent().unwrap().to_owned();
    let away = directory.join("away");
    fs::create_dir(&away).unwrap();
    let files = ["storage.db", "storage.db-wal", "storage.db-shm"];
    // Without the files next to it, the database would be a mixture.
    fs::rename(directory.join(files[0]), away.join(files[0])).unwrap();
    assert!(matches!(notes.get("a"), Err(StorageError::Damaged { .. })));
    for name in &files[1..] {
        fs::rename(directory.join(name), away.join(name)).unwrap();
    }
    assert_eq!(notes.get("a").unwrap(), None);
    notes.set("b", b"2").unwrap();
    // The old database is complete.
    for name in files {
        fs::rename(directory.join(name), directory.join(format!("new-{name}"))).ok();
        fs::rename(away.join(name), directory.join(name)).ok();
    }
    assert_eq!(notes.get("a").unwrap(), Some(b"1".to_vec()));
    assert_eq!(notes.get("b").unwrap(), None);
}

#[test]
fn partially_created_files_are_ignored() {
    let fixture = Fixture::new();
    let state = WorkspaceState::new(&fixture.state, Path::new("/w"));
    // The state after a process was killed while it created the file.
    let directory = state.make().unwrap();
    fs::write(directory.join(".storage.db"), "half").unwrap();
    fs::write(directory.join(".storage.db-wal"), "half").unwrap();
    let notes = namespace(&fixture.storage(), "notes");
    notes.set("a", b"1").unwrap();
    assert!(!directory.join(".storage.db").exists());
}

#[test]
fn operations_wait_no_longer_than_their_call() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    namespace(&storage, "notes").set("a", b"1").unwrap();
    let mut other = rusqlite::Connection::open(fixture.file()).unwrap();
    let transaction = namespace::begin(&mut other).unwrap();
    let over = Some(Instant::now());
    let hurried = storage.namespace("notes", StorageGrant::default(), ByteSize::mib(1), over);
    assert_eq!(hurried.set("a", b"2"), Err(StorageError::Busy));
    assert_eq!(hurried.get("a").unwrap(), Some(b"1".to_vec()), "readers do not wait");
    drop(transaction);
    let later = Some(Instant::now() + Duration::from_secs(60));
    let patient = storage.namespace("notes", StorageGrant::default(), ByteSize::mib(1), later);
    patient.set("a", b"2").unwrap();
}

#[test]
fn full_disks_are_reported_and_lose_nothing() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    let notes = namespace(&storage, "notes");
    notes.set("a", b"1").unwrap();
    // SQLite reports the same error if the number of pages is limited.
    let full = storage.0.with(None, |connection| {
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok(connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    });
    full.unwrap();
    let error = notes.set_many(&[("a", &vec![0; 100_000]), ("b", &Vec::new())]).unwrap_err();
    assert!(matches!(error, StorageError::DiskFull { .. }), "{error:?}");
    assert_eq!(error.for_tool(), "the disk is full");
    assert_eq!(notes.get("a").unwrap(), Some(b"1".to_vec()));
    assert!(!notes.exists("b").unwrap());
}

#[test]
fn cleared_data_is_removed_from_the_file() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    let secret = b"a value that no other tool has".repeat(300);
    for tool in ["a", "b"] {
        namespace(&storage, tool).set("k", &secret).unwrap();
    }
    namespace(&storage, "b").set("k", b"other").unwrap();
    let nothing = Usage { tool: "c".into(), keys: 0, bytes: ByteSize::default() };
    assert_eq!(storage.clear("c").unwrap(), nothing);
    let bytes = ByteSize::bytes(secret.len() as u64 + 1);
    assert_eq!(storage.clear("a").unwrap(), Usage { tool: "a".into(), keys: 1, bytes });
    assert_eq!(namespace(&storage, "a").get("k").unwrap(), None);
    assert_eq!(namespace(&storage, "b").get("k").unwrap(), Some(b"other".to_vec()));
    // The namespace can be used again.
    namespace(&storage, "a").set("k", b"1").unwrap();
    let other = Fixture::new();
    assert_eq!(other.storage().clear("a").unwrap().keys, 0);
    assert!(!other.state.exists(), "nothing is created for it");
}

#[test]
fn cleared_values_are_overwritten() {
    let fixture = Fixture::new();
    let storage = fixture.storage();
    namespace(&storage, "a").set("k", &b"wherewithal".repeat(3000)).unwrap();
    storage.clear("a").unwrap();
    let directory = fixture.file().parent().unwrap().to_owned();
    for entry in directory.read_dir().unwrap() {
        let content = fs::read(entry.unwrap().path()).unwrap();
        assert!(!content.windows(11).any(|window| window == b"wherewithal"));
    }
}

#[derive(Clone, Debug)]
enum Use {
    Set(Vec<(u8, usize)>),
    Delete(Vec<u8>),
    Increment(u8),
}

fn uses() -> impl Strategy<Value = Use> {
    let key = 0_u8..6;
    prop_oneof![
        prop::collection::vec((key.clone(), 0_usize..30), 0..4).prop_map(Use::Set),
        prop::collection::vec(key.clone(), 0..4).prop_map(Use::Delete),
        key.prop_map(Use::Increment),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After any operations, the totals match a plain model and never exceed the quota.
    #[test]
    fn totals_match_the_plain_model(uses in prop::collection::vec(uses(), 1..40)) {
        let fixture = Fixture::new();
        let storage = fixture.storage();
        let notes = sized(&storage, "notes", 60, 4);
        let mut model = std::collections::BTreeMap::<String, Vec<u8>>::new();
        for one in uses {
            let mut next = model.clone();
            let is_done = match one {
                Use::Set(entries) => {
                    let value = |length| vec![b'x'; length];
                    let entries = entries.into_iter();
                    let entries: Vec<_> = entries.map(|(k, l)| (k.to_string(), value(l))).collect();
                    next.extend(entries.iter().cloned());
                    notes.set_many(&entries).is_ok()
                }
                Use::Delete(keys) => {
                    let keys: Vec<_> = keys.iter().map(u8::to_string).collect();
                    next.retain(|key, _| !keys.contains(key));
                    notes.delete_many(&keys).is_ok()
                }
                Use::Increment(key) => {
                    let key = key.to_string();
                    let number = next.get(&key).map_or(Some(0_u64), |value| {
                        std::str::from_utf8(value).unwrap().parse().ok()
                    });
                    if let Some(number) = number {
                        next.insert(key.clone(), (number + 1).to_string().into_bytes());
                    }
                    notes.increment(&key, 1).is_ok()
                }
            };
            let bytes = |model: &std::collections::BTreeMap<String, Vec<u8>>| {
                model.iter().map(|(key, value)| size_of_entry(key, value)).sum::<u64>()
            };
            if is_done {
                model = next;
            } else {
                let fits = bytes(&next) <= 60 && next.len() <= 4;
                prop_assert!(!fits || next == model, "it was refused");
            }
            let usage = storage.usage("notes").unwrap();
            prop_assert_eq!((usage.keys, usage.bytes.as_u64()), (model.len() as u64, bytes(&model)));
            prop_assert!(usage.bytes.as_u64() <= 60 && usage.keys <= 4);
        }
        let mut keys = all_keys(&notes);
        keys.sort();
        let expected: Vec<_> = model.keys().cloned().collect();
        prop_assert_eq!(keys, expected);
    }
}

fn size_of_entry(key: &str, value: &[u8]) -> u64 {
    key.len() as u64 + value.len() as u64
}
