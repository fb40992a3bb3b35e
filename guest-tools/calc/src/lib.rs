//! The tool `calculate`: arithmetic that is exact if possible.
//!
//! Integers, decimals and fractions are exact rational numbers. An irrational number is an interval
//! that contains the true value: the result has the digits on which both ends agree, and a rounded
//! answer is marked. The crates `dashu-*` implement the numbers. The expression is evaluated during
//! parsing, so that a long one needs no tree.

#![forbid(unsafe_code)]

mod answer;
mod budget;
mod evaluate;
mod fail;
mod functions;
mod interval;
mod lexer;
mod number;
#[cfg(test)]
mod tests;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::Deserialize;

/// The tool.
struct Calculate;

kitbag_sdk::export!(Calculate);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

/// The arguments of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    expression: String,
    #[serde(default = "default_digits")]
    digits: usize,
}

fn default_digits() -> usize {
    30
}

impl Tool for Calculate {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(_: &Call, arguments: Arguments) -> Result<String, Stop> {
        Ok(run(&arguments.expression, arguments.digits).map_err(ErrorInfo::new)?)
    }

    fn format_arguments(call: &Call, arguments: Arguments) -> String {
        format!("{} {}", call.name(), lexer::quoted(&arguments.expression))
    }
}

/// Answers a call with JSON.
fn run(expression: &str, digits: usize) -> Result<String, String> {
    let answer = answer::answer(expression, digits)?;
    kitbag_sdk::serde_json::to_string(&answer).map_err(|error| error.to_string())
}
