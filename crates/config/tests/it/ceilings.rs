//! Ceilings: the highest limits of a workspace, and who may raise them.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_config::{EffectiveLimits, LimitFlags, load, load_lenient};
use kitbag_contract::Limits;

use crate::support::{Fixture, check_problems_of, check_rows};

const AT_THE_CEILING: &str = "memory = \"64MiB\"\ntime = \"30s\"\noutput = \"1MiB\"\nwritten = \"1GiB\"\nrequests = 50\ntool_calls = 20\n\
     compile = \"1m\"\n";

#[test]
fn a_workspace_may_set_limits_up_to_the_ceiling() {
    let limits = |fixture: Fixture| fixture.load().tools["learn"].limits.limits();
    let tool = format!("[tools.learn.limits]\n{AT_THE_CEILING}");
    assert_eq!(limits(Fixture::new(&tool)), Limits::default());
    let raised = "[ceiling]\nmemory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let config = "[limits]\nmemory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let expected = Limits {
        memory: ByteSize::mib(1024),
        time: Duration::from_secs(3600),
        output: ByteSize::mib(8),
        written: ByteSize::mib(9 << 10),
        requests: 500,
        tool_calls: 200,
        fuel: None,
        compile: Duration::from_secs(300),
    };
    assert_eq!(limits(Fixture::new(config).user(raised)), expected);
}

#[test]
fn messages_prefer_the_named_user_config() {
    let fixture = Fixture::new("[limits]\ntime = \"31s\"\n").user("");
    let mut sources = fixture.sources();
    sources.usual_user_file = Some(fixture.path("elsewhere.toml"));
    let errors = fixture.redact(&load(&sources).unwrap_err().to_string());
    assert!(errors.contains("in your user config `/t/h/config.toml`"), "{errors}");
}

#[test]
fn only_the_user_config_may_set_a_ceiling() {
    let refused = "a workspace may not set `ceiling`: only your user config `/t/h/config.toml` \
                   may; remove it";
    let fixture = Fixture::new("[limits]\nmemory = \"1GiB\"\n[ceiling]\nmemory = \"2GiB\"\n")
        .file("w/.kitbag/tools/count.wasm", "")
        .file("w/.kitbag/tools/count.toml", "ceiling.time = \"2h\"\nlimits.time = \"1h\"\n");
    check_problems_of(
        &fixture,
        &[
            &format!(".kitbag/tools/count.toml:1:1: {refused}"),
            ".kitbag/tools/count.toml:2:15: `tools.count.limits.time` is `1h`, above the ceiling of \
             `30s` (default); lower it, or put `time = \"1h\"` under `[ceiling]` in your user config \
             `/t/h/config.toml`",
            "C:2:10: `limits.memory` is `1 GiB`, above the ceiling of `64 MiB` (default); lower it, \
             or put `memory = \"1 GiB\"` under `[ceiling]` in your user config `/t/h/config.toml`",
            &format!("C:3:2: {refused}"),
        ],
    );
    let (config, _) = load_lenient(&fixture.sources());
    let config = config.unwrap();
    assert_eq!(
        (config.ceiling, config.limits.limits()),
        (EffectiveLimits::default(), Limits::default())
    );
}

#[test]
fn a_person_may_set_any_limit() {
    let mine = "memory = \"1GiB\"\ntime = \"1h\"\noutput = \"8MiB\"\nwritten = \"9GiB\"\n\
         requests = 500\ntool_calls = 200\ncompile = \"5m\"\n";
    let expected = Limits {
        memory: ByteSize::mib(1024),
        time: Duration::from_secs(3600),
        output: ByteSize::mib(8),
        written: ByteSize::mib(9 << 10),
        requests: 500,
        tool_calls: 200,
        fuel: None,
        compile: Duration::from_secs(300),
    };
    let low = "[ceiling]\nmemory = \"1MiB\"\ntime = \"1s\"\noutput = \"1KiB\"\n";
    let limits = |fixture: &Fixture| fixture.load().tools["learn"].limits.limits();
    assert_eq!(limits(&Fixture::empty().user(&format!("{low}[limits]\n{mine}"))), expected);
    let tool = format!("{low}[tools.learn.limits]\n{mine}");
    assert_eq!(limits(&Fixture::empty().user(&tool)), expected);
    let fixture = Fixture::new("[limits]\nmemory = \"1KiB\"\n").user(low);
    let variables = fixture
        .variable("KITBAG_LIMITS_MEMORY", "1GiB")
        .variable("KITBAG_LIMITS_TIME", "1h")
        .variable("KITBAG_LIMITS_OUTPUT", "8MiB")
        .variable("KITBAG_LIMITS_WRITTEN", "9GiB")
        .variable("KITBAG_LIMITS_REQUESTS", "500")
        .variable("KITBAG_LIMITS_TOOL_CALLS", "200")
        .variable("KITBAG_LIMITS_COMPILE", "5m");
    assert_eq!(limits(&variables), expected);
    let fixture = Fixture::empty().user(low);
    let mut sources = fixture.sources();
    sources.flags = LimitFlags {
        memory: Some(expected.memory),
        time: Some(expected.time),
        output: Some(expected.output),
        written: Some(expected.written),
        requests: Some(expected.requests),
        tool_calls: Some(expected.tool_calls),
        fuel: None,
        compile: Some(expected.compile),
    };
    assert_eq!(load(&sources).unwrap().tools["learn"].limits.limits(), expected);
}

#[test]
fn fuel_has_no_ceiling_unless_a_person_sets_one() {
    let fuel = "[tools.learn.limits]\nfuel = 18446744073709551615\n";
    let fixture = Fixture::new(fuel).user("[limits]\nfuel = 1\n");
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(u64::MAX));
    let workspace = "[limits]\nfuel = 8\n[tools.learn.limits]\nfuel = 9\n";
    let ceiling = "[ceiling]\nfuel = 8\n";
    check_problems_of(
        &Fixture::new(workspace).user(ceiling),
        &["C:4:8: `tools.learn.limits.fuel` is `9`, above the ceiling of `8` \
           (/t/h/config.toml:2:8); lower it, or put `fuel = 9` under `[ceiling]` in your user config \
           `/t/h/config.toml`"],
    );
    // Follows the advice of the message.
    let fixture = Fixture::new(workspace).user("[ceiling]\nfuel = 9\n");
    check_rows(&fixture, "ceiling.fuel", &["ceiling.fuel = 9 # /t/h/config.toml:2:8"]);
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(9));
    // The ceiling does not apply to the user config.
    let own = format!("{ceiling}[limits]\nfuel = 10\n");
    assert_eq!(Fixture::empty().user(&own).load().limits.limits().fuel, Some(10));
    let fixture = Fixture::new("").user(ceiling).variable("KITBAG_LIMITS_FUEL", "11");
    assert_eq!(fixture.load().tools["learn"].limits.limits().fuel, Some(11));
}
