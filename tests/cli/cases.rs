//! Commands and what they print, as data: `support::case_files` has the form.

use crate::support::case_files::check_case_files;

#[test]
fn commands_print_what_their_cases_say() {
    check_case_files("tests/cli/cases");
}
