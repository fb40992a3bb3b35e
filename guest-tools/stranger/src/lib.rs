//! A tool that counts words, by a hypothetical author who uses the types of the contract but not
//! its names: `wit/gadget.wit` has its own package, interface and types.
//!
//! The arguments are `text`, or `path` for a file relative to the context's root, and `confirm`,
//! which makes the tool ask before it adds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::bindings::acme::widgets::shapes::{Inquiry, Mishap, Surroundings, Task, Verdict};

struct WordCounter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: Option<String>,
    path: Option<String>,
    #[serde(default)]
    confirm: bool,
}

impl bindings::Guest for WordCounter {
    fn run(ctx: Surroundings, name: String, arguments: String, answers: String) -> Verdict {
        let arguments: Arguments = match serde_json::from_str(&arguments) {
            Ok(arguments) => arguments,
            Err(error) => return mishap(format!("invalid arguments: {error}"), Vec::new()),
        };
        match ctx.action {
            Task::FormatArguments => Verdict::Success(format!("{name}: {}", subject(&arguments))),
            Task::Run => count(&ctx.root, &arguments, &answers),
        }
    }
}

fn count(root: &str, arguments: &Arguments, answers: &str) -> Verdict {
    if arguments.confirm {
        let answers: BTreeMap<String, Value> = serde_json::from_str(answers).unwrap_or_default();
        match answers.get("count") {
            None => {
                return Verdict::NeedsInput(Inquiry {
                    id: "count".into(),
                    text: format!("Count the words of {}?", subject(arguments)),
                    answer_type: "boolean".into(),
                    default: Some("true".into()),
                });
            }
            Some(Value::Bool(true)) => {}
            Some(_) => return Verdict::Success("not counted".into()),
        }
    }
    let text = match (&arguments.text, &arguments.path) {
        (Some(text), None) => text.clone(),
        (None, Some(path)) => match std::fs::read_to_string(Path::new(root).join(path)) {
            Ok(text) => text,
            Err(error) => return mishap(format!("cannot read {path}"), vec![error.to_string()]),
        },
        _ => return mishap("give either text or path".into(), Vec::new()),
    };
    let count = text.split_whitespace().count();
    Verdict::Success(format!("{count} {}", if count == 1 { "word" } else { "words" }))
}

fn subject(arguments: &Arguments) -> String {
    match &arguments.path {
        Some(path) => path.escape_debug().to_string(),
        None => "a text".into(),
    }
}

fn mishap(message: String, trace: Vec<String>) -> Verdict {
    Verdict::Error(Mishap { message, trace, transient: false })
}

#[expect(unsafe_code, clippy::too_many_arguments, reason = "generated")]
mod bindings {
    use super::WordCounter;

    wit_bindgen::generate!({ world: "gadget", additional_derives: [PartialEq, Eq] });

    export!(WordCounter with_types_in self);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::Guest;

    fn run(action: Task, arguments: &str, answers: &str) -> Verdict {
        let ctx = Surroundings { root: "/".into(), action };
        WordCounter::run(ctx, "count".into(), arguments.into(), answers.into())
    }

    #[test]
    fn it_counts_words() {
        assert_eq!(run(Task::Run, r#"{"text":"a b"}"#, "{}"), Verdict::Success("2 words".into()));
    }

    #[test]
    fn it_asks_before_counting_on_request() {
        let arguments = r#"{"text":"a b","confirm":true}"#;
        assert!(matches!(run(Task::Run, arguments, "{}"), Verdict::NeedsInput(_)));
        let answer = |answer: &str| run(Task::Run, arguments, &format!("{{\"count\":{answer}}}"));
        assert_eq!(answer("true"), Verdict::Success("2 words".into()));
        assert_eq!(answer("false"), Verdict::Success("not counted".into()));
    }

    #[test]
    fn it_renders_its_arguments() {
        assert_eq!(
            run(Task::FormatArguments, r#"{"path":"a.txt"}"#, "{}"),
            Verdict::Success("count: a.txt".into())
        );
    }

    #[test]
    fn invalid_arguments_are_explained() {
        let Verdict::Error(error) = run(Task::Run, "{}", "{}") else { panic!("no error") };
        assert_eq!(error.message, "give either text or path");
    }
}
