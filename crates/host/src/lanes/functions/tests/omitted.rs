//! Exported functions that are not tools.

use serde_json::json;

use super::*;

#[test]
fn functions_with_resources_are_omitted_by_name() {
    let text = r#"(component
        (core module $m (func (export "f") (result i32) (i32.const 1)))
        (core instance $i (instantiate $m))
        (type $file' (resource (rep i32)))
        (export $file "file" (type $file'))
        (core func $new (canon resource.new $file'))
        (func (export "open") (result (own $file)) (canon lift (core func $i "f")))
        (func (export "number") (result u32) (canon lift (core func $i "f"))))"#;
    let guest = Guest::new(text);
    assert_eq!(guest.names(), ["number"]);
    assert_eq!(guest.functions.omitted(), [omitted("open", "uses a resource")]);
    assert_eq!(success(guest.call("number", &json!({}))), "1");
    let two = text.replace("(func (export \"number\")", "(func (export \"a\") (result u32) (canon lift (core func $i \"f\"))) (func (export \"number\")");
    let refused = message(Guest::new(&two).call("open", &json!({})));
    assert_eq!(refused, "`open` cannot be called: it uses a resource");
    let only = text.replace(r#"(func (export "number")"#, r#"(func $other"#);
    let error = Guest::load(&only).err().unwrap().to_string();
    assert_eq!(
        error,
        "the component exports no function that kitbag can call: `open` uses a resource"
    );
}

#[test]
fn instances_are_prefixed_and_hooks_are_omitted() {
    let text = r#"(component
        (core module $m
            (func (export "f") (result i32) (i32.const 1))
            (func (export "nothing")))
        (core instance $i (instantiate $m))
        (func $f (result u32) (canon lift (core func $i "f")))
        (func $nothing (canon lift (core func $i "nothing")))
        (instance $inner (export "get" (func $f)))
        (export "acme:math/numbers@0.1.0" (instance $inner))
        (export "wasi:cli/run@0.2.0" (instance $inner))
        (export "golem:api/save-snapshot@1.1.0" (instance $inner))
        (export "exports" (instance $inner))
        (export "init" (func $nothing))
        (export "initialize" (func $f)))"#;
    let guest = Guest::new(text);
    assert_eq!(guest.names(), ["acme_math_numbers_0_1_0_get", "initialize"]);
    assert_eq!(success(guest.call("acme_math_numbers_0_1_0_get", &json!({}))), "1");
    let description = guest.functions.description(&FunctionDocs::default());
    assert_eq!(
        description.tools[0].description.as_deref(),
        Some("The function `acme:math/numbers@0.1.0#get`.")
    );
}

fn omitted(function: &str, reason: &str) -> Omission {
    Omission { function: function.to_owned(), reason: reason.to_owned() }
}

#[test]
fn deep_and_large_types_are_omitted() {
    let check = |types: &str, ty: &str, reason: &str| {
        let text = format!(
            r#"{types}
               (func (export "call") (param "it" {ty}) {LIFT}
               (func (export "number") (result u8) (canon lift (core func $i "number")))"#
        );
        let core = r#"
            (func (export "call") (param i32 i32))
            (func (export "number") (result i32) (i32.const 7))"#;
        let guest = Guest::new(&component(&text, core));
        assert_eq!(guest.names(), ["number"]);
        assert_eq!(guest.functions.omitted(), [omitted("call", reason)]);
    };
    let deep = format!("{}u8{}", "(list ".repeat(25), ")".repeat(25));
    check("", &deep, "has types that are nested more than 24 levels");
    // Each level doubles the tree.
    let mut types = "(type $t0 (list u8))".to_owned();
    for level in 1..16 {
        let below = level - 1;
        writeln!(types, "(type $t{level} (tuple $t{below} $t{below}))").unwrap();
    }
    check(&types, "(list $t15)", "has types of more than 256 KiB");
    // The tree fits, but not its schema.
    let mut types = "(type $t0 (list u8))".to_owned();
    for level in 1..13 {
        let below = level - 1;
        writeln!(types, "(type $t{level} (tuple $t{below} $t{below}))").unwrap();
    }
    check(&types, "(list $t12)", "has a schema for which the description has no room");
}
