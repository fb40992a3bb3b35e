//! A server's request for input, as a question.

use kitbag_contract::{AnswerType, Choice, Field, Question};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

use super::redaction::Redaction;

/// Returns the question for a request.
///
/// # Errors
///
/// The action of the server, as a verb phrase.
pub(crate) fn question(
    id: String,
    params: &ElicitRequestParams,
    redaction: &Redaction,
) -> Result<Question, String> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params
    else {
        return Err("asks to open a URL, which kitbag does not offer".to_owned());
    };
    let unreadable = || "asks a question with a form that kitbag cannot read".to_owned();
    let schema = serde_json::to_string(requested_schema).map_err(|_| unreadable())?;
    let schema: Value = serde_json::from_str(&redaction.text(schema)).map_err(|_| unreadable())?;
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let no_fields = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&no_fields);
    let fields = properties.iter().map(|(id, schema)| field(id, schema, &required));
    let fields: Vec<_> = fields.collect::<Option<_>>().ok_or_else(unreadable)?;
    // Without fields, the question is only whether to continue.
    let answer_type = match fields.is_empty() {
        true => AnswerType::Boolean,
        false => AnswerType::Form(fields),
    };
    Ok(Question {
        id,
        text: redaction.text(message.clone()),
        answer_type,
        default: None,
        is_consent: false,
        class: None,
        asker: None,
        approval: None,
    })
}

/// Returns the result for an answer that fits the question.
pub(crate) fn accepted(answer: &Value) -> ElicitResult {
    match answer {
        Value::Object(_) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(answer.clone())
        }
        Value::Bool(false) => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(Map::new())),
    }
}

fn field(id: &str, schema: &Value, required: &[Value]) -> Option<Field> {
    let text = |key: &str| schema[key].as_str().map(str::to_owned);
    let is_legacy = schema["enumNames"].is_array();
    let kind = match schema["type"].as_str()? {
        "boolean" => AnswerType::Boolean,
        "integer" => AnswerType::Integer,
        "number" => AnswerType::Number,
        "string" => match choices(schema) {
            Some(choices) => AnswerType::Select(choices),
            None => AnswerType::Text,
        },
        "array" => AnswerType::MultiSelect(choices(&schema["items"])?),
        _ => return None,
    };
    Some(Field {
        id: id.to_owned(),
        title: text("title"),
        description: text("description"),
        kind,
        default: schema.get("default").cloned(),
        is_required: required.iter().any(|name| name == id),
        is_legacy,
    })
}

/// Returns the options of a string, if it has any.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let choice = |value: &Value, title: Option<&Value>| {
        let value = value.as_str()?;
        let title = title.and_then(Value::as_str).unwrap_or(value);
        Some(Choice { value: value.into(), title: title.to_owned() })
    };
    if let Some(names) = schema["enum"].as_array() {
        let titles = &schema["enumNames"];
        return names.iter().enumerate().map(|(at, name)| choice(name, titles.get(at))).collect();
    }
    let options = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array())?;
    options.iter().map(|option| choice(&option["const"], option.get("title"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: Value) -> AnswerType {
        let params = json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
        let params = serde_json::from_value(params).unwrap();
        question("input-1".into(), &params, &Redaction::default()).unwrap().answer_type
    }

    #[test]
    fn forms_keep_the_order_and_the_kinds_of_fields() {
        let kind = form(json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Name" },
                "age": { "type": "integer" },
                "colour": { "type": "string", "oneOf": [{ "const": "r", "title": "Red" }] },
                "size": { "type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"] },
                "days": { "type": "array", "items": { "type": "string", "enum": ["mo"] } },
            },
            "required": ["name"],
        }));
        let AnswerType::Form(fields) = kind else { panic!("{kind:?}") };
        let shown: Vec<_> = fields
            .iter()
            .map(|field| format!("{} {} {}", field.id, field.kind, field.is_required))
            .collect();
        assert_eq!(
            shown,
            [
                "name text true",
                "age integer false",
                r#"colour {"select":{"options":[{"value":"r","title":"Red"}]}} false"#,
                r#"size {"select":{"options":[{"value":"s","title":"Small"},{"value":"l","title":"Large"}]}} false"#,
                r#"days {"multi-select":{"options":["mo"]}} false"#,
            ]
        );
        assert!(fields[3].is_legacy);
    }

    #[test]
    fn forms_without_fields_are_yes_or_no() {
        assert_eq!(form(json!({ "type": "object", "properties": {} })), AnswerType::Boolean);
        let action = |answer: Value| accepted(&answer).action;
        assert_eq!(action(json!(true)), ElicitationAction::Accept);
        assert_eq!(action(json!(false)), ElicitationAction::Decline);
    }
}
