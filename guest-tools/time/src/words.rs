//! Dates and times in the formats of people: `Thursday, March 5th, 2026 at 2:30 pm Europe/Paris`.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;

use crate::excerpt::quoted;
use crate::zone;

/// The supported formats, for errors.
pub(crate) const FORMS: &str = "write it as ISO 8601 (`2026-03-05T14:30:00+01:00`, or with a zone, `2026-03-05 14:30 \
     Europe/Paris`), `March 5, 2026 2:30 PM`, or `@` and Unix seconds";

/// The parsed words of a text.
pub(crate) struct Words {
    /// The date and the time of day; midnight by default.
    pub(crate) local: DateTime,
    /// The zone or offset in the text.
    pub(crate) zone: Option<TimeZone>,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The parts that were found.
#[derive(Default)]
struct Parts {
    date: Option<Date>,
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    weekday: Option<Weekday>,
    time: Option<(i8, Time)>,
    is_afternoon: Option<bool>,
    zone: Option<TimeZone>,
}

/// Returns today's date in a zone, or in the zone of the call.
pub(crate) type Today<'a> = &'a dyn Fn(Option<&TimeZone>) -> Result<Date, String>;

/// Parses a text word by word. `today` is called for the words `today`, `tomorrow` and `yesterday`,
/// and for a time without a date.
///
/// # Errors
///
/// Names the unknown word, or the part that is missing, contradictory or ambiguous.
pub(crate) fn read(text: &str, today: Today<'_>) -> Result<Words, String> {
    let spaced = separate(text);
    let mut parts = Parts::default();
    let words = spaced.split([' ', '\t', '\n', ',', '\u{a0}', '\u{202f}']);
    let mut words = words.map(|word| word.trim_matches(['(', ')'])).filter(|it| !it.is_empty());
    let mut next = words.next();
    while let Some(word) = next.take() {
        next = words.next();
        // `2 pm` is one word.
        let is_hour = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
        match next.filter(|next| is_hour && half_of_day(&next.to_lowercase()).is_some()) {
            Some(half) => {
                parts.take(text, &format!("{word}{half}"), today)?;
                next = words.next();
            }
            None => parts.take(text, word, today)?,
        }
    }
    parts.finish(text, today)
}

/// Inserts spaces between a date and a time, and between the parts of `5-Mar-2026`.
fn separate(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let characters: Vec<char> = text.chars().collect();
    for (at, &character) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| characters[at]);
        let after = characters.get(at + 1).copied();
        let is_digit = |it: Option<char>| it.is_some_and(|it| it.is_ascii_digit());
        let is_letter = |it: Option<char>| it.is_some_and(char::is_alphabetic);
        let is_between = match character {
            'T' | 't' => is_digit(before) && is_digit(after),
            '-' | '/' => {
                (is_digit(before) && is_letter(after)) || (is_letter(before) && is_digit(after))
            }
            _ => false,
        };
        // `GMT-5` and `Etc/GMT-5` are zones, `Mar-2026` is a month and a year.
        let is_zone = {
            let tail: String = spaced.chars().rev().take(3).collect();
            ["tmg", "ctu"].iter().any(|zone| tail.eq_ignore_ascii_case(zone))
        };
        spaced.push(if is_between && !is_zone { ' ' } else { character });
    }
    spaced
}

impl Parts {
    fn take(&mut self, text: &str, word: &str, today: Today<'_>) -> Result<(), String> {
        let lower = word.to_lowercase();
        let bare = lower.trim_end_matches('.');
        match bare {
            "at" | "on" | "of" | "the" | "o'clock" | "uhr" => return Ok(()),
            "today" => return self.set_date(text, today(None)?),
            "tomorrow" | "yesterday" => {
                let today = today(None)?;
                let date = if bare == "tomorrow" { today.tomorrow() } else { today.yesterday() };
                return self.set_date(text, date.map_err(|error| error.to_string())?);
            }
            "noon" => return set(text, "time", &mut self.time, (3, Time::constant(12, 0, 0, 0))),
            "midnight" => {
                return Err(format!(
                    "{}: `midnight` may be the start or the end of a day; write 00:00 and the date",
                    quoted(text)
                ));
            }
            _ => {}
        }
        if let Some(is_afternoon) = half_of_day(bare) {
            return set(text, "am or pm", &mut self.is_afternoon, is_afternoon);
        }
        if let Some(at) = name_in(&WEEKDAYS, bare) {
            let weekday = Weekday::from_monday_zero_offset(at as i8).expect("there are seven");
            return set(text, "weekday", &mut self.weekday, weekday);
        }
        if let Some(at) = name_in(&MONTHS, bare) {
            return set(text, "month", &mut self.month, at as i8 + 1);
        }
        if self.take_number(text, bare)?
            || self.take_date(text, bare)?
            || self.take_time(text, bare)?
        {
            return Ok(());
        }
        let looks_like_zone = word.contains('/')
            || (word.len() <= 5 && word.chars().all(|it| it.is_ascii_uppercase()));
        let zone = match zone::known(word) {
            Some(zone) => zone,
            None if looks_like_zone || !zone::similar(word).is_empty() => zone::find(word)?,
            None => {
                return Err(format!(
                    "{}: {} is not understood; {FORMS}",
                    quoted(text),
                    quoted(word)
                ));
            }
        };
        match &self.zone {
            // `+0200 (CEST)`: the text in brackets is a comment after an offset.
            Some(_) => Err(format!("{} names two zones; omit one", quoted(text))),
            None => set(text, "zone", &mut self.zone, zone),
        }
    }

    /// Parses `5`, `5th`, `2026`.
    fn take_number(&mut self, text: &str, word: &str) -> Result<bool, String> {
        let digits = word.trim_end_matches(|it: char| it.is_ascii_alphabetic());
        let suffix = &word[digits.len()..];
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || !["", "st", "nd", "rd", "th"].contains(&suffix) {
            return Ok(false);
        }
        match (digits.len(), suffix) {
            (1 | 2, _) if self.day.is_none() && self.date.is_none() => {
                set(text, "day", &mut self.day, digits.parse().unwrap_or_default())?;
            }
            (1 | 2, "") if self.time.is_none() => {
                let hour = digits.parse().unwrap_or_default();
                let time = Time::new(hour, 0, 0, 0).map_err(|_| bad_time(text, word))?;
                self.time = Some((1, time));
            }
            (4, "") => set(text, "year", &mut self.year, digits.parse().unwrap_or_default())?,
            _ => {
                return Err(format!(
                    "{}: {} is not a day or a four-digit year; {FORMS}",
                    quoted(text),
                    quoted(word)
                ));
            }
        }
        Ok(true)
    }

    /// Parses `2026-03-05`, `5.3.2026`, `3/25/2026`.
    fn take_date(&mut self, text: &str, word: &str) -> Result<bool, String> {
        for separator in ['-', '/', '.'] {
            let fields: Vec<&str> = word.split(separator).collect();
            let is_date = fields.len() == 3
                && fields.iter().all(|field| {
                    (1..=4).contains(&field.len()) && field.bytes().all(|it| it.is_ascii_digit())
                });
            if !is_date {
                continue;
            }
            let number = |at: usize| fields[at].parse::<i16>().unwrap_or_default();
            let lengths = [fields[0].len(), fields[1].len(), fields[2].len()];
            let (year, month, day) = match lengths {
                [4, 1 | 2, 1 | 2] => (number(0), number(1), number(2)),
                [1 | 2, 1 | 2, 4] => {
                    let (first, second, year) = (number(0), number(1), number(2));
                    match separator {
                        // With dots, the day comes first in all locales.
                        '.' => (year, second, first),
                        _ if first > 12 => (year, second, first),
                        _ if second > 12 || first == second => (year, first, second),
                        _ => {
                            return Err(format!(
                                "{} may be {year:04}-{first:02}-{second:02} (month first) or \
                                 {year:04}-{second:02}-{first:02} (day first); write one of these",
                                quoted(word)
                            ));
                        }
                    }
                }
                _ => {
                    return Err(format!(
                        "{} has no four-digit year; write it as `YYYY-MM-DD`",
                        quoted(word)
                    ));
                }
            };
            self.set_date(text, date(text, year, month as i8, day as i8)?)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Parses `14:30`, `14:30:05.25`, `2pm`, `2:30pm`.
    fn take_time(&mut self, text: &str, word: &str) -> Result<bool, String> {
        if !word.starts_with(|it: char| it.is_ascii_digit()) {
            return Ok(false);
        }
        let half = ["am", "pm", "a.m", "p.m"]
            .iter()
            .find_map(|half| Some((word.strip_suffix(half)?, half.starts_with('p'))));
        let (clock, zone) = match half {
            Some((clock, _)) => (clock, None),
            None => match word.find(['z', '+', '-', '\u{2212}']) {
                Some(at) => (&word[..at], Some(&word[at..])),
                None => (word, None),
            },
        };
        let fields: Vec<&str> = clock.split(':').collect();
        let is_time = fields.iter().all(|field| field.starts_with(|it: char| it.is_ascii_digit()))
            && (fields.len() > 1 || half.is_some())
            && fields.len() <= 3;
        if !is_time {
            return Ok(false);
        }
        let failed = || bad_time(text, word);
        let number = |field: Option<&&str>| match field {
            None => Ok(0),
            Some(field) if field.len() <= 2 => field.parse::<i8>().map_err(|_| failed()),
            Some(_) => Err(failed()),
        };
        let (seconds, fraction) = match fields.get(2) {
            Some(seconds) => seconds.split_once(['.']).unwrap_or((seconds, "")),
            None => ("0", ""),
        };
        if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(failed());
        }
        let nanoseconds = format!("{fraction:0<9}").parse().map_err(|_| failed())?;
        let time = Time::new(
            number(fields.first())?,
            number(fields.get(1))?,
            number(Some(&seconds))?,
            nanoseconds,
        );
        set(text, "time", &mut self.time, (fields.len() as i8, time.map_err(|_| failed())?))?;
        if let Some((_, is_afternoon)) = half {
            set(text, "am or pm", &mut self.is_afternoon, is_afternoon)?;
        }
        if let Some(zone) = zone {
            set(text, "zone", &mut self.zone, zone::find(zone)?)?;
        }
        Ok(true)
    }

    fn set_date(&mut self, text: &str, date: Date) -> Result<(), String> {
        set(text, "date", &mut self.date, date)
    }

    fn finish(self, text: &str, today: Today<'_>) -> Result<Words, String> {
        let is_time_alone = self.time.is_some() && self.weekday.is_none();
        let date = match (self.date, self.year, self.month, self.day) {
            (None, None, None, None) if is_time_alone => today(self.zone.as_ref())?,
            (Some(date), None, None, None) => date,
            (None, Some(year), Some(month), Some(day)) => date(text, year, month, day)?,
            (Some(_), ..) => return Err(format!("{} has two dates", quoted(text))),
            (None, year, month, day) => {
                let missing = match (year, month, day) {
                    (None, None, None) => "date: `today` is one",
                    (None, ..) => "year",
                    (_, None, _) => "month",
                    _ => "day",
                };
                return Err(format!("{} has no {missing}; {FORMS}", quoted(text)));
            }
        };
        if let Some(weekday) = self.weekday.filter(|weekday| *weekday != date.weekday()) {
            let name =
                |weekday: Weekday| capital(WEEKDAYS[weekday.to_monday_zero_offset() as usize]);
            return Err(format!(
                "{} contradicts itself: {date} is a {}, not a {}",
                quoted(text),
                name(date.weekday()),
                name(weekday)
            ));
        }
        let time = match (self.time, self.is_afternoon) {
            (Some((1, _)), None) => {
                return Err(format!(
                    "{}: an hour alone needs `am` or `pm`, or minutes as in `14:00`",
                    quoted(text)
                ));
            }
            (Some((_, time)), None) => time,
            (Some((_, time)), Some(is_afternoon)) => {
                if !(1..=12).contains(&time.hour()) {
                    return Err(format!(
                        "{}: the hour is 1 to 12 before `am` or `pm`",
                        quoted(text)
                    ));
                }
                let hour = time.hour() % 12 + if is_afternoon { 12 } else { 0 };
                time.with().hour(hour).build().map_err(|error| error.to_string())?
            }
            (None, _) => Time::midnight(),
        };
        Ok(Words { local: date.to_datetime(time), zone: self.zone })
    }
}

/// Returns true for `pm` and false for `am`.
fn half_of_day(word: &str) -> Option<bool> {
    match word.trim_end_matches('.') {
        "am" | "a.m" => Some(false),
        "pm" | "p.m" => Some(true),
        _ => None,
    }
}

fn set<T>(text: &str, what: &str, place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{} has more than one {what}", quoted(text))),
    }
}

fn bad_time(text: &str, word: &str) -> String {
    match text == word {
        true => format!("{} is not a time from 00:00 to 23:59:59", quoted(text)),
        false => format!("{}: {} is not a time from 00:00 to 23:59:59", quoted(text), quoted(word)),
    }
}

fn date(text: &str, year: i16, month: i8, day: i8) -> Result<Date, String> {
    let first = Date::new(year, month, 1)
        .map_err(|_| format!("{}: month {month} does not exist", quoted(text)))?;
    first.with().day(day).build().map_err(|_| {
        let days = first.days_in_month();
        format!("{}: {year:04}-{month:02} has the days 1 to {days}", quoted(text))
    })
}

/// Returns the index of a name, also by its first three or more letters.
fn name_in(names: &[&str], word: &str) -> Option<usize> {
    let is_long_enough = word.len() >= 3;
    names.iter().position(|name| is_long_enough && name.starts_with(word))
}

fn capital(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}
