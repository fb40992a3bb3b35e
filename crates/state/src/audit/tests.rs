//! The log under attack and failure: lines changed, removed and truncated, processes stopped within
//! a line, concurrent writers, and a full disk.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::audit::log::Pending;

const SMALL: AuditSize = AuditSize { file: 2_000, files: 3 };

struct Place {
    _directory: TempDir,
    state: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let state = directory.path().join("state");
        Self { _directory: directory, state }
    }

    fn log(&self) -> AuditLog {
        AuditLog::new(&self.state, AuditSize::default())
    }

    fn file(&self, number: u64) -> PathBuf {
        self.state.join(format!("audit/audit-{number:06}.jsonl"))
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.file(1)).unwrap().lines().map(str::to_owned).collect()
    }

    /// Rewrites the first file.
    fn replace(&self, lines: &[String]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.file(1), text).unwrap();
    }

    fn add(&self, text: &str) {
        OpenOptions::new()
            .append(true)
            .open(self.file(1))
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn damage(&self) -> Damage {
        match self.log().verify().unwrap_err() {
            AuditError::Damaged { damage } => *damage,
            error => panic!("{error}"),
        }
    }
}

fn call(tool: &str) -> AuditEvent {
    let event = CallEvent {
        head: CallHead { id: "1".into(), tool: tool.into(), ..CallHead::default() },
        outcome: "success".into(),
        ..CallEvent::default()
    };
    AuditEvent::Call(Box::new(event))
}

fn append(log: &AuditLog, tools: &[&str]) {
    let mut records: Vec<_> = tools.iter().map(|tool| Pending::new(call(tool))).collect();
    log.append(&mut records).unwrap();
}

fn tools(log: &AuditLog) -> Vec<String> {
    let mut entries = log.entries().unwrap().unwrap();
    let mut tools = Vec::new();
    while let Some(entry) = entries.next_entry().unwrap() {
        match entry.event {
            AuditEvent::Call(call) => tools.push(call.head.tool),
            AuditEvent::Trust(trust) => tools.push(format!("trust {}", trust.workspace)),
            AuditEvent::Approval(approval) => tools.push(format!("approval {}", approval.tool)),
            AuditEvent::Refusal(refusal) => tools.push(format!("refusal {}", refusal.tool)),
            AuditEvent::Torn { bytes } => tools.push(format!("torn {bytes}")),
            AuditEvent::Unrecorded { lines } => tools.push(format!("unrecorded {lines}")),
            AuditEvent::Lost { lines, .. } => tools.push(format!("lost {lines}")),
            AuditEvent::Start(start) => tools.push(format!("start {}", start.head.tool)),
            AuditEvent::Summary(summary) => tools.push(format!("summary {}", summary.tool)),
            AuditEvent::Removed(removed) => tools.push(format!("removed {}", removed.lines)),
        }
    }
    tools
}

#[test]
fn recorded_events_are_read_and_verified() {
    let place = Place::new();
    let log = place.log();
    assert_eq!(log.verify().unwrap(), None);
    assert!(log.entries().unwrap().is_none());
    assert!(!place.state.exists(), "nothing is created before the first line");
    append(&log, &["a", "b"]);
    append(&place.log(), &["c"]);
    assert_eq!(tools(&log), ["a", "b", "c"]);
    let verified = log.verify().unwrap().unwrap();
    let head = log.head().unwrap().unwrap();
    assert_eq!((verified.lines, verified.open, verified.torn, verified.files), (3, 0, 0, 1));
    assert_eq!((verified.hash, verified.lines), (head.hash, head.lines));
    let first = &place.lines()[0];
    assert!(
        first.starts_with(&format!(r#"{{"n":0,"prev":"{}","time":"2"#, "0".repeat(64))),
        "{first}"
    );
}

#[test]
fn changed_bytes_are_found_in_every_line() {
    let place = Place::new();
    append(&place.log(), &["a", "b", "c"]);
    let lines = place.lines();
    for at in 0..lines.len() {
        // One change leaves the line readable, the other does not.
        for (from, to) in [("success", "succesS"), ("{", "(")] {
            let mut changed = lines.clone();
            changed[at] = changed[at].replacen(from, to, 1);
            place.replace(&changed);
            let damage = place.damage();
            let line = at as u64 + 1;
            let is_named = match &damage {
                Damage::Changed { line: found, .. } | Damage::Foreign { line: found, .. } => {
                    *found == line
                }
                Damage::Last { .. } => line == 3,
                _ => false,
            };
            assert!(is_named, "line {line}, {to}: {damage}");
        }
    }
    place.replace(&lines);
    place.log().verify().unwrap();
}

#[test]
fn removed_lines_are_found() {
    let place = Place::new();
    append(&place.log(), &["a", "b", "c", "d"]);
    let lines = place.lines();
    let mut without = lines.clone();
    // The gap is filled, so that the length is unchanged.
    without.remove(1);
    without.push(" ".repeat(lines[1].len()));
    let missing = Damage::Missing { path: place.file(1), line: 2, lines: 1 };
    place.replace(&without);
    assert_eq!(place.damage(), missing);
    without.pop();
    place.replace(&without);
    assert_eq!(place.damage(), missing);
    let mut exchanged = lines.clone();
    exchanged.swap(1, 2);
    place.replace(&exchanged);
    assert!(matches!(place.damage(), Damage::Missing { line: 2, .. }));
    let mut twice = lines;
    let again = twice[1].clone();
    twice.insert(1, again);
    place.replace(&twice);
    assert!(matches!(place.damage(), Damage::Changed { line: 2, .. }));
}

#[test]
fn truncated_logs_are_found_and_not_continued() {
    let place = Place::new();
    append(&place.log(), &["a", "b", "c"]);
    let lines = place.lines();
    place.replace(&lines[..2]);
    let damage = place.damage();
    let Damage::Cut { line: Some(2), found, expected, .. } = damage else { panic!("{damage}") };
    let error = place.log().append(&mut vec![Pending::new(call("d"))]).unwrap_err();
    let damage = Damage::Cut { path: place.file(1), line: None, found, expected };
    assert_eq!(error, AuditError::Damaged { damage: Box::new(damage) });
    place.replace(&lines);
    fs::remove_file(place.state.join("audit/head.json")).unwrap();
    assert!(matches!(place.damage(), Damage::NoHead { .. }));
    let error = place.log().append(&mut vec![Pending::new(call("d"))]).unwrap_err();
    assert!(error.to_string().contains("to start a new log, move the directory away"), "{error}");
    // A process that was stopped before it wrote the first head has created its file.
    fs::write(place.state.join("audit/head.json"), "").unwrap();
    assert!(matches!(place.damage(), Damage::NoHead { .. }));
    fs::remove_file(place.file(1)).unwrap();
    append(&place.log(), &["a"]);
    assert_eq!(tools(&place.log()), ["a"]);
}

/// Creates a log whose head does not know the last two lines.
fn stopped_before_the_head(place: &Place) {
    append(&place.log(), &["a"]);
    let head = place.state.join("audit/head.json");
    let before = fs::read(&head).unwrap();
    append(&place.log(), &["b", "c"]);
    fs::write(&head, before).unwrap();
}

#[test]
fn lines_after_the_head_are_open() {
    let place = Place::new();
    stopped_before_the_head(&place);
    let verified = place.log().verify().unwrap().unwrap();
    assert_eq!((verified.lines, verified.open), (3, 2));
    append(&place.log(), &["d"]);
    let verified = place.log().verify().unwrap().unwrap();
    assert_eq!((verified.lines, verified.open), (5, 0));
    assert_eq!(tools(&place.log()), ["a", "b", "c", "unrecorded 2", "d"]);
}

#[test]
fn logs_are_continued_from_any_byte_after_the_head() {
    let place = Place::new();
    stopped_before_the_head(&place);
    let (whole, lines) = (fs::read(place.file(1)).unwrap(), place.lines());
    let head = fs::read(place.state.join("audit/head.json")).unwrap();
    for length in lines[0].len() + 1..=whole.len() {
        fs::write(place.file(1), &whole[..length]).unwrap();
        fs::write(place.state.join("audit/head.json"), &head).unwrap();
        let verified = place.log().verify().unwrap().unwrap();
        let is_line = whole[length - 1] == b'\n' || whole.get(length) == Some(&b'\n');
        assert_eq!(verified.torn == 0, is_line, "{length}");
        append(&place.log(), &["d"]);
        let verified = place.log().verify().unwrap().unwrap();
        assert_eq!((verified.open, verified.torn), (0, 0), "{length}");
        let tools = tools(&place.log());
        assert_eq!(tools.last().map(String::as_str), Some("d"), "{length}");
        assert_eq!(tools.iter().any(|tool| tool.starts_with("torn ")), !is_line, "{length}");
    }
}

#[test]
fn repeatedly_torn_lines_are_reported_together() {
    let place = Place::new();
    append(&place.log(), &["a"]);
    // The line that reports this is incomplete as well.
    let torn = "{\"n\":1,\"pr";
    let prev = ChainHash::of(torn.as_bytes()).to_string();
    place.add(&format!("{torn}\n{{\"n\":1,\"prev\":\"{}", &prev[..3]));
    assert_eq!(place.log().verify().unwrap().unwrap().torn, 29);
    append(&place.log(), &["b"]);
    assert_eq!(tools(&place.log()), ["a", "torn 29", "b"]);
    place.log().verify().unwrap();
    // A changed line is not mistaken for an incomplete one.
    let changed: Vec<_> = place.lines().iter().map(|line| line.replace("\"pr", "\"pX")).collect();
    place.replace(&changed);
    place.damage();
}

#[test]
fn foreign_lines_after_the_head_are_refused() {
    let place = Place::new();
    append(&place.log(), &["a", "b"]);
    let other = place.lines()[0].clone();
    place.add(&format!("{other}\n"));
    assert!(matches!(place.damage(), Damage::Changed { line: 2, .. }));
    let error = place.log().append(&mut vec![Pending::new(call("c"))]).unwrap_err();
    assert!(matches!(error, AuditError::Damaged { .. }), "{error}");
}

#[test]
fn the_oldest_files_are_removed() {
    let place = Place::new();
    let log = AuditLog::new(&place.state, SMALL);
    for tool in 0..60 {
        append(&log, &[&format!("tool{tool}")]);
    }
    let verified = log.verify().unwrap().unwrap();
    assert_eq!(verified.files, 3);
    let (_, removed) = verified.removed.clone().unwrap();
    assert!((1..verified.first).contains(&removed.lines), "{removed:?}");
    assert!(!removed.damaged && removed.from <= removed.to && removed.to.is_some(), "{removed:?}");
    // Each new file after the third starts with the line about removed files.
    assert!(verified.first + verified.lines > 60);
    let tools = tools(&log);
    assert_eq!(tools.last().unwrap(), "tool59");
    assert_eq!(tools.len() as u64, verified.lines);
    let first = log::files(&place.state.join("audit"), part::Part::Calls).unwrap()[0];
    // A file in the middle, and the end of a file.
    let path = place.file(first + 1);
    let text = fs::read_to_string(&path).unwrap();
    let last = text.trim_end().rfind('\n').unwrap();
    fs::write(&path, &text[..=last]).unwrap();
    let damage = place.damage();
    assert!(matches!(damage, Damage::Missing { line: 1, lines: 1, .. }), "{damage}");
    let removed = text.lines().count() as u64;
    fs::remove_file(&path).unwrap();
    assert_eq!(place.damage(), Damage::Removed { path: path.clone(), lines: Some(removed) });
    fs::write(&path, text).unwrap();
    log.verify().unwrap();
    // The head knows the line before the oldest file.
    let path = place.file(first);
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lines = Some(text.lines().count() as u64);
    assert_eq!(place.damage(), Damage::Removed { path, lines });
}

#[test]
fn missing_first_lines_are_found() {
    let place = Place::new();
    let log = AuditLog::new(&place.state, SMALL);
    for tool in 0..60 {
        append(&log, &[&format!("tool{tool}")]);
    }
    let first = log::files(&place.state.join("audit"), part::Part::Calls).unwrap()[0];
    let path = place.file(first);
    let text = fs::read_to_string(&path).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    fs::write(&path, rest).unwrap();
    assert_eq!(place.damage(), Damage::Missing { path: path.clone(), line: 1, lines: 1 });
    // A different first line is not accepted, even if it is well-formed.
    let before = &text[text.find("prev").unwrap()..][..71];
    fs::write(&path, text.replacen(before, &before.replace(['0', '1', '2', '3'], "4"), 1)).unwrap();
    assert!(matches!(place.damage(), Damage::Changed { line: 1, .. }));
    // The damage is still known after the file is removed.
    fs::write(&path, rest).unwrap();
    for _ in 0..10 {
        append(&log, &["later"]);
    }
    assert!(log.verify().unwrap().unwrap().removed.unwrap().1.damaged);
}

/// A nested call with a line of about 300 bytes.
fn inner(tool: &str) -> AuditEvent {
    let AuditEvent::Call(call) = call(tool) else { unreachable!() };
    let head = CallHead { parent: Some("1".into()), ..call.head.clone() };
    AuditEvent::Call(Box::new(CallEvent { head, ..*call }))
}

#[test]
fn details_do_not_displace_calls() {
    let place = Place::new();
    let log = AuditLog::new(&place.state, SMALL);
    let refusal = RefusalEvent { tool: "a".into(), times: 1, ..RefusalEvent::default() };
    let trust = TrustEvent { workspace: "/w".into(), ..TrustEvent::default() };
    let approval = ApprovalEvent { tool: "a".into(), ..ApprovalEvent::default() };
    let remembered = ApprovalEvent {
        tool: "b".into(),
        caller: "tool c".into(),
        answer: "remembered".into(),
        ..ApprovalEvent::default()
    };
    let first = [
        AuditEvent::Trust(trust),
        AuditEvent::Approval(Box::new(approval)),
        AuditEvent::Start(Box::new(StartEvent {
            head: CallHead { tool: "a".into(), ..CallHead::default() },
            outermost: None,
        })),
        call("a"),
    ];
    log.append(&mut first.map(Pending::new).into()).unwrap();
    for _ in 0..200 {
        let details = [
            inner("inner"),
            AuditEvent::Refusal(Box::new(refusal.clone())),
            AuditEvent::Approval(Box::new(remembered.clone())),
            AuditEvent::Summary(Box::default()),
        ];
        log.append(&mut details.map(Pending::new).into()).unwrap();
    }
    let verified = log.verify().unwrap().unwrap();
    assert_eq!((verified.lines, verified.first, verified.removed), (4, 0, None));
    let details = verified.details.unwrap();
    assert!(details.files == 2 && details.first > 0, "{details:?}");
    let (_, removed) = details.removed.unwrap();
    assert!(removed.lines > 0 && !removed.damaged, "{removed:?}");
    let tools = tools(&log);
    for kept in ["trust /w", "approval a", "start a", "a"] {
        assert!(tools.iter().any(|tool| tool == kept), "{kept}: {tools:?}");
    }
    // Each chain is verified.
    let path = place.state.join(format!("audit/details-{:06}.jsonl", 2));
    assert!(!path.exists(), "the oldest files are removed");
    let numbers = log::files(&place.state.join("audit"), part::Part::Details).unwrap();
    let path = place.state.join(format!("audit/details-{:06}.jsonl", numbers[0]));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.split_once('\n').unwrap().1).unwrap();
    assert_eq!(place.damage(), Damage::Missing { path, line: 1, lines: 1 });
}

#[test]
fn chains_fail_independently() {
    let place = Place::new();
    let auditor = Auditor::new(place.log(), Syncing::None, Writing::Direct);
    auditor.record(inner("inner"));
    let head = place.state.join("audit/details.json");
    let kept = fs::read(&head).unwrap();
    fs::remove_file(&head).unwrap();
    auditor.record(inner("waits"));
    auditor.record(call("a"));
    assert!(auditor.problem().unwrap().to_string().contains("details.json"));
    fs::write(&head, kept).unwrap();
    assert_eq!(auditor.problem(), None);
    let mut tools = tools(&place.log());
    tools.sort();
    assert_eq!(tools, ["a", "inner", "waits"]);
}

#[test]
fn record_now_writes_immediately() {
    let place = Place::new();
    let auditor = Auditor::new(place.log(), Syncing::Batch, Writing::Background);
    auditor.record_now(call("a"));
    assert_eq!(tools(&place.log()), ["a"]);
}

#[test]
fn lines_of_removed_files_are_counted() {
    let place = Place::new();
    append(&place.log(), &["a", "b", "c"]);
    fs::remove_file(place.file(1)).unwrap();
    let damage = place.damage();
    assert_eq!(damage, Damage::Removed { path: place.file(1), lines: Some(3) });
    assert!(
        damage.to_string().ends_with("audit-000001.jsonl` is missing, with 3 lines"),
        "{damage}"
    );
    // A call neither creates the file again nor writes to another file.
    let error = place.log().append(&mut vec![Pending::new(call("d"))]).unwrap_err();
    assert!(error.to_string().ends_with("audit-000001.jsonl` is missing"), "{error}");
    assert!(!place.file(1).exists());
    assert_eq!(place.damage(), damage);
}

#[test]
fn foreign_text_after_the_head_is_damage() {
    let next = |place: &Place| {
        format!("{{\"n\":2,\"prev\":\"{}\"", place.log().head().unwrap().unwrap().hash)
    };
    type Edit = fn(&str) -> String;
    let cases: [(&str, Edit); 8] = [
        ("a garbage line", |_| "garbage\n".into()),
        ("garbage without an end", |_| "garbage".into()),
        ("an empty line", |_| "\n".into()),
        ("two empty lines", |_| "\n\n".into()),
        ("a blank", |_| " ".into()),
        ("another object", |_| "{}\n".into()),
        ("another number", |next| next.replace("\"n\":2", "\"n\":3")),
        ("another hash", |next| next.replace("prev\":\"", "prev\":\"zz")),
    ];
    for (name, text) in cases {
        let place = Place::new();
        append(&place.log(), &["a", "b"]);
        let text = text(&next(&place));
        place.add(&text);
        let damage = place.damage();
        assert_eq!(damage, Damage::Foreign { path: place.file(1), line: 3 }, "{name}");
        let error = place.log().append(&mut vec![Pending::new(call("c"))]).unwrap_err();
        assert!(matches!(error, AuditError::Damaged { .. }), "{name}: {error}");
    }
}

#[test]
fn empty_lines_are_damage() {
    for at in 0..3 {
        let place = Place::new();
        append(&place.log(), &["a", "b", "c"]);
        let mut lines = place.lines();
        lines.insert(at, String::new());
        place.replace(&lines);
        assert_eq!(place.damage(), Damage::Foreign { path: place.file(1), line: at as u64 + 1 });
    }
}

#[test]
fn forged_lines_are_reported_by_the_next_call() {
    let place = Place::new();
    append(&place.log(), &["a"]);
    let mut end = place.log().head().unwrap().unwrap().end();
    let mut text = String::new();
    for tool in ["forged", "twice"] {
        let record = serde_json::to_string(&call(tool)).unwrap();
        end.push(&mut text, std::time::SystemTime::now(), &record);
    }
    place.add(&text);
    assert_eq!(place.log().verify().unwrap().unwrap().open, 2);
    append(&place.log(), &["b"]);
    assert_eq!(tools(&place.log()), ["a", "forged", "twice", "unrecorded 2", "b"]);
    append(&place.log(), &["c"]);
    assert_eq!(tools(&place.log()).last().unwrap(), "c", "it is reported once");
    assert_eq!(place.log().verify().unwrap().unwrap().open, 0);
}

#[test]
fn added_files_are_damage_and_not_read() {
    let place = Place::new();
    append(&place.log(), &["a"]);
    fs::copy(place.file(1), place.file(7)).unwrap();
    fs::copy(place.file(1), place.state.join("audit/audit-1.jsonl")).unwrap();
    assert_eq!(tools(&place.log()), ["a"]);
    assert_eq!(place.damage(), Damage::Added { path: place.file(7) });
    fs::remove_file(place.file(7)).unwrap();
    place.log().verify().unwrap();
}

#[test]
fn logs_of_0_1_0_are_verified_and_continued() {
    let place = Place::new();
    append(&place.log(), &["a"]);
    for name in ["audit-000001.jsonl", "head.json"] {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/0.1.0").join(name);
        // Not a copy of the file, which would have the mode in the repository.
        fs::write(place.state.join("audit").join(name), fs::read(old).unwrap()).unwrap();
    }
    let verified = place.log().verify().unwrap().unwrap();
    assert_eq!((verified.lines, verified.open, verified.torn), (4, 0, 0));
    append(&place.log(), &["new"]);
    assert_eq!(tools(&place.log()), ["calculate", "calculate", "read_file", "python", "new"]);
    assert_eq!(place.log().verify().unwrap().unwrap().lines, 5);
    let head = place.log().head().unwrap().unwrap();
    assert_eq!(head.lines, 5);
}

#[test]
fn concurrent_writers_lose_no_lines() {
    let place = Place::new();
    thread::scope(|scope| {
        for writer in 0..4 {
            let state: &Path = &place.state;
            scope.spawn(move || {
                let log = AuditLog::new(state, AuditSize { file: 20_000, files: 100 });
                let auditor = Auditor::new(log, Syncing::None, Writing::Background);
                for call_number in 0..250 {
                    auditor.record(call(&format!("{writer}-{call_number}")));
                    if call_number % 50 == 0 {
                        auditor.flush();
                    }
                }
            });
        }
    });
    assert_eq!(place.log().verify().unwrap().unwrap().lines, 1_000);
    let tools = tools(&place.log());
    for writer in 0..4 {
        let prefix = format!("{writer}-");
        let own: Vec<_> = tools.iter().filter_map(|tool| tool.strip_prefix(&prefix)).collect();
        let expected: Vec<_> = (0..250).map(|number| number.to_string()).collect();
        assert_eq!(own, expected, "each writer's lines are in order");
    }
}

#[test]
fn unwritten_lines_wait_and_lost_lines_are_counted() {
    let place = Place::new();
    let auditor = Auditor::new(place.log(), Syncing::None, Writing::Direct);
    auditor.record(call("before"));
    assert_eq!(auditor.problem(), None);
    // A directory in place of the next file simulates a disk that rejects writes.
    let head = place.state.join("audit/head.json");
    let kept = fs::read(&head).unwrap();
    fs::remove_file(&head).unwrap();
    fs::create_dir(&head).unwrap();
    for number in 0..10_005 {
        // Only the first record tries to write, so that the test does not try ten thousand times.
        match number {
            0 => auditor.record(call("first")),
            _ => auditor.queue(call("more")),
        }
    }
    let problem = auditor.problem().expect("it cannot be written");
    assert!(problem.to_string().contains("head.json"), "{problem}");
    fs::remove_dir(&head).unwrap();
    fs::write(&head, kept).unwrap();
    assert_eq!(auditor.problem(), None);
    let tools = tools(&place.log());
    assert_eq!(tools.len(), 1 + 10_000 + 1);
    assert_eq!((&*tools[1], &**tools.last().unwrap()), ("first", "lost 5"));
    place.log().verify().unwrap();
}

#[test]
fn each_line_is_synced_before_its_call_is_answered() {
    let place = Place::new();
    let auditor = Auditor::new(place.log(), Syncing::Each, Writing::Background);
    auditor.record(call("a"));
    assert_eq!(tools(&place.log()), ["a"]);
    // A batch is written by a background thread, and at the end.
    let auditor = Auditor::new(place.log(), Syncing::Batch, Writing::Background);
    auditor.record(call("b"));
    drop(auditor);
    assert_eq!(tools(&place.log()), ["a", "b"]);
}

#[test]
fn readers_see_later_lines() {
    let place = Place::new();
    append(&place.log(), &["a"]);
    let log = place.log();
    let mut entries = log.entries().unwrap().unwrap();
    let mut next = || entries.next_entry().unwrap().map(|entry| entry.number);
    assert_eq!((next(), next()), (Some(0), None));
    append(&log, &["b"]);
    assert_eq!((next(), next()), (Some(1), None));
    let (line, rest) = ("{\"n\":2,\"prev\":\"", "\"}\n");
    place.add(line);
    assert_eq!(next(), None);
    place.add(rest);
    assert_eq!(next(), None, "it is not a line");
}

#[test]
fn every_operation_checks_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let refused = |place: &Place, expected: &str| {
        let written = place.log().append(&mut vec![Pending::new(call("b"))]).unwrap_err();
        let verified = place.log().verify().unwrap_err();
        let read = place.log().entries().unwrap().unwrap().next_entry().unwrap_err();
        for error in [written, verified, read] {
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
    };
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let place = Place::new();
    append(&place.log(), &["a"]);
    mode(&place.file(1), 0o622);
    refused(&place, "open to others (mode 622)");
    mode(&place.file(1), 0o600);
    let elsewhere = place.state.join("elsewhere");
    fs::rename(place.file(1), &elsewhere).unwrap();
    symlink(&elsewhere, place.file(1)).unwrap();
    refused(&place, "symbolic links");
    fs::remove_file(place.file(1)).unwrap();
    fs::rename(elsewhere, place.file(1)).unwrap();
    place.log().verify().unwrap();
    // The head is checked as well.
    mode(&place.state.join("audit/head.json"), 0o666);
    let error = place.log().verify().unwrap_err();
    assert!(error.to_string().contains("open to others (mode 666)"), "{error}");
}
