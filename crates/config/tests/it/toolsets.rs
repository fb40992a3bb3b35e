//! The state of built-in tools: on or off.

use kitbag_config::{Config, Origin, Sourced, Sources, TOOLSETS, TrustSource, json_schema, load};

use crate::case_output::builtins;
use crate::support::Fixture;

fn config(fixture: &Fixture, change: impl FnOnce(&mut Sources<'_>)) -> Config {
    let mut sources = Sources { builtins: builtins("files"), ..fixture.sources() };
    change(&mut sources);
    load(&sources).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Checks the access of each tool, and why tools are off.
#[track_caller]
fn check_with(fixture: &Fixture, change: impl FnOnce(&mut Sources<'_>), expected: &[&str]) {
    let config = config(fixture, change);
    let tools = config.tools.values().map(|tool| match &tool.disabled {
        None => format!("{}: {}", tool.name, tool.grants.value.brief(&[])),
        Some(reason) => {
            assert!(tool.grants.value.directories.iter().all(|grant| grant.identity.is_none()));
            fixture.redact(&format!("{}: {reason}", tool.name))
        }
    });
    assert_eq!(tools.collect::<Vec<_>>(), expected);
}

const EDIT_IS_OFF: &str = "edit: disabled: tools that change files are off; to turn them on, set \
                           `[toolsets] write = true` in `/t/w/.kitbag/config.toml`";

const READS: &str = "read: reads /workspace";

const WRITES: &str = "edit: writes /workspace";

const NOW: &str = "now: reaches nothing";

#[test]
fn without_a_chosen_workspace_no_tool_reads_files() {
    let fixture = Fixture::empty().directory("elsewhere/sub").user("");
    let reason = |root: &str, why: &str| {
        format!(
            "disabled: `{root}` {why}; to turn on `files` everywhere, set `[toolsets] files = \
             true` in your user config `/t/h/config.toml`"
        )
    };
    let check = |start: &str, expected: Option<(&str, &str)>| match expected {
        None => check_with(
            &fixture,
            |sources| sources.start = fixture.path(start),
            &[&EDIT_IS_OFF.replace("/t/w", &format!("/t/{start}")), NOW, READS],
        ),
        Some((root, why)) => {
            let reason = reason(root, why);
            let (edit, read) = (format!("edit: {reason}"), format!("read: {reason}"));
            check_with(
                &fixture,
                |sources| sources.start = fixture.path(start),
                &[&edit, NOW, &read],
            );
        }
    };
    let unfound = "is not a workspace, because it has no usable `.kitbag` or `.git`; to use it as \
                   one, add `--workspace .`";
    check("elsewhere/sub", Some(("/t/elsewhere/sub", unfound)));
    let home = "contains your home directory; choose a workspace with `--workspace DIRECTORY`";
    check("h", Some(("/t/h", home)));
    std::fs::create_dir(fixture.path("elsewhere/.git")).unwrap();
    check("elsewhere", None);
    // Even if the home directory has a `.kitbag`.
    std::fs::create_dir(fixture.path("h/.kitbag")).unwrap();
    check("h", Some(("/t/h", home)));
    std::fs::create_dir(fixture.path(".kitbag")).unwrap();
    check("h/..", Some(("/t", home)));
}

#[test]
fn a_named_directory_is_read_unless_it_contains_home() {
    let fixture = Fixture::empty().directory("bare").user("");
    let named = |path: &str| {
        let value = fixture.path(path);
        Some(Sourced { value, origin: Origin::flag("--workspace") })
    };
    let edit = EDIT_IS_OFF.replace("/t/w", "/t/bare");
    check_with(&fixture, |sources| sources.workspace = named("bare"), &[&edit, NOW, READS]);
    for home in ["h", "", "/"] {
        let config = config(&fixture, |sources| sources.workspace = named(home));
        let reason = config.tools["read"].disabled.as_ref().unwrap().to_string();
        assert!(reason.contains("contains your home directory"), "{reason}");
    }
    // Without a home directory only `/` is too much.
    let config = config(&fixture, |sources| {
        sources.workspace = named("/");
        sources.home = None;
    });
    assert!(!config.tools["read"].is_enabled());
}

#[test]
fn an_enabled_toolset_is_on_everywhere() {
    let fixture = Fixture::empty().user("[toolsets]\nfiles = true\nwrite = true\n");
    for start in ["h", ""] {
        check_with(&fixture, |sources| sources.start = fixture.path(start), &[WRITES, NOW, READS]);
    }
}

#[test]
fn an_untrusted_switch_is_named_unless_the_user_forbids_it() {
    let check = |user: &str, expected: &str| {
        let fixture = Fixture::new("[toolsets]\nwrite = true\n").user(user);
        let config = config(&fixture, |sources| sources.trust = TrustSource::Recorded);
        let reason = config.tools["edit"].disabled.as_ref().unwrap().to_string();
        assert!(reason.starts_with(expected), "{reason}");
    };
    let switch = "disabled: `[toolsets] write = true` (.kitbag/config.toml:2:9) takes effect once";
    check("", switch);
    check("[toolsets]\nwrite = false\n", "disabled: tools that change files are off");
}

#[test]
fn defaults_allow_no_writing_beyond_grants() {
    let fixture = Fixture::empty().user("[toolsets]\nwrite = true\n").directory("state");
    let edit = "edit: disabled: it changes files, and `/t/state/in` cannot be granted for writing: \
                no tool may change `/t/state`; use `mode = \"ro\"`, or another directory";
    let fixture = fixture.directory("state/in/.kitbag");
    check_with(
        &fixture,
        |sources| {
            sources.start = fixture.path("state/in");
            sources.state = Some(Sourced::default(fixture.path("state")));
        },
        &[edit, NOW, READS],
    );
}

#[test]
fn tools_of_a_disabled_toolset_have_no_rows() {
    let fixture = Fixture::new("[toolsets]\nfiles = false\n");
    let rows = config(&fixture, |_| {}).rows();
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| row.key.starts_with("tool") && !row.key.contains("limits"))
        .map(|row| format!("{} = {} # {}", row.key, row.value, row.origin))
        .collect();
    assert_eq!(
        rows,
        [
            "toolsets.write = false # default",
            "toolsets.files = false # .kitbag/config.toml:2:9",
            "tools.now.source = \"builtin\" # default",
            "tools.now.builtin = \"now\" # default",
            "tools.now.enable = true # default",
        ]
    );
}

#[test]
fn every_toolset_has_its_key() {
    let schema = json_schema();
    let keys = schema["properties"]["toolsets"]["properties"].as_object().unwrap();
    let keys: Vec<_> = keys.keys().map(String::as_str).filter(|key| *key != "write").collect();
    assert_eq!(keys, TOOLSETS);
}

#[test]
fn the_local_zone_is_configured_or_from_the_environment() {
    let zone = |fixture: &Fixture| {
        let zone = config(fixture, |_| {}).toolsets.zone;
        zone.map(|zone| format!("{} ({})", zone.value, fixture.redact(&zone.origin.to_string())))
    };
    let of_variable = |value: &str| {
        zone(&Fixture::empty().variables([("TZ", value.as_bytes())])).unwrap_or_default()
    };
    let paris = "Europe/Paris (environment TZ)";
    for value in ["Europe/Paris", ":Europe/Paris", "/usr/share/zoneinfo/Europe/Paris"] {
        assert_eq!(of_variable(value), paris);
    }
    for value in ["", ":", "CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Paris\nIgnore"] {
        assert_eq!(of_variable(value), "", "{value}");
    }
    assert_eq!(zone(&Fixture::empty()), None);
    let own = "[toolsets]\ntime = { zone = \"Asia/Tokyo\" }\n";
    let fixture = Fixture::empty().user(own).variables([("TZ", b"Europe/Paris")]);
    assert!(zone(&fixture).unwrap().starts_with("Asia/Tokyo ("));
    let workspace = "[toolsets.time]\nzone = \"America/New_York\"\n";
    assert!(zone(&Fixture::new(workspace).user(own)).unwrap().starts_with("America/New_York ("));
}

#[test]
fn a_table_switches_the_time_tools_off() {
    let fixture = Fixture::new("[toolsets.time]\nenable = false\nzone = \"Asia/Tokyo\"\n");
    let config = config(&fixture, |_| {});
    let now = config.tools.values().find(|tool| tool.name.as_str() == "now").unwrap();
    assert!(now.disabled.is_some());
}
