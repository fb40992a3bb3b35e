//! The native tool of the tests.

use std::pin::Pin;

use kitbag_contract::{
    AnswerType, ErrorInfo, LogLevel, Outcome, Progress, Question, ToolDescription,
};
use kitbag_secrets::{CallEnd, ReadError, ReadSecret, SecretValue};
use kitbag_toolbox::{NativeCall, NativeTool};
use serde_json::{Value, json};

/// A secret source without secrets.
pub(super) struct NoSecrets;

impl ReadSecret for NoSecrets {
    fn read(
        &self,
        name: &kitbag_policy::SecretName,
        _: &CallEnd,
    ) -> Result<SecretValue, ReadError> {
        Err(ReadError::missing(name))
    }
}

/// A native tool whose argument `do` selects its behavior, like the guest of the same name.
pub(super) struct Probe;

impl NativeTool for Probe {
    fn description(&self) -> ToolDescription {
        let schema = json!({
            "type": "object",
            "properties": { "do": { "type": "string" }, "number": { "type": "integer" } },
            "required": ["do"],
        });
        ToolDescription {
            name: "probe".into(),
            description: Some("Tries things.".into()),
            input_schema: Some(schema),
            ..ToolDescription::default()
        }
    }

    fn call<'a>(&'a self, call: NativeCall<'a>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>> {
        Box::pin(async move {
            let arguments = call.arguments();
            let text = |name: &str| arguments.get(name).and_then(Value::as_str);
            match text("do").unwrap_or_default() {
                "echo" => Outcome::Success(text("text").unwrap_or_default().to_owned()),
                "fail" => Outcome::Error(ErrorInfo {
                    message: text("text").unwrap_or("it failed").to_owned(),
                    trace: vec!["a cause".into()],
                    transient: arguments.contains_key("transient"),
                }),
                "ask" => ask(&call, &[("go-on", "Go on?", AnswerType::Boolean)]),
                "consent" => ask(&call, &[("sure", "Sure?", AnswerType::Boolean)]),
                "ask-twice" => ask(
                    &call,
                    &[
                        ("first", "The first question?", AnswerType::Text),
                        ("second", "The second question?", AnswerType::Boolean),
                    ],
                ),
                "log" => {
                    for level in LEVELS {
                        call.log(level, "x");
                    }
                    Outcome::Success(String::new())
                }
                "progress" => {
                    for done in [1.0, 3.0, 3.5] {
                        call.progress(Progress { done, total: Some(4.0), message: None });
                    }
                    Outcome::Success(String::new())
                }
                "wait" => std::future::pending().await,
                other => Outcome::Error(ErrorInfo::new(format!("unknown: {other}"))),
            }
        })
    }
}

const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

/// Asks the first question without an answer. The outcome has all answers.
fn ask(call: &NativeCall<'_>, questions: &[(&str, &str, AnswerType)]) -> Outcome {
    match questions.iter().find(|(id, ..)| !call.answers().contains_key(*id)) {
        Some((id, text, answer_type)) => Outcome::NeedsInput(Question {
            id: (*id).into(),
            text: (*text).into(),
            answer_type: answer_type.clone(),
            default: None,
            is_consent: *id == "sure",
            class: None,
            asker: None,
            approval: None,
        }),
        None => Outcome::Success(json!(call.answers()).to_string()),
    }
}
