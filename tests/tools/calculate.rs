//! `calculate`, through the real component. Numbers in detail are tested in
//! `guest-tools/calc`.

use serde_json::json;

use crate::support::Workspace;
use crate::support::cases::{call, check_cases, check_concurrent};

#[test]
fn expressions_are_calculated() {
    check_cases("calc", &["exact.txt", "inexact.txt", "percent.txt", "errors.txt"]);
}

#[test]
fn huge_and_deep_expressions_end_with_a_clear_error() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let kitbag = workspace.kitbag();
    for (expression, expected) in [
        ("(".repeat(100_000), "the expression has 100000 bytes; the limit is 65536"),
        (
            "(".repeat(60_000),
            "column 66: parentheses, powers and signs are nested more than 64 deep",
        ),
        ("2^(2^64)".to_owned(), "a power has about 10^19 digits; the limit is 100,000"),
        (
            "7^100000/3^100000+".repeat(3_000) + "1",
            "the calculation takes too long; split it, or request fewer digits",
        ),
    ] {
        let found = call(&kitbag, "calculate", json!({ "expression": expression }));
        assert_eq!(found, Err(expected.to_owned()));
    }
    // The maximum depth, on the stack of a call.
    for open in ["(", "abs(", "1^(", "-(", "√("] {
        let expression = format!("{}1{}", open.repeat(32), ")".repeat(32));
        call(&kitbag, "calculate", json!({ "expression": expression })).unwrap();
    }
}

#[test]
fn concurrent_calls_do_not_interfere() {
    let workspace = Workspace::with_toolsets(&["calc"]);
    let kitbag = workspace.kitbag();
    let calls = ["2^100", "sqrt(2)", "1/0", "15% of 80"];
    check_concurrent(&kitbag, &calls.map(|it| ("calculate", json!({ "expression": it }))));
}
