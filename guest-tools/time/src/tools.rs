//! The tools, each a function of its arguments and the clock.

use jiff::{Timestamp, Unit, Zoned};
use serde::Deserialize;

use crate::answer::{Between, Point};
use crate::cycle::{self, Cycle};
use crate::duration::{self, Duration};
use crate::input::Reader;
use crate::local::Disambiguation;
use crate::zone;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Now {
    #[serde(default = "utc")]
    zone: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParseTime {
    time: String,
    #[serde(default = "utc")]
    zone: String,
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
    #[serde(default = "utc")]
    zone: String,
    #[serde(default)]
    disambiguation: Disambiguation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeBetween {
    from: String,
    to: String,
    #[serde(default = "utc")]
    zone: String,
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

fn utc() -> String {
    "UTC".into()
}

pub(crate) fn now(arguments: Now, clock: Timestamp) -> Result<Point, String> {
    Ok(Point::new(&clock.to_zoned(zone::find(&arguments.zone)?), None, Cycle::This))
}

pub(crate) fn parse_time(arguments: ParseTime, clock: Timestamp) -> Result<Point, String> {
    let ParseTime { time, zone, format, disambiguation } = arguments;
    let zone = zone::find(&zone)?;
    cycle::run(|cycle| {
        let reader = Reader { zone: Some(zone.clone()), disambiguation, clock, cycle };
        let time = match &format {
            Some(format) => reader.read_as(&time, format)?,
            None => reader.read(&time)?,
        };
        cycle.check(&[&time])?;
        Ok(Point::new(&time, None, cycle))
    })
}

pub(crate) fn convert_time(arguments: ConvertTime, clock: Timestamp) -> Result<Point, String> {
    let ConvertTime { time, to, zone, disambiguation } = arguments;
    let to = zone::find(&to)?;
    let zone = zone.as_deref().map(zone::find).transpose()?;
    cycle::run(|cycle| {
        let reader = Reader { zone: zone.clone(), disambiguation, clock, cycle };
        let from = reader.read(&time)?;
        let time = from.with_time_zone(to.clone());
        cycle.check(&[&from, &time])?;
        Ok(Point::new(&time, None, cycle))
    })
}

pub(crate) fn add_time(arguments: AddTime, clock: Timestamp) -> Result<Point, String> {
    let AddTime { time, duration, zone, disambiguation } = arguments;
    let duration = duration::read(&duration)?;
    let zone = zone::find(&zone)?;
    cycle::run(|cycle| {
        let reader = Reader { zone: Some(zone.clone()), disambiguation, clock, cycle };
        let from = reader.read(&time)?;
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

pub(crate) fn time_between(arguments: TimeBetween, clock: Timestamp) -> Result<Between, String> {
    let TimeBetween { from, to, zone, largest, disambiguation } = arguments;
    let zone = zone::find(&zone)?;
    let named = |name: &str, error: String| format!("`{name}`: {error}");
    cycle::run(|cycle| {
        let reader = Reader { zone: Some(zone.clone()), disambiguation, clock, cycle };
        let from = reader.read(&from).map_err(|error| named("from", error))?;
        let to = reader.read(&to).map_err(|error| named("to", error))?;
        cycle.check(&[&from, &to])?;
        between(&from, &to, largest)
    })
}

/// The time between two points, by the calendar of the first one's zone.
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
