//! Strict parsing of a client's message.
//!
//! Input that other parsers accept, such as a repeated key, could have another meaning for a tool
//! than the client intended. The response to an invalid message has its `id`, since the sender
//! waits for it.

mod memory;
mod skim;

use kitbag_base::json::{self, Digits, JsonBudget, JsonError};
use kitbag_base::text::shown;
use kitbag_base::{ARGUMENTS_BYTES, ByteSize};
use kitbag_host::MemoryBudget;
use memchr::memmem;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode,
    GetExtensions, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use serde::de::IgnoredAny;
use serde_json::Value;

pub(crate) use self::memory::{MESSAGE_BYTES, SMALL_BYTES, cost, grow, reserve};
pub(crate) use self::skim::Skim;
use crate::session::handshake::{self, INITIALIZE_BYTES};

#[derive(Debug)]
pub(crate) enum Line {
    Message(Box<ClientJsonRpcMessage>),
    /// The message is invalid. Contains the response.
    Refused(Box<ServerJsonRpcMessage>),
    Empty,
}

/// Parses one [`normalized`] message.
pub(crate) fn read(text: &[u8]) -> Line {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let text = text.trim_ascii();
    if text.is_empty() {
        return Line::Empty;
    }
    let skim = || {
        let mut skim = Skim::default();
        skim.feed(text);
        skim
    };
    let (value, digits) = match json::parse_exact(text, JsonBudget::MESSAGE) {
        Ok(read) => read,
        Err(error) => {
            let skim = skim();
            if let Some(id) = skim.invalid_number() {
                return Line::Refused(Box::new(refusal(invalid_id(id), None)));
            }
            let id = skim.id();
            let message = unreadable(&error, text);
            return Line::Refused(Box::new(match id {
                // Its envelope is valid JSON.
                Some(_) => refusal(ErrorData::invalid_request(message, None), id),
                None => refusal(ErrorData::parse_error(message, None), None),
            }));
        }
    };
    match message(value, &digits, text.len()) {
        Ok(message) => Line::Message(Box::new(message)),
        Err(error) => Line::Refused(Box::new(refusal(error, skim().id()))),
    }
}

/// Returns the error text for an unreadable message, with the argument that is the cause.
fn unreadable(error: &JsonError, text: &[u8]) -> String {
    let pointer = error.pointer(text);
    let argument = match pointer.strip_prefix("/params/arguments/") {
        Some(_) if error.problem.contains(&pointer) => String::new(),
        Some(argument) => format!("`/{}`: ", shown(argument)),
        None => String::new(),
    };
    let is_surrogate = ["lone leading surrogate", "unexpected end of hex escape"]
        .iter()
        .any(|problem| error.problem.starts_with(problem));
    let hint = match is_surrogate {
        true => "; half of a surrogate pair is not a character: send all of it, or omit it",
        false => "",
    };
    format!("the message cannot be read: {argument}{error}{hint}")
}

/// Corrects common mistakes in a message: a `null` for `params` or `_meta`, and `arguments` as a
/// string with the JSON of an object. `None` if it has neither mistake.
///
/// The cost must be computed afterwards, since the parsed values cost more than the string.
pub(crate) fn normalized(text: &[u8]) -> Option<Vec<u8>> {
    let without_null = without_null(text);
    let with_object = with_object(without_null.as_deref().unwrap_or(text));
    with_object.or(without_null)
}

/// Replaces `arguments` that are a JSON string by the object in it. An empty string becomes an
/// empty object.
fn with_object(text: &[u8]) -> Option<Vec<u8>> {
    let places = places(text, "\"arguments\"", "/params/arguments");
    let [start] = places[..] else { return None };
    let end = json::string_end(text, start);
    // A character takes at most six bytes, as `\u0041`.
    if text[start] != b'"' || end - start > 6 * ARGUMENTS_BYTES {
        return None;
    }
    let arguments = serde_json::from_slice::<String>(&text[start..end]).ok()?;
    let arguments = match arguments.trim() {
        "" => "{}",
        text => text,
    };
    // Must be a single value, so that the string cannot add keys to the message.
    let is_value = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    if !arguments.starts_with('{') || !is_value {
        return None;
    }
    Some([&text[..start], arguments.as_bytes(), &text[end..]].concat())
}

/// Returns the positions of a key's values in a message at a JSON pointer.
fn places(text: &[u8], key: &str, pointer: &str) -> Vec<usize> {
    /// A message has one of each. More of them belong to other data.
    const MOST: usize = 8;
    let value = |at: usize| {
        let rest = text[at + key.len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":")?.trim_ascii_start();
        let start = text.len() - value.len();
        let is_meant = start < text.len() && json::pointer_at(&text[..start]) == pointer;
        is_meant.then_some(start)
    };
    memmem::find_iter(text, key).take(MOST).filter_map(value).collect()
}

/// Replaces `params` and `_meta` that are `null` by an empty object: some clients write `null` for
/// absent values. `None` if the message has neither.
fn without_null(text: &[u8]) -> Option<Vec<u8>> {
    let keys = [("\"params\"", "/params"), ("\"_meta\"", "/params/_meta")];
    let mut found: Vec<_> =
        keys.iter().flat_map(|(key, pointer)| places(text, key, pointer)).collect();
    found.retain(|start| text[*start..].starts_with(b"null"));
    let mut text = (!found.is_empty()).then(|| text.to_vec())?;
    for start in found {
        text[start..start + 4].copy_from_slice(b"{}  ");
    }
    Some(text)
}

/// Returns the response to a message that is too long.
pub(crate) fn too_long(skim: &Skim, limit: usize) -> ServerJsonRpcMessage {
    let message = format!("the message is longer than {} MiB", limit >> 20);
    refusal(ErrorData::invalid_request(message, None), skim.id())
}

fn refusal(error: ErrorData, id: Option<RequestId>) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(error, id)
}

fn message(
    value: Value,
    digits: &Digits,
    length: usize,
) -> Result<ClientJsonRpcMessage, ErrorData> {
    let invalid = |message: &str| ErrorData::invalid_request(message.to_owned(), None);
    let Value::Object(object) = &value else {
        let message = match value {
            Value::Array(_) => "batches are not supported; send one message per line",
            _ => "a message must be a JSON object",
        };
        return Err(invalid(message));
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be `2.0`"));
    }
    if let Some(id) = object.get("id")
        && !id.is_string()
        && id.as_i64().is_none()
    {
        return Err(invalid_id(&id.to_string()));
    }
    if object.get("method").is_some_and(|method| method == "tools/call")
        && object.contains_key("id")
    {
        return tool_call(value, digits, length);
    }
    if object.get("method").is_some_and(|method| method == "initialize")
        && length > INITIALIZE_BYTES
    {
        let limit = ByteSize::bytes(INITIALIZE_BYTES as u64);
        let length = ByteSize::bytes(length as u64);
        let message = format!("`initialize` has {length}; the limit is {limit}");
        return Err(ErrorData::invalid_request(message, None));
    }
    if object.get("method").is_some_and(|method| method == "initialize")
        && object.contains_key("id")
    {
        handshake::check(object.get("params"))?;
    }
    let mut message: ClientJsonRpcMessage = serde_json::from_value(value).map_err(|error| {
        ErrorData::invalid_request(format!("this is not a message: {error}"), None)
    })?;
    if let ClientJsonRpcMessage::Request(request) = &mut message
        && let ClientRequest::InitializeRequest(request) = &mut request.request
    {
        handshake::reduce(request);
    }
    Ok(message)
}

/// Returns an error that describes the valid form of an id.
fn invalid_id(id: &str) -> ErrorData {
    let message = format!("`id` must be a string or a signed 64-bit integer, not `{}`", shown(id));
    ErrorData::invalid_request(message, None)
}

/// Parses a tool call, the most frequent message, without trying other types.
fn tool_call(
    mut value: Value,
    digits: &Digits,
    length: usize,
) -> Result<ClientJsonRpcMessage, ErrorData> {
    let id = serde_json::from_value::<RequestId>(value["id"].take());
    let id = id.map_err(|error| ErrorData::invalid_request(format!("`id`: {error}"), None))?;
    let mut params = value["params"].take();
    if length > ARGUMENTS_BYTES {
        check_arguments(&params["arguments"])?;
    }
    let meta = params.as_object_mut().and_then(|params| params.remove("_meta"));
    if let Value::String(text) = &params["arguments"] {
        let message = format!(
            "`arguments` of `tools/call` must be an object, but is the string `{}`: send an object, \
             or the JSON text of one",
            shown(text)
        );
        return Err(ErrorData::invalid_params(message, None));
    }
    let invalid = |what: &str, error: serde_json::Error| {
        ErrorData::invalid_params(format!("{what} of `tools/call`: {error}"), None)
    };
    let params = serde_json::from_value::<CallToolRequestParams>(params);
    let mut request = CallToolRequest::new(params.map_err(|error| invalid("`params`", error))?);
    let digits = digits.below("/params/arguments");
    if !digits.is_empty() {
        request.extensions_mut().insert(digits);
    }
    if let Some(meta) = meta {
        let meta = serde_json::from_value::<RequestMetaObject>(meta);
        request.extensions_mut().insert(meta.map_err(|error| invalid("`_meta`", error))?);
    }
    Ok(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

/// Refuses arguments that would be rejected later, before they wait for their call.
fn check_arguments(arguments: &Value) -> Result<(), ErrorData> {
    let length = json::length(arguments);
    if length <= ARGUMENTS_BYTES {
        return Ok(());
    }
    let [length, limit] = [length, ARGUMENTS_BYTES].map(|bytes| ByteSize::bytes(bytes as u64));
    let message =
        format!("`arguments` of `tools/call` have {length}, more than the limit of {limit}");
    Err(ErrorData::invalid_params(message, None))
}

/// JSON-RPC server error for a failure that may be temporary.
pub(crate) const BUSY: i32 = -32000;

/// Returns the response to a message for which there is not enough memory, now or ever.
pub(crate) fn no_memory(text: &[u8], messages: &MemoryBudget) -> ServerJsonRpcMessage {
    let (cost, size) = (cost(text), messages.size().unwrap_or_default());
    let mut skim = Skim::default();
    skim.feed(text);
    refusal(
        match messages.can_hold(cost) {
            true => busy("other messages have reserved the server's memory"),
            false => {
                let cost = ByteSize::bytes(cost);
                let message =
                    format!("the message takes {cost}, and the server has {size} for all messages");
                ErrorData::invalid_request(message, None)
            }
        },
        skim.id(),
    )
}

/// Returns the response to a request beyond the limit on requests in flight.
pub(crate) fn too_many(id: RequestId, limit: usize) -> ServerJsonRpcMessage {
    refusal(busy(&format!("{limit} requests are in flight (limit reached)")), Some(id))
}

/// Returns the response to a request whose id is in use. The response has no id, since the client
/// would match it to the other request.
pub(crate) fn duplicate(id: &RequestId) -> ServerJsonRpcMessage {
    let message = format!("a request with the id `{id}` is still in flight; use another id");
    refusal(ErrorData::invalid_request(message, None), None)
}

/// Returns the error of a request that can be retried.
pub(crate) fn busy(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode(BUSY), format!("busy: {why}; try again in 1s"), None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_refused(text: &str, code: i32, id: Value, message: &str) {
        let Line::Refused(answer) = read(text.as_bytes()) else { panic!("taken: {text}") };
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["error"]["message"], message, "{answer}");
    }

    #[test]
    fn invalid_message_is_answered_under_its_id() {
        check_refused(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            -32600,
            json!(7),
            "the message cannot be read: duplicate key `name` at line 1 column 73",
        );
        check_refused(
            r#"{"method":"tools/call","params":{"name":"a","arguments":{"n":123456789012345678901}},"id":"x"}"#,
            -32600,
            json!("x"),
            "the message cannot be read: the whole number `123456789012345678901` in \
             `/params/arguments/n` has more than 64 bits; write it as a string at line 1 column 62",
        );
        check_refused(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
            -32602,
            json!(1),
            "`params` of `tools/call`: missing field `name`",
        );
        check_refused(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            Value::Null,
            "batches are not supported; send one message per line",
        );
        for (id, shown) in [
            ("1.5", "1.5"),
            ("123456789012345678901", "123456789012345678901"),
            ("18446744073709551615", "18446744073709551615"),
            ("null", "null"),
            ("true", "true"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            for method in ["ping", "tools/call"] {
                check_refused(
                    &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}},"id":{id}}}"#),
                    -32600,
                    Value::Null,
                    &format!("`id` must be a string or a signed 64-bit integer, not `{shown}`"),
                );
            }
        }
        check_refused(r#"{"id":3,"method":"ping"}"#, -32600, json!(3), "`jsonrpc` must be `2.0`");
        let deep = format!(
            r#"{{"jsonrpc":"2.0","method":"x","params":{}1{},"id":9}}"#,
            r#"{"a":"#.repeat(200),
            "}".repeat(200)
        );
        let Line::Refused(answer) = read(deep.as_bytes()) else { panic!("taken") };
        assert_eq!(serde_json::to_value(answer).unwrap()["id"], 9);
    }

    #[test]
    fn an_argument_with_half_a_surrogate_pair_is_named() {
        check_refused(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a",
            "arguments":{"edits":[1,{"new/text":"x\ud83d y"}]}}}"#,
            -32600,
            json!(7),
            "the message cannot be read: `/edits/1/new~1text`: unexpected end of hex escape at line \
             2 column 57; half of a surrogate pair is not a character: send all of it, or omit it",
        );
        check_refused(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"text":"\udc00"}}}"#,
            -32600,
            json!(7),
            "the message cannot be read: `/text`: lone leading surrogate in hex escape at line 1 \
             column 94; half of a surrogate pair is not a character: send all of it, or omit it",
        );
    }

    #[test]
    fn null_params_and_meta_are_treated_as_absent() {
        let check = |text: &str, expected: Option<&str>| {
            let without =
                without_null(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(without.as_deref(), expected, "{text}");
            let text = without.as_deref().unwrap_or(text);
            let Line::Message(_) = read(text.as_bytes()) else { panic!("refused: {text}") };
        };
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params": null}"#,
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params": {}  }"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta" : null}}"#,
            Some(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta" : {}  }}"#),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":null,"name":"a","arguments":null}}"#,
            Some(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{}  ,"name":"a","arguments":null}}"#,
            ),
        );
        // An argument of this name belongs to the tool.
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"_meta":null}}}"#,
            None,
        );
    }

    #[test]
    fn arguments_as_json_text_become_an_object() {
        let check = |text: &str, expected: Option<&str>| {
            let found = normalized(text.as_bytes()).map(|text| String::from_utf8(text).unwrap());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check(
            r#"{"params":{"name":"a","arguments": "{\"x\": \"\\u0041\", \"n\":1.10}" },"id":1}"#,
            Some(r#"{"params":{"name":"a","arguments": {"x": "\u0041", "n":1.10} },"id":1}"#),
        );
        check(
            r#"{"params":{"_meta":null,"arguments":" {} "}}"#,
            Some(r#"{"params":{"_meta":{}  ,"arguments":{}}}"#),
        );
        check(r#"{"params":{"arguments":""}}"#, Some(r#"{"params":{"arguments":{}}}"#));
        // Neither an object nor a single value. A string never adds a key to the message.
        for arguments in [
            r#""[1]""#,
            r#""x""#,
            r#""{""#,
            r#""{},\"name\":\"b\"""#,
            r#""{}}""#,
            r#""{} {}""#,
            r#"{"arguments":"{}"}"#,
            r#""{}","arguments":"{}""#,
        ] {
            check(&format!(r#"{{"params":{{"name":"a","arguments":{arguments}}}}}"#), None);
        }
        // An argument of this name belongs to the tool.
        check(r#"{"params":{"arguments":{"params":{"arguments":"{}"}}}}"#, None);
        check(r#"{"arguments":"{}"}"#, None);
        // Values in a string cost as much as others.
        let values = "[],".repeat(30_000);
        let text = format!(r#"{{"params":{{"arguments":"{{\"a\":[{values}1]}}"}}}}"#);
        let found = normalized(text.as_bytes()).unwrap();
        assert!(cost(&found) > 10 * cost(text.as_bytes()));
    }

    #[test]
    fn invalid_json_has_no_id() {
        let Line::Refused(answer) = read(b"hello") else { panic!("taken") };
        let answer = serde_json::to_value(answer).unwrap();
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
        assert!(matches!(read(b" \r\n"), Line::Empty));
    }

    #[test]
    fn calls_are_parsed_as_in_the_library() {
        let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo",
            "arguments":{"b":[1,{"c":null}],"a":2.5},"_meta":{"progressToken":4,"x":{"y":1}},
            "requestState":"s","inputResponses":{"q":{"action":"decline"}}}}"#;
        let Line::Message(ours) = read(text.as_bytes()) else { panic!("refused") };
        let theirs: ClientJsonRpcMessage = serde_json::from_str(text).unwrap();
        let json = |message: &ClientJsonRpcMessage| serde_json::to_value(message).unwrap();
        assert_eq!(json(&ours), json(&theirs));
        let token = |message: ClientJsonRpcMessage| match message {
            ClientJsonRpcMessage::Request(request) => {
                let extensions = request.request.extensions();
                extensions
                    .get::<RequestMetaObject>()
                    .and_then(RequestMetaObject::get_progress_token)
            }
            _ => None,
        };
        assert!(token(*ours).is_some());
        assert!(token(theirs).is_some());
    }
}
