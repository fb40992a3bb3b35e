//! A tool that calls other tools in the steps of its arguments, also as no honest tool would.
//!
//! For tests only; not part of kitbag.

#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Instant, SystemTime};

use kitbag_sdk::host::{self, Level};
use kitbag_sdk::serde_json::Value;
use kitbag_sdk::tools::{self, Answer, Pending};
use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, Target, Tool, json};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// Lists the aliases.
    List,
    /// Calls a tool a number of times in sequence.
    Call {
        tool: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default = "once")]
        times: u32,
    },
    /// Starts calls, which later steps finish.
    Start {
        tool: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default = "once")]
        times: u32,
    },
    /// Takes the answers of all started calls, in the order of their arrival.
    Finish,
    /// Drops all started calls.
    Drop,
    /// Returns the clocks and random numbers.
    Readings,
    /// Calls a tool with an argument that differs in each run.
    Diverge {
        tool: String,
    },
    Log {
        text: String,
    },
    /// Asks the person a question of its own.
    Ask {
        text: String,
    },
    /// Loops forever.
    Spin,
}

/// The prefix of a resource URI, before its steps in JSON.
const SCHEME: &str = "relay:";

fn once() -> u32 {
    1
}

/// The component.
struct Relay;

kitbag_sdk::export!(Relay);

impl Tool for Relay {
    type Arguments = Value;

    fn describe() -> Description {
        Description::new("relay")
            .description("Call other tools.")
            .arguments(json!({ "steps": { "type": "array", "items": {} } }), &["steps"])
            .prompt(json!({
                "name": "relayed",
                "arguments": [{ "name": "steps", "required": true }],
            }))
            .resource_template(json!({
                "uriTemplate": format!("{SCHEME}{{+steps}}"),
                "name": "relayed",
            }))
    }

    fn run(call: &Call, arguments: Value) -> Result<String, Stop> {
        let mut said = Vec::new();
        let mut started = Vec::new();
        for step in steps(call, &arguments)? {
            match step {
                Step::List => {
                    let aliases = tools::list().into_iter().map(|tool| tool.alias);
                    said.push(aliases.collect::<Vec<_>>().join(" "));
                }
                Step::Call { tool, arguments, times } => {
                    let arguments = arguments.to_string();
                    for _ in 0..times {
                        said.push(shown(tools::call_json(&tool, &arguments)));
                    }
                }
                Step::Start { tool, arguments, times } => {
                    let arguments = arguments.to_string();
                    for _ in 0..times {
                        match tools::start_json(&tool, &arguments) {
                            Ok(pending) => started.push(pending),
                            Err(error) => said.push(shown(Err(error))),
                        }
                    }
                }
                Step::Finish => {
                    while !started.is_empty() {
                        let first = tools::wait(&started.iter().collect::<Vec<&Pending>>());
                        said.push(shown(started.remove(first).finish()));
                    }
                }
                Step::Drop => started.clear(),
                Step::Readings => {
                    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                    let random = RandomState::new().hash_one(0);
                    said.push(format!("{:?} {random} {:?}", since.ok(), Instant::now()));
                }
                Step::Diverge { tool } => {
                    let answers = call.answers_json().len();
                    said.push(shown(tools::call(&tool, &json!({ "text": format!("{answers}") }))));
                }
                Step::Log { text } => host::log(Level::Info, &text),
                Step::Ask { text } => {
                    let is_sure = call.ask(Ask::boolean("own", text))?;
                    said.push(format!("own: {is_sure}"));
                }
                Step::Spin => loop {
                    std::hint::spin_loop();
                },
            }
        }
        Ok(said.join("\n"))
    }
}

/// Parses the steps: the argument of the tool, JSON in the argument of the prompt, or JSON in the
/// URI.
fn steps(call: &Call, arguments: &Value) -> Result<Vec<Step>, ErrorInfo> {
    let text = match call.target() {
        Target::Tool(_) => arguments["steps"].to_string(),
        Target::Prompt(_) => arguments["steps"].as_str().unwrap_or_default().to_owned(),
        Target::Resource => {
            let uri = arguments["uri"].as_str().unwrap_or_default();
            uri.strip_prefix(SCHEME).unwrap_or_default().to_owned()
        }
    };
    let steps = kitbag_sdk::serde_json::from_str(&text);
    steps.map_err(|error| ErrorInfo::new(format!("invalid arguments: {error}")))
}

fn shown(answer: Result<Answer, ErrorInfo>) -> String {
    match answer {
        Ok(answer) => {
            let structured = answer.structured.map(|json| format!(" structured {json}"));
            let content = match answer.content.len() {
                0 => String::new(),
                items => format!(" and {items} more"),
            };
            format!("ok {}{}{content}", answer.text, structured.unwrap_or_default())
        }
        Err(error) if error.transient => format!("error {} (transient)", error.message),
        Err(error) => format!("error {}", error.message),
    }
}
