//! Limits: flag over variable over the tool's own over those of all tools.

use std::time::Duration;

use kitbag_contract::text::nearest;
use kitbag_contract::{ByteSize, ParseLimitError, parse_duration};

use super::Resolver;
use crate::config::EffectiveLimits;
use crate::error::{Problem, Report};
use crate::file::SourceFile;
use crate::format::LimitsConfig;
use crate::origin::{Origin, Sourced};
use crate::sources::{LimitFlags, Sources, VARIABLES};
use crate::text::{did_you_mean, known_words};
use crate::written::Written;

/// What the environment and the command line say: it holds for every tool.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    memory: Option<Sourced<ByteSize>>,
    time: Option<Sourced<Duration>>,
    output: Option<Sourced<ByteSize>>,
}

/// Reads the variables and the flags.
pub(crate) fn overrides(sources: &Sources<'_>, report: &mut Report) -> Overrides {
    const PREFIX: &str = "KITBAG_";
    let mut overrides = Overrides::default();
    for (name, value) in sources.environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let origin = Origin::environment(name.clone());
        // An empty value is how a shell takes a variable back for one command.
        let is_set = !value.is_empty();
        match name.as_str() {
            "KITBAG_LIMITS_MEMORY" if is_set => {
                overrides.memory = sourced(value.parse(), origin, report);
            }
            "KITBAG_LIMITS_TIME" if is_set => {
                overrides.time = sourced(parse_duration(value), origin, report);
            }
            "KITBAG_LIMITS_OUTPUT" if is_set => {
                overrides.output = sourced(value.parse(), origin, report);
            }
            known if VARIABLES.contains(&known) => {}
            unknown => {
                // The prefix, which all of them share, says nothing of what was
                // meant.
                let rest = |name: &'static str| name.trim_start_matches(PREFIX);
                let meant = nearest(&unknown[PREFIX.len()..], VARIABLES.map(rest));
                let meant = meant.map(|meant| format!("{PREFIX}{meant}"));
                let hint = did_you_mean(meant.as_deref())
                    .or_else(|| known_words("variables", VARIABLES.into_iter()));
                report.origin(origin, Problem::UnknownVariable, hint);
            }
        }
    }
    let LimitFlags { memory, time, output } = sources.flags;
    let flag = |name: &'static str| Origin::flag(name);
    if let Some(value) = memory {
        overrides.memory = Some(Sourced { value, origin: flag("--memory") });
    }
    if let Some(value) = time {
        overrides.time = Some(Sourced { value, origin: flag("--time") });
    }
    if let Some(value) = output {
        overrides.output = Some(Sourced { value, origin: flag("--output") });
    }
    overrides
}

fn sourced<T>(
    parsed: Result<T, ParseLimitError>,
    origin: Origin,
    report: &mut Report,
) -> Option<Sourced<T>> {
    match parsed {
        Ok(value) => Some(Sourced { value, origin }),
        Err(error) => {
            report.origin(origin, error, None);
            None
        }
    }
}

impl Overrides {
    /// Puts these limits over others.
    pub(crate) fn over(&self, limits: EffectiveLimits) -> EffectiveLimits {
        EffectiveLimits {
            memory: self.memory.clone().unwrap_or(limits.memory),
            time: self.time.clone().unwrap_or(limits.time),
            output: self.output.clone().unwrap_or(limits.output),
        }
    }
}

impl Resolver<'_> {
    /// What the layers say, the weakest first, over other limits; variables and
    /// flags not considered.
    pub(super) fn limits(
        &mut self,
        layers: &[(&SourceFile, &LimitsConfig)],
        under: Option<&EffectiveLimits>,
    ) -> EffectiveLimits {
        let mut limits = under.cloned().unwrap_or_default();
        for (file, layer) in layers {
            self.limit(file, &layer.memory, |text| text.parse(), &mut limits.memory);
            self.limit(file, &layer.time, parse_duration, &mut limits.time);
            self.limit(file, &layer.output, |text| text.parse(), &mut limits.output);
        }
        limits
    }

    fn limit<T>(
        &mut self,
        file: &SourceFile,
        written: &Option<Written<String>>,
        parse: impl FnOnce(&str) -> Result<T, ParseLimitError>,
        limit: &mut Sourced<T>,
    ) {
        let Some(at) = written.as_ref().map(|written| written.at(file)) else { return };
        match parse(at.value) {
            Ok(value) => *limit = at.sourced(value),
            Err(error) => self.report.at(at, error),
        }
    }
}
