//! Reports: a tool that logs and emits endlessly, or emits unusable content.

use serde_json::{Value, json};

use super::Attempts;
use crate::support::{CallInTest, Workspace, block_on, guest, snapshot};

#[test]
fn endless_reports_are_truncated_and_then_dropped() {
    let workspace = Workspace::with_probe("");
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let dropped = "the tool logs more than 1,000 messages or 64 KiB; the rest is dropped";
    let logs = |arguments: Value| {
        let got = kitbag.call_in_test("probe", arguments);
        assert!(got.starts_with("log: "), "{got}");
        heard.take().0
    };
    let many = logs(json!({ "do": "log", "text": "", "repeat": 200_000 }));
    assert_eq!(many.len(), 1001);
    assert_eq!(many[1000].1, dropped);
    let long = logs(json!({ "do": "log", "bytes": 12_000_000 }));
    assert_eq!(long.len(), 1);
    assert_eq!(long[0].1.len(), 4096);
    assert!(long[0].1.ends_with("x\n[cut by kitbag: this message had 12000000 bytes]"));
    let both = logs(json!({ "do": "log", "bytes": 10_000, "repeat": 1000 }));
    assert_eq!(both.len(), 17);
    assert_eq!(both[16].1, dropped);
    let bytes: usize = both[..16].iter().map(|(_, message)| message.len()).sum();
    assert_eq!(bytes, 64 << 10);
    // The next call starts with a full budget.
    assert_eq!(logs(json!({ "do": "log" })).len(), 1);
}

#[test]
fn repeated_runs_share_one_report_budget() {
    let workspace = Workspace::with_probe("[tools.probe.answers]\n\"go-on\" = true\n");
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let flood = json!({ "do": "log", "text": "", "repeat": 600, "then": "ask" });
    assert_eq!(kitbag.call_in_test("probe", flood), "log: 600 info");
    assert_eq!(heard.take().0.len(), 1001);
}

#[test]
fn invalid_progress_is_dropped() {
    let workspace = Workspace::with_probe("");
    let (kitbag, heard) = workspace.kitbag_with_ears();
    let progress = |arguments: Value| {
        let got = kitbag.call_in_test("probe", arguments);
        assert!(got.starts_with("progress: "), "{got}");
        heard.take().1
    };
    let steps = ["NaN", "-NaN", "-1", "-inf", "inf", "2", "1", "2", "NaN", "inf", "1e300"];
    let odd = progress(json!({ "do": "progress", "steps": steps, "total": "NaN" }));
    let done: Vec<_> = odd.iter().map(|progress| (progress.done, progress.total)).collect();
    assert_eq!(done, [(2.0, None), (1e300, None)]);
    let long = progress(json!({ "do": "progress", "steps": ["1"], "bytes": 12_000_000 }));
    let message = long[0].message.as_ref().unwrap();
    assert_eq!(*message, format!("{}…", "x".repeat(1021)));
    // The tool may report any number of times; no report is stored.
    let many = progress(json!({ "do": "progress", "steps": ["0"], "more": 100_000 }));
    assert_eq!(many.len(), 100_001);
    assert!(many.is_sorted_by(|one, next| one.done < next.done));
}

#[test]
fn emitted_content_is_bounded_and_validated() {
    let workspace = Workspace::with_probe("[tools.probe.limits]\noutput = \"1KiB\"\n");
    let mut attempts = Attempts::new(&workspace);
    attempts.about("Everything together has the size of an answer.");
    // Nine bytes are used by the MIME type.
    attempts.attempt(json!({ "do": "emit", "bytes": 1015 }));
    attempts.attempt(json!({ "do": "emit", "bytes": 1016 }));
    attempts.attempt(json!({ "do": "emit", "bytes": 500, "repeat": 5 }));
    attempts.attempt(json!({ "do": "emit", "bytes": 12_000_000 }));
    attempts.attempt(json!({ "do": "emit", "kind": "text", "bytes": 2000 }));
    attempts
        .attempt(json!({ "do": "emit", "kind": "link", "uri": format!("x:{}", "y".repeat(2000)) }));
    attempts.attempt(json!({ "do": "emit", "kind": "link", "name": "x".repeat(2000) }));
    attempts.attempt(json!({ "do": "emit", "kind": "link", "title": "x".repeat(2000) }));
    attempts.attempt(json!({ "do": "emit", "kind": "link", "description": "x".repeat(2000) }));
    attempts.about("A MIME type is two names.");
    for mime in ["", "png", "image/", "image/png\n", "image/\u{1b}[2J", "a/b;\u{202e}", "../../x/y"]
    {
        attempts.attempt(json!({ "do": "emit", "mime": mime }));
    }
    attempts.attempt(json!({ "do": "emit", "kind": "text", "mime": "png" }));
    attempts.attempt(json!({ "do": "emit", "kind": "link", "mime": "png" }));
    attempts.about("A URI has a scheme, and no invisible characters.");
    for uri in
        ["", "a.txt", "/etc/passwd", "https:", "http s://a", "x:a\nb", "x:\u{1b}[2J", "x:\u{202e}"]
    {
        attempts.attempt(json!({ "do": "emit", "kind": "link", "uri": uri }));
        attempts.attempt(json!({ "do": "emit", "kind": "blob", "uri": uri }));
    }
    attempts.about("What was emitted goes with an answer, and there is none.");
    attempts.attempt(json!({ "do": "emit", "then": "panic" }));
    attempts.about("The next call works.");
    attempts.attempt(json!({ "do": "echo", "text": "still here" }));
    snapshot!("content", &attempts.report);
}

#[test]
fn a_tool_emits_a_thousand_items_at_most() {
    let workspace = Workspace::with_probe("");
    let kitbag = workspace.kitbag();
    let flood = json!({ "do": "emit", "bytes": 0, "repeat": 100_000 });
    let completion = block_on(kitbag.complete("probe", flood)).unwrap();
    assert_eq!(completion.emitted.len(), 1000);
    let kitbag::Outcome::Success(content) = completion.result.unwrap() else { panic!() };
    assert_eq!(content, "emit: 1000 items taken, then refused (a call emits at most 1000 items)");
}

#[test]
fn a_tool_that_traps_emits_no_content() {
    let workspace = Workspace::with_probe(&format!(
        "[tools.hasty]\nsource = \"local\"\nwasm = {:?}\nlimits.time = \"500ms\"\n",
        guest("probe"),
    ));
    let (kitbag, heard) = workspace.kitbag_with_ears();
    for (tool, then, expected) in [
        ("hasty", "spin", "limit: time (500ms): request less, or a part of it"),
        ("probe", "panic", "trap: the tool panicked at probe/src/dialogue.rs"),
    ] {
        let arguments = json!({ "do": "emit", "then": then });
        let completion = block_on(kitbag.complete(tool, arguments)).unwrap();
        let error = completion.result.unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(completion.emitted, []);
        assert_eq!(completion.usage.emitted_bytes, 13);
        // Its log lines were reported immediately.
        let arguments = json!({ "do": "log", "then": then });
        block_on(kitbag.complete(tool, arguments)).unwrap().result.unwrap_err();
        assert_eq!(heard.take().0.len(), 1);
    }
}
