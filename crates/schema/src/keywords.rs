//! Keywords that contain schemas, and the values to which these apply.

use serde_json::{Map, Value};

/// The values to which the schemas of a keyword apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The value of the keyword itself.
    Same,
    /// Values within it.
    Within,
    /// No value, unless a reference refers to them.
    Nothing,
}

/// The form in which a keyword contains its schemas.
#[derive(Clone, Copy)]
enum Form {
    One,
    List,
    Map,
    /// As in drafts before 2020-12.
    OneOrList,
}

fn keyword(keyword: &str) -> Option<(Target, Form)> {
    Some(match keyword {
        "allOf" | "anyOf" | "oneOf" => (Target::Same, Form::List),
        "not" | "if" | "then" | "else" => (Target::Same, Form::One),
        // `dependencies` also contains lists of names, which are not schemas.
        "dependentSchemas" | "dependencies" => (Target::Same, Form::Map),
        "properties" | "patternProperties" => (Target::Within, Form::Map),
        "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
            (Target::Within, Form::One)
        }
        "additionalItems" | "unevaluatedItems" | "contains" => (Target::Within, Form::One),
        "items" => (Target::Within, Form::OneOrList),
        "prefixItems" => (Target::Within, Form::List),
        "$defs" | "definitions" => (Target::Nothing, Form::Map),
        _ => return None,
    })
}

/// Returns the schemas of a keyword that have this target.
pub(crate) fn schemas<'r>(
    name: &str,
    rule: &'r Value,
    target: Target,
) -> impl Iterator<Item = &'r Value> + use<'r> {
    let form = keyword(name).filter(|(found, _)| *found == target).map(|(_, form)| form);
    let (one, list, map) = match (form, rule) {
        (Some(Form::Map), Value::Object(map)) => (None, None, Some(map)),
        (Some(Form::List | Form::OneOrList), Value::Array(list)) => (None, Some(list), None),
        (Some(Form::One | Form::OneOrList), rule) => (Some(rule), None, None),
        _ => (None, None, None),
    };
    let list = list.into_iter().flatten();
    one.into_iter().chain(list).chain(map.into_iter().flat_map(Map::values))
}

/// Returns true if a keyword's schemas have the required form, with at least one in a list.
pub(crate) fn is_well_formed(name: &str, rule: &Value) -> bool {
    let is_schema = |schema: &Value| schema.is_object() || schema.is_boolean();
    let is_list =
        || rule.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_schema));
    match keyword(name).map(|(_, form)| form) {
        None => true,
        Some(Form::One) => is_schema(rule),
        Some(Form::List) => is_list(),
        Some(Form::OneOrList) => is_schema(rule) || is_list(),
        Some(Form::Map) => rule.as_object().is_some_and(|map| {
            let is_names = |value: &Value| name == "dependencies" && value.is_array();
            map.values().all(|value| is_schema(value) || is_names(value))
        }),
    }
}

/// Visits every schema within a schema, including itself.
pub(crate) fn each_schema(schema: &mut Value, look: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(rules) = schema else { return };
    look(rules);
    for (name, rule) in rules {
        match (keyword(name).map(|(_, form)| form), rule) {
            (Some(Form::Map), Value::Object(map)) => {
                map.values_mut().for_each(|schema| each_schema(schema, look));
            }
            (Some(Form::List | Form::OneOrList), Value::Array(list)) => {
                list.iter_mut().for_each(|schema| each_schema(schema, look));
            }
            (Some(Form::One | Form::OneOrList), schema) => each_schema(schema, look),
            _ => {}
        }
    }
}
