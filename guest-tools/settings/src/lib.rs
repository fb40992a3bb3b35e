//! A tool that returns its configuration: a configuration value by `key`, an environment variable
//! by `variable`, or all of both. Its description is a file that is also in its section.

use std::env;

use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};

use crate::bindings::wasi::config::store;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    key: Option<String>,
    variable: Option<String>,
}

/// The description.
const DESCRIPTION: &str = include_str!("../section.json");

struct Settings;

impl Tool for Settings {
    type Arguments = Arguments;

    fn describe() -> Description {
        Description::from_json(DESCRIPTION)
    }

    fn run(_: &Call, arguments: Arguments) -> Result<String, Stop> {
        let shown = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        Ok(match arguments {
            Arguments { key: Some(key), .. } => shown(store::get(&key).map_err(failed)?),
            Arguments { variable: Some(name), .. } => match env::var(&name) {
                Ok(value) => value,
                Err(_) => return Err(ErrorInfo::new(format!("no variable `{name}`")).into()),
            },
            Arguments { key: None, variable: None } => {
                let values = store::get_all().map_err(failed)?;
                let values = values.into_iter().map(|(key, value)| format!("config {key}={value}"));
                let variables = env::vars().map(|(name, value)| format!("env {name}={value}"));
                let mut all: Vec<_> = values.chain(variables).collect();
                all.sort();
                all.join("\n")
            }
        })
    }

    fn format_arguments(call: &Call, arguments: Arguments) -> String {
        // This run has no grants.
        let all = Arguments { key: None, variable: None };
        let count = Self::run(call, all).map_or(0, |all| all.lines().count());
        let wanted = arguments.key.or(arguments.variable).unwrap_or_default();
        format!("settings {wanted} ({count} values)")
    }
}

fn failed(error: store::Error) -> Stop {
    ErrorInfo::new(format!("{error:?}")).into()
}

kitbag_sdk::export!(Settings);
kitbag_sdk::describe_section!(DESCRIPTION);

mod bindings {
    wit_bindgen::generate!({ world: "imports", path: "wit" });
}
