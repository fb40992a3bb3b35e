//! Commands and their output, as data; `support::case_files` describes the format.

use crate::support::case_files::check_case_files;

#[test]
fn cli_cases_match() {
    check_case_files("tests/cli/cases");
}
