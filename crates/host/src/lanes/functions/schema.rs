//! JSON Schemas of WIT types.
//!
//! | WIT | JSON |
//! |---|---|
//! | `bool`, `string`, `list`, `record` | boolean, string, array, object |
//! | `s8` … `u64` | integer |
//! | `f32`, `f64` | number; in results also `"NaN"`, `"Infinity"` and `"-Infinity"` |
//! | `char` | string of one character |
//! | `tuple` | array of fixed length |
//! | `enum`, `flags` | name; array of names |
//! | `variant` | `{"tag": name, "val": payload}`, without `val` if the case has no payload |
//! | `option` | the value or `null`; `{"some": value}` if the value itself can be `null` |
//! | `result` | `{"ok": payload}` or `{"err": payload}`; `null` if there is no payload |

use serde_json::{Map, Value, json};

use super::types::{IntegerType, WitType};

/// The forms of a float that JSON has no number for.
pub(super) const NAN: &str = "NaN";
pub(super) const INFINITY: &str = "Infinity";
pub(super) const NEGATIVE_INFINITY: &str = "-Infinity";

/// The direction of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Arguments,
    Result,
}

/// Returns the schema of the arguments of a function.
pub(super) fn of_parameters(parameters: &[(String, WitType)]) -> Value {
    object(parameters, Direction::Arguments)
}

/// Returns the schema of a result that is a JSON object. `None` if the result is another value.
pub(super) fn of_result(ty: &WitType) -> Option<Value> {
    match ty {
        WitType::Record(fields) => Some(object(fields, Direction::Result)),
        _ => None,
    }
}

fn of(ty: &WitType, direction: Direction) -> Value {
    let of = |ty: &WitType| of(ty, direction);
    match ty {
        WitType::Bool => json!({ "type": "boolean" }),
        WitType::Integer(integer) => integer_schema(*integer),
        WitType::Float32 | WitType::Float64 => match direction {
            // A choice would prevent the conversion of words such as `1.5` to numbers.
            Direction::Arguments => json!({ "type": "number" }),
            Direction::Result => json!({
                "anyOf": [{ "type": "number" }, { "enum": [NAN, INFINITY, NEGATIVE_INFINITY] }],
            }),
        },
        WitType::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        WitType::String => json!({ "type": "string" }),
        WitType::List(ty) => json!({ "type": "array", "items": of(ty) }),
        WitType::Record(fields) => object(fields, direction),
        WitType::Tuple(types) => json!({
            "type": "array",
            "prefixItems": types.iter().map(of).collect::<Value>(),
            "minItems": types.len(),
            "maxItems": types.len(),
        }),
        WitType::Variant(cases) => {
            let case = |(name, payload): (&str, &Option<WitType>)| {
                let mut properties = Map::new();
                properties.insert("tag".to_owned(), json!({ "const": name }));
                let payload = payload.as_ref().map(|ty| ("val".to_owned(), of(ty)));
                properties.extend(payload);
                closed(properties)
            };
            json!({ "oneOf": cases.iter().map(case).collect::<Value>() })
        }
        WitType::Enum(names) => {
            let names: Value = names.iter().map(|(name, ())| name).collect();
            json!({ "type": "string", "enum": names })
        }
        WitType::Option(ty) => {
            let some = match ty.is_nullable() {
                true => closed(Map::from_iter([("some".to_owned(), of(ty))])),
                false => of(ty),
            };
            json!({ "anyOf": [some, { "type": "null" }] })
        }
        WitType::Result { ok, err } => {
            let side = |name: &str, payload: &Option<Box<WitType>>| {
                let payload = payload.as_ref().map_or(json!({ "type": "null" }), |ty| of(ty));
                closed(Map::from_iter([(name.to_owned(), payload)]))
            };
            json!({ "oneOf": [side("ok", ok), side("err", err)] })
        }
        WitType::Flags(names) => {
            let names: Value = names.iter().map(|(name, ())| name).collect();
            json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true })
        }
    }
}

/// Returns the bounds of a type, unless every number of 64 bits that kitbag reads is within them.
fn integer_schema(integer: IntegerType) -> Value {
    let (least, most) = integer.range();
    match integer {
        IntegerType::S64 => json!({ "type": "integer" }),
        IntegerType::U64 => json!({ "type": "integer", "minimum": 0 }),
        _ => {
            let [least, most] = [least, most].map(|number| i64::try_from(number).ok());
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
    }
}

/// Returns the schema of an object. Optional keys may be missing from arguments; results have all.
fn object(fields: &[(String, WitType)], direction: Direction) -> Value {
    let is_required = |ty: &WitType| direction == Direction::Result || !ty.is_nullable();
    let required = fields.iter().filter(|(_, ty)| is_required(ty)).map(|(name, _)| &**name);
    let required: Vec<&str> = required.collect();
    let properties = fields.iter().map(|(name, ty)| (name.clone(), of(ty, direction)));
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the schema of an object with exactly these keys.
fn closed(properties: Map<String, Value>) -> Value {
    let required: Value = properties.keys().map(|name| &**name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{enumeration, flags, option, record, variant};
    use super::*;

    #[track_caller]
    fn check(ty: &WitType, expected: Value) {
        assert_eq!(of(ty, Direction::Arguments), expected);
    }

    #[test]
    fn each_type_has_a_schema() {
        check(&WitType::Bool, json!({ "type": "boolean" }));
        check(
            &WitType::Integer(IntegerType::S16),
            json!({ "type": "integer", "minimum": -32768, "maximum": 32767 }),
        );
        check(&WitType::Integer(IntegerType::U64), json!({ "type": "integer", "minimum": 0 }));
        check(&WitType::Float32, json!({ "type": "number" }));
        check(&WitType::Char, json!({ "type": "string", "minLength": 1, "maxLength": 1 }));
        check(
            &WitType::List(Box::new(WitType::Bool)),
            json!({ "type": "array", "items": { "type": "boolean" } }),
        );
        check(&enumeration(&["a", "b"]), json!({ "type": "string", "enum": ["a", "b"] }));
        check(
            &flags(&["a", "b"]),
            json!({ "type": "array", "items": { "enum": ["a", "b"] }, "uniqueItems": true }),
        );
        check(
            &WitType::Tuple(vec![WitType::Bool, WitType::String]),
            json!({
                "type": "array",
                "prefixItems": [{ "type": "boolean" }, { "type": "string" }],
                "minItems": 2,
                "maxItems": 2,
            }),
        );
        check(
            &variant(&[("none", None), ("some", Some(WitType::Bool))]),
            json!({ "oneOf": [
                {
                    "type": "object",
                    "properties": { "tag": { "const": "none" } },
                    "required": ["tag"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": { "tag": { "const": "some" }, "val": { "type": "boolean" } },
                    "required": ["tag", "val"],
                    "additionalProperties": false,
                },
            ] }),
        );
    }

    #[test]
    fn optional_fields_are_required_in_results_only() {
        let ty = record(&[("a", option(WitType::Bool)), ("b", WitType::Bool)]);
        let arguments = of(&ty, Direction::Arguments);
        assert_eq!(arguments["required"], json!(["b"]));
        assert_eq!(
            arguments["properties"]["a"],
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "null" }] })
        );
        assert_eq!(of_result(&ty).unwrap()["required"], json!(["a", "b"]));
        assert_eq!(of_result(&WitType::Bool), None);
    }
}
