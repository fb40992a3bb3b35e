//! The resources.

use kitbag_sdk::host::{Content, Resource, ResourceBody};
use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, json};

use crate::{emit, media, text};

const STATIC_TEXT: &str = "test://static-text";
const STATIC_BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

/// Requires an answer. The suite does not read it.
const WITH_QUESTION: &str = "test://with-question";

/// The parts of a URI around its parameter.
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

pub(crate) fn describe(description: Description) -> Description {
    let resource = |uri: &str, name: &str, description: &str, mime_type: &str| json!({ "uri": uri, "name": name, "description": description, "mimeType": mime_type });
    let template = json!({
        "uriTemplate": format!("{}{{id}}{}", TEMPLATE.0, TEMPLATE.1),
        "name": "Data by id",
        "description": "A document for each id.",
        "mimeType": "application/json",
    });
    description
        .resource(resource(STATIC_TEXT, "Static text", "A text.", "text/plain"))
        .resource(resource(STATIC_BINARY, "Static image", "One red pixel.", "image/png"))
        .resource(resource(WATCHED, "Watched text", "A text to subscribe to.", "text/plain"))
        .resource(resource(
            WITH_QUESTION,
            "Text for an answer",
            "A text that takes an answer.",
            "text/plain",
        ))
        .resource_template(template)
}

pub(crate) fn read(call: &Call, arguments: &Value) -> Result<String, Stop> {
    let uri = text(arguments, "uri");
    match uri {
        STATIC_TEXT => Ok("This is the content of the static text resource.".to_owned()),
        STATIC_BINARY => {
            emit(&Content::Resource(Resource {
                uri: uri.to_owned(),
                mime_type: Some("image/png".to_owned()),
                body: ResourceBody::Blob(media::PNG.to_vec()),
            }))?;
            Ok(String::new())
        }
        WATCHED => Ok("This is the content of the watched resource.".to_owned()),
        WITH_QUESTION => {
            let answer = call.ask(Ask::boolean("sure", "Really read it?"))?;
            Ok(format!("The answer is {answer}."))
        }
        _ => {
            let id = uri.strip_prefix(TEMPLATE.0).and_then(|rest| rest.strip_suffix(TEMPLATE.1));
            // The host matches the template; the component knows the ids.
            let id = id.filter(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            let id = id.ok_or_else(|| ErrorInfo::new(format!("`{uri}` has no such id")))?;
            let data = format!("Data for ID: {id}");
            Ok(json!({ "id": id, "templateTest": true, "data": data }).to_string())
        }
    }
}
