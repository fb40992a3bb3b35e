//! Calls on the command line and their output, as data; `support::case_files` describes the format.

use std::fs;

use crate::support::case_files::{case_files, check_case_files};
use crate::support::repository;

#[test]
fn tools_cases_match() {
    check_case_files("tests/tools/cases");
}

/// The names of the built-in tools.
macro_rules! names {
    ($($tool:ident)*) => { [$(stringify!($tool)),*] };
}

#[test]
fn each_built_in_tool_has_tests() {
    let directory = repository().join("tests/tools");
    let cases = case_files(&directory.join("cases")).into_iter();
    let cases: String = cases.map(|path| fs::read_to_string(path).unwrap()).collect();
    for tool in kitbag::for_each_tool!(names) {
        let has_module = directory.join(format!("{tool}.rs")).exists();
        assert!(has_module || cases.contains(&format!("kitbag run {tool} ")), "{tool}");
    }
}
