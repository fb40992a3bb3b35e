//! The size limits of strict mode.

use serde_json::Value;

/// The limits of the interface.
const PROPERTIES: usize = 5_000;
const DEPTH: usize = 10;
const TEXT_CHARS: usize = 120_000;
const CHOICES: usize = 1_000;
/// The number of choices above which their total length is limited.
const MANY_CHOICES: usize = 250;
const MANY_CHOICES_CHARS: usize = 15_000;

/// The sizes that the interface limits.
#[derive(Default)]
pub(super) struct Size {
    properties: usize,
    depth: usize,
    text: usize,
    choices: usize,
    /// The length of the longest large list of choices, in characters.
    long_list: usize,
}

impl Size {
    pub(super) fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        size.add(schema, 0);
        size
    }

    fn add(&mut self, schema: &Value, depth: usize) {
        let Value::Object(rules) = schema else { return };
        let chars = |text: &str| text.chars().count();
        let mut inside = depth;
        if let Some(Value::Object(properties)) = rules.get("properties") {
            inside += 1;
            self.depth = self.depth.max(inside);
            self.properties += properties.len();
            for (name, schema) in properties {
                self.text += chars(name);
                self.add(schema, inside);
            }
        }
        if let Some(Value::Array(choices)) = rules.get("enum") {
            let text: usize = choices.iter().filter_map(Value::as_str).map(chars).sum();
            self.choices += choices.len();
            self.text += text;
            if choices.len() > MANY_CHOICES {
                self.long_list = self.long_list.max(text);
            }
        }
        if let Some(Value::Object(definitions)) = rules.get("$defs") {
            for (name, schema) in definitions {
                self.text += chars(name);
                self.add(schema, 0);
            }
        }
        if let Some(items) = rules.get("items") {
            self.add(items, inside);
        }
        for branch in rules.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.add(branch, inside);
        }
    }

    /// Describes the exceeded limit.
    pub(super) fn excess(&self) -> Option<String> {
        let limits = [
            (self.properties, PROPERTIES, "properties"),
            (self.depth, DEPTH, "levels of objects"),
            (self.text, TEXT_CHARS, "characters of names and choices"),
            (self.choices, CHOICES, "choices"),
            (self.long_list, MANY_CHOICES_CHARS, "characters in one long list of choices"),
        ];
        let (found, limit, noun) = limits.into_iter().find(|(found, limit, _)| found > limit)?;
        Some(format!("has {found} {noun}, but strict mode allows {limit}"))
    }
}
