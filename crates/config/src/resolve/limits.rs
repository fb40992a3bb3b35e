//! Limits, from the strongest: flags, variables, the tool's own limits, the limits of all tools.
//! Limits of a workspace are at most their ceilings.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::text::{nearest, shown};
use kitbag_base::{ParseLimitError, format_duration, parse_duration};
use kitbag_contract::{LEAST_SERVER_MEMORY, SERVER_MEMORY, SESSION_IDLE};

use super::context::{ConfigFiles, Context, tables};
use crate::format::LimitsConfig;
use crate::format::key::KeyPath;
use crate::format::span::At;
use crate::layers::limits::{EffectiveLimits, KnownLimits};
use crate::layers::origin::{Origin, Sourced};
use crate::read::file::{Layer, SourceFile};
use crate::read::sources::{BuiltinTool, Sources, TRUST_VARIABLE, VARIABLES};
use crate::report::text::{did_you_mean, known_words, own_file, user_only};
use crate::report::{DiagnosticKind, Problem, Report};

/// The form of a limit in a file.
pub(super) struct Quantity<T, U> {
    pub(super) parse: fn(&U) -> Result<T, ParseLimitError>,
    /// Formats a value as it would be typed, without quotation marks.
    show: fn(&T) -> String,
    quote: &'static str,
}

pub(super) const SIZE: Quantity<ByteSize, String> =
    Quantity { parse: |text| text.parse(), show: ByteSize::to_string, quote: "\"" };
pub(super) const TIME: Quantity<Duration, String> = Quantity {
    parse: |text| parse_duration(text),
    show: |time| format_duration(*time).to_string(),
    quote: "\"",
};
const NUMBER: Quantity<u64, NonZeroU64> =
    Quantity { parse: |number| Ok(number.get()), show: u64::to_string, quote: "" };

/// Returns the limits that variables and flags set for every tool. An unknown variable causes a
/// warning.
pub(crate) fn overrides(sources: &Sources<'_>, report: &mut Report) -> KnownLimits {
    const PREFIX: &str = "KITBAG_";
    let mut limits = KnownLimits::default();
    for (name, value) in sources.environment.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let origin = Origin::environment(name.clone());
        // Setting a variable to an empty value unsets it for one command in a shell.
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
                // The prefix is in every name, so it does not help to find the intended name.
                let rest = |name: &'static str| name.trim_start_matches(PREFIX);
                let meant = nearest(&name[PREFIX.len()..], VARIABLES.map(rest));
                let meant = meant.map(|meant| format!("{PREFIX}{meant}"));
                let hint = did_you_mean(meant.as_deref())
                    .or_else(|| known_words("variables", VARIABLES.into_iter()));
                report.warn(Problem::from("unknown variable").hint(hint).at(origin));
            }
        }
    }
    limits.zip(sources.flags).map(
        &mut (),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
        |(), key, (variable, flag)| flag.map(|value| of_flag(key, value)).or(variable),
    )
}

fn of_flag<T>(key: &str, value: T) -> Sourced<T> {
    Sourced { value, origin: Origin::flag(format!("--{}", key.replace('_', "-"))) }
}

/// Returns the limits of the layers, the weakest first, over other limits, without variables and
/// flags. `path` is the key of the table in each layer.
pub(super) fn merged<'a>(
    context: &Context<'_>,
    path: &KeyPath<'_>,
    layers: impl Iterator<Item = (&'a SourceFile, &'a LimitsConfig)>,
    under: &EffectiveLimits,
    report: &mut Report,
) -> EffectiveLimits {
    let mut ceilings = context.ceilings.clone();
    if let (Origin::Tool, Some(ceiling)) = (&under.tool_calls.origin, &mut ceilings.tool_calls)
        && ceiling.value < under.tool_calls.value
    {
        // A built-in has a higher default, which a workspace may lower.
        *ceiling = under.tool_calls.clone();
    }
    layers.fold(under.clone(), |limits, (file, layer)| {
        limits.zip(LimitsConfig::at(layer, file)).zip(ceilings.clone()).map(
            &mut Bounds { context, path, report: &mut *report },
            |bounds, key, ((limit, at), ceiling)| {
                bounds.limit(key, &SIZE, at, Some(&limit), ceiling).unwrap_or(limit)
            },
            |bounds, key, ((limit, at), ceiling)| {
                bounds.limit(key, &TIME, at, Some(&limit), ceiling).unwrap_or(limit)
            },
            |bounds, key, ((limit, at), ceiling)| {
                bounds.limit(key, &NUMBER, at, Some(&limit), ceiling).unwrap_or(limit)
            },
            |bounds, key, ((limit, at), ceiling)| {
                bounds.limit(key, &NUMBER, at, limit.as_ref(), ceiling).or(limit)
            },
        )
    })
}

struct Bounds<'a> {
    context: &'a Context<'a>,
    path: &'a KeyPath<'a>,
    report: &'a mut Report,
}

impl Bounds<'_> {
    /// Returns the limit that a layer sets, at most the ceiling. A limit above it is reported even
    /// if a stronger layer sets the limit. `None`: the layer sets no valid limit, or raises `limit`
    /// in an untrusted workspace.
    fn limit<T: PartialOrd + Clone, U>(
        &mut self,
        key: &str,
        quantity: &Quantity<T, U>,
        at: Option<At<'_, U>>,
        limit: Option<&Sourced<T>>,
        ceiling: Option<Sourced<T>>,
    ) -> Option<Sourced<T>> {
        let at = at?;
        let parsed = (quantity.parse)(at.value);
        let value = parsed.map_err(|error| self.report.at(at, error)).ok()?;
        if at.file.layer() == Layer::User {
            return Some(at.sourced(value));
        }
        let is_untrusted = self.context.is_untrusted();
        let ceiling = if is_untrusted { limit.cloned().or(ceiling) } else { ceiling };
        let Some(ceiling) = ceiling.filter(|ceiling| value > ceiling.value) else {
            return Some(at.sourced(value));
        };
        if is_untrusted {
            return None;
        }
        let Quantity { show, quote, .. } = quantity;
        let shown = show(&value);
        let message = format!(
            "`{}` is `{shown}`, above the ceiling of `{}` ({}); lower it, or put `{key} = \
             {quote}{shown}{quote}` under `[ceiling]` in {}",
            self.path.key(key),
            show(&ceiling.value),
            ceiling.origin,
            own_file(self.context.own_file)
        );
        self.report.at(at, Problem::new(DiagnosticKind::AboveCeiling, message));
        Some(ceiling)
    }
}

/// Returns the limits of a tool without limits of its own. By default, a built-in that calls other
/// tools may make more calls, and a built-in with large inputs has more memory.
pub(super) fn under(
    context: &Context<'_>,
    limits: &EffectiveLimits,
    builtin: Option<&BuiltinTool<'_>>,
) -> EffectiveLimits {
    let mut limits = limits.clone();
    let calls = builtin.filter(|builtin| builtin.calls).map(|_| BuiltinTool::CALLS);
    let default = &Origin::Default;
    raise(&mut limits.tool_calls, default, calls, context.ceilings.tool_calls.as_ref());
    let ceiling = context.ceilings.memory.as_ref();
    raise(&mut limits.memory, default, builtin.and_then(BuiltinTool::memory), ceiling);
    let least = builtin.and_then(BuiltinTool::untrusted_memory);
    raise(&mut limits.memory, &Origin::Untrusted, least, ceiling);
    limits
}

/// Raises a limit with this origin to the default of a built-in, or to a lower ceiling that the
/// user has set.
fn raise<T: PartialOrd + Clone>(
    limit: &mut Sourced<T>,
    origin: &Origin,
    value: Option<T>,
    ceiling: Option<&Sourced<T>>,
) {
    if let Some(value) = value.filter(|_| limit.origin == *origin) {
        *limit = match ceiling {
            Some(own) if own.origin != Origin::Default && own.value < value => own.clone(),
            _ => Sourced { value, origin: Origin::Tool },
        };
    }
}

/// Returns the memory of a server, which the workspace may lower.
pub(super) fn server_memory(
    configs: &ConfigFiles<'_>,
    is_untrusted: bool,
    user_file: Option<&Path>,
    report: &mut Report,
) -> Sourced<ByteSize> {
    let mut memory = Sourced::default(SERVER_MEMORY);
    for (file, written) in tables(configs, |config| config.serve.as_ref()?.memory.as_ref()) {
        let at = written.at(file);
        let is_raised = |value| file.layer() != Layer::User && value > memory.value;
        match at.value.parse::<ByteSize>() {
            Err(error) => report.at(at, error),
            Ok(value) if value < LEAST_SERVER_MEMORY => {
                let problem = format!(
                    "`serve.memory` is `{value}`; a server needs at least `{LEAST_SERVER_MEMORY}`"
                );
                report.at(at, problem);
            }
            Ok(value) if is_raised(value) && is_untrusted => {}
            Ok(value) if is_raised(value) => {
                let message = format!(
                    "`serve.memory` is `{value}`, above `{}` ({}), which a workspace may only \
                     lower; lower it, or put `memory = \"{value}\"` under `[serve]` in {}",
                    memory.value,
                    memory.origin,
                    own_file(user_file)
                );
                report.at(at, Problem::new(DiagnosticKind::UserOnly, message));
            }
            Ok(value) => memory = at.sourced(value),
        }
    }
    memory
}

/// Returns the time after which an unused session of a server ends, which only the user config
/// sets.
pub(super) fn session_idle(
    configs: &ConfigFiles<'_>,
    user_file: Option<&Path>,
    report: &mut Report,
) -> Sourced<Duration> {
    let mut idle = Sourced::default(SESSION_IDLE);
    for (file, written) in tables(configs, |config| config.serve.as_ref()?.session_idle.as_ref()) {
        let at = written.at(file);
        match (TIME.parse)(at.value) {
            _ if file.layer() != Layer::User => {
                report.at(at, user_only("serve.session_idle", user_file));
            }
            Ok(value) => idle = at.sourced(value),
            Err(error) => report.at(at, error),
        }
    }
    idle
}
