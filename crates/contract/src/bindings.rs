//! The host side of `wit/tool.wit` and conversions to the plain types.
//!
//! The generated types are structural: they match any component whose `run` has this shape,
//! regardless of its package name.

mod content;

use crate::answer::QuestionMarks;
use crate::{
    ANSWER_TYPE_BYTES, Action, AnswerError, AnswerType, Context, ErrorInfo, Outcome,
    QUESTION_ID_BYTES, QUESTION_TEXT_BYTES, Question,
};
use kitbag_base::ByteSize;

pub use generated::kitbag::tool::{host, tools, types};

mod generated {
    #![expect(missing_docs, reason = "generated; the comments are in wit/")]

    wasmtime::component::bindgen!({
        path: "wit",
        world: "calling-tool",
        imports: {
            "kitbag:tool/tools.list": async | trappable,
            "kitbag:tool/tools.find": async | trappable,
            "kitbag:tool/tools.start": async | trappable,
            "kitbag:tool/tools.call": async | trappable,
            "kitbag:tool/tools.[method]pending.finish": async | trappable,
            "kitbag:tool/tools.[method]pending.subscribe": trappable,
            "kitbag:tool/tools.[drop]pending": trappable,
        },
        exports: { default: async },
        with: { "wasi:io/poll": wasmtime_wasi_io::bindings::wasi::io::poll },
    });
}

/// The parameters of `run`: context, name, arguments, answers.
pub type RunParameters<'a> = (types::Context, &'a str, &'a str, &'a str);

/// The result of `run`.
pub type RunResult = (types::Outcome,);

impl From<Action> for types::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::Run => Self::Run,
            Action::FormatArguments => Self::FormatArguments,
        }
    }
}

impl From<types::Action> for Action {
    fn from(action: types::Action) -> Self {
        match action {
            types::Action::Run => Self::Run,
            types::Action::FormatArguments => Self::FormatArguments,
        }
    }
}

impl From<Context> for types::Context {
    fn from(context: Context) -> Self {
        Self { root: context.root, action: context.action.into() }
    }
}

impl From<types::Context> for Context {
    fn from(context: types::Context) -> Self {
        Self { root: context.root, action: context.action.into() }
    }
}

impl From<ErrorInfo> for types::ErrorInfo {
    fn from(error: ErrorInfo) -> Self {
        Self { message: error.message, trace: error.trace, transient: error.transient }
    }
}

impl From<types::ErrorInfo> for ErrorInfo {
    fn from(error: types::ErrorInfo) -> Self {
        Self { message: error.message, trace: error.trace, transient: error.transient }
    }
}

impl From<Question> for types::Question {
    fn from(question: Question) -> Self {
        Self {
            id: question.id,
            text: question.text,
            answer_type: question.answer_type.write_marked(&QuestionMarks {
                is_consent: question.is_consent,
                class: question.class,
            }),
            default: question.default,
        }
    }
}

impl TryFrom<types::Question> for Question {
    type Error = AnswerError;

    fn try_from(question: types::Question) -> Result<Self, Self::Error> {
        let bounded = |part, text: &str, limit: usize| {
            let bytes = |size: usize| ByteSize::bytes(size as u64);
            match text.len() > limit {
                true => {
                    let (size, limit) = (bytes(text.len()), bytes(limit));
                    Err(AnswerError::TooLong { part, size, limit })
                }
                false => Ok(()),
            }
        };
        bounded("id", &question.id, QUESTION_ID_BYTES)?;
        bounded("text", &question.text, QUESTION_TEXT_BYTES)?;
        bounded("default", question.default.as_deref().unwrap_or(""), QUESTION_TEXT_BYTES)?;
        bounded("answer-type", &question.answer_type, ANSWER_TYPE_BYTES)?;
        let (answer_type, marks) = AnswerType::read_marked(&question.answer_type)?;
        let QuestionMarks { is_consent, class } = marks;
        let types::Question { id, text, default, .. } = question;
        Ok(Self { id, text, answer_type, default, is_consent, class, asker: None, approval: None })
    }
}

impl From<Outcome> for types::Outcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success(content) => Self::Success(content),
            Outcome::Error(error) => Self::Error(error.into()),
            Outcome::NeedsInput(question) => Self::NeedsInput(question.into()),
        }
    }
}

impl TryFrom<types::Outcome> for Outcome {
    type Error = AnswerError;

    /// Fails only if a question has an answer type that the contract does not define, or an id or
    /// type that is too long.
    fn try_from(outcome: types::Outcome) -> Result<Self, AnswerError> {
        Ok(match outcome {
            types::Outcome::Success(content) => Self::Success(content),
            types::Outcome::Error(error) => Self::Error(error.into()),
            types::Outcome::NeedsInput(question) => Self::NeedsInput(question.try_into()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn outcomes() -> impl Strategy<Value = Outcome> {
        let error = (".*", prop::collection::vec(".*", 0..4), any::<bool>())
            .prop_map(|(message, trace, transient)| ErrorInfo { message, trace, transient });
        let kind = prop_oneof![
            Just(AnswerType::Boolean),
            Just(AnswerType::Text),
            Just(r#"{"select":{"options":["a",{"value":1,"title":"b"}]}}"#.parse().unwrap()),
        ];
        let question = (".*", ".*", kind, prop::option::of(".*"), any::<bool>()).prop_map(
            |(id, text, answer_type, default, is_consent)| Question {
                id,
                text,
                answer_type,
                default,
                is_consent,
                class: is_consent.then(|| "db:drop".to_owned()),
                asker: None,
                approval: None,
            },
        );
        prop_oneof![
            ".*".prop_map(Outcome::Success),
            error.prop_map(Outcome::Error),
            question.prop_map(Outcome::NeedsInput),
        ]
    }

    proptest! {
        #[test]
        fn outcomes_survive_a_round_trip(outcome in outcomes()) {
            let there = types::Outcome::from(outcome.clone());
            prop_assert_eq!(Outcome::try_from(there).unwrap(), outcome);
        }

        #[test]
        fn contexts_survive_a_round_trip(root in ".*", formats in any::<bool>()) {
            let action = if formats { Action::FormatArguments } else { Action::Run };
            let context = Context { root, action };
            prop_assert_eq!(Context::from(types::Context::from(context.clone())), context);
        }
    }

    #[test]
    fn unknown_answer_types_are_refused_by_name() {
        let question = types::Question {
            id: "q".into(),
            text: "?".into(),
            answer_type: "colour".into(),
            default: None,
        };
        let error = Outcome::try_from(types::Outcome::NeedsInput(question)).unwrap_err();
        assert_eq!(error, AnswerError::UnknownType("colour".into()));
    }

    #[test]
    fn oversized_questions_are_refused() {
        let check = |sizes: [usize; 4], expected: Option<&str>| {
            let [id, text, options, default] = sizes;
            let question = types::Question {
                id: "q".repeat(id),
                text: "t".repeat(text),
                answer_type: format!(r#"{{"select":{{"options":["{}"]}}}}"#, "o".repeat(options)),
                default: Some("d".repeat(default)),
            };
            let part = match Outcome::try_from(types::Outcome::NeedsInput(question)) {
                Ok(_) => None,
                Err(AnswerError::TooLong { part, .. }) => Some(part),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(part, expected);
        };
        check([QUESTION_ID_BYTES, QUESTION_TEXT_BYTES, 100, QUESTION_TEXT_BYTES], None);
        check([QUESTION_ID_BYTES + 1, 1, 100, 1], Some("id"));
        check([1, QUESTION_TEXT_BYTES + 1, 100, 1], Some("text"));
        check([1, 1, ANSWER_TYPE_BYTES, 1], Some("answer-type"));
        check([1, 1, 100, QUESTION_TEXT_BYTES + 1], Some("default"));
    }
}
