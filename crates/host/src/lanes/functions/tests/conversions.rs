//! JSON to values and back.

use serde_json::json;

use super::*;

#[track_caller]
fn check_read(ty: &WitType, value: &Value, expected: Result<&Value, (&str, &str)>) {
    let read = values::read(ty, value, BYTES);
    let read = read.map(|value| values::json(ty, &value, BYTES).unwrap());
    let expected = expected.map(Value::to_string);
    let expected = expected.map_err(|(pointer, message)| values::Mismatch {
        pointer: pointer.to_owned(),
        message: message.to_owned(),
    });
    assert_eq!(read, expected);
}

#[test]
fn numbers_keep_all_digits() {
    let integer = WitType::Integer;
    for (ty, value) in [
        (integer(IntegerType::U64), json!(u64::MAX)),
        (integer(IntegerType::S64), json!(i64::MIN)),
        (integer(IntegerType::S8), json!(-128)),
        (WitType::Float64, json!(0.1)),
        (WitType::Float64, json!(-0.0)),
        (WitType::Float64, json!("NaN")),
        (WitType::Float32, json!("-Infinity")),
        (WitType::Float32, json!("Infinity")),
    ] {
        check_read(&ty, &value, Ok(&value));
    }
    check_read(&integer(IntegerType::U8), &json!(7.0), Ok(&json!(7)));
    let text = values::json(&WitType::Float32, &Val::Float32(0.1), BYTES);
    assert_eq!(text.unwrap(), "0.1");
}

#[test]
fn numbers_out_of_range_are_refused_with_a_pointer() {
    let check = |ty: IntegerType, value: Value, message: &str| {
        let list = list(WitType::Integer(ty));
        check_read(&list, &json!([0, value]), Err(("/1", message)));
    };
    check(IntegerType::U8, json!(256), "must be a whole number from 0 to 255, but is `256`");
    check(IntegerType::U8, json!(-1), "must be a whole number from 0 to 255, but is `-1`");
    check(IntegerType::U8, json!(1.5), "must be a whole number from 0 to 255, but is `1.5`");
    check(
        IntegerType::S64,
        json!(u64::MAX),
        "must be a whole number from -9223372036854775808 to 9223372036854775807, but is \
         `18446744073709551615`",
    );
    check(
        IntegerType::U64,
        json!(1e16),
        "must be a whole number from 0 to 18446744073709551615, but is `1e+16`",
    );
    let float = record(&[("x", WitType::Float32)]);
    let refused = "must be a number of 32 bits, but is `1e39`";
    check_read(&float, &json!({ "x": 1e39 }), Err(("/x", refused)));
}

#[test]
fn optional_fields_may_be_missing_or_null() {
    let ty = record(&[("a", option(WitType::String)), ("b", WitType::Bool)]);
    let none = json!({ "a": null, "b": true });
    check_read(&ty, &json!({ "b": true }), Ok(&none));
    check_read(&ty, &none, Ok(&none));
    check_read(&ty, &json!({ "a": "x" }), Err(("", "must have the key `b`")));
    let unknown = json!({ "b": true, "c": 1 });
    check_read(&ty, &unknown, Err(("", "must not have the key `c`")));
    let wrong = json!({ "a": 1, "b": true });
    check_read(&ty, &wrong, Err(("/a", "must be a string, but is a number")));
}

#[test]
fn nested_options_have_different_forms() {
    let ty = option(option(WitType::Bool));
    for value in [json!(null), json!({ "some": null }), json!({ "some": true })] {
        check_read(&ty, &value, Ok(&value));
    }
    check_read(
        &ty,
        &json!(true),
        Err(("", "must be an object with the key `some`, but is true or false")),
    );
}

#[test]
fn choices_are_refused_with_a_pointer() {
    let ty = variant(&[("none", None), ("some", Some(WitType::Bool))]);
    for value in [json!({ "tag": "none" }), json!({ "tag": "some", "val": true })] {
        check_read(&ty, &value, Ok(&value));
    }
    check_read(
        &ty,
        &json!({ "tag": "x" }),
        Err(("/tag", "must be one of `none`, `some`, but is `x`")),
    );
    check_read(&ty, &json!({}), Err(("", "must have the key `tag` with the name of a case")));
    let without = "must have the key `val` for the case `some`";
    check_read(&ty, &json!({ "tag": "some" }), Err(("", without)));
    let wrong = json!({ "tag": "some", "val": 1 });
    check_read(&ty, &wrong, Err(("/val", "must be true or false, but is a number")));
    let ty = WitType::Result { ok: None, err: Some(Box::new(WitType::String)) };
    for value in [json!({ "ok": null }), json!({ "err": "x" })] {
        check_read(&ty, &value, Ok(&value));
    }
    let both = json!({ "ok": null, "err": "x" });
    check_read(&ty, &both, Err(("", "must be an object with the key `ok` or `err`")));
    let ty = flags(&["a", "b"]);
    check_read(&ty, &json!(["b", "a"]), Ok(&json!(["a", "b"])));
    check_read(&ty, &json!(["a", "a"]), Err(("/1", "repeats `a`")));
    check_read(&ty, &json!(["c"]), Err(("/0", "must be one of `a`, `b`, but is `c`")));
    check_read(&WitType::Char, &json!("ab"), Err(("", "must have exactly one character")));
    check_read(&WitType::Char, &json!("ß"), Ok(&json!("ß")));
}

#[test]
fn a_small_text_cannot_become_large_values() {
    let names: Vec<_> = (0..1_000).map(|number| format!("field-{number}")).collect();
    let fields: Vec<_> = names.iter().map(|name| (&**name, option(WitType::Bool))).collect();
    let ty = list(record(&fields));
    let value = Value::from(vec![json!({}); 10_000]);
    let refused = values::read(&ty, &value, BYTES).unwrap_err();
    assert_eq!(refused.message, "has a value of too many parts for one call");
}

#[test]
fn long_results_are_refused() {
    let ty = list(WitType::String);
    let value = Val::List(vec![Val::String("\u{1}".repeat(100))]);
    assert_eq!(values::json(&ty, &value, 604).unwrap().len(), 604);
    assert_eq!(values::json(&ty, &value, 603), Err(values::TooLong));
}
