//! Large results: their start, reading on, and who may read them.

use std::pin::Pin;
use std::sync::Arc;

use kitbag_contract::{Outcome, ToolDescription};
use kitbag_toolbox::discovery::estimated_tokens;
use kitbag_toolbox::{NativeCall, NativeTool, Toolbox};
use serde_json::{Value, json};

use super::client::{Client, texts};
use super::discovery::{both_eras, serve, toolbox};

/// A tool with an output schema whose result has `bytes` bytes.
struct Table;

impl NativeTool for Table {
    fn description(&self) -> ToolDescription {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        ToolDescription {
            name: "table".into(),
            input_schema: Some(json!({
                "type": "object", "properties": { "bytes": { "type": "integer" } },
            })),
            output_schema: Some(schema),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        let bytes = call.arguments()["bytes"].as_u64().unwrap() as usize;
        Box::pin(async move { Outcome::Success(json!({ "text": "x".repeat(bytes) }).to_string()) })
    }
}

/// A tool that returns a text of `bytes` bytes in lines of 50 bytes.
struct Lines;

impl NativeTool for Lines {
    fn description(&self) -> ToolDescription {
        ToolDescription { name: "lines".into(), output_schema: None, ..Table.description() }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        let bytes = call.arguments()["bytes"].as_u64().unwrap() as usize;
        Box::pin(async move { Outcome::Success(lines(bytes)) })
    }
}

fn lines(bytes: usize) -> String {
    (1..=bytes / 50).map(|number| format!("{number:049}\n")).collect()
}

/// The size of the large results.
const LARGE: usize = 5_000_000;

const CONFIG: &str = "[limits]\noutput = \"8MiB\"\n";

fn with_tool(config: &str, tool: Arc<dyn NativeTool>) -> Toolbox {
    toolbox(config).with_tool(tool).unwrap()
}

fn with_tools(config: &str) -> Toolbox {
    with_tool(config, Arc::new(Table)).with_tool(Arc::new(Lines)).unwrap()
}

fn tool(client: &mut Client, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments });
    client.request("tools/call", params)["result"].clone()
}

fn tool_names(client: &mut Client) -> Vec<String> {
    let list = client.request("tools/list", json!({}));
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn uri(text: &str) -> String {
    let at = text.find("kitbag://result/").unwrap();
    text[at..].chars().take_while(|c| !matches!(c, '"' | ' ')).collect()
}

#[test]
fn a_large_result_is_read_in_parts() {
    for mut client in both_eras(&with_tool(CONFIG, Arc::new(Lines)), &json!({})) {
        assert_eq!(tool_names(&mut client), ["lines", "probe"]);
        let result = tool(&mut client, "lines", json!({ "bytes": LARGE }));
        let text = texts(&result)[0].to_owned();
        assert!(estimated_tokens(&result.to_string()) < 1_000, "{text}");
        assert!(text.starts_with(&lines(LARGE)[..1_500]), "{text}");
        assert!(text.contains("100000 lines") && text.contains("\"start_line\":31"), "{text}");
        assert_eq!(tool_names(&mut client), ["lines", "probe", "read_result"]);
        let uri = uri(&text);
        let mut part = |arguments: Value| {
            let mut all = json!({ "uri": uri });
            all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
            texts(&tool(&mut client, "read_result", all))[0].to_owned()
        };
        let middle = part(json!({ "start_line": 31, "end_line": 32 }));
        assert_eq!(middle, format!("[lines 31-32 of 100000]\n{:049}\n{:049}\n", 31, 32));
        let last = part(json!({ "start_line": -1 }));
        assert_eq!(last, format!("[lines 100000-100000 of 100000]\n{:049}\n", 100_000));
        let cut = part(json!({ "start_line": 2, "start_column": 40, "max_bytes": 4 }));
        assert_eq!(cut, "[lines 2-2 of 100000; start_line=2 start_column=44 reads on]\n0000");
        // A part is never kept again.
        assert!(part(json!({ "max_bytes": 1 << 30 })).len() < 64 << 10);
        for wrong in [
            json!({ "start_line": 0 }),
            json!({ "end_line": -1 }),
            json!({ "start_line": 100_001 }),
        ] {
            let text = part(wrong);
            assert!(!text.starts_with('['), "{text}");
        }
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], lines(LARGE));
    }
}

#[test]
fn the_first_kept_result_changes_the_list() {
    let mut client = Client::start(serve(with_tools(CONFIG))).after_handshake(json!({}));
    tool(&mut client, "lines", json!({ "bytes": LARGE }));
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    tool(&mut client, "lines", json!({ "bytes": LARGE }));
    assert!(client.others().is_empty());
}

#[test]
fn a_result_belongs_to_its_session() {
    let server = serve(with_tool(CONFIG, Arc::new(Lines)));
    let start = || Client::start(server.clone());
    let mut one = start().after_handshake(json!({}));
    let mut other = start().stateless(json!({}));
    let text = texts(&tool(&mut one, "lines", json!({ "bytes": LARGE })))[0].to_owned();
    let uri = uri(&text);
    for client in [&mut other, &mut start().after_handshake(json!({}))] {
        let read = tool(client, "read_result", json!({ "uri": uri }));
        assert_eq!(read["isError"], true, "{read}");
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert!(read["error"]["code"].is_number(), "{read}");
        assert_eq!(tool_names(client), ["lines", "probe"]);
    }
    assert!(!server.kept_results().is_empty());
    one.close().0.unwrap();
    assert!(server.kept_results().is_empty());
}

#[test]
fn the_oldest_results_are_replaced() {
    let mut client = Client::start(serve(with_tools(CONFIG))).after_handshake(json!({}));
    let mut keep = || uri(texts(&tool(&mut client, "lines", json!({ "bytes": LARGE })))[0]);
    // 32 MiB have room for six results of 5 MB.
    let uris: Vec<_> = (0..7).map(|_| keep()).collect();
    let mut is_kept =
        |uri: &str| tool(&mut client, "read_result", json!({ "uri": uri }))["isError"] != true;
    assert_eq!(uris.iter().map(|uri| is_kept(uri)).collect::<Vec<_>>()[..2], [false, true]);
}

#[test]
fn large_structured_content_is_kept() {
    for mut client in both_eras(&with_tools(CONFIG), &json!({})) {
        // A client would refuse a success without structured content.
        let large = tool(&mut client, "table", json!({ "bytes": 100_000 }));
        assert!(large.get("structuredContent").is_none() && large["isError"] == true);
        assert!(texts(&large)[0].contains("kitbag://result/"));
        assert!(estimated_tokens(&large.to_string()) < 1_000);
    }
}

#[test]
fn stateless_clients_get_structured_content_once() {
    let server = serve(with_tools(CONFIG));
    let mut client = Client::start(server.clone()).stateless(json!({}));
    // The list does not change when a result is kept.
    assert_eq!(tool_names(&mut client), ["lines", "probe", "read_result", "table"]);
    for bytes in [1, 1_000, 20_000] {
        let once = tool(&mut client, "table", json!({ "bytes": bytes }));
        assert_eq!(once["structuredContent"], json!({ "text": "x".repeat(bytes) }));
        let text = texts(&once)[0].to_owned();
        let uri = uri(&text);
        let expected = format!(
            "[The result is in `structuredContent`. As text: `read_result` {{\"uri\":\"{uri}\"}}]"
        );
        assert_eq!((texts(&once).len(), text), (1, expected));
        assert_ne!(once["isError"], true);
    }
    assert_eq!(tool_names(&mut client), ["lines", "probe", "read_result", "table"]);
    // A client that shows only text to its model reads the text, and gets it from then on.
    let once = tool(&mut client, "table", json!({ "bytes": 9 }));
    let read = tool(&mut client, "read_result", json!({ "uri": uri(texts(&once)[0]) }));
    assert_eq!(texts(&read), ["[lines 1-1 of 1]\n{\"text\":\"xxxxxxxxx\"}"]);
    let twice = tool(&mut client, "table", json!({ "bytes": 9 }));
    assert_eq!(texts(&twice)[0], twice["structuredContent"].to_string());
    client.close().0.unwrap();
}

#[test]
fn sessions_get_the_forms_that_their_revision_has() {
    let toolbox = with_tools(CONFIG);
    for (revision, has_structured) in
        [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)]
    {
        let mut client = Client::start(serve(toolbox.clone())).with_revision(revision, json!({}));
        let result = tool(&mut client, "table", json!({ "bytes": 9 }));
        assert_eq!(texts(&result), ["{\"text\":\"xxxxxxxxx\"}"], "{revision}");
        let expected = has_structured.then(|| json!({ "text": "x".repeat(9) }));
        assert_eq!(result.get("structuredContent"), expected.as_ref(), "{revision}");
        let list = client.request("tools/list", json!({}));
        let table = &list["result"]["tools"][2];
        assert_eq!(table.get("outputSchema").is_some(), has_structured, "{revision}");
    }
}

#[test]
fn calls_through_call_tool_return_text_only() {
    let toolbox = with_tools(&format!("{CONFIG}[serve]\ndiscovery = \"search\"\n"));
    for mut client in both_eras(&toolbox, &json!({})) {
        let call = json!({ "name": "table", "arguments": { "bytes": 9 } });
        let result = tool(&mut client, "call_tool", call);
        assert_eq!(texts(&result), ["{\"text\":\"xxxxxxxxx\"}"]);
        assert_eq!(result.get("structuredContent"), None);
    }
}

#[test]
fn a_result_up_to_the_limit_is_sent_whole() {
    let mut client = Client::start(serve(with_tools(CONFIG))).after_handshake(json!({}));
    let whole = "x".repeat(64 << 10);
    let result = client.call(json!({ "do": "echo", "text": whole }));
    assert_eq!(texts(&result), [whole]);
}
