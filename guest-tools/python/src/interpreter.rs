//! The interpreter: its start, and the run of a script by the modules in `prelude`.

use std::cell::OnceCell;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyTuple};
use rustpython_vm::compiler::Mode;
use rustpython_vm::{
    AsObject, Context, Interpreter, PyObjectRef, PyResult, Settings, VirtualMachine,
};

use crate::native;
use crate::panic_report;
use crate::value;

/// The modules that run scripts, in the order in which they are executed.
const PRELUDE: [(&str, &str); 5] = [
    ("_kitbag_system", include_str!("prelude/system.py")),
    ("_kitbag_modules", include_str!("prelude/modules.py")),
    ("_kitbag_tools", include_str!("prelude/tools.py")),
    ("_kitbag_errors", include_str!("prelude/errors.py")),
    ("_kitbag_run", include_str!("prelude/run.py")),
];

thread_local! {
    static INTERPRETER: OnceCell<Interpreter> = const { OnceCell::new() };
}

/// Starts the interpreter while kitbag is built, so that a call begins with its memory.
pub(crate) fn initialize() {
    INTERPRETER.with(|interpreter| {
        interpreter.get_or_init(start);
    });
}

/// Runs a script to its end. Returns its value as text, `None` if there is none.
///
/// # Errors
///
/// The text of the exception that ended it.
pub(crate) fn run(code: &str, arguments: &str) -> Result<Option<String>, String> {
    INTERPRETER.with(|interpreter| {
        interpreter.get_or_init(start).enter(|vm| {
            run_in(code, arguments, vm).unwrap_or_else(|error| Err(describe(&error, vm)))
        })
    })
}

fn run_in(
    code: &str,
    arguments: &str,
    vm: &VirtualMachine,
) -> PyResult<Result<Option<String>, String>> {
    let inputs = value::inputs(arguments, vm)?;
    let run = vm.import("_kitbag_run", 0)?.get_attr("run", vm)?;
    let result = run.call((vm.ctx.new_str(code), inputs), vm)?;
    let Some(pair) = result.downcast_ref::<PyTuple>() else {
        return Err(vm.new_type_error("run() returns a pair"));
    };
    let text = |value: &PyObjectRef| -> PyResult<String> {
        Ok(value.str(vm)?.to_string_lossy().into_owned())
    };
    Ok(match pair.as_slice() {
        [value, none] if vm.is_none(none) => match vm.is_none(value) {
            true => Ok(None),
            false => Ok(Some(text(value)?)),
        },
        [_, error] => Err(text(error)?),
        _ => return Err(vm.new_type_error("run() returns a pair")),
    })
}

fn start() -> Interpreter {
    panic_report::install();
    let mut settings = Settings::default();
    settings.hash_seed = Some(0);
    settings.ignore_environment = true;
    settings.import_site = false;
    settings.install_signal_handlers = false;
    settings.isolated = true;
    settings.write_bytecode = false;
    let mut modules = rustpython_stdlib::stdlib_module_defs(Context::genesis());
    modules.push(native::module_def(Context::genesis()));
    let library: &rustpython_compiler_core::frozen::FrozenLib =
        include!(concat!(env!("OUT_DIR"), "/frozen.rs"));
    let interpreter = Interpreter::builder(settings)
        .add_native_modules(&modules)
        .add_frozen_modules(library)
        .build();
    interpreter.enter(|vm| {
        if let Err(error) = load_prelude(vm) {
            panic!("the prelude failed: {}", describe(&error, vm));
        }
    });
    interpreter
}

fn load_prelude(vm: &VirtualMachine) -> PyResult<()> {
    let modules = vm.sys_module.get_attr("modules", vm)?;
    for (name, source) in PRELUDE {
        let module = vm.new_module(name, vm.ctx.new_dict(), None);
        modules.set_item(name, module.clone().into(), vm)?;
        let code = vm
            .compile(source, Mode::Exec, format!("{name}.py"))
            .map_err(|error| error.into_pyexception(vm, Some(source)))?;
        let scope = rustpython_vm::scope::Scope::with_builtins(None, module.dict(), vm);
        vm.run_code_obj(code, scope)?;
    }
    Ok(())
}

/// Describes an exception that no module of the prelude has described.
fn describe(error: &PyBaseExceptionRef, vm: &VirtualMachine) -> String {
    let mut text = String::new();
    match vm.write_exception(&mut text, error) {
        Ok(()) => text.trim_end().to_owned(),
        Err(_) => error.class().name().to_owned(),
    }
}
