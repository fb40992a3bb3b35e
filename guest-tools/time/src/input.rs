//! Parses a string as a point in time.

use jiff::civil::{DateTime, ISOWeekDate};
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

use crate::cycle::Cycle;
use crate::excerpt::quoted;
use crate::local::{self, Disambiguation};
use crate::words::{self, FORMS};

/// Maximum length of the text in bytes: no format of a time is longer.
const LONGEST: usize = 200;

/// Options for parsing a text.
pub(crate) struct Reader {
    /// The default zone. `None` if the text must contain a zone.
    pub(crate) zone: Option<TimeZone>,
    /// The handling of a local time that is skipped or repeated.
    pub(crate) disambiguation: Disambiguation,
    /// The time for `now` and `today`.
    pub(crate) clock: Timestamp,
    /// The cycle of the calendar for parsed times.
    pub(crate) cycle: Cycle,
}

impl Reader {
    /// Parses a point in time.
    ///
    /// # Errors
    ///
    /// The part that is unknown, does not exist or is ambiguous.
    pub(crate) fn read(&self, text: &str) -> Result<Zoned, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err(format!("the time is empty; {FORMS}"));
        }
        if text.len() > LONGEST {
            return Err(format!("the time has {} bytes; the limit is {LONGEST}", text.len()));
        }
        if let Some(time) = self.relative(text)? {
            return Ok(time);
        }
        if let Some(timestamp) = unix(text, self.cycle)? {
            return Ok(timestamp.to_zoned(self.zone.clone().unwrap_or(TimeZone::UTC)));
        }
        if let Some(date) = week_or_day_of_year(text)? {
            return self.local(text, date);
        }
        // The grammar accepts the second 60 and converts it to 59.
        if text.split(['T', 't', ' ']).any(|time| time.get(5..8) == Some(":60")) {
            return Err(format!("{}: leap seconds are not supported; write 59", quoted(text)));
        }
        if let Ok(pieces) = Pieces::parse(text) {
            return self.pieces(text, &pieces);
        }
        let words = words::read(text, &|zone| match zone {
            Some(zone) => Ok(self.clock.to_zoned(zone.clone()).date()),
            None => self.now(text).map(|now| now.date()),
        })?;
        match words.zone {
            Some(zone) => self.in_zone(text, words.local, &zone),
            None => self.local(text, words.local),
        }
    }

    /// Parses a text with a `strptime` format.
    pub(crate) fn read_as(&self, text: &str, format: &str) -> Result<Zoned, String> {
        if text.len() > LONGEST || format.len() > LONGEST {
            return Err(format!("`time` and `format` may have {LONGEST} bytes each"));
        }
        let failed = |error: jiff::Error| {
            format!("{} does not fit the format {}: {error}", quoted(text), quoted(format))
        };
        let parts = jiff::fmt::strtime::parse(format, text).map_err(failed)?;
        // With a zone or an offset it is a point in time; a date alone is its first moment.
        if let Some(name) = parts.iana_time_zone() {
            let zone = crate::zone::find(name)?;
            return self.in_zone(text, parts.to_datetime().map_err(failed)?, &zone);
        }
        if let (Cycle::Earlier, Some(offset)) = (self.cycle, parts.offset()) {
            let local = parts.to_datetime().map_err(failed)?;
            return self.in_zone(text, local, &TimeZone::fixed(offset));
        }
        if parts.offset().is_some() || parts.timestamp().is_some() {
            return parts.to_zoned().map_err(failed);
        }
        let local = match parts.hour() {
            Some(_) => parts.to_datetime(),
            None => parts.to_date().map(DateTime::from),
        };
        self.local(text, local.map_err(failed)?)
    }

    /// Resolves a local time in the zone of the call.
    fn local(&self, text: &str, local: DateTime) -> Result<Zoned, String> {
        self.in_zone(text, local, self.zone_for(text)?)
    }

    fn in_zone(&self, text: &str, local: DateTime, zone: &TimeZone) -> Result<Zoned, String> {
        local::resolve(self.shifted(text, local)?, zone, self.disambiguation)
    }

    fn shifted(&self, text: &str, local: DateTime) -> Result<DateTime, String> {
        self.cycle
            .shift(local)
            .map_err(|error| format!("{} is out of range: {error}", quoted(text)))
    }

    fn shift(&self, text: &str, time: Zoned) -> Result<Zoned, String> {
        match self.cycle {
            Cycle::This => Ok(time),
            Cycle::Earlier => self.in_zone(text, time.datetime(), time.time_zone()),
        }
    }

    fn now(&self, text: &str) -> Result<Zoned, String> {
        Ok(self.clock.to_zoned(self.zone_for(text)?.clone()))
    }

    fn zone_for(&self, text: &str) -> Result<&TimeZone, String> {
        self.zone
            .as_ref()
            .ok_or_else(|| format!("{} has no zone or offset; pass its `zone`", quoted(text)))
    }

    /// Parses `now`, `in 3 days`, `2 hours ago`.
    fn relative(&self, text: &str) -> Result<Option<Zoned>, String> {
        let lower = text.to_ascii_lowercase();
        let zone = || self.zone.clone().unwrap_or(TimeZone::UTC);
        let now = || self.shift(text, self.clock.to_zoned(zone()));
        if lower == "now" {
            return now().map(Some);
        }
        let span = match (lower.strip_prefix("in "), lower.ends_with(" ago")) {
            (Some(span), false) => span.parse::<Span>(),
            (None, true) => lower.parse::<Span>(),
            _ => return Ok(None),
        };
        let span = span.map_err(|error| format!("{} is not a duration: {error}", quoted(text)))?;
        crate::duration::add(&now()?, span, self.disambiguation).map(|(time, _)| Some(time))
    }

    /// Parses the Temporal grammar: ISO 8601 with an offset and a zone in brackets.
    fn pieces(&self, text: &str, pieces: &Pieces<'_>) -> Result<Zoned, String> {
        let local = pieces.date().to_datetime(pieces.time().unwrap_or_default());
        let zone = match pieces.time_zone_annotation() {
            None => None,
            Some(annotation) => {
                let name = match annotation.kind() {
                    jiff::fmt::temporal::TimeZoneAnnotationKind::Named(name) => {
                        name.as_str().into()
                    }
                    jiff::fmt::temporal::TimeZoneAnnotationKind::Offset(offset) => {
                        crate::zone::written(*offset)
                    }
                    _ => String::new(),
                };
                Some(crate::zone::find(&name)?)
            }
        };
        let failed = |_| format!("{} is out of range: years -9999 to 9999", quoted(text));
        match (pieces.offset(), zone) {
            (None, None) => self.local(text, local),
            (None, Some(zone)) => self.in_zone(text, local, &zone),
            (Some(PiecesOffset::Zulu), zone) => {
                let zone = zone.unwrap_or(TimeZone::UTC);
                let local = self.shifted(text, local)?;
                Ok(local.to_zoned(TimeZone::UTC).map_err(failed)?.with_time_zone(zone))
            }
            (Some(PiecesOffset::Numeric(offset)), zone) => {
                let offset = offset.offset();
                let local = self.shifted(text, local)?;
                let fixed = local.to_zoned(TimeZone::fixed(offset)).map_err(failed)?;
                let Some(zone) = zone else { return Ok(fixed) };
                let time = fixed.with_time_zone(zone);
                if time.offset() == offset {
                    return Ok(time);
                }
                Err(format!(
                    "{}: the offset {} contradicts the zone, in which it is {}; omit one",
                    quoted(text),
                    crate::zone::written(offset),
                    crate::answer::iso(&time),
                ))
            }
            (Some(_), _) => Err(format!("{} has an unknown kind of offset", quoted(text))),
        }
    }
}

/// Parses a number as Unix time: in seconds after `@`, otherwise the unit depends on the number of
/// digits.
fn unix(text: &str, cycle: Cycle) -> Result<Option<Timestamp>, String> {
    let (number, is_marked) = match text.strip_prefix('@') {
        Some(number) => (number, true),
        None => (text, false),
    };
    let digits = number.strip_prefix('-').unwrap_or(number);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty()
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
        && !digits.ends_with('.');
    if !is_number {
        return match is_marked {
            true => Err(format!("{} is not Unix seconds, such as `@1772719200`", quoted(text))),
            false => Ok(None),
        };
    }
    // The number of decimal places below a second.
    let places = match (is_marked, whole.len()) {
        (true, _) | (false, 9 | 10) => 0,
        (false, 12 | 13) => 3,
        (false, 15 | 16) => 6,
        (false, 18 | 19) => 9,
        // A date without separators, as in ISO 8601.
        (false, 8) if fraction.is_empty() && !number.starts_with('-') => return Ok(None),
        _ => {
            return Err(format!(
                "{} may be seconds, milliseconds or a date; write `@` and Unix seconds, or \
                 `YYYY-MM-DD`",
                quoted(text)
            ));
        }
    };
    let out_of_range = || format!("{} is out of range: years -9999 to 9999", quoted(text));
    // The resolution is a nanosecond; a finer value is refused instead of rounded.
    let finer = places + fraction.trim_end_matches('0').len();
    if finer > 9 {
        return Err(format!("{} is finer than a nanosecond", quoted(text)));
    }
    let fraction = &fraction[..fraction.len().min(9 - places)];
    let scale = 10i128.pow((9 - places - fraction.len()) as u32);
    let value: i128 = format!("{whole}{fraction}").parse().map_err(|_| out_of_range())?;
    let nanoseconds = value.checked_mul(scale).ok_or_else(out_of_range)?;
    let nanoseconds = if number.starts_with('-') { -nanoseconds } else { nanoseconds };
    let nanoseconds = nanoseconds - i128::from(cycle.unix(0)) * 1_000_000_000;
    Timestamp::from_nanosecond(nanoseconds).map(Some).map_err(|_| out_of_range())
}

/// Parses `2026-W10`, `2026-W10-4`, `2026W104` and `2026-064`.
fn week_or_day_of_year(text: &str) -> Result<Option<DateTime>, String> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let Some(year) = date.get(..4).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return Ok(None);
    };
    let Ok(year) = year.parse::<i16>() else { return Ok(None) };
    let rest = date[4..].strip_prefix('-').unwrap_or(&date[4..]);
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let date = if let Some(week) = rest.strip_prefix(['W', 'w']) {
        let (week, day) = match week.len() {
            2 => (week, None),
            3 => week.split_at_checked(2).map(|(week, day)| (week, Some(day))).unwrap_or_default(),
            4 => week.split_once('-').map(|(week, day)| (week, Some(day))).unwrap_or_default(),
            _ => return Ok(None),
        };
        if week.len() != 2
            || !is_number(week)
            || !day.is_none_or(|day| day.len() == 1 && is_number(day))
        {
            return Ok(None);
        }
        let weekday = day.map_or(Ok(1), str::parse::<i8>).unwrap_or_default();
        let weekday = jiff::civil::Weekday::from_monday_one_offset(weekday)
            .map_err(|_| format!("{}: the day of a week is 1 (Monday) to 7", quoted(text)))?;
        let week = week.parse::<i8>().unwrap_or_default();
        ISOWeekDate::new(year, week, weekday).map(ISOWeekDate::date).map_err(|_| {
            let last = jiff::civil::date(year.max(1), 12, 28).iso_week_date().week();
            format!("{}: {year:04} has the weeks 1 to {last}", quoted(text))
        })?
    } else if rest.len() == 3 && is_number(rest) && date.as_bytes()[4] == b'-' {
        let first = jiff::civil::Date::new(year, 1, 1).map_err(|error| error.to_string())?;
        let day = rest.parse::<i16>().unwrap_or_default();
        first.with().day_of_year(day).build().map_err(|_| {
            format!("{}: {year:04} has the days 1 to {}", quoted(text), first.days_in_year())
        })?
    } else {
        return Ok(None);
    };
    let time = match time {
        None => jiff::civil::Time::midnight(),
        // These rare formats cannot be combined with a zone or an offset.
        Some(time) => time.trim().parse().map_err(|_| {
            format!("{}: {} is not a time such as `14:30:00`", quoted(text), quoted(time))
        })?,
    };
    Ok(Some(date.to_datetime(time)))
}
