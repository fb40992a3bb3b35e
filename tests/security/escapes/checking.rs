//! Schemas of a tool, which the host checks in linear time, as part of the call, and never on the
//! thread of the protocol.

use serde_json::{Value, json};

use crate::support::mcp::Client;
use crate::support::{Workspace, crafted};

/// A workspace with the tool `odd`, which has this description.
fn odd(description: Value, limits: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.config(&format!(
        "[tools.odd]\nsource = \"local\"\nwasm = \"odd.wasm\"\n[tools.odd.limits]\n{limits}"
    ));
    workspace.file("odd.wasm", crafted::describing(&description.to_string()));
    workspace
}

#[test]
fn a_backtracking_output_schema_is_refused() {
    let schema = json!({ "type": "string", "pattern": "^(?:a(?=a))*b$" });
    let workspace = odd(json!({ "name": "odd", "outputSchema": schema }), "");
    let description = json!({ "name": "odd", "outputSchema": schema }).to_string();
    workspace.file("odd.wasm", crafted::describing_and_answering(&description, 60_000));
    let mut client = Client::with_handshake(&workspace, json!({}));
    let result = client.call("odd", json!({}));
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "the output schema of `odd` cannot be used: the pattern `^(?:a(?=a))*b$` at `/pattern` \
         cannot be used: look-around and back-references are not supported"
    );
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn the_protocol_is_answered_while_an_answer_is_checked() {
    // Ten patterns over a long string: linear, but slow in total.
    let patterns: Vec<_> =
        (0..10).map(|n| json!({ "pattern": format!("^(?:[a-c]|[a-d])*z{{0,{n}}}$") })).collect();
    let schema = json!({ "type": "string", "allOf": patterns });
    let description = json!({ "name": "odd", "outputSchema": schema });
    let workspace = odd(description.clone(), "");
    let tool = crafted::describing_and_answering(&description.to_string(), 400_000);
    workspace.file("odd.wasm", tool);
    let mut client = Client::with_handshake(&workspace, json!({}));
    let first = client.call("odd", json!({}));
    assert_eq!(first["isError"], false, "{first}");
    let call = client.send("tools/call", json!({ "name": "odd", "arguments": {} }));
    let mut answered = 0;
    loop {
        let ping = client.send("ping", json!({}));
        let first = client.wait(|message| message["id"] == ping || message["id"] == call);
        if first["id"] == call {
            break;
        }
        answered += 1;
    }
    assert!(answered > 20, "only {answered} were answered meanwhile");
}

#[test]
fn checking_arguments_uses_the_time_of_the_call() {
    let branches: Vec<_> =
        (0..200).map(|_| json!({ "type": "string" })).chain([json!({})]).collect();
    let schema = json!({ "type": "object", "additionalProperties": {
        "type": "array", "items": { "anyOf": branches },
    } });
    let workspace = odd(json!({ "name": "odd", "inputSchema": schema }), "time = \"20ms\"\n");
    let arguments = json!({ "x": vec![0; 90_000] }).to_string();
    let run = workspace.run_with(&["run", "odd", "--args", "-"], &arguments, &[]);
    assert_eq!(run.code, 5, "{}", run.shown());
    assert!(
        run.stderr.starts_with("error: limit: time (20ms): request less, or a part of it\n"),
        "{}",
        run.shown()
    );
}
