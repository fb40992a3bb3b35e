//! The outcome of a call in the protocol.

use kitbag_base::shell;
use kitbag_base::text::printable;
use kitbag_config::{Audience, Config};
use kitbag_contract::{AnswerType, ErrorInfo, ErrorKind, Outcome, Question};
use kitbag_host::{CallError, Completion};
use kitbag_toolbox::{CallStatus, Completed, ScreeningReport, Suspended, ToolboxError};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::{Map, Value, json};

use crate::methods::content::content_block;

/// Added if the same call may succeed later.
pub(crate) const TRY_AGAIN: &str = "Trying again may help.";

/// Returns the result of a call that ended without a question.
///
/// An error that the model can fix is a result with `isError`. An unknown tool name is an error of
/// the protocol.
///
/// # Errors
///
/// If the model cannot fix the error.
pub(crate) fn result(
    config: &Config,
    tool: &str,
    done: Completed,
) -> Result<CallToolResult, ErrorData> {
    let Completed { completion, structured, screening, advice, .. } = done;
    report(tool, &completion);
    for line in advice {
        tracing::info!(tool, "{}", printable(&line));
    }
    let mut result = answered(config, tool, completion, structured)?;
    result.meta = meta(&screening);
    Ok(result)
}

/// Returns the findings of the screening. `None` if there are none.
pub(crate) fn meta(screening: &ScreeningReport) -> Option<MetaObject> {
    let mut meta = Map::new();
    if screening.is_untrusted {
        meta.insert("kitbag/untrusted".into(), true.into());
    }
    if !screening.findings.is_empty() {
        meta.insert("kitbag/findings".into(), json!(screening.findings));
    }
    if !screening.leaks.is_empty() {
        meta.insert("kitbag/leaks".into(), json!(screening.leaks));
    }
    (!meta.is_empty()).then(|| MetaObject(meta))
}

fn answered(
    config: &Config,
    tool: &str,
    completion: Completion,
    structured: Result<Option<Value>, ToolboxError>,
) -> Result<CallToolResult, ErrorData> {
    match completion.result {
        Ok(Outcome::Success(content)) => match structured {
            Ok(structured) => {
                // A tool that emits other content need not have text.
                let text = (!content.is_empty() || completion.emitted.is_empty())
                    .then(|| ContentBlock::text(content));
                let given = completion.emitted.iter().map(content_block);
                let mut result = CallToolResult::success(text.into_iter().chain(given).collect());
                // Before 2026-07-28 structured content had to be an object, and only such schemas
                // are listed.
                result.structured_content = structured.filter(Value::is_object);
                Ok(result)
            }
            Err(error) => refusal(config, tool, error),
        },
        Ok(Outcome::Error(error)) => {
            let mut result = failure(&error.message, error.transient);
            result.content.extend(completion.emitted.iter().map(content_block));
            Ok(result)
        }
        Ok(Outcome::NeedsInput(question)) => Ok(asking(tool, &question, Map::new())),
        Err(error) => refusal(config, tool, error.into()),
    }
}

/// Returns the result of a call that was refused, or that the host ended: the cause, and the
/// setting that the model may ask the user to change.
///
/// # Errors
///
/// As for [`result`].
pub(crate) fn refusal(
    config: &Config,
    tool: &str,
    error: ToolboxError,
) -> Result<CallToolResult, ErrorData> {
    let message = error.message_for(Audience::Model, Some((config, tool)));
    match ErrorForm::of(error.kind()) {
        ErrorForm::InvalidParams => Err(ErrorData::invalid_params(message, None)),
        ErrorForm::Internal => Err(internal(&error)),
        ErrorForm::Result { is_transient } => {
            let full = error.message_for(Audience::Person, None);
            if full != message {
                tracing::warn!(tool, "refused: {}", printable(&full));
            }
            Ok(failure(&message, is_transient))
        }
    }
}

/// The form in which a client receives the error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorForm {
    /// The JSON-RPC error "invalid params" (-32602).
    InvalidParams,
    /// The JSON-RPC error "internal error" (-32603).
    Internal,
    /// A result with `isError` for the model.
    Result {
        /// The result suggests repeating the call.
        is_transient: bool,
    },
}

impl ErrorForm {
    /// Returns the form of an error of this kind.
    pub fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::UnknownTool
            | ErrorKind::Disabled
            | ErrorKind::Broken
            | ErrorKind::Untrusted
            | ErrorKind::State => Self::InvalidParams,
            ErrorKind::Internal => Self::Internal,
            kind => Self::Result { is_transient: kind.is_transient() },
        }
    }
}

pub(crate) fn kind(end: CallStatus) -> &'static str {
    match end {
        CallStatus::Success => "success",
        CallStatus::Error => "error",
        CallStatus::Suspended => "input-required",
        CallStatus::Refused => "refused",
    }
}

/// Returns the result of a call with an open question, for a client that cannot ask a person.
/// `given` holds the answers that came with the call.
pub(crate) fn unanswered(
    tool: &str,
    open: &Suspended,
    given: Map<String, Value>,
) -> CallToolResult {
    report(tool, &open.completion);
    let mut result = asking(tool, &open.question, given);
    result.meta = meta(&open.screening);
    result
}

pub(crate) fn failure(message: &str, is_transient: bool) -> CallToolResult {
    let mut content = vec![ContentBlock::text(message)];
    if is_transient {
        content.push(ContentBlock::text(TRY_AGAIN));
    }
    CallToolResult::error(content)
}

fn asking(tool: &str, question: &Question, mut answers: Map<String, Value>) -> CallToolResult {
    let Question { id, answer_type, is_consent, .. } = question;
    let text = question.shown();
    let expected = answer_type.expectation();
    if *is_consent {
        let (command, quoted_id) = (shell::command(["kitbag", "run", tool]), shell::quoted(id));
        return failure(
            &format!(
                "The tool needs the consent of a person before it does anything:\n\n{text}\n\n\
                 This client cannot ask a person, and `_answers` does not count as consent. \
                 Tell the user what would be done, and that they can allow it in one of these \
                 ways: run `{command}` with the same arguments and `--answer {quoted_id}=…` \
                 in a terminal ({expected}); or use a client that supports elicitation."
            ),
            false,
        );
    }
    // The repeated call must contain every answer.
    answers.insert(id.clone(), placeholder(answer_type));
    let example = json!({ "_answers": answers });
    failure(
        &format!(
            "The tool needs an answer from the user before it does anything:\n\n{text}\n\n\
             Ask the user, then call the tool again with the same arguments and the answer, \
             {expected}, in `_answers`: {example}. Do not answer for the user."
        ),
        false,
    )
}

/// Returns a placeholder for an answer of a type, in the form of that type.
fn placeholder(answer_type: &AnswerType) -> Value {
    match answer_type {
        AnswerType::Form(fields) => {
            fields.iter().map(|field| (field.id.clone(), placeholder(&field.kind))).collect()
        }
        AnswerType::MultiSelect(_) => json!(["…"]),
        _ => "…".into(),
    }
}

fn message_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Logs details for the server's operator that the model does not receive.
pub(crate) fn report(tool: &str, completion: &Completion) {
    let elapsed_us = completion.usage.elapsed.as_micros() as u64;
    match &completion.result {
        Ok(Outcome::Success(_)) => tracing::debug!(tool, elapsed_us, "success"),
        Ok(Outcome::NeedsInput(_)) => tracing::debug!(tool, elapsed_us, "asks"),
        Ok(Outcome::Error(ErrorInfo { message, trace, .. })) => {
            let (message, trace) = (printable(message), trace.join("; "));
            tracing::info!(tool, elapsed_us, error = %message, trace = %printable(&trace), "error");
        }
        Err(error @ (CallError::Trap { .. } | CallError::Contract(_))) => {
            tracing::warn!(tool, elapsed_us, "broke off");
            // The tool's own message, which may contain data of the call.
            tracing::info!(tool, error = %printable(&message_of(error)), "broke off");
        }
        Err(error) => {
            tracing::warn!(tool, elapsed_us, error = %printable(&message_of(error)), "failed");
        }
    }
    for (stream, captured) in [("stdout", &completion.stdout), ("stderr", &completion.stderr)] {
        if !captured.text.is_empty() {
            tracing::debug!(tool, stream, text = %printable(&captured.text), "printed");
        }
    }
}

/// Returns the protocol error for an internal fault.
pub(crate) fn internal(error: &dyn std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
