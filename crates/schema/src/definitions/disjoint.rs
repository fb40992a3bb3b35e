//! Proves that no value matches two branches of a choice, so that `oneOf` and `anyOf` are equal.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::reference::resolve;
use super::root;
use crate::complexity::size;
use crate::types::Types;

/// Maximum number of comparisons for one schema, of pairs of schemas, keys and values. With
/// references, a short untrusted schema can require any number.
const COMPARISONS: u64 = 4_000_000;

/// The cost of a pair of schemas in addition to its keys and values.
const COMPARISONS_PER_PAIR: u64 = 100;

/// The depth to which branches are compared.
const LEVELS: usize = 8;

/// The number of comparisons left for a schema.
pub(super) struct Comparisons(u64);

impl Default for Comparisons {
    fn default() -> Self {
        Self(COMPARISONS)
    }
}

impl Comparisons {
    fn spend(&mut self, comparisons: u64) -> bool {
        let rest = self.0.checked_sub(comparisons);
        self.0 = rest.unwrap_or_default();
        rest.is_some()
    }
}

/// Returns true if it is certain that no value matches two branches. False if it is unknown.
pub(super) fn are_disjoint(root: &Value, branches: &[Value], left: &mut Comparisons) -> bool {
    let pairs = branches
        .iter()
        .enumerate()
        .flat_map(|(index, first)| branches[index + 1..].iter().map(move |second| (first, second)));
    for (first, second) in pairs {
        if !pair(root, first, second, LEVELS, left) {
            return false;
        }
    }
    true
}

fn pair(
    root: &Value,
    first: &Value,
    second: &Value,
    levels: usize,
    left: &mut Comparisons,
) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    let (Some(first), Some(second)) = (target(root, first), target(root, second)) else {
        return false;
    };
    let keys = root::required(first).count() + root::required(second).count();
    if !left.spend(COMPARISONS_PER_PAIR + keys as u64) {
        return false;
    }
    let [own, others] = [first, second].map(|rules| Types::named(rules).unwrap_or(Types::ALL));
    if !own.meet(others) {
        return true;
    }
    if let (Some(first), Some(second)) = (choices(first), choices(second)) {
        let sizes = first.iter().map(|value| size(value)).sum::<u64>();
        if !left.spend(sizes.saturating_mul(second.len() as u64)) {
            return false;
        }
        // 1 and 1.0 are equal values with different JSON.
        let is_number = |value: &&&Value| value.is_number();
        let has_numbers =
            first.iter().any(|v| is_number(&v)) && second.iter().any(|v| is_number(&v));
        return !has_numbers && !first.iter().any(|value| second.contains(value));
    }
    if own.and(others) != Types::OBJECT {
        return false;
    }
    lacks_required(first, second)
        || lacks_required(second, first)
        || required_differs(root, first, second, levels, left)
}

/// Follows references that have no siblings.
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

fn choices(rules: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (rules.get("const"), rules.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(choices))) => Some(choices.iter().collect()),
        _ => None,
    }
}

/// Returns true if one schema forbids a key that the other requires.
fn lacks_required(closed: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_closed = closed.get("additionalProperties") == Some(&Value::Bool(false))
        && !closed.contains_key("patternProperties");
    let takes = |key| closed.get("properties").and_then(|properties| properties.get(key)).is_some();
    is_closed && root::required(other).any(|key| !takes(key))
}

/// Returns true if both require a key and no value matches both of its schemas.
fn required_differs(
    root: &Value,
    first: &Map<String, Value>,
    second: &Map<String, Value>,
    levels: usize,
    left: &mut Comparisons,
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
