//! Results that a hostile component returns.

use serde_json::json;

use super::*;

#[test]
fn lies_about_lengths_allocate_nothing() {
    let check = |ty: &str, data: &str, expected: &str| {
        let ty = format!(r#"(func (export "call") (result {ty}) {LIFT}"#);
        let core = format!(
            r#"(data (i32.const 8) "{data}") (func (export "call") (result i32) (i32.const 8))"#
        );
        let error = Guest::new(&component(&ty, &core)).call("call", &json!({})).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{ty}: {error}");
    };
    let most = r"\10\00\00\00\ff\ff\ff\ff";
    check("string", most, "out of bounds");
    check("(list u8)", most, "out of bounds");
    check("(list (list string))", most, "out of bounds");
    // 25 MB, which are in the memory.
    let whole = r"\10\00\00\00\00\78\7d\01";
    let exhausted = "fuel allocated for hostcalls has been exhausted";
    check("string", whole, exhausted);
    check("(list u8)", whole, exhausted);
    check("(list bool)", whole, exhausted);
    check("(list (tuple u8 (option u8)))", r"\10\00\00\00\00\78\5d\00", exhausted);
}

#[test]
fn values_that_do_not_exist_are_refused() {
    let check = |ty: &str, number: u32, expected: &str| {
        let ty = format!(
            r#"(type $e (enum "a" "b")) (export $choice "choice" (type $e))
               (func (export "call") (result {ty}) {LIFT}"#
        );
        let core = format!(
            r#"(data (i32.const 0) "\02\02\02\02\02\02\02\02")
               (data (i32.const 16) "\02\00\00\00\01\00\00\00")
               (data (i32.const 24) "\03\00\00\00\01\00\00\00\ff")
               (func (export "call") (result i32) (i32.const {number}))"#
        );
        let error = Guest::new(&component(&ty, &core)).call("call", &json!({})).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{ty}: {error}");
    };
    check("$choice", 2, "out of range");
    check("(option u8)", 0, "out of range");
    check("(result u8)", 0, "out of range");
    check("char", 0xd800, "char");
    check("char", 0x11_0000, "char");
    // At 24 the list has one element at 3.
    check("(list $choice)", 24, "out of range");
    check("string", 28, "invalid utf-8");
}

#[test]
fn names_of_flags_count_with_their_memory() {
    let names: Vec<_> = ('a'..='z').map(|name| name.to_string()).collect();
    let names: Vec<_> = names.iter().map(|name| &**name).collect();
    let ty = list(flags(&names));
    assert!(ty.expansion() > 20, "{}", ty.expansion());
    let (mut definitions, mut number) = (String::new(), 0);
    let form = define(&ty, &mut definitions, &mut number);
    let ty = format!(r#"{definitions} (func (export "call") (result {form}) {LIFT}"#);
    // 100,000 elements with all flags.
    let core = r#"
        (data (i32.const 8) "\10\00\00\00\a0\86\01\00")
        (func (export "call") (result i32)
            (memory.fill (i32.const 16) (i32.const 0xff) (i32.const 400000))
            (i32.const 8))"#;
    let error = Guest::new(&component(&ty, core)).call("call", &json!({})).unwrap_err();
    assert!(format!("{error:#}").contains("exhausted"), "{error:#}");
}
