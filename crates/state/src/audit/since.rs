//! Points in time, as people write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kitbag_base::parse_duration;
use kitbag_base::text::shown;

/// The number of seconds in a day.
const DAY: u64 = 24 * 60 * 60;

/// The error for a string that is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a time: write `today`, `yesterday`, a duration such as `2h` or `7d`, a time such \
     as `09:30`, a date such as `2026-11-25`, or both as `2026-11-25T09:30`, in UTC",
    shown(text)
)]
pub struct SinceError {
    text: String,
}

/// Parses a point in time: a day (`today` or `yesterday`, which start at midnight), a duration
/// before `now`, a time of today, a date, or a date and a time. All are in UTC.
///
/// # Errors
///
/// [`SinceError`] lists the formats.
pub fn since(text: &str, now: SystemTime) -> Result<SystemTime, SinceError> {
    let error = || SinceError { text: text.to_owned() };
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
    let midnight = seconds - seconds % DAY;
    match text {
        "today" => return Ok(at(midnight)),
        "yesterday" => return Ok(at(midnight.saturating_sub(DAY))),
        _ => {}
    }
    if let Ok(duration) = parse_duration(text) {
        return now.checked_sub(duration).ok_or_else(error);
    }
    let today = humantime::format_rfc3339_seconds(at(midnight)).to_string();
    let (today, _) = today.split_once('T').ok_or_else(error)?;
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time),
        None if text.contains(':') => (today, text),
        None => (text, "00:00"),
    };
    let time = time.strip_suffix('Z').unwrap_or(time);
    let rest = if time.matches(':').count() == 1 { ":00" } else { "" };
    humantime::parse_rfc3339(&format!("{date}T{time}{rest}Z")).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-26T18:20:05.5Z, a Thursday.
    fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-11-26T18:20:05.5Z").unwrap()
    }

    #[test]
    fn days_durations_dates_and_times_are_read() {
        for (text, expected) in [
            ("today", "2026-11-26T00:00:00Z"),
            ("yesterday", "2026-11-25T00:00:00Z"),
            ("2h", "2026-11-26T16:20:05.5Z"),
            ("7d", "2026-11-19T18:20:05.5Z"),
            ("09:30", "2026-11-26T09:30:00Z"),
            ("09:30:15", "2026-11-26T09:30:15Z"),
            ("2026-11-25", "2026-11-25T00:00:00Z"),
            ("2024-02-29", "2024-02-29T00:00:00Z"),
            ("2026-11-25T09:30", "2026-11-25T09:30:00Z"),
            ("2026-11-25 09:30:15", "2026-11-25T09:30:15Z"),
            ("2026-11-25T09:30:15Z", "2026-11-25T09:30:15Z"),
            ("2026-11-25T09:30:15.25Z", "2026-11-25T09:30:15.25Z"),
        ] {
            let expected = humantime::parse_rfc3339(expected).unwrap();
            assert_eq!(since(text, now()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_strings_are_refused_with_the_formats() {
        for text in [
            "",
            "Yesterday",
            "tomorrow",
            "9:30",
            "25:00",
            "2026-13-01",
            "2026-11-25T",
            "T09:30",
            "2026-11-25T09:30+01:00",
            "1\u{1b}[2J",
            "-2h",
        ] {
            let error = since(text, now()).unwrap_err().to_string();
            assert!(error.contains("`2026-11-25T09:30`, in UTC"), "{text}: {error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn the_first_day_has_no_yesterday() {
        assert_eq!(since("yesterday", UNIX_EPOCH), Ok(UNIX_EPOCH));
    }
}
