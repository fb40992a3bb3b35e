//! Tests with components in text form.

use std::fmt::Write;
use std::sync::Arc;

use kitbag_contract::{Action, Context, Limits};
use kitbag_http::{Account, Client};
use kitbag_schema::{Schema, without_end};
use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

use super::types::{IntegerType, Named};
use super::*;
use crate::call::report::Reports;
use crate::call::state::Stdio;
use crate::grants::GrantContext;
use crate::limits::host_data;

pub(super) fn record(fields: &[(&str, WitType)]) -> WitType {
    WitType::Record(fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect())
}

pub(super) fn variant(cases: &[(&str, Option<WitType>)]) -> WitType {
    WitType::Variant(cases.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect())
}

pub(super) fn enumeration(names: &[&str]) -> WitType {
    WitType::Enum(named(names))
}

pub(super) fn flags(names: &[&str]) -> WitType {
    WitType::Flags(named(names))
}

pub(super) fn option(ty: WitType) -> WitType {
    WitType::Option(Box::new(ty))
}

fn list(ty: WitType) -> WitType {
    WitType::List(Box::new(ty))
}

fn named(names: &[&str]) -> Named<()> {
    names.iter().map(|name| ((*name).to_owned(), ())).collect()
}

/// Memory for the values of one conversion.
const BYTES: usize = 16 << 20;

/// A component and its functions.
struct Guest {
    pre: InstancePre<State>,
    functions: Functions,
}

impl Guest {
    fn load(text: &str) -> Result<Self, InvalidComponent> {
        let mut config = kitbag_engine::config(kitbag_engine::Metering::Off);
        config.enable_compiler(true);
        let engine = Engine::new(&config).unwrap();
        let component = Component::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let functions = Functions::of(&component)?;
        let pre = Linker::new(&engine).instantiate_pre(&component).unwrap();
        Ok(Self { pre, functions })
    }

    fn new(text: &str) -> Self {
        match Self::load(text) {
            Ok(guest) => guest,
            Err(error) => panic!("{error}"),
        }
    }

    fn call(&self, name: &str, arguments: &Value) -> wasmtime::Result<Outcome> {
        let limits = Limits::default();
        let (grants, guard, secrets) = (&Arc::default(), &Arc::default(), &Arc::default());
        let (account, client) = (&Account::of_tool("test"), &Client::default());
        let (storage, tools) = (None, None);
        let granting =
            GrantContext { tool: "test", account, grants, guard, client, secrets, storage, tools };
        let state = State::new(granting, &limits, &Stdio::new(None), Reports::default()).unwrap();
        let mut store = Store::new(self.pre.engine(), state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(host_data(&limits).as_usize());
        store.set_epoch_deadline(1);
        let context = Context { root: String::new(), action: Action::Run };
        let arguments = &*arguments.to_string();
        let parameters = Parameters {
            context,
            name,
            arguments,
            answers: "{}",
            output: Limits::default().output,
        };
        let run = self.functions.run(&mut store, &self.pre, &parameters);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run)
    }

    fn names(&self) -> Vec<&str> {
        self.functions.functions.iter().map(|function| &*function.name).collect()
    }
}

/// A component with a function `call` of the given type, whose parameters and result may be lists
/// or strings, and a core function with its code.
fn component(ty: &str, core: &str) -> String {
    format!(
        r#"(component
            (core module $m
                (memory (export "memory") 400)
                (global $next (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and
                        (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
                    (global.set $next (i32.add (local.get $at) (local.get 3)))
                    (local.get $at))
                {core})
            (core instance $i (instantiate $m))
            (alias core export $i "memory" (core memory $memory))
            (alias core export $i "realloc" (core func $realloc))
            {ty}
        )"#
    )
}

/// The end of the type of a function, which lifts it.
const LIFT: &str =
    r#"(canon lift (core func $i "call") (memory $memory) (realloc (core func $realloc))))"#;

/// A component whose function returns its only argument, a list.
fn echo(ty: &WitType) -> String {
    let (mut definitions, mut number) = (String::new(), 0);
    let element = define(ty, &mut definitions, &mut number);
    component(
        &format!(
            r#"{definitions}
            (func (export "call") (param "it" (list {element})) (result (list {element})) {LIFT}"#
        ),
        r#"(func (export "call") (param i32 i32) (result i32)
            (i32.store (i32.const 0) (local.get 0))
            (i32.store (i32.const 4) (local.get 1))
            (i32.const 0))"#,
    )
}

/// Writes the definitions of a type, and returns its name or form.
fn define(ty: &WitType, to: &mut String, number: &mut usize) -> String {
    let form = match ty {
        WitType::Bool => return "bool".into(),
        WitType::Integer(integer) => return format!("{integer:?}").to_lowercase(),
        WitType::Float32 => return "f32".into(),
        WitType::Float64 => return "f64".into(),
        WitType::Char => return "char".into(),
        WitType::String => return "string".into(),
        WitType::List(ty) => return format!("(list {})", define(ty, to, number)),
        WitType::Option(ty) => return format!("(option {})", define(ty, to, number)),
        WitType::Tuple(types) => {
            let types: Vec<_> = types.iter().map(|ty| define(ty, to, number)).collect();
            return format!("(tuple {})", types.join(" "));
        }
        WitType::Result { ok, err } => {
            let mut form = "(result".to_owned();
            if let Some(ok) = ok {
                write!(form, " {}", define(ok, to, number)).unwrap();
            }
            if let Some(err) = err {
                write!(form, " (error {})", define(err, to, number)).unwrap();
            }
            return form + ")";
        }
        WitType::Record(fields) => {
            let field = |(name, ty): &(String, WitType)| {
                format!("(field \"{name}\" {})", define(ty, to, number))
            };
            format!("(record {})", fields.iter().map(field).collect::<String>())
        }
        WitType::Variant(cases) => {
            let case = |(name, ty): (&str, &Option<WitType>)| {
                let ty = ty.as_ref().map_or(String::new(), |ty| define(ty, to, number));
                format!("(case \"{name}\" {ty})")
            };
            format!("(variant {})", cases.iter().map(case).collect::<String>())
        }
        WitType::Enum(names) => format!("(enum {})", quoted(names)),
        WitType::Flags(names) => format!("(flags {})", quoted(names)),
    };
    *number += 1;
    let name = format!("$exported{number}");
    writeln!(to, "(type $type{number} {form})").unwrap();
    writeln!(to, "(export {name} \"type{number}\" (type $type{number}))").unwrap();
    name
}

fn quoted(names: &Named<()>) -> String {
    names.iter().map(|(name, ())| format!("\"{name}\" ")).collect()
}

fn success(outcome: wasmtime::Result<Outcome>) -> String {
    match outcome {
        Ok(Outcome::Success(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn message(outcome: wasmtime::Result<Outcome>) -> String {
    match outcome {
        Ok(Outcome::Error(error)) => error.message,
        other => panic!("{other:?}"),
    }
}

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

/// Returns a string that the memory has at an address.
const GREETING: &str = r#"
    (data (i32.const 8) "\10\00\00\00\05\00\00\00hello")
    (func (export "call") (param i32 i32) (result i32) (i32.const 8))"#;

#[test]
fn a_string_is_the_answer() {
    let ty = format!(r#"(func (export "call") (param "name" string) (result string) {LIFT}"#);
    let guest = Guest::new(&component(&ty, GREETING));
    assert_eq!(success(guest.call("call", &json!({ "name": "x" }))), "hello");
    // The only function needs no name, and unknown keys are ignored.
    assert_eq!(success(guest.call("any", &json!({ "name": "x", "y": 1 }))), "hello");
    let refused = message(guest.call("call", &json!({ "name": 1 })));
    assert_eq!(refused, "argument `/name`: must be a string, but is a number");
    let refused = message(guest.call("call", &json!({})));
    assert_eq!(refused, "the arguments: must have the key `name`");
    let description = guest.functions.description(&FunctionDocs::default());
    let [tool] = &description.tools[..] else { panic!("{description:?}") };
    assert_eq!(tool.description.as_deref(), Some("The function `call`."));
    assert_eq!(
        tool.input_schema,
        Some(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
            "additionalProperties": false,
        }))
    );
    assert_eq!(tool.output_schema, None);
}

#[test]
fn the_error_of_a_result_is_the_error_of_the_tool() {
    let ty = format!(
        r#"(func (export "call") (param "fails" bool) (result (result string (error string)))
            {LIFT}"#
    );
    let core = r#"
        (data (i32.const 16) "\00\00\00\00\30\00\00\00\02\00\00\00")
        (data (i32.const 32) "\01\00\00\00\32\00\00\00\03\00\00\00")
        (data (i32.const 48) "okbad")
        (func (export "call") (param i32) (result i32)
            (select (i32.const 32) (i32.const 16) (local.get 0)))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(success(guest.call("call", &json!({ "fails": false }))), "ok");
    assert_eq!(message(guest.call("call", &json!({ "fails": true }))), "bad");
}

#[test]
fn results_without_payload_are_answers() {
    let ty = format!(
        r#"(func (export "call") (param "fails" bool) (result (result)) {LIFT}
           (func (export "nothing") (canon lift (core func $i "nothing")))"#
    );
    let core = r#"
        (func (export "call") (param i32) (result i32) (local.get 0))
        (func (export "nothing"))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(guest.names(), ["call", "nothing"]);
    assert_eq!(success(guest.call("call", &json!({ "fails": false }))), "");
    let failed = message(guest.call("call", &json!({ "fails": true })));
    assert_eq!(failed, "`call` failed without a message");
    assert_eq!(success(guest.call("nothing", &json!({}))), "");
    let unknown = message(guest.call("other", &json!({})));
    assert_eq!(unknown, "the component has no function `other`; it has `call`, `nothing`");
}

#[test]
fn an_output_schema_is_declared_for_records_only() {
    let ty = format!(
        r#"(type $r (record (field "a" u8)))
           (export $record "record" (type $r))
           (func (export "call") (result (result $record)) {LIFT}
           (func (export "number") (result u8) (canon lift (core func $i "number")))"#
    );
    let core = r#"
        (func (export "call") (result i32) (i32.store (i32.const 0) (i32.const 0x700)) (i32.const 0))
        (func (export "number") (result i32) (i32.const 7))"#;
    let guest = Guest::new(&component(&ty, core));
    assert_eq!(success(guest.call("call", &json!({}))), r#"{"a":7}"#);
    assert_eq!(success(guest.call("number", &json!({}))), "7");
    let description = guest.functions.description(&FunctionDocs::default());
    let schemas = description.tools.iter().map(|tool| tool.output_schema.is_some());
    assert_eq!(schemas.collect::<Vec<_>>(), [true, false]);
}

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
    assert_eq!(guest.functions.omitted, [("open".to_owned(), "uses a resource".to_owned())]);
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
        assert_eq!(guest.functions.omitted, [("call".to_owned(), reason.to_owned())]);
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

#[test]
fn schemas_fit_the_depth_of_parsers() {
    let mut ty = WitType::Bool;
    for _ in 0..types::DEPTH - 1 {
        ty = variant(&[("a", Some(ty))]);
    }
    let schema = schema::of_parameters(&[("it".to_owned(), ty)]);
    let tools = vec![ToolDescription { input_schema: Some(schema), ..Default::default() }];
    let text = serde_json::to_string(&Description { tools, ..Description::default() }).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
}

/// Types whose names fit the text form.
fn wit_types() -> impl Strategy<Value = WitType> {
    use IntegerType as I;
    let integer =
        prop::sample::select(vec![I::S8, I::U8, I::S16, I::U16, I::S32, I::U32, I::S64, I::U64]);
    let names = || prop::collection::btree_set("[a-z]{1,5}(-[a-z][a-z0-9]{0,3})?", 1..12);
    let names = move || names().prop_map(|names| names.into_iter().map(|it| (it, ())).collect());
    let leaf = prop_oneof![
        Just(WitType::Bool),
        integer.prop_map(WitType::Integer),
        Just(WitType::Float32),
        Just(WitType::Float64),
        Just(WitType::Char),
        Just(WitType::String),
        names().prop_map(WitType::Enum),
        names().prop_map(WitType::Flags),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = "[a-z]{1,5}(-[a-z][a-z0-9]{0,3})?";
        let payload = || prop::option::of(inner.clone());
        let boxed = || payload().prop_map(|ty| ty.map(Box::new));
        prop_oneof![
            inner.clone().prop_map(list),
            inner.clone().prop_map(option),
            prop::collection::vec(inner.clone(), 1..4).prop_map(WitType::Tuple),
            prop::collection::btree_map(name, inner.clone(), 1..4)
                .prop_map(|fields| WitType::Record(fields.into_iter().collect())),
            prop::collection::btree_map(name, payload(), 1..4)
                .prop_map(|cases| WitType::Variant(cases.into_iter().collect())),
            (boxed(), boxed()).prop_map(|(ok, err)| WitType::Result { ok, err }),
        ]
    })
}

/// Values of a type.
fn values_of(ty: &WitType) -> BoxedStrategy<Val> {
    let payload = |ty: Option<&WitType>| match ty {
        Some(ty) => values_of(ty).prop_map(|value| Some(Box::new(value))).boxed(),
        None => Just(None).boxed(),
    };
    match ty {
        WitType::Bool => any::<bool>().prop_map(Val::Bool).boxed(),
        WitType::Integer(IntegerType::S8) => any::<i8>().prop_map(Val::S8).boxed(),
        WitType::Integer(IntegerType::U8) => any::<u8>().prop_map(Val::U8).boxed(),
        WitType::Integer(IntegerType::S16) => any::<i16>().prop_map(Val::S16).boxed(),
        WitType::Integer(IntegerType::U16) => any::<u16>().prop_map(Val::U16).boxed(),
        WitType::Integer(IntegerType::S32) => any::<i32>().prop_map(Val::S32).boxed(),
        WitType::Integer(IntegerType::U32) => any::<u32>().prop_map(Val::U32).boxed(),
        WitType::Integer(IntegerType::S64) => any::<i64>().prop_map(Val::S64).boxed(),
        WitType::Integer(IntegerType::U64) => any::<u64>().prop_map(Val::U64).boxed(),
        WitType::Float32 => prop::num::f32::ANY.prop_map(Val::Float32).boxed(),
        WitType::Float64 => prop::num::f64::ANY.prop_map(Val::Float64).boxed(),
        WitType::Char => any::<char>().prop_map(Val::Char).boxed(),
        WitType::String => any::<String>().prop_map(Val::String).boxed(),
        WitType::List(ty) => prop::collection::vec(values_of(ty), 0..4).prop_map(Val::List).boxed(),
        WitType::Tuple(types) => {
            types.iter().map(values_of).collect::<Vec<_>>().prop_map(Val::Tuple).boxed()
        }
        WitType::Record(fields) => {
            let names: Vec<_> = fields.iter().map(|(name, _)| name.clone()).collect();
            let values: Vec<_> = fields.iter().map(|(_, ty)| values_of(ty)).collect();
            let record = move |values: Vec<Val>| {
                Val::Record(names.clone().into_iter().zip(values).collect())
            };
            values.prop_map(record).boxed()
        }
        WitType::Variant(cases) => {
            let case = |(name, ty): (&str, &Option<WitType>)| {
                let name = name.to_owned();
                payload(ty.as_ref()).prop_map(move |value| Val::Variant(name.clone(), value))
            };
            prop::strategy::Union::new(cases.iter().map(case)).boxed()
        }
        WitType::Enum(names) => {
            let names: Vec<_> = names.iter().map(|(name, ())| name.to_owned()).collect();
            prop::sample::select(names).prop_map(Val::Enum).boxed()
        }
        WitType::Option(ty) => {
            let some = values_of(ty).prop_map(|value| Val::Option(Some(Box::new(value))));
            prop_oneof![Just(Val::Option(None)), some].boxed()
        }
        WitType::Result { ok, err } => {
            let ok = payload(ok.as_deref()).prop_map(|value| Val::Result(Ok(value)));
            let err = payload(err.as_deref()).prop_map(|value| Val::Result(Err(value)));
            prop_oneof![ok, err].boxed()
        }
        WitType::Flags(names) => {
            let names: Vec<_> = names.iter().map(|(name, ())| name.to_owned()).collect();
            let most = names.len();
            prop::sample::subsequence(names, 0..=most).prop_map(Val::Flags).boxed()
        }
    }
}

fn typed_values() -> impl Strategy<Value = (WitType, Val)> {
    wit_types().prop_flat_map(|ty| values_of(&ty).prop_map(move |value| (ty.clone(), value)))
}

/// Any JSON, with keys and strings that types use.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            "[a-c]",
            Just("tag".to_owned()),
            Just("val".to_owned()),
            Just("ok".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn values_are_read_back_from_json((ty, value) in typed_values()) {
        let text = values::json(&ty, &value, BYTES).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let again = values::read(&ty, &json, BYTES).unwrap();
        prop_assert_eq!(values::json(&ty, &again, BYTES).unwrap(), text);
        prop_assert_eq!(again, value);
    }

    #[test]
    fn results_match_their_schema((ty, value) in typed_values()) {
        let ty = record(&[("it", ty)]);
        let value = Val::Record(vec![("it".to_owned(), value)]);
        let json = serde_json::from_str(&values::json(&ty, &value, BYTES).unwrap()).unwrap();
        let schema = Schema::from(schema::of_result(&ty).unwrap());
        prop_assert_eq!(schema.misfits(&json, &without_end).unwrap(), []);
    }

    #[test]
    fn any_json_is_converted_or_refused(ty in wit_types(), json in any_json()) {
        if let Ok(value) = values::read(&ty, &json, BYTES) {
            let text = values::json(&ty, &value, BYTES).unwrap();
            let json: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(values::read(&ty, &json, BYTES).unwrap(), value);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn guests_return_the_values_they_receive((ty, value) in typed_values()) {
        let guest = Guest::new(&echo(&ty));
        let [function] = &guest.functions.functions[..] else { panic!("one function") };
        let list = list(ty);
        prop_assert_eq!(&function.parameters[..], [("it".to_owned(), list.clone())]);
        let text = values::json(&list, &Val::List(vec![value]), BYTES).unwrap();
        let arguments = format!("{{\"it\":{text}}}");
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        prop_assert_eq!(success(guest.call("call", &arguments)), text);
    }
}
