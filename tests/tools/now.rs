//! `now`, through the real binary.

use std::time::SystemTime;

use serde_json::Value;

use crate::support::Workspace;

fn seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn the_system_time_is_given_in_the_requested_zone() {
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

/// The zone in the answer of `now` with variables and a configuration.
fn zone(workspace: &Workspace, tz: Option<&str>, arguments: &[&str]) -> String {
    let variables: Vec<_> = tz.iter().map(|tz| ("TZ", *tz)).collect();
    let answer = workspace.run_with(&[&["run", "now"], arguments].concat(), "", &variables).json();
    answer["zone"].as_str().unwrap().to_owned()
}

#[test]
fn the_local_zone_is_the_users_zone() {
    let workspace = Workspace::with_toolsets(&["time"]);
    for (tz, expected) in [
        (None, "UTC"),
        (Some(""), "UTC"),
        (Some("Europe/Paris"), "Europe/Paris"),
        (Some(":Europe/Paris"), "Europe/Paris"),
        (Some("/usr/share/zoneinfo/Europe/Paris"), "Europe/Paris"),
        (Some("CET-1CEST,M3.5.0,M10.5.0/3"), "UTC"),
        (Some("Nowhere"), "UTC"),
    ] {
        assert_eq!(zone(&workspace, tz, &[]), expected, "{tz:?}");
    }
    assert_eq!(zone(&workspace, Some("Europe/Paris"), &["zone=local"]), "Europe/Paris");
    assert_eq!(zone(&workspace, Some("Europe/Paris"), &["zone=Asia/Tokyo"]), "Asia/Tokyo");
    workspace.config("[toolsets.time]\nzone = \"America/New_York\"\n");
    assert_eq!(zone(&workspace, Some("Europe/Paris"), &[]), "America/New_York");
    let described = workspace.run(&["describe", "now"]).success();
    assert!(described.contains("Local zone: America/New_York."), "{described}");
    workspace.config("[toolsets.time]\nenable = false\n");
    assert_ne!(workspace.run(&["run", "now"]).code, 0);
}
