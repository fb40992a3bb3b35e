//! The limits of a call, with what is known of each: one set for what is in effect, for
//! ceilings, for flags and for whatever lies between.

use std::fmt;
use std::time::Duration;

use kitbag_contract::{ByteSize, Limits, format_duration};

use crate::origin::{Origin, Sourced};

/// A value for each limit. The parameters say what is known of a size, of a time, of a
/// number and of a budget of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSet<S, T, N, F> {
    /// Memory of one call. Default 64 MiB.
    pub memory: S,
    /// Time of one call. Default 30 s.
    pub time: T,
    /// Size of what one call answers. Default 1 MiB.
    pub output: S,
    /// What one call writes to files. Default 1 GiB.
    pub written: S,
    /// Requests over HTTP of one call. Default 50.
    pub requests: N,
    /// Calls of other tools of one call. Default 20.
    pub tool_calls: N,
    /// Instructions of one call. Default: they are not counted.
    pub fuel: F,
    /// Compiling the tool's component. Default 1 min.
    pub compile: T,
}

/// Limits that are in effect, or the most that the files of a workspace may set them to.
/// Without `fuel`, instructions are not counted, and any budget may be set.
///
/// A ceiling binds a workspace's files and the defaults, and neither the person's own
/// file nor the environment nor the command line.
pub type EffectiveLimits =
    LimitSet<Sourced<ByteSize>, Sourced<Duration>, Sourced<u64>, Option<Sourced<u64>>>;

/// Limits given on the command line; they hold for every tool. `requests`,
/// `tool_calls` and `fuel` are at least 1.
pub type LimitFlags = LimitSet<Option<ByteSize>, Option<Duration>, Option<u64>, Option<u64>>;

/// Limits as far as they are known, and from where.
pub(crate) type KnownLimits = LimitSet<
    Option<Sourced<ByteSize>>,
    Option<Sourced<Duration>>,
    Option<Sourced<u64>>,
    Option<Sourced<u64>>,
>;

impl<S, T, N, F> LimitSet<S, T, N, F> {
    /// Makes another set of this one; each function is given `context`, the key of the
    /// limit and what is known of it.
    pub(crate) fn map<C, S2, T2, N2, F2>(
        self,
        context: &mut C,
        size: fn(&mut C, &'static str, S) -> S2,
        time: fn(&mut C, &'static str, T) -> T2,
        number: fn(&mut C, &'static str, N) -> N2,
        fuel: fn(&mut C, &'static str, F) -> F2,
    ) -> LimitSet<S2, T2, N2, F2> {
        LimitSet {
            memory: size(context, "memory", self.memory),
            time: time(context, "time", self.time),
            output: size(context, "output", self.output),
            written: size(context, "written", self.written),
            requests: number(context, "requests", self.requests),
            tool_calls: number(context, "tool_calls", self.tool_calls),
            fuel: fuel(context, "fuel", self.fuel),
            compile: time(context, "compile", self.compile),
        }
    }

    /// Puts what another set knows of each limit beside what this one knows.
    #[expect(clippy::type_complexity, reason = "it is each parameter twice")]
    pub(crate) fn zip<S2, T2, N2, F2>(
        self,
        other: LimitSet<S2, T2, N2, F2>,
    ) -> LimitSet<(S, S2), (T, T2), (N, N2), (F, F2)> {
        LimitSet {
            memory: (self.memory, other.memory),
            time: (self.time, other.time),
            output: (self.output, other.output),
            written: (self.written, other.written),
            requests: (self.requests, other.requests),
            tool_calls: (self.tool_calls, other.tool_calls),
            fuel: (self.fuel, other.fuel),
            compile: (self.compile, other.compile),
        }
    }
}

impl EffectiveLimits {
    /// The values alone.
    pub fn limits(&self) -> Limits {
        Limits {
            memory: self.memory.value,
            time: self.time.value,
            output: self.output.value,
            written: self.written.value,
            requests: self.requests.value,
            tool_calls: self.tool_calls.value,
            fuel: self.fuel.as_ref().map(|fuel| fuel.value),
            compile: self.compile.value,
        }
    }

    /// What is known of others, over these.
    pub(crate) fn under(self, others: &KnownLimits) -> Self {
        self.zip(others.clone()).map(
            &mut (),
            |(), _, (limit, other)| other.unwrap_or(limit),
            |(), _, (limit, other)| other.unwrap_or(limit),
            |(), _, (limit, other)| other.unwrap_or(limit),
            |(), _, (limit, other)| other.or(limit),
        )
    }
}

/// A limit that an edited workspace sets higher than the trusted one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RaisedLimit {
    key: &'static str,
    now: String,
    then: String,
}

impl fmt::Display for RaisedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, now, then } = self;
        write!(f, "`{key}` is {now} and was {then}")
    }
}

impl EffectiveLimits {
    /// These limits, none of them higher than the trusted ones. `raised` gets those that were.
    pub(crate) fn at_most(self, trusted: &Self, raised: &mut Vec<RaisedLimit>) -> Self {
        self.zip(trusted.clone()).map(
            raised,
            |raised, key, (now, then)| at_most(raised, key, now, then, ByteSize::to_string),
            |raised, key, (now, then)| {
                at_most(raised, key, now, then, |time| format_duration(*time).to_string())
            },
            |raised, key, (now, then)| at_most(raised, key, now, then, u64::to_string),
            |raised, key, (now, then)| {
                // Without a budget instructions are not counted.
                let Some(then) = then else { return now };
                let no_budget = Sourced { value: u64::MAX, origin: Origin::Default };
                let now = now.unwrap_or(no_budget);
                Some(at_most(raised, key, now, then, |fuel| match *fuel {
                    u64::MAX => "none".to_owned(),
                    fuel => fuel.to_string(),
                }))
            },
        )
    }

    /// The limits in a workspace that is not trusted, instead of the defaults: about a quarter.
    /// What the user's own file, a variable or a flag says counts instead of them.
    pub(crate) fn untrusted() -> Self {
        fn of<T>(value: T) -> Sourced<T> {
            Sourced { value, origin: Origin::Untrusted }
        }
        let defaults = Self::default();
        Self {
            memory: of(ByteSize::mib(32)),
            time: of(Duration::from_secs(10)),
            output: of(ByteSize::bytes(256 << 10)),
            written: of(ByteSize::mib(64)),
            requests: of(10),
            tool_calls: of(10),
            fuel: defaults.fuel,
            compile: of(Duration::from_secs(20)),
        }
    }
}

/// A limit of one call that is higher than that of its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HigherLimit {
    /// Its key.
    pub key: &'static str,
    /// What the call was to have, as it would be typed.
    pub wanted: String,
    /// What the tool has, as it would be typed, and who set it.
    pub own: Sourced<String>,
}

impl EffectiveLimits {
    /// These limits, with lower ones for a single call.
    ///
    /// # Errors
    ///
    /// [`HigherLimit`] for the first one that would be higher.
    pub fn lowered(&self, by: LimitFlags) -> Result<Limits, HigherLimit> {
        let mut higher = None;
        let LimitSet { memory, time, output, written, requests, tool_calls, fuel, compile } =
            self.clone().zip(by).map(
                &mut higher,
                |higher, key, (own, by)| lower(higher, key, own, by, ByteSize::to_string),
                |higher, key, (own, by)| {
                    lower(higher, key, own, by, |time| format_duration(*time).to_string())
                },
                |higher, key, (own, by)| lower(higher, key, own, by, u64::to_string),
                |higher, key, (own, by)| match own {
                    Some(own) => Some(lower(higher, key, own, by, u64::to_string)),
                    None => by,
                },
            );
        let limits = Limits { memory, time, output, written, requests, tool_calls, fuel, compile };
        higher.map_or(Ok(limits), Err)
    }
}

fn at_most<T: PartialOrd>(
    raised: &mut Vec<RaisedLimit>,
    key: &'static str,
    now: Sourced<T>,
    then: Sourced<T>,
    show: fn(&T) -> String,
) -> Sourced<T> {
    if now.value <= then.value {
        return now;
    }
    raised.push(RaisedLimit { key, now: show(&now.value), then: show(&then.value) });
    Sourced { value: then.value, origin: Origin::Trusted }
}

fn lower<T: PartialOrd>(
    higher: &mut Option<HigherLimit>,
    key: &'static str,
    own: Sourced<T>,
    by: Option<T>,
    show: fn(&T) -> String,
) -> T {
    match by {
        None => own.value,
        Some(by) => {
            if by > own.value && higher.is_none() {
                let own = Sourced { value: show(&own.value), origin: own.origin };
                *higher = Some(HigherLimit { key, wanted: show(&by), own });
            }
            by
        }
    }
}

impl Default for EffectiveLimits {
    fn default() -> Self {
        let Limits { memory, time, output, written, requests, tool_calls, fuel, compile } =
            Limits::default();
        Self {
            memory: Sourced::default(memory),
            time: Sourced::default(time),
            output: Sourced::default(output),
            written: Sourced::default(written),
            requests: Sourced::default(requests),
            tool_calls: Sourced::default(tool_calls),
            fuel: fuel.map(Sourced::default),
            compile: Sourced::default(compile),
        }
    }
}

impl<S, T, N, F> Default for LimitSet<Option<S>, Option<T>, Option<N>, Option<F>> {
    /// Nothing is known of any of them.
    fn default() -> Self {
        Self {
            memory: None,
            time: None,
            output: None,
            written: None,
            requests: None,
            tool_calls: None,
            fuel: None,
            compile: None,
        }
    }
}
