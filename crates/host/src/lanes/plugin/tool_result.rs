//! Outputs of plugins: the descriptions and results of the Model Context Protocol as JSON, and any
//! other bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kitbag_base::json::{JsonBudget, parse};
use kitbag_contract::bindings::host::{self, Host, Link, Media, Resource, ResourceBody};
use kitbag_contract::{ErrorInfo, Outcome};
use kitbag_engine::{DescribeResult, Support};
use serde_json::{Map, Value};

use crate::call::report::Reports;

/// The keys of a tool's description that are taken over. Others have a meaning only for kitbag's
/// own tools.
const KEYS: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Reads the answer of `describe` or `list_tools`: `{"tools":[…]}`, or one tool.
pub(super) fn description(output: &[u8], support: &Support) -> DescribeResult {
    let answer = match parse(output, JsonBudget::DESCRIPTION) {
        Ok(answer) => answer,
        Err(error) => return DescribeResult::Unusable(error.to_string()),
    };
    let tools = match answer {
        Value::Object(mut answer) => match answer.remove("tools") {
            Some(Value::Array(tools)) => tools,
            Some(_) => return DescribeResult::Unusable("`tools` is not a list".into()),
            None => vec![Value::Object(answer)],
        },
        _ => return DescribeResult::Unusable("it is not a JSON object".into()),
    };
    let tools = tools.into_iter().map(|tool| match tool {
        Value::Object(tool) => {
            let known =
                tool.into_iter().filter(|(key, value)| KEYS.contains(&&**key) && !value.is_null());
            Value::Object(known.collect())
        }
        other => other,
    });
    let mut description = Map::new();
    description.insert("tools".into(), tools.collect());
    DescribeResult::read(Value::Object(description).to_string().as_bytes(), support)
}

/// Reads a result with `content`, `structuredContent` and `isError`.
pub(super) fn outcome(output: &[u8], reports: &mut Reports) -> Outcome {
    let result = match parse(output, JsonBudget::OUTPUT) {
        Ok(result) => result,
        Err(error) => {
            let message = format!("the result of the plugin is not JSON: {error}");
            return Outcome::Error(ErrorInfo::new(message));
        }
    };
    let Some(blocks) = result["content"].as_array() else {
        let message = "the result of the plugin has no list `content`";
        return Outcome::Error(ErrorInfo::new(message));
    };
    let mut texts = Vec::new();
    for block in blocks {
        match text(block) {
            Some(text) => texts.push(text.to_owned()),
            None => match content(block).map(|content| reports.emit(content)) {
                Some(Ok(())) => {}
                Some(Err(reason)) => texts.push(format!("[content omitted: {reason}]")),
                None => texts.push(block.to_string()),
            },
        }
    }
    // The text of a tool with an output schema is JSON that matches it.
    let structured = result.get("structuredContent").filter(|it| it.is_object());
    match (&result["isError"], structured) {
        (Value::Bool(true), _) => Outcome::Error(ErrorInfo::new(texts.join("\n"))),
        (_, Some(structured)) => Outcome::Success(structured.to_string()),
        (_, None) => Outcome::Success(texts.join("\n")),
    }
}

/// Returns the text of a block. Its type is not always set.
fn text(block: &Value) -> Option<&str> {
    match block["type"].as_str() {
        Some("text") | None => block["text"].as_str(),
        Some(_) => None,
    }
}

fn content(block: &Value) -> Option<host::Content> {
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    let data = |value: &Value, key: &str| STANDARD.decode(value[key].as_str()?).ok();
    Some(match block["type"].as_str()? {
        kind @ ("image" | "audio") => {
            let media = Media { data: data(block, "data")?, mime_type: text(block, "mimeType")? };
            match kind {
                "image" => host::Content::Image(media),
                _ => host::Content::Audio(media),
            }
        }
        "resource" => {
            // The first interface of hyper-mcp has no object around it.
            let resource = block.get("resource").unwrap_or(block);
            let body = match data(resource, "blob") {
                Some(data) => ResourceBody::Blob(data),
                None => ResourceBody::Text(text(resource, "text")?),
            };
            let (uri, mime_type) = (text(resource, "uri")?, text(resource, "mimeType"));
            host::Content::Resource(Resource { uri, mime_type, body })
        }
        "resource_link" => host::Content::Link(Link {
            uri: text(block, "uri")?,
            name: text(block, "name")?,
            title: text(block, "title"),
            description: text(block, "description"),
            mime_type: text(block, "mimeType"),
            size: block["size"].as_u64(),
        }),
        _ => return None,
    })
}

/// The first bytes of image formats.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Returns the output of a plain plugin: text, or content if it is an image or other bytes.
pub(super) fn plain(output: Vec<u8>, function: &str, reports: &mut Reports) -> Outcome {
    let data = match String::from_utf8(output) {
        Ok(text) => return Outcome::Success(text),
        Err(error) => error.into_bytes(),
    };
    let image = IMAGES.iter().find(|(start, _)| data.starts_with(start));
    let content = match image {
        Some((_, mime_type)) => {
            host::Content::Image(Media { data, mime_type: (*mime_type).to_owned() })
        }
        None => host::Content::Resource(Resource {
            uri: "plugin:output".to_owned(),
            mime_type: Some("application/octet-stream".to_owned()),
            body: ResourceBody::Blob(data),
        }),
    };
    match reports.emit(content) {
        Ok(()) => Outcome::Success(String::new()),
        Err(reason) => {
            let message = format!("the output of `{function}` is not text: {reason}");
            Outcome::Error(ErrorInfo::new(message))
        }
    }
}

#[cfg(test)]
mod tests {
    use kitbag_base::ByteSize;
    use kitbag_contract::Content;
    use serde_json::json;

    use super::*;
    use crate::call::report::EventSink;

    fn reports() -> Reports {
        Reports::new(EventSink::default(), ByteSize::mib(1))
    }

    #[track_caller]
    fn check(result: Value, expected: Outcome, emitted: usize) {
        let mut reports = reports();
        assert_eq!(outcome(result.to_string().as_bytes(), &mut reports), expected);
        assert_eq!(reports.take_emitted().items.len(), emitted);
    }

    fn success(text: &str) -> Outcome {
        Outcome::Success(text.to_owned())
    }

    #[test]
    fn text_blocks_are_joined() {
        let content = json!([{ "type": "text", "text": "a" }, { "text": "b" }]);
        check(json!({ "content": content }), success("a\nb"), 0);
        check(
            json!({ "content": content, "isError": true }),
            Outcome::Error(ErrorInfo::new("a\nb")),
            0,
        );
    }

    #[test]
    fn structured_content_replaces_text() {
        let content = json!([{ "type": "text", "text": "one" }]);
        let result = json!({ "content": content, "structuredContent": { "a": 1 } });
        check(result, success(r#"{"a":1}"#), 0);
        let result = json!({ "content": content, "structuredContent": 1 });
        check(result, success("one"), 0);
    }

    #[test]
    fn media_and_resources_are_emitted() {
        let content = json!([
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "c" } },
            { "type": "resource_link", "uri": "a:b", "name": "n" },
            { "type": "text", "text": "done" },
        ]);
        check(json!({ "content": content }), success("done"), 3);
    }

    #[test]
    fn unknown_and_broken_blocks_remain_visible() {
        let block = json!({ "type": "image", "data": "?", "mimeType": "image/png" });
        check(json!({ "content": [block] }), success(&block.to_string()), 0);
        let block = json!({ "type": "image", "data": "AAAA", "mimeType": "png" });
        let omitted = "[content omitted: `png` is not a MIME type; write it as `type/subtype`, such \
                       as `image/png`]";
        check(json!({ "content": [block] }), success(omitted), 0);
    }

    #[test]
    fn results_without_content_are_errors() {
        for result in ["", "[", "[]", "{}", r#"{"content":"a"}"#, "\"a\"", "{\"a\":1,\"a\":2}"] {
            let outcome = outcome(result.as_bytes(), &mut reports());
            assert!(matches!(outcome, Outcome::Error(_)), "{result}: {outcome:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(matches!(outcome(deep.as_bytes(), &mut reports()), Outcome::Error(_)));
    }

    #[test]
    fn bytes_become_content() {
        let mut reports = reports();
        let png = b"\x89PNG\r\n\x1a\n".to_vec();
        assert_eq!(plain(png, "f", &mut reports), success(""));
        assert_eq!(plain(vec![0xff], "f", &mut reports), success(""));
        assert_eq!(plain(b"text".to_vec(), "f", &mut reports), success("text"));
        let items = reports.take_emitted().items;
        assert!(matches!(&items[..], [Content::Image(_), Content::Resource(_)]), "{items:?}");
    }

    #[test]
    fn descriptions_carry_no_grants() {
        let tool = json!({
            "name": "a", "description": "d", "inputSchema": { "type": "object" },
            "grants": { "env": ["HOME"] }, "approve": "always", "title": null,
        });
        for answer in [json!({ "tools": [tool] }), tool] {
            let read = description(answer.to_string().as_bytes(), &Support::ANY);
            let DescribeResult::Description(read) = read else { panic!("{read:?}") };
            let [tool] = &read.tools[..] else { panic!("{read:?}") };
            assert_eq!((&*tool.name, &tool.grants, &tool.approve), ("a", &None, &None));
            assert_eq!(tool.input_schema, Some(json!({ "type": "object" })));
        }
        for answer in ["", "[]", "1", r#"{"tools":1}"#, r#"{"tools":[1]}"#, r#"{"tools":[{}]}"#] {
            let read = description(answer.as_bytes(), &Support::ANY);
            assert!(matches!(read, DescribeResult::Unusable(_)), "{answer}: {read:?}");
        }
    }
}
