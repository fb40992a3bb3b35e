//! The tool `calculate`: arithmetic that is exact where it can be.
//!
//! Whole numbers, decimals and fractions are exact rational numbers. What is irrational is an
//! interval that holds the true value: as many digits are given as both of its ends agree on,
//! and an answer that is rounded says so. The numbers are those of the crates `dashu-*`; the
//! expression is evaluated while it is read, so that a long one needs no tree.

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

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool, json};
use serde::Deserialize;

/// The tool.
struct Calculate;

kitbag_sdk::export!(Calculate);

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
        Description::new("calculate")
            .title("Calculate")
            .description(
                "Calculate exactly with big integers, decimals, fractions and percent: \
                 `15% of 80 + 2^100 / 3`. Has + - * / ^ ! mod, pi, e and functions as in \
                 `round(sqrt(2), 3)`. No units, no dates.",
            )
            .arguments(
                json!({
                    "expression": { "type": "string" },
                    "digits": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 100_000,
                        "default": 30,
                        "description": "Significant digits of what is not exact",
                    },
                }),
                &["expression"],
            )
            .output_schema(json!({
                "type": "object",
                "properties": {
                    "result": { "type": "string", "description": "A decimal number" },
                    "exact": { "type": "boolean", "description": "Whether nothing was rounded" },
                    "digits": {
                        "type": "integer",
                        "description": "Significant digits that are certain, where not exact",
                    },
                    "fraction": { "type": "string", "description": "The exact result" },
                    "note": { "type": "string", "description": "How the expression was read" },
                },
                "required": ["result", "exact"],
                "additionalProperties": false,
            }))
            .annotations(json!({
                "readOnlyHint": true,
                "idempotentHint": true,
                "openWorldHint": false,
            }))
            // Nothing: a calculation needs no grant.
            .grants(json!({ "filesystem": [] }))
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
