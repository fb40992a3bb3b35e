use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use rustix::fs::{FileType, Mode};

use super::compile_lock::CompileLock;
use super::entry::TRAILER;
use super::*;
use crate::compile::CompiledCode;
use crate::metering::Metering;
use crate::model::Model;
use crate::wait::{Compiling, Patient, Wait, Waiter};

const ARTIFACT: &[u8] = b"\x7fELF pretends to be native code";

fn artifact() -> CompiledCode {
    CompiledCode::new(ARTIFACT.to_vec(), Model::Basic)
}

fn digest(content: &[u8]) -> ContentDigest {
    digest_of(content).unwrap().0
}

/// Returns the key of a component without metering.
fn key(content: &[u8]) -> Key {
    Key::of(digest(content), Metering::Off, Model::Basic)
}

/// Opens an entry and verifies all of it.
fn load(cache: &DiskCache, key: Key) -> Result<Option<Vec<u8>>, CacheProblem> {
    let Some(entry) = cache.load(key)? else { return Ok(None) };
    let artifact = entry.artifact().map_err(|reason| cache.distrust(key, reason))?;
    Ok(Some(artifact.bytes().to_vec()))
}

/// Creates a private directory with one valid entry.
fn fixture() -> (tempfile::TempDir, DiskCache, Key) {
    let parent = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(parent.path().join("deep/cache"));
    let key = key(b"the component");
    let tool = kitbag_contract::ToolDescription { name: "tool".into(), ..Default::default() };
    let description = kitbag_contract::Description { tools: vec![tool], ..Default::default() };
    cache.store(key, &artifact(), &DescribeResult::Description(description)).unwrap();
    (parent, cache, key)
}

fn entry_path(cache: &DiskCache, key: Key) -> PathBuf {
    cache.path().join(key.file_name())
}

/// Damages the entry and checks that it is not trusted.
fn check(damage: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    let path = entry_path(&cache, key);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    damage(&path);
    match load(&cache, key) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{other:?}"),
    }
    // The entry that replaces it is trusted again.
    cache.store(key, &artifact(), &DescribeResult::Nothing).unwrap();
    assert_eq!(load(&cache, key).unwrap().unwrap(), ARTIFACT);
}

/// Changes the directory and checks that it is not used.
fn check_directory(spoil: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    spoil(cache.path());
    for result in
        [cache.load(key).map(|_| ()), cache.store(key, &artifact(), &DescribeResult::Nothing)]
    {
        match result {
            Err(CacheProblem::Directory { reason, .. }) => assert_eq!(reason, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn stored_entries_are_loaded() {
    let (_parent, cache, stored) = fixture();
    let entry = cache.load(stored).unwrap().unwrap();
    assert_eq!(entry.artifact().unwrap().bytes(), ARTIFACT);
    assert_eq!(entry.described.description().unwrap().tools[0].name, "tool");
    assert!(cache.load(key(b"another component")).unwrap().is_none());
}

#[test]
fn directory_and_entries_are_private() {
    let (_parent, cache, key) = fixture();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cache.path()), 0o700);
    assert_eq!(mode(&entry_path(&cache, key)), 0o400);
}

#[test]
fn entries_under_another_name_are_not_trusted() {
    let (_parent, cache, stored) = fixture();
    let other = key(b"another component");
    fs::copy(entry_path(&cache, stored), entry_path(&cache, other)).unwrap();
    match load(&cache, other) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, "damaged"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn truncated_entries_are_not_trusted() {
    let (_parent, cache, key) = fixture();
    let whole = fs::metadata(entry_path(&cache, key)).unwrap().len() as usize;
    for length in [0, 7, TRAILER - 1, TRAILER, ARTIFACT.len(), whole - TRAILER, whole - 1] {
        let cut = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..length]).unwrap();
        };
        check(cut, "damaged");
    }
}

#[test]
fn modified_entries_are_not_trusted() {
    let (_parent, cache, key) = fixture();
    let length = fs::metadata(entry_path(&cache, key)).unwrap().len();
    for index in 0..usize::try_from(length).unwrap() {
        let flip = |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[index] ^= 1;
            fs::write(path, bytes).unwrap();
        };
        check(flip, "damaged");
    }
}

#[test]
fn damaged_entries_of_any_component_are_listed() {
    let (_parent, cache, one) = fixture();
    let other = key(b"another component");
    let described = DescribeResult::Unusable("none".into());
    cache.store(other, &artifact(), &described).unwrap();
    assert_eq!(cache.damaged().unwrap(), []);
    let path = entry_path(&cache, other);
    let mut content = fs::read(&path).unwrap();
    content[0] ^= 1;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, content).unwrap();
    let names = |entries: Vec<CacheEntry>| entries.into_iter().map(|it| it.name);
    assert!(names(cache.damaged().unwrap()).eq([other.file_name()]));
    fs::set_permissions(entry_path(&cache, one), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(names(cache.damaged().unwrap()).count(), 2);
    // The directory itself is another problem.
    fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(cache.damaged().unwrap(), []);
}

#[test]
fn entries_of_another_layout_are_not_trusted() {
    // The magic of the first layout, which was at the start.
    check(|path| fs::write(path, [b"kitbag\x00\x01", &[0; 200][..]].concat()).unwrap(), "damaged");
    check(|path| fs::write(path, [ARTIFACT, &[0; 200]].concat()).unwrap(), "damaged");
}

#[test]
fn entries_writable_by_others_are_not_trusted() {
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap();
    check(open, "writable by others (mode 622)");
}

#[test]
fn hard_linked_entries_are_not_trusted() {
    let link = |path: &Path| fs::hard_link(path, path.with_extension("second")).unwrap();
    check(link, "hard-linked under another name");
}

#[test]
fn links_directories_and_fifos_are_not_entries() {
    check(
        |path| {
            fs::rename(path, path.with_extension("elsewhere")).unwrap();
            symlink(path.with_extension("elsewhere"), path).unwrap();
        },
        "a symbolic link",
    );
    check_unreplaced(|path| fs::create_dir(path).unwrap(), "of another type");
    check(
        |path| {
            fs::remove_file(path).unwrap();
            let fifo = FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        },
        "of another type",
    );
}

/// As `check`, for objects that a file cannot replace.
fn check_unreplaced(damage: impl FnOnce(&Path), expected: &str) {
    let (_parent, cache, key) = fixture();
    let path = entry_path(&cache, key);
    fs::remove_file(&path).unwrap();
    damage(&path);
    match cache.load(key) {
        Err(CacheProblem::Entry { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{:?}", other.map(|entry| entry.is_some())),
    }
    assert!(matches!(
        cache.store(key, &artifact(), &DescribeResult::Nothing),
        Err(CacheProblem::Write { .. })
    ));
}

#[test]
fn directories_open_to_others_are_not_used() {
    let chmod = |mode| {
        move |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap()
    };
    let advice = "make it private with `chmod 700`, or use another directory";
    check_directory(chmod(0o777), &format!("it is writable by others (mode 777); {advice}"));
    check_directory(chmod(0o755), &format!("it is open to others (mode 755); {advice}"));
}

#[test]
fn links_to_directories_are_not_used() {
    check_directory(
        |path| {
            fs::rename(path, path.with_extension("elsewhere")).unwrap();
            symlink(path.with_extension("elsewhere"), path).unwrap();
        },
        "it is not a directory, or it is a symbolic link",
    );
}

#[test]
fn the_key_depends_on_the_content() {
    let of = |content: &[u8], metering| Key::of(digest(content), metering, Model::Basic);
    let asynchronous = Key::of(digest(b"a"), Metering::Off, Model::Async);
    assert!(asynchronous != of(b"a", Metering::Off));
    assert!(asynchronous != of(b"a", Metering::Fuel));
    assert!(of(b"a", Metering::Off) != of(b"b", Metering::Off));
    assert!(of(b"a", Metering::Off) != of(b"a", Metering::Fuel));
    assert_eq!(key(b"a").to_string().len(), 64);
    assert_eq!(digest_of(&[0; 200_000][..]).unwrap().1, 200_000);
}

#[test]
fn descriptions_are_read_without_the_artifact() {
    let (_parent, cache, key) = fixture();
    let path = entry_path(&cache, key);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(path, bytes).unwrap();
    let entry = cache.load(key).unwrap().unwrap();
    assert_eq!(entry.described.description().unwrap().tools[0].name, "tool");
    assert_eq!(entry.artifact().err(), Some("damaged".into()));
}

/// Creates a private directory with the cached description of a component, and returns the file.
fn remembered() -> (tempfile::TempDir, DiskCache, PathBuf) {
    let (parent, cache, key) = fixture();
    let described = cache.load(key).unwrap().unwrap().described;
    cache.remember(digest(b"the component"), &described).unwrap();
    let path = cache.path().join(format!("{}.description", digest(b"the component")));
    (parent, cache, path)
}

#[test]
fn descriptions_are_cached_without_native_code() {
    let (_parent, cache, path) = remembered();
    fs::remove_file(entry_path(&cache, key(b"the component"))).unwrap();
    let described = cache.remembered(digest(b"the component")).unwrap();
    assert_eq!(described.description().unwrap().tools[0].name, "tool");
    assert_eq!(cache.remembered(digest(b"another component")), None);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400);
    assert_eq!(cache.entries().unwrap(), [], "it is not an entry");
    assert_eq!(cache.clear().unwrap(), []);
    assert!(!path.exists());
}

#[test]
fn missing_descriptions_are_not_cached() {
    let (_parent, cache, _) = fixture();
    let component = digest(b"the component");
    for described in [DescribeResult::Nothing, DescribeResult::Unusable("no".into())] {
        cache.remember(component, &described).unwrap();
        assert_eq!(cache.remembered(component), None);
    }
}

#[test]
fn modified_descriptions_are_not_used() {
    let check = |change: &dyn Fn(&Path)| {
        let (_parent, cache, path) = remembered();
        change(&path);
        assert_eq!(cache.remembered(digest(b"the component")), None);
    };
    let (_parent, _, path) = remembered();
    let content = fs::read(&path).unwrap();
    for index in 0..content.len() {
        let mut changed = content.clone();
        changed[index] ^= 1;
        check(&|path| fs::write(path, &changed).unwrap());
        check(&|path| fs::write(path, &content[..index]).unwrap());
    }
    check(&|path| fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap());
    check(&|path| {
        fs::rename(path, path.with_extension("elsewhere")).unwrap();
        symlink(path.with_extension("elsewhere"), path).unwrap();
    });
    check(&|path| {
        fs::remove_file(path).unwrap();
        let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    });
    check(&|path| {
        let directory = path.parent().unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    });
    // The description of one component under the name of another.
    let (_parent, cache, path) = remembered();
    let other = digest(b"another component");
    fs::copy(&path, cache.path().join(format!("{other}.description"))).unwrap();
    assert_eq!(cache.remembered(other), None);
}

/// Locks the entry of a key, and waits for other processes.
fn lock(cache: &DiskCache, key: Key) -> Option<CompileLock> {
    cache.lock(key, &Wait::new(Path::new("a.wasm"), 0, &Patient, Duration::from_secs(60)))
}

/// Reports the first wait by dropping the sender.
struct Waits(Mutex<Option<Sender<()>>>);

impl Waiter for Waits {
    fn is_over(&self) -> bool {
        false
    }

    fn listens(&self) -> bool {
        true
    }

    fn compiling(&self, _: &Compiling<'_>) {
        drop(self.0.lock().unwrap().take());
    }
}

/// Makes `N` threads wait for the lock of an entry, releases it, and returns how many of them
/// acquired it.
fn locked_by_others<const N: usize>(cache: &DiskCache, key: Key, release: impl FnOnce()) -> usize {
    std::thread::scope(|scope| {
        let others = [(); N].map(|()| {
            let (sender, waits) = channel();
            let other = scope.spawn(move || {
                let waiter = Waits(Mutex::new(Some(sender)));
                let wait = Wait::new(Path::new("a.wasm"), 0, &waiter, Duration::from_secs(60));
                cache.lock(key, &wait).is_some()
            });
            (waits, other)
        });
        // The sender is dropped without sending anything.
        others.iter().for_each(|(waits, _)| assert!(waits.recv().is_err()));
        assert!(others.iter().all(|(_, other)| !other.is_finished()));
        release();
        others.into_iter().map(|(_, other)| usize::from(other.join().unwrap())).sum()
    })
}

/// Returns the names of all files in the cache directory.
fn names(cache: &DiskCache) -> Vec<String> {
    let entries = fs::read_dir(cache.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn entries_are_locked_by_one_process() {
    let (_parent, cache, stored) = fixture();
    let mine = lock(&cache, stored).unwrap();
    assert_eq!(names(&cache), [format!(".lock-{stored}"), stored.file_name()]);
    assert!(lock(&cache, key(b"another component")).is_some(), "of another entry");
    assert_eq!(locked_by_others::<8>(&cache, stored, || drop(mine)), 0);
    // And no lock file is left.
    assert_eq!(names(&cache), [stored.file_name()]);
}

#[test]
fn locks_of_killed_processes_are_released() {
    let (_parent, cache, key) = fixture();
    let killed = File::create(cache.path().join(format!(".lock-{key}"))).unwrap();
    killed.lock().unwrap();
    // The kernel releases the lock but leaves the file.
    assert_eq!(locked_by_others::<4>(&cache, key, || drop(killed)), 1);
    assert_eq!(names(&cache), [key.file_name()]);
}

#[test]
fn processes_without_a_lock_do_not_wait() {
    let check = |plant: &dyn Fn(&Path)| {
        let (parent, cache, key) = fixture();
        let path = cache.path().join(format!(".lock-{key}"));
        plant(&path);
        assert!(lock(&cache, key).is_none());
        assert!(path.symlink_metadata().is_ok(), "another owner's file");
        assert!(!parent.path().join("elsewhere").exists());
    };
    check(&|path| symlink("../../elsewhere", path).unwrap());
    check(&|path| fs::create_dir(path).unwrap());
    check(&|path| {
        let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    });
    check(&|path| {
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o622)).unwrap();
    });
    let nowhere = DiskCache::new("/proc/kitbag".into());
    assert!(lock(&nowhere, key(b"x")).is_none());
}

#[test]
fn locks_end_when_their_file_is_removed() {
    let (_parent, cache, key) = fixture();
    let first = lock(&cache, key).unwrap();
    assert_eq!(cache.clear().unwrap().len(), 1);
    let second = lock(&cache, key).unwrap();
    // The name belongs to the other lock.
    drop(first);
    assert_eq!(names(&cache), [format!(".lock-{key}")]);
    drop(second);
    assert_eq!(names(&cache), [""; 0]);
}

#[test]
fn clearing_removes_only_own_files() {
    let (_parent, cache, stored) = fixture();
    let here = |name: &str| cache.path().join(name);
    let other = key(b"another component");
    fs::write(here(&format!(".lock-{stored}")), "").unwrap();
    fs::write(here(".partial-1-1"), "left behind").unwrap();
    let alien = [
        ".lock-1",
        ".partial-mine",
        "b.kitbag",
        "letter.txt",
        &format!("{}.kitbag", "AB".repeat(32)),
    ];
    alien.iter().for_each(|name| fs::write(here(name), "mine").unwrap());
    // A directory and a link with the names of an entry and a lock.
    fs::create_dir(here(&other.file_name())).unwrap();
    symlink("letter.txt", here(&format!(".lock-{other}"))).unwrap();
    assert_eq!(cache.entries().unwrap().len(), 1);
    assert_eq!(cache.clear().unwrap().len(), 2);
    let mut expected: Vec<_> = alien.map(ToOwned::to_owned).into();
    expected.extend([other.file_name(), format!(".lock-{other}")]);
    expected.sort();
    assert_eq!(names(&cache), expected);
}

#[test]
fn leftovers_of_killed_processes_are_replaced() {
    let (_parent, cache, key) = fixture();
    for number in 0..1_000 {
        let name = format!(".partial-{}-{number}", std::process::id());
        fs::write(cache.path().join(name), "half").unwrap();
    }
    cache.store(key, &artifact(), &DescribeResult::Nothing).unwrap();
    assert!(cache.load(key).unwrap().is_some());
}

#[test]
fn missing_caches_are_empty() {
    let parent = tempfile::tempdir().unwrap();
    let cache = DiskCache::new(parent.path().join("none"));
    assert!(cache.load(key(b"x")).unwrap().is_none());
    assert_eq!(cache.entries().unwrap(), []);
    assert_eq!(cache.clear().unwrap(), []);
    assert!(!cache.path().exists());
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o500).create(cache.path()).unwrap();
    assert!(cache.load(key(b"x")).unwrap().is_none());
}
