//! Questions to a person, with the type of the answer.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::marker::PhantomData;

use serde_json::{Map, Value, json};

use crate::bindings::kitbag::tool::types::{ErrorInfo, Question};
use crate::stop::Stop;

/// A question to a person with an answer of type `T`, for [`Call::ask`](crate::Call::ask).
///
/// ```
/// use kitbag_sdk::{Ask, Call, Stop};
///
/// fn colour(call: &Call) -> Result<String, Stop> {
///     let colours = ["red", "blue"];
///     call.ask(Ask::select("colour", "Which colour?", colours).suggest(&"blue".to_owned()))
/// }
/// # let call = Call::new("paint", "/", "{}", r#"{"colour":"red"}"#);
/// # assert_eq!(colour(&call).unwrap(), "red");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ask<T> {
    question: Question,
    /// The options; `None` if any answer is valid.
    values: Option<Vec<String>>,
    answer: PhantomData<T>,
}

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The value that the tool receives if a person chooses the option.
    pub value: String,
    /// The label for people; `None` if it is the value itself.
    pub title: Option<String>,
}

/// The types of answers: `bool`, `String`, `i64`, `f64`, `Vec<String>`, and a JSON object for a
/// form.
pub trait Answer: Sized + sealed::Sealed {
    /// Converts an answer; `None` if it has another type.
    #[doc(hidden)]
    fn from_json(answer: &Value) -> Option<Self>;

    /// Formats a suggestion, as text or JSON.
    #[doc(hidden)]
    fn to_default(&self) -> String;

    /// Returns the chosen options if the answer is a choice.
    #[doc(hidden)]
    fn chosen(&self) -> &[String] {
        &[]
    }
}

impl Ask<bool> {
    /// Asks for yes or no.
    pub fn boolean(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, text, "boolean".into(), None)
    }

    /// Asks for a person's consent, yes or no, before something that is hard to undo. A model
    /// cannot answer it, only a person, a preset answer (`tools.<name>.answers`, `--answer`) or the
    /// program that embeds kitbag.
    pub fn consent(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, text, r#"{"boolean":{},"consent":true}"#.into(), None)
    }
}

impl Ask<i64> {
    /// Asks for an integer.
    pub fn integer(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, text, "integer".into(), None)
    }
}

impl Ask<f64> {
    /// Asks for a number.
    pub fn number(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, text, "number".into(), None)
    }
}

impl Ask<String> {
    /// Asks for text.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, text, "text".into(), None)
    }

    /// Asks for one of several options: values, or pairs of a value and a title.
    pub fn select<C: Into<Choice>>(
        id: impl Into<String>,
        text: impl Into<String>,
        options: impl IntoIterator<Item = C>,
    ) -> Self {
        Self::of_options(id, text, "select", options)
    }
}

impl Ask<Vec<String>> {
    /// Asks for any of several options: values, or pairs of a value and a title.
    pub fn multi_select<C: Into<Choice>>(
        id: impl Into<String>,
        text: impl Into<String>,
        options: impl IntoIterator<Item = C>,
    ) -> Self {
        Self::of_options(id, text, "multi-select", options)
    }
}

impl Ask<Map<String, Value>> {
    /// Asks for several answers. Each field is a JSON object as in the contract: `id`, `type`, and
    /// optionally `title`, `description`, `default`, `required`. The answer has the answered
    /// fields, by id.
    ///
    /// ```
    /// use kitbag_sdk::{Ask, json};
    ///
    /// let sizes = json!({ "select": { "options": ["small", "large"] } });
    /// let ask = Ask::form("order", "What shall it be?", [
    ///     json!({ "id": "name", "type": "text" }),
    ///     json!({ "id": "size", "type": sizes, "default": "small", "required": false }),
    /// ]);
    /// ```
    pub fn form(
        id: impl Into<String>,
        text: impl Into<String>,
        fields: impl IntoIterator<Item = Value>,
    ) -> Self {
        let fields: Vec<_> = fields.into_iter().collect();
        Self::new(id, text, json!({ "form": { "fields": fields } }).to_string(), None)
    }
}

impl<T: Answer> Ask<T> {
    /// Suggests an answer to the person. A suggestion is never used as an answer.
    #[must_use]
    pub fn suggest(mut self, answer: &T) -> Self {
        self.question.default = Some(answer.to_default());
        self
    }

    /// Names the subject of the question for a person's rules: `db:drop` may be denied, or never be
    /// answered by a preset. Letters, digits, `:`, `_`, `-` and `.`, at most 64 of them.
    #[must_use]
    pub fn class(mut self, class: &str) -> Self {
        let answer_type = &mut self.question.answer_type;
        let mut object = match serde_json::from_str(answer_type) {
            Ok(Value::Object(object)) => object,
            _ => Map::from_iter([(answer_type.clone(), json!({}))]),
        };
        object.insert("class".to_owned(), class.into());
        *answer_type = Value::Object(object).to_string();
        self
    }

    /// Returns the question in the form of the contract.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Finds the answer among the previous ones, by the question's id.
    pub(crate) fn answered_by(self, answers: &Map<String, Value>) -> Result<T, Stop> {
        let Some(answer) = answers.get(&self.question.id) else {
            return Err(self.question.into());
        };
        let can_be_chosen = |answer: &T| {
            let Some(values) = &self.values else { return true };
            answer.chosen().iter().all(|value| values.contains(value))
        };
        T::from_json(answer).filter(can_be_chosen).ok_or_else(|| {
            let Question { id, answer_type, .. } = &self.question;
            ErrorInfo::new(format!(
                "the answer to `{id}` is {answer}, which is not a {answer_type}"
            ))
            .into()
        })
    }

    fn new(
        id: impl Into<String>,
        text: impl Into<String>,
        answer_type: String,
        values: Option<Vec<String>>,
    ) -> Self {
        let question = Question { id: id.into(), text: text.into(), answer_type, default: None };
        Self { question, values, answer: PhantomData }
    }

    fn of_options<C: Into<Choice>>(
        id: impl Into<String>,
        text: impl Into<String>,
        kind: &str,
        options: impl IntoIterator<Item = C>,
    ) -> Self {
        let options: Vec<Choice> = options.into_iter().map(Into::into).collect();
        let shown: Vec<Value> = options
            .iter()
            .map(|option| match &option.title {
                Some(title) => json!({ "value": option.value, "title": title }),
                None => Value::from(option.value.as_str()),
            })
            .collect();
        let values = options.into_iter().map(|option| option.value).collect();
        Self::new(id, text, json!({ kind: { "options": shown } }).to_string(), Some(values))
    }
}

impl From<&str> for Choice {
    fn from(value: &str) -> Self {
        Self { value: value.to_owned(), title: None }
    }
}

impl From<String> for Choice {
    fn from(value: String) -> Self {
        Self { value, title: None }
    }
}

impl<V: Into<String>, T: Into<String>> From<(V, T)> for Choice {
    fn from((value, title): (V, T)) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }
}

impl Answer for bool {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_bool()
    }

    fn to_default(&self) -> String {
        self.to_string()
    }
}

impl Answer for i64 {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_i64()
    }

    fn to_default(&self) -> String {
        self.to_string()
    }
}

impl Answer for f64 {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_f64()
    }

    fn to_default(&self) -> String {
        self.to_string()
    }
}

impl Answer for String {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_str().map(ToOwned::to_owned)
    }

    fn to_default(&self) -> String {
        self.clone()
    }

    fn chosen(&self) -> &[String] {
        core::slice::from_ref(self)
    }
}

impl Answer for Vec<String> {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_array()?.iter().map(String::from_json).collect()
    }

    fn to_default(&self) -> String {
        Value::from(self.as_slice()).to_string()
    }

    fn chosen(&self) -> &[String] {
        self
    }
}

impl Answer for Map<String, Value> {
    fn from_json(answer: &Value) -> Option<Self> {
        answer.as_object().cloned()
    }

    fn to_default(&self) -> String {
        Value::Object(self.clone()).to_string()
    }
}

mod sealed {
    use alloc::string::String;
    use alloc::vec::Vec;

    use serde_json::{Map, Value};

    /// Restricts answers to the types of the contract.
    pub trait Sealed {}

    impl Sealed for bool {}
    impl Sealed for i64 {}
    impl Sealed for f64 {}
    impl Sealed for String {}
    impl Sealed for Vec<String> {}
    impl Sealed for Map<String, Value> {}
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use core::fmt;

    use super::*;

    #[track_caller]
    fn check_type<T: Answer>(ask: &Ask<T>, answer_type: &str, default: Option<&str>) {
        assert_eq!(ask.question().answer_type, answer_type);
        assert_eq!(ask.question().default.as_deref(), default);
    }

    #[track_caller]
    fn check_answer<T>(ask: Ask<T>, answer: Value, expected: Option<T>)
    where
        T: Answer + PartialEq + fmt::Debug,
    {
        let answers = Map::from_iter([("q".to_owned(), answer)]);
        assert_eq!(ask.answered_by(&answers).ok(), expected);
    }

    #[test]
    fn questions_declare_their_answer_type() {
        check_type(&Ask::boolean("q", "").suggest(&true), "boolean", Some("true"));
        check_type(&Ask::consent("q", ""), r#"{"boolean":{},"consent":true}"#, None);
        let dropping = Ask::consent("q", "").class("db:drop");
        check_type(&dropping, r#"{"boolean":{},"class":"db:drop","consent":true}"#, None);
        check_type(&Ask::text("q", "").class("a"), r#"{"class":"a","text":{}}"#, None);
        check_type(&Ask::text("q", "").suggest(&"a b".into()), "text", Some("a b"));
        check_type(&Ask::integer("q", "").suggest(&-3), "integer", Some("-3"));
        check_type(&Ask::number("q", "").suggest(&0.5), "number", Some("0.5"));
        check_type(
            &Ask::select("q", "", [("a", "First"), ("b", "Second")]),
            r#"{"select":{"options":[{"title":"First","value":"a"},{"title":"Second","value":"b"}]}}"#,
            None,
        );
        check_type(
            &Ask::multi_select("q", "", ["a", "b"]).suggest(&vec!["a".into(), "b".into()]),
            r#"{"multi-select":{"options":["a","b"]}}"#,
            Some(r#"["a","b"]"#),
        );
        check_type(
            &Ask::form("q", "", [json!({ "id": "a", "type": "text" })]),
            r#"{"form":{"fields":[{"id":"a","type":"text"}]}}"#,
            None,
        );
    }

    #[test]
    fn answers_must_have_the_requested_type() {
        check_answer(Ask::boolean("q", ""), json!(false), Some(false));
        check_answer(Ask::boolean("q", ""), json!("false"), None);
        check_answer(Ask::text("q", ""), json!("a"), Some("a".into()));
        check_answer(Ask::text("q", ""), json!(null), None);
        check_answer(Ask::integer("q", ""), json!(3), Some(3));
        check_answer(Ask::integer("q", ""), json!(3.5), None);
        check_answer(Ask::number("q", ""), json!(3), Some(3.0));
        check_answer(Ask::select("q", "", ["a", "b"]), json!("b"), Some("b".into()));
        check_answer(Ask::select("q", "", ["a", "b"]), json!("c"), None);
        check_answer(Ask::multi_select("q", "", ["a", "b"]), json!([]), Some(vec![]));
        check_answer(Ask::multi_select("q", "", ["a", "b"]), json!(["b"]), Some(vec!["b".into()]));
        check_answer(Ask::multi_select("q", "", ["a", "b"]), json!(["b", 1]), None);
        check_answer(Ask::multi_select("q", "", ["a", "b"]), json!(["c"]), None);
        check_answer(Ask::form("q", "", []), json!({}), Some(Map::new()));
        check_answer(Ask::form("q", "", []), json!("a"), None);
    }

    #[test]
    fn wrong_answers_are_named_with_the_expected_type() {
        let answers = Map::from_iter([("q".to_owned(), json!("maybe"))]);
        assert_eq!(
            Ask::boolean("q", "").answered_by(&answers),
            Err(Stop::Error(ErrorInfo::new(
                "the answer to `q` is \"maybe\", which is not a boolean"
            )))
        );
    }

    #[test]
    fn unanswered_questions_stop_the_call() {
        let ask = Ask::text("q", "Why?");
        let question = ask.question().clone();
        assert_eq!(ask.answered_by(&Map::new()), Err(Stop::Question(question)));
    }
}
