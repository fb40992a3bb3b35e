//! Native tests of the tools: calls and answers from `cases/`, and properties compared with `jiff`.

use std::path::Path;

use jiff::civil::{DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan, Unit, Zoned};
use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::{Call, json};
use proptest::prelude::*;

/// The current time in these tests.
const CLOCK: &str = "2026-11-23T12:00:00Z";

fn call(tool: &str, arguments: &str) -> Result<String, String> {
    let call = Call::new(tool, "/", arguments, "{}");
    crate::run(&call, CLOCK.parse().unwrap()).map_err(|error| error.message)
}

fn json(tool: &str, arguments: Value) -> Value {
    let answer = call(tool, &arguments.to_string());
    serde_json::from_str(&answer.unwrap_or_else(|error| panic!("{arguments}: {error}"))).unwrap()
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file);
    kitbag_cases::check(path, call);
}

#[test]
fn invalid_arguments_are_refused() {
    check("arguments.txt");
}

#[test]
fn times_are_read_in_the_forms_that_people_write() {
    check("parse_time.txt");
}

#[test]
fn relative_words_are_resolved_in_the_zone() {
    check("relative.txt");
}

#[test]
fn the_local_zone_is_the_default() {
    check("local.txt");
}

#[test]
fn times_are_converted() {
    check("convert_time.txt");
}

#[test]
fn durations_are_added_by_the_calendar() {
    check("add_time.txt");
}

#[test]
fn time_differences_follow_the_calendar() {
    check("time_between.txt");
}

/// Points from 1800 to 2300, near clock changes of zones.
fn timestamps() -> impl Strategy<Value = Timestamp> {
    (-5_364_662_400i64..10_413_792_000, 0i32..1_000_000_000)
        .prop_map(|(second, nanosecond)| Timestamp::new(second, nanosecond).unwrap())
}

fn zones() -> impl Strategy<Value = String> {
    let names: Vec<_> = jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    prop::sample::select(names)
}

/// Returns a local time near a clock change of the zone.
fn near_change(zone: &TimeZone, after: Timestamp, minutes: i64) -> DateTime {
    let change = zone.following(after).next().map_or(after, |change| change.timestamp());
    zone.to_datetime(change).saturating_add(minutes.minutes())
}

proptest! {
    #[test]
    fn answers_are_parsed_back_to_the_same_point(time in timestamps(), zone in zones()) {
        let zoned = time.in_tz(&zone).unwrap();
        // RFC 3339 has no offset with seconds, but the zone in brackets determines it.
        prop_assume!(zoned.offset().seconds() % 60 == 0);
        let answer = json("convert_time", json!({ "time": time.to_string(), "to": zone }));
        prop_assert_eq!(&answer["unix"], &json!(time.as_nanosecond().div_euclid(1_000_000_000) as i64));
        prop_assert_eq!(
            &answer["unix_millis"],
            &json!(time.as_nanosecond().div_euclid(1_000_000) as i64)
        );
        let iso = answer["iso"].as_str().unwrap();
        prop_assert_eq!(iso.parse::<Timestamp>().unwrap(), time);
        let back = json("parse_time", json!({ "time": iso }));
        let point = back["iso"].as_str().unwrap().parse::<Timestamp>().unwrap();
        prop_assert_eq!(point, time);
        let back = json("parse_time", json!({ "time": zoned.to_string() }));
        prop_assert_eq!(&back, &answer);
    }

    #[test]
    fn ambiguous_local_times_match_jiff(
        after in timestamps(), zone in zones(), minutes in -180i64..180,
    ) {
        let found = TimeZone::get(&zone).unwrap();
        let local = near_change(&found, after, minutes);
        let arguments = |choice: &str| {
            json!({ "time": local.to_string(), "zone": zone, "disambiguation": choice }).to_string()
        };
        let ambiguous = found.to_ambiguous_zoned(local);
        prop_assert_eq!(
            call("parse_time", &arguments("reject")).is_err(),
            ambiguous.is_ambiguous()
        );
        for (choice, expected) in
            [("earlier", ambiguous.clone().earlier()), ("later", ambiguous.later())]
        {
            let answer: Value =
                serde_json::from_str(&call("parse_time", &arguments(choice)).unwrap()).unwrap();
            let expected = expected.unwrap().timestamp().as_nanosecond().div_euclid(1_000_000);
            prop_assert_eq!(&answer["unix_millis"], &json!(expected as i64));
        }
    }

    #[test]
    fn additions_match_jiff_without_clock_changes(
        time in timestamps(), zone in zones(),
        years in -50i64..50, months in -30i64..30, days in -400i64..400, hours in -100i64..100,
    ) {
        // All units of a duration have the same sign.
        let span = match years < 0 {
            true => Span::new().years(years).months(-months.abs()).days(-days.abs()).hours(-hours.abs()),
            false => Span::new().years(years).months(months.abs()).days(days.abs()).hours(hours.abs()),
        };
        let zoned = time.in_tz(&zone).unwrap();
        let expected: Zoned = zoned.checked_add(span).unwrap();
        let arguments =
            json!({ "time": time.to_string(), "duration": span.to_string(), "zone": zone });
        // The time is in UTC, so it is converted to the zone first.
        let bracketed = json!({
            "time": zoned.to_string(), "duration": span.to_string(), "zone": zone,
        });
        prop_assume!(zoned.offset().seconds() % 60 == 0);
        if let Ok(answer) = call("add_time", &bracketed.to_string()) {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            prop_assert_eq!(
                &answer["unix_millis"],
                &json!(expected.timestamp().as_nanosecond().div_euclid(1_000_000) as i64)
            );
        } else {
            let calendar = Span::new().years(span.get_years()).months(span.get_months()).days(span.get_days());
            let local = zoned.datetime().checked_add(calendar).unwrap();
            prop_assert!(zoned.time_zone().to_ambiguous_zoned(local).is_ambiguous());
        }
        // UTC has no clock changes.
        let in_utc = time.to_zoned(TimeZone::UTC).checked_add(span).unwrap();
        let answer = json("add_time", arguments);
        prop_assert_eq!(
            &answer["unix_millis"],
            &json!(in_utc.timestamp().as_nanosecond().div_euclid(1_000_000) as i64)
        );
    }

    #[test]
    fn adding_a_difference_gives_the_second_time(
        from in timestamps(), to in timestamps(), zone in zones(),
    ) {
        let (first, second) = (from.in_tz(&zone).unwrap(), to.in_tz(&zone).unwrap());
        prop_assume!(first.offset().seconds() % 60 == 0 && second.offset().seconds() % 60 == 0);
        let answer = json(
            "time_between",
            json!({ "from": first.to_string(), "to": second.to_string() }),
        );
        let span: Span = answer["iso"].as_str().unwrap().parse().unwrap();
        prop_assert_eq!(span.fieldwise(), first.until((Unit::Year, &second)).unwrap().fieldwise());
        prop_assert_eq!(first.checked_add(span).unwrap().timestamp(), to);
        prop_assert_eq!(&answer["seconds"], &json!(from.duration_until(to).as_secs()));
    }

    #[test]
    fn business_days_are_counted_one_by_one(
        time in timestamps(), days in -40i64..40,
    ) {
        let start = time.to_zoned(TimeZone::UTC);
        let mut date = start.date();
        for _ in 0..days.abs() {
            loop {
                date = date.checked_add(days.signum().days()).unwrap();
                if !matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday) {
                    break;
                }
            }
        }
        let answer = json(
            "add_time",
            json!({ "time": time.to_string(), "duration": format!("{days} business days") }),
        );
        let expected = date.to_datetime(start.time()).to_zoned(TimeZone::UTC).unwrap();
        prop_assert_eq!(answer["iso"].as_str().unwrap(), expected.timestamp().to_string());
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,40}|[0-9TZWa-z:/+. -]{0,40}") {
        let _ = call("parse_time", &json!({ "time": text }).to_string());
        let _ = call("add_time", &json!({ "time": "now", "duration": text }).to_string());
        let _ = call("now", &json!({ "zone": text }).to_string());
        let _ = call("parse_time", &json!({ "time": "2026", "format": text }).to_string());
    }
}
