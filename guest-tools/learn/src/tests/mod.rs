//! Tests of the tool's rules, each on a directory in memory and through a whole call, except for
//! its export.

mod arguments;
mod budget;
mod globs;
mod include;
mod limits;
mod links;
mod listing;
mod loading;
mod memory;
mod prompt;
mod query;
mod skills;
mod slugs;
mod tolerance;

use kitbag_sdk::Call;
use kitbag_sdk::serde_json::{Value, json};

use self::memory::Memory;
use crate::arguments::Arguments;

/// Creates a topic in the form that the host injects, with further keys.
fn topic(keys: Value) -> Value {
    let mut topic = json!({ "id": "skills" });
    for (key, value) in keys.as_object().into_iter().flatten() {
        topic[key] = value.clone();
    }
    topic
}

/// Makes a call and returns the content, or the message of the error.
fn call(files: &Memory, arguments: &Value) -> Result<String, String> {
    let call = Call::new("learn", "/subjects", arguments.to_string(), "{}");
    let answer = call.arguments().and_then(|arguments: Arguments| {
        crate::run(call.name(), &arguments, arguments.resolved()?, files)
    });
    answer.map_err(|error| {
        assert!(!error.transient, "an error of this tool is never transient");
        error.message
    })
}

/// Lists a topic with further keys.
fn list(files: &Memory, keys: Value) -> Result<String, String> {
    call(files, &json!({ "topic": "skills", "_topic": topic(keys) }))
}

/// Loads subjects of a topic with further keys.
///
/// An output limit among them is also what the caller requests.
fn load(files: &Memory, keys: Value, subjects: Value) -> Result<String, String> {
    let max_bytes = keys.get("output_bytes").cloned();
    let mut arguments = json!({ "topic": "skills", "subjects": subjects, "_topic": topic(keys) });
    if let Some(max_bytes) = max_bytes {
        arguments["max_bytes"] = max_bytes;
    }
    call(files, &arguments)
}

/// Returns the slugs that the answer to a call delivers.
fn loaded(files: &Memory, subjects: Value) -> Vec<String> {
    let answer = load(files, json!({}), subjects).unwrap();
    let begins = answer.split("<subject name=\"").skip(1);
    begins.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Returns the slugs of a listing, one per line.
fn listed(files: &Memory) -> Vec<String> {
    let answer = list(files, json!({})).unwrap();
    answer.lines().filter_map(|line| line.strip_prefix("- ")).map(ToOwned::to_owned).collect()
}

#[track_caller]
fn check(answer: Result<String, String>, expected: &str) {
    pretty_equal(&answer.unwrap_or_else(|error| panic!("error: {error}")), expected);
}

#[track_caller]
fn check_error(answer: Result<String, String>, expected: &str) {
    let error = answer.err().unwrap_or_else(|| panic!("there is no error"));
    pretty_equal(&error, expected);
}

/// Compares strings and shows them with their line breaks if they differ.
#[track_caller]
fn pretty_equal(actual: &str, expected: &str) {
    assert!(actual == expected, "expected:\n{expected}\n\nactual:\n{actual}");
}
