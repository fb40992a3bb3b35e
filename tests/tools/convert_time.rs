//! `convert_time`, through the real component.

use crate::support::cases::check_cases;

#[test]
fn times_are_converted() {
    check_cases("time", &["convert_time.txt"]);
}
