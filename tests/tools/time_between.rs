//! `time_between`, through the real component.

use crate::support::cases::check_cases;

#[test]
fn the_time_between_two_points_is_told_by_the_calendar() {
    check_cases("time", &["time_between.txt"]);
}
