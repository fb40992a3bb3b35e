//! The kinds of answer that a tool can ask for.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use kitbag_base::ByteSize;
use kitbag_base::json::{self as strict, JsonBudget};
use kitbag_base::text::shown;

/// The longest class of a question, in bytes.
pub const QUESTION_CLASS_BYTES: usize = 64;

/// The kind of answer that a question accepts.
///
/// Parsed from and formatted as the contract's `answer-type`; parsing ignores case.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerType {
    /// Yes or no.
    Boolean,
    /// Free text.
    Text,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// One of several options.
    Select(Vec<Choice>),
    /// Any of several options.
    MultiSelect(Vec<Choice>),
    /// Several answers in an object with one entry per field.
    Form(Vec<Field>),
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The key of the answer in the object.
    pub id: String,
    /// The label that a person sees instead of the id. Untrusted text.
    pub title: Option<String>,
    /// Help for the person who answers. Untrusted text.
    pub description: Option<String>,
    /// The kind of answer. Never a form.
    pub kind: AnswerType,
    /// The suggested value. Never used as an answer.
    pub default: Option<Value>,
    /// True if an answer is required. Default: true.
    pub is_required: bool,
    /// True if options are titled with `enumNames`, which clients read before JSON Schema had
    /// titled options. Default: false.
    pub is_legacy: bool,
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The value that the tool receives if a person chooses the option.
    pub value: Value,
    /// The label that a person sees. Untrusted text.
    pub title: String,
}

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Text that a person typed.
    Text(String),
    /// A value.
    Json(Value),
}

/// The error for an answer or an answer type that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The tool requested an answer type that the contract does not define.
    #[error(
        "answer type `{}` is not known; the contract has `boolean`, `text`, `integer`, `number`, \
         `{{\"select\":…}}`, `{{\"multi-select\":…}}` and `{{\"form\":…}}`", shown(.0)
    )]
    UnknownType(String),
    /// A part of the question is too long.
    #[error("the {part} of a question has {size}, which exceeds the limit of {limit}")]
    TooLong {
        /// The part: `id`, `text`, `answer-type` or `default`.
        part: &'static str,
        /// The size of the part.
        size: ByteSize,
        /// The limit for the part.
        limit: ByteSize,
    },
    /// The answer for one field of a form is not valid.
    #[error("the field `{}`: {problem}", shown(field))]
    Field {
        /// The field's id.
        field: String,
        /// The error of the field's answer.
        problem: Box<AnswerError>,
    },
    /// The answer does not match the kind that the question accepts.
    #[error("`{}` is not {expected}", shown(given))]
    Mismatch {
        /// The answer as it was given.
        given: String,
        /// The expected answer, as a noun phrase.
        expected: String,
    },
}

impl AnswerError {
    /// Returns the strings of the tool or the answer that the message repeats.
    pub fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::UnknownType(text) | Self::Mismatch { given: text, expected: _ } => vec![text],
            Self::TooLong { .. } => Vec::new(),
            Self::Field { field, problem } => {
                [field].into_iter().chain(problem.texts_mut()).collect()
            }
        }
    }
}

/// Marks of a question besides the kind of its answer.
#[cfg(any(test, feature = "bindings"))]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuestionMarks {
    pub(crate) is_consent: bool,
    pub(crate) class: Option<String>,
}

/// Returns true if a string is a valid question class: letters, digits, `:`, `_`, `-` and `.`.
pub fn is_class(text: &str) -> bool {
    (1..=QUESTION_CLASS_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":_-.".contains(&byte))
}

impl AnswerType {
    /// Checks an answer and converts it to the value that the tool receives.
    ///
    /// An option is named by its value or title, ignoring case. Several typed options are separated
    /// by commas or given as a JSON array. A form is typed as a JSON object.
    ///
    /// # Errors
    ///
    /// [`AnswerError::Mismatch`] describes the expected answer; [`AnswerError::Field`] names the
    /// field.
    pub fn check(&self, answer: &Answer) -> Result<Value, AnswerError> {
        match answer {
            Answer::Text(text) => self.parse_answer(text),
            Answer::Json(value) => self.check_answer(value),
        }
    }

    /// Parses the contract's `answer-type` into the kind of answer and the marks of the question.
    ///
    /// # Errors
    ///
    /// [`AnswerError::UnknownType`] contains the whole string.
    #[cfg(any(test, feature = "bindings"))]
    pub(crate) fn read_marked(text: &str) -> Result<(Self, QuestionMarks), AnswerError> {
        let Ok(Value::Object(mut object)) = read(text) else {
            return text.parse().map(|kind| (kind, QuestionMarks::default()));
        };
        let unknown = || AnswerError::UnknownType(text.to_owned());
        let mut take = |name: &str| {
            let key = object.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
            key.and_then(|key| object.remove(&key))
        };
        let is_consent = match take("consent") {
            None => false,
            Some(consent) => consent.as_bool().ok_or_else(unknown)?,
        };
        let class = match take("class") {
            None => None,
            Some(Value::String(class)) if is_class(&class) => Some(class),
            Some(_) => return Err(unknown()),
        };
        let kind = Self::from_object(&object).ok_or_else(unknown)?;
        Ok((kind, QuestionMarks { is_consent, class }))
    }

    /// Formats the string that [`Self::read_marked`] parses.
    #[cfg(any(test, feature = "bindings"))]
    pub(crate) fn write_marked(&self, marks: &QuestionMarks) -> String {
        let kind = self.to_string();
        if *marks == QuestionMarks::default() {
            return kind;
        }
        let mut object = match serde_json::from_str(&kind) {
            Ok(Value::Object(object)) => object,
            _ => Map::from_iter([(kind, json!({}))]),
        };
        if marks.is_consent {
            object.insert("consent".into(), true.into());
        }
        if let Some(class) = &marks.class {
            object.insert("class".into(), class.as_str().into());
        }
        Value::Object(object).to_string()
    }

    /// Returns the kind without options that has a name, ignoring case.
    fn from_name(name: &str) -> Option<Self> {
        match name.to_lowercase().as_str() {
            "boolean" => Some(Self::Boolean),
            "text" => Some(Self::Text),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            _ => None,
        }
    }

    /// Parses a kind from an object that maps its name to its options. A kind without options has
    /// an empty object.
    fn from_object(object: &Map<String, Value>) -> Option<Self> {
        let [(kind, body)] = object.iter().collect::<Vec<_>>()[..] else { return None };
        if let Some(plain) = Self::from_name(kind) {
            return body.as_object().is_some_and(Map::is_empty).then_some(plain);
        }
        if kind.eq_ignore_ascii_case("form") {
            return fields(body).map(Self::Form);
        }
        let options = member(body, "options")?.as_array()?;
        let choices = options.iter().map(choice).collect::<Option<Vec<_>>>()?;
        match kind.to_lowercase().as_str() {
            _ if choices.is_empty() => None,
            "select" => Some(Self::Select(choices)),
            "multi-select" => Some(Self::MultiSelect(choices)),
            _ => None,
        }
    }

    fn parse_answer(&self, text: &str) -> Result<Value, AnswerError> {
        let trimmed = text.trim();
        let answer = match self {
            Self::Boolean => match trimmed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(Value::Bool(true)),
                "n" | "no" | "false" => Some(Value::Bool(false)),
                _ => None,
            },
            Self::Text => Some(Value::String(text.to_owned())),
            Self::Integer => trimmed.parse::<i64>().ok().map(Value::from),
            Self::Number => trimmed.parse().ok().filter(Value::is_number),
            Self::Select(choices) => find(choices, trimmed).cloned(),
            Self::MultiSelect(choices) => match read(trimmed) {
                Ok(value @ Value::Array(_)) => return self.check_answer(&value),
                _ => trimmed
                    .split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .map(|part| find(choices, part).cloned())
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array),
            },
            Self::Form(_) => match read(trimmed) {
                Ok(value) => return self.check_answer(&value),
                Err(_) => None,
            },
        };
        answer.ok_or_else(|| self.mismatch(text))
    }

    fn check_answer(&self, answer: &Value) -> Result<Value, AnswerError> {
        let pick = |choices: &[Choice], answer: &Value| {
            choices
                .iter()
                .find(|choice| choice.value == *answer)
                .map(|choice| &choice.value)
                .or_else(|| find(choices, answer.as_str()?))
                .cloned()
        };
        let checked = match (self, answer) {
            (Self::Boolean, Value::Bool(_)) | (Self::Text, Value::String(_)) => {
                Some(answer.clone())
            }
            (Self::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Some(answer.clone())
            }
            (Self::Number, Value::Number(_)) => Some(answer.clone()),
            (Self::Select(choices), answer) => pick(choices, answer),
            // More answers than options means that an option is repeated.
            (Self::MultiSelect(choices), Value::Array(answers))
                if answers.len() > choices.len() =>
            {
                None
            }
            (Self::MultiSelect(choices), Value::Array(answers)) => answers
                .iter()
                .map(|answer| pick(choices, answer))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array),
            (Self::Form(fields), Value::Object(answers)) => {
                return check_form(fields, answers).map(Value::Object);
            }
            _ => None,
        };
        checked.ok_or_else(|| self.mismatch(&answer.to_string()))
    }

    /// Describes a valid answer as a noun phrase: `one of \`a\`, \`b\``.
    pub fn expectation(&self) -> String {
        let list = |choices: &[Choice]| {
            let titles = choices.iter().map(|choice| format!("`{}`", shown(&choice.title)));
            titles.collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Boolean => "`yes` or `no`".into(),
            Self::Text => "a text".into(),
            Self::Integer => "a whole number".into(),
            Self::Number => "a number".into(),
            Self::Select(choices) => format!("one of {}", list(choices)),
            Self::MultiSelect(choices) => format!("any of {}", list(choices)),
            Self::Form(fields) => {
                let ids = fields.iter().map(|field| format!("`{}`", shown(&field.id)));
                format!("an object with {}", ids.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn mismatch(&self, given: &str) -> AnswerError {
        AnswerError::Mismatch { given: given.to_owned(), expected: self.expectation() }
    }
}

fn check_form(
    fields: &[Field],
    answers: &Map<String, Value>,
) -> Result<Map<String, Value>, AnswerError> {
    let wrong = |id: &str, problem| AnswerError::Field { field: id.to_owned(), problem };
    let mismatch = |given: &str, expected: &str| {
        Box::new(AnswerError::Mismatch { given: given.into(), expected: expected.into() })
    };
    if let Some((id, value)) = answers.iter().find(|(id, _)| fields.iter().all(|f| f.id != **id)) {
        return Err(wrong(id, mismatch(&value.to_string(), "in the form")));
    }
    let mut checked = Map::new();
    for field in fields {
        match answers.get(&field.id) {
            Some(answer) => {
                let answer = field.kind.check_answer(answer);
                let answer = answer.map_err(|problem| wrong(&field.id, Box::new(problem)))?;
                checked.insert(field.id.clone(), answer);
            }
            None if field.is_required => {
                return Err(wrong(&field.id, mismatch("nothing", &field.kind.expectation())));
            }
            None => {}
        }
    }
    Ok(checked)
}

/// Parses typed JSON or an answer type.
fn read(text: &str) -> Result<Value, strict::JsonError> {
    strict::parse(text.as_bytes(), JsonBudget::ARGUMENTS)
}

/// Finds an option by its title or value.
fn find<'a>(choices: &'a [Choice], text: &str) -> Option<&'a Value> {
    let needle = text.to_lowercase();
    let is_named = |choice: &&Choice| {
        let value = match &choice.value {
            Value::String(value) => value.to_lowercase(),
            value => value.to_string(),
        };
        value == needle || choice.title.to_lowercase() == needle
    };
    choices.iter().find(is_named).map(|choice| &choice.value)
}

impl FromStr for AnswerType {
    type Err = AnswerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || AnswerError::UnknownType(text.to_owned());
        if let Some(kind) = Self::from_name(text.trim()) {
            return Ok(kind);
        }
        match read(text) {
            Ok(Value::Object(object)) => Self::from_object(&object).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }
}

/// Returns a member of a JSON object, ignoring the case of the key.
fn member<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object
        .as_object()?
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
        .map(|(_, value)| value)
}

/// Parses the fields of a form. Their ids must be distinct.
fn fields(body: &Value) -> Option<Vec<Field>> {
    let fields = member(body, "fields")?.as_array()?;
    let fields = fields.iter().map(field).collect::<Option<Vec<_>>>()?;
    let is_new = |at: usize| fields[..at].iter().all(|before| before.id != fields[at].id);
    (!fields.is_empty() && (0..fields.len()).all(is_new)).then_some(fields)
}

fn field(field: &Value) -> Option<Field> {
    let text = |key| match member(field, key) {
        None => Some(None),
        Some(text) => Some(Some(text.as_str()?.to_owned())),
    };
    let kind = match member(field, "type")? {
        Value::String(kind) => kind.parse().ok()?,
        kind => kind.to_string().parse().ok()?,
    };
    if matches!(kind, AnswerType::Form(_)) {
        return None;
    }
    Some(Field {
        id: member(field, "id")?.as_str()?.to_owned(),
        title: text("title")?,
        description: text("description")?,
        kind,
        default: member(field, "default").cloned(),
        is_required: match member(field, "required") {
            None => true,
            Some(required) => required.as_bool()?,
        },
        is_legacy: match member(field, "legacy") {
            None => false,
            Some(legacy) => legacy.as_bool()?,
        },
    })
}

fn choice(option: &Value) -> Option<Choice> {
    match option {
        Value::String(text) => Some(Choice { value: option.clone(), title: text.clone() }),
        Value::Object(_) => {
            let value = member(option, "value")?.clone();
            let title = match (member(option, "title"), &value) {
                (Some(title), _) => title.as_str()?.to_owned(),
                (None, Value::String(text)) => text.clone(),
                (None, value) => value.to_string(),
            };
            Some(Choice { value, title })
        }
        _ => None,
    }
}

impl fmt::Display for AnswerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = |choices: &[Choice]| {
            let option = |choice: &Choice| match &choice.value {
                Value::String(value) if *value == choice.title => choice.value.clone(),
                value => json!({ "value": value, "title": choice.title }),
            };
            json!({ "options": choices.iter().map(option).collect::<Vec<_>>() })
        };
        match self {
            Self::Boolean => f.write_str("boolean"),
            Self::Text => f.write_str("text"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::Select(choices) => write!(f, "{}", json!({ "select": options(choices) })),
            Self::MultiSelect(choices) => {
                write!(f, "{}", json!({ "multi-select": options(choices) }))
            }
            Self::Form(fields) => {
                let fields: Vec<_> = fields.iter().map(Field::to_json).collect();
                write!(f, "{}", json!({ "form": { "fields": fields } }))
            }
        }
    }
}

impl Field {
    fn to_json(&self) -> Value {
        let kind = self.kind.to_string();
        let mut field = Map::new();
        field.insert("id".into(), self.id.clone().into());
        // A kind with options is an object; other kinds are names.
        field.insert("type".into(), serde_json::from_str(&kind).unwrap_or(Value::String(kind)));
        let texts = [("title", &self.title), ("description", &self.description)];
        for (key, text) in texts {
            field.extend(text.clone().map(|text| (key.to_owned(), text.into())));
        }
        field.extend(self.default.clone().map(|default| ("default".to_owned(), default)));
        if !self.is_required {
            field.insert("required".into(), false.into());
        }
        if self.is_legacy {
            field.insert("legacy".into(), true.into());
        }
        Value::Object(field)
    }
}

impl Serialize for AnswerType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: AnswerType) {
        assert_eq!(text.parse::<AnswerType>().unwrap(), expected);
    }

    #[test]
    fn kinds_are_read_in_any_case() {
        check("boolean", AnswerType::Boolean);
        check("Text", AnswerType::Text);
        check("INTEGER", AnswerType::Integer);
        let choice = |value: Value, title: &str| Choice { value, title: title.into() };
        check(
            r#"{"Select":{"Options":["a",{"value":2,"title":"two"},{"value":3}]}}"#,
            AnswerType::Select(vec![
                choice("a".into(), "a"),
                choice(2.into(), "two"),
                choice(3.into(), "3"),
            ]),
        );
    }

    #[test]
    fn unknown_kinds_are_refused_by_name() {
        for text in ["", "bool", "{}", r#"{"select":{}}"#, r#"{"select":{"options":[]}}"#, "[1]"] {
            assert_eq!(text.parse::<AnswerType>(), Err(AnswerError::UnknownType(text.into())));
        }
    }

    #[test]
    fn a_question_can_have_a_class() {
        let check = |class: &str, expected: Option<&str>| {
            let text = format!("{{\"boolean\":{{}},\"class\":{class}}}");
            let read = AnswerType::read_marked(&text).ok();
            assert_eq!(read.and_then(|(_, marks)| marks.class).as_deref(), expected, "{text}");
        };
        check("\"db:drop\"", Some("db:drop"));
        for class in ["\"\"", "\"a b\"", "\"*\"", "1", "null"] {
            check(class, None);
        }
    }

    #[test]
    fn a_kind_can_be_marked_as_consent() {
        let check = |text: &str, expected: Option<(AnswerType, bool)>| {
            let unknown = AnswerError::UnknownType(text.to_owned());
            let marked = |(kind, is_consent)| (kind, QuestionMarks { is_consent, class: None });
            let expected = expected.map(marked).ok_or(unknown);
            assert_eq!(AnswerType::read_marked(text), expected, "{text}");
        };
        check("boolean", Some((AnswerType::Boolean, false)));
        check(r#"{"boolean":{}}"#, Some((AnswerType::Boolean, false)));
        check(r#"{"Boolean":{},"Consent":true}"#, Some((AnswerType::Boolean, true)));
        check(r#"{"boolean":{},"consent":false}"#, Some((AnswerType::Boolean, false)));
        let select = r#"{"select":{"options":["a"]}}"#.parse().unwrap();
        check(r#"{"consent":true,"select":{"options":["a"]}}"#, Some((select, true)));
        check(r#"{"boolean":{},"consent":"yes"}"#, None);
        check(r#"{"boolean":{},"consent":true,"Consent":true}"#, None);
        check(r#"{"boolean":{"options":[]},"consent":true}"#, None);
        check(r#"{"consent":true}"#, None);
        // A field has no mark, since it is answered together with its form.
        let field = r#"{"id":"a","type":{"boolean":{},"consent":true}}"#;
        check(&format!(r#"{{"form":{{"fields":[{field}]}}}}"#), None);
    }

    #[test]
    fn typed_answers_become_typed_values() {
        let select: AnswerType =
            r#"{"select":{"options":["red",{"value":7,"title":"Seven"}]}}"#.parse().unwrap();
        let multi: AnswerType = r#"{"multi-select":{"options":["red","blue"]}}"#.parse().unwrap();
        let check = |kind: &AnswerType, text: &str, expected: Option<Value>| {
            assert_eq!(kind.parse_answer(text).ok(), expected, "{text:?}");
        };
        check(&AnswerType::Boolean, " Yes ", Some(true.into()));
        check(&AnswerType::Boolean, "maybe", None);
        check(&AnswerType::Integer, "12", Some(12.into()));
        check(&AnswerType::Integer, "1.5", None);
        check(&AnswerType::Number, "1.5", Some(json!(1.5)));
        check(&AnswerType::Number, "true", None);
        check(&AnswerType::Text, " as is ", Some(" as is ".into()));
        check(&select, "RED", Some("red".into()));
        check(&select, "seven", Some(7.into()));
        check(&select, "7", Some(7.into()));
        check(&select, "green", None);
        check(&multi, "red, blue", Some(json!(["red", "blue"])));
        check(&multi, r#"["blue"]"#, Some(json!(["blue"])));
        check(&multi, "", Some(json!([])));
        check(&multi, "red, green", None);
    }

    #[test]
    fn wrong_answers_name_the_expected_value() {
        let select: AnswerType = r#"{"select":{"options":["red","blue"]}}"#.parse().unwrap();
        assert_eq!(
            select.parse_answer("green").unwrap_err().to_string(),
            "`green` is not one of `red`, `blue`",
        );
    }

    #[test]
    fn form_errors_name_the_field() {
        let form: AnswerType = r#"{"form":{"fields":[
            {"id":"name","type":"text"},
            {"id":"age","title":"Age","type":"integer","default":30,"required":false},
            {"id":"colour","type":{"select":{"options":["red",{"value":7,"title":"Seven"}]}}}
        ]}}"#
            .parse()
            .unwrap();
        let check = |answer: &str, expected: Result<Value, &str>| {
            let answer = form.check(&Answer::Text(answer.into()));
            assert_eq!(answer.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        };
        check(r#"{"colour":"seven","name":"Ann"}"#, Ok(json!({ "name": "Ann", "colour": 7 })));
        check(
            r#"{"name":"Ann","age":"old","colour":"red"}"#,
            Err("the field `age`: `\"old\"` is not a whole number"),
        );
        check(
            r#"{"name":"Ann"}"#,
            Err("the field `colour`: `nothing` is not one of `red`, `Seven`"),
        );
        check(
            r#"{"name":"Ann","colour":"red","x":1}"#,
            Err("the field `x`: `1` is not in the form"),
        );
        check("Ann", Err("`Ann` is not an object with `name`, `age`, `colour`"));
    }

    #[test]
    fn nested_empty_and_ambiguous_forms_are_unknown() {
        let fields = [
            "[]",
            r#"[{"id":"a","type":"text"},{"id":"a","type":"text"}]"#,
            r#"[{"id":"a","type":{"form":{"fields":[{"id":"b","type":"text"}]}}}]"#,
            r#"[{"id":"a"}]"#,
            r#"[{"id":"a","type":"text","required":"no"}]"#,
        ];
        for fields in fields {
            let text = format!(r#"{{"form":{{"fields":{fields}}}}}"#);
            assert_eq!(text.parse::<AnswerType>(), Err(AnswerError::UnknownType(text)));
        }
    }

    fn choices() -> impl Strategy<Value = Vec<Choice>> {
        let choice = (any::<i32>(), ".*", ".*").prop_map(|(number, text, title)| Choice {
            value: if number % 2 == 0 { number.into() } else { text.into() },
            title,
        });
        prop::collection::vec(choice, 1..5)
    }

    fn simple_kinds() -> impl Strategy<Value = AnswerType> {
        prop_oneof![
            Just(AnswerType::Boolean),
            Just(AnswerType::Text),
            Just(AnswerType::Integer),
            Just(AnswerType::Number),
            choices().prop_map(AnswerType::Select),
            choices().prop_map(AnswerType::MultiSelect),
        ]
    }

    fn forms() -> impl Strategy<Value = AnswerType> {
        let text = || prop::option::of(".*");
        let flags = any::<(bool, bool)>();
        let field = (text(), text(), simple_kinds(), prop::option::of(any::<i32>()), flags);
        prop::collection::vec(field, 1..4).prop_map(|fields| {
            let field =
                |(at, (title, description, kind, default, (is_required, is_legacy)))| Field {
                    id: format!("field-{at}"),
                    title,
                    description,
                    kind,
                    default: Option::map(default, Value::from),
                    is_required,
                    is_legacy,
                };
            AnswerType::Form(fields.into_iter().enumerate().map(field).collect())
        })
    }

    proptest! {
        #[test]
        fn formatted_kinds_are_parsed_back(kind in prop_oneof![simple_kinds(), forms()]) {
            prop_assert_eq!(kind.to_string().parse::<AnswerType>().unwrap(), kind.clone());
            for (is_consent, class) in [(false, None), (true, None), (true, Some("a:b")), (false, Some("c"))] {
                let marks = QuestionMarks { is_consent, class: class.map(str::to_owned) };
                let text = kind.write_marked(&marks);
                prop_assert_eq!(AnswerType::read_marked(&text), Ok((kind.clone(), marks)));
            }
        }
    }
}
