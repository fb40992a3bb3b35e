//! Bounds on the files of a workspace together.

use std::fmt::Write as _;
use std::fs;

use kitbag_config::{
    Config, ConfiguredTool, Disabled, Sourced, Sources, TrustSource, load_isolated,
};

use crate::support::Fixture;

const MIB: usize = 1 << 20;

fn sources(fixture: &Fixture, trust: TrustSource) -> Sources<'_> {
    let state = Some(Sourced::default(fixture.path("state")));
    Sources { trust, state, ..fixture.sources() }
}

/// Returns the configuration of a workspace that was just cloned.
fn cloned(fixture: &Fixture) -> Config {
    load_isolated(&sources(fixture, TrustSource::Recorded)).unwrap()
}

fn trusted(fixture: &Fixture) -> Config {
    load_isolated(&fixture.sources()).unwrap()
}

/// Returns the omitted pieces, one per line.
fn broken(config: &Config) -> Vec<String> {
    config.broken.iter().map(ToString::to_string).collect()
}

#[test]
fn scripts_and_manifests_are_not_read_before_trust() {
    let fixture = Fixture::new("")
        .file("w/.kitbag/scripts/words.py", vec![b'\n'; MIB])
        .file("w/.kitbag/scripts/wrong.py", [0xff])
        .file("w/.kitbag/tools/count.wasm", "count")
        .file("w/.kitbag/tools/count.toml", "no = TOML = 1");
    let config = cloned(&fixture);
    assert!(broken(&config).is_empty(), "{:?}", broken(&config));
    // The tools are still listed, but their files were not read.
    for name in ["words", "wrong", "count"] {
        assert!(!config.tools[name].is_enabled(), "{name}");
    }
    let read: Vec<_> = config.files.iter().map(|file| file.path().to_owned()).collect();
    assert_eq!(read, [fixture.path("w/.kitbag/config.toml")]);
}

#[test]
fn files_beyond_the_bound_in_bytes_are_omitted_by_name() {
    let mut fixture = Fixture::new("[tools.notes.limits]\ntime = \"3s\"\n");
    for number in 10..28 {
        fixture = fixture.file(&format!("w/.kitbag/scripts/s{number}.py"), "#".repeat(MIB));
    }
    let config = trusted(&fixture);
    // The configuration file takes a part of the 16 MiB.
    let is_left_out =
        |tool: &ConfiguredTool| matches!(tool.disabled, Some(Disabled::Broken { .. }));
    let left_out = config.tools.values().filter(|tool| is_left_out(tool));
    let names: Vec<_> = left_out.map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["s25", "s26", "s27"]);
    let lines = broken(&config);
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert_eq!(
        lines[0],
        ".kitbag/scripts/s25.py: is ignored: the files in `.kitbag` exceed the limit of 16 MiB in \
         total (the tool `s25` is off; `kitbag check` shows everything)"
    );
    assert_eq!(config.tools["notes"].limits.time.value.as_secs(), 3);
    let kept: usize = config.files.iter().map(|file| file.text().len()).sum();
    assert!(kept <= 16 * MIB, "{kept}");
}

#[test]
fn components_beyond_the_bound_are_omitted() {
    let fixture = Fixture::new("");
    for directory in ["tools", "scripts"] {
        fs::create_dir(fixture.path("w/.kitbag").join(directory)).unwrap();
    }
    for number in 0..1_500 {
        let path = |path: String| fixture.path("w/.kitbag").join(path);
        fs::write(path(format!("tools/c{number:04}.wasm")), "").unwrap();
        fs::write(path(format!("scripts/s{number:04}.py")), "").unwrap();
    }
    let line = ".kitbag/scripts/s0500.py: is ignored, with 999 more: `.kitbag` may contain 2000 \
                components and scripts in total";
    for config in [cloned(&fixture), trusted(&fixture)] {
        let tools = config.tools.keys().filter(|name| name.as_str().starts_with(['c', 's']));
        assert!((2_000..=2_001).contains(&tools.count()));
        assert!(config.tools.contains_key("c1499") && config.tools.contains_key("s0499"));
        assert!(!config.tools.contains_key("s0501"));
        let lines = broken(&config);
        assert_eq!(lines.len(), 1, "{lines:#?}");
        assert!(lines[0].starts_with(line), "{lines:#?}");
        assert!(config.tools["learn"].is_enabled());
    }
}

#[test]
fn tables_beyond_the_bound_restrict_their_tools() {
    let mut text = String::from("[tools]\n");
    for number in 0..2_000 {
        writeln!(text, "t{number} = {{ source = \"local\", wasm = \"a\" }}").unwrap();
    }
    text.push_str("learn = { enable = false }\n");
    let fixture = Fixture::new(&text);
    let config = trusted(&fixture);
    assert!(!config.tools["learn"].is_enabled(), "{:?}", config.tools["learn"].disabled);
    let line = ".kitbag/config.toml:2002:1: is ignored, with 0 more: a file may have 2000 tables \
                of tools (the tool `learn` is off";
    assert!(broken(&config).iter().any(|found| found.starts_with(line)), "{:#?}", broken(&config));
}

#[test]
fn topics_beyond_the_bound_are_omitted() {
    let mut text = String::new();
    for number in 0..600 {
        writeln!(text, "[knowledge.t{number:03}]\nsubjects = \".\"").unwrap();
    }
    let fixture = Fixture::new(&text);
    for config in [cloned(&fixture), trusted(&fixture)] {
        assert_eq!(config.topics.len(), 500);
        assert!(config.topics.contains_key("t499") && !config.topics.contains_key("t500"));
        let lines = broken(&config);
        let line = ".kitbag/config.toml:1001:12: is ignored, with 99 more: a workspace may have \
                    500 topics";
        assert!(lines[0].starts_with(line), "{lines:#?}");
        assert!(config.tools["learn"].is_enabled());
    }
}

#[test]
fn oversized_directories_are_partly_examined() {
    let fixture = Fixture::new("");
    fs::create_dir(fixture.path("w/.kitbag/scripts")).unwrap();
    for number in 0..20_001 {
        fs::write(fixture.path("w/.kitbag/scripts").join(format!("{number}.txt")), "").unwrap();
    }
    let config = trusted(&fixture);
    assert_eq!(
        config.broken[0].diagnostic.message,
        "has more than 20000 entries; the rest is ignored"
    );
    assert!(config.tools["learn"].is_enabled());
}

#[test]
fn mistakes_beyond_the_bound_restrict_everything() {
    let mut text: String = (0..25_000).map(|number| format!("k{number} = 1\n")).collect();
    text.push_str("[tools.learn]\nenabel = false\n");
    let fixture = Fixture::new(&text);
    let errors = fixture.try_load().unwrap_err();
    assert_eq!(errors.diagnostics().len(), 20_001);
    let is_bound = |message: &str| message.starts_with("mistakes after this one are not counted");
    let bounds = errors.diagnostics().iter().filter(|found| is_bound(&found.message));
    assert_eq!(bounds.count(), 1);
    let config = trusted(&fixture);
    for name in ["learn", "notes"] {
        assert!(!config.tools[name].is_enabled(), "{name}");
    }
    assert!(cloned(&fixture).tools["notes"].is_enabled());
}
