//! Descriptions of problems.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use kitbag_base::text::{alternatives, nearest, shown};
use serde::Serialize;
use serde_json::Value;

use crate::complexity::size;
use kitbag_base::json::pointer;

/// Maximum number of reported problems of a value. A value with more problems usually repeats one
/// mistake.
pub(crate) const PROBLEMS: usize = 100;

/// The longest pointer of a problem, in bytes: the caller chooses the keys.
pub(crate) const POINTER_BYTES: usize = 1 << 10;

/// The size of the largest value that a message repeats.
const SHOWN_SIZE: u64 = 64;

/// A problem with an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentProblem {
    /// The position, as a JSON pointer; empty for the arguments as a whole.
    pub pointer: String,
    /// The problem and the expected value.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.pointer {
            "" => write!(f, "{}", self.message),
            pointer => write!(f, "`{}`: {}", shown(pointer), self.message),
        }
    }
}

/// Describes a problem. The library's own messages repeat whole values.
pub(crate) fn explain(
    error: &jsonschema::ValidationError<'_>,
    schema: &Value,
    problems: &mut Vec<ArgumentProblem>,
) {
    let place = error.instance_path().as_str().to_owned();
    let mut push = |mut pointer: String, message: String| {
        if pointer.len() > POINTER_BYTES {
            pointer.truncate(pointer.floor_char_boundary(POINTER_BYTES));
            pointer.push('…');
        }
        problems.push(ArgumentProblem { pointer, message });
    };
    let one = |text: &Value| match text {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            push(format!("{place}{}", pointer(&one(property))), "is missing".into());
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(schema, &place);
            for key in unexpected.iter().take(PROBLEMS + 1) {
                let hint = match nearest(key, known.iter().map(String::as_str)) {
                    Some(near) => format!("; did you mean `{}`?", shown(near)),
                    None if known.is_empty() => "; there are none".into(),
                    None => format!("; known: {}", alternatives(&known)),
                };
                push(format!("{place}{}", pointer(key)), format!("is unknown{hint}"));
            }
        }
        ValidationErrorKind::Type { kind } => {
            let expected = expected([kind]);
            push(place, format!("must be {expected}, but is {}", kind_of(error.instance())));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }
            if let Some(closest) = closest(context, &place) =>
        {
            match closest {
                Closest::Types(kinds) => {
                    let (expected, found) = (expected(kinds), kind_of(error.instance()));
                    push(place, format!("must be {expected}, but is {found}"));
                }
                Closest::Branch(errors) => {
                    errors.iter().for_each(|error| explain(error, schema, problems));
                }
            }
        }
        ValidationErrorKind::Enum { options } => {
            // One more than are shown.
            let options = options.as_array().into_iter().flatten().take(11);
            let options: Vec<_> = options.map(one).collect();
            let given = shown(&one(error.instance())).to_string();
            push(place, format!("is `{given}`, but must be {}", alternatives(&options)));
        }
        _ if size(error.instance()) > SHOWN_SIZE => {
            push(place, shown(&error.masked().to_string()).to_string());
        }
        _ => push(place, shown(&error.to_string()).to_string()),
    }
}

/// The most useful errors of a choice that a value does not match.
enum Closest<'a> {
    /// The types that its branches accept, if the value has a different type.
    Types(Vec<&'a TypeKind>),
    /// The errors of the only branch that accepts the value's type.
    Branch(&'a [jsonschema::ValidationError<'static>]),
}

fn closest<'a>(
    branches: &'a [Vec<jsonschema::ValidationError<'static>>],
    place: &str,
) -> Option<Closest<'a>> {
    let kind = |errors: &'a [jsonschema::ValidationError<'static>]| {
        errors.iter().find_map(|error| match error.kind() {
            ValidationErrorKind::Type { kind } if error.instance_path().as_str() == place => {
                Some(kind)
            }
            _ => None,
        })
    };
    let mut of_type = branches.iter().filter(|errors| kind(errors).is_none());
    match (of_type.next(), of_type.next()) {
        (None, _) => Some(Closest::Types(branches.iter().filter_map(|it| kind(it)).collect())),
        (Some(only), None) if !only.is_empty() => Some(Closest::Branch(only)),
        _ => None,
    }
}

fn expected<'a>(kinds: impl IntoIterator<Item = &'a TypeKind>) -> String {
    let mut names = Vec::new();
    for kind in kinds {
        match kind {
            TypeKind::Single(kind) => names.push(article(&kind.to_string())),
            TypeKind::Multiple(kinds) => {
                names.extend(kinds.iter().map(|kind| article(&kind.to_string())));
            }
        }
    }
    names.dedup();
    names.join(" or ")
}

/// Returns the schema's keys at a position in the arguments.
fn known_keys(schema: &Value, place: &str) -> Vec<String> {
    let mut here = schema;
    for segment in place.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        here = match here["properties"].get(&key) {
            Some(schema) => schema,
            None => &here["items"],
        };
    }
    here["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

/// Describes a value's type with its article, and the value if it is short.
pub(crate) fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(value) => format!("the number {value}"),
        Value::String(value) => format!("the string `{}`", shown(value)),
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
    }
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    if kind == "null" { kind.into() } else { format!("{article} {kind}") }
}
