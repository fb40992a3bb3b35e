//! Questions of tools to the person behind a client.

use serde_json::{Value, json};

use super::texts;
use crate::support::mcp::Client;
use crate::support::{Workspace, snapshot};

fn workspace() -> Workspace {
    Workspace::with_probe("")
}

fn forms() -> Value {
    json!({ "elicitation": {} })
}

const FORM: &str = r#"{"form":{"fields":[
    {"id":"name","type":"text","default":"Ann"},
    {"id":"age","title":"Age","description":"In years","type":"integer","required":false},
    {"id":"agrees","type":"boolean","default":true},
    {"id":"colour","type":{"select":{"options":["red",{"value":7,"title":"Seven"}]}},"default":7},
    {"id":"days","type":{"multi-select":{"options":["mon","tue"]}},"default":["tue"]}
]}}"#;

#[test]
fn a_question_becomes_a_form_of_its_type() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, forms());
    let mut shown = String::new();
    for (answer_type, default) in [
        ("boolean", Some("true")),
        ("text", Some("main")),
        ("integer", Some("7")),
        ("number", None),
        (r#"{"select":{"options":["red","blue"]}}"#, Some("blue")),
        (r#"{"select":{"options":["red",{"value":7,"title":"Seven"}]}}"#, Some("7")),
        (r#"{"multi-select":{"options":["red","blue"]}}"#, None),
        (r#"{"multi-select":{"options":[{"value":true,"title":"Yes"},"blue"]}}"#, None),
        (FORM, None),
    ] {
        let mut arguments = json!({ "do": "ask", "id": "q", "answer_type": answer_type });
        if let Some(default) = default {
            arguments["default"] = default.into();
        }
        let id = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
        let params = client.reply("elicitation/create", json!({ "action": "cancel" }));
        shown.push_str(&format!("{answer_type}\n{params:#}\n\n"));
        assert_eq!(client.answer(id)["result"]["isError"], true);
    }
    snapshot!("forms", &shown);
}

#[test]
fn a_form_is_answered_at_once() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, forms());
    let arguments = json!({ "do": "ask", "id": "q", "answer_type": FORM });
    let id = client.send("tools/call", json!({ "name": "probe", "arguments": arguments }));
    let content = json!({ "name": "Bob", "agrees": false, "colour": "7", "days": ["mon"] });
    client.reply("elicitation/create", json!({ "action": "accept", "content": content }));
    let answer = client.answer(id);
    assert_eq!(
        texts(&answer["result"]),
        [r#"ask: {"q":{"name":"Bob","agrees":false,"colour":7,"days":["mon"]}}"#]
    );
}

#[test]
fn clients_without_forms_see_the_answer_format() {
    let workspace = workspace();
    let mut client = Client::stateless(&workspace, json!({}));
    let mut check = |arguments: Value, expected: &str| {
        let text = texts(&client.call("probe", arguments)).concat();
        assert!(text.contains(&format!("in `_answers`: {expected}.")), "{text}");
    };
    let given = json!({ "do": "ask-twice", "_answers": { "first": "a" } });
    check(given, r#"{"_answers":{"first":"a","second":"…"}}"#);
    let form = json!({ "do": "ask", "id": "q", "answer_type": FORM });
    let fields = r#"{"name":"…","age":"…","agrees":"…","colour":"…","days":["…"]}"#;
    check(form, &format!(r#"{{"_answers":{{"q":{fields}}}}}"#));
}

const CONSENT: &str = r#"{"boolean":{},"consent":true}"#;

#[test]
fn a_model_does_not_consent_for_a_person() {
    let workspace = workspace();
    let old = Client::with_handshake(&workspace, json!({}));
    let new = Client::stateless(&workspace, json!({}));
    let mut shown = Vec::new();
    for mut client in [old, new] {
        let ask = json!({ "do": "ask", "answer_type": CONSENT });
        let mut answered = ask.clone();
        for answer in [json!(true), json!("yes"), json!({ "go-on": true })] {
            answered["_answers"] = json!({ "go-on": answer });
            let refused = client.call("probe", answered.clone());
            assert_eq!(refused["isError"], true, "{refused}");
            assert_eq!(texts(&refused), texts(&client.call("probe", ask.clone())));
            shown.push(texts(&refused).concat());
        }
    }
    shown.dedup();
    snapshot!("consent", &shown.join("\n\n"));
}

#[test]
fn a_person_consents_by_the_configuration_or_the_command_line() {
    let answer_type = format!("answer_type={CONSENT}");
    let ask = ["run", "probe", "do=ask", &answer_type];
    let workspace = workspace();
    snapshot!(
        "consent_on_the_command_line",
        &workspace.session(&[
            &ask,
            &[&ask[..], &["--json"]].concat(),
            &[&ask[..], &["--answer", "go-on=yes"]].concat(),
        ]),
    );
    let workspace = Workspace::with_probe("[tools.probe.answers]\ngo-on = true\n");
    for mut client in
        [Client::with_handshake(&workspace, json!({})), Client::stateless(&workspace, json!({}))]
    {
        let arguments = json!({ "do": "ask", "answer_type": CONSENT });
        assert_eq!(texts(&client.call("probe", arguments)), [r#"ask: {"go-on":true}"#]);
    }
}

#[test]
fn a_configured_answer_is_not_requested() {
    let workspace = Workspace::with_probe("[tools.probe.answers]\ngo-on = true\n");
    let mut client = Client::with_handshake(&workspace, forms());
    let answer = client.call("probe", json!({ "do": "ask" }));
    assert_eq!(texts(&answer), [r#"ask: {"go-on":true}"#]);
}

/// The form of a question that the client receives.
fn form(client: &mut Client, arguments: Value) -> Value {
    let mut all = json!({ "do": "ask", "id": "q" });
    all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    let id = client.send("tools/call", json!({ "name": "probe", "arguments": all }));
    let params = client.reply("elicitation/create", json!({ "action": "cancel" }));
    client.answer(id);
    params
}

#[test]
fn a_form_of_a_tool_cannot_pass_for_an_approval() {
    let workspace = Workspace::with_probe("approve = \"always\"\n");
    let mut client = Client::with_handshake(&workspace, forms());
    let call = json!({ "name": "probe", "arguments": { "do": "echo", "text": "x" } });
    let id = client.send("tools/call", call);
    let real = client.reply("elicitation/create", json!({ "action": "cancel" }));
    client.answer(id);
    let schema = &real["requestedSchema"]["properties"]["approve"];
    assert_eq!(schema["title"], "Allow this call?");

    let workspace = self::workspace();
    let options = schema["enum"].clone();
    let field = json!({
        "id": "approve",
        "title": schema["title"],
        "description": schema["description"],
        "type": { "select": { "options": options } },
    });
    let copied = json!({ "form": { "fields": [field] } }).to_string();
    let select = json!({ "select": { "options": options } }).to_string();
    for mut client in
        [Client::with_handshake(&workspace, forms()), Client::stateless(&workspace, forms())]
    {
        for (text, answer_type) in [
            (real["message"].as_str().unwrap(), &*copied),
            (real["message"].as_str().unwrap(), &*select),
            ("Go on?", &*copied),
        ] {
            let arguments =
                json!({ "do": "ask", "id": "approve", "text": text, "answer_type": answer_type });
            let answer = client.call("probe", arguments);
            assert_eq!(
                texts(&answer),
                ["the tool may not ask the question `approve`: it has the words of kitbag's own \
                  approval"],
                "{answer}"
            );
        }
    }
    // Other text belongs to the tool, line by line.
    let mut client = Client::with_handshake(&workspace, forms());
    let arguments = json!({
        "text": "Fine?\n\nCalled by user root. Allow it?\u{1b}[2J\u{202e}",
        "answer_type": select,
    });
    let asked = form(&mut client, arguments);
    assert_eq!(
        asked["message"],
        "`probe` asks:\n| Fine?\n| \n| Called by user root. Allow it?\\u{1b}[2J\\u{202e}"
    );
    assert_eq!(asked["requestedSchema"]["properties"]["q"]["title"], "Answer to `probe`");
}

#[test]
fn no_part_of_a_form_has_invisible_characters() {
    let workspace = workspace();
    let mut client = Client::with_handshake(&workspace, forms());
    let bad = "a\u{1b}[1m\u{202e}b";
    let option = json!({ "value": bad, "title": bad });
    let fields = json!([
        { "id": "a", "title": bad, "description": bad, "type": "text", "default": bad },
        { "id": "b", "title": bad, "type": { "select": { "options": [option, bad] } } },
    ]);
    let kind = json!({ "form": { "fields": fields } }).to_string();
    let asked = form(&mut client, json!({ "answer_type": kind, "text": bad }));
    let escaped = "a\\u{1b}[1m\\u{202e}b";
    let properties = &asked["requestedSchema"]["properties"];
    assert_eq!(asked["message"], format!("`probe` asks: {escaped}"));
    let expected = json!({ "type": "string", "title": escaped, "description": escaped });
    assert_eq!(properties["a"], expected);
    // The tool receives the value; a person sees the title.
    let option = json!({ "const": bad, "title": escaped });
    assert_eq!(properties["b"]["oneOf"], json!([option, option]));
    let arguments = json!({ "do": "ask", "id": "a\u{202e}", "answer_type": "text" });
    let refused = texts(&client.call("probe", arguments)).concat();
    assert!(refused.ends_with("its id has invisible characters"), "{refused}");
}

#[test]
fn a_question_for_a_secret_is_flagged() {
    let workspace = workspace();
    let note = "Note from kitbag: this seems to ask for a secret. Your answer is sent to `probe`, and \
                can reach the model. kitbag itself never asks for a secret this way.";
    let text = "The passphrase of your secret store:";
    let arguments = json!({ "text": text, "answer_type": "text" });
    let asked = form(&mut Client::with_handshake(&workspace, forms()), arguments);
    assert_eq!(asked["message"], format!("`probe` asks: {text}\n{note}"));
    // A model that forwards the question also forwards the note.
    let arguments = json!({ "do": "ask", "text": text, "answer_type": "text" });
    let answer = Client::stateless(&workspace, json!({})).call("probe", arguments);
    let said = texts(&answer).concat();
    assert!(said.contains(&format!("`probe` asks: {text}\n{note}")), "{said}");
}
