//! The JSON Schema of the files, generated from the types that serde reads.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::format::{ConfigFile, ScriptConfig, ToolConfig};

pub(crate) const CEILING: &str = "ceiling";

/// The keys that only the user config has.
pub(crate) const OWN_KEYS: [&str; 12] = [
    CEILING,
    "deny",
    "network",
    "audit",
    "approve",
    "output",
    "trust",
    "registry",
    "registries",
    "secrets",
    "secret_store",
    "allow_leak",
];

/// Marks a key that is read but never suggested.
pub(crate) const UNLISTED: &str = "x-unlisted";

/// Returns the JSON Schema of `config.toml` (draft 7, which TOML editors understand).
pub fn json_schema() -> Value {
    schema_of::<ConfigFile>()
}

/// Returns the JSON Schema of `config.toml` as the text of a file: indented, with a trailing
/// newline.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

/// Returns the JSON Schema of `.kitbag/config.toml`, without the keys that only the user config
/// has.
pub(crate) fn workspace_schema() -> Value {
    let mut schema = json_schema();
    for key in OWN_KEYS {
        schema["properties"][key][UNLISTED] = Value::Bool(true);
    }
    schema
}

/// Returns the JSON Schema of a manifest: the table of a tool. [`crate::resolve`] refuses the keys
/// that the component's file name already answers.
pub(crate) fn manifest_schema() -> Value {
    let mut schema = schema_of::<ToolConfig>();
    for key in ["source", "builtin", "wasm", "script", "dev", "mask"] {
        schema["properties"][key][UNLISTED] = Value::Bool(true);
    }
    schema
}

/// Returns the JSON Schema of the header of a script.
pub(crate) fn script_schema() -> Value {
    schema_of::<ScriptConfig>()
}

/// Returns the JSON Schema of a type that serde reads.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with_transform(Tidy);
    settings.into_generator().into_root_schema_for::<T>().into()
}

/// Removes what schemars adds but readers of the schema do not need.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        without_null(object);
        // `uint64` and the like are Rust's; editors do not know these formats.
        object.shift_remove("format");
        // A doc comment is wrapped, and an editor wraps the text again.
        if let Some(Value::String(description)) = object.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        const FIRST: [&str; 4] = ["$schema", "title", "description", "type"];
        let mut rest = std::mem::take(object);
        object.extend(FIRST.into_iter().filter_map(|key| rest.shift_remove_entry(key)));
        object.extend(rest);
    }
}

/// Removes `null`: a field of a struct is optional by being absent, and TOML has no null.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(variants)) = schema.get_mut("anyOf") else { return };
    variants.retain(|variant| *variant != json!({ "type": "null" }));
    let [Value::Object(only)] = variants.as_slice() else { return };
    let only = only.clone();
    schema.shift_remove("anyOf");
    if only.contains_key("$ref") {
        // Draft 7 ignores keys beside `$ref`, such as a description.
        schema.insert("allOf".to_owned(), json!([only]));
    } else {
        // The keywords of the field override those of its type.
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/configuration.md` is generated from the descriptions.
    #[test]
    fn descriptions_mark_the_keys_of_the_user_config() {
        let schema = json_schema();
        let properties = schema["properties"].as_object().unwrap().iter();
        let is_marked = |property: &Value| {
            property["description"].as_str().unwrap().ends_with("User config only.")
        };
        let marked = properties.filter(|(_, property)| is_marked(property));
        let mut marked: Vec<_> = marked.map(|(key, _)| key.as_str()).collect();
        let mut own = OWN_KEYS.to_vec();
        marked.sort_unstable();
        own.sort_unstable();
        assert_eq!(marked, own);
    }
}
