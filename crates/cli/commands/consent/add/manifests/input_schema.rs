//! A JSON Schema of arguments, as `parameters` of a kitbag config.

use std::collections::BTreeSet;

use super::jp::value;
use super::json;
use super::manifest::Manifest;
use super::node::{Node, quoted};
use super::note::Note;
use super::translate::decoded;

/// Keys that have no effect on the values.
const IGNORED: [&str; 4] = ["$schema", "$id", "title", "examples"];

/// The types of a parameter.
const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "array", "object"];

/// The entries of an object in a schema.
type Entries = [(String, Node)];

impl Manifest {
    /// Reads the arguments from the file that [`schema`](Self::schema) names. Notes restrictions
    /// that have no form in a kitbag config.
    pub(crate) fn take_schema(&mut self, source: &[u8]) {
        let key = self.schema.clone().unwrap_or_default();
        let mut note = |text: String| self.notes.push(Note { key: key.clone(), text });
        match decoded(source).and_then(json::read) {
            Ok(Node::Table(schema)) => {
                let mut dropped = BTreeSet::new();
                self.parameters = Some(parameters(&schema, &mut dropped));
                if !dropped.is_empty() {
                    let keys: Vec<_> = dropped.iter().map(|key| quoted(key)).collect();
                    note(format!("only the component checks {}", keys.join(", ")));
                }
            }
            Ok(other) => note(format!("it is {}, not a table; it is ignored", other.kind())),
            Err(problem) => note(format!("it cannot be read: {problem}; it is ignored")),
        }
    }
}

fn find<'a>(schema: &'a Entries, key: &str) -> Option<&'a Node> {
    schema.iter().find(|(own, _)| own == key).map(|(_, node)| node)
}

/// Translates the properties of an object. Adds the keys that were dropped.
fn parameters(schema: &Entries, dropped: &mut BTreeSet<String>) -> toml::Table {
    for (key, node) in schema {
        match (&**key, node) {
            ("type" | "properties" | "required" | "description", _)
            | ("additionalProperties", Node::Bool(false)) => {}
            (key, _) if IGNORED.contains(&key) => {}
            _ => drop(dropped.insert(key.clone())),
        }
    }
    let is_required = |name: &str| match find(schema, "required") {
        Some(Node::List(names)) => names.iter().any(|own| *own == Node::Text(name.to_owned())),
        _ => false,
    };
    let mut table = toml::Table::new();
    let Some(Node::Table(properties)) = find(schema, "properties") else { return table };
    for (name, node) in properties {
        let Node::Table(schema) = node else { continue };
        let mut parameter = parameter(schema, dropped);
        if is_required(name) {
            parameter.insert("required".to_owned(), true.into());
        }
        table.insert(name.clone(), parameter.into());
    }
    table
}

fn parameter(schema: &Entries, dropped: &mut BTreeSet<String>) -> toml::Table {
    let mut table = toml::Table::new();
    // The keys of `properties` are the only ones in kitbag.
    let is_closed = find(schema, "additionalProperties") == Some(&Node::Bool(false));
    for (key, node) in schema {
        let translated = match (&**key, node) {
            ("type", node) => kind(node).map(Into::into),
            ("description", Node::Text(text)) => Some(text.clone().into()),
            ("default" | "enum", node) => value(node),
            ("items", Node::Table(items)) => Some(parameter(items, dropped).into()),
            ("properties", _) if is_closed => {
                let of_object = ["type", "properties", "required", "additionalProperties"];
                let own = schema.iter().filter(|(key, _)| of_object.contains(&&**key));
                let own: Vec<_> = own.cloned().collect();
                Some(parameters(&own, dropped).into())
            }
            ("required" | "additionalProperties", _) if is_closed => continue,
            (key, _) if IGNORED.contains(&key) => continue,
            _ => None,
        };
        match translated {
            Some(value) => drop(table.insert(key.clone(), value)),
            None => drop(dropped.insert(key.clone())),
        }
    }
    table
}

/// Returns the type in a schema; a value that may also be `null` can be omitted instead.
fn kind(node: &Node) -> Option<&str> {
    let name = |node: &'_ Node| match node {
        Node::Text(kind) => Some(kind.clone()),
        _ => None,
    };
    let kinds: Vec<_> = match node {
        Node::List(kinds) => kinds.iter().map(name).collect::<Option<_>>()?,
        node => vec![name(node)?],
    };
    let mut kinds = kinds.iter().filter(|kind| *kind != "null");
    let (first, second) = (kinds.next()?, kinds.next());
    TYPES.into_iter().find(|kind| kind == first && second.is_none())
}
