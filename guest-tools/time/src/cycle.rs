//! The last day of the calendar.
//!
//! `jiff` ends at 9999-12-30T22:00:00.999999999Z, so that a time has every offset, but
//! 9999-12-31T23:59:59Z is a usual value for "never". The calendar repeats after 400 years, with
//! its days of the week, and so do the rules of zones once their table of changes has ended. So
//! a call that fails runs again with all times 400 years earlier, and the answer is shifted back.

use jiff::civil::DateTime;
use jiff::{Timestamp, ToSpan, Zoned};

/// The length of a cycle.
const YEARS: i16 = 400;

/// The seconds of a cycle.
const SECONDS: i64 = 146_097 * 86_400;

/// The year, shifted, from which zones have rules and no table.
const RULES: i16 = 2100;

/// The shift of times at a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cycle {
    This,
    /// Times are 400 years earlier than they are meant.
    Earlier,
}

/// Runs a call. If that fails because of a time on the last day, runs it in the earlier cycle.
pub(crate) fn run<T>(call: impl Fn(Cycle) -> Result<T, String>) -> Result<T, String> {
    call(Cycle::This).or_else(|error| call(Cycle::Earlier).map_err(|_| error))
}

impl Cycle {
    /// The time in this cycle.
    pub(crate) fn shift(self, time: DateTime) -> Result<DateTime, jiff::Error> {
        match self {
            Self::This => Ok(time),
            Self::Earlier => time.checked_sub(YEARS.years()),
        }
    }

    /// Shifts back seconds since 1970.
    pub(crate) fn unix(self, seconds: i64) -> i64 {
        match self {
            Self::This => seconds,
            Self::Earlier => seconds + SECONDS,
        }
    }

    /// Shifts back a text that begins with a year of four digits.
    pub(crate) fn text(self, text: String) -> String {
        match text.get(..4).map(str::parse::<i16>) {
            Some(Ok(year)) if self == Self::Earlier => format!("{}{}", year + YEARS, &text[4..]),
            _ => text,
        }
    }

    /// Checks the times of a call that was shifted.
    ///
    /// # Errors
    ///
    /// No time is on the last day, one is after it, or the offset of one is not that of the
    /// cycle in which it is meant.
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
