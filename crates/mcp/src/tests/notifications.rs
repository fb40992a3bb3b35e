//! Log messages and progress of a call, and changes of lists.

use serde_json::{Value, json};

use super::client::Client;
use super::{both_eras, server, start};

fn logs(client: &mut Client) -> Vec<String> {
    let others = client.others();
    let logs = others.iter().filter(|message| message["method"] == "notifications/message");
    logs.map(|log| log["params"]["level"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn log_messages_follow_the_requested_level() {
    let all = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let mut old = start().after_handshake(json!({}));
    old.call(json!({ "do": "log" }));
    assert_eq!(logs(&mut old), all[1..]);
    old.request("logging/setLevel", json!({ "level": "error" }));
    old.call(json!({ "do": "log" }));
    assert_eq!(logs(&mut old), all[4..]);

    let mut new = start().stateless(json!({}));
    new.call(json!({ "do": "log" }));
    assert_eq!(logs(&mut new), [""; 0]);
    let meta = json!({ "io.modelcontextprotocol/logLevel": "notice" });
    let params = json!({ "name": "probe", "arguments": { "do": "log" }, "_meta": meta });
    new.request("tools/call", params);
    assert_eq!(logs(&mut new), all[2..]);
}

#[test]
fn progress_is_sent_only_on_request() {
    for mut client in both_eras(json!({})) {
        client.call(json!({ "do": "progress" }));
        assert_eq!(client.others(), Vec::<Value>::new());
        let meta = json!({ "progressToken": "mine" });
        let params = json!({ "name": "probe", "arguments": { "do": "progress" }, "_meta": meta });
        client.request("tools/call", params);
        let messages = client.others();
        let progress: Vec<_> = messages
            .iter()
            .map(|message| {
                assert_eq!(message["method"], "notifications/progress", "{message}");
                let params = &message["params"];
                (params["progressToken"].clone(), params["progress"].as_f64().unwrap())
            })
            .collect();
        assert_eq!(progress, [1.0, 3.0, 3.5].map(|done| (json!("mine"), done)));
    }
}

#[test]
fn tool_list_change_is_notified() {
    let server = server(kitbag_host::HostOptions::default());
    let mut client = Client::start(server.clone()).after_handshake(json!({}));
    client.request("tools/list", json!({}));
    let toolbox = server.generation().toolbox.clone();
    server.set_toolbox(toolbox.without_tool("probe").unwrap());
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(client.request("tools/list", json!({}))["result"]["tools"], json!([]));
}
