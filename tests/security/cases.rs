//! Attacks and their results, as data; `support::case_files` describes the format.

use crate::support::case_files::check_case_files;

#[test]
fn security_cases_match() {
    check_case_files("tests/security/cases");
}
