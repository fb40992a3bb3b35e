//! Parsing of a file.
//!
//! Usually serde reads the file in one pass. Only if that fails, the document is checked against
//! its JSON Schema: serde stops at the first mistake, whereas the check finds all mistakes and
//! removes them, so that the rest can also be validated.

use std::collections::HashSet;
use std::num::IntErrorKind;
use std::ops::Range;

use kitbag_base::text::{alternatives, nearest, shown};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::format::invalid_keys::InvalidKeys;
use crate::format::key::KeyPath;
use crate::format::schema::UNLISTED;
use crate::read::file::SourceFile;
use crate::report::text::{
    did_you_mean, known_words, missing_key, unknown_key, unknown_value, wrong_type,
};
use crate::report::{Piece, Problem, Report};

/// The maximum nesting of tables and arrays. The parser limits the nesting of brackets and the
/// length of a dotted key, but not their product, which is enough to overflow the stack of
/// recursive code.
const MAX_DEPTH: usize = 64;

/// The message for the key `disabled` in a table that does not have it.
const SWITCHED_OFF: &str = "`disabled` belongs to `[knowledge.TOPIC]` and lists subjects; to \
                            switch off a tool, set `enable = false` in `[tools.NAME]`, and for a \
                            toolset `NAME = false` in `[toolsets]`";

/// The form in which a file is read.
pub(crate) struct Form<'a> {
    /// The table that the top level of the file is.
    pub(crate) base: &'a KeyPath<'a>,
    /// Builds the JSON Schema of the form.
    pub(crate) schema: fn() -> Value,
    /// The keys that the top level must not have, each with its problem.
    pub(crate) misplaced: Vec<(&'static str, Problem)>,
}

/// Reads the text of a file.
///
/// Adds problems to `report`, and the values removed because of them to `invalid`. Returns `None`
/// if the file cannot be understood at all; the current piece of `report` is then broken.
pub(crate) fn parse<T: DeserializeOwned>(
    file: &SourceFile,
    form: &Form<'_>,
    report: &mut Report,
    invalid: &mut InvalidKeys,
) -> Option<T> {
    let mut table = document(file, report)?;
    for (key, problem) in &form.misplaced {
        if let Some(span) = take_out(&mut table, key) {
            let piece = (Piece::of_key(&form.base.key(key)), Vec::new());
            report.span_of(file, span.into(), problem.clone(), piece);
        }
    }
    if let Ok(value) = deserialize(table) {
        return Some(value);
    }
    let mut table = document(file, report)?;
    for (key, _) in &form.misplaced {
        take_out(&mut table, key);
    }
    let root = (form.schema)();
    let walk = &mut Walk { root: &root, file, report, invalid };
    walk.table(&root, form.base, &mut table, Range::default());
    match deserialize(table) {
        Ok(value) => Some(value),
        // A schema cannot express that `toml` reserves one key for its dates.
        Err(error) => {
            let span = error.span().unwrap_or_default();
            report.span(file, span.into(), shown(error.message()));
            None
        }
    }
}

fn deserialize<T: DeserializeOwned>(table: DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::Deserializer::from(Spanned::new(Range::default(), table)))
}

/// Removes a key from a table. Returns its place if it existed.
fn take_out(table: &mut DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let span = table.get_key_value(key)?.0.span();
    table.remove(key);
    Some(span)
}

fn document<'a>(file: &'a SourceFile, report: &mut Report) -> Option<DeTable<'a>> {
    let (document, errors) = DeTable::parse_recoverable(file.text());
    let table = document.into_inner();
    if let Some(span) = table.values().find_map(|value| too_deep(value, MAX_DEPTH)) {
        let problem = format!("tables and arrays nest deeper than {MAX_DEPTH} levels");
        report.span(file, span.into(), problem);
        dismantle(DeValue::Table(table));
        return None;
    }
    if errors.is_empty() {
        return Some(table);
    }
    report_syntax(file, errors, report);
    None
}

/// Returns the message for a text that is not TOML.
pub(crate) fn syntax_error(error: &toml::de::Error) -> String {
    format!("syntax error: {}", shown(error.message()))
}

/// Returns the place of a value that is nested too deeply, if any.
fn too_deep(value: &Spanned<DeValue<'_>>, left: usize) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::Array(_) | DeValue::Table(_) if left == 0 => Some(value.span()),
        DeValue::Array(array) => array.iter().find_map(|value| too_deep(value, left - 1)),
        DeValue::Table(table) => table.values().find_map(|value| too_deep(value, left - 1)),
        _ => None,
    }
}

/// Drops a value without recursion: a deeply nested value would overflow the stack.
pub fn dismantle(value: DeValue<'_>) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            DeValue::Array(array) => pending.extend(array.into_iter().map(Spanned::into_inner)),
            DeValue::Table(table) => {
                pending.extend(table.into_iter().map(|(_, value)| value.into_inner()));
            }
            _ => {}
        }
    }
}

/// Reports the errors of the parser. One mistake can cause several errors; the first error in a
/// line is the most useful.
fn report_syntax(file: &SourceFile, mut errors: Vec<toml::de::Error>, report: &mut Report) {
    let text = file.text();
    errors.sort_by_key(|error| error.span().map(|span| span.start));
    let mut reported = None;
    for error in errors {
        let span = error.span().unwrap_or_default();
        let start = text.floor_char_boundary(span.start);
        if reported.is_some_and(|line_end| start <= line_end) {
            continue;
        }
        reported = Some(text[start..].find('\n').map_or(text.len(), |length| start + length));
        report.span(file, span.into(), syntax_error(&error));
    }
}

/// A check of a document against its JSON Schema.
///
/// Understands the output of [`crate::format::schema`], not JSON Schema in general.
struct Walk<'a> {
    root: &'a Value,
    file: &'a SourceFile,
    report: &'a mut Report,
    invalid: &'a mut InvalidKeys,
}

impl Walk<'_> {
    /// Checks a table and removes mistakes from it. Returns whether the rest has all required keys.
    fn table(
        &mut self,
        schema: &Value,
        path: &KeyPath<'_>,
        table: &mut DeTable<'_>,
        span: Range<usize>,
    ) -> bool {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let is_listed = |(_, schema): &(&String, &Value)| schema.get(UNLISTED).is_none();
        let known = properties.iter().filter(is_listed).map(|(key, _)| key.as_str());
        let others =
            schema.get("additionalProperties").filter(|others| **others != Value::Bool(false));
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();

        let mut accounted = HashSet::new();
        // The table is rebuilt: removing keys one by one would move the others.
        for (key, mut value) in std::mem::take(table) {
            let name = key.get_ref().as_ref();
            let child = path.key(name);
            match properties.get(name).or(others) {
                Some(schema) if self.value(schema, &child, &mut value) => {
                    accounted.insert(name.to_owned());
                    table.insert(key, value);
                }
                Some(_) => {
                    accounted.insert(name.to_owned());
                    self.invalid.add(&child);
                }
                None => {
                    let meant = nearest(name, known.clone());
                    if let Some(meant) = meant {
                        accounted.insert(meant.to_owned());
                        self.invalid.add(&path.key(meant));
                    }
                    let spoilt = path.key(meant.unwrap_or(name));
                    let piece = (self.piece(&spoilt), named(&spoilt, meant.is_some(), &value));
                    let hint = did_you_mean(meant)
                        .or_else(|| (name == "disabled").then(|| SWITCHED_OFF.to_owned()))
                        .or_else(|| known_words("keys", known.clone()));
                    let problem = Problem::from(unknown_key(name, &path.to_string())).hint(hint);
                    self.report.span_of(self.file, key.span().into(), problem, piece);
                }
            }
        }
        let mut complete = true;
        for key in required {
            if table.contains_key(key) {
                continue;
            }
            complete = false;
            if !accounted.contains(key) {
                self.wrong(path, span.clone(), missing_key(key, &path.to_string()));
            }
        }
        complete
    }

    /// Checks a value and removes mistakes inside it. Returns whether the rest can be kept.
    fn value(
        &mut self,
        schema: &Value,
        path: &KeyPath<'_>,
        value: &mut Spanned<DeValue<'_>>,
    ) -> bool {
        let schema = choose(follow(self.root, schema), value.get_ref());
        let span = value.span();
        let words = words(schema);
        if schema["anyOf"].is_array() {
            let types = schema["anyOf"].as_array().into_iter().flatten();
            let names: Vec<_> =
                types.filter_map(|variant| name_of(variant["type"].as_str()?)).collect();
            let found = described(value.get_ref());
            self.wrong(path, span, wrong_type(path, &names.join(" or "), &found));
            return false;
        }
        let expected = match (schema["type"].as_str(), value.get_mut()) {
            (Some("object"), DeValue::Table(table)) => {
                return self.table(schema, path, table, span);
            }
            (Some("array"), DeValue::Array(array)) => {
                for (index, mut value) in
                    std::mem::replace(array, DeArray::new()).into_iter().enumerate()
                {
                    if self.value(&schema["items"], &path.index(index), &mut value) {
                        array.push(value);
                    }
                }
                return true;
            }
            (None, DeValue::String(text)) if !words.is_empty() => {
                if words.contains(&text.as_ref()) {
                    return true;
                }
                let hint = did_you_mean(nearest(text, words.iter().copied()));
                let problem = unknown_value(path, &alternatives(&words), text);
                self.wrong(path, span, Problem::from(problem).hint(hint));
                return false;
            }
            (None, _) if !words.is_empty() => alternatives(&words),
            (None, value) => return self.any(path, value, span),
            (Some("string"), DeValue::String(_)) | (Some("boolean"), DeValue::Boolean(_)) => {
                return true;
            }
            // All integers are budgets: positive, as the schema also requires.
            (Some("integer"), DeValue::Integer(integer)) => {
                match u64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(1..) => return true,
                    Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                        self.wrong(path, span, out_of_range(&integer.to_string()));
                        return false;
                    }
                    _ => "a positive integer".to_owned(),
                }
            }
            (Some("integer"), _) => "a positive integer".to_owned(),
            (Some("string"), _) => "a string".to_owned(),
            (Some("boolean"), _) => "`true` or `false`".to_owned(),
            (Some("array"), _) => "an array".to_owned(),
            (Some(_), _) => "a table".to_owned(),
        };
        let problem = wrong_type(path, &expected, &described(value.get_ref()));
        let piece = (self.piece(path), named(path, true, value));
        self.report.span_of(self.file, span.into(), problem, piece);
        false
    }

    /// Reports a problem with the value of a key.
    fn wrong(&mut self, path: &KeyPath<'_>, span: Range<usize>, problem: impl Into<Problem>) {
        let piece = (self.piece(path), Vec::new());
        self.report.span_of(self.file, span.into(), problem, piece);
    }

    /// Returns the piece that the value of a key belongs to. For a lock file this is the record of
    /// a tool, or the whole file.
    fn piece(&self, path: &KeyPath<'_>) -> Piece {
        match (self.report.at_piece(), Piece::of_key(path)) {
            (Piece::Everything, _) => Piece::Everything,
            (Piece::Lock, Piece::Key(_)) => Piece::Lock,
            (_, piece) => piece,
        }
    }

    /// Checks a value of any type: its numbers must be in range.
    fn any(&mut self, path: &KeyPath<'_>, value: &DeValue<'_>, span: Range<usize>) -> bool {
        let mut is_wrong =
            |value: &&Spanned<DeValue<'_>>| !self.any(path, value.get_ref(), value.span());
        let number = match value {
            // All elements are visited, so that all mistakes are reported.
            DeValue::Array(array) => return array.iter().filter(&mut is_wrong).count() == 0,
            DeValue::Table(table) => return table.values().filter(&mut is_wrong).count() == 0,
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(_) => return true,
                    Err(_) => integer.to_string(),
                }
            }
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() || float.as_str().contains("inf") => return true,
                Ok(number) if number.is_nan() => return true,
                _ => float.to_string(),
            },
            _ => return true,
        };
        self.wrong(path, span, out_of_range(&number));
        false
    }
}

fn out_of_range(number: &str) -> String {
    format!("number `{}` is out of range", shown(number))
}

/// Returns the strings in a value that may name a tool which the value restricts: those under an
/// unknown key at the top level, and under a key that selects the built-in tool of a table.
fn named(path: &KeyPath<'_>, is_known: bool, value: &Spanned<DeValue<'_>>) -> Vec<String> {
    let names_tools = match &*path.keys() {
        [_] => !is_known,
        ["tools", _, key] => matches!(*key, "builtin" | "replaces"),
        _ => false,
    };
    let mut names = Vec::new();
    let mut pending = if names_tools { vec![value.get_ref()] } else { Vec::new() };
    while let Some(value) = pending.pop() {
        match value {
            DeValue::String(text) => names.push(text.to_string()),
            DeValue::Array(array) => pending.extend(array.iter().map(Spanned::get_ref)),
            DeValue::Table(table) => {
                names.extend(table.keys().map(|key| key.get_ref().to_string()));
                pending.extend(table.values().map(Spanned::get_ref));
            }
            _ => {}
        }
    }
    names
}

/// Returns the target of a reference.
fn follow<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    loop {
        let all_of = schema["allOf"].as_array().map(Vec::as_slice);
        let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        schema = match (reference, all_of) {
            (Some(pointer), _) => root.pointer(pointer).unwrap_or(&Value::Null),
            (None, Some([only])) => only,
            _ => return schema,
        };
    }
}

/// Returns the alternative of a schema that accepts values of this type. If several do, returns a
/// schema that accepts any value, and serde finds the mistake.
fn choose<'a>(schema: &'a Value, value: &DeValue<'_>) -> &'a Value {
    let kind = match value {
        DeValue::String(_) => "string",
        DeValue::Boolean(_) => "boolean",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
        _ => return schema,
    };
    let variants = schema["anyOf"].as_array().into_iter().flatten();
    let mut variants = variants.filter(|variant| variant["type"] == kind);
    match (variants.next(), variants.next()) {
        (None, _) => schema,
        (Some(only), None) => only,
        (Some(_), Some(_)) => &Value::Null,
    }
}

/// Returns the name of a type, with its article.
fn name_of(kind: &str) -> Option<&'static str> {
    match kind {
        "string" => Some("a string"),
        "boolean" => Some("`true`, `false`"),
        "array" => Some("an array"),
        "object" => Some("a table"),
        _ => None,
    }
}

/// Returns the strings that a schema allows, if it allows only a fixed set of strings.
fn words(schema: &Value) -> Vec<&str> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants.filter_map(|variant| variant["const"].as_str()).collect()
}

/// Describes a value for a message.
fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string `{}`", shown(text)),
        DeValue::Integer(integer) => format!("the integer `{}`", shown(&integer.to_string())),
        DeValue::Float(float) => format!("the number `{}`", shown(&float.to_string())),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(date) => format!("the date `{date}`"),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
