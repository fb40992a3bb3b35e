//! The building blocks of a tool for kitbag.
//!
//! A tool is a WebAssembly component. Every call has a new instance, which can access only its
//! grants. This crate contains the bindings of the contract (`wit/tool.wit`) and one trait to
//! implement.
//!
//! ```
//! use kitbag_sdk::{Ask, Call, Description, ErrorInfo, Stop, Tool, json};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Arguments {
//!     path: String,
//! }
//!
//! struct Erase;
//!
//! impl Tool for Erase {
//!     type Arguments = Arguments;
//!
//!     fn describe() -> Description {
//!         Description::new("erase")
//!             .description("Erase a file of the workspace.")
//!             .arguments(json!({ "path": { "type": "string" } }), &["path"])
//!             .grants(json!({
//!                 "filesystem": [{ "guest": "/workspace", "mode": "rw" }],
//!             }))
//!     }
//!
//!     fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
//!         let path = arguments.path;
//!         // Ask before acting: with the answer, the tool runs again from the start.
//!         if !call.ask(Ask::boolean("sure", format!("Erase `{path}`?")))? {
//!             return Ok(format!("`{path}` was left as it is"));
//!         }
//!         std::fs::remove_file(call.path(&path))
//!             .map_err(|error| ErrorInfo::new(format!("cannot erase `{path}`: {error}")))?;
//!         Ok(format!("`{path}` was erased"))
//!     }
//!
//!     fn format_arguments(_: &Call, arguments: Arguments) -> String {
//!         format!("erase {}", arguments.path)
//!     }
//! }
//!
//! kitbag_sdk::export!(Erase);
//! ```
//!
//! The crate type is `cdylib`, and the build is `cargo build --release --target wasm32-wasip2`. The
//! result is the component.
//!
//! [`host`] is for a tool that reports progress or emits content besides text; [`tools`] is for a
//! tool that calls other tools.
//!
//! Every tool of this crate exports `describe`, so it needs no configuration. To export only `run`,
//! as the contract allows, use `wit-bindgen` with the world `tool` instead of this crate.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ask;
#[expect(
    missing_docs,
    clippy::too_many_arguments,
    reason = "generated; the documentation is in `wit/tool.wit`"
)]
pub mod bindings;
mod description;
pub mod host;
#[cfg(feature = "schema")]
mod schema;
mod stop;
pub mod tools;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use crate::ask::{Answer, Ask, Choice};
pub use crate::bindings::kitbag::tool::types::{Action, Context, ErrorInfo, Outcome, Question};
pub use crate::description::Description;
pub use crate::stop::Stop;
#[cfg(feature = "schema")]
pub use schemars;
pub use serde_json::{self, json};

/// Exports a [`Tool`] as the component's `run` and `describe`.
///
/// ```ignore
/// kitbag_sdk::export!(Erase);
/// ```
#[doc(inline)]
pub use crate::bindings::export_tool as export;

/// Writes a description into the component's section `kitbag:describe`.
///
/// kitbag reads the section without running the tool, which it would otherwise call once for each
/// build. The text must be known at compile time, so it must be in a file or a constant. Let
/// [`Tool::describe`] read the same text: if they differ, the section takes precedence.
///
/// ```
/// use kitbag_sdk::Description;
///
/// const DESCRIPTION: &str = r#"{ "name": "clock", "description": "Tell the time." }"#;
///
/// kitbag_sdk::describe_section!(DESCRIPTION);
///
/// fn describe() -> Description {
///     Description::from_json(DESCRIPTION)
/// }
/// # assert_eq!(describe(), Description::new("clock").description("Tell the time."));
/// ```
#[macro_export]
macro_rules! describe_section {
    ($text:expr $(,)?) => {
        const _: &str = $text;
        #[cfg(target_family = "wasm")]
        const _: () = {
            const TEXT: &str = $text;
            #[used]
            #[unsafe(link_section = "kitbag:describe")]
            static SECTION: [u8; TEXT.len()] = $crate::bytes_of(TEXT);
        };
    };
}

/// Returns the bytes of a string, for [`describe_section!`].
#[doc(hidden)]
pub const fn bytes_of<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes.copy_from_slice(text.as_bytes());
    bytes
}

/// The trait that a tool implements.
pub trait Tool {
    /// The arguments of a call.
    ///
    /// Arguments that do not match are answered with `invalid arguments: …`; put
    /// `#[serde(deny_unknown_fields)]` on the type, so that a misspelled argument is not ignored.
    /// [`serde_json::Value`] accepts everything.
    type Arguments: DeserializeOwned;

    /// Describes the tool. Called once for each build of the tool, without grants.
    fn describe() -> Description;

    /// Runs one call.
    ///
    /// # Errors
    ///
    /// [`Stop`] ends the call before there is a result.
    fn run(call: &Call, arguments: Self::Arguments) -> Result<String, Stop>;

    /// Renders a call as one line for the person who must approve it. This run has no grants, so it
    /// must not access files.
    ///
    /// Default: the tool's name and its arguments as JSON.
    fn format_arguments(call: &Call, arguments: Self::Arguments) -> String {
        let _ = arguments;
        // Parsed and formatted again, since the text may contain line breaks.
        let arguments: Value = serde_json::from_str(call.arguments_json()).unwrap_or_default();
        format!("{} {arguments}", call.name())
    }
}

/// One call, as the tool sees it.
#[derive(Clone, Debug)]
pub struct Call {
    name: String,
    root: String,
    arguments: String,
    answers: String,
}

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// The tool with this name.
    Tool(&'a str),
    /// The prompt with this name, with its own arguments. The text becomes a message of the user,
    /// after the messages of emitted content.
    Prompt(&'a str),
    /// The resource whose `uri` is in the arguments. Its content is the text, or the emitted
    /// content.
    Resource,
}

impl Call {
    /// Creates a call, to test a tool without a host. `arguments` and `answers` are JSON objects.
    pub fn new(
        name: impl Into<String>,
        root: impl Into<String>,
        arguments: impl Into<String>,
        answers: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            root: root.into(),
            arguments: arguments.into(),
            answers: answers.into(),
        }
    }

    /// Returns the name under which the tool was called. One component may provide several tools.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the purpose of the call, for a component that also serves prompts and resources.
    pub fn target(&self) -> Target<'_> {
        match (self.name.strip_prefix("prompt/"), &*self.name) {
            (Some(prompt), _) => Target::Prompt(prompt),
            (None, "resource/read") => Target::Resource,
            (None, tool) => Target::Tool(tool),
        }
    }

    /// Returns the working directory, as a guest path: `/workspace` if that is granted, otherwise
    /// the first granted directory, otherwise `/`.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Resolves a path of the arguments relative to [`root`](Self::root). It is not checked: the
    /// host refuses paths outside the grants.
    pub fn path(&self, relative: &str) -> String {
        match relative.starts_with('/') {
            true => relative.to_owned(),
            false => format!("{}/{relative}", self.root.trim_end_matches('/')),
        }
    }

    /// Returns the arguments as received, a JSON object.
    pub fn arguments_json(&self) -> &str {
        &self.arguments
    }

    /// Returns the previous answers as received, a JSON object by question.
    pub fn answers_json(&self) -> &str {
        &self.answers
    }

    /// Returns the answer to a question, if it was answered before.
    ///
    /// # Errors
    ///
    /// [`Stop::Question`] if there is no answer yet: return it with `?`, and the tool runs again
    /// with the answer. [`Stop::Error`] if the answer does not have the requested type.
    pub fn ask<T: Answer>(&self, ask: Ask<T>) -> Result<T, Stop> {
        let answers: Map<String, Value> = serde_json::from_str(&self.answers)
            .map_err(|error| ErrorInfo::new(format!("invalid answers: {}", in_words(&error))))?;
        ask.answered_by(&answers)
    }

    /// Converts the arguments to the tool's type.
    ///
    /// # Errors
    ///
    /// `invalid arguments: …` with the name of the argument, not transient.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ErrorInfo> {
        serde_json::from_str(&self.arguments).map_err(|error| {
            let why = in_words(&error);
            let is_named = |key: &str| {
                ["`", "."].map(|end| format!("`{key}{end}")).iter().any(|it| why.contains(it))
            };
            let named = match culprit::<T>(&self.arguments, &why) {
                Some(key) if !is_named(&key) => format!("`{key}`: {why}"),
                _ => why,
            };
            ErrorInfo::new(format!("invalid arguments: {named}"))
        })
    }
}

impl<T: Tool> bindings::Guest for T {
    fn run(context: Context, name: String, arguments: String, answers: String) -> Outcome {
        let call = Call { name, root: context.root, arguments, answers };
        let result = match (call.arguments(), context.action) {
            (Ok(arguments), Action::Run) => T::run(&call, arguments),
            (Ok(arguments), Action::FormatArguments) => Ok(T::format_arguments(&call, arguments)),
            (Err(error), _) => Err(error.into()),
        };
        result.into()
    }

    fn describe() -> String {
        T::describe().to_string()
    }
}

/// Returns the argument that causes the error: without it, there is none or a different one.
fn culprit<T: DeserializeOwned>(arguments: &str, why: &str) -> Option<String> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let is_culprit = |key: &&String| {
        let rest = arguments.iter().filter(|(other, _)| other != key);
        let rest: Map<_, _> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
        match serde_json::from_str::<T>(&Value::Object(rest).to_string()) {
            Ok(_) => true,
            Err(error) => in_words(&error) != why,
        }
    };
    arguments.keys().find(is_culprit).cloned()
}

/// Formats an error of `serde_json` for a model: without the line and column at its end, since the
/// model has not seen the text, and without Rust types.
fn in_words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&position).unwrap_or(&text);
    // Components have 32-bit addresses.
    let types = [
        ("u8", 0, u64::from(u8::MAX)),
        ("u16", 0, u64::from(u16::MAX)),
        ("u32", 0, u64::from(u32::MAX)),
        ("u64", 0, u64::MAX),
        ("usize", 0, u64::from(u32::MAX)),
        ("i8", i64::from(i8::MIN), i8::MAX as u64),
        ("i16", i64::from(i16::MIN), i16::MAX as u64),
        ("i32", i64::from(i32::MIN), i32::MAX as u64),
        ("i64", i64::MIN, i64::MAX as u64),
        ("isize", i64::from(i32::MIN), i32::MAX as u64),
    ];
    let (found, expected) = text.rsplit_once("expected ").unwrap_or((text, ""));
    match types.iter().find(|(name, ..)| *name == expected) {
        Some((_, least, most)) => format!("{found}expected a whole number from {least} to {most}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::Guest;

    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        word: String,
        #[serde(default)]
        from: usize,
    }

    struct Repeat;

    impl Tool for Repeat {
        type Arguments = Arguments;

        fn describe() -> Description {
            Description::new("repeat").title("Repeat")
        }

        fn run(call: &Call, arguments: Arguments) -> Result<String, Stop> {
            let times = call.ask(Ask::integer("times", "How often?").suggest(&2))?;
            let times = usize::try_from(times)
                .map_err(|cause| ErrorInfo::new("cannot repeat that often").caused_by(cause))?;
            Ok(arguments.word[arguments.from..].repeat(times))
        }
    }

    fn call(action: Action, arguments: &str, answers: &str) -> Outcome {
        let context = Context { root: "/workspace".into(), action };
        <Repeat as Guest>::run(context, "repeat".into(), arguments.into(), answers.into())
    }

    #[track_caller]
    fn check_error(outcome: Outcome, message: &str) {
        assert_eq!(outcome, Outcome::Error(ErrorInfo::new(message)));
    }

    #[test]
    fn tools_ask_first_and_act_on_the_answer() {
        let question = Question {
            id: "times".into(),
            text: "How often?".into(),
            answer_type: "integer".into(),
            default: Some("2".into()),
        };
        let arguments = r#"{"word":"ab"}"#;
        assert_eq!(call(Action::Run, arguments, "{}"), Outcome::NeedsInput(question));
        assert_eq!(
            call(Action::Run, arguments, r#"{"times":3}"#),
            Outcome::Success("ababab".into())
        );
    }

    #[test]
    fn errors_have_causes_and_are_not_transient() {
        let Outcome::Error(error) = call(Action::Run, r#"{"word":"ab"}"#, r#"{"times":-1}"#) else {
            panic!("no error");
        };
        assert_eq!(error.message, "cannot repeat that often");
        assert_eq!(error.trace, ["out of range integral type conversion attempted"]);
        assert!(!error.transient);
        assert!(error.transient().transient);
    }

    #[test]
    fn invalid_arguments_are_errors_without_a_position() {
        for action in [Action::Run, Action::FormatArguments] {
            check_error(call(action, "{}", "{}"), "invalid arguments: missing field `word`");
            check_error(
                call(action, r#"{"word":1}"#, "{}"),
                "invalid arguments: `word`: invalid type: integer `1`, expected a string",
            );
            check_error(
                call(action, r#"{"word":"a","wrod":1}"#, "{}"),
                "invalid arguments: unknown field `wrod`, expected `word` or `from`",
            );
            check_error(
                call(action, r#"{"word":"a","from":-1}"#, "{}"),
                "invalid arguments: `from`: invalid value: integer `-1`, expected a whole number from \
                 0 to 4294967295",
            );
            check_error(call(action, "{", "{}"), "invalid arguments: EOF while parsing an object");
        }
    }

    #[test]
    fn invalid_answers_are_errors() {
        check_error(
            call(Action::Run, r#"{"word":"a"}"#, "[]"),
            "invalid answers: invalid type: sequence, expected a map",
        );
    }

    #[test]
    fn arguments_are_rendered_as_one_line_by_default() {
        assert_eq!(
            call(Action::FormatArguments, "{\n\"word\": \"a\\nb\"\n}", "{}"),
            Outcome::Success(r#"repeat {"word":"a\nb"}"#.into())
        );
    }

    #[test]
    fn descriptions_are_json_objects() {
        assert_eq!(<Repeat as Guest>::describe(), r#"{"name":"repeat","title":"Repeat"}"#);
    }

    #[test]
    fn call_names_determine_the_target() {
        let check = |name: &str, expected: Target<'_>| {
            assert_eq!(Call::new(name, "/", "{}", "{}").target(), expected);
        };
        check("resource", Target::Tool("resource"));
        check("resource/read", Target::Resource);
        check("prompt", Target::Tool("prompt"));
        check("prompt/a/b", Target::Prompt("a/b"));
    }

    #[test]
    fn paths_are_relative_to_the_root() {
        let call = Call::new("repeat", "/workspace", "{}", "{}");
        assert_eq!(call.path("a/b"), "/workspace/a/b");
        assert_eq!(call.path("/tmp/a"), "/tmp/a");
        assert_eq!(Call::new("repeat", "/", "{}", "{}").path("a"), "/a");
    }
}
