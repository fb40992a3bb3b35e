//! Masks for text that looks like a key or a token.
//!
//! The outermost call masks its output regardless of its grants, because a model carries text from
//! one call to the next. A tool that calls other tools reads their answers unmasked. Findings of
//! rules without a vendor stay, and the answer is marked.

use std::sync::Arc;

use kitbag_contract::{AnswerError, AnswerType, ErrorInfo, LogLevel, Outcome, Question};
use kitbag_host::{Completion, EventSink, TextMask, cut_at};
use kitbag_schema::ArgumentProblem;
use kitbag_secrets::{Leak, MASK_START, OnAnswer, Secrets};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::call::json;
use crate::error::ToolboxError;
use crate::screening::guest_texts;

/// The maximum number of findings that are listed for one call.
const MOST_NAMED: usize = 20;

/// The maximum length of a displayed mask, in bytes.
const MASK_BYTES: usize = 64;

/// A part of an answer that looks like a key, a token or a password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundLeak {
    /// The rule that matched.
    pub rule: String,
    /// The kind of secret, such as `a token of GitHub`.
    pub what: String,
    /// The fingerprint with which the user can allow it.
    pub fingerprint: String,
    /// True if a mask replaces it.
    #[serde(rename = "masked")]
    pub is_masked: bool,
}

/// Masks several strings in turn and collects the findings.
pub(crate) struct Masking<'a> {
    secrets: &'a Secrets,
    pub(crate) found: Vec<FoundLeak>,
}

pub(crate) fn events(events: EventSink, secrets: &Arc<Secrets>) -> EventSink {
    let secrets = Arc::clone(secrets);
    let mask: TextMask = Arc::new(move |text| drop(secrets.leaks().redact(text)));
    events.masked(mask)
}

impl<'a> Masking<'a> {
    pub(crate) fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, found: Vec::new() }
    }

    /// Masks all output of a run. Returns the findings.
    pub(crate) fn completion(mut self, completion: &mut Completion) -> Vec<FoundLeak> {
        if let Ok(Outcome::Success(text)) = &mut completion.result {
            json::replace_ascii_escapes(text);
        }
        self.texts(guest_texts::of_completion(completion));
        for content in &mut completion.emitted {
            let (texts, data) = guest_texts::of_content(content);
            self.texts(texts);
            if let Some(data) = data {
                guest_texts::change_text(data, |text| self.text(text));
            }
        }
        self.found
    }

    /// Masks the parts of a question that a person reads. `Err` if an answer would repeat a
    /// finding: the question is withheld.
    pub(crate) fn question(&mut self, question: &mut Question) -> Result<(), ErrorInfo> {
        self.text(&mut question.text);
        question.default.iter_mut().for_each(|text| self.text(text));
        self.check_repeated(question)?;
        titles(&mut question.answer_type, &mut |text| self.text(text));
        Ok(())
    }

    /// Checks the strings of a question that an answer repeats.
    fn check_repeated(&self, question: &Question) -> Result<(), ErrorInfo> {
        let mut repeated = vec![&*question.id];
        add_repeated(&mut repeated, &question.answer_type);
        let leaks = self.secrets.leaks();
        let mut found = repeated.iter().flat_map(|text| leaks.find(text.as_bytes()));
        match found.find(|leak| leak.on_answer == OnAnswer::Redact) {
            None => Ok(()),
            Some(Leak { what, rule, .. }) => Err(ErrorInfo::new(format!(
                "the question is withheld: an answer to it would contain what looks like {what} \
                 (rule `{rule}`)"
            ))),
        }
    }

    /// Masks the strings of a tool and of the arguments in an error.
    pub(crate) fn error(&mut self, error: &mut ToolboxError) {
        if let ToolboxError::Arguments { problems, .. } = error {
            for ArgumentProblem { pointer, message } in problems {
                self.texts(vec![pointer, message]);
            }
        }
        self.texts(guest_texts::of_error(error));
    }

    /// Masks the reason why an answer does not fit.
    pub(crate) fn answer_error(&mut self, error: &mut AnswerError) {
        self.texts(error.texts_mut());
    }

    fn texts(&mut self, texts: Vec<&mut String>) {
        texts.into_iter().for_each(|text| self.text(text));
    }

    /// Masks text, including the part of a key or a token that remains at its end after truncation.
    fn text(&mut self, text: &mut String) {
        let cut = cut_at(text);
        let found = self.secrets.leaks().redact_cut(text, cut);
        for Leak { rule, what, fingerprint, on_answer, .. } in found {
            let (rule, what) = (rule.to_owned(), what.to_owned());
            let (fingerprint, is_masked) = (fingerprint.to_string(), on_answer == OnAnswer::Redact);
            let found = FoundLeak { rule, what, fingerprint, is_masked };
            if self.found.len() < MOST_NAMED && !self.found.contains(&found) {
                self.found.push(found);
            }
        }
    }
}

/// Logs the findings for the reader of the log.
pub(crate) fn log(found: &[FoundLeak], events: &EventSink) {
    for FoundLeak { rule, what, fingerprint, is_masked } in found {
        let masked = if *is_masked { "masked" } else { "left as it is" };
        let line = format!(
            "the answer contains what looks like {what} (rule `{rule}`, fingerprint `{fingerprint}`), \
             {masked}"
        );
        events.log(LogLevel::Warning, &line);
    }
}

/// Returns the first mask in the arguments, and its location as a JSON pointer.
pub(crate) fn find(arguments: &Map<String, Value>) -> Option<(String, String)> {
    let mut pointer = String::new();
    let entries = || arguments.iter().map(|(key, value)| (&**key, value));
    entries().find_map(|(key, value)| find_in(Some(key), value, &mut pointer))
}

fn find_in(key: Option<&str>, value: &Value, pointer: &mut String) -> Option<(String, String)> {
    let length = pointer.len();
    if let Some(key) = key {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    let own = key.and_then(mask_in).or_else(|| value.as_str().and_then(mask_in));
    if let Some(mask) = own {
        return Some((std::mem::take(pointer), mask));
    }
    let found = match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| find_in(Some(&index.to_string()), item, pointer)),
        Value::Object(entries) => {
            entries.iter().find_map(|(key, value)| find_in(Some(key), value, pointer))
        }
        _ => None,
    };
    pointer.truncate(length);
    found
}

fn mask_in(text: &str) -> Option<String> {
    let start = text.find(MASK_START)?;
    let mask = &text[start..];
    let mask = &mask[..mask.floor_char_boundary(MASK_BYTES)];
    let end = mask.find(']').map_or(MASK_START.len(), |end| end + 1);
    Some(mask[..end].to_owned())
}

fn add_repeated<'a>(texts: &mut Vec<&'a str>, answer_type: &'a AnswerType) {
    match answer_type {
        AnswerType::Select(choices) | AnswerType::MultiSelect(choices) => {
            texts.extend(choices.iter().filter_map(|choice| choice.value.as_str()));
        }
        AnswerType::Form(fields) => {
            for field in fields {
                texts.push(&field.id);
                add_repeated(texts, &field.kind);
            }
        }
        AnswerType::Boolean | AnswerType::Text | AnswerType::Integer | AnswerType::Number => {}
    }
}

/// Masks the strings by which a person chooses an answer.
fn titles(answer_type: &mut AnswerType, mask: &mut impl FnMut(&mut String)) {
    match answer_type {
        AnswerType::Select(choices) | AnswerType::MultiSelect(choices) => {
            choices.iter_mut().for_each(|choice| mask(&mut choice.title));
        }
        AnswerType::Form(fields) => {
            for field in fields {
                field.title.iter_mut().for_each(&mut *mask);
                field.description.iter_mut().for_each(&mut *mask);
                titles(&mut field.kind, mask);
            }
        }
        AnswerType::Boolean | AnswerType::Text | AnswerType::Integer | AnswerType::Number => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mask_is_found_anywhere_in_arguments() {
        let check = |arguments: Value, expected: Option<(&str, &str)>| {
            let Value::Object(arguments) = arguments else { unreachable!() };
            let found = find(&arguments);
            let found = found.as_ref().map(|(pointer, mask)| (&**pointer, &**mask));
            assert_eq!(found, expected);
        };
        let mask = "[kitbag-mask:github-token]";
        let text = format!("KEY={mask}\n");
        check(json!({ "content": text }), Some(("/content", mask)));
        check(json!({ "edits": [{ "old": "a" }, { "new": text }] }), Some(("/edits/1/new", mask)));
        check(json!({ "a/b": { text.clone(): 1 } }), Some((&format!("/a~1b/{text}"), mask)));
        check(json!({ "a": "[kitbag-mask:cut" }), Some(("/a", "[kitbag-mask:")));
        check(json!({ "a": "[kitbag] mask: ", "b": [1, null, true] }), None);
    }
}
