//! `docs/configuration.md`: every key of `config.toml`, from its JSON Schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::assert_current;
use crate::support::Workspace;

/// The last sentence of the description of a key that a workspace cannot have.
const USER_ONLY: &str = "User config only.";

const INTRODUCTION: &str = "\
# Configuration reference

Every key of `config.toml`. This page is generated from the schema that `kitbag config --schema` prints
([config.schema.json](config.schema.json), which lets editors complete and check the file).

| source | file | takes effect |
|---|---|---|
| user config | `~/.config/kitbag/config.toml`, or the file in `KITBAG_CONFIG` | in all workspaces |
| workspace | `.kitbag/config.toml` | once you [trust](trust.md) the workspace; before that, only settings that restrict access |
| manifest | `.kitbag/tools/NAME.toml` beside `NAME.wasm`: the keys of `[tools.NAME]` | like the workspace |
| script | the header of `.kitbag/scripts/NAME.py` ([python.md](python.md)) | like the workspace |

A workspace overrides your user config, which overrides a manifest or a script; variables such as
`KITBAG_LIMITS_MEMORY` and options of a command override all files. Exceptions only restrict access: limits
and grants of a workspace take effect up to `[ceiling]`, and lists such as `deny` are merged.
`kitbag config --show` prints the value of each key in effect, with its source; `kitbag check` reports mistakes.

**Set in** names the files that may have a key: `user` is your user config, `any` also a workspace. Manifests and
scripts have only keys of `[tools.NAME]`.
";

struct Page {
    text: String,
    /// The finished sections, by their properties: a repeated table becomes a link.
    sections: BTreeMap<String, String>,
}

#[test]
fn the_configuration_reference_is_current() {
    let schema = Workspace::new().run(&["config", "--schema"]).success();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut page = Page { text: INTRODUCTION.to_owned(), sections: BTreeMap::new() };
    for (key, property) in properties(&schema) {
        let is_table = properties(property).next().is_some() || named(property).is_some();
        match is_table || listed(property).is_some() {
            true => page.section(key, property, false),
            false => {
                let _ = write!(page.text, "\n## `{key}`\n");
                page.rows("", [(key, property)].into_iter(), false);
            }
        }
    }
    assert_current("configuration.md", &page.text);
}

impl Page {
    /// Adds a table of the file, with a row for each key, followed by its nested tables.
    fn section(&mut self, path: &str, schema: &Value, is_user_only: bool) {
        let (description, here) = scope(schema);
        let is_user_only = is_user_only || here;
        let (path, table) = match (named(schema), listed(schema)) {
            (Some(entry), _) => (format!("{path}.NAME"), entry),
            (_, Some(entry)) => (path.to_owned(), entry),
            _ => (path.to_owned(), schema),
        };
        let brackets = if listed(schema).is_some() { ("[[", "]]") } else { ("[", "]") };
        let level = if path.contains('.') { "###" } else { "##" };
        let title = format!("`{}{path}{}`", brackets.0, brackets.1);
        let _ = write!(self.text, "\n{level} {title}\n\n{description}\n");
        self.sections.insert(keys(table), title);
        self.rows(&path, properties(table), is_user_only);
        for (key, property) in properties(table) {
            let path = nested(&path, key, property);
            let is_user_only = is_user_only || scope(property).1;
            for table in tables(property) {
                if !properties(table).all(|(_, property)| property["description"].is_null())
                    && !self.sections.contains_key(&keys(table))
                {
                    let (mut table, (description, _)) = (table.clone(), scope(property));
                    table["description"] = description.into();
                    self.section(&path, &table, is_user_only);
                }
            }
        }
    }

    fn rows<'a>(
        &mut self,
        path: &str,
        rows: impl Iterator<Item = (&'a str, &'a Value)>,
        is_user_only: bool,
    ) {
        let _ = write!(
            self.text,
            "\n| key | type | default | set in | meaning |\n|---|---|---|---|---|\n"
        );
        for (key, property) in rows {
            let (mut meaning, here) = scope(property);
            let mut default = match &property["default"] {
                Value::Null => String::new(),
                value => format!("`{}`", toml(value)),
            };
            if let Some((rest, words)) = meaning.rsplit_once("Default: ")
                && default.is_empty()
                && words.matches(". ").count() == 0
            {
                default = words.trim_end_matches('.').to_owned();
                meaning = rest.trim_end().to_owned();
            }
            if let Some(example) = property["examples"].as_array().and_then(|all| all.last()) {
                let _ = write!(meaning, " Example: `{}`.", toml(example));
            }
            for table in tables(property) {
                if let Some(title) = self.sections.get(&keys(table)) {
                    let _ = write!(meaning, " The keys are those of {title}.");
                } else if properties(table).any(|(_, property)| !property["description"].is_null())
                {
                    let _ =
                        write!(meaning, " The table `{}` is below.", nested(path, key, property));
                }
            }
            let set_in = if is_user_only || here { "user" } else { "any" };
            let cell = |text: &str| text.replace('|', "\\|");
            let (kind, default) = (cell(&kind(property)), cell(&default));
            let _ = writeln!(
                self.text,
                "| `{key}` | {kind} | {default} | {set_in} | {} |",
                cell(&meaning)
            );
        }
    }
}

/// Returns the path of the tables in the value of a key.
fn nested(path: &str, key: &str, property: &Value) -> String {
    match named(property) {
        Some(_) => format!("{path}.{key}.NAME"),
        None => format!("{path}.{key}"),
    }
}

/// Returns the description without [`USER_ONLY`], and true if it ended with that sentence.
fn scope(schema: &Value) -> (String, bool) {
    let description = schema["description"].as_str().unwrap_or_default();
    match description.strip_suffix(USER_ONLY) {
        Some(description) => (description.trim_end().to_owned(), true),
        None => (description.to_owned(), false),
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let object = schema["properties"].as_object();
    object.into_iter().flat_map(Map::iter).map(|(key, property)| (key.as_str(), property))
}

/// The names of the keys of a table; tables of the same type have the same keys.
fn keys(table: &Value) -> String {
    table["properties"].to_string()
}

/// The schema of the values in a table of named tables.
fn named(schema: &Value) -> Option<&Value> {
    let entry = &schema["additionalProperties"];
    entry["properties"].is_object().then_some(entry)
}

/// The schema of the items in an array of tables.
fn listed(schema: &Value) -> Option<&Value> {
    let entry = &schema["items"];
    entry["properties"].is_object().then_some(entry)
}

/// The tables in the value of a key.
fn tables(schema: &Value) -> Vec<&Value> {
    if schema["properties"].is_object() {
        return vec![schema];
    }
    let nested = ["additionalProperties", "items"].into_iter().map(|key| &schema[key]);
    let variants = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array());
    nested.chain(variants.flatten()).filter(|inner| inner.is_object()).flat_map(tables).collect()
}

/// The type of a value, as prose and literals.
fn kind(schema: &Value) -> String {
    for key in ["oneOf", "anyOf"] {
        if let Some(variants) = schema[key].as_array() {
            let mut kinds: Vec<_> = variants.iter().map(kind).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{}`", toml(value))).collect();
        return values.join(" or ");
    }
    if !schema["const"].is_null() {
        return format!("`{}`", toml(&schema["const"]));
    }
    match (&schema["type"], &schema["items"]) {
        (Value::String(name), items) if name == "array" && items.is_object() => {
            format!("list of {}", kind(items))
        }
        (Value::String(name), _) if name == "object" => "table".to_owned(),
        (Value::String(name), _) => name.clone(),
        (Value::Array(names), _) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        _ => "any value".to_owned(),
    }
}

/// A value in TOML syntax.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let is_bare = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let key = if is_bare { key.clone() } else { format!("{key:?}") };
                format!("{key} = {}", toml(value))
            });
            match entries.collect::<Vec<_>>() {
                entries if entries.is_empty() => "{}".to_owned(),
                entries => format!("{{ {} }}", entries.join(", ")),
            }
        }
        Value::Array(values) => {
            let values: Vec<_> = values.iter().map(toml).collect();
            format!("[{}]", values.join(", "))
        }
        value => value.to_string(),
    }
}
