//! A tool's questions to the person behind a client.

use serde_json::{Value, json};

use super::client::texts;
use super::{both_eras, start};

fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn a_person_answers_over_several_rounds_with_a_handshake() {
    let mut client = start().after_handshake(forms());
    let id = client.send_call(json!({ "do": "ask-twice" }));
    client.reply(accept(json!({ "first": "a" })));
    // An invalid answer is asked for again.
    client.reply(accept(json!({ "second": "maybe" })));
    let again = client.reply(accept(json!({ "second": false })));
    assert_eq!(
        again["message"],
        "`probe` asks: The second question?\n(`\"maybe\"` is not `yes` or `no`)"
    );
    let answer = client.answer(id);
    assert_eq!(texts(&answer["result"]), [r#"{"first":"a","second":false}"#]);
}

#[test]
fn declining_or_dismissing_is_not_consent() {
    for (action, expected) in [
        ("decline", "the user declined to answer `go-on` (Go on?); nothing was done"),
        ("cancel", "the user dismissed `go-on` (Go on?); nothing was done"),
    ] {
        let mut old = start().after_handshake(forms());
        let id = old.send_call(json!({ "do": "ask" }));
        old.reply(json!({ "action": action }));
        assert_eq!(texts(&old.answer(id)["result"]), [expected]);

        let mut new = start().stateless(forms());
        let asked = new.call(json!({ "do": "ask" }));
        let answer = new.request(
            "tools/call",
            json!({
                "name": "probe",
                "arguments": { "do": "ask" },
                "requestState": asked["requestState"],
                "inputResponses": { "go-on": { "action": action } },
            }),
        );
        assert_eq!(texts(&answer["result"]), [expected]);
    }
}

#[test]
fn a_stateless_client_carries_the_answers() {
    let mut client = start().stateless(forms());
    let mut call = |state: &Value, responses: Value| {
        let params = json!({
            "name": "probe",
            "arguments": { "do": "ask-twice" },
            "requestState": state["requestState"],
            "inputResponses": responses,
        });
        client.request("tools/call", params)["result"].clone()
    };
    let first = call(&Value::Null, json!({}));
    assert_eq!(first["resultType"], "input_required", "{first}");
    assert_eq!(first["inputRequests"]["first"]["method"], "elicitation/create");
    // Without an answer the question is repeated.
    let same = call(&first, json!({}));
    assert_eq!(same["inputRequests"], first["inputRequests"]);
    let responses = json!({ "first": accept(json!({ "first": "a" })), "unknown": { "x": 1 } });
    let second = call(&first, responses);
    assert_eq!(second["inputRequests"]["second"]["method"], "elicitation/create", "{second}");
    let wrong = call(&second, json!({ "second": accept(json!({ "second": 5 })) }));
    assert_eq!(
        wrong["inputRequests"]["second"]["params"]["message"],
        "`probe` asks: The second question?\n(`5` is not `yes` or `no`)"
    );
    let done = call(&wrong, json!({ "second": accept(json!({ "second": true })) }));
    assert_eq!(texts(&done), [r#"{"first":"a","second":true}"#]);
}

#[test]
fn state_is_bound_to_its_call_and_server() {
    let mut client = start().stateless(forms());
    let call = |arguments: Value, state: &str| {
        json!({
            "name": "probe",
            "arguments": arguments,
            "requestState": state,
            "inputResponses": { "go-on": accept(json!({ "go-on": true })) },
        })
    };
    let asked = client.call(json!({ "do": "ask" }));
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let mut changed = state.clone().into_bytes();
    *changed.last_mut().unwrap() ^= 1;
    let changed = String::from_utf8(changed).unwrap();
    for (arguments, state) in [
        (json!({ "do": "ask" }), changed.as_str()),
        (json!({ "do": "ask", "text": "Really?" }), state.as_str()),
        (json!({ "do": "ask" }), "made up"),
    ] {
        let answer = client.request("tools/call", call(arguments, state));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let mut other = start().stateless(forms());
    let answer = other.request("tools/call", call(json!({ "do": "ask" }), &state));
    assert_eq!(answer["error"]["code"], -32602, "another server's state: {answer}");
    let answer = client.request("tools/call", call(json!({ "do": "ask" }), &state));
    assert_eq!(texts(&answer["result"]), [r#"{"go-on":true}"#]);
}

#[test]
fn client_without_forms_can_pass_answers() {
    for mut client in both_eras(json!({})) {
        let asked = client.call(json!({ "do": "ask" }));
        assert_eq!(asked["isError"], true);
        let text = texts(&asked).concat();
        assert!(
            text.contains("Go on?") && text.contains(r#"{"_answers":{"go-on":"…"}}"#),
            "{text}"
        );
        let answer = client.call(json!({ "do": "ask", "_answers": { "go-on": "yes" } }));
        assert_eq!(texts(&answer), [r#"{"go-on":true}"#]);
        let answer = client.call(json!({ "do": "ask", "_answers": { "go-on": "perhaps" } }));
        assert_eq!(answer["isError"], true, "{answer}");
    }
}

#[test]
fn a_person_consents_and_a_model_does_not() {
    let mut client = start().after_handshake(forms());
    let id = client.send_call(json!({ "do": "consent" }));
    client.reply(accept(json!({ "sure": true })));
    assert_eq!(texts(&client.answer(id)["result"]), [r#"{"sure":true}"#]);
    for mut client in both_eras(json!({})) {
        let asked = client.call(json!({ "do": "consent" }));
        for answer in [json!(true), json!("yes"), json!({ "sure": true })] {
            let arguments = json!({ "do": "consent", "_answers": { "sure": answer } });
            let refused = client.call(arguments);
            assert_eq!(refused["isError"], true, "{refused}");
            assert_eq!(texts(&refused), texts(&asked));
        }
    }
}

#[test]
fn a_model_does_not_answer_if_a_person_can_be_asked() {
    let mut client = start().after_handshake(forms());
    let id = client.send_call(json!({ "do": "ask", "_answers": { "go-on": true } }));
    client.reply(json!({ "action": "decline" }));
    let refused = client.answer(id)["result"].clone();
    assert!(texts(&refused)[0].contains("declined"), "{refused}");
}
