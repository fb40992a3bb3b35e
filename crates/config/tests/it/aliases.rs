//! Another name for a tool that the user config restricts.

use std::fs;

use kitbag_config::Config;

use crate::support::Fixture;

/// Checks each tool: the reason why it is off, and its rates.
#[track_caller]
fn check(fixture: &Fixture, expected: &[&str]) {
    let config: Config = fixture.load();
    let tools = config.tools.values().filter(|tool| tool.name.as_str() != "notes");
    let lines: Vec<_> = tools
        .map(|tool| {
            let mut line = tool.name.to_string();
            if let Some(reason) = &tool.disabled {
                line.push_str(&format!(" is {reason}"));
            }
            for rate in &tool.rates {
                let (rates, origin) = (&rate.rates.value, &rate.rates.origin);
                line.push_str(&format!(" {rates} as {} ({origin})", rate.counted_as));
            }
            fixture.redact(&line)
        })
        .collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

const OWN: &str = "(/t/h/config.toml:2:8)";

#[test]
fn a_component_has_one_rate_for_all_paths_and_names() {
    let fixture = Fixture::new(
        "[tools.a]\nsource = \"local\"\nwasm = \"link.wasm\"\n\
         [tools.b]\nsource = \"local\"\nwasm = \"hard.wasm\"\n\
         [tools.c]\nsource = \"local\"\nwasm = \"other.wasm\"\n",
    )
    .file("h/own.wasm", "x")
    .file("w/other.wasm", "x")
    .link("w/link.wasm", "../h/own.wasm");
    fs::hard_link(fixture.path("h/own.wasm"), fixture.path("w/hard.wasm")).unwrap();
    let fixture =
        fixture.user("[tools.own]\nrate = \"1/min\"\nsource = \"local\"\nwasm = \"~/own.wasm\"\n");
    check(
        &fixture,
        &[
            &format!("a 1/min as own {OWN}"),
            &format!("b 1/min as own {OWN}"),
            "c",
            "learn",
            &format!("own 1/min as own {OWN}"),
        ],
    );
}
