//! The tools, each a function of its arguments and the clock.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit, Zoned};
use serde::Deserialize;

use crate::answer::{Between, Point};
use crate::cycle::{self, Cycle};
use crate::duration::{self, Duration};
use crate::input::Reader;
use crate::local::Disambiguation;
use crate::zone::Local;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Now {
    zone: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParseTime {
    time: String,
    zone: Option<String>,
    format: Option<String>,
    #[serde(default)]
    disambiguation: Disambiguation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConvertTime {
    time: String,
    to: String,
    zone: Option<String>,
    #[serde(default)]
    disambiguation: Disambiguation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddTime {
    time: String,
    duration: String,
    zone: Option<String>,
    #[serde(default)]
    disambiguation: Disambiguation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeBetween {
    from: String,
    to: String,
    zone: Option<String>,
    #[serde(default)]
    largest: Largest,
    #[serde(default)]
    disambiguation: Disambiguation,
}

/// The largest unit of a duration.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Largest {
    #[default]
    Years,
    Months,
    Weeks,
    Days,
    Hours,
    Minutes,
    Seconds,
}

/// The time and zone of a call.
pub(crate) struct Here {
    /// The current time.
    pub(crate) clock: Timestamp,
    /// The local zone, as reported by the host.
    pub(crate) local: Local,
}

pub(crate) fn now(arguments: Now, here: &Here) -> Result<Point, String> {
    let zone = here.local.find(arguments.zone.as_deref())?;
    let note = here.local.unknown().filter(|_| zone.is_none());
    let note = note.map(|unknown| format!("{unknown}, so this is UTC"));
    let zone = zone.unwrap_or(TimeZone::UTC);
    Ok(Point::new(&here.clock.to_zoned(zone), note, Cycle::This))
}

pub(crate) fn parse_time(arguments: ParseTime, here: &Here) -> Result<Point, String> {
    let ParseTime { time, zone, format, disambiguation } = arguments;
    cycle::run(|cycle| {
        let reader = here.reader(zone.as_deref(), disambiguation, cycle)?;
        let time = match &format {
            Some(format) => reader.read_as(&time, format)?,
            None => reader.read(&time)?,
        };
        cycle.check(&[&time])?;
        Ok(Point::new(&time, None, cycle))
    })
}

pub(crate) fn convert_time(arguments: ConvertTime, here: &Here) -> Result<Point, String> {
    let ConvertTime { time, to, zone, disambiguation } = arguments;
    let to = here.local.find(Some(&to))?.unwrap_or(TimeZone::UTC);
    // An unknown zone must not be replaced by a default.
    let zone = here.local.find(zone.as_deref())?;
    cycle::run(|cycle| {
        let reader = Reader { zone: zone.clone(), disambiguation, clock: here.clock, cycle };
        let from = reader.read(&time)?;
        let time = from.with_time_zone(to.clone());
        cycle.check(&[&from, &time])?;
        Ok(Point::new(&time, None, cycle))
    })
}

pub(crate) fn add_time(arguments: AddTime, here: &Here) -> Result<Point, String> {
    let AddTime { time, duration, zone, disambiguation } = arguments;
    let duration = duration::read(&duration)?;
    cycle::run(|cycle| {
        let from = here.reader(zone.as_deref(), disambiguation, cycle)?.read(&time)?;
        let (time, note) = match duration {
            Duration::Span(span) => duration::add(&from, span, disambiguation)?,
            Duration::BusinessDays(days) => {
                duration::add_business_days(&from, days, disambiguation)?
            }
        };
        cycle.check(&[&from, &time])?;
        Ok(Point::new(&time, note, cycle))
    })
}

pub(crate) fn time_between(arguments: TimeBetween, here: &Here) -> Result<Between, String> {
    let TimeBetween { from, to, zone, largest, disambiguation } = arguments;
    let named = |name: &str, error: String| format!("`{name}`: {error}");
    cycle::run(|cycle| {
        let reader = here.reader(zone.as_deref(), disambiguation, cycle)?;
        let from = reader.read(&from).map_err(|error| named("from", error))?;
        let to = reader.read(&to).map_err(|error| named("to", error))?;
        cycle.check(&[&from, &to])?;
        between(&from, &to, largest)
    })
}

impl Here {
    /// Creates a reader for times in a zone. Default: the local zone, otherwise UTC.
    fn reader(
        &self,
        zone: Option<&str>,
        disambiguation: Disambiguation,
        cycle: Cycle,
    ) -> Result<Reader, String> {
        let zone = self.local.find(zone)?.unwrap_or(TimeZone::UTC);
        Ok(Reader { zone: Some(zone), disambiguation, clock: self.clock, cycle })
    }
}

/// Returns the time between two points, by the calendar of the first one's zone.
fn between(from: &Zoned, to: &Zoned, largest: Largest) -> Result<Between, String> {
    let to = to.with_time_zone(from.time_zone().clone());
    let unit = match largest {
        Largest::Years => Unit::Year,
        Largest::Months => Unit::Month,
        Largest::Weeks => Unit::Week,
        Largest::Days => Unit::Day,
        Largest::Hours => Unit::Hour,
        Largest::Minutes => Unit::Minute,
        Largest::Seconds => Unit::Second,
    };
    let span = from.until((unit, &to)).map_err(|error| error.to_string())?;
    let days = from.date().until((Unit::Day, to.date())).map_err(|error| error.to_string())?;
    let elapsed = from.duration_until(&to);
    Ok(Between {
        iso: span.to_string(),
        days: days.get_days().into(),
        seconds: elapsed.as_secs(),
        millis: i64::try_from(elapsed.as_millis()).map_err(|error| error.to_string())?,
    })
}
