//! Limits, from the weakest to the strongest.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_config::{EffectiveLimits, LimitFlags, Origin, Sourced, Sources, TrustSource, load};
use kitbag_contract::Limits;

use crate::support::{Fixture, check_problems};

#[test]
fn defaults_equal_those_of_the_contract() {
    let config = Fixture::empty().load();
    assert_eq!(config.limits.limits(), Limits::default());
    assert_eq!(config.tools["learn"].limits.limits(), Limits::default());
}

#[test]
fn python_has_memory_for_its_snapshot() {
    let memory = |fixture: Fixture, is_trusted: bool| {
        let builtins = ["python".into(), "text".into()];
        let trust = TrustSource::Said(Sourced { value: is_trusted, origin: Origin::Caller });
        let sources = Sources { builtins: &builtins, trust, ..fixture.sources() };
        let tools = load(&sources).unwrap().tools;
        ["python", "text"].map(|name| tools[name].limits.memory.value)
    };
    let check = |fixture: fn() -> Fixture, trusted: [u64; 2], untrusted: [u64; 2]| {
        let of = |expected: [u64; 2]| expected.map(ByteSize::mib);
        assert_eq!(memory(fixture(), true), of(trusted));
        assert_eq!(memory(fixture(), false), of(untrusted));
    };
    fn own() -> Fixture {
        Fixture::empty().file("w/.kitbag/tools/count.wasm", "")
    }
    check(own, [128, 128], [64, 32]);
    check(|| own().user("[ceiling]\nmemory = \"48MiB\"\n"), [48, 48], [48, 32]);
    check(|| own().user("[limits]\nmemory = \"16MiB\"\n"), [16, 16], [16, 16]);
}

#[test]
fn a_flag_beats_everything() {
    let fixture = Fixture::new("[tools.learn.limits]\ntime = \"2s\"\n")
        .variable("KITBAG_LIMITS_TIME", "3s")
        .variable("KITBAG_LIMITS_MEMORY", "8MiB")
        .variable("KITBAG_LIMITS_FUEL", "8");
    let mut sources = fixture.sources();
    sources.flags = LimitFlags {
        memory: Some(ByteSize::mib(16)),
        time: Some(Duration::from_millis(1500)),
        output: Some(ByteSize::bytes(10)),
        written: Some(ByteSize::bytes(20)),
        requests: Some(30),
        tool_calls: Some(3),
        fuel: Some(7),
        compile: Some(Duration::from_secs(90)),
    };
    let config = load(&sources).unwrap();
    for limits in [&config.limits, &config.tools["learn"].limits, &config.tools["notes"].limits] {
        let fuel = &limits.fuel.as_ref().unwrap().origin;
        let EffectiveLimits {
            memory, time, output, written, requests, tool_calls, compile, ..
        } = limits;
        let origins = [
            &memory.origin,
            &time.origin,
            &output.origin,
            &written.origin,
            &requests.origin,
            &tool_calls.origin,
            fuel,
            &compile.origin,
        ];
        assert_eq!(
            origins.map(ToString::to_string),
            [
                "flag --memory",
                "flag --time",
                "flag --output",
                "flag --written",
                "flag --requests",
                "flag --tool-calls",
                "flag --fuel",
                "flag --compile"
            ]
        );
        let expected = Limits {
            memory: ByteSize::mib(16),
            time: Duration::from_millis(1500),
            output: ByteSize::bytes(10),
            written: ByteSize::bytes(20),
            requests: 30,
            tool_calls: 3,
            fuel: Some(7),
            compile: Duration::from_secs(90),
        };
        assert_eq!(limits.limits(), expected);
    }
}

#[test]
fn variables_are_checked_even_if_a_file_is_broken() {
    let fixture = Fixture::new("[").variable("KITBAG_LIMITS_TIME", "x");
    assert_eq!(fixture.try_load().unwrap_err().diagnostics().len(), 2, "{}", fixture.problems());
    check_problems("", &[]);
}
