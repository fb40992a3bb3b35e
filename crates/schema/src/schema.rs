//! A schema that is read once, and checks of values against it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use kitbag_base::text::shown;
use serde::Serialize;
use serde_json::Value;

use crate::complexity::{self, ComplexityError, SchemaComplexity};
use crate::error::{CheckError, SchemaError};
use crate::plain::{fits_plainly, is_plain_schema};
use crate::problems::{ArgumentProblem, PROBLEMS, explain};
use crate::types::Types;

/// Maximum total size of pointers to all values if all problems are collected: the library holds
/// one pointer per problem before it returns the first.
const ALL_POINTER_BYTES: usize = 4 << 20;

/// Maximum number of evaluations for which all problems are collected: the library keeps all of
/// them in memory.
const STEPS_IN_FULL: u64 = 100_000;

/// Maximum estimated memory of a schema that is kept for later checks. Larger schemas are read
/// again each time: an untrusted schema must not fill the memory of a server.
const KEPT_BYTES: u64 = 1 << 20;

/// The JSON Schema of a tool. Dereferences to its JSON.
///
/// The first check that needs it reads it, and later checks reuse the result. Cheap to clone;
/// clones share the result.
#[derive(Clone)]
pub struct Schema(Arc<SchemaState>);

struct SchemaState {
    json: Value,
    read: OnceLock<Read>,
}

/// The result of reading a schema.
enum Read {
    Kept(Arc<Reader>),
    TooLargeToKeep,
    Unusable(SchemaError),
}

/// A schema that is ready for checks.
struct Reader {
    complexity: SchemaComplexity,
    validator: jsonschema::Validator,
}

impl Schema {
    /// Returns the JSON of the schema.
    pub fn as_json(&self) -> &Value {
        &self.0.json
    }

    /// Checks that the schema is well-formed. Fast, since [`check`](Self::check) reads patterns and
    /// references.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the schema is not well-formed.
    pub fn check_form(&self) -> Result<(), SchemaError> {
        // The library reads other drafts.
        let is_newest = self["$schema"]
            .as_str()
            .is_none_or(|draft| draft.contains("json-schema.org/draft/2020-12"));
        if is_plain_schema(self) || !is_newest {
            return Ok(());
        }
        jsonschema::draft202012::meta::validate(self)
            .map_err(|error| SchemaError { reason: misformed(&error) })
    }

    /// Like [`check_form`](Self::check_form), and also checks that the schema accepts objects,
    /// since arguments are an object.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the schema is not well-formed or does not accept objects.
    pub fn check_input_form(&self) -> Result<(), SchemaError> {
        let named = self.as_object().and_then(Types::named);
        if named.is_some_and(|named| !named.meet(Types::OBJECT)) {
            return Err(SchemaError::new(
                "its `type` is not `object`, but arguments are an object",
            ));
        }
        self.check_form()
    }

    /// Like [`check_form`](Self::check_form), and also checks that every reference has a schema as
    /// its target: a client may refuse all tools because of a dangling reference.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the schema is not well-formed or has a dangling reference.
    pub fn check_references(&self) -> Result<(), SchemaError> {
        match has_reference(self) {
            true => self.check(),
            false => self.check_form(),
        }
    }

    /// Reads the schema completely. Patterns take time to compile.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] if the schema is not valid or too expensive to check.
    pub fn check(&self) -> Result<(), SchemaError> {
        // Schemas of configurations and most tools pass the fast check.
        match is_plain_schema(self) {
            true => Ok(()),
            false => self.reader().map(drop),
        }
    }

    /// Returns all problems of a value; none if it matches. Calls `may_go_on` regularly; its error
    /// ends the check.
    ///
    /// # Errors
    ///
    /// [`CheckError::Schema`] if the schema cannot be used, and [`CheckError::Ended`].
    pub fn misfits<E>(
        &self,
        value: &Value,
        may_go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<Vec<ArgumentProblem>, CheckError<E>> {
        let may_go_on_here = || may_go_on().map_err(CheckError::Ended);
        let mut problems = Vec::new();
        if fits_plainly(self, value) {
            return Ok(problems);
        }
        may_go_on_here()?;
        let reader = self.reader()?;
        let Reader { complexity, validator } = &*reader;
        may_go_on_here()?;
        let steps = complexity.check("", value, may_go_on).map_err(|refusal| match refusal {
            ComplexityError::TooMuch(reason) => CheckError::Schema(SchemaError { reason }),
            ComplexityError::Ended(error) => CheckError::Ended(error),
        })?;
        let fits = validator.is_valid(value);
        may_go_on_here()?;
        if fits {
            return Ok(problems);
        }
        let is_bounded = steps <= STEPS_IN_FULL && pointer_bytes(value, 0) <= ALL_POINTER_BYTES;
        let all = is_bounded.then(|| validator.iter_errors(value)).into_iter().flatten();
        let first = match is_bounded || complexity.has_choices() {
            true => None,
            false => validator.validate(value).err(),
        };
        for error in all.chain(first) {
            may_go_on_here()?;
            explain(&error, self, &mut problems);
            if problems.len() > PROBLEMS || !is_bounded {
                problems.truncate(PROBLEMS);
                let message = "further problems are not listed".into();
                problems.push(ArgumentProblem { pointer: String::new(), message });
                break;
            }
        }
        if problems.is_empty() {
            let message = "does not match, and is too large to find the position".into();
            problems.push(ArgumentProblem { pointer: String::new(), message });
        }
        may_go_on_here()?;
        Ok(problems)
    }

    fn reader(&self) -> Result<Arc<Reader>, SchemaError> {
        match self.0.read.get() {
            Some(Read::Kept(reader)) => return Ok(Arc::clone(reader)),
            Some(Read::Unusable(error)) => return Err(error.clone()),
            Some(Read::TooLargeToKeep) | None => {}
        }
        let reader = Reader::new(&self.0.json).map(Arc::new);
        // Another check may have read the schema meanwhile, with the same result.
        self.0.read.get_or_init(|| match &reader {
            Ok(reader) if reader.complexity.memory_bytes() <= KEPT_BYTES => {
                Read::Kept(Arc::clone(reader))
            }
            Ok(_) => Read::TooLargeToKeep,
            Err(error) => Read::Unusable(error.clone()),
        });
        reader
    }
}

impl Reader {
    fn new(schema: &Value) -> Result<Self, SchemaError> {
        let read = || {
            let complexity = SchemaComplexity::new(schema.clone())?;
            let validator =
                complexity::options().build(schema).map_err(|error| misformed(&error))?;
            Ok(Self { complexity, validator })
        };
        read().map_err(|reason| SchemaError { reason })
    }
}

/// Describes the problem of a schema after its position.
fn misformed(error: &jsonschema::ValidationError<'_>) -> String {
    let message = error.to_string();
    match error.instance_path().as_str() {
        "" => shown(&message).to_string(),
        place => format!("`{}`: {}", shown(place), shown(&message)),
    }
}

impl From<Value> for Schema {
    fn from(json: Value) -> Self {
        Self(Arc::new(SchemaState { json, read: OnceLock::new() }))
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.json
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.json == other.0.json
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.json, f)
    }
}

impl Serialize for Schema {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json.serialize(serializer)
    }
}

/// Returns true if a schema may contain a reference.
fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Array(elements) => elements.iter().any(has_reference),
        Value::Object(object) => object.contains_key("$ref") || object.values().any(has_reference),
        _ => false,
    }
}

/// Returns the total length of the pointers to a value and all values in it, where the value's own
/// pointer has `own` bytes.
fn pointer_bytes(value: &Value, own: usize) -> usize {
    // The most digits of an index in such a list.
    const INDEX: usize = 8;
    own + match value {
        Value::Array(elements) => {
            elements.iter().map(|element| pointer_bytes(element, own + INDEX)).sum::<usize>()
        }
        Value::Object(object) => {
            let within = object.iter();
            within.map(|(key, value)| pointer_bytes(value, own + 1 + key.len())).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::without_end;

    /// Returns true if the result of reading a schema is kept after a check.
    fn is_kept(schema: Value) -> bool {
        let schema = Schema::from(schema);
        schema.misfits(&json!("x"), &without_end).unwrap();
        let shared = schema.clone();
        matches!(shared.0.read.get(), Some(Read::Kept(_)))
    }

    #[test]
    fn references_must_lead_to_a_schema() {
        let check = |reference: &str, expected: bool| {
            let schema = json!({
                "type": "object",
                "properties": { "q": { "$ref": reference } },
                "$defs": { "there": { "type": "string" } },
            });
            let checked = Schema::from(schema).check_references();
            assert_eq!(checked.is_ok(), expected, "{reference}: {checked:?}");
        };
        check("#/$defs/there", true);
        check("#/$defs/ScreenInstance", false);
        check("#/properties/zz", false);
        check("https://example.com/other.json", false);
        // Nothing is compiled if there are no references.
        let plain = Schema::from(json!({ "type": "object", "pattern": "^x$" }));
        plain.check_references().unwrap();
        assert!(plain.0.read.get().is_none());
    }

    #[test]
    fn clones_share_the_read_schema() {
        assert!(is_kept(json!({ "pattern": "^x$" })));
        let schema = Schema::from(json!({ "pattern": "^x$" }));
        let first = schema.reader().unwrap();
        assert!(Arc::ptr_eq(&first, &schema.clone().reader().unwrap()));
        // A schema that passes the fast check is not read.
        let plain = Schema::from(json!({ "type": "string" }));
        assert!(plain.misfits(&json!("x"), &without_end).unwrap().is_empty());
        assert!(plain.0.read.get().is_none());
    }

    #[test]
    fn large_schemas_are_not_kept() {
        let patterns: Vec<_> =
            (0..20).map(|n| json!({ "pattern": format!("x|a{{{n}}}") })).collect();
        assert!(!is_kept(json!({ "allOf": patterns })));
        let many: Vec<_> = (0..10_000).map(|n| json!({ "maxLength": n + 1 })).collect();
        assert!(!is_kept(json!({ "allOf": many })));
    }

    #[test]
    fn schema_errors_have_a_position() {
        let schema = Schema::from(json!({ "properties": { "a": { "type": "objekt" } } }));
        let expected = "`/properties/a/type`: \"objekt\" is not valid under any of the schemas \
                        listed in the 'anyOf' keyword";
        assert_eq!(schema.check_form().unwrap_err().reason, expected);
        assert_eq!(schema.check().unwrap_err().reason, expected);
    }

    #[test]
    fn schemas_are_shared_between_threads() {
        fn is_shared<T: Send + Sync + 'static>() {}
        is_shared::<Schema>();
    }
}
