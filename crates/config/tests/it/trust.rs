//! Ownership of a workspace's files.

use std::collections::HashSet;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use kitbag_config::{Distrust, Origin, Sourced, load};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::Fixture;

/// A user other than the caller and root.
const STRANGER: u32 = 65534;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a workspace that takes effect, regardless of the umask.
fn fixture() -> Fixture {
    let fixture = Fixture::new("[tools.t]\nsource = \"local\"\nwasm = \"t.wasm\"\n")
        .file("w/.kitbag/tools/u.wasm", "")
        .file("w/.kitbag/tools/u.toml", "");
    for path in ["w", "w/.kitbag", "w/.kitbag/tools"] {
        mode(&fixture.path(path), 0o755);
    }
    for path in ["config.toml", "tools/u.toml", "tools/u.wasm"] {
        mode(&fixture.path("w/.kitbag").join(path), 0o644);
    }
    assert_eq!(tools(&fixture), ["learn", "notes", "t", "u"]);
    fixture
}

fn tools(fixture: &Fixture) -> Vec<String> {
    fixture.load().tools.keys().map(ToString::to_string).collect()
}

/// Checks the message about an ignored workspace.
#[track_caller]
fn check_ignored(fixture: &Fixture, expected: &str) {
    let config = fixture.load();
    let ignored = config.ignored.expect("the workspace is ignored").to_string();
    let way_out =
        ", or add \"/t/w\" to `[trust] directories` in your user config `/t/h/config.toml`";
    assert_eq!(
        fixture.redact(&ignored),
        format!("the configuration in `/t/w/.kitbag` is ignored: {expected}{way_out}")
    );
    assert!(!config.has_workspace);
    assert!(config.files.iter().all(|file| !file.path().starts_with(fixture.path("w"))));
    assert_eq!(tools(fixture), ["learn", "notes"]);
}

#[test]
fn a_workspace_writable_by_all_users_is_ignored() {
    for (path, bits) in [
        ("w", 0o777),
        ("w/.kitbag", 0o777),
        ("w/.kitbag", 0o1777),
        ("w/.kitbag/config.toml", 0o646),
        ("w/.kitbag/tools", 0o757),
        ("w/.kitbag/tools/u.toml", 0o666),
        ("w/.kitbag/tools/u.wasm", 0o777),
    ] {
        let fixture = fixture();
        mode(&fixture.path(path), bits);
        check_ignored(
            &fixture,
            &format!("`/t/{path}` is writable by every user (mode {bits:04o}); use `chmod o-w`"),
        );
    }
}

#[test]
fn a_workspace_writable_by_a_shared_group_is_ignored() {
    // A group that no file of the system uses; only root can give files to it, and an unprivileged
    // process has at most the groups of the machine.
    if !rustix::process::geteuid().is_root() {
        return check_ignored_by_mode_alone();
    }
    let fixture = fixture();
    let path = fixture.path("w/.kitbag/config.toml");
    chown(&path, None, Some(STRANGER - 7)).unwrap();
    assert!(fixture.load().ignored.is_none());
    mode(&path, 0o664);
    check_ignored(
        &fixture,
        "`/t/w/.kitbag/config.toml` is writable by group 65527, which may have other members \
         (mode 0664); use `chmod g-w`",
    );
    // In a sticky root, others cannot replace its entries.
    let fixture = self::fixture();
    chown(fixture.path("w"), None, Some(STRANGER - 7)).unwrap();
    mode(&fixture.path("w"), 0o1775);
    assert!(fixture.load().ignored.is_none());
}

/// Checks the group's write permission without giving a file to a group.
fn check_ignored_by_mode_alone() {
    let fixture = fixture();
    mode(&fixture.path("w/.kitbag/config.toml"), 0o666);
    assert!(fixture.load().ignored.is_some());
}

#[test]
fn a_workspace_of_another_user_is_ignored() {
    if !rustix::process::geteuid().is_root() {
        // Files cannot be given to another user here: the closest case is a workspace that others
        // can write.
        return check_ignored_by_mode_alone();
    }
    for path in [
        "w",
        "w/.kitbag",
        "w/.kitbag/config.toml",
        "w/.kitbag/tools",
        "w/.kitbag/tools/u.toml",
        "w/.kitbag/tools/u.wasm",
    ] {
        let fixture = fixture();
        chown(fixture.path(path), Some(STRANGER), None).unwrap();
        let message = format!("`/t/{path}` belongs to user 65534; make it yours with `chown`");
        check_ignored(&fixture, &message);
    }
    // Another user made a link to the caller's files.
    let fixture = fixture();
    fs::rename(fixture.path("w/.kitbag"), fixture.path("mine")).unwrap();
    symlink("../mine", fixture.path("w/.kitbag")).unwrap();
    assert!(fixture.load().ignored.is_none());
    lchown(fixture.path("w/.kitbag"), Some(STRANGER), None).unwrap();
    check_ignored(&fixture, "`/t/w/.kitbag` belongs to user 65534; make it yours with `chown`");
}

#[test]
fn links_replaceable_by_another_user_are_ignored() {
    for (path, linked) in [
        ("w/.kitbag/config.toml", "../../shared/it"),
        ("w/.kitbag/tools/u.toml", "../../../shared/it"),
        ("w/.kitbag/tools/u.wasm", "../../../shared/it"),
        ("w/.kitbag", "../shared/it"),
    ] {
        let fixture = fixture().directory("shared");
        fs::rename(fixture.path(path), fixture.path("shared/it")).unwrap();
        symlink(linked, fixture.path(path)).unwrap();
        mode(&fixture.path("shared"), 0o755);
        assert!(fixture.load().ignored.is_none(), "{path}");
        mode(&fixture.path("shared"), 0o777);
        let message = "`/t/shared` is writable by every user (mode 0777); use `chmod o-w`";
        check_ignored(&fixture, message);
        mode(&fixture.path("shared"), 0o1777);
        assert!(fixture.load().ignored.is_none(), "{path}");
        // A further link, which others can replace.
        let fixture = fixture.directory("safe");
        fs::rename(fixture.path("shared/it"), fixture.path("safe/it")).unwrap();
        symlink("../safe/it", fixture.path("shared/it")).unwrap();
        mode(&fixture.path("safe"), 0o755);
        assert!(fixture.load().ignored.is_none(), "{path}");
        mode(&fixture.path("shared"), 0o777);
        check_ignored(&fixture, message);
    }
}

#[test]
fn a_workspace_may_be_in_a_sticky_directory() {
    let fixture = fixture();
    mode(&fixture.path("w"), 0o1777);
    assert!(fixture.load().ignored.is_none());
    assert_eq!(tools(&fixture), ["learn", "notes", "t", "u"]);
}

#[test]
fn mistakes_in_ignored_files_are_not_reported() {
    for config in ["[", "unknown = 1", "\u{0}", "[limits]\nmemory = \"1TiB\"\n"] {
        let fixture = Fixture::new(config).file("w/.kitbag/tools/no-component.toml", "[");
        fixture.try_load().unwrap_err();
        mode(&fixture.path("w/.kitbag"), 0o777);
        assert!(fixture.load().ignored.is_some());
    }
    let fixture = Fixture::empty().directory("w/.kitbag/config.toml").user("unknown = 1");
    mode(&fixture.path("w/.kitbag"), 0o777);
    assert_eq!(fixture.problems().lines().count(), 1, "{}", fixture.problems());
}

#[test]
fn a_workspace_trusted_by_name_takes_effect() {
    let check = |directories: &str, expected: bool| {
        let fixture = fixture();
        mode(&fixture.path("w/.kitbag"), 0o777);
        let directories = directories.replace("/t/", fixture.path("").to_str().unwrap());
        let fixture = fixture.directory("h/w").user(&format!("trust.directories = {directories}"));
        assert_eq!(fixture.load().ignored.is_none(), expected, "{directories}");
        assert_eq!(tools(&fixture).len(), if expected { 4 } else { 2 }, "{directories}");
    };
    check("[\"/t/w\"]", true);
    check("[\"/t/none\", \"/t/h/../w/.\"]", true);
    check("[\"~/../w\"]", true);
    check("[]", false);
    // Neither a parent, nor a subdirectory, nor a directory with a similar name.
    check("[\"/t/\", \"/\", \"/t/w/.kitbag\", \"~/w\", \"/t/w*\", \"/t/*\"]", false);
}

#[test]
fn an_ignored_parent_workspace_is_not_the_root() {
    let fixture = fixture().directory("w/mine");
    mode(&fixture.path("w/.kitbag"), 0o777);
    let mut sources = fixture.sources();
    sources.start = fixture.path("w/mine");
    let config = load(&sources).unwrap();
    assert_eq!(config.root, Sourced::default(fixture.path("w/mine")));
    assert_eq!(config.ignored.unwrap().root, fixture.path("w"));
    // A named workspace stays the root.
    sources.workspace =
        Some(Sourced { value: fixture.path("w"), origin: Origin::flag("--workspace") });
    let config = load(&sources).unwrap();
    assert_eq!(config.root.value, fixture.path("w"));
    let ignored = config.ignored.unwrap();
    assert!(matches!(ignored.reason, Distrust::WorldWritable { mode: 0o777 }), "{ignored}");
}

#[test]
fn paths_relative_to_an_ignored_workspace_are_refused() {
    let fixture = fixture().directory("w/notes").directory("h/notes").user(
        "[knowledge.here]\nsubjects = \"notes\"\n[knowledge.home]\nsubjects = \"~/notes\"\n\
         [tools.x]\nsource = \"local\"\nwasm = \"~/x.wasm\"\n\
         grants.filesystem = [{ host = \"notes\", guest = \"/a\", mode = \"rw\" },\n\
         { host = \"~/notes\", guest = \"/b\" }]\n",
    );
    let named = |fixture: &Fixture| {
        let config = fixture.load();
        let topics: Vec<_> = config.topics.keys().cloned().collect();
        (topics, config.tools["x"].grants.value.directories.len())
    };
    assert_eq!(named(&fixture), (vec!["here".to_owned(), "home".to_owned()], 2));
    mode(&fixture.path("w/.kitbag"), 0o777);
    assert_eq!(named(&fixture), (vec!["home".to_owned()], 1));
}

/// Exchanges two files as fast as possible while `load` runs, and returns its result.
fn while_exchanged<T>(a: &Path, b: &Path, load: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let spinning = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).is_err() {
                    return false;
                }
            }
            true
        });
        // The panic is caught so that the other thread ends.
        let result = panic::catch_unwind(AssertUnwindSafe(load));
        is_over.store(true, Ordering::Relaxed);
        assert!(spinning.join().unwrap(), "two files cannot be exchanged here");
        result.unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

#[test]
fn a_file_replaced_by_a_link_while_opening_is_never_shown() {
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI\n";
    let wrong = "[limits]\ntime = \"often\"\n";
    for path in ["config.toml", "tools/u.toml"] {
        let fixture = Fixture::empty()
            .file("w/.kitbag/tools/u.wasm", "")
            .file("h/id", KEY)
            .file(&format!("w/.kitbag/{path}"), wrong);
        let [file, link] = [path, "exchanged"].map(|path| fixture.path("w/.kitbag").join(path));
        symlink(fixture.path("h/id"), &link).unwrap();
        let messages = while_exchanged(&file, &link, || {
            let load = |_| fixture.try_load().map_or_else(|error| error.to_string(), |_| "".into());
            (0..3_000).map(load).collect::<HashSet<String>>()
        });
        let shown: Vec<_> = messages.iter().filter(|text| text.contains("PRIVATE")).collect();
        assert!(shown.is_empty(), "{path}: {shown:?}");
        // It was also read as the original file.
        assert!(messages.iter().any(|text| text.contains("often")), "{path}: {messages:?}");
    }
}

#[test]
fn a_user_file_replaced_while_opening_is_one_of_both() {
    let fixture = Fixture::empty()
        .user("[limits]\ntime = \"7s\"\n")
        .file("h/new", "[limits]\ntime = \"8s\"\n");
    let [file, new] = ["h/config.toml", "h/new"].map(|path| fixture.path(path));
    let seconds = while_exchanged(&file, &new, || {
        let load = |_| fixture.load().limits.time.value.as_secs();
        (0..200).map(load).collect::<HashSet<u64>>()
    });
    assert!(seconds.iter().all(|seconds| [7, 8].contains(seconds)), "{seconds:?}");
}
