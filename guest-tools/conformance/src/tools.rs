//! The tools.

use std::thread::sleep;
use std::time::Duration;

use kitbag_sdk::host::{self, Content, Level, Resource, ResourceBody};
use kitbag_sdk::serde_json::{Map, Value};
use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, json};

use crate::{Fixture, emit, media, text};

/// The pause that the suite expects between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

/// The directory in which the person who runs the suite requests changes.
const TRIGGERS: &str = "/triggers";

const TOOLS: &[(&str, &str, Fixture)] = &[
    ("test_simple_text", "A text.", simple_text),
    ("test_image_content", "An image.", image),
    ("test_audio_content", "A sound.", audio),
    ("test_embedded_resource", "A resource.", resource),
    ("test_multiple_content_types", "A text, an image and a resource.", several),
    ("test_tool_with_logging", "A text, after three messages.", logging),
    ("test_logging_tool", "A text, after three messages.", logging),
    ("test_error_handling", "An error.", error),
    ("test_tool_with_progress", "A text, after three steps.", progress),
    ("test_elicitation", "A text, after a form.", elicitation),
    ("test_elicitation_sep1034_defaults", "A form with suggestions.", defaults),
    ("test_elicitation_sep1330_enums", "A form with options.", enums),
    ("test_streaming_elicitation", "A text, after a form.", input_name),
    ("test_input_required_result_elicitation", "A greeting, after a form.", input_name),
    ("test_input_required_result_request_state", "A text, after a form.", input_state),
    ("test_input_required_result_tampered_state", "A text, after a form.", input_state),
    ("test_input_required_result_multi_round", "A text, after two forms.", input_rounds),
    ("test_trigger_tool_change", "Has the list of tools changed.", trigger_tools),
    ("test_trigger_prompt_change", "Has the list of prompts changed.", trigger_prompts),
    ("test_custom_headers", "A text, from an argument that is a header too.", arguments),
    ("json_schema_2020_12_tool", "Its schema has all that schemas can have.", arguments),
    // The suite has no tool with an output schema.
    ("test_structured_content", "The text that it is given, which should be a count.", given),
];

pub(crate) fn find(name: &str) -> Option<Fixture> {
    TOOLS.iter().find(|(tool, _, _)| *tool == name).map(|(_, _, fixture)| *fixture)
}

pub(crate) fn describe() -> impl Iterator<Item = Description> {
    TOOLS.iter().map(|(name, description, _)| {
        let schema = match *name {
            "json_schema_2020_12_tool" => rich_schema(),
            "test_elicitation" => json!({
                "type": "object",
                "properties": {
                    "message": { "type": "string", "description": "The question." },
                },
                "required": ["message"],
                "additionalProperties": false,
            }),
            "test_custom_headers" => json!({
                "type": "object",
                "properties": {
                    "region": { "type": "string", "x-mcp-header": "Region" },
                    "query": { "type": "string" },
                },
                "required": ["region"],
                "additionalProperties": false,
            }),
            "test_structured_content" => json!({
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
                "additionalProperties": false,
            }),
            _ => json!({ "type": "object", "additionalProperties": false }),
        };
        let tool = Description::new(*name).description(*description).input_schema(schema);
        match *name {
            "test_structured_content" => tool.output_schema(json!({
                "type": "object",
                "properties": { "count": { "type": "integer" } },
                "required": ["count"],
                "additionalProperties": false,
            })),
            _ => tool,
        }
    })
}

fn given(_: &Call, arguments: &Value) -> Result<String, Stop> {
    Ok(text(arguments, "text").to_owned())
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {
                    "street": { "type": "string" },
                    "city": { "type": "string" },
                },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn simple_text(_: &Call, _: &Value) -> Result<String, Stop> {
    Ok("This is a simple text response for testing.".to_owned())
}

fn image(_: &Call, _: &Value) -> Result<String, Stop> {
    emit(&Content::Image(media::image()))?;
    Ok(String::new())
}

fn audio(_: &Call, _: &Value) -> Result<String, Stop> {
    emit(&Content::Audio(media::sound()))?;
    Ok(String::new())
}

fn resource(_: &Call, _: &Value) -> Result<String, Stop> {
    emit(&Content::Resource(Resource {
        uri: "test://embedded-resource".to_owned(),
        mime_type: Some("text/plain".to_owned()),
        body: ResourceBody::Text("This is an embedded resource content.".to_owned()),
    }))?;
    Ok(String::new())
}

fn several(_: &Call, _: &Value) -> Result<String, Stop> {
    emit(&Content::Image(media::image()))?;
    emit(&Content::Resource(Resource {
        uri: "test://mixed-content-resource".to_owned(),
        mime_type: Some("application/json".to_owned()),
        body: ResourceBody::Text(r#"{"test":"data","value":123}"#.to_owned()),
    }))?;
    Ok("Multiple content types test:".to_owned())
}

fn logging(_: &Call, _: &Value) -> Result<String, Stop> {
    host::log(Level::Info, "Tool execution started");
    sleep(PAUSE);
    host::log(Level::Info, "Tool processing data");
    sleep(PAUSE);
    host::log(Level::Info, "Tool execution completed");
    Ok("The tool has logged three messages.".to_owned())
}

fn error(_: &Call, _: &Value) -> Result<String, Stop> {
    Err(ErrorInfo::new("This tool intentionally returns an error for testing").into())
}

fn progress(_: &Call, _: &Value) -> Result<String, Stop> {
    for (step, done) in [0.0, 50.0, 100.0].into_iter().enumerate() {
        if step > 0 {
            sleep(PAUSE);
        }
        host::progress(done, Some(100.0), None);
    }
    Ok("The tool has taken all its steps.".to_owned())
}

fn form<const N: usize>(
    call: &Call,
    id: &str,
    text: &str,
    fields: [Value; N],
) -> Result<Map<String, Value>, Stop> {
    call.ask(Ask::form(id, text, fields))
}

fn field(id: &str, kind: &str) -> Value {
    json!({ "id": id, "type": kind })
}

fn completed(answer: Map<String, Value>) -> String {
    format!("Elicitation completed: action=accept, content={}", Value::Object(answer))
}

fn elicitation(call: &Call, arguments: &Value) -> Result<String, Stop> {
    let fields = [
        json!({ "id": "username", "type": "text", "description": "User's response" }),
        json!({ "id": "email", "type": "text", "description": "User's email address" }),
    ];
    let answer = form(call, "user", text(arguments, "message"), fields)?;
    Ok(format!("User response: action=accept, content={}", Value::Object(answer)))
}

fn defaults(call: &Call, _: &Value) -> Result<String, Stop> {
    let status = json!({ "select": { "options": ["active", "inactive", "pending"] } });
    let fields = [
        json!({ "id": "name", "type": "text", "default": "John Doe" }),
        json!({ "id": "age", "type": "integer", "default": 30 }),
        json!({ "id": "score", "type": "number", "default": 95.5 }),
        json!({ "id": "status", "type": status, "default": "active" }),
        json!({ "id": "verified", "type": "boolean", "default": true }),
    ];
    Ok(completed(form(call, "user", "Please check what is suggested.", fields)?))
}

fn enums(call: &Call, _: &Value) -> Result<String, Stop> {
    let plain = ["option1", "option2", "option3"];
    let titled = |prefix: &str, titles: [&str; 3]| {
        let option =
            |(at, title)| json!({ "value": format!("{prefix}{}", at + 1), "title": title });
        let options: Vec<Value> = titles.into_iter().enumerate().map(option).collect();
        json!({ "options": options })
    };
    let first = titled("value", ["First Option", "Second Option", "Third Option"]);
    let legacy = titled("opt", ["Option One", "Option Two", "Option Three"]);
    let choices = titled("value", ["First Choice", "Second Choice", "Third Choice"]);
    let fields = [
        json!({ "id": "untitledSingle", "type": { "select": { "options": plain } } }),
        json!({ "id": "titledSingle", "type": { "select": first } }),
        json!({ "id": "legacyEnum", "type": { "select": legacy }, "legacy": true }),
        json!({ "id": "untitledMulti", "type": { "multi-select": { "options": plain } } }),
        json!({ "id": "titledMulti", "type": { "multi-select": choices } }),
    ];
    Ok(completed(form(call, "choices", "Please choose.", fields)?))
}

fn input_name(call: &Call, _: &Value) -> Result<String, Stop> {
    let answer = form(call, "user_name", "What is your name?", [field("name", "text")])?;
    Ok(format!("Hello, {}!", text(&Value::Object(answer), "name")))
}

fn input_state(call: &Call, _: &Value) -> Result<String, Stop> {
    let answer = form(call, "confirm", "Please confirm", [field("ok", "boolean")])?;
    // The host passes no answer from a state that does not belong to the call.
    Ok(format!("state-ok: {}", Value::Object(answer)))
}

fn input_rounds(call: &Call, _: &Value) -> Result<String, Stop> {
    let name = form(call, "step1", "Step 1: What is your name?", [field("name", "text")])?;
    let question = "Step 2: What is your favorite color?";
    let color = form(call, "step2", question, [field("color", "text")])?;
    let (name, color) = (Value::Object(name), Value::Object(color));
    Ok(format!("{} likes {}.", text(&name, "name"), text(&color, "color")))
}

fn trigger_tools(_: &Call, _: &Value) -> Result<String, Stop> {
    trigger("tools")
}

fn trigger_prompts(_: &Call, _: &Value) -> Result<String, Stop> {
    trigger("prompts")
}

/// A tool cannot change the configuration. It leaves a note for the person who can.
fn trigger(what: &str) -> Result<String, Stop> {
    let path = format!("{TRIGGERS}/{what}");
    std::fs::write(&path, "")
        .map_err(|error| ErrorInfo::new(format!("`{path}` cannot be written: {error}")))?;
    Ok(format!("The list of {what} is to change."))
}

fn arguments(call: &Call, _: &Value) -> Result<String, Stop> {
    Ok(format!("The arguments are {}", call.arguments_json()))
}
