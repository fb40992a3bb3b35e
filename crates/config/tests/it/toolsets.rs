//! Which built-in tools are on.

use kitbag_config::{BuiltinTool, Config, Origin, Sourced, Sources, TOOLSETS, json_schema, load};
use kitbag_policy::Access;

use crate::support::{Fixture, check_problems, check_rows};

/// A tool that reads the workspace, one that changes it, and one that touches no file.
fn builtins() -> [BuiltinTool<'static>; 3] {
    let tool = |name, toolset, workspace| BuiltinTool {
        name,
        toolset,
        workspace,
        ..BuiltinTool::default()
    };
    [
        tool("read", "files", Some(Access::ReadOnly)),
        tool("edit", "files", Some(Access::ReadWrite)),
        tool("now", "time", None),
    ]
}

fn config(fixture: &Fixture, change: impl FnOnce(&mut Sources<'_>)) -> Config {
    let builtins = builtins();
    let mut sources = Sources { builtins: &builtins, ..fixture.sources() };
    change(&mut sources);
    load(&sources).unwrap_or_else(|errors| panic!("{errors}"))
}

/// What each tool may reach, and why those that are off are.
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

#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    check_with(fixture, |_| {}, expected);
}

const EDIT_IS_OFF: &str = "edit: disabled: tools that change files are off; `[toolsets] write = \
                           true` in `/t/w/.kitbag/config.toml` turns them on";

const READS: &str = "read: reads /workspace";

const WRITES: &str = "edit: writes /workspace";

const NOW: &str = "now: reaches nothing";

#[test]
fn in_a_workspace_tools_read_and_none_writes() {
    check(&Fixture::empty(), &[EDIT_IS_OFF, NOW, READS]);
}

#[test]
fn write_turns_on_what_changes_files() {
    check(&Fixture::new("[toolsets]\nwrite = true\n"), &[WRITES, NOW, READS]);
    check(&Fixture::empty().user("[toolsets]\nwrite = true\n"), &[WRITES, NOW, READS]);
    let grant = "[tools.edit.grants]\n\
                 filesystem = [{ host = \".\", guest = \"/workspace\", mode = \"rw\" }]\n";
    check(&Fixture::new(grant), &[WRITES, NOW, READS]);
    // Not a table that grants nothing, nor a grant to read.
    check(&Fixture::new("[tools.edit]\nenable = true\n"), &[EDIT_IS_OFF, NOW, READS]);
    check(&Fixture::new(&grant.replace("rw", "ro")), &[EDIT_IS_OFF, NOW, READS]);
}

#[test]
fn a_workspace_turns_on_no_writing_that_the_users_own_file_turned_off() {
    let user = "[toolsets]\nwrite = false\n";
    let off = "disabled: tools that change files are off; `[toolsets] write = true` instead of \
               `false` (/t/h/config.toml:2:9) turns them on";
    let (edit, read) = (format!("edit: {off}"), format!("read: {off}"));
    let workspace = Fixture::new("[toolsets]\nwrite = true\n").user(user);
    check(&workspace, &[&edit, NOW, READS]);
    check_rows(&workspace, "toolsets", &["toolsets.write = false # /t/h/config.toml:2:9"]);
    let grant = |tool: &str| {
        format!(
            "[tools.{tool}.grants]\n\
             filesystem = [{{ host = \".\", guest = \"/workspace\", mode = \"rw\" }}]\n"
        )
    };
    check(&Fixture::new(&grant("edit")).user(user), &[&edit, NOW, READS]);
    // Nor by a tool that asks to read only.
    check(&Fixture::new(&grant("read")).user(user), &[&edit, NOW, &read]);
    // What the user grants a tool by name is the user's own decision.
    let own =
        format!("{user}[tools.edit.grants]\nfilesystem = [{{ host = \"~/\", guest = \"/h\" }}]\n");
    check(&Fixture::empty().user(&own), &[&edit, NOW, READS]);
    let own = Fixture::empty()
        .directory("h/notes")
        .user(&own.replace("/h\"", "/h\", mode = \"rw\"").replace("~/", "~/notes"));
    check(&own, &["edit: writes /h", NOW, READS]);
}

#[test]
fn a_workspace_may_turn_off_what_the_user_turned_on() {
    let fixture = Fixture::new("[toolsets]\nwrite = false\n").user("[toolsets]\nwrite = true\n");
    let off = "edit: disabled: tools that change files are off; `[toolsets] write = true` instead \
               of `false` (.kitbag/config.toml:2:9) turns them on";
    check(&fixture, &[off, NOW, READS]);
}

#[test]
fn a_toolset_is_switched_off_and_on() {
    let off = |name: &str, place: &str| {
        format!(
            "{name}: disabled by `[toolsets] files = false` ({place}); `files = true` there turns \
             `files` on"
        )
    };
    let fixture = Fixture::new("[toolsets]\nfiles = false\nwrite = true\n");
    let place = ".kitbag/config.toml:2:9";
    check(&fixture, &[&off("edit", place), NOW, &off("read", place)]);
    // The stronger layer counts.
    let fixture = Fixture::new("[toolsets]\nfiles = true\n").user("[toolsets]\nfiles = false\n");
    check(&fixture, &[EDIT_IS_OFF, NOW, READS]);
    // And the table of a tool more than its toolset.
    let fixture = Fixture::new("[toolsets]\nfiles = false\n[tools.read]\nenable = true\n");
    check(&fixture, &[&off("edit", place), NOW, READS]);
    let fixture = Fixture::new("[toolsets]\nfiles = true\n[tools.read]\nenable = false\n");
    let read = "read: disabled by `enable = false` (.kitbag/config.toml:4:10)";
    check(&fixture, &[EDIT_IS_OFF, NOW, read]);
    let fixture = Fixture::new("[toolsets]\ntime = false\n");
    let now = "now: disabled by `[toolsets] time = false` (.kitbag/config.toml:2:8); `time = true` \
               there turns `time` on";
    check(&fixture, &[EDIT_IS_OFF, now, READS]);
}

#[test]
fn where_no_workspace_was_chosen_no_tool_reads_it() {
    let fixture = Fixture::empty().directory("elsewhere/sub").user("");
    let reason = |root: &str, why: &str| {
        format!(
            "disabled: no tool reads `{root}`, which {why}, and `[toolsets] files = true` in your \
             user config `/t/h/config.toml` turns `files` on everywhere"
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
    let unfound = "was not named, and has no `.kitbag` or `.git` that counts; `--workspace .` \
                   names it";
    check("elsewhere/sub", Some(("/t/elsewhere/sub", unfound)));
    let home = "holds your home directory; `--workspace DIRECTORY` names another";
    check("h", Some(("/t/h", home)));
    std::fs::create_dir(fixture.path("elsewhere/.git")).unwrap();
    check("elsewhere", None);
    // Whatever `.kitbag` there is.
    std::fs::create_dir(fixture.path("h/.kitbag")).unwrap();
    check("h", Some(("/t/h", home)));
    std::fs::create_dir(fixture.path(".kitbag")).unwrap();
    check("h/..", Some(("/t", home)));
}

#[test]
fn a_directory_that_was_named_is_read_unless_it_holds_the_home_directory() {
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
        assert!(reason.contains("holds your home directory"), "{reason}");
    }
    // Where there is no home directory, `/` alone is too much.
    let config = config(&fixture, |sources| {
        sources.workspace = named("/");
        sources.home = None;
    });
    assert!(!config.tools["read"].is_enabled());
}

#[test]
fn a_toolset_that_is_switched_on_is_on_everywhere() {
    let fixture = Fixture::empty().user("[toolsets]\nfiles = true\nwrite = true\n");
    for start in ["h", ""] {
        check_with(&fixture, |sources| sources.start = fixture.path(start), &[WRITES, NOW, READS]);
    }
}

#[test]
fn no_default_lets_a_tool_write_where_no_grant_could() {
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
fn a_tool_that_is_off_with_its_toolset_has_no_rows() {
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
fn an_unknown_toolset_is_refused_with_the_nearest() {
    check_problems(
        "[toolsets]\nfile = true\nwrite = \"yes\"\n",
        &[
            "C:2:1: unknown key `file` in `toolsets`; did you mean `files`?",
            "C:3:9: `toolsets.write` takes `true` or `false`, not the string `yes`",
        ],
    );
}

#[test]
fn a_toolset_that_is_switched_on_and_not_there_is_told() {
    let config = Fixture::new("[toolsets]\npython = true\ncalc = false\n").load();
    let unmatched = config.unmatched.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        unmatched,
        [
            ".kitbag/config.toml:2:10: this kitbag was built without the toolset `python`: it switches nothing"
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

/// What a tool of a toolset that is off by default may reach, or why it is off.
#[track_caller]
fn check_memory(fixture: &Fixture, expected: &[&str]) {
    let builtins = [BuiltinTool {
        name: "remember",
        toolset: "memory",
        keeps: true,
        required: &["storage = true"],
        ..BuiltinTool::default()
    }];
    let config = load(&Sources { builtins: &builtins, ..fixture.sources() }).unwrap();
    let tools = config.tools.values().map(|tool| match &tool.disabled {
        None => format!("{}: {}", tool.name, tool.grants.value.brief(&[])),
        Some(reason) => fixture.redact(&format!("{}: {reason}", tool.name)),
    });
    assert_eq!(tools.collect::<Vec<_>>(), expected);
}

#[test]
fn what_keeps_texts_is_off_until_a_file_turns_it_on() {
    let off = |file: &str| {
        format!(
            "remember: disabled: it keeps texts that later sessions read; `[toolsets] memory = \
             true` in `{file}` turns `memory` on"
        )
    };
    check_memory(&Fixture::empty(), &[&off("/t/w/.kitbag/config.toml")]);
    let keeps = "remember: keeps up to 16 MiB";
    check_memory(&Fixture::new("[toolsets]\nmemory = true\n"), &[keeps]);
    check_memory(&Fixture::empty().user("[toolsets]\nmemory = true\n"), &[keeps]);
    check_memory(&Fixture::new("[tools.remember]\nenable = true\n"), &[keeps]);
    let by_place = "remember: disabled by `[toolsets] memory = false` (.kitbag/config.toml:2:10); \
                    `memory = true` there turns `memory` on";
    let workspace = Fixture::new("[toolsets]\nmemory = false\n");
    check_memory(&workspace.user("[toolsets]\nmemory = true\n"), &[by_place]);
    // A grant of storage is not the switch.
    let granted = Fixture::new("[tools.remember.grants]\nstorage = true\n");
    check_memory(&granted, &[&off("/t/w/.kitbag/config.toml")]);
    let sized =
        "[toolsets]\nmemory = true\n[tools.remember.grants]\nstorage = { quota = \"1MiB\" }";
    check_memory(&Fixture::new(sized), &["remember: keeps up to 1 MiB"]);
    let none = "[toolsets]\nmemory = true\n[tools.remember.grants]\nstorage = false\n";
    check_memory(&Fixture::new(none), &["remember: reaches nothing"]);
}

#[test]
fn what_the_user_switched_off_of_what_is_off_by_default_no_workspace_switches_on() {
    let off = "disabled by `[toolsets] memory = false` (/t/h/config.toml:2:10); `memory = true` \
               there turns `memory` on";
    for workspace in [
        "[toolsets]\nmemory = true\n",
        "[tools.remember]\nenable = true\n",
        "[toolsets]\nmemory = true\n[tools.remember]\nenable = true\ngrants.storage = true\n",
    ] {
        let fixture = Fixture::new(workspace).user("[toolsets]\nmemory = false\n");
        check_memory(&fixture, &[&format!("remember: {off}")]);
    }
    let renamed = "[tools.note]\nsource = \"builtin\"\nbuiltin = \"remember\"\nenable = true\n";
    let fixture = Fixture::new(renamed).user("[toolsets]\nmemory = false\n");
    let note = format!("note: disabled: it is another name for `remember`, which is {off}");
    check_memory(&fixture, &[&note]);
}

#[test]
fn a_workspace_lets_no_built_in_keep_more_than_the_ceiling() {
    let workspace = "[toolsets]\nmemory = true\n";
    for ceiling in ["storage = { quota = \"1MiB\" }", "storage = false"] {
        let own = format!("[ceiling.grants]\n{ceiling}\n");
        check_memory(&Fixture::new(workspace).user(&own), &["remember: reaches nothing"]);
        // The user is above it.
        let own = format!("{own}[toolsets]\nmemory = true\n");
        check_memory(&Fixture::new(workspace).user(&own), &["remember: keeps up to 16 MiB"]);
    }
    let within =
        "[toolsets]\nmemory = true\n[tools.remember.grants]\nstorage = { quota = \"1MiB\" }\n";
    let own = "[ceiling.grants]\nstorage = { quota = \"1MiB\" }\n";
    check_memory(&Fixture::new(within).user(own), &["remember: keeps up to 1 MiB"]);
}

#[test]
fn the_local_zone_is_configured_or_that_of_the_environment() {
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
fn a_table_switches_the_tools_for_times_off() {
    let fixture = Fixture::new("[toolsets.time]\nenable = false\nzone = \"Asia/Tokyo\"\n");
    let config = config(&fixture, |_| {});
    let now = config.tools.values().find(|tool| tool.name.as_str() == "now").unwrap();
    assert!(now.disabled.is_some());
}
