//! The last day of the calendar.
//!
//! The range of `jiff` ends at 9999-12-30T22:00:00.999999999Z, so that a time can be in any offset,
//! but 9999-12-31T23:59:59Z is a common value for "never". The calendar repeats every 400 years,
//! including weekdays, and so do the rules of zones after the end of their transition tables. So a
//! call that fails runs again with all times 400 years earlier, and the answer is shifted back.

use jiff::civil::DateTime;
use jiff::{Timestamp, ToSpan, Zoned};

/// The length of a cycle.
const YEARS: i16 = 400;

/// The seconds of a cycle.
const SECONDS: i64 = 146_097 * 86_400;

/// The shifted year from which zones have rules in place of a table.
const RULES: i16 = 2100;

/// The shift of the times of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    This,
    /// Times are 400 years earlier than intended.
    Earlier,
}

/// Runs a call. If that fails because of a time on the last day, runs it in the earlier cycle.
pub(crate) fn run<T>(call: impl Fn(Cycle) -> Result<T, String>) -> Result<T, String> {
    call(Cycle::This).or_else(|error| call(Cycle::Earlier).map_err(|_| error))
}

impl Cycle {
    /// Shifts a time to this cycle.
    pub(crate) fn shift(self, time: DateTime) -> Result<DateTime, jiff::Error> {
        match self {
            Self::This => Ok(time),
            Self::Earlier => time.checked_sub(YEARS.years()),
        }
    }

    /// Shifts seconds since 1970 back.
    pub(crate) fn unix(self, seconds: i64) -> i64 {
        match self {
            Self::This => seconds,
            Self::Earlier => seconds + SECONDS,
        }
    }

    /// Shifts a text back that starts with a year of four digits.
    pub(crate) fn text(self, text: String) -> String {
        match text.get(..4).map(str::parse::<i16>) {
            Some(Ok(year)) if self == Self::Earlier => format!("{}{}", year + YEARS, &text[4..]),
            _ => text,
        }
    }

    /// Checks the times of a shifted call.
    ///
    /// # Errors
    ///
    /// No time is on the last day, a time is after it, or the offset of a time differs from its
    /// offset in the intended cycle.
    pub(crate) fn check(self, times: &[&Zoned]) -> Result<(), String> {
        if self == Self::This {
            return Ok(());
        }
        let meant = |time: &&Zoned| self.unix(time.timestamp().as_second());
        let has_last_day = times.iter().any(|time| meant(time) > Timestamp::MAX.as_second());
        let is_right = |time: &&Zoned| {
            let is_fixed = time.time_zone().to_fixed_offset().is_ok();
            let years = if is_fixed { 0 } else { RULES }..10_000 - YEARS;
            years.contains(&time.year())
        };
        match has_last_day && times.iter().all(is_right) {
            true => Ok(()),
            false => Err("out of range".into()),
        }
    }
}
