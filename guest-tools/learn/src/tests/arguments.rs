use kitbag_sdk::bindings::Guest;
use kitbag_sdk::serde_json::{self, Value, json};
use kitbag_sdk::{Action, Context, Outcome};

use super::{Memory, call, check, check_error, topic};
use crate::Learn;

#[track_caller]
fn check_invalid(arguments: Value, reason: &str) {
    check_error(call(&Memory::default(), &arguments), &format!("invalid arguments: {reason}"));
}

fn format_arguments(arguments: &Value) -> Outcome {
    let context = Context { root: "/".into(), action: Action::FormatArguments };
    <Learn as Guest>::run(context, "learn".into(), arguments.to_string(), "{}".into())
}

#[track_caller]
fn check_line(arguments: Value, line: &str) {
    assert_eq!(format_arguments(&arguments), Outcome::Success(line.into()));
}

#[test]
fn the_topic_is_required() {
    check_invalid(json!({ "_topic": topic(json!({})) }), "`topic` is missing");
    check_invalid(json!({ "topic": 1, "_topic": topic(json!({})) }), "`topic` is not a string");
    check_invalid(json!({ "topic": null, "_topic": topic(json!({})) }), "`topic` is not a string");
}

#[test]
fn subjects_are_a_string_or_a_list_of_strings() {
    let files = Memory::of(&["a.md"]);
    for subjects in [json!("a"), json!(["a"])] {
        let arguments =
            json!({ "topic": "skills", "subjects": subjects, "_topic": topic(json!({})) });
        check(call(&files, &arguments), "a.md");
    }
    for subjects in [json!(1), json!(true), json!({}), json!(["a", 1]), json!([["a"]])] {
        let arguments =
            json!({ "topic": "skills", "subjects": subjects, "_topic": topic(json!({})) });
        let reason = match subjects {
            Value::Array(_) => "`subjects` is not a list of strings",
            _ => "`subjects` must be a string or a list of strings",
        };
        check_invalid(arguments, reason);
    }
}

#[test]
fn missing_and_empty_subjects_are_a_listing() {
    let files = Memory::of(&["a.md"]);
    let listing = call(&files, &json!({ "topic": "skills", "_topic": topic(json!({})) }));
    assert!(listing.as_ref().unwrap().starts_with("# Topic: skills\n"));
    for subjects in [json!([]), json!(null)] {
        let arguments =
            json!({ "topic": "skills", "subjects": subjects, "_topic": topic(json!({})) });
        assert_eq!(call(&files, &arguments), listing);
    }
}

#[test]
fn other_arguments_are_refused() {
    check_invalid(
        json!({ "topic": "skills", "subject": "a", "_topic": topic(json!({})) }),
        "`subject` is unknown; the arguments are `topic`, `subjects`, `query` and `max_bytes`",
    );
    check_invalid(json!({ "topic": "skills", "_topic": 1 }), "`_topic` is not an object");
    check_invalid(json!({ "topic": "skills", "_topic": {} }), "`_topic.id` is missing");
    check_invalid(
        json!({ "topic": "skills", "_topic": topic(json!({ "enable": true })) }),
        "`_topic.enable` is unknown",
    );
    check_invalid(
        json!({ "topic": "skills", "_topic": topic(json!({ "learned": "a" })) }),
        "`_topic.learned` is not a list of strings",
    );
    check_invalid(
        json!({ "topic": "skills", "_topic": topic(json!({ "output_bytes": -1 })) }),
        "`_topic.output_bytes` is not a whole number",
    );
    check_invalid(
        json!({ "topic": "skills", "_topic": topic(json!({})), "_view": "all" }),
        "`_view` is not `prompt`, `names` or `paths`",
    );
    check_invalid(json!([]), "invalid type: sequence, expected a map");
}

#[test]
fn unresolved_calls_are_errors() {
    check_invalid(json!({ "topic": "skills" }), "`_topic` is missing, which the host adds");
    let context = Context { root: "/subjects".into(), action: Action::Run };
    let outcome =
        <Learn as Guest>::run(context, "learn".into(), r#"{"topic":"a"}"#.into(), "{}".into());
    let Outcome::Error(error) = outcome else { panic!("no error") };
    assert_eq!(error.message, "invalid arguments: `_topic` is missing, which the host adds");
}

#[test]
fn a_call_is_rendered_as_one_line() {
    check_line(json!({ "topic": "skills" }), "learn skills: list");
    check_line(json!({ "topic": "skills", "subjects": [] }), "learn skills: list");
    check_line(json!({ "topic": "skills", "subjects": "ast-grep" }), "learn skills: ast-grep");
    check_line(
        json!({ "topic": "skills", "subjects": ["ast-grep", "rules/*"] }),
        "learn skills: ast-grep, rules/*",
    );
    check_line(
        json!({ "topic": "skills", "subjects": "a", "_topic": topic(json!({})) }),
        "learn skills: a",
    );
    check_line(json!({ "topic": "a\nb", "subjects": "\u{1b}[2J" }), "learn a\\nb: \\u{1b}[2J");
}

#[test]
fn invalid_arguments_cannot_be_rendered() {
    let Outcome::Error(error) = format_arguments(&json!({ "subjects": "a" })) else {
        panic!("no error");
    };
    assert_eq!(error.message, "invalid arguments: `topic` is missing");
}

#[test]
fn descriptions_match_the_tool() {
    let description: Value = serde_json::from_str(&<Learn as Guest>::describe()).unwrap();
    assert_eq!(description["name"], "learn");
    assert_eq!(description["title"], "Learn");
    assert_eq!(description["inputSchema"]["required"], json!(["topic"]));
    assert_eq!(description["inputSchema"]["additionalProperties"], json!(false));
    assert_eq!(description["inputSchema"]["properties"]["topic"]["type"], "string");
    assert_eq!(description["inputSchema"]["properties"]["subjects"]["type"], json!(null));
    assert_eq!(
        description["annotations"],
        json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false })
    );
    assert_eq!(
        description["grants"],
        json!({ "filesystem": [{ "guest": "/subjects", "mode": "ro" }] })
    );
}
