//! Which keywords hold schemas, and which values those apply to.

use serde_json::{Map, Value};

/// What the schemas of a keyword apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The value that the keyword is about.
    Same,
    /// Values within it.
    Within,
    /// Nothing, until something refers to them.
    Nothing,
}

/// How a keyword holds its schemas.
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
        // `dependencies` holds lists of names too, which are no schemas.
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

/// The schemas that a keyword holds for this target.
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

/// Shows every schema within a schema, itself among them.
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
