//! Points in time, in the formats for people and for storage.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::excerpt::shortened;

/// A point in time, in whole milliseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    /// The start of 1970.
    #[cfg(target_family = "wasm")]
    pub(crate) const EARLIEST: Self = Self(Timestamp::UNIX_EPOCH);

    /// Creates a moment from 1970 on. `None` for earlier times and for times beyond the range of
    /// dates.
    pub(crate) fn from_millis(millis: i64) -> Option<Self> {
        (millis >= 0).then(|| Timestamp::from_millisecond(millis).ok().map(Self)).flatten()
    }

    pub(crate) fn millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Parses `2026-11-24`, which means its first moment, or `2026-11-24T10:00:00Z`.
    ///
    /// # Errors
    ///
    /// The accepted formats.
    pub(crate) fn first(text: &str) -> Result<Self, String> {
        Self::read(text, false)
    }

    /// Like [`first`](Self::first), with the last moment of a day.
    ///
    /// # Errors
    ///
    /// As for [`first`](Self::first).
    pub(crate) fn last(text: &str) -> Result<Self, String> {
        Self::read(text, true)
    }

    fn read(text: &str, is_last: bool) -> Result<Self, String> {
        let day = || {
            let is_day = text.len() == 10;
            let day: Date = is_day.then(|| text.parse().ok()).flatten()?;
            let next = if is_last { day.tomorrow().ok()? } else { day };
            let midnight = next.to_zoned(TimeZone::UTC).ok()?.timestamp();
            match is_last {
                true => midnight.checked_sub(1.millisecond()).ok(),
                false => Some(midnight),
            }
        };
        let time = || text.parse::<Timestamp>().ok();
        let moment = day().or_else(time).and_then(|it| Self::from_millis(it.as_millisecond()));
        moment.ok_or_else(|| {
            format!(
                "`{}` is not a date since 1970; write it as `2026-11-24` or `2026-11-24T10:00:00Z`",
                shortened(text)
            )
        })
    }

    /// Formats the day (UTC), as `2026-11-24`.
    pub(crate) fn day(self) -> String {
        self.0.to_zoned(TimeZone::UTC).date().to_string()
    }
}

impl fmt::Display for Moment {
    /// Formats as RFC 3339, without unnecessary digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
