//! The answers of the tools.

use jiff::Zoned;
use serde::Serialize;

use crate::cycle::Cycle;
use crate::zone;

/// A point in time.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// ISO 8601 with the offset.
    pub(crate) iso: String,
    /// Whole seconds since 1970, rounded down.
    pub(crate) unix: i64,
    /// Whole milliseconds since 1970, rounded down.
    pub(crate) unix_millis: i64,
    /// The IANA name of the zone, or its offset.
    pub(crate) zone: String,
    /// The English name of the day.
    pub(crate) weekday: String,
    /// The ISO 8601 week, as `2026-W10`.
    pub(crate) week: String,
    /// A note on the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// The time between two points.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Between {
    /// An ISO 8601 duration by the calendar.
    pub(crate) iso: String,
    /// The number of midnights between the points.
    pub(crate) days: i64,
    /// Elapsed seconds, rounded towards zero.
    pub(crate) seconds: i64,
    /// Elapsed milliseconds, rounded towards zero.
    pub(crate) millis: i64,
}

impl Point {
    /// Describes a point in time, with notes in this order.
    pub(crate) fn new(time: &Zoned, notes: impl IntoIterator<Item = String>, cycle: Cycle) -> Self {
        let timestamp = time.timestamp();
        let nanoseconds = timestamp.as_nanosecond();
        let floor = |unit: i128| {
            i64::try_from(nanoseconds.div_euclid(unit)).expect("the years are -9999 to 9999")
        };
        let mut notes: Vec<_> = notes.into_iter().collect();
        // RFC 3339 has no seconds in an offset, which zones had before about 1900.
        if time.offset().seconds() % 60 != 0 {
            notes.push(format!("the exact offset is {}", time.offset()));
        }
        let week = time.date().iso_week_date();
        Self {
            iso: cycle.text(iso(time)),
            unix: cycle.unix(floor(1_000_000_000)),
            unix_millis: floor(1_000_000) + 1_000 * cycle.unix(0),
            zone: zone::name(time.time_zone(), time.offset()),
            weekday: time.strftime("%A").to_string(),
            week: cycle.text(format!("{:04}-W{:02}", week.year(), week.week())),
            note: (!notes.is_empty()).then(|| notes.join("; ")),
        }
    }
}

/// Formats as ISO 8601 with the offset: `Z` in UTC.
pub(crate) fn iso(time: &Zoned) -> String {
    match time.time_zone().iana_name().is_none_or(|name| name == "UTC") && time.offset().is_zero() {
        true => time.timestamp().to_string(),
        false => time.timestamp().display_with_offset(time.offset()).to_string(),
    }
}
