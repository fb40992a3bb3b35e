//! The strings from guests in answers and errors. Masks and marks process the same strings.

use kitbag_contract::{Content, ErrorInfo, Media, Outcome, Resource, ResourceBody, ResourceLink};
use kitbag_host::{CallError, Completion, RefusedAccess};

use crate::error::ToolboxError;

/// Returns the strings in the result of a run, without its content: its answer or error, and its
/// printed output.
pub(crate) fn of_completion(completion: &mut Completion) -> Vec<&mut String> {
    let mut texts = match &mut completion.result {
        Ok(outcome) => of_outcome(outcome),
        Err(error) => of_call_error(error),
    };
    texts.extend(completion.stdout.texts());
    texts.extend(completion.stderr.texts());
    texts.extend(&mut completion.sought_tools);
    texts.extend(completion.failed_connections.iter_mut().map(|failed| &mut failed.reason));
    for refused in &mut completion.refused {
        if let RefusedAccess::Request(refused) = refused {
            texts.push(&mut refused.reason);
            texts.extend(refused.missing.iter_mut().map(|missing| &mut missing.entry));
        }
    }
    texts
}

/// Returns the strings of an answer or of the tool's own error. The string that a model reads first
/// is the first.
pub(crate) fn of_outcome(outcome: &mut Outcome) -> Vec<&mut String> {
    match outcome {
        Outcome::Success(text) => vec![text],
        Outcome::Error(ErrorInfo { message, trace, .. }) => {
            [message].into_iter().chain(trace).collect()
        }
        Outcome::NeedsInput(_) => Vec::new(),
    }
}

/// Returns the guest's strings in an error of its run.
pub(crate) fn of_call_error(error: &mut CallError) -> Vec<&mut String> {
    match error {
        CallError::Trap { message } => vec![message],
        CallError::Contract(error) => error.texts_mut(),
        CallError::Limit { .. }
        | CallError::Denied(_)
        | CallError::Cancelled
        | CallError::Busy { .. }
        | CallError::MemoryBusy { .. }
        | CallError::BeyondMemory { .. }
        | CallError::Load(_)
        | CallError::Internal(_) => Vec::new(),
    }
}

/// Returns the guest's strings that an error repeats.
pub(crate) fn of_error(error: &mut ToolboxError) -> Vec<&mut String> {
    match error {
        ToolboxError::Call(error) => of_call_error(error),
        ToolboxError::Declined { question, text, .. } => vec![question, text],
        ToolboxError::AskedAgain { question }
        | ToolboxError::ReservedQuestion { question }
        | ToolboxError::QuestionFlaw { question, .. } => vec![question],
        ToolboxError::Answer { question, source, .. } => {
            [question].into_iter().chain(source.texts_mut()).collect()
        }
        ToolboxError::Output { problems, .. } => problems
            .iter_mut()
            .flat_map(|problem| [&mut problem.pointer, &mut problem.message])
            .collect(),
        ToolboxError::Diverged { before, now, .. } => vec![before, now],
        ToolboxError::NotGranted { alias, .. } => vec![alias],
        _ => Vec::new(),
    }
}

/// Returns the strings of content, and its bytes if they may be text.
pub(crate) fn of_content(content: &mut Content) -> (Vec<&mut String>, Option<&mut Vec<u8>>) {
    match content {
        Content::Image(Media { mime_type, .. }) | Content::Audio(Media { mime_type, .. }) => {
            (vec![mime_type], None)
        }
        Content::Resource(Resource { uri, mime_type, body }) => {
            let mut texts: Vec<_> = [uri].into_iter().chain(mime_type).collect();
            match body {
                ResourceBody::Text(text) => {
                    texts.push(text);
                    (texts, None)
                }
                ResourceBody::Blob(data) => (texts, Some(data)),
            }
        }
        Content::Link(ResourceLink { uri, name, title, description, mime_type, size: _ }) => {
            let optional = [title, description, mime_type].into_iter().flatten();
            (optional.chain([uri, name]).collect(), None)
        }
    }
}

/// Applies a change to bytes if they are text.
pub(crate) fn change_text(data: &mut Vec<u8>, change: impl FnOnce(&mut String)) {
    match String::from_utf8(std::mem::take(data)) {
        Ok(mut text) => {
            change(&mut text);
            *data = text.into_bytes();
        }
        Err(error) => *data = error.into_bytes(),
    }
}
