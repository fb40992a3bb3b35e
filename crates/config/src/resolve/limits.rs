//! Limits: flag over variable over the tool's own over those of all tools, and
//! none of a workspace's above its ceiling.

use std::sync::Arc;
use std::time::Duration;

use kitbag_contract::text::nearest;
use kitbag_contract::{
    ByteSize, LEAST_SERVER_MEMORY, ParseLimitError, SERVER_MEMORY, format_duration, parse_duration,
    parse_fuel,
};

use super::Resolver;
use super::ceiling::Ceilings;
use crate::config::EffectiveLimits;
use crate::error::{Problem, Report};
use crate::file::{Layer, SourceFile};
use crate::format::{ConfigFile, LimitsConfig};
use crate::key::KeyPath;
use crate::origin::{Origin, Sourced};
use crate::sources::{LimitFlags, Sources, VARIABLES};
use crate::text::{did_you_mean, known_words};
use crate::written::{At, Written};

/// A limit that is typed as a number and a unit, and has a ceiling.
pub(super) struct Quantity<T> {
    /// The key of both.
    pub(super) key: &'static str,
    /// Reads it.
    pub(super) parse: fn(&str) -> Result<T, ParseLimitError>,
    /// Writes it as it would be typed.
    show: fn(&T) -> String,
}

pub(super) const MEMORY: Quantity<ByteSize> =
    Quantity { key: "memory", parse: str::parse, show: ByteSize::to_string };
pub(super) const TIME: Quantity<Duration> = Quantity {
    key: "time",
    parse: parse_duration,
    show: |time| format_duration(*time).to_string(),
};
pub(super) const OUTPUT: Quantity<ByteSize> =
    Quantity { key: "output", parse: str::parse, show: ByteSize::to_string };
pub(super) const WRITTEN: Quantity<ByteSize> =
    Quantity { key: "written", parse: str::parse, show: ByteSize::to_string };

/// What the environment and the command line say: it holds for every tool.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    memory: Option<Sourced<ByteSize>>,
    time: Option<Sourced<Duration>>,
    output: Option<Sourced<ByteSize>>,
    written: Option<Sourced<ByteSize>>,
    fuel: Option<Sourced<u64>>,
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
            "KITBAG_LIMITS_WRITTEN" if is_set => {
                overrides.written = sourced(value.parse(), origin, report);
            }
            "KITBAG_LIMITS_FUEL" if is_set => {
                overrides.fuel = sourced(parse_fuel(value), origin, report);
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
    let LimitFlags { memory, time, output, written, fuel } = sources.flags;
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
    if let Some(value) = written {
        overrides.written = Some(Sourced { value, origin: flag("--written") });
    }
    if let Some(value) = fuel {
        overrides.fuel = Some(Sourced { value, origin: flag("--fuel") });
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
            written: self.written.clone().unwrap_or(limits.written),
            fuel: self.fuel.clone().or(limits.fuel),
        }
    }
}

impl Resolver<'_> {
    /// What the layers say, the weakest first, over other limits; variables and
    /// flags not considered. `path` is the key of the table in each layer.
    pub(super) fn limits(
        &mut self,
        path: &KeyPath<'_>,
        layers: &[(&SourceFile, &LimitsConfig)],
        under: &EffectiveLimits,
    ) -> EffectiveLimits {
        let mut limits = under.clone();
        let Ceilings { memory, time, output, written, fuel } = self.ceilings;
        for (file, layer) in layers {
            let at = |written| Written::at(written, file);
            self.limit(path, &MEMORY, layer.memory.as_ref().map(at), memory, &mut limits.memory);
            self.limit(path, &TIME, layer.time.as_ref().map(at), time, &mut limits.time);
            self.limit(path, &OUTPUT, layer.output.as_ref().map(at), output, &mut limits.output);
            let at_written = layer.written.as_ref().map(at);
            self.limit(path, &WRITTEN, at_written, written, &mut limits.written);
            if let Some(at) = layer.fuel.as_ref().map(|fuel| fuel.at(file)) {
                let value = at.value.get();
                let key = path.key("fuel");
                let set = |fuel: &u64| format!("fuel = {fuel}");
                if self.is_below(&key, &at, &value, fuel, u64::to_string, set) {
                    limits.fuel = Some(at.sourced(value));
                }
            }
        }
        limits
    }

    /// The memory of a server: what the person's own file says, and less where the
    /// workspace's says so.
    pub(super) fn server_memory(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> Sourced<ByteSize> {
        let mut memory = Sourced::default(SERVER_MEMORY);
        for (file, layer) in layers {
            let Some(written) = layer.serve.as_ref().and_then(|serve| serve.memory.as_ref()) else {
                continue;
            };
            let at = written.at(file);
            let value = match at.value.parse::<ByteSize>() {
                Ok(value) => value,
                Err(error) => {
                    self.report.at(at, error);
                    continue;
                }
            };
            if value < LEAST_SERVER_MEMORY {
                self.report.at(at, Problem::LittleServerMemory { value });
            } else if file.layer() != Layer::User && value > memory.value {
                let own = Box::new(memory.clone());
                let file = self.own_file.map(Arc::from);
                self.report.at(at, Problem::AboveServerMemory { value, own, file });
            } else {
                memory = at.sourced(value);
            }
        }
        memory
    }

    /// What a layer says of a limit, unless it is none, or not this layer's to
    /// say.
    fn limit<T: PartialOrd>(
        &mut self,
        path: &KeyPath<'_>,
        quantity: &Quantity<T>,
        at: Option<At<'_, String>>,
        ceiling: &Option<Sourced<T>>,
        limit: &mut Sourced<T>,
    ) {
        let Some(at) = at else { return };
        let value = match (quantity.parse)(at.value) {
            Ok(value) => value,
            Err(error) => return self.report.at(at, error),
        };
        let key = path.key(quantity.key);
        let set = |value: &T| format!("{} = \"{}\"", quantity.key, (quantity.show)(value));
        if self.is_below(&key, &at, &value, ceiling, quantity.show, set) {
            *limit = at.sourced(value);
        }
    }

    /// Whether a layer may set a limit to this. Also where a stronger layer has
    /// the last word: what a file asks for is right or wrong by itself.
    ///
    /// `show` writes a value as it is told, `set` as it stands in a file.
    fn is_below<T: PartialOrd, U>(
        &mut self,
        key: &KeyPath<'_>,
        at: &At<'_, U>,
        value: &T,
        ceiling: &Option<Sourced<T>>,
        show: fn(&T) -> String,
        set: impl Fn(&T) -> String,
    ) -> bool {
        let Some(ceiling) = ceiling else { return true };
        if at.file.layer() == Layer::User || *value <= ceiling.value {
            return true;
        }
        let problem = Problem::AboveCeiling {
            key: key.to_string(),
            value: show(value),
            ceiling: Box::new(Sourced {
                value: show(&ceiling.value),
                origin: ceiling.origin.clone(),
            }),
            setting: set(value).into(),
            file: self.own_file.map(Arc::from),
        };
        self.report.at(At { file: at.file, span: at.span, value: at.value }, problem);
        false
    }
}
