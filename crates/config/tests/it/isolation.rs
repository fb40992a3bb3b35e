//! A mistake spoils the piece that it is in: which tools are off for it, and what is said.

use kitbag_config::{BuiltinTool, Config, Disabled, Origin, Sourced, Sources, TrustSource};
use kitbag_config::{load, load_isolated};
use kitbag_policy::Access;

use super::support::Fixture;

/// A tool of each kind that a restriction can be for.
fn builtins() -> Vec<BuiltinTool<'static>> {
    let files = |name, access| BuiltinTool {
        toolset: "files",
        workspace: Some(access),
        ..BuiltinTool::from(name)
    };
    vec![
        BuiltinTool { required: &["http = [\"https://docs.rs/**\"]"], .."fetch".into() },
        BuiltinTool { given_by_call: &["/subjects"], .."learn".into() },
        BuiltinTool { toolset: "time", .."now".into() },
        files("read_file", Access::ReadOnly),
        files("write_file", Access::ReadWrite),
    ]
}

/// What the user's own file has in every test.
const OWN: &str =
    "[toolsets]\nwrite = true\n[tools.fetch.grants]\nhttp = [\"https://a.example/**\"]\n";

const ALL: &str = "fetch learn now read_file write_file";

/// A workspace with a configuration, and what the user's own file has.
fn workspace(config: &str) -> Fixture {
    Fixture::new(config).user(OWN)
}

fn isolated<'a>(fixture: &'a Fixture, change: impl FnOnce(&mut Sources<'a>)) -> Config {
    let builtins = Box::leak(Box::new(builtins()));
    let mut sources = Sources { builtins, ..fixture.sources() };
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

/// A server, which goes on where the user's own file has mistakes.
fn server(fixture: &Fixture) -> Config {
    isolated(fixture, |sources| (sources.is_server, sources.isolates_own) = (true, true))
}

/// The tools that are off for a mistake, those that are broken themselves marked with `!`.
fn off(config: &Config) -> String {
    let off = config.tools.values().filter_map(|tool| match tool.disabled {
        Some(Disabled::Broken { .. }) => Some(format!("{}!", tool.name)),
        Some(Disabled::Unrestricted { .. }) => Some(tool.name.to_string()),
        _ => None,
    });
    off.collect::<Vec<_>>().join(" ")
}

/// What is said of the pieces that are left out.
fn said(config: &Config, fixture: &Fixture) -> Vec<String> {
    config.broken.iter().map(|broken| fixture.redact(&broken.to_string())).collect()
}

/// Checks which tools are off for a mistake in a workspace that is trusted, and that none is in
/// one that is not. Either way it is said once, with its place.
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
    // A check is strict.
    load(&fixture.sources()).unwrap_err();
}

#[track_caller]
fn check_config(config: &str, place: &str, expected: &str) {
    check(&workspace(config), &format!(".kitbag/config.toml:{place}: "), expected);
}

#[test]
fn a_mistake_in_a_table_of_a_tool_turns_that_tool_off() {
    check_config("[tools.now]\nlater = 1\n", "2:1", "now!");
    check_config("[tools.now]\nenable = \"no\"\n", "2:10", "now!");
    check_config("[tools.now]\napprove = \"sometimes\"\n", "2:11", "now!");
    check_config("[tools.now.limits]\ntime = \"soon\"\n", "2:8", "now!");
    check_config("[tools.now]\nrate = \"often\"\n", "2:8", "now!");
    check_config("[tools.now]\nsource = \"lokal\"\n", "2:10", "now!");
}

#[test]
fn a_tool_that_cannot_be_made_out_is_listed_as_broken() {
    let fixture = workspace("[tools.mine]\nsource = \"local\"\n[tools.yours]\nwasm = \"a.wasm\"\n");
    let config = trusted(&fixture);
    assert_eq!(off(&config), "mine! yours!");
    let reason = config.tools["mine"].disabled.as_ref().unwrap().to_string();
    assert_eq!(
        reason,
        "broken: .kitbag/config.toml:1:1: local tool `mine` has no `wasm`; add the path of its \
         component"
    );
}

#[test]
fn tables_that_only_the_users_own_file_has_are_left_out() {
    for table in ["[ceiling]\nmemory = \"1MiB\"\n", "[approve]\ndefault = \"always\"\n"] {
        check_config(table, "1:2", "");
    }
    check_config("deny = [\"https://**\"]\n", "1:1", "");
}

#[test]
fn a_key_of_a_newer_version_is_left_out() {
    check_config("[later]\na = [1]\n", "1:2", "");
    check_config("[toolsets]\nlater = false\n", "2:1", "");
    // It may switch off what it names.
    check_config("disabled = [\"now\", \"other\"]\n", "1:1", "now");
    check_config("[later]\nfiles = false\n", "1:2", "read_file write_file");
}

#[test]
fn an_unreadable_restriction_turns_off_what_it_may_restrict() {
    check_config("[limits]\ntime = \"soon\"\n", "2:8", ALL);
    check_config("limit.time = \"1s\"\n", "1:1", ALL);
    check_config("[secret_files]\nnames = [\"***\"]\n", "2:10", "learn read_file write_file");
    check_config("[secret_file]\nnames = [\"*.x\"]\n", "1:2", "learn read_file write_file");
    check_config("[toolsets]\ntime = \"off\"\n", "2:8", "now");
    check_config("[toolsets]\nwirte = false\n", "2:1", "write_file");
    check_config("toolsets = false\n", "1:12", ALL);
    check_config("tools = []\n", "1:9", ALL);
    check_config("[serve]\ntools = \"now\"\n", "2:9", "");
    let served = workspace("[serve]\ntools = \"now\"\n");
    assert_eq!(off(&server(&served)), ALL);
}

#[test]
fn a_limit_above_the_ceiling_is_not_given_and_nothing_is_off() {
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
fn a_built_in_that_a_broken_tool_replaces_does_not_come_back() {
    let config = "[tools.mine]\nsource = \"local\"\nreplaces = \"now\"\n";
    let config = trusted(&workspace(config));
    assert_eq!(off(&config), "mine!");
    assert!(!config.tools.contains_key("now"));
}

/// Checks that a table for an unknown built-in turns off the one that it may be for.
#[track_caller]
fn check_web(config: &str) {
    let config = trusted(&workspace(config));
    assert_eq!(off(&config), "fetch web!");
}

#[test]
fn a_name_whose_built_in_cannot_be_read_turns_that_off_too() {
    // That the tool has no `source` either is the first thing that is wrong.
    let web = "[tools.web]\nbuitlin = \"fetch\"\napprove = \"always\"\n";
    check_web(web);
    check_web("[tools.web]\nbuiltin = [\"fetch\"]\n");
}

#[test]
fn a_file_that_is_not_toml_turns_off_what_it_may_restrict() {
    check_config("[tools.fetch]\napprove = \"always\"\n[oops\n", "3:6", "fetch");
    check_config("[toolsets]\ntime = false\nfiles = \n", "3:9", "now read_file write_file");
    check_config("[toolsets]\nwrite = false\n=\n", "3:1", "write_file");
    check_config("secret_files.names = [\"*.x\"\n", "1:28", "learn read_file write_file");
    check_config("[limits]\ntime = \"1s\"\n[\n", "3:2", ALL);
    // An escape may hide any name.
    check_config("[tools.\"f\\u0065tch\"]\n[\n", "2:2", ALL);
    check_config("title = \n", "1:9", "");
}

#[test]
fn a_file_that_cannot_be_read_at_all_turns_everything_off() {
    let fixture = Fixture::empty().user(OWN).file("w/.kitbag/config.toml", b"a = \"\xff\"");
    check(&fixture, ".kitbag/config.toml:1:6: ", ALL);
    let fixture = Fixture::empty().user(OWN).directory("w/.kitbag/config.toml");
    check(&fixture, ".kitbag/config.toml: ", ALL);
}

#[test]
fn a_broken_topic_is_left_out() {
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
fn a_file_with_the_wrong_name_is_left_out() {
    for name in ["a b.wasm", "weather-1.3.wasm", "echo (1).wasm"] {
        let fixture = workspace("").file(&format!("w/.kitbag/tools/{name}"), "x");
        check(&fixture, &format!(".kitbag/tools/{name}: "), "");
    }
    let fixture = workspace("").file("w/.kitbag/tools/ECHO.WASM", "x");
    check(&fixture, ".kitbag/tools/ECHO.WASM: is not read: the name of a component", "");
    // A directory of the name of a built-in turns nothing off.
    for name in ["weather", "read_file"] {
        let fixture = workspace("").directory(&format!("w/.kitbag/tools/{name}.wasm"));
        check(&fixture, &format!(".kitbag/tools/{name}.wasm: is a directory; a file is"), "");
    }
    let fixture = workspace("").file("w/.kitbag/tools/read_file.wasm", "x");
    let config = trusted(&fixture);
    assert_eq!((off(&config), config.broken.len()), (String::new(), 1));
    assert_eq!(config.tools["read_file"].disabled, None);
}

#[test]
fn a_broken_manifest_turns_its_tool_off() {
    for text in ["approve = \"always\"\n[", "aprove = \"always\"\n", "limits.time = 3\n"] {
        let fixture = workspace("").file("w/.kitbag/tools/a.toml", text);
        let fixture =
            fixture.file("w/.kitbag/tools/a.wasm", "x").file("w/.kitbag/tools/b.wasm", "x");
        let config = trusted(&fixture);
        assert_eq!(off(&config), "a!", "{text}");
        assert_eq!(config.tools["b"].disabled, None);
    }
}

#[test]
fn a_manifest_without_a_component_is_a_broken_tool() {
    let fixture = workspace("").file("w/.kitbag/tools/a.toml", "");
    check(&fixture, ".kitbag/tools/a.toml: ", "a!");
}

#[test]
fn a_broken_header_turns_its_script_off() {
    let text = "# /// kitbag\n# parameters.a = 3\n# ///\n";
    let fixture = workspace("").file("w/.kitbag/scripts/a.py", text);
    assert_eq!(off(&trusted(&fixture)), "a!");
    assert_eq!(said(&untrusted(&fixture), &fixture), [""; 0]);
}

#[test]
fn a_broken_lock_file_turns_off_what_may_be_recorded_there() {
    let lock = |text: &str| {
        let config = "[tools.named]\nsource = \"local\"\nwasm = \"named.wasm\"\n";
        let fixture = workspace(config).file("w/.kitbag/kitbag.lock", text);
        off(&trusted(&fixture.file("w/.kitbag/tools/a.wasm", "x")))
    };
    assert_eq!(lock("version = 9\n"), "a named");
    assert_eq!(lock("version = 1\n["), "a named");
    assert_eq!(lock("version = 1\n[tools.a]\ncomponent = \"1\"\n"), "a!");
    assert_eq!(lock("version = 1\n[tools.a]\n"), "a!");
}

/// Checks which tools are off in a server for a mistake in the user's own file, which is an error
/// elsewhere.
#[track_caller]
fn check_own(own: &str, workspace: &str, expected: &str) {
    let fixture = Fixture::new(workspace).user(&format!("{own}{OWN}"));
    let config = server(&fixture);
    assert_eq!(off(&config), expected, "{:?}", said(&config, &fixture));
    assert!(config.broken.iter().all(|broken| broken.is_own));
    let builtins = builtins();
    load_isolated(&Sources { builtins: &builtins, ..fixture.sources() }).unwrap_err();
}

#[test]
fn a_server_starts_with_what_is_safe_of_the_user_file() {
    check_own("later = 1\n", "", "");
    check_own("deny = [\"nonsense\"]\n", "", "fetch");
    check_own("approve.default = \"sometimes\"\n", "", ALL);
    check_own("ceiling.memory = \"much\"\n", "", ALL);
    check_own("output.screen.high = \"drop\"\n", "", ALL);
    check_own("audit.size = \"1B\"\n", "", "");
    check_own("audit.required = \"yes\"\n", "", ALL);
    check_own("network.proxy = \"nonsense\"\n", "", "fetch");
    check_own("allow_leak = [{}]\n", "", "");
    check_own("[tools.now]\naprove = \"always\"\n", "", "now!");
    // What it allows is gone with it, so that the others are off by default.
    check_own("[tools.now]\napprove = \"always\"\n[\n", "", "learn now read_file");
}

#[test]
fn a_mistake_of_the_user_holds_for_every_name_of_a_tool() {
    let alias = "[tools.get]\nsource = \"builtin\"\nbuiltin = \"now\"\n";
    check_own("[tools.now]\naprove = \"always\"\n", alias, "get now!");
}

#[test]
fn a_broken_workspace_does_not_hide_a_mistake_of_the_user() {
    let fixture = Fixture::new("[\n").user("[limits]\ntime = \"soon\"\n");
    let errors = load_isolated(&fixture.sources()).unwrap_err().to_string();
    assert!(fixture.redact(&errors).starts_with("/t/h/config.toml:2:8: "), "{errors}");
}

#[test]
fn mistakes_are_counted_and_named_once_for_each_piece() {
    let fixture = workspace("[tools.now]\na1 = 1\nb2 = 2\n[later]\n[tools.fetch]\nc3 = 1\n");
    let ends = |config: Config| {
        let end = |line: String| line.rsplit_once(" (").unwrap().1.to_owned();
        said(&config, &fixture).into_iter().map(end).collect::<Vec<_>>()
    };
    assert_eq!(
        ends(trusted(&fixture)),
        [
            "the tool `now` is off; 1 more mistake; `kitbag check` shows everything)",
            "`later` is left out; `kitbag check` shows everything)",
            "the tool `fetch` is off; `kitbag check` shows everything)",
        ]
    );
    assert_eq!(
        ends(untrusted(&fixture)),
        ["this is left out, and the workspace is not trusted; 3 more mistakes; `kitbag check` \
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
