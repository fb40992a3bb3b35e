use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;

const START: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn rates(text: &str) -> Rates {
    text.parse().unwrap()
}

fn counted<'a>(rates: &'a Rates, tool: &'a str) -> RatedTool<'a> {
    RatedTool { rates, tool }
}

/// Creates a state directory that does not exist yet, and the counters of a workspace in it.
fn state() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("a/state");
    (directory, state)
}

fn counts(state: &Path) -> Counts {
    Counts::in_directory(state, Path::new("/w"))
}

/// Returns the directory of the workspace's part.
fn part(state: &Path) -> PathBuf {
    state.join("workspaces").read_dir().unwrap().next().unwrap().unwrap().path()
}

/// Returns how many of 20 calls pass.
fn passed(counts: &Counts, rates: &Rates, tool: &str, caller: &str, now: u64) -> usize {
    (0..20).filter(|_| counts.take_at(&[RatedTool { rates, tool }], caller, now).is_ok()).count()
}

#[track_caller]
fn refused(counts: &Counts) -> String {
    let error = counts.take_at(&[counted(&rates("1/min"), "t")], "c", START).unwrap_err();
    assert!(matches!(error, TakeError::Counts(_)), "{error}");
    error.to_string()
}

#[test]
fn tools_and_callers_are_counted_separately() {
    let (_directory, state) = state();
    for counts in [Counts::in_memory(), counts(&state)] {
        let rates = rates("3/min");
        assert_eq!(passed(&counts, &rates, "a", "x", START), 3);
        assert_eq!(passed(&counts, &rates, "a", "y", START), 3);
        assert_eq!(passed(&counts, &rates, "b", "x", START), 3);
        // The lengths are part of the hash.
        assert_eq!(passed(&counts, &rates, "ab", "", START), 3);
        assert_eq!(passed(&counts, &rates, "", "ab", START), 3);
        assert_eq!(passed(&counts, &rates, "a", "x", START + 20 * SECOND), 1);
    }
}

#[test]
fn names_of_a_tool_are_counted_together() {
    let (_directory, state) = state();
    for counts in [Counts::in_memory(), counts(&state)] {
        let (shared, own) = (rates("3/min"), rates("2/h"));
        let by_name = || counts.take_at(&[counted(&shared, "fetch")], "c", START);
        let by_alias = || {
            let both = [counted(&own, "get"), counted(&shared, "fetch")];
            counts.take_at(&both, "c", START)
        };
        let refused = |taken: Result<(), TakeError>| match taken.unwrap_err() {
            TakeError::UsedUp { at, used_up } => (at, used_up.rate.to_string()),
            error => panic!("{error}"),
        };
        by_alias().unwrap();
        by_alias().unwrap();
        // Its own rate is exhausted, which does not use the shared rate.
        assert_eq!(refused(by_alias()), (0, "2/h".into()));
        by_name().unwrap();
        assert_eq!(refused(by_name()), (0, "3/min".into()));
        let other = [counted(&own, "other"), counted(&shared, "fetch")];
        assert_eq!(refused(counts.take_at(&other, "c", START)), (1, "3/min".into()));
        assert_eq!(passed(&counts, &own, "other", "c", START), 2);
    }
}

#[test]
fn counters_persist_per_workspace() {
    let (directory, state) = state();
    let rates = rates("3/min");
    assert_eq!(passed(&counts(&state), &rates, "t", "c", START), 3);
    assert_eq!(passed(&counts(&state), &rates, "t", "c", START), 0);
    let other = Counts::in_directory(&state, Path::new("/w2"));
    assert_eq!(passed(&other, &rates, "t", "c", START), 3);
    // The workspace has one path, through any link.
    let (workspace, link) = (directory.path().join("w"), directory.path().join("link"));
    fs::create_dir(&workspace).unwrap();
    symlink(&workspace, &link).unwrap();
    let by = |path: &Path| Counts::in_directory(&state, path);
    assert_eq!(passed(&by(&workspace), &rates, "t", "c", START), 3);
    assert_eq!(passed(&by(&link), &rates, "t", "c", START), 0);
}

#[test]
fn counters_are_written_on_use_and_expire() {
    let (_directory, state) = state();
    let counts = counts(&state);
    assert!(!state.exists());
    counts.take_at(&[counted(&rates("1/s"), "t")], "c", START).unwrap();
    let text = || fs::read_to_string(part(&state).join("rates.json")).unwrap();
    assert!(text().contains("\"s\":"), "{}", text());
    assert!(!text().contains("\"c\""), "no caller is named");
    counts.take_at(&[counted(&rates("1/min"), "other")], "c", START + SECOND).unwrap();
    assert!(!text().contains("\"s\":"), "{}", text());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&part(&state))), (0o700, 0o700));
    assert_eq!(mode(&part(&state).join("rates.json")), 0o600);
}

#[test]
fn concurrent_processes_lose_no_count() {
    const CHILD: &str = "KITBAG_RATES_TEST_STATE";
    let rates = rates("60/d");
    if let Some(state) = std::env::var_os(CHILD) {
        // One of the processes below.
        let counts = counts(Path::new(&state));
        let taken = (0..20).filter(|_| counts.take(&[counted(&rates, "t")], "c").is_ok()).count();
        fs::write(
            Path::new(&state).join(format!("taken-{}", std::process::id())),
            taken.to_string(),
        )
        .unwrap();
        return;
    }
    let (_directory, state) = state();
    let program = std::env::current_exe().unwrap();
    let start = || {
        let mut command = Command::new(&program);
        command.args(["--exact", "tests::concurrent_processes_lose_no_count"]);
        command.env(CHILD, &state).spawn().unwrap()
    };
    fs::create_dir_all(state.parent().unwrap()).unwrap();
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    let own: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let counts = counts(&state);
                    (0..20).filter(|_| counts.take(&[counted(&rates, "t")], "c").is_ok()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let files = state.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let taken =
        files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("taken-"));
    let others: usize =
        taken.map(|path| fs::read_to_string(path).unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(own + others, 60, "of 160 calls as many pass as the rate allows");
}

#[test]
fn partial_files_are_ignored() {
    let (_directory, state) = state();
    counts(&state).take_at(&[counted(&rates("2/min"), "t")], "c", START).unwrap();
    // The state after a process was killed during a write.
    fs::write(part(&state).join(".rates.json"), "{\"ver").unwrap();
    assert_eq!(passed(&counts(&state), &rates("2/min"), "t", "c", START), 1);
}

#[test]
fn unreadable_counters_allow_no_call() {
    let (_directory, state) = state();
    counts(&state).take_at(&[counted(&rates("2/min"), "t")], "c", START).unwrap();
    let file = part(&state).join("rates.json");
    let check = |content: &str, expected: &str| {
        fs::write(&file, content).unwrap();
        let error = refused(&counts(&state));
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("rates.json"), "{error}");
    };
    check("", "remove it to start counting from zero");
    check(
        "{\"version\":1,\"spent\":{\"a\":{\"year\":1}}}",
        "remove it to start counting from zero",
    );
    check("{\"version\":2,\"spent\":{}}", "format 2 of a different kitbag version");
    fs::remove_file(&file).unwrap();
    assert_eq!(passed(&counts(&state), &rates("2/min"), "t", "c", START), 2);
}

#[test]
fn counters_open_to_others_are_not_used() {
    let (directory, state) = state();
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let error = refused(&counts(&state));
    assert!(error.contains("open to others (mode 755); close it with `chmod go= "), "{error}");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    counts(&state).take_at(&[counted(&rates("2/min"), "t")], "c", START).unwrap();
    let file = part(&state).join("rates.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(refused(&counts(&state)).contains("open to others (mode 666)"));
    // A link in place of the file, and of the directory.
    fs::rename(&file, directory.path().join("elsewhere")).unwrap();
    symlink(directory.path().join("elsewhere"), &file).unwrap();
    refused(&counts(&state));
    let link = directory.path().join("link");
    symlink(&state, &link).unwrap();
    assert!(refused(&counts(&link)).contains("not a directory"));
}

#[test]
fn entries_are_bounded_and_expire_in_order() {
    let (mut entries, rates) = (Entries::default(), rates("1/d"));
    for caller in 0..7_u64 {
        entries.take(&[(&rates, caller.to_string())], START + caller, 5).unwrap();
    }
    assert_eq!(entries.0.keys().collect::<Vec<_>>(), ["2", "3", "4", "5", "6"]);
    assert!(entries.take(&[(&rates, "6".into())], START + SECOND, 5).is_err());
}
