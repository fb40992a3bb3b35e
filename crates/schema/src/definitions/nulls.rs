//! Reverts the change that strict mode makes to optional arguments.

use std::collections::HashMap;

use jsonschema::{Registry, Validator};
use kitbag_base::ARGUMENTS_DEPTH;
use serde_json::{Map, Value, json};

use super::reference::resolve;
use super::root;
use crate::complexity::{SchemaComplexity, count, options};
use crate::plain::fits_plainly;
use crate::types::Types;
use crate::without_end;
use kitbag_base::json::pointer;

/// The URI of the schema for its own references.
const SCHEMA: &str = "urn:kitbag:schema";

/// Maximum number of schemas that are examined. With references and choices, a short untrusted
/// schema can have any number for one value.
const STEPS: usize = 10_000;

/// Maximum number of values that are examined and copied, and of additional values for each value
/// in the arguments.
const VALUES: u64 = 100_000;
const VALUES_PER_VALUE: u64 = 64;

/// The deepest nesting of examined schemas: the depth of arguments plus some references.
const DEPTH: usize = ARGUMENTS_DEPTH + 32;

/// Removes the nulls from arguments that represent absent values.
///
/// In OpenAI's strict mode, a model provides every argument, with null for those that it would
/// omit. kitbag checks a call against the tool's own schema, which may not accept null. Pass
/// arguments through this function before the call:
///
/// ```
/// use kitbag_schema::definitions::without_nulls;
/// use serde_json::json;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "path": { "type": "string" }, "depth": { "type": "integer" } },
///     "required": ["path"],
/// });
/// let arguments = without_nulls(&schema, json!({ "path": "x", "depth": null }));
/// assert_eq!(arguments, json!({ "path": "x" }));
/// ```
///
/// `schema` is the tool's own, as in [`ToolInfo::input_schema`](super::ToolInfo). At every depth, a
/// null is removed if its property is optional and its schema does not accept null. All other
/// values are unchanged, and so are arguments that match. Therefore this works for every tool and
/// every model.
pub fn without_nulls(schema: &Value, arguments: Value) -> Value {
    if !holds_null(&arguments) {
        return arguments;
    }
    let registry = Registry::new()
        .add(SCHEMA, schema.clone())
        .and_then(jsonschema::RegistryBuilder::prepare)
        .ok();
    let registry = registry.as_ref();
    let complexity = SchemaComplexity::new(schema.clone()).ok();
    let mut cleaner = Cleaner {
        root: schema,
        registry,
        complexity,
        validators: HashMap::new(),
        left: STEPS,
        values: VALUES.saturating_add(VALUES_PER_VALUE.saturating_mul(count(&arguments))),
        depth: 0,
    };
    cleaner.clean("", &arguments).unwrap_or(arguments)
}

struct Cleaner<'a> {
    root: &'a Value,
    registry: Option<&'a Registry<'a>>,
    complexity: Option<SchemaComplexity>,
    /// Validators by pointer.
    validators: HashMap<String, Option<Validator>>,
    left: usize,
    values: u64,
    depth: usize,
}

impl<'a> Cleaner<'a> {
    /// Returns the value without the nulls that the schema at a pointer does not accept. `None` if
    /// there are too many ways to examine it.
    fn clean(&mut self, at: &str, value: &Value) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        self.values = self.values.checked_sub(count(value))?;
        if !holds_null(value) {
            return Some(value.clone());
        }
        match self.root.pointer(at) {
            Some(Value::Object(rules)) if self.depth < DEPTH => {
                self.depth += 1;
                let clean = self.clean_by(at, rules, value.clone());
                self.depth -= 1;
                clean
            }
            Some(Value::Object(_)) => None,
            _ => Some(value.clone()),
        }
    }

    fn clean_by(&mut self, at: &str, rules: &Map<String, Value>, value: Value) -> Option<Value> {
        let mut value = value;
        if let Some(Value::String(reference)) = rules.get("$ref")
            && let Some((target, _)) = resolve(self.root, reference)
        {
            value = self.clean(&target, &value)?;
        }
        if let Some(Value::Array(all)) = rules.get("allOf") {
            for index in 0..all.len() {
                value = self.clean(&format!("{at}/allOf/{index}"), &value)?;
            }
        }
        for choice in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = rules.get(choice) {
                value = self.choose(&format!("{at}/{choice}"), branches, value)?;
            }
        }
        match value {
            Value::Object(object) => self.object(at, rules, object).map(Value::Object),
            Value::Array(elements) if rules.get("items").is_some_and(Value::is_object) => {
                let items = format!("{at}/items");
                let clean = |element: &Value| self.clean(&items, element);
                elements.iter().map(clean).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            value => Some(value),
        }
    }

    fn object(
        &mut self,
        at: &str,
        rules: &Map<String, Value>,
        object: Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        let mut clean = Map::new();
        for (key, value) in object {
            let known = rules.get("properties").and_then(|properties| properties.get(&key));
            let Some(schema) = known else {
                clean.insert(key, value);
                continue;
            };
            let at = format!("{at}/properties{}", pointer(&key));
            let is_required = root::required(rules).any(|required| required == key);
            if value.is_null() && !is_required && !self.takes_null(&at, schema)? {
                continue;
            }
            let value = self.clean(&at, &value)?;
            clean.insert(key, value);
        }
        Some(clean)
    }

    /// Cleans a value for the first branch that accepts the result. A value that matches a branch
    /// is unchanged.
    fn choose(&mut self, at: &str, branches: &[Value], value: Value) -> Option<Value> {
        for (index, branch) in branches.iter().enumerate() {
            if self.fits_branch(&format!("{at}/{index}"), branch, &value)? {
                return Some(value);
            }
        }
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{at}/{index}");
            let clean = self.clean(&at, &value)?;
            if clean != value && self.fits_branch(&at, branch, &clean)? {
                return Some(clean);
            }
        }
        Some(value)
    }

    fn fits_branch(&mut self, at: &str, branch: &Value, value: &Value) -> Option<bool> {
        match fits_plainly(branch, value) {
            true => Some(true),
            false => self.fits(at, value),
        }
    }

    fn takes_null(&mut self, at: &str, schema: &Value) -> Option<bool> {
        match schema.as_object().and_then(Types::named) {
            Some(named) if !named.meet(Types::NULL) => Some(false),
            _ => self.fits(at, &Value::Null),
        }
    }

    fn fits(&mut self, at: &str, value: &Value) -> Option<bool> {
        self.left = self.left.checked_sub(1)?;
        let (registry, complexity) = (self.registry?, self.complexity.as_ref()?);
        let fragment = fragment(at);
        complexity.check(&fragment, value, &without_end).ok()?;
        let validator = self.validators.entry(at.to_owned()).or_insert_with(|| {
            let reference = json!({ "$ref": format!("{SCHEMA}#{fragment}") });
            options().with_registry(registry).build(&reference).ok()
        });
        Some(validator.as_ref()?.is_valid(value))
    }
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(elements) => elements.iter().any(holds_null),
        Value::Object(object) => object.values().any(holds_null),
        _ => false,
    }
}

/// Formats a pointer as a URI fragment (RFC 3986).
fn fragment(pointer: &str) -> String {
    let mut fragment = String::with_capacity(pointer.len());
    for byte in pointer.bytes() {
        match byte {
            b'/' | b'~' | b'-' | b'_' | b'.' => fragment.push(byte as char),
            byte if byte.is_ascii_alphanumeric() => fragment.push(byte as char),
            byte => fragment.push_str(&format!("%{byte:02X}")),
        }
    }
    fragment
}
