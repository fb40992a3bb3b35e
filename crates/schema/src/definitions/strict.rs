//! The part of JSON Schema that OpenAI's strict mode supports, and conversions to it.
//!
//! Every value that matches the result also matches the original, after
//! [`without_nulls`](super::without_nulls) has removed the nulls: an optional property becomes
//! required and may be null. A part that cannot be converted in this way is an error that names it.
//!
//! Source: OpenAI, Structured Outputs, "Supported schemas" (2026-02).

mod keywords;
mod size;

use std::collections::BTreeSet;

use kitbag_base::text::shown;
use serde_json::{Map, Value, json};

use self::keywords::{
    FORMATS, NEVER, NEVER_OF_ARRAYS, NEVER_OF_OBJECTS, NEVER_OF_STRINGS, OF_ARRAYS, OF_NUMBERS,
    is_annotation, is_taken,
};
use self::size::Size;
use super::disjoint::{Comparisons, are_disjoint};
use super::note::Note;
use super::root;
use crate::types::Types;
use kitbag_base::json::pointer;

/// Converts a schema to strict mode, and notes the parts that are lost but not essential.
pub(super) fn strict(schema: &Value) -> Result<(Value, Vec<Note>), Note> {
    let mut rules = root::object(schema);
    rules.remove("$id");
    if let Some(key) = ["$ref", "allOf", "anyOf", "oneOf", "enum", "const"]
        .iter()
        .find(|key| rules.contains_key(**key))
    {
        return Err(unsupported(&pointer(key)));
    }
    if Types::named(schema.as_object().unwrap_or(&rules)).is_some_and(|it| !it.meet(Types::OBJECT))
    {
        return Err(Note::new("/type", "does not accept an object, but arguments are always one"));
    }
    let mut writer = Writer {
        root: schema,
        has_formats: rules
            .get("$schema")
            .and_then(Value::as_str)
            .is_some_and(|schema| !schema.contains("2020-12") && !schema.contains("2019-09")),
        definitions: Map::new(),
        pending: Vec::new(),
        notes: Vec::new(),
        comparisons: Comparisons::default(),
    };
    let mut strict = writer.write(&Value::Object(rules), "")?;
    while let Some((name, place)) = writer.pending.pop() {
        let definition = writer.write(schema.pointer(&place).unwrap_or(&Value::Null), &place)?;
        writer.definitions.insert(name, definition.into());
    }
    if !writer.definitions.is_empty() {
        strict.insert("$defs".into(), writer.definitions.into());
    }
    let strict = Value::Object(strict);
    match Size::of(&strict).excess() {
        Some(excess) => Err(Note::new("", excess)),
        None => Ok((strict, writer.notes)),
    }
}

struct Writer<'a> {
    root: &'a Value,
    /// True if `format` is checked, as before 2019-09.
    has_formats: bool,
    /// The targets of references; null while one is pending.
    definitions: Map<String, Value>,
    /// Pending definitions and their pointers.
    pending: Vec<(String, String)>,
    notes: Vec<Note>,
    /// The comparisons left to distinguish branches.
    comparisons: Comparisons,
}

impl Writer<'_> {
    fn write(&mut self, schema: &Value, at: &str) -> Result<Map<String, Value>, Note> {
        let Value::Object(rules) = schema else {
            return Err(Note::new(
                at,
                "accepts any value or none, which strict mode cannot express",
            ));
        };
        refuse(rules, &NEVER, at)?;
        for combination in ["$ref", "anyOf", "oneOf", "allOf"] {
            let Some(value) = rules.get(combination) else { continue };
            let at_value = format!("{at}/{combination}");
            let is_alone = rules.keys().all(|key| key == combination || is_annotation(key));
            if !is_alone {
                let what = "is combined with other keywords, which strict mode cannot express";
                return Err(Note::new(at_value, what));
            }
            let strict = match value {
                Value::String(reference) => self.reference(reference, &at_value)?,
                Value::Array(branches) => self.combination(combination, branches, &at_value)?,
                _ => return Err(unsupported(&at_value)),
            };
            return Ok(self.annotated(rules, strict, at));
        }
        let strict = self.values(rules, at)?;
        Ok(self.annotated(rules, strict, at))
    }

    fn reference(&mut self, reference: &str, at: &str) -> Result<Map<String, Value>, Note> {
        if reference == "#" {
            return Ok(object(json!({ "$ref": "#" })));
        }
        let found = ["$defs", "definitions"].map(|place| {
            let name = reference.strip_prefix(&format!("#/{place}/"))?;
            self.root.get(place)?.get(name)?;
            Some((name, format!("/{place}/{name}")))
        });
        let is_in_both = |name| {
            ["$defs", "definitions"]
                .iter()
                .all(|place| self.root.get(place).is_some_and(|all| all.get(name).is_some()))
        };
        let (name, place) = match found.into_iter().flatten().next() {
            Some(found) if is_name(found.0) && !is_in_both(found.0) => found,
            _ => {
                let what = "refers to a position that strict mode does not support";
                return Err(Note::new(at, what));
            }
        };
        if !self.definitions.contains_key(name) {
            self.definitions.insert(name.to_owned(), Value::Null);
            // Deferred, since a chain of references may overflow the stack.
            self.pending.push((name.to_owned(), place));
        }
        Ok(object(json!({ "$ref": format!("#/$defs/{name}") })))
    }

    fn combination(
        &mut self,
        keyword: &str,
        branches: &[Value],
        at: &str,
    ) -> Result<Map<String, Value>, Note> {
        match (keyword, branches) {
            ("allOf", [only]) => return self.write(only, &format!("{at}/0")),
            ("allOf", _) => return Err(unsupported(at)),
            ("oneOf", _) if !are_disjoint(self.root, branches, &mut self.comparisons) => {
                let what = "has branches that may match together, which strict mode cannot express";
                return Err(Note::new(at, what));
            }
            _ => {}
        }
        let mut strict = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().enumerate() {
            strict.push(Value::Object(self.write(branch, &format!("{at}/{index}"))?));
        }
        Ok(object(json!({ "anyOf": strict })))
    }

    /// Converts a schema of values.
    fn values(&mut self, rules: &Map<String, Value>, at: &str) -> Result<Map<String, Value>, Note> {
        let choices = choices(rules, at)?;
        let mut kinds = self.kinds(rules, choices.as_deref(), at)?;
        let takes_null = kinds.contains(&"null");
        let has_numbers = kinds.contains(&"number");
        kinds.retain(|kind| *kind != "null" && (*kind != "integer" || !has_numbers));
        let mut branches = Vec::new();
        for kind in kinds {
            let mut strict = object(json!({ "type": kind }));
            match kind {
                "string" => self.string(rules, &mut strict, at)?,
                "number" | "integer" => number(rules, &mut strict, at)?,
                "array" => self.array(rules, &mut strict, at)?,
                "object" => self.object(rules, &mut strict, at)?,
                _ => {}
            }
            if let Some(choices) = &choices {
                let fits = |value: &&&Value| {
                    kind_of(value) == kind || (kind == "number" && value.is_number())
                };
                let fitting: Vec<_> = choices.iter().filter(fits).collect();
                strict.insert("enum".into(), json!(fitting));
            }
            branches.push(strict);
        }
        let mut strict = match branches.len() {
            0 if takes_null => return Ok(object(json!({ "type": "null" }))),
            0 => return Err(Note::new(at, "accepts no value, which strict mode cannot express")),
            1 => branches.remove(0),
            _ => object(json!({ "anyOf": branches })),
        };
        if takes_null {
            allow_null(&mut strict);
        }
        Ok(strict)
    }

    /// Returns the types of the values. If the schema names none, those of its other keywords.
    fn kinds(
        &mut self,
        rules: &Map<String, Value>,
        choices: Option<&[&Value]>,
        at: &str,
    ) -> Result<Vec<&'static str>, Note> {
        const KINDS: [&str; 7] =
            ["string", "number", "integer", "boolean", "array", "object", "null"];
        let known = |kind: &Value| KINDS.into_iter().find(|known| kind == known);
        let named: Option<Vec<_>> = match rules.get("type") {
            Some(Value::Array(kinds)) => Some(kinds.iter().filter_map(known).collect()),
            Some(kind) => Some(known(kind).into_iter().collect()),
            None => None,
        };
        let chosen = choices.map(|choices| {
            let mut kinds: Vec<_> = choices.iter().map(|value| kind_of(value)).collect();
            let mut seen = BTreeSet::new();
            kinds.retain(|kind| seen.insert(*kind));
            kinds
        });
        match (named, chosen) {
            // A type that no choice has is impossible.
            (Some(mut named), Some(chosen)) => {
                named.retain(|kind| {
                    chosen.contains(kind) || (*kind == "number" && chosen.contains(&"integer"))
                });
                Ok(named)
            }
            (Some(kinds), None) | (None, Some(kinds)) => Ok(kinds),
            (None, None) => {
                let about_objects = ["properties", "required", "additionalProperties"];
                let kind = if about_objects.iter().any(|key| rules.contains_key(*key)) {
                    "object"
                } else if rules.contains_key("items") {
                    "array"
                } else {
                    let what = "accepts a value of any type, which strict mode cannot express";
                    return Err(Note::new(at, what));
                };
                let what = format!("names no type, and accepts only an {kind} in strict mode");
                self.notes.push(Note::new(at, what));
                Ok(vec![kind])
            }
        }
    }

    fn string(
        &mut self,
        rules: &Map<String, Value>,
        strict: &mut Map<String, Value>,
        at: &str,
    ) -> Result<(), Note> {
        refuse(rules, &NEVER_OF_STRINGS, at)?;
        if let Some(Value::String(pattern)) = rules.get("pattern") {
            if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| pattern.contains(look)) {
                let what = "has look-around, which strict mode does not support";
                return Err(Note::new(format!("{at}/pattern"), what));
            }
            strict.insert("pattern".into(), pattern.as_str().into());
        }
        match rules.get("format") {
            Some(Value::String(format)) if FORMATS.contains(&&**format) => {
                strict.insert("format".into(), format.as_str().into());
            }
            Some(_) if self.has_formats => return Err(unsupported(&format!("{at}/format"))),
            _ => {}
        }
        Ok(())
    }

    fn array(
        &mut self,
        rules: &Map<String, Value>,
        strict: &mut Map<String, Value>,
        at: &str,
    ) -> Result<(), Note> {
        refuse(rules, &NEVER_OF_ARRAYS, at)?;
        let items = match rules.get("items") {
            Some(items @ Value::Object(_)) => self.write(items, &format!("{at}/items"))?,
            Some(Value::Array(_)) => return Err(unsupported(&format!("{at}/items"))),
            _ => {
                let what = "accepts elements of any type, which strict mode cannot express";
                return Err(Note::new(at, what));
            }
        };
        strict.insert("items".into(), items.into());
        copy(rules, &OF_ARRAYS, strict, at)
    }

    fn object(
        &mut self,
        rules: &Map<String, Value>,
        strict: &mut Map<String, Value>,
        at: &str,
    ) -> Result<(), Note> {
        refuse(rules, &NEVER_OF_OBJECTS, at)?;
        let empty = Map::new();
        let properties = rules.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        match rules.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            None | Some(Value::Bool(true)) if !properties.is_empty() => {
                let what = "accepts keys beyond its properties, but not in strict mode";
                self.notes.push(Note::new(at, what));
            }
            _ => {
                return Err(Note::new(
                    at,
                    "accepts keys of any name, which strict mode cannot express",
                ));
            }
        }
        let required: BTreeSet<_> = root::required(rules).collect();
        if let Some(key) = required.iter().find(|key| !properties.contains_key(**key)) {
            let what = format!("requires `{}`, but has no schema for it", shown(key));
            return Err(Note::new(format!("{at}/required"), what));
        }
        let mut written = Map::new();
        for (key, schema) in properties {
            let is_required = required.contains(&**key);
            if *schema == Value::Bool(false) && !is_required {
                // The property must be absent, and nothing else permits it.
                continue;
            }
            let at = format!("{at}/properties{}", pointer(key));
            let mut property = self.write(schema, &at)?;
            if !is_required {
                allow_null(&mut property);
            }
            written.insert(key.clone(), property.into());
        }
        let keys: Vec<_> = written.keys().cloned().map(Value::from).collect();
        strict.insert("properties".into(), written.into());
        strict.insert("required".into(), keys.into());
        strict.insert("additionalProperties".into(), false.into());
        Ok(())
    }

    /// Adds annotations. Those that strict mode does not support are moved to the description.
    fn annotated(
        &mut self,
        rules: &Map<String, Value>,
        mut strict: Map<String, Value>,
        at: &str,
    ) -> Map<String, Value> {
        let mut description: Vec<String> = Vec::new();
        for key in rules.keys() {
            let value = &rules[key];
            let sentence = match (&**key, value) {
                ("default", value) => format!("Default: {value}."),
                ("examples", Value::Array(examples)) => {
                    let examples: Vec<_> = examples.iter().map(Value::to_string).collect();
                    format!("Examples: {}.", examples.join(", "))
                }
                ("format", Value::String(format)) if !FORMATS.contains(&&**format) => {
                    format!("Format: {format}.")
                }
                _ if is_taken(key) => continue,
                _ => {
                    self.notes.push(Note::new(
                        format!("{at}{}", pointer(key)),
                        "is omitted, since strict mode does not support it",
                    ));
                    continue;
                }
            };
            description.push(sentence);
            self.notes.push(Note::new(
                format!("{at}{}", pointer(key)),
                "is moved to the description, since strict mode does not support it",
            ));
        }
        if let Some(Value::String(text)) = rules.get("description") {
            description.insert(0, text.clone());
        } else if let Some(Value::String(text)) = strict.get("description") {
            description.insert(0, text.clone());
        }
        let title = rules.get("title").filter(|title| title.is_string()).cloned();
        if (title.is_some() || !description.is_empty()) && strict.contains_key("$ref") {
            // A reference must not have siblings.
            strict = object(json!({ "anyOf": [strict] }));
        }
        if let Some(title) = title {
            strict.insert("title".into(), title);
        }
        if !description.is_empty() {
            strict.insert("description".into(), description.join(" ").into());
        }
        strict
    }
}

/// Lets a schema accept null as well.
fn allow_null(strict: &mut Map<String, Value>) {
    let null = || json!({ "type": "null" });
    if strict.get("type") == Some(&json!("null")) {
        return;
    }
    if let Some(Value::Array(branches)) = strict.get_mut("anyOf") {
        if !branches.contains(&null()) {
            branches.push(null());
        }
        return;
    }
    // Annotations remain in their usual position.
    let texts = ["title", "description"];
    let texts: Vec<_> = texts.iter().filter_map(|key| strict.remove_entry(*key)).collect();
    let branches = vec![std::mem::take(strict).into(), null()];
    strict.insert("anyOf".into(), Value::Array(branches));
    strict.extend(texts);
}

/// Returns the values that `enum` and `const` permit.
fn choices<'a>(rules: &'a Map<String, Value>, at: &str) -> Result<Option<Vec<&'a Value>>, Note> {
    let of_enum = match rules.get("enum") {
        Some(Value::Array(choices)) => Some(choices.iter().collect::<Vec<_>>()),
        _ => None,
    };
    let choices = match (of_enum, rules.get("const")) {
        (None, None) => return Ok(None),
        (Some(choices), None) => choices,
        (None, Some(only)) => vec![only],
        (Some(choices), Some(only)) => choices.into_iter().filter(|value| *value == only).collect(),
    };
    match choices.iter().any(|value| value.is_array() || value.is_object()) {
        true => {
            Err(Note::new(at, "lists an array or object as a value instead of by its properties"))
        }
        false => Ok(Some(choices)),
    }
}

fn number(
    rules: &Map<String, Value>,
    strict: &mut Map<String, Value>,
    at: &str,
) -> Result<(), Note> {
    copy(rules, &OF_NUMBERS, strict, at)
}

/// Copies keywords whose values are numbers.
fn copy(
    rules: &Map<String, Value>,
    keys: &[&str],
    strict: &mut Map<String, Value>,
    at: &str,
) -> Result<(), Note> {
    for key in keys {
        match rules.get(*key) {
            Some(value @ Value::Number(_)) => drop(strict.insert((*key).into(), value.clone())),
            // In draft 4, the keyword is a boolean.
            Some(_) => return Err(unsupported(&format!("{at}/{key}"))),
            None => {}
        }
    }
    Ok(())
}

fn refuse(rules: &Map<String, Value>, keys: &[&str], at: &str) -> Result<(), Note> {
    match keys.iter().find(|key| rules.contains_key(**key)) {
        Some(key) => Err(unsupported(&format!("{at}{}", pointer(key)))),
        None => Ok(()),
    }
}

fn unsupported(pointer: &str) -> Note {
    Note::new(pointer, "is not supported in strict mode")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if the name of a definition needs no encoding in references.
fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !name.is_empty() && name.bytes().all(is_plain)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
