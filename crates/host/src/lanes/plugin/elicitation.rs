//! Questions of hyper-mcp's plugins for a person: `create_elicitation`.
//!
//! A question ends the run, like any question of a tool. When the tool runs again, the same
//! question, in the order of their calls, is answered.

use kitbag_contract::Outcome;
use kitbag_contract::bindings::types;
use serde_json::{Map, Value, json};

/// Returns the id of a question by its number in the run.
pub(super) fn id(number: usize) -> String {
    format!("elicitation-{number}")
}

/// Returns the question of a request: `message`, and the fields in `requestedSchema`.
pub(super) fn question(id: String, request: &Value) -> Result<Outcome, String> {
    let text =
        request["message"].as_str().ok_or("the plugin asked a question without `message`")?;
    let schema = &request["requestedSchema"];
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields: Vec<_> = fields.map(|(name, it)| field(name, it, is_required(name))).collect();
    // Without fields, a person only agrees.
    let answer_type = match &fields[..] {
        [] => "boolean".to_owned(),
        fields => json!({ "form": { "fields": fields } }).to_string(),
    };
    let question = types::Question { id, text: text.to_owned(), answer_type, default: None };
    Outcome::try_from(types::Outcome::NeedsInput(question)).map_err(|error| error.to_string())
}

/// Returns a field of a form.
fn field(name: &str, schema: &Value, is_required: bool) -> Value {
    let options = schema["enum"].as_array().map(|values| {
        let titles = schema["enumNames"].as_array();
        let options = values.iter().enumerate().map(|(index, value)| {
            match titles.and_then(|titles| titles.get(index)?.as_str()) {
                Some(title) => json!({ "value": value, "title": title }),
                None => value.clone(),
            }
        });
        options.collect::<Vec<_>>()
    });
    let ty = match (schema["type"].as_str(), options) {
        (_, Some(options)) => json!({ "select": { "options": options } }),
        (Some(kind @ ("boolean" | "integer" | "number")), None) => json!(kind),
        _ => json!("text"),
    };
    let mut field = Map::new();
    field.insert("id".into(), json!(name));
    field.insert("type".into(), ty);
    field.insert("required".into(), json!(is_required));
    for key in ["title", "description", "default"] {
        if let Some(value) = schema.get(key).filter(|value| !value.is_null()) {
            field.insert(key.into(), value.clone());
        }
    }
    Value::Object(field)
}

/// Returns the answer for the plugin.
pub(super) fn answer(answer: &Value) -> Value {
    match answer {
        Value::Bool(false) => json!({ "action": "decline" }),
        Value::Object(content) => json!({ "action": "accept", "content": content }),
        _ => json!({ "action": "accept", "content": {} }),
    }
}

#[cfg(test)]
mod tests {
    use kitbag_contract::{AnswerType, Question};

    use super::*;

    #[track_caller]
    fn asked(request: Value) -> Question {
        match question(id(0), &request) {
            Ok(Outcome::NeedsInput(question)) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn properties_become_fields() {
        let question = asked(json!({
            "message": "Who?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "age": { "type": "integer", "title": "Age" },
                    "colour": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] },
                    "name": { "type": "string" },
                    "sure": { "type": "boolean", "default": true },
                },
                "required": ["name"],
            },
        }));
        let AnswerType::Form(fields) = question.answer_type else { panic!("{question:?}") };
        let kinds: Vec<_> =
            fields.iter().map(|field| (&*field.id, &field.kind, field.is_required)).collect();
        let [age, colour, name, sure] = &kinds[..] else { panic!("{kinds:?}") };
        assert_eq!(*age, ("age", &AnswerType::Integer, false));
        assert_eq!(*name, ("name", &AnswerType::Text, true));
        assert_eq!(*sure, ("sure", &AnswerType::Boolean, false));
        let AnswerType::Select(options) = colour.1 else { panic!("{colour:?}") };
        assert_eq!((&options[1].value, &*options[1].title), (&json!("g"), "Green"));
        assert_eq!(&*question.text, "Who?");
    }

    #[test]
    fn a_question_without_fields_asks_for_consent() {
        assert_eq!(asked(json!({ "message": "Really?" })).answer_type, AnswerType::Boolean);
        assert_eq!(answer(&json!(true)), json!({ "action": "accept", "content": {} }));
        assert_eq!(answer(&json!(false)), json!({ "action": "decline" }));
    }

    #[test]
    fn hostile_questions_are_refused() {
        for request in [
            json!({}),
            json!({ "message": "x".repeat(100_000) }),
            json!({ "message": "x", "requestedSchema": { "properties": { "a": { "enum": [] } } } }),
        ] {
            assert!(question(id(0), &request).is_err(), "{request}");
        }
    }
}
