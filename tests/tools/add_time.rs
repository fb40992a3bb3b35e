//! `add_time`, through the real component.

use crate::support::cases::check_cases;

#[test]
fn durations_are_added_by_the_calendar() {
    check_cases("time", &["add_time.txt"]);
}
