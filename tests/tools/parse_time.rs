//! `parse_time`, through the real component. The forms in detail are tested in
//! `guest-tools/time`.

use serde_json::json;

use crate::support::Workspace;
use crate::support::cases::{call, check_cases, check_concurrent};

#[test]
fn times_are_read_in_the_forms_that_people_write() {
    check_cases("time", &["parse_time.txt"]);
}

#[test]
fn a_huge_string_is_not_a_time() {
    let workspace = Workspace::with_toolsets(&["time"]);
    let kitbag = workspace.kitbag();
    let arguments = json!({ "time": "1".repeat(900_000) });
    let expected = "the time has 900000 bytes; the limit is 200";
    assert_eq!(call(&kitbag, "parse_time", arguments), Err(expected.to_owned()));
}

#[test]
fn concurrent_calls_do_not_interfere() {
    let workspace = Workspace::with_toolsets(&["time"]);
    let kitbag = workspace.kitbag();
    let calls = ["2026-03-05 14:30 Europe/Paris", "March 5, 2026", "soon", "2026-W10-4"];
    check_concurrent(&kitbag, &calls.map(|time| ("parse_time", json!({ "time": time }))));
}
