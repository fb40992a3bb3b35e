//! The prompts.

use kitbag_sdk::host::{Content, Resource, ResourceBody};
use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Ask, Call, Stop, json};

use crate::{Fixture, emit, media, text};

const PROMPTS: &[(&str, Fixture)] = &[
    ("test_simple_prompt", simple),
    ("test_prompt_with_arguments", with_arguments),
    ("test_prompt_with_embedded_resource", with_resource),
    ("test_prompt_with_image", with_image),
    ("test_input_required_result_prompt", with_question),
];

pub(crate) fn find(name: &str) -> Option<Fixture> {
    PROMPTS.iter().find(|(prompt, _)| *prompt == name).map(|(_, fixture)| *fixture)
}

pub(crate) fn describe() -> Vec<Value> {
    let argument = |name: &str, description: &str| json!({ "name": name, "description": description, "required": true });
    let prompt = |name: &str, description: &str, arguments: &[Value]| json!({ "name": name, "description": description, "arguments": arguments });
    let uri = argument("resourceUri", "The resource to embed.");
    let (one, two) = (argument("arg1", "The first."), argument("arg2", "The second."));
    vec![
        prompt("test_simple_prompt", "A text.", &[]),
        prompt("test_prompt_with_arguments", "A text with its arguments in it.", &[one, two]),
        prompt("test_prompt_with_embedded_resource", "A text with a resource.", &[uri]),
        prompt("test_prompt_with_image", "A text with an image.", &[]),
        prompt("test_input_required_result_prompt", "A text that takes an answer.", &[]),
    ]
}

fn simple(_: &Call, _: &Value) -> Result<String, Stop> {
    Ok("This is a simple prompt for testing.".to_owned())
}

fn with_arguments(_: &Call, arguments: &Value) -> Result<String, Stop> {
    let (one, two) = (text(arguments, "arg1"), text(arguments, "arg2"));
    Ok(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))
}

fn with_resource(_: &Call, arguments: &Value) -> Result<String, Stop> {
    emit(&Content::Resource(Resource {
        uri: text(arguments, "resourceUri").to_owned(),
        mime_type: Some("text/plain".to_owned()),
        body: ResourceBody::Text("Embedded resource content for testing.".to_owned()),
    }))?;
    Ok("Please process the embedded resource above.".to_owned())
}

fn with_image(_: &Call, _: &Value) -> Result<String, Stop> {
    emit(&Content::Image(media::image()))?;
    Ok("Please analyze the image above.".to_owned())
}

fn with_question(call: &Call, _: &Value) -> Result<String, Stop> {
    let field = json!({ "id": "context", "type": "text" });
    let ask = Ask::form("user_context", "What context should the prompt use?", [field]);
    let answer = Value::Object(call.ask(ask)?);
    Ok(format!("Use this context: {}", text(&answer, "context")))
}
