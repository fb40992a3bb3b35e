//! Native tests of the tool: calls and answers in `cases/`, and properties compared with another
//! crate's rational numbers and with floating-point numbers.

use std::path::Path;

use kitbag_sdk::serde_json::{self, Value};
use kitbag_sdk::{Call, Tool, json};
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

use crate::Calculate;
use crate::functions::{CONSTANTS, FUNCTIONS};

fn call(tool: &str, arguments: &str) -> Result<String, String> {
    assert_eq!(tool, "calculate");
    let call = Call::new(tool, "/", arguments, "{}");
    let arguments: crate::Arguments = call.arguments().map_err(|error| error.message)?;
    crate::run(&arguments.expression, arguments.digits)
}

fn calculate(expression: &str, digits: usize) -> Result<Value, String> {
    crate::run(expression, digits).map(|answer| serde_json::from_str(&answer).unwrap())
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
fn rational_results_are_exact() {
    check("exact.txt");
}

#[test]
fn irrational_results_have_certain_digits() {
    check("inexact.txt");
}

#[test]
fn percent_works_as_on_a_pocket_calculator_and_is_noted() {
    check("percent.txt");
}

#[test]
fn errors_have_a_position() {
    check("errors.txt");
}

#[test]
fn huge_expressions_end_with_a_clear_error() {
    let check = |expression: String, expected: &str| {
        let error = calculate(&expression, 30).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("(".repeat(30_000), "nested more than 64 deep");
    check(format!("{}1{}", "(".repeat(20_000), ")".repeat(20_000)), "more than 64");
    check("(".repeat(100_000), "the expression has 100000 bytes");
    check(format!("2{}", "^2".repeat(20_000)), "more than 64");
    check("abs(".repeat(10_000), "more than 64");
    check("√".repeat(10_000), "more than 64");
    check("9".repeat(65_000) + "^9", "a power has about");
    check(format!("{0}*{0}*{0}*{0}", "9".repeat(16_000)) + "^9", "a power has about 144,000");
    check("25000!*".repeat(9_000) + "1", "more than 100,000 digits");
    check("2^300000-2^300000+".repeat(3_000) + "1", "takes too long");
    check("sin(1)+".repeat(9_000) + "1", "takes too long");
    check("7^100000/3^100000+".repeat(3_000) + "1", "takes too long");
    // Long expressions without depth are evaluated.
    let sum = calculate(&("1+".repeat(30_000) + "1"), 30).unwrap();
    assert_eq!(sum, json!({ "result": "30001", "exact": true }));
    let signs = calculate(&("-".repeat(60_001) + "1"), 30).unwrap();
    assert_eq!(signs, json!({ "result": "-1", "exact": true }));
}

#[test]
fn the_definition_stays_within_its_budget() {
    let description: Value = serde_json::from_str(&Calculate::describe().to_string()).unwrap();
    let text = |key: &str| description[key].as_str().unwrap().len();
    let characters =
        text("name") + text("description") + description["inputSchema"].to_string().len();
    // A token has four characters; the limit is 150 tokens.
    assert!(characters <= 600, "{characters}");
}

/// Generates an expression and its value computed by another crate. `None` if it divides by zero.
fn expressions() -> impl Strategy<Value = (String, Option<BigRational>)> {
    let whole = (0u64..1_000_000_000_000)
        .prop_map(|number| (number.to_string(), Some(BigRational::from(BigInt::from(number)))));
    let decimal = (0u32..1_000_000, 1u32..6).prop_map(|(number, places)| {
        let scale = 10u32.pow(places);
        let text =
            format!("{}.{:0width$}", number / scale, number % scale, width = places as usize);
        (text, Some(BigRational::new(number.into(), scale.into())))
    });
    prop_oneof![whole, decimal].prop_recursive(6, 40, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone(), 0usize..4).prop_map(|((one, a), (two, b), operator)| {
                let text = format!("({one}) {} ({two})", ["+", "-", "*", "/"][operator]);
                let value = a.zip(b).and_then(|(a, b)| match operator {
                    0 => Some(a + b),
                    1 => Some(a - b),
                    2 => Some(a * b),
                    _ if b == BigRational::from(BigInt::from(0)) => None,
                    _ => Some(a / b),
                });
                (text, value)
            }),
            inner.clone().prop_map(|(text, value)| (format!("-({text})"), value.map(|it| -it))),
            (inner, 0i32..6).prop_map(|((text, value), exponent)| {
                (format!("({text})^{exponent}"), value.map(|value| value.pow(exponent)))
            }),
        ]
    })
}

/// Generates expressions with all functions and constants, and with numbers that they treat
/// specially.
fn expressions_of_functions() -> impl Strategy<Value = String> {
    let number = prop::sample::select(vec!["0", "1", "2", "0.5", "1e-40", "1e9", "(1/3)"]);
    let constant = prop::sample::select(CONSTANTS);
    let leaf = prop_oneof![number, constant].prop_map(str::to_owned);
    leaf.prop_recursive(5, 24, 3, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "/", "//", "%", "mod", "^"]);
        let function = prop::sample::select(FUNCTIONS);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(one, operator, two)| format!("({one} {operator} {two})")),
            inner.clone().prop_map(|of| format!("(-{of})")),
            inner.clone().prop_map(|of| format!("({of}!)")),
            (function, prop::array::uniform3(inner)).prop_map(|((name, _, most), arguments)| {
                format!("{name}({})", arguments[..most.min(3)].join(", "))
            }),
        ]
    })
}

/// A floating-point function and its name.
type Named = (&'static str, fn(f64) -> f64);

/// Parses a decimal number.
fn decimal(text: &str) -> BigRational {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let number: BigInt = format!("{whole}{fraction}").parse().unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - fraction.len() as i32;
    let scale = BigRational::from(BigInt::from(10)).pow(exponent);
    BigRational::from(number) * scale
}

proptest! {
    #[test]
    fn rational_results_match_another_crate(
        (expression, expected) in expressions(), digits in 1usize..60,
    ) {
        let answer = calculate(&expression, digits);
        let Some(expected) = expected else {
            prop_assert!(answer.unwrap_err().contains("division by zero"));
            return Ok(());
        };
        let answer = answer.unwrap();
        let found = decimal(answer["result"].as_str().unwrap());
        if answer["exact"] == true {
            prop_assert_eq!(found, expected);
            return Ok(());
        }
        if let Some(fraction) = answer["fraction"].as_str() {
            prop_assert_eq!(fraction.parse::<BigRational>().unwrap(), expected.clone());
        }
        // Half a unit of the last digit, relative to a value that is at most ten times as large.
        let digits = answer["digits"].as_u64().unwrap() as i32;
        let zero = BigRational::from(BigInt::from(0));
        let absolute = |number: BigRational| if number < zero { -number } else { number };
        let error = absolute(found - expected.clone());
        let unit = BigRational::from(BigInt::from(10)).pow(1 - digits);
        prop_assert!(error <= absolute(expected) * unit / BigInt::from(2));
    }

    #[test]
    fn functions_are_close_to_floating_point_functions(number in -700.0f64..700.0, index in 0usize..14) {
        let functions: [Named; 14] = [
            ("sqrt", f64::sqrt), ("cbrt", f64::cbrt), ("exp", f64::exp), ("ln", f64::ln),
            ("log10", f64::log10), ("log2", f64::log2), ("sin", f64::sin), ("cos", f64::cos),
            ("tan", f64::tan), ("atan", f64::atan), ("sinh", f64::sinh), ("cosh", f64::cosh),
            ("tanh", f64::tanh), ("asin", |number| (number / 1000.0).asin()),
        ];
        let (name, function) = functions[index];
        let expected = function(number);
        // All digits of the number: near a pole of `tan`, the shortest ones differ too much.
        let exact = format!("({number:.60})");
        let argument = if name == "asin" { format!("{exact} / 1000") } else { exact };
        let answer = calculate(&format!("{name}({argument})"), 25);
        if expected.is_nan() {
            prop_assert!(answer.unwrap_err().contains("not real"));
            return Ok(());
        }
        let found: f64 = answer.unwrap()["result"].as_str().unwrap().parse().unwrap();
        prop_assert!(
            (found - expected).abs() <= expected.abs() * 1e-11 + 1e-13,
            "{name}({number}): {found} {expected}"
        );
    }

    #[test]
    fn more_digits_start_with_the_same_digits(
        index in 0usize..8, number in 1u32..10_000, digits in 5usize..60,
    ) {
        let name = ["sqrt", "ln", "sin", "exp", "tan", "atan", "cbrt", "tanh"][index];
        let expression = format!("{name}({number}/1000 + sqrt(2))");
        let text = |digits| calculate(&expression, digits).unwrap()["result"].as_str().unwrap().to_owned();
        let (few, many) = (decimal(&text(digits)), decimal(&text(digits + 40)));
        let zero = BigRational::from(BigInt::from(0));
        let absolute = |number: BigRational| if number < zero { -number } else { number };
        let unit = BigRational::from(BigInt::from(10)).pow(1 - digits as i32);
        prop_assert!(absolute(&few - &many) <= absolute(many) * unit);
    }

    #[test]
    fn any_text_has_a_result_or_error(
        text in "\\PC{0,30}|[0-9+*/^!%(),. e-]{0,20}|(sin|ln|round|gcd|pi|mod|[0-9]{1,3}|[-+*/^%(),!]){1,12}",
    ) {
        let _ = calculate(&text, 20);
    }

    #[test]
    fn any_expression_has_a_result_or_error(text in expressions_of_functions()) {
        let _ = calculate(&text, 20);
    }
}
