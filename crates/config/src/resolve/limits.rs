//! Limits: flag over variable over the tool's own over those of all tools, and
//! none of a workspace's above its ceiling.

use std::num::NonZeroU64;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::text::{nearest, shown};
use kitbag_base::{ParseLimitError, format_duration, parse_duration};
use kitbag_contract::{LEAST_SERVER_MEMORY, SERVER_MEMORY, SESSION_IDLE};

use super::resolver::Resolver;
use crate::format::key::KeyPath;
use crate::format::spanned::At;
use crate::format::{ConfigFile, LimitsConfig};
use crate::layers::limits::{EffectiveLimits, KnownLimits};
use crate::layers::origin::{Origin, Sourced};
use crate::read::file::{Layer, SourceFile};
use crate::read::sources::{BuiltinTool, Sources, TRUST_VARIABLE, VARIABLES};
use crate::report::text::{did_you_mean, known_words, own_file, user_only};
use crate::report::{Diagnostic, DiagnosticKind, Problem, Report};

/// A limit that is typed as a number and a unit, and has a ceiling.
pub(super) struct Quantity<T> {
    /// Reads it.
    pub(super) parse: fn(&str) -> Result<T, ParseLimitError>,
    /// Writes it as it would be typed.
    show: fn(&T) -> String,
}

pub(super) const SIZE: Quantity<ByteSize> =
    Quantity { parse: str::parse, show: ByteSize::to_string };
pub(super) const TIME: Quantity<Duration> =
    Quantity { parse: parse_duration, show: |time| format_duration(*time).to_string() };

/// What the environment and the command line say: it holds for every tool.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) limits: KnownLimits,
    /// Variables that mean nothing.
    pub(crate) unknown: Vec<Diagnostic>,
}

/// Reads the variables and the flags.
pub(crate) fn overrides(sources: &Sources<'_>, report: &mut Report) -> Overrides {
    const PREFIX: &str = "KITBAG_";
    let mut limits = KnownLimits::default();
    let mut unknown = Vec::new();
    for (name, value) in sources.environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let origin = Origin::environment(name.clone());
        // An empty value is how a shell takes a variable back for one command.
        let is_set = !value.is_empty();
        match name.as_str() {
            name if is_set && limits.read_variable(name, value, report) => {}
            TRUST_VARIABLE if is_set && !["0", "1"].contains(&value.as_str()) => {
                let problem = format!(
                    "`{}` is not a value of this variable; set it to `1`, or unset it",
                    shown(value)
                );
                report.origin(origin, problem);
            }
            known if VARIABLES.contains(&known) => {}
            name => {
                // The prefix, which all of them share, says nothing of what was
                // meant.
                let rest = |name: &'static str| name.trim_start_matches(PREFIX);
                let meant = nearest(&name[PREFIX.len()..], VARIABLES.map(rest));
                let meant = meant.map(|meant| format!("{PREFIX}{meant}"));
                let hint = did_you_mean(meant.as_deref())
                    .or_else(|| known_words("variables", VARIABLES.into_iter()));
                unknown.push(Problem::from("unknown variable").hint(hint).at(origin));
            }
        }
    }
    let limits = limits.zip(sources.flags).map(
        &mut (),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
    );
    Overrides { limits, unknown }
}

fn of_flag<T>(key: &str, value: T) -> Sourced<T> {
    Sourced { value, origin: Origin::flag(format!("--{}", key.replace('_', "-"))) }
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
        let mut ceilings = self.ceilings.clone();
        if let (Origin::Tool, Some(ceiling)) = (&under.tool_calls.origin, &mut ceilings.tool_calls)
            && ceiling.value < under.tool_calls.value
        {
            // A built-in has more than others by default, which a workspace may lower.
            *ceiling = under.tool_calls.clone();
        }
        for (file, layer) in layers {
            let known = limits.zip(LimitsConfig::at(layer, file)).zip(ceilings.clone());
            limits = known.map(
                &mut (&mut *self, path),
                |(resolver, path), key, ((limit, at), ceiling)| {
                    let ceiling = resolver.bound(at, &limit, ceiling);
                    resolver.limit(&path.key(key), key, &SIZE, at, ceiling).unwrap_or(limit)
                },
                |(resolver, path), key, ((limit, at), ceiling)| {
                    let ceiling = resolver.bound(at, &limit, ceiling);
                    resolver.limit(&path.key(key), key, &TIME, at, ceiling).unwrap_or(limit)
                },
                |(resolver, path), key, ((limit, at), ceiling)| {
                    let ceiling = resolver.bound(at, &limit, ceiling);
                    resolver.number(&path.key(key), key, at, ceiling).unwrap_or(limit)
                },
                |(resolver, path), key, ((limit, at), ceiling)| {
                    let ceiling = match &limit {
                        Some(limit) => resolver.bound(at, limit, ceiling),
                        None => ceiling,
                    };
                    resolver.number(&path.key(key), key, at, ceiling).or(limit)
                },
            );
        }
        limits
    }

    /// What a layer may set a limit to at most, where it has the value `limit` without it: a
    /// workspace that is not trusted raises none.
    fn bound<T: Clone, U>(
        &self,
        at: Option<At<'_, U>>,
        limit: &Sourced<T>,
        ceiling: Option<Sourced<T>>,
    ) -> Option<Sourced<T>> {
        let is_of_user = at.is_none_or(|at| at.file.layer() == Layer::User);
        if self.is_untrusted() && !is_of_user { Some(limit.clone()) } else { ceiling }
    }

    /// The limits of a tool that has none of its own. If no file says otherwise, a built-in that
    /// calls others makes more calls of them, and one with large inputs has more memory.
    pub(super) fn under(
        &self,
        limits: &EffectiveLimits,
        builtin: Option<&BuiltinTool<'_>>,
    ) -> EffectiveLimits {
        let mut limits = limits.clone();
        let is_default = limits.tool_calls.origin == Origin::Default;
        if is_default && builtin.is_some_and(|builtin| builtin.calls) {
            limits.tool_calls = match &self.ceilings.tool_calls {
                Some(own) if own.origin != Origin::Default && own.value < BuiltinTool::CALLS => {
                    own.clone()
                }
                _ => Sourced { value: BuiltinTool::CALLS, origin: Origin::Tool },
            };
        }
        let memory = builtin.and_then(BuiltinTool::memory);
        if let Some(memory) = memory.filter(|_| limits.memory.origin == Origin::Default) {
            limits.memory = match &self.ceilings.memory {
                Some(own) if own.origin != Origin::Default && own.value < memory => own.clone(),
                _ => Sourced { value: memory, origin: Origin::Tool },
            };
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
                let problem = format!(
                    "`serve.memory` is `{value}`; a server needs at least `{LEAST_SERVER_MEMORY}`"
                );
                self.report.at(at, problem);
            } else if file.layer() != Layer::User && value > memory.value && self.is_untrusted() {
                continue;
            } else if file.layer() != Layer::User && value > memory.value {
                let message = format!(
                    "`serve.memory` is `{value}`, above `{}` ({}), which a workspace may only \
                     lower; lower it, or put `memory = \"{value}\"` under `[serve]` in {}",
                    memory.value,
                    memory.origin,
                    own_file(self.own_file)
                );
                self.report.at(at, Problem::new(DiagnosticKind::UserOnly, message));
            } else {
                memory = at.sourced(value);
            }
        }
        memory
    }

    /// The time after which an unused session of a server ends, which only the user config sets.
    pub(super) fn session_idle(
        &mut self,
        layers: &[(&SourceFile, &ConfigFile)],
    ) -> Sourced<Duration> {
        let mut idle = Sourced::default(SESSION_IDLE);
        for (file, layer) in layers {
            let written = layer.serve.as_ref().and_then(|serve| serve.session_idle.as_ref());
            let Some(at) = written.map(|written| written.at(file)) else { continue };
            if file.layer() != Layer::User {
                self.report.at(at, user_only("serve.session_idle", self.own_file));
                continue;
            }
            match (TIME.parse)(at.value) {
                Ok(value) => idle = at.sourced(value),
                Err(error) => self.report.at(at, error),
            }
        }
        idle
    }

    /// What a layer says of a limit, unless it is none, or not this layer's to
    /// say.
    fn limit<T: PartialOrd>(
        &mut self,
        path: &KeyPath<'_>,
        key: &str,
        quantity: &Quantity<T>,
        at: Option<At<'_, String>>,
        ceiling: Option<Sourced<T>>,
    ) -> Option<Sourced<T>> {
        let at = at?;
        let value = match (quantity.parse)(at.value) {
            Ok(value) => value,
            Err(error) => {
                self.report.at(at, error);
                return None;
            }
        };
        let set = |value: &T| format!("{key} = \"{}\"", (quantity.show)(value));
        self.bounded(path, at, value, ceiling, quantity.show, set)
    }

    /// As [`limit`](Self::limit), for one that is written as a number.
    fn number(
        &mut self,
        path: &KeyPath<'_>,
        key: &str,
        at: Option<At<'_, NonZeroU64>>,
        ceiling: Option<Sourced<u64>>,
    ) -> Option<Sourced<u64>> {
        let at = at?;
        let number = at.value.get();
        let set = |number: &u64| format!("{key} = {number}");
        self.bounded(path, at, number, ceiling, u64::to_string, set)
    }

    /// The limit that a layer sets, at most the ceiling. A limit above it is reported even if a
    /// stronger layer sets another one. `None`: the workspace is not trusted and may not raise
    /// the limit.
    ///
    /// `show` writes a value as it is shown, `set` as a setting in a file.
    fn bounded<T: PartialOrd, U>(
        &mut self,
        key: &KeyPath<'_>,
        at: At<'_, U>,
        value: T,
        ceiling: Option<Sourced<T>>,
        show: fn(&T) -> String,
        set: impl Fn(&T) -> String,
    ) -> Option<Sourced<T>> {
        let ceiling = match ceiling {
            Some(ceiling) if at.file.layer() != Layer::User && value > ceiling.value => ceiling,
            _ => return Some(at.sourced(value)),
        };
        if self.is_untrusted() {
            return None;
        }
        let message = format!(
            "`{key}` is `{}`, above the ceiling of `{}` ({}); lower it, or put `{}` under \
             `[ceiling]` in {}",
            show(&value),
            show(&ceiling.value),
            ceiling.origin,
            set(&value),
            own_file(self.own_file)
        );
        self.report.at(at, Problem::new(DiagnosticKind::AboveCeiling, message));
        Some(ceiling)
    }
}
