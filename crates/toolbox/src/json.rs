//! JSON as tools get it.

use kitbag_contract::json::Digits;
use serde_json::{Map, Value};

/// Arguments as text, the same for the same arguments.
pub(crate) fn exact_text(arguments: Map<String, Value>, digits: &Digits) -> String {
    match digits.is_empty() {
        true => text(&arguments),
        false => digits.text(&Value::Object(arguments)),
    }
}

/// A JSON object as text, the same for the same object.
pub(crate) fn text(object: &Map<String, Value>) -> String {
    // Room for what is long as a rule, so that it is not copied as this grows.
    let long: usize = object.values().filter_map(Value::as_str).map(str::len).sum();
    let mut text = Vec::with_capacity(long + long / 16 + 128);
    serde_json::to_writer(&mut text, object).expect("every key is a string");
    String::from_utf8(text).expect("JSON is text")
}
