//! The dialogue of a tool: questions, answers and results.

use kitbag_sdk::serde_json::{self, Map, Value};
use kitbag_sdk::{Call, ErrorInfo, Question, Stop};

use crate::arguments::Arguments;

pub(crate) fn echo(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    Ok(arguments.text("text")?.to_owned())
}

pub(crate) fn arguments(call: &Call, _: &Arguments) -> Result<String, Stop> {
    Ok(call.arguments_json().to_owned())
}

pub(crate) fn answers(call: &Call, _: &Arguments) -> Result<String, Stop> {
    Ok(call.answers_json().to_owned())
}

pub(crate) fn context(call: &Call, _: &Arguments) -> Result<String, Stop> {
    Ok(format!("context: root {}, action run, name {}", call.root(), call.name()))
}

/// The question is built by hand: the types of the sdk would not allow an invalid one.
pub(crate) fn ask(call: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let question = Question {
        id: arguments.text_or("id", "go-on").to_owned(),
        text: arguments.text_or("text", "Go on?").to_owned(),
        answer_type: arguments.text_or("answer_type", "boolean").to_owned(),
        default: arguments.optional_text("default").map(ToOwned::to_owned),
    };
    answered(call, [question])?;
    Ok(format!("ask: {}", call.answers_json()))
}

pub(crate) fn ask_twice(call: &Call, _: &Arguments) -> Result<String, Stop> {
    let question = |id: &str, text: &str, answer_type: &str| Question {
        id: id.to_owned(),
        text: text.to_owned(),
        answer_type: answer_type.to_owned(),
        default: None,
    };
    let first = question("first", "The first question?", "text");
    let second = question("second", "The second question?", "boolean");
    answered(call, [first, second])?;
    Ok(format!("ask-twice: {}", call.answers_json()))
}

pub(crate) fn fail(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    Err(Stop::Error(ErrorInfo {
        message: arguments.text_or("message", "it failed").to_owned(),
        trace: arguments.texts("trace").into_iter().map(ToOwned::to_owned).collect(),
        transient: arguments.flag_or("transient", false),
    }))
}

pub(crate) fn panic(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    panic!("{}", arguments.text_or("message", "it panicked"));
}

/// Asks the first question without an answer.
fn answered<const N: usize>(call: &Call, questions: [Question; N]) -> Result<(), Stop> {
    let answers: Map<String, Value> = serde_json::from_str(call.answers_json())
        .map_err(|error| ErrorInfo::new(format!("invalid answers: {error}")))?;
    match questions.into_iter().find(|question| !answers.contains_key(&question.id)) {
        Some(question) => Err(question.into()),
        None => Ok(()),
    }
}

/// Ends the instance. The interface only distinguishes success and failure; the function with an
/// exit code is unstable, and hosts need not provide it.
pub(crate) fn exit(_: &Call, arguments: &Arguments) -> Result<String, Stop> {
    let is_success = arguments.number_or("code", 0) == 0;
    wasip2::cli::exit::exit(if is_success { Ok(()) } else { Err(()) });
    Ok("exit: still here".into())
}
