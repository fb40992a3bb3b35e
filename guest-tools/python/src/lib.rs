#![allow(missing_docs)]
use std::cell::RefCell;
use kitbag_sdk::{Call, Description, ErrorInfo, Stop, Tool};
use rustpython_vm as vm;
use vm::{Interpreter, builtins::{PyStrRef, PyTupleRef, PyStr}, function::FuncArgs, PyObjectRef, AsObject, pymodule, PyPayload};

thread_local! { static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) }; static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) }; }

#[pymodule]
mod _kitbag {
    use super::vm::{VirtualMachine, PyResult, builtins::PyStrRef};
    #[pyfunction]
    fn write(text: PyStrRef) { super::OUTPUT.with_borrow_mut(|it| it.push_str(&text.to_string_lossy())); }
    #[pyfunction]
    fn call(name: PyStrRef, arguments: PyStrRef, vm: &VirtualMachine) -> PyResult<String> {
        let answer = kitbag_sdk::tools::start_json(&name.to_string_lossy(), &arguments.to_string_lossy()).and_then(|it| it.finish());
        answer.map(|it| it.structured.unwrap_or(it.text)).map_err(|error| vm.new_runtime_error(error.message))
    }
}

const PRELUDE: &str = include_str!("prelude.py");

fn start() -> Interpreter {
    let mut settings = vm::Settings::default();
    settings.isolated = true; settings.import_site = false; settings.install_signal_handlers = false; settings.hash_seed = Some(0); settings.ignore_environment = true; settings.write_bytecode = false;
    let builder = Interpreter::builder(settings);
    let mut defs = rustpython_stdlib::stdlib_module_defs(&vm::Context::genesis());
    defs.push(_kitbag::module_def(vm::Context::genesis()));
    let frozen: &rustpython_compiler_core::frozen::FrozenLib = include!(concat!(env!("OUT_DIR"), "/frozen.rs"));
    let _ = frozen;
    let interpreter = builder.add_native_modules(&defs).add_frozen_modules(frozen).build();
    interpreter.enter(|vm| {
        let module = vm.new_module("_kitbag_prelude", vm.ctx.new_dict(), None);
        let scope = vm::scope::Scope::with_builtins(None, module.dict(), vm);
        if let Err(error) = vm.run_string(scope, PRELUDE, "prelude.py") {
            let mut text = String::new();
            let _ = vm.write_exception(&mut text, &error);
            panic!("{text}");
        }
        let modules = vm.sys_module.get_attr("modules", vm).unwrap();
        modules.set_item("_kitbag_prelude", module.into(), vm).unwrap();
    });
    interpreter
}

mod snapshot;

pub(crate) fn initialize() { INTERPRETER.with_borrow_mut(|it| *it = Some(start())); }

struct Python;
#[derive(serde::Deserialize)]
struct Arguments { code: String, #[serde(default)] inputs: Option<kitbag_sdk::serde_json::Value> }
kitbag_sdk::export!(Python);
const DESCRIPTION: &str = include_str!("../describe.json");
kitbag_sdk::describe_section!(DESCRIPTION);

impl Tool for Python {
    type Arguments = Arguments;
    fn describe() -> Description { Description::from_json(DESCRIPTION) }
    fn run(_: &Call, arguments: Arguments) -> Result<String, Stop> {
        if INTERPRETER.with_borrow(|it| it.is_none()) { initialize(); }
        let inputs = arguments.inputs.map_or("{}".into(), |it| it.to_string());
        let (ok, text) = INTERPRETER.with_borrow(|it| it.as_ref().unwrap().enter(|vm| {
            let module = vm.import("_kitbag_prelude", 0).unwrap();
            let run = module.get_attr("run", vm).unwrap();
            let result = run.call((vm.ctx.new_str(arguments.code), vm.ctx.new_str(inputs)), vm).unwrap();
            let tuple = result.downcast::<vm::builtins::PyTuple>().unwrap();
            let ok = tuple[0].is(&vm.ctx.true_value);
            let text = match vm.is_none(&tuple[1]) { true => String::new(), false => tuple[1].str(vm).unwrap().to_string_lossy().into_owned() };
            (ok, text)
        }));
        let text = OUTPUT.take() + &text;
        match ok { true => Ok(text), false => Err(ErrorInfo::new(text).into()) }
    }
}
