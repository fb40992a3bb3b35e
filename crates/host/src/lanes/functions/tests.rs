//! Tests with components in text form.

mod calls;
mod conversions;
mod hostile;
mod omitted;
mod properties;

use std::fmt::Write;
use std::sync::Arc;

use kitbag_contract::{Action, Context, Limits};
use kitbag_engine::omissions_of;
use kitbag_http::{Account, Client};
use kitbag_schema::{Schema, without_end};
use serde_json::Value;
use wasmtime::component::Linker;
use wasmtime::{Engine, Store};

use super::types::{IntegerType, Named};
use super::*;
use crate::call::report::Reports;
use crate::call::state::Stdio;
use crate::grants::GrantContext;
use crate::lanes::test_host::ALLOCATOR;
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
        let bytes = wat::parse_str(text).unwrap();
        let component = Component::new(&engine, &bytes).unwrap();
        let functions = Functions::of(&component)?;
        // The inspection of the file comes to the same result, but for the size of types.
        let is_of_size = |omission: &&Omission| {
            ["of more than", "no room", "more than 1,000"]
                .iter()
                .any(|it| omission.reason.contains(it))
        };
        let omitted = functions.omitted().iter().filter(|it| !is_of_size(it)).cloned();
        assert_eq!(omissions_of(&bytes), omitted.collect::<Vec<_>>());
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
        let parameters = Parameters { context, name, arguments, answers: "{}" };
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
                {ALLOCATOR}
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
