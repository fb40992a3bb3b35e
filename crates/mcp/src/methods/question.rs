//! A tool's question as a form for a person, and the form as an answer.

use kitbag_base::text::{is_hidden, printable};
use kitbag_config::{Origin, Sourced};
use kitbag_contract::{Answer, AnswerError, AnswerType, ApprovalRequest, Choice, Question, barred};
use kitbag_toolbox::Reply;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Map, Value, json};

use crate::transport::message;

/// Returns the form for a question. `rejected` explains why the previous answer was rejected.
///
/// # Errors
///
/// If a form cannot express the question.
pub(crate) fn form(
    question: &Question,
    rejected: Option<&AnswerError>,
) -> Result<ElicitRequestParams, serde_json::Error> {
    let message = match rejected {
        Some(error) => format!("{}\n({})", question.shown(), printable(&error.to_string())),
        None => question.shown(),
    };
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: schema(question)?,
    })
}

/// Returns the memory that a question takes while it waits for its answer: the tool's question, the
/// form, and the protocol library's copy of the message.
pub(crate) fn cost(form: &ElicitRequestParams) -> u64 {
    2 * message::cost(&serde_json::to_vec(form).unwrap_or_default())
}

fn schema(question: &Question) -> Result<ElicitationSchema, serde_json::Error> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    match &question.answer_type {
        AnswerType::Form(fields) => {
            for field in fields {
                let mut property = match &field.kind {
                    AnswerType::Select(choices) if field.is_legacy => titled_as_before(choices),
                    kind => property(kind),
                };
                let texts = [("title", &field.title), ("description", &field.description)];
                for (key, text) in texts {
                    if let Some(text) = text {
                        property[key] = json!(barred(text));
                    }
                }
                if let Some(default) = &field.default
                    && !hides(default)
                {
                    property["default"] = suggestion(&field.kind, default);
                }
                properties.insert(field.id.clone(), property);
                if field.is_required {
                    required.push(field.id.clone());
                }
            }
        }
        kind => {
            let mut property = property(kind);
            // A default could be submitted unread, so a yes-or-no question has none.
            if let Some(default) = &question.default
                && *kind != AnswerType::Boolean
                && let Ok(default) = kind.check(&Answer::Text(default.clone()))
                && !hides(&default)
            {
                property["default"] = suggestion(kind, &default);
            }
            match question.approval {
                Some(_) => {
                    property["title"] = ApprovalRequest::TITLE.into();
                    property["description"] = meanings(kind).into();
                }
                None => {
                    property["title"] = format!("Answer to {}", question.asker_name()).into();
                }
            }
            properties.insert(key(question).to_owned(), property);
            required.push(key(question).to_owned());
        }
    }
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    serde_json::from_value(schema)
}

/// Explains each answer to a question for approval.
fn meanings(kind: &AnswerType) -> String {
    let AnswerType::Select(choices) = kind else { return String::new() };
    let meaning = |choice: &Choice| match choice.value.as_str() {
        Some(ApprovalRequest::ONCE) => "yes: once",
        Some(ApprovalRequest::ALWAYS) => "always: in this session",
        _ => "no: the call is not made",
    };
    choices.iter().map(meaning).collect::<Vec<_>>().join("; ")
}

/// Returns the name of the only field of a question's form.
fn key(question: &Question) -> &str {
    match &question.approval {
        Some(_) => "approve",
        None => &question.id,
    }
}

/// Returns the schema of one answer. A form accepts only flat values.
fn property(kind: &AnswerType) -> Value {
    let is_plain = |choices: &[Choice]| {
        let mut choices = choices.iter();
        choices.all(|it| it.value.as_str() == Some(&it.title) && !it.title.contains(is_hidden))
    };
    let names = |choices: &[Choice]| choices.iter().map(name).collect::<Vec<_>>();
    let titled = |choices: &[Choice]| {
        let option = |choice| json!({ "const": name(choice), "title": barred(&choice.title) });
        choices.iter().map(option).collect::<Vec<_>>()
    };
    match kind {
        AnswerType::Boolean => json!({ "type": "boolean" }),
        AnswerType::Text | AnswerType::Form(_) => json!({ "type": "string" }),
        AnswerType::Integer => json!({ "type": "integer" }),
        AnswerType::Number => json!({ "type": "number" }),
        AnswerType::Select(choices) if is_plain(choices) => {
            json!({ "type": "string", "enum": names(choices) })
        }
        AnswerType::Select(choices) => json!({ "type": "string", "oneOf": titled(choices) }),
        AnswerType::MultiSelect(choices) if is_plain(choices) => {
            json!({ "type": "array", "items": { "type": "string", "enum": names(choices) } })
        }
        AnswerType::MultiSelect(choices) => {
            json!({ "type": "array", "items": { "anyOf": titled(choices) } })
        }
    }
}

/// Returns titled options in the form before 2025-11-25.
fn titled_as_before(choices: &[Choice]) -> Value {
    let titles = choices.iter().map(|choice| barred(&choice.title)).collect::<Vec<_>>();
    let names = choices.iter().map(name).collect::<Vec<_>>();
    json!({ "type": "string", "enum": names, "enumNames": titles })
}

/// Returns the option's name in a form, which accepts only strings. `AnswerType::check` maps the
/// name back to the option.
fn name(choice: &Choice) -> String {
    match &choice.value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns whether a suggested value has characters that a person cannot see. Such a value is not
/// suggested.
fn hides(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(|c| is_hidden(c) && !matches!(c, '\n' | '\t')),
        Value::Array(values) => values.iter().any(hides),
        _ => false,
    }
}

fn suggestion(kind: &AnswerType, value: &Value) -> Value {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match (kind, value) {
        (AnswerType::Select(_), value) => text(value).into(),
        (AnswerType::MultiSelect(_), Value::Array(values)) => {
            values.iter().map(text).collect::<Vec<_>>().into()
        }
        _ => value.clone(),
    }
}

pub(crate) fn reply(question: &Question, result: ElicitResult) -> Reply {
    match result.action {
        ElicitationAction::Decline => Reply::Declined,
        ElicitationAction::Accept => {
            let content = result.content.unwrap_or(Value::Null);
            let value = Answer::Json(match &question.answer_type {
                AnswerType::Form(_) => content,
                _ => content.get(key(question)).cloned().unwrap_or(Value::Null),
            });
            Reply::Answer(Sourced { value, origin: Origin::Caller })
        }
        // The form was cancelled, or a later revision added another action.
        _ => Reply::Dismissed,
    }
}
