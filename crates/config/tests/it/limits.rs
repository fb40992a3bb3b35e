//! Limits, from the weakest to the strongest.

use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_config::{EffectiveLimits, LimitFlags, load};
use kitbag_contract::Limits;

use crate::support::{Fixture, check_problems};

#[test]
fn defaults_equal_those_of_the_contract() {
    let config = Fixture::empty().load();
    assert_eq!(config.limits.limits(), Limits::default());
    assert_eq!(config.tools["learn"].limits.limits(), Limits::default());
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
