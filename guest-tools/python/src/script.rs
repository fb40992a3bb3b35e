//! Compiling a script: its last value, the tools that it names, and the calls that it awaits.

use std::collections::BTreeSet;

use ruff_source_file::SourceFileBuilder;
use ruff_text_size::{Ranged, TextRange};
use rustpython_vm::builtins::{PyBaseExceptionRef, PyCode};
use rustpython_vm::compiler::ast::{
    Alias, AtomicNodeIndex, ExceptHandler, Expr, ExprContext, ExprName, Mod, Parameter, Stmt,
    StmtAssign, name::Name, visitor, visitor::Visitor,
};
use rustpython_vm::compiler::{CompileError, Mode, codegen::compile::compile_top, parser};
use rustpython_vm::{PyRef, VirtualMachine};

use crate::awaited;
use crate::globals;
use crate::state;
use crate::unclosed;

/// The name of the script in a traceback.
pub(crate) const FILE: &str = "script.py";

/// The variable that holds the value of the last expression.
const VALUE: &str = "_kitbag_value";

/// Functions that run code which is not in the script, so that any tool may be named there.
const DYNAMIC: [&str; 4] = ["eval", "exec", "globals", "__builtins__"];

/// A compiled script.
pub(crate) struct Script {
    pub(crate) code: PyRef<PyCode>,
    names: Names,
}

/// Compiles a script. The value of an expression at its end becomes a variable.
///
/// # Errors
///
/// `SyntaxError` and its kin.
pub(crate) fn compile(source: &str, vm: &VirtualMachine) -> Result<Script, PyBaseExceptionRef> {
    unclosed::check(source, FILE, vm)?;
    let mut options = vm.compile_opts();
    options.allow_top_level_await = true;
    // Python's own compilation reports every mistake, and warns.
    vm.compile_with_opts(source, Mode::Exec, FILE, options.clone())
        .map_err(|error| error.into_pyexception(vm, Some(source)))?;
    let file = SourceFileBuilder::new(FILE, source).finish();
    let failed = |error: CompileError| vm.new_syntax_error(&error, Some(source));
    let parsed = parser::parse_module(source)
        .map_err(|error| failed(CompileError::from_ruff_parse_error(error, &file, Mode::Exec)))?;
    let mut module = parsed.into_syntax();
    let mut names = Names::default();
    visitor::walk_body(&mut names, &module.body);
    awaited::mark(&mut module.body);
    globals::declare(&mut module);
    if let Some(Stmt::Expr(last)) = module.body.last() {
        let range = last.range();
        let (target, value) = (variable(VALUE, ExprContext::Store, range), last.value.clone());
        let assign = StmtAssign {
            node_index: AtomicNodeIndex::NONE,
            range,
            targets: vec![target],
            value,
            runtime_targets: None,
            runtime_type_comment: None,
            runtime_type_comment_bytes: None,
        };
        module.body.pop();
        module.body.push(Stmt::Assign(assign));
    }
    let code = compile_top(Mod::Module(module), file, Mode::Exec, options)
        .map_err(|error| failed(CompileError::Codegen(error)))?;
    // A set of constants needs the interpreter, which `Context::new_code` does not have.
    Ok(Script { code: PyCode::new_ref_from_bytecode(vm, code), names })
}

/// Creates the use of a variable.
pub(crate) fn variable(name: &str, ctx: ExprContext, range: TextRange) -> Expr {
    Expr::Name(ExprName { node_index: AtomicNodeIndex::NONE, range, id: Name::new(name), ctx })
}

impl Script {
    /// Returns the names in the script that are tools.
    pub(crate) fn tools(&self, vm: &VirtualMachine) -> Vec<String> {
        let Names { used, called, bound } = &self.names;
        if DYNAMIC.iter().any(|name| used.contains(*name)) {
            return state::with(|state| state.tools.list(vm).keys().cloned().collect());
        }
        let is_builtin = |name: &str| vm.builtins.dict().contains_key(name, vm);
        let unknown = used.iter().filter(|name| !bound.contains(*name) && !is_builtin(name));
        let unknown = unknown.filter(|name| state::with(|it| it.tools.find(name, vm).is_some()));
        // A name that the script binds may be a tool elsewhere, as in `now = now()`.
        let both = called.intersection(bound).filter(|name| !is_builtin(name));
        let both = both.filter(|name| state::with(|it| it.tools.has_exact(name)));
        unknown.chain(both).cloned().collect()
    }
}

/// The names in a script.
#[derive(Default)]
struct Names {
    /// Names whose value is used.
    used: BTreeSet<String>,
    /// Names that are called.
    called: BTreeSet<String>,
    /// Names that the script binds in any of its scopes.
    bound: BTreeSet<String>,
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(it) => drop(self.bound.insert(it.name.to_string())),
            Stmt::ClassDef(it) => drop(self.bound.insert(it.name.to_string())),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) => {
                let names = match name.ctx {
                    ExprContext::Load => &mut self.used,
                    _ => &mut self.bound,
                };
                names.insert(name.id.to_string());
            }
            Expr::Call(call) => {
                if let Expr::Name(function) = &*call.func {
                    self.called.insert(function.id.to_string());
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.to_string());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name);
        self.bound.insert(name.split('.').next().unwrap_or_default().to_owned());
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(it) = handler;
        self.bound.extend(it.name.iter().map(ToString::to_string));
        visitor::walk_except_handler(self, handler);
    }
}
