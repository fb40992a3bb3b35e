//! `time_between`, through the real component.

use crate::support::cases::check_cases;

#[test]
fn time_differences_follow_the_calendar() {
    check_cases("time", &["time_between.txt"]);
}
