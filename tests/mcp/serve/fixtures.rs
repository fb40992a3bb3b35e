//! Everything that a component serves besides calls, with the component that implements the
//! fixtures of the conformance suite.

use std::fs;

use serde_json::{Value, json};

use super::texts;
use crate::support::mcp::Client;
use crate::support::{Workspace, guest, snapshot};

const TOOLS: [&str; 20] = [
    "json_schema_2020_12_tool",
    "test_audio_content",
    "test_custom_headers",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_input_required_result_elicitation",
    "test_input_required_result_multi_round",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_multiple_content_types",
    "test_simple_text",
    "test_streaming_elicitation",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_trigger_tool_change",
];

/// A red pixel, and two samples of silence.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==";

/// A workspace with these tools, all of them the same component. It was loaded before, so that its
/// capabilities are known.
fn workspace(tools: &[&str]) -> Workspace {
    let workspace = Workspace::new();
    configure(&workspace, tools);
    workspace.run(&["check"]).success();
    workspace
}

fn configure(workspace: &Workspace, tools: &[&str]) {
    let wasm = guest("conformance");
    let tables = tools.iter().map(|tool| {
        let grants = match *tool {
            "test_trigger_tool_change" => {
                fs::create_dir_all(workspace.path("triggers")).unwrap();
                "grants.filesystem = [{ host = \"triggers\", guest = \"/triggers\", mode = \"rw\" }]\n"
            }
            _ => "",
        };
        format!("[tools.{tool}]\nsource = \"local\"\nwasm = {wasm:?}\n{grants}")
    });
    workspace.config(&tables.collect::<String>());
}

fn both(workspace: &Workspace, capabilities: &Value) -> [Client; 2] {
    [
        Client::with_handshake(workspace, capabilities.clone()),
        Client::stateless(workspace, capabilities.clone()),
    ]
}

/// A result without the fields that the stateless revisions add.
fn plain(result: &Value) -> Value {
    let mut result = result.clone();
    for key in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        result.as_object_mut().unwrap().remove(key);
    }
    result
}

#[test]
fn one_component_serves_many_tools_with_their_own_entries() {
    let mut tools = TOOLS.to_vec();
    tools.push("unheard_of");
    let workspace = workspace(&tools);
    for mut client in both(&workspace, &json!({})) {
        let list = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let tool = |name: &str| {
            let mut tools = list.as_array().unwrap().iter();
            tools.find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {list}"))
        };
        assert_eq!(tool("test_simple_text")["description"], "A text.");
        assert_eq!(tool("test_image_content")["description"], "An image.");
        let rich = &tool("json_schema_2020_12_tool")["inputSchema"];
        assert_eq!(rich["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert_eq!(rich["$defs"]["address"]["$anchor"], "addressDef");
        assert_eq!(rich["then"], json!({ "required": ["phone"] }));
        // A tool that the component does not describe is still a tool.
        let unheard_of = tool("unheard_of");
        assert_eq!(unheard_of.get("description"), None, "{unheard_of}");
        let answer = client.call("unheard_of", json!({}));
        assert_eq!(texts(&answer), ["there is no tool `unheard_of` here"]);
        assert_eq!(list.as_array().unwrap().len(), tools.len() + 1);
    }
}

#[test]
fn every_kind_of_content_matches_the_suite() {
    let workspace = workspace(&TOOLS);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let resource = |uri: &str, mime_type: &str, text: &str| {
        let resource = json!({ "uri": uri, "mimeType": mime_type, "text": text });
        json!({ "type": "resource", "resource": resource })
    };
    let embedded =
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.");
    let mixed = resource(
        "test://mixed-content-resource",
        "application/json",
        r#"{"test":"data","value":123}"#,
    );
    for mut client in both(&workspace, &json!({})) {
        let mut check = |tool: &str, arguments: Value, expected: &[Value]| {
            assert_eq!(client.call(tool, arguments)["content"], json!(expected), "{tool}");
        };
        let simple = text("This is a simple text response for testing.");
        check("test_simple_text", json!({}), &[simple]);
        check("test_image_content", json!({}), std::slice::from_ref(&image));
        let audio = json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" });
        check("test_audio_content", json!({}), &[audio]);
        check("test_embedded_resource", json!({}), std::slice::from_ref(&embedded));
        let several = text("Multiple content types test:");
        let all = [several, image.clone(), mixed.clone()];
        check("test_multiple_content_types", json!({}), &all);
        check(
            "json_schema_2020_12_tool",
            json!({ "contactMethod": "phone", "phone": "1" }),
            &[text(r#"The arguments are {"contactMethod":"phone","phone":"1"}"#)],
        );
        let refused = client.call("json_schema_2020_12_tool", json!({ "phone": "1" }));
        assert_eq!(refused["isError"], true, "{refused}");
        let error = client.call("test_error_handling", json!({}));
        assert_eq!(texts(&error), ["This tool intentionally returns an error for testing"]);
        assert_eq!(error["isError"], true);
    }
    client_writes_a_trigger(&workspace);
}

fn client_writes_a_trigger(workspace: &Workspace) {
    let mut client = Client::stateless(workspace, json!({}));
    let result = client.call("test_trigger_tool_change", json!({}));
    assert_eq!(texts(&result), ["The list of tools is to change."]);
    assert!(workspace.path("triggers/tools").exists());
}

#[test]
fn a_tool_reports_its_progress() {
    let workspace = workspace(&["test_tool_with_logging", "test_tool_with_progress"]);
    for mut client in both(&workspace, &json!({})) {
        let params = json!({
            "name": "test_tool_with_progress",
            "arguments": {},
            "_meta": { "progressToken": "p" },
        });
        client.request("tools/call", params);
        let messages = client.others();
        let messages: Vec<_> = messages.iter().map(|message| &message["params"]).collect();
        let step = |done: f64| json!({ "progressToken": "p", "progress": done, "total": 100.0 });
        assert_eq!(messages, [&step(0.0), &step(50.0), &step(100.0)]);
        let params = json!({
            "name": "test_tool_with_logging",
            "arguments": {},
            "_meta": { "io.modelcontextprotocol/logLevel": "info" },
        });
        client.request("tools/call", params);
        let messages = client.others();
        let messages: Vec<_> = messages.iter().map(|message| &message["params"]["data"]).collect();
        let expected =
            ["Tool execution started", "Tool processing data", "Tool execution completed"];
        assert_eq!(messages, expected);
    }
}

#[test]
fn prompts_and_resources_are_listed_equally_in_both_eras() {
    let workspace = workspace(&["test_simple_text", "test_image_content"]);
    let [mut old, mut new] = both(&workspace, &json!({}));
    let mut shown = String::new();
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let list = old.request(method, json!({}))["result"].clone();
        assert_eq!(plain(&new.request(method, json!({}))["result"]), list, "{method}");
        shown.push_str(&format!("{method}\n{list:#}\n\n"));
    }
    snapshot!("fixtures", &shown);
}

#[test]
fn a_prompt_has_the_emitted_messages_and_then_the_text() {
    let workspace = workspace(&["test_simple_text"]);
    let message = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| message(json!({ "type": "text", "text": text }));
    for mut client in both(&workspace, &json!({})) {
        let mut check = |name: &str, arguments: Value, description: &str, expected: &[Value]| {
            let params = json!({ "name": name, "arguments": arguments });
            let answer = client.request("prompts/get", params);
            let expected = json!({ "description": description, "messages": expected });
            assert_eq!(plain(&answer["result"]), expected, "{name}: {answer}");
        };
        let simple = text("This is a simple prompt for testing.");
        check("test_simple_prompt", json!({}), "A text.", &[simple]);
        check(
            "test_prompt_with_arguments",
            json!({ "arg1": "hello", "arg2": "world" }),
            "A text with its arguments in it.",
            &[text("Prompt with arguments: arg1='hello', arg2='world'")],
        );
        let image = message(json!({ "type": "image", "data": PNG, "mimeType": "image/png" }));
        check(
            "test_prompt_with_image",
            json!({}),
            "A text with an image.",
            &[image, text("Please analyze the image above.")],
        );
        let resource = json!({
            "uri": "test://example-resource",
            "mimeType": "text/plain",
            "text": "Embedded resource content for testing.",
        });
        check(
            "test_prompt_with_embedded_resource",
            json!({ "resourceUri": "test://example-resource" }),
            "A text with a resource.",
            &[
                message(json!({ "type": "resource", "resource": resource })),
                text("Please process the embedded resource above."),
            ],
        );
    }
}

#[test]
fn served_items_use_the_limits_of_the_first_tool_by_name() {
    let workspace = workspace(&["test_simple_text", "test_image_content"]);
    let config = fs::read_to_string(workspace.path(".kitbag/config.toml")).unwrap();
    let limited = |tool: &str| format!("{config}[tools.{tool}.limits]\nfuel = 1000\n");
    for (tool, is_limited) in [("test_simple_text", false), ("test_image_content", true)] {
        workspace.config(&limited(tool));
        workspace.run(&["check"]).success();
        let mut client = Client::stateless(&workspace, json!({}));
        for (method, params) in [
            ("prompts/get", json!({ "name": "test_simple_prompt" })),
            ("resources/read", json!({ "uri": "test://static-text" })),
        ] {
            let answer = client.request(method, params);
            assert_eq!(answer.get("error").is_some(), is_limited, "{tool}: {answer}");
            if is_limited {
                assert_eq!(answer["error"]["code"], -32603, "{answer}");
                assert!(answer["error"]["message"].to_string().contains("fuel"), "{answer}");
            }
        }
    }
}

#[test]
fn an_unknown_prompt_is_a_protocol_error() {
    let workspace = workspace(&["test_simple_text"]);
    for mut client in both(&workspace, &json!({})) {
        let mut check = |name: &str, arguments: Value, expected: &str| {
            let params = json!({ "name": name, "arguments": arguments });
            let error = client.request("prompts/get", params)["error"].clone();
            assert_eq!(
                (error["code"].as_i64(), &error["message"]),
                (Some(-32602), &json!(expected))
            );
        };
        check("none", json!({}), "there is no prompt `none`");
        check("knowledge", json!({}), "there is no prompt `knowledge`");
        let with_arguments = "test_prompt_with_arguments";
        let invalid = format!("invalid arguments for `prompt/{with_arguments}`");
        check(with_arguments, json!({ "arg1": "a" }), &format!("{invalid}\n  `/arg2`: is missing"));
        check(
            with_arguments,
            json!({ "arg1": "a", "arg2": [] }),
            &format!("{invalid}\n  `/arg2`: must be a string, but is an array"),
        );
    }
}

#[test]
fn a_resource_is_the_answer_of_its_component() {
    let workspace = workspace(&["test_simple_text"]);
    let [old, new] = both(&workspace, &json!({}));
    for (mut client, not_found) in [(old, -32002), (new, -32602)] {
        let mut check = |uri: &str, expected: Value| {
            let answer = client.request("resources/read", json!({ "uri": uri }));
            assert_eq!(plain(&answer["result"]), json!({ "contents": [expected] }), "{uri}");
        };
        let static_text = "This is the content of the static text resource.";
        check(
            "test://static-text",
            json!({ "uri": "test://static-text", "mimeType": "text/plain", "text": static_text }),
        );
        check(
            "test://static-binary",
            json!({ "uri": "test://static-binary", "mimeType": "image/png", "blob": PNG }),
        );
        check(
            "test://template/123/data",
            json!({
                "uri": "test://template/123/data",
                "mimeType": "application/json",
                "text": r#"{"data":"Data for ID: 123","id":"123","templateTest":true}"#,
            }),
        );
        for (uri, message) in [
            ("test://none", "there is no resource `test://none`: no listed resource has this URI"),
            (
                "test://template/1/2/data",
                "there is no resource `test://template/1/2/data`: no listed resource has this URI",
            ),
            // A request that the component itself refuses.
            (
                "test://template/..-/data",
                "there is no resource `test://template/..-/data`: `test://template/..-/data` has \
                 no such id",
            ),
        ] {
            let error = client.request("resources/read", json!({ "uri": uri }))["error"].clone();
            assert_eq!(
                error,
                json!({ "code": not_found, "message": message, "data": { "uri": uri } })
            );
        }
    }
}

#[test]
fn prompts_and_resources_may_ask_questions_like_tools() {
    let workspace = workspace(&["test_simple_text"]);
    let forms = json!({ "elicitation": {} });
    let (prompt, resource) = (
        json!({ "name": "test_input_required_result_prompt" }),
        json!({ "uri": "test://with-question" }),
    );
    let accept = |content: Value| json!({ "action": "accept", "content": content });
    let context = json!({ "context": "a test" });
    for (method, params, id, content, expected) in [
        ("prompts/get", &prompt, "user_context", context, "Use this context: a test"),
        ("resources/read", &resource, "sure", json!({ "sure": true }), "The answer is true."),
    ] {
        let mut old = Client::with_handshake(&workspace, forms.clone());
        let asked = old.send(method, params.clone());
        old.reply("elicitation/create", accept(content.clone()));
        let answer = old.answer(asked);
        assert!(answer["result"].to_string().contains(expected), "{answer}");
        let asked = old.send(method, params.clone());
        old.reply("elicitation/create", json!({ "action": "decline" }));
        let error = old.answer(asked)["error"].clone();
        assert_eq!(error["code"], -32600, "{error}");
        assert!(error["message"].as_str().unwrap().contains("declined to answer"), "{error}");

        let mut new = Client::stateless(&workspace, forms.clone());
        let asked = new.request(method, params.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let question = &asked["inputRequests"][id];
        assert_eq!(question["method"], "elicitation/create", "{asked}");
        let mut again = params.clone();
        again["inputResponses"] = json!({ id: accept(content) });
        again["requestState"] = asked["requestState"].clone();
        let answer = new.request(method, again.clone());
        assert!(answer["result"].to_string().contains(expected), "{answer}");
        again["requestState"] = format!("{}x", asked["requestState"].as_str().unwrap()).into();
        assert_eq!(new.request(method, again)["error"]["code"], -32602);

        let [mut old, mut new] = both(&workspace, &json!({}));
        let error = old.request(method, params.clone())["error"].clone();
        assert_eq!(error["code"], -32600, "{error}");
        let error = new.request(method, params.clone())["error"].clone();
        assert_eq!(error["code"], -32021, "{error}");
        assert_eq!(error["data"], json!({ "requiredCapabilities": { "elicitation": {} } }));
    }
}

#[test]
fn forms_have_suggestions_and_options() {
    let workspace = workspace(&TOOLS);
    let mut client = Client::with_handshake(&workspace, json!({ "elicitation": {} }));
    let mut ask = |tool: &str, arguments: Value, content: Value| {
        let id = client.send("tools/call", json!({ "name": tool, "arguments": arguments }));
        let asked =
            client.reply("elicitation/create", json!({ "action": "accept", "content": content }));
        let answer = client.answer(id);
        (asked, texts(&answer["result"]).join(" "))
    };
    let (asked, text) = ask(
        "test_elicitation",
        json!({ "message": "Who are you?" }),
        json!({ "username": "a", "email": "b@c" }),
    );
    assert_eq!(asked["message"], "`test_elicitation` asks: Who are you?");
    assert_eq!(
        asked["requestedSchema"]["properties"]["username"],
        json!({ "type": "string", "description": "User's response" })
    );
    assert_eq!(text, r#"User response: action=accept, content={"email":"b@c","username":"a"}"#);
    let given =
        json!({ "name": "J", "age": 2, "score": 8, "status": "inactive", "verified": false });
    let (asked, text) = ask("test_elicitation_sep1034_defaults", json!({}), given);
    let properties = asked["requestedSchema"]["properties"].as_object().unwrap();
    let defaults: Vec<_> = properties.values().map(|property| &property["default"]).collect();
    assert_eq!(json!(defaults), json!(["John Doe", 30, 95.5, "active", true]));
    assert!(text.contains(r#""score":8"#), "{text}");
    let given = json!({
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    });
    let (asked, text) = ask("test_elicitation_sep1330_enums", json!({}), given);
    let properties = &asked["requestedSchema"]["properties"];
    assert_eq!(
        properties["legacyEnum"],
        json!({
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        })
    );
    assert_eq!(
        properties["titledMulti"]["items"]["anyOf"][2],
        json!({ "const": "value3", "title": "Third Choice" })
    );
    assert!(text.contains(r#""legacyEnum":"opt1""#), "{text}");
}

#[test]
fn questions_over_several_rounds_end() {
    let workspace = workspace(&TOOLS);
    let mut client = Client::stateless(&workspace, json!({ "elicitation": {} }));
    let mut call = json!({ "name": "test_input_required_result_multi_round", "arguments": {} });
    for (id, content) in [("step1", json!({ "name": "Ann" })), ("step2", json!({ "color": "red" }))]
    {
        let asked = client.request("tools/call", call.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        call["requestState"] = asked["requestState"].clone();
        call["inputResponses"] = json!({ id: { "action": "accept", "content": content } });
    }
    let done = client.request("tools/call", call);
    assert_eq!(texts(&done["result"]), ["Ann likes red."]);
}

#[test]
fn an_undescribed_tool_is_listed_later_and_found_at_once() {
    let workspace = Workspace::with_own_cache();
    configure(&workspace, &["test_simple_text"]);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let mut list = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    // Its component is compiled meanwhile, and may be ready before the list is requested.
    if list == json!([]) {
        client.notification("notifications/prompts/list_changed");
        list = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    }
    assert_eq!(list.as_array().unwrap().len(), 5, "{list}");

    let workspace = Workspace::with_own_cache();
    configure(&workspace, &["test_simple_text"]);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let answer = client.request("resources/read", json!({ "uri": "test://static-text" }));
    assert!(answer["result"]["contents"].is_array(), "{answer}");
}

#[test]
fn subject_subscribers_are_notified_of_topic_changes() {
    let workspace = Workspace::new();
    for (path, text) in [("notes/a.md", "A\n"), ("skills/b.md", "B\n")] {
        workspace.file(path, text);
    }
    workspace.config(
        "[knowledge.team]\nsubjects = \"notes\"\n[knowledge.more]\nsubjects = \"skills\"\n",
    );
    workspace.date_back();
    let uris = ["kb://team/a", "kb://more/b"];
    let updated = |message: &Value| message["method"] == "notifications/resources/updated";
    let mut old = Client::with_handshake(&workspace, json!({}));
    for uri in uris {
        assert_eq!(old.request("resources/subscribe", json!({ "uri": uri }))["result"], json!({}));
    }
    let error = old.request("resources/subscribe", json!({ "uri": "kb://none/a" }));
    assert_eq!(error["error"]["code"], -32002, "{error}");
    let mut new = Client::stateless(&workspace, json!({}));
    let wanted = [uris[0], uris[1], "kb://none/a"];
    new.send(
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": wanted } }),
    );
    let accepted = new.notification("notifications/subscriptions/acknowledged");
    assert_eq!(accepted["notifications"]["resourceSubscriptions"], json!(uris), "{accepted}");
    workspace.file("skills/b.md", "Something else.\n");
    for client in [&mut old, &mut new] {
        assert_eq!(client.wait(updated)["params"]["uri"], "kb://more/b");
    }
    old.request("resources/unsubscribe", json!({ "uri": "kb://more/b" }));
    workspace.file("skills/b.md", "Something else again.\n");
    assert_eq!(new.wait(updated)["params"]["uri"], "kb://more/b");
    workspace.file("notes/a.md", "Something else too.\n");
    for client in [&mut old, &mut new] {
        assert_eq!(client.wait(updated)["params"]["uri"], "kb://team/a");
    }
}

#[test]
fn resource_subscribers_are_notified_of_component_changes() {
    let workspace = Workspace::new();
    fs::create_dir_all(workspace.path(".kitbag/tools")).unwrap();
    let wasm = workspace.path(".kitbag/tools/test_simple_text.wasm");
    fs::copy(guest("conformance"), &wasm).unwrap();
    workspace.run(&["check"]).success();
    let mut client = Client::with_handshake(&workspace, json!({}));
    let uri = json!({ "uri": "test://watched-resource" });
    assert_eq!(client.request("resources/subscribe", uri)["result"], json!({}));
    let unknown = client.request("resources/subscribe", json!({ "uri": "test://none" }));
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    client.request("prompts/list", json!({}));
    fs::copy(guest("probe"), &wasm).unwrap();
    let updated = client.notification("notifications/resources/updated");
    assert_eq!(updated["uri"], "test://watched-resource");
    client.notification("notifications/prompts/list_changed");
    let list = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(list, json!([]));
}

#[test]
fn stateless_clients_have_no_session_methods() {
    let workspace = workspace(&["test_simple_text"]);
    let mut client = Client::stateless(&workspace, json!({}));
    for (method, params) in [
        ("initialize", json!({})),
        ("ping", json!({})),
        ("logging/setLevel", json!({})),
        ("logging/setLevel", json!({ "level": "info" })),
        ("resources/subscribe", json!({})),
        ("resources/subscribe", json!({ "uri": "test://static-text" })),
        ("resources/unsubscribe", json!({ "uri": "test://static-text" })),
    ] {
        let answer = client.request(method, params.clone());
        assert_eq!(answer["error"]["code"], -32601, "{method} {params}: {answer}");
    }
}

#[test]
fn content_emitted_before_an_error_is_returned() {
    let workspace = Workspace::with_probe("");
    for mut client in both(&workspace, &json!({})) {
        let result = client.call("probe", json!({ "do": "emit", "then": "fail", "message": "no" }));
        assert_eq!(result["isError"], true);
        assert_eq!(texts(&result), ["no"]);
        assert_eq!(result["content"][1]["type"], "image", "{result}");
    }
}

#[test]
fn content_with_a_schema_is_structured_and_fits_it() {
    let workspace = workspace(&["test_structured_content"]);
    for mut client in both(&workspace, &json!({})) {
        let list = client.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == "test_structured_content").unwrap();
        assert_eq!(tool["outputSchema"]["required"], json!(["count"]), "{tool}");
        let mut call = |text: &str| client.call("test_structured_content", json!({ "text": text }));
        let result = call(r#"{ "count": 3 }"#);
        assert_eq!(result["structuredContent"], json!({ "count": 3 }), "{result}");
        let [text] = texts(&result)[..] else { panic!("{result}") };
        // A client of 2026-07-28 receives a reference instead of the same JSON.
        let is_reference = text.starts_with("[The result is in `structuredContent`.");
        assert!(is_reference || text == r#"{ "count": 3 }"#, "{result}");
        for (text, expected) in [
            ("three", "\n  it is not JSON: expected ident at line 1 column 2"),
            (r#"{"count":"3"}"#, "\n  `/count`: must be an integer, but is the string `3`"),
            (r#"{"count":3,"cuont":4}"#, "\n  `/cuont`: is unknown; did you mean `count`?"),
            ("[3]", "\n  must be an object, but is an array"),
        ] {
            let result = call(text);
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result.get("structuredContent"), None, "{result}");
            let schema = "the answer of `test_structured_content` does not fit its output schema";
            assert_eq!(texts(&result), [format!("{schema}{expected}")]);
        }
    }
}
