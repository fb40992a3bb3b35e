//! The tools `now`, `parse_time`, `convert_time`, `add_time` and `time_between`.
//!
//! The crate `jiff` provides the calendar and the embedded zones. This crate parses the formats in
//! which people and models write times, and refuses to guess: skipped or repeated local times,
//! ambiguous dates and missing zones are errors that name the choices.

#![forbid(unsafe_code)]

mod answer;
mod cycle;
mod duration;
mod excerpt;
mod input;
mod local;
#[cfg(test)]
mod tests;
mod tools;
mod words;
mod zone;

use jiff::Timestamp;
use kitbag_sdk::serde_json::{Map, Value};
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::tools::Here;
use crate::zone::Local;

/// The component.
struct Time;

kitbag_sdk::export!(Time);

/// The component's own description, also in its section.
const DESCRIPTION: &str = include_str!("../describe.json");

kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Time {
    // Each tool has its own arguments, which `answer` parses.
    type Arguments = IgnoredAny;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(call: &Call, _: IgnoredAny) -> Result<String, Stop> {
        Ok(run(call, Timestamp::now())?)
    }
}

/// Serves a call at the time of `clock`.
fn run(call: &Call, clock: Timestamp) -> Result<String, ErrorInfo> {
    let (call, local) = with_local(call)?;
    let here = Here { clock, local };
    match call.name() {
        "now" => answer(&call, |arguments| tools::now(arguments, &here)),
        "parse_time" => answer(&call, |arguments| tools::parse_time(arguments, &here)),
        "convert_time" => answer(&call, |arguments| tools::convert_time(arguments, &here)),
        "add_time" => answer(&call, |arguments| tools::add_time(arguments, &here)),
        "time_between" => answer(&call, |arguments| tools::time_between(arguments, &here)),
        name => Err(ErrorInfo::new(format!("this component has no tool `{name}`"))),
    }
}

/// Takes the local zone that the host added out of the arguments.
fn with_local(call: &Call) -> Result<(Call, Local), ErrorInfo> {
    let mut arguments: Map<String, Value> = call.arguments()?;
    match arguments.remove("_zone") {
        None => Ok((call.clone(), Local(None))),
        Some(zone) => {
            let arguments = Value::from(arguments).to_string();
            let rest = Call::new(call.name(), call.root(), arguments, call.answers_json());
            Ok((rest, Local(zone.as_str().map(str::to_owned))))
        }
    }
}

fn answer<A: DeserializeOwned, T: Serialize>(
    call: &Call,
    tool: impl FnOnce(A) -> Result<T, String>,
) -> Result<String, ErrorInfo> {
    let answer = tool(call.arguments()?).map_err(ErrorInfo::new)?;
    kitbag_sdk::serde_json::to_string(&answer)
        .map_err(|error| ErrorInfo::new("the answer cannot be written").caused_by(error))
}
