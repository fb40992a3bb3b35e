//! The memory of a server, and its tools.

use kitbag_base::ByteSize;
use kitbag_config::{Origin, Sourced, Sources, load};
use kitbag_contract::UnknownArguments;

use crate::support::{Fixture, problems};

#[test]
fn a_workspace_lowers_the_memory_of_a_server() {
    let memory = |fixture: Fixture| fixture.load().server_memory.value;
    assert_eq!(memory(Fixture::new("")), ByteSize::mib(2048));
    assert_eq!(memory(Fixture::new("[serve]\nmemory = \"1GiB\"\n")), ByteSize::mib(1024));
    let own = "[serve]\nmemory = \"8GiB\"\n";
    assert_eq!(memory(Fixture::new("").user(own)), ByteSize::mib(8192));
    let lower = Fixture::new("[serve]\nmemory = \"4GiB\"\n").user(own);
    assert_eq!(memory(lower), ByteSize::mib(4096));
}

#[test]
fn the_strictest_setting_for_unknown_arguments_applies() {
    let value = |fixture: Fixture| fixture.load().unknown_arguments.value;
    let (drop, error) =
        ("[serve]\nunknown_arguments = \"drop\"\n", "[serve]\nunknown_arguments = \"error\"\n");
    assert_eq!(value(Fixture::new("")), UnknownArguments::Drop);
    assert_eq!(value(Fixture::new(drop)), UnknownArguments::Drop);
    assert_eq!(value(Fixture::new(error)), UnknownArguments::Refuse);
    assert_eq!(value(Fixture::new(drop).user(error)), UnknownArguments::Refuse);
    assert_eq!(value(Fixture::new(error).user(drop)), UnknownArguments::Refuse);
}

/// Checks the tools that a server offers, and why it does not offer the others.
#[track_caller]
fn check_served(fixture: &Fixture, flag: &[&str], expected: &[&str]) {
    let patterns = flag.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>();
    let served_tools = (!patterns.is_empty())
        .then(|| Sourced { value: patterns, origin: Origin::flag("--tools") });
    let config = load(&Sources { is_server: true, served_tools, ..fixture.sources() }).unwrap();
    let tools = config.tools.values().map(|tool| match &tool.disabled {
        None => tool.name.to_string(),
        Some(reason) => fixture.redact(&format!("{}: {reason}", tool.name)),
    });
    let warnings = config.unmatched.iter().map(|warning| {
        let hint = warning.hint.as_deref().unwrap_or_default();
        fixture.redact(&format!("{}: {}; {hint}", warning.place, warning.message))
    });
    assert_eq!(tools.chain(warnings).collect::<Vec<_>>(), expected);
}

#[test]
fn a_server_offers_tools_in_every_list() {
    let fixture = Fixture::new("[serve]\ntools = [\"n*\"]\n");
    let left =
        "learn: not served: no pattern of `[serve] tools` (.kitbag/config.toml:2:9) matches it";
    check_served(&fixture, &[], &[left, "notes"]);
    let both = Fixture::new("[serve]\ntools = [\"*\"]\n").user("[serve]\ntools = [\"notes\"]\n");
    let left = "learn: not served: no pattern of `[serve] tools` (/t/h/config.toml:2:9) matches it";
    check_served(&both, &[], &[left, "notes"]);
    // Other commands have all tools.
    assert!(both.load().tools["learn"].is_enabled());
    // The command line replaces the lists.
    let left = "notes: not served: no pattern of `--tools` (flag --tools) matches it";
    check_served(&both, &["l*n", "learn"], &["learn", left]);
}

#[test]
fn unmatched_patterns_are_reported_with_suggestions() {
    let fixture = Fixture::new("[serve]\ntools = [\"note\", \"learn\"]\n");
    check_served(
        &fixture,
        &[],
        &[
            "learn",
            "notes: not served: no pattern of `[serve] tools` (.kitbag/config.toml:2:9) matches it",
            ".kitbag/config.toml:2:10: `note` matches no tool; did you mean `notes`?",
        ],
    );
    let value = vec!["lern".to_owned(), "[".to_owned()];
    let served_tools = Some(Sourced { value, origin: Origin::flag("--tools") });
    let sources = Sources { is_server: true, served_tools, ..fixture.sources() };
    let errors = problems(&load(&sources), &fixture);
    assert_eq!(
        errors,
        "flag --tools: `lern` matches no tool; did you mean `learn`?\n\
         flag --tools: `[` is not a glob: invalid range pattern\n"
    );
}
