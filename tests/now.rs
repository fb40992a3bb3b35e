//! `now`, through the real binary.

use std::time::SystemTime;

use serde_json::Value;

use crate::support::Workspace;

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn the_time_is_that_of_the_system_in_the_zone_that_was_asked_for() {
    let workspace = Workspace::with_toolsets(&["time"]);
    for (arguments, zone, end) in [
        (&["run", "now"][..], "UTC", "Z"),
        (&["run", "now", "zone=asia/tokyo"], "Asia/Tokyo", "+09:00"),
        (&["run", "now", "zone=-03:30"], "-03:30", "-03:30"),
    ] {
        let before = seconds();
        let answer: Value = workspace.run(arguments).json();
        let unix = answer["unix"].as_u64().unwrap();
        assert!((before..=seconds()).contains(&unix), "{answer}");
        assert_eq!(answer["unix_millis"].as_u64().unwrap() / 1000, unix);
        assert_eq!(answer["zone"], zone);
        assert!(answer["iso"].as_str().unwrap().ends_with(end), "{answer}");
    }
}

#[test]
fn a_zone_that_does_not_exist_is_refused_with_similar_ones() {
    let workspace = Workspace::with_toolsets(&["time"]);
    let run = workspace.run(&["run", "now", "zone=Berlin"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.stderr, "error: zone `Berlin` is unknown; did you mean `Europe/Berlin`?\n");
}
