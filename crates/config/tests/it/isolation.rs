//! A mistake breaks the piece that contains it: the tools that are off because of it, and the
//! messages.

use kitbag_config::{Config, Disabled, Origin, Sourced, Sources, TrustSource};
use kitbag_config::{load, load_isolated};

use crate::case_output::builtins;
use crate::support::Fixture;

/// The user config of every test.
const OWN: &str =
    "[toolsets]\nwrite = true\n[tools.fetch.grants]\nhttp = [\"https://a.example/**\"]\n";

const ALL: &str = "fetch learn now read_file write_file";

/// Returns a workspace with a configuration, and with the user config of every test.
fn workspace(config: &str) -> Fixture {
    Fixture::new(config).user(OWN)
}

fn isolated<'a>(fixture: &'a Fixture, change: impl FnOnce(&mut Sources<'a>)) -> Config {
    let mut sources = Sources { builtins: builtins("restricted"), ..fixture.sources() };
    change(&mut sources);
    load_isolated(&sources).unwrap_or_else(|errors| panic!("{errors}"))
}

fn trusted(fixture: &Fixture) -> Config {
    isolated(fixture, |_| {})
}

fn untrusted(fixture: &Fixture) -> Config {
    isolated(fixture, |sources| {
        sources.trust = TrustSource::Said(Sourced { value: false, origin: Origin::Caller });
    })
}

/// Returns the tools that are off because of a mistake; `!` marks broken tools.
fn off(config: &Config) -> String {
    let off = config.tools.values().filter_map(|tool| match tool.disabled {
        Some(Disabled::Broken { .. }) => Some(format!("{}!", tool.name)),
        Some(Disabled::Unrestricted { .. }) => Some(tool.name.to_string()),
        _ => None,
    });
    off.collect::<Vec<_>>().join(" ")
}

/// Returns the messages about omitted pieces.
fn said(config: &Config, fixture: &Fixture) -> Vec<String> {
    config.broken.iter().map(|broken| fixture.redact(&broken.to_string())).collect()
}

/// Checks the tools that are off because of a mistake in a trusted workspace; in an untrusted
/// workspace no tool is off. Both report the mistake once, with its place.
#[track_caller]
fn check(fixture: &Fixture, place: &str, expected: &str) {
    let config = trusted(fixture);
    assert_eq!(off(&config), expected, "{:?}", said(&config, fixture));
    for config in [config, untrusted(fixture)] {
        let said = said(&config, fixture);
        let [line] = &*said else { panic!("{said:#?}") };
        assert!(line.starts_with(place) && !line.contains('\n'), "{line}");
    }
    let config = untrusted(fixture);
    assert_eq!(off(&config), "");
    for tool in ["fetch", "learn", "now", "read_file", "write_file"] {
        assert_eq!(config.tools[tool].disabled, None, "{tool}");
    }
    // `load` is strict.
    load(&fixture.sources()).unwrap_err();
}

#[test]
fn an_unreadable_tool_is_listed_as_broken() {
    let fixture = workspace("[tools.mine]\nsource = \"local\"\n[tools.yours]\nwasm = \"a.wasm\"\n");
    let config = trusted(&fixture);
    assert_eq!(off(&config), "mine!");
    let reason = config.tools["mine"].disabled.as_ref().unwrap().to_string();
    assert_eq!(
        reason,
        "broken: .kitbag/config.toml:1:1: local tool `mine` has no `wasm`; add the path of its \
         component"
    );
}

#[test]
fn a_limit_above_the_ceiling_keeps_all_tools_on() {
    let fixture = workspace("[limits]\nmemory = \"100GiB\"\n");
    let config = trusted(&fixture);
    assert_eq!(off(&config), "");
    assert_eq!(config.limits.memory.origin, Origin::Default);
    assert_eq!(config.broken.len(), 1);
    let limits = "[tools.now.limits]\nmemory = \"100GiB\"\noutput = \"2KiB\"\n";
    let config = trusted(&workspace(limits));
    assert_eq!(off(&config), "");
    let limits = &config.tools["now"].limits;
    assert_eq!(limits.memory.value, config.ceiling.memory.value);
    assert_eq!(limits.output.value.to_string(), "2 KiB");
    let [broken] = &config.broken[..] else { panic!("{:?}", config.broken) };
    let broken = broken.to_string();
    assert!(broken.contains("(the ceiling applies instead; "), "{broken}");
}

#[test]
fn a_broken_tool_still_replaces_its_builtin() {
    let config = "[tools.mine]\nsource = \"local\"\nreplaces = \"now\"\n";
    let config = trusted(&workspace(config));
    assert_eq!(off(&config), "mine!");
    assert!(!config.tools.contains_key("now"));
}

#[test]
fn an_unreadable_file_turns_everything_off() {
    let fixture = Fixture::empty().user(OWN).file("w/.kitbag/config.toml", b"a = \"\xff\"");
    check(&fixture, ".kitbag/config.toml:1:6: ", ALL);
    let fixture = Fixture::empty().user(OWN).directory("w/.kitbag/config.toml");
    check(&fixture, ".kitbag/config.toml: ", ALL);
}

#[test]
fn a_broken_topic_is_omitted() {
    let topics = "[knowledge.team]\nsubjects = \"docs\"\n[knowledge.other]\nsubjects = 3\n";
    let fixture = workspace(topics).directory("w/docs");
    check(&fixture, ".kitbag/config.toml:4:12: ", "");
    let names = |config: Config| config.topics.into_keys().collect::<Vec<_>>();
    assert_eq!(names(trusted(&fixture)), ["team"]);
    let own = format!("{OWN}[knowledge.mine]\nsubjects = \"~/docs\"\n");
    let fixture = Fixture::new("knowledge = 1\n").user(&own).directory("h/docs");
    assert_eq!(names(trusted(&fixture)), [""; 0]);
    assert_eq!(names(untrusted(&fixture)), ["mine"]);
    let fixture = Fixture::new("[knowledge.mine\n").user(&own).directory("h/docs");
    assert_eq!(names(trusted(&fixture)), [""; 0]);
}

#[test]
fn a_broken_workspace_does_not_hide_a_mistake_of_the_user() {
    let fixture = Fixture::new("[\n").user("[limits]\ntime = \"soon\"\n");
    let errors = load_isolated(&fixture.sources()).unwrap_err().to_string();
    assert!(fixture.redact(&errors).starts_with("/t/h/config.toml:2:8: "), "{errors}");
}

#[test]
fn mistakes_are_counted_and_shown_once_per_piece() {
    let fixture = workspace("[tools.now]\na1 = 1\nb2 = 2\n[later]\n[tools.fetch]\nc3 = 1\n");
    let ends = |config: Config| {
        let end = |line: String| line.rsplit_once(" (").unwrap().1.to_owned();
        said(&config, &fixture).into_iter().map(end).collect::<Vec<_>>()
    };
    assert_eq!(
        ends(trusted(&fixture)),
        [
            "the tool `now` is off; 1 more mistake; `kitbag check` shows everything)",
            "`later` is ignored; `kitbag check` shows everything)",
            "the tool `fetch` is off; `kitbag check` shows everything)",
        ]
    );
    assert_eq!(
        ends(untrusted(&fixture)),
        ["this is ignored, and the workspace is not trusted; 3 more mistakes; `kitbag check` \
             shows everything)"]
    );
    let many: String = (0..5_000).map(|n| format!("[tools.t{n}]\nx = 1\n")).collect();
    let fixture = workspace(&many);
    let config = trusted(&fixture);
    assert_eq!(config.broken.len(), 20);
    let broken = config.tools.values().filter(|tool| !tool.is_enabled()).count();
    assert_eq!(broken, 5_000);
    let more: usize = config.broken.iter().map(|broken| broken.more).sum();
    assert!(more >= 4_980, "{more}");
}
