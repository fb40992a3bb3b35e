//! Whether no value fits two branches of a choice, so that it does not matter
//! whether one or any of them has to fit.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{resolve, root};

/// How many pairs of schemas are compared. References let a short schema, which
/// is the tool's word, have any number.
const PAIRS: usize = 4_096;

/// How deep in the branches a difference is looked for.
const LEVELS: usize = 8;

/// Whether it is plain that no value fits two of the branches. `false` means
/// only that it is not plain.
pub(super) fn are_disjoint(root: &Value, branches: &[Value]) -> bool {
    let mut left = PAIRS;
    let pairs = branches
        .iter()
        .enumerate()
        .flat_map(|(index, first)| branches[index + 1..].iter().map(move |second| (first, second)));
    for (first, second) in pairs {
        if !pair(root, first, second, LEVELS, &mut left) {
            return false;
        }
    }
    true
}

fn pair(root: &Value, first: &Value, second: &Value, levels: usize, left: &mut usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    *left = match left.checked_sub(1) {
        Some(left) => left,
        None => return false,
    };
    let (Some(first), Some(second)) = (target(root, first), target(root, second)) else {
        return false;
    };
    let (kinds, others) = (kinds(first), kinds(second));
    if kinds.is_disjoint(&others) {
        return true;
    }
    let both: BTreeSet<_> = kinds.intersection(&others).copied().collect();
    if let (Some(first), Some(second)) = (choices(first), choices(second)) {
        // 1 and 1.0 are the same value and not the same JSON.
        let is_number = |value: &&&Value| value.is_number();
        let has_numbers =
            first.iter().any(|v| is_number(&v)) && second.iter().any(|v| is_number(&v));
        return !has_numbers && !first.iter().any(|value| second.contains(value));
    }
    if both != BTreeSet::from(["object"]) {
        return false;
    }
    lacks_required(first, second)
        || lacks_required(second, first)
        || required_differs(root, first, second, levels, left)
}

/// Follows references; only what stands alone is followed.
fn target<'a>(root: &'a Value, mut schema: &'a Value) -> Option<&'a Map<String, Value>> {
    const HOPS: usize = 16;
    for _ in 0..HOPS {
        let rules = schema.as_object()?;
        match rules.get("$ref") {
            Some(Value::String(reference)) => schema = resolve(root, reference)?.1,
            _ => return Some(rules),
        }
    }
    None
}

/// The types that values may have; all of them where nothing is said.
fn kinds(rules: &Map<String, Value>) -> BTreeSet<&str> {
    const ALL: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
    // Every integer is a number.
    let name = |kind: &'_ Value| match kind.as_str() {
        Some("integer") => Some("number"),
        Some(kind) => ALL.into_iter().find(|known| *known == kind),
        None => None,
    };
    match rules.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(name).collect(),
        Some(kind) => name(kind).into_iter().collect(),
        None => ALL.into(),
    }
}

fn choices(rules: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (rules.get("const"), rules.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(choices))) => Some(choices.iter().collect()),
        _ => None,
    }
}

/// Whether one takes no key that the other must have.
fn lacks_required(closed: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_closed = closed.get("additionalProperties") == Some(&Value::Bool(false))
        && !closed.contains_key("patternProperties");
    let takes = |key| closed.get("properties").and_then(|properties| properties.get(key)).is_some();
    is_closed && root::required(other).any(|key| !takes(key))
}

/// Whether both must have a key of which no value fits both.
fn required_differs(
    root: &Value,
    first: &Map<String, Value>,
    second: &Map<String, Value>,
    levels: usize,
    left: &mut usize,
) -> bool {
    let keys: BTreeSet<_> = root::required(second).collect();
    for key in root::required(first).filter(|key| keys.contains(key)) {
        if let (Some(first), Some(second)) = (property(first, key), property(second, key))
            && pair(root, first, second, levels, left)
        {
            return true;
        }
    }
    false
}

fn property<'a>(rules: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    rules.get("properties")?.get(key)
}
