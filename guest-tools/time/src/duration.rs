//! Durations, and calendar arithmetic with them.

use jiff::civil::Weekday;
use jiff::{Span, ToSpan, Zoned};

use crate::excerpt::quoted;
use crate::local::{self, Disambiguation};

/// Maximum length of the text of a duration in bytes.
const LONGEST: usize = 200;

/// A duration to add to a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Duration {
    /// By calendar and clock.
    Span(Span),
    /// Days from Monday to Friday.
    BusinessDays(i64),
}

/// Parses `P1M2DT3H`, `1 month 2 days`, `-90 min` and `5 business days`.
pub(crate) fn read(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Err(format!("the duration has {} bytes; the limit is {LONGEST}", text.len()));
    }
    let lower = text.to_ascii_lowercase();
    let is_negative = lower.ends_with(" ago");
    let counted = lower.strip_suffix(" ago").unwrap_or(&lower);
    for kind in ["business", "working", "work", "week"] {
        let number = counted
            .strip_suffix('s')
            .unwrap_or(counted)
            .strip_suffix("day")
            .and_then(|rest| rest.trim_end_matches([' ', '-']).strip_suffix(kind));
        // `week day` is a unit of its own, and does not match `5 weeks 1 day`.
        let Some(number) = number.map(str::trim) else { continue };
        let Ok(days) = number.parse::<i64>() else { break };
        if days.abs() > 5_000_000 {
            return Err(format!("{} is out of range", quoted(text)));
        }
        return Ok(Duration::BusinessDays(if is_negative { -days } else { days }));
    }
    text.parse().map(Duration::Span).map_err(|error| {
        format!(
            "{} is not a duration such as `1 month 2 days`, `-90 minutes`, `P1M2DT3H` or `5 \
             business days`: {error}",
            quoted(text)
        )
    })
}

/// Returns the time after a span, and a note.
///
/// First, years to days are added to the local time; then hours and smaller units are added to the
/// elapsed time.
pub(crate) fn add(
    time: &Zoned,
    span: Span,
    choice: Disambiguation,
) -> Result<(Zoned, Option<String>), String> {
    let calendar = Span::new()
        .try_years(span.get_years())
        .and_then(|it| it.try_months(span.get_months()))
        .and_then(|it| it.try_weeks(span.get_weeks()))
        .and_then(|it| it.try_days(span.get_days()))
        .map_err(|error| error.to_string())?;
    let out_of_range = |_| {
        format!("{} plus {span} is out of range: years -9999 to 9999", crate::answer::iso(time))
    };
    let (mut moved, mut note) = (time.clone(), None);
    if !calendar.is_zero() {
        let months = (12 * i32::from(span.get_years())).saturating_add(span.get_months());
        let by_month = time.date().checked_add(months.months()).map_err(out_of_range)?;
        if by_month.day() != time.date().day() {
            note = Some(format!(
                "{} has no day {}; its last day was used",
                by_month.strftime("%Y-%m"),
                time.date().day()
            ));
        }
        let local = time.datetime().checked_add(calendar).map_err(out_of_range)?;
        moved = move_to(time, local, choice)?;
    }
    let exact = Span::new()
        .try_hours(span.get_hours())
        .and_then(|it| it.try_minutes(span.get_minutes()))
        .and_then(|it| it.try_seconds(span.get_seconds()))
        .and_then(|it| it.try_milliseconds(span.get_milliseconds()))
        .and_then(|it| it.try_microseconds(span.get_microseconds()))
        .and_then(|it| it.try_nanoseconds(span.get_nanoseconds()))
        .map_err(|error| error.to_string())?;
    Ok((moved.checked_add(exact).map_err(out_of_range)?, note))
}

/// Returns the same time of day after this many days from Monday to Friday. From a weekend, the
/// first business day is the Monday after it, or the Friday before it if days are subtracted.
pub(crate) fn add_business_days(
    time: &Zoned,
    days: i64,
    choice: Disambiguation,
) -> Result<(Zoned, Option<String>), String> {
    let out_of_range =
        |_| format!("{} plus {days} business days is out of range", crate::answer::iso(time));
    let step = if days < 0 { -1 } else { 1 };
    let is_weekend = |day: Weekday| matches!(day, Weekday::Saturday | Weekday::Sunday);
    // Leaves a weekend first, so that whole weeks can be added at once.
    let (mut date, mut left) = (time.date(), days.abs());
    if left > 0 && is_weekend(date.weekday()) {
        while is_weekend(date.weekday()) {
            date = date.checked_add(step.days()).map_err(out_of_range)?;
        }
        left -= 1;
    }
    date = date.checked_add((step * (left / 5)).weeks()).map_err(out_of_range)?;
    for _ in 0..left % 5 {
        date = date.checked_add(step.days()).map_err(out_of_range)?;
        while is_weekend(date.weekday()) {
            date = date.checked_add(step.days()).map_err(out_of_range)?;
        }
    }
    let moved = move_to(time, date.to_datetime(time.time()), choice)?;
    Ok((moved, Some("weekends are skipped, holidays are not".into())))
}

/// Returns the point at which the clock of a time's zone shows this local time. Returns the same
/// point if the clock shows it now.
fn move_to(
    time: &Zoned,
    local: jiff::civil::DateTime,
    choice: Disambiguation,
) -> Result<Zoned, String> {
    match local == time.datetime() {
        true => Ok(time.clone()),
        false => local::resolve(local, time.time_zone(), choice),
    }
}
