//! The limits of a call: one generic set for the limits in effect, ceilings, flags and intermediate
//! values.

use std::fmt;
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_base::{
    ParseLimitError, format_duration, parse_duration, parse_fuel, parse_requests, parse_tool_calls,
};
use kitbag_contract::Limits;

use crate::layers::origin::{Origin, Sourced};
use crate::report::Report;

/// Passes the table of limits to another macro. A new limit needs a new row here, a field of
/// [`Limits`] and code that enforces it.
///
/// The table starts with the names of the functions that map a limit. Each row names one of them.
///
/// A row has the key, the parameter of [`LimitSet`] with the function that maps it, the type in a
/// file, the variable of the environment and what parses it, the limit in a workspace that is not
/// trusted, the default as it is written in a file, the help for the option of the command line, and
/// the help for a file. Help that is only for `[limits]` follows, and then help that is only for
/// `[ceiling]`.
#[doc(hidden)]
#[macro_export]
macro_rules! with_limits {
    ($then:ident) => {
        $then! {
            [size time number fuel]
            memory: S size String, "KITBAG_LIMITS_MEMORY" <ByteSize as std::str::FromStr>::from_str, ByteSize::mib(32), ["64MiB"],
                "Limit the memory of a call, such as 128MiB",
                "Memory of the call: a number and a unit, such as `64MiB`.";
            time: T time String, "KITBAG_LIMITS_TIME" parse_duration, Duration::from_secs(10), ["30s"],
                "Limit the time of a call, such as 5s",
                "Time from start to end: a number and a unit, such as `30s` or `500ms`.";
            output: S size String, "KITBAG_LIMITS_OUTPUT" <ByteSize as std::str::FromStr>::from_str, ByteSize::bytes(256 << 10), ["1MiB"],
                "Limit the size of the answer, such as 64KiB",
                "Size of the answer: a number and a unit, such as `1MiB`.";
            written: S size String, "KITBAG_LIMITS_WRITTEN" <ByteSize as std::str::FromStr>::from_str, ByteSize::mib(64), ["1GiB"],
                "Limit the bytes that a call writes to files, such as 64MiB",
                "Bytes written to files by the call: a number and a unit, such as `1GiB`. Each new \
                 file, directory or link adds 4 KiB.";
            requests: N number NonZeroU64, "KITBAG_LIMITS_REQUESTS" parse_requests, 10, [50],
                "Limit the HTTP requests of a call, including each hop of a redirect",
                "HTTP requests of the call, including each hop of a redirect: a positive integer, \
                 such as `100`.";
            tool_calls: N number NonZeroU64, "KITBAG_LIMITS_TOOL_CALLS" parse_tool_calls, 10, [20],
                "Limit the calls of other tools",
                "Calls of other tools: a positive integer, such as `100`.";
            fuel: F fuel NonZeroU64, "KITBAG_LIMITS_FUEL" parse_fuel, None, [],
                "Limit the WebAssembly instructions of a call, the same number on every machine",
                "WebAssembly instructions of the call, the same number on every machine: a positive \
                 integer, such as `1000000`.",
                "Default: not counted.",
                "Also the limit of a tool without one. Default: no ceiling.";
            compile: T time String, "KITBAG_LIMITS_COMPILE" parse_duration, Duration::from_secs(20), ["1m"],
                "Limit the time to compile the tool, such as 5m",
                "Time to compile the tool's component if necessary: a number and a unit, such as \
                 `5m`. It does not count towards `time`.";
        }
    };
}

pub(crate) use crate::with_limits;

macro_rules! define {
    ([$size:ident $time:ident $number:ident $fuel:ident] $($key:ident: $param:ident $map:ident $form:ident, $variable:literal $parse:expr,
       $untrusted:expr, [$($default:literal)?], $($help:literal),*;)*) => {
        /// The limits of a call.
        pub const LIMITS: &[LimitSpec] = &[
            $(LimitSpec { key: stringify!($key), variable: $variable }),*
        ];

        /// A value for each limit. The parameters are the types for a size, a time, a number and an
        /// instruction budget. [`Limits`] defines each limit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct LimitSet<S, T, N, F> {
            $(#[doc = concat!("The limit [`Limits::", stringify!($key), "`].")] pub $key: $param,)*
        }

        impl<S, T, N, F> LimitSet<S, T, N, F> {
            /// Returns another set with each value mapped. Each function receives `context`, the
            /// key of the limit and the value.
            pub(crate) fn map<C, S2, T2, N2, F2>(
                self,
                context: &mut C,
                $size: fn(&mut C, &'static str, S) -> S2,
                $time: fn(&mut C, &'static str, T) -> T2,
                $number: fn(&mut C, &'static str, N) -> N2,
                $fuel: fn(&mut C, &'static str, F) -> F2,
            ) -> LimitSet<S2, T2, N2, F2> {
                LimitSet { $($key: $map(context, stringify!($key), self.$key)),* }
            }

            /// Pairs each value of another set with the value of this set.
            pub(crate) fn zip<S2, T2, N2, F2>(
                self,
                other: LimitSet<S2, T2, N2, F2>,
            ) -> LimitSet<(S, S2), (T, T2), (N, N2), (F, F2)> {
                LimitSet { $($key: (self.$key, other.$key)),* }
            }
        }

        impl<S, T, N, F> Default for LimitSet<Option<S>, Option<T>, Option<N>, Option<F>> {
            /// Returns a set without values.
            fn default() -> Self {
                Self { $($key: None),* }
            }
        }

        impl From<Limits> for LimitValues {
            fn from(limits: Limits) -> Self {
                Self { $($key: limits.$key),* }
            }
        }

        impl From<LimitValues> for Limits {
            fn from(limits: LimitValues) -> Self {
                Self { $($key: limits.$key),* }
            }
        }

        /// The limits in an untrusted workspace: about a quarter of the defaults.
        const UNTRUSTED: LimitValues = LimitSet { $($key: $untrusted),* };

        impl KnownLimits {
            /// Reads the variable of a limit. Returns whether the variable is one of a limit.
            pub(crate) fn read_variable(
                &mut self,
                name: &str,
                value: &str,
                report: &mut Report,
            ) -> bool {
                match name {
                    $($variable => self.$key = of_variable(name, $parse(value), report),)*
                    _ => return false,
                }
                true
            }
        }
    };
}

/// A limit of a call.
#[derive(Clone, Copy, Debug)]
pub struct LimitSpec {
    /// The key under `limits`; the option of the command line has dashes instead.
    pub key: &'static str,
    /// The variable of the environment.
    pub variable: &'static str,
}

with_limits!(define);

type LimitValues = LimitSet<ByteSize, Duration, u64, Option<u64>>;

fn of_variable<T>(
    name: &str,
    parsed: Result<T, ParseLimitError>,
    report: &mut Report,
) -> Option<Sourced<T>> {
    let origin = Origin::environment(name.to_owned());
    match parsed {
        Ok(value) => Some(Sourced { value, origin }),
        Err(error) => {
            report.origin(origin, error);
            None
        }
    }
}

/// Limits in effect, or ceilings for the files of a workspace. Without `fuel`, instructions are not
/// counted, and any budget may be set.
///
/// A ceiling applies to the files of a workspace and to the defaults. It does not apply to the user
/// config, the environment or the command line.
pub type EffectiveLimits =
    LimitSet<Sourced<ByteSize>, Sourced<Duration>, Sourced<u64>, Option<Sourced<u64>>>;

/// Limits from the command line; they apply to every tool. `requests`, `tool_calls` and `fuel` are
/// at least 1.
pub type LimitFlags = LimitSet<Option<ByteSize>, Option<Duration>, Option<u64>, Option<u64>>;

/// Known limits, with their origins.
pub(crate) type KnownLimits = LimitSet<
    Option<Sourced<ByteSize>>,
    Option<Sourced<Duration>>,
    Option<Sourced<u64>>,
    Option<Sourced<u64>>,
>;

impl EffectiveLimits {
    /// Returns the values without their origins.
    pub fn limits(&self) -> Limits {
        let values = self.clone().map(
            &mut (),
            |(), _, size| size.value,
            |(), _, time| time.value,
            |(), _, number| number.value,
            |(), _, fuel| fuel.map(|fuel| fuel.value),
        );
        values.into()
    }

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
    /// Returns these limits, lowered to the trusted limits. Adds the lowered limits to `raised`.
    pub(crate) fn at_most(self, trusted: &Self, raised: &mut Vec<RaisedLimit>) -> Self {
        self.zip(trusted.clone()).map(
            raised,
            |raised, key, (now, then)| at_most(raised, key, now, then, ByteSize::to_string),
            |raised, key, (now, then)| {
                at_most(raised, key, now, then, |time| format_duration(*time).to_string())
            },
            |raised, key, (now, then)| at_most(raised, key, now, then, u64::to_string),
            |raised, key, (now, then)| {
                // Instructions are not counted without a budget.
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

    /// Returns the limits in an untrusted workspace, which replace the defaults: about a quarter of
    /// them. The user config, variables and flags override them.
    pub(crate) fn untrusted() -> Self {
        Self::of(UNTRUSTED, &Origin::Untrusted)
    }
}

/// A limit for one call that is higher than the limit of its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HigherLimit {
    /// The key of the limit.
    pub key: &'static str,
    /// The requested limit, as it would be typed.
    pub wanted: String,
    /// The limit of the tool, as it would be typed, with its origin.
    pub own: Sourced<String>,
}

impl EffectiveLimits {
    /// Returns these limits, with lower limits for a single call.
    ///
    /// # Errors
    ///
    /// [`HigherLimit`] for the first limit that would be higher.
    pub fn lowered(&self, by: LimitFlags) -> Result<Limits, HigherLimit> {
        let mut higher = None;
        let limits = self.clone().zip(by).map(
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
        higher.map_or(Ok(limits.into()), Err)
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
        Self::of(Limits::default().into(), &Origin::Default)
    }
}

impl EffectiveLimits {
    fn of(values: LimitValues, origin: &Origin) -> Self {
        values.map(
            &mut &*origin,
            |origin, _, value| Sourced { value, origin: origin.clone() },
            |origin, _, value| Sourced { value, origin: origin.clone() },
            |origin, _, value| Sourced { value, origin: origin.clone() },
            |origin, _, value| value.map(|value| Sourced { value, origin: origin.clone() }),
        )
    }
}
