//! Calls whose results a script awaits.
//!
//! A call of a tool returns its result, and the script waits for it, unless the call is awaited:
//! then it returns a future, so that several calls run concurrently. Python has two kinds of
//! functions for this; here the script determines which kind a call means. A call is awaited if it
//! is an operand of `await`, `gather(…)` or a similar function, directly or through variables and
//! lists. In such a call, `f(…)` becomes `_kitbag_start(f)(…)`, which changes nothing if `f` is not
//! a tool.

use std::collections::BTreeSet;

use ruff_text_size::{Ranged, TextSize};
use rustpython_vm::compiler::ast::visitor::{self, Visitor, transformer, transformer::Transformer};
use rustpython_vm::compiler::ast::{
    Arguments, AtomicNodeIndex, Comprehension, Expr, ExprCall, ExprContext, Stmt, StmtFunctionDef,
};

use crate::script::variable;

/// The function that makes a tool return futures.
const START: &str = "_kitbag_start";

/// How often variables are followed: each time, by one more assignment.
const ROUNDS: usize = 8;

/// Functions and methods that await their arguments.
const AWAITING: [&str; 7] = [
    "as_completed",
    "create_task",
    "ensure_future",
    "gather",
    "run_until_complete",
    "shield",
    "wait_for",
];

/// Functions of `asyncio` that await their arguments and have names that others also use.
const AWAITING_IN_ASYNCIO: [&str; 2] = ["run", "wait"];

/// Functions that contain the items of their arguments.
const CONTAINERS: [&str; 5] = ["list", "reversed", "set", "sorted", "tuple"];

/// Methods that return what their object contains.
const GETTERS: [&str; 6] = ["copy", "get", "items", "pop", "popleft", "values"];

/// Methods that add their arguments to their object.
const ADDERS: [&str; 8] =
    ["add", "append", "appendleft", "extend", "insert", "put", "put_nowait", "setdefault"];

/// Makes the awaited calls of a script start tools.
pub(crate) fn mark(body: &mut [Stmt]) {
    let mut calls = Calls::default();
    for _ in 0..ROUNDS {
        let before = calls.found();
        visitor::walk_body(&mut calls, body);
        if calls.found() == before {
            break;
        }
    }
    if !calls.starts.is_empty() {
        Marker(calls.starts).visit_body(body);
    }
}

/// Changes the calls at these positions.
struct Marker(BTreeSet<(TextSize, TextSize)>);

impl Transformer for Marker {
    fn visit_expr(&self, expression: &mut Expr) {
        transformer::walk_expr(self, expression);
        let Expr::Call(call) = expression else { return };
        if !self.0.contains(&(call.start(), call.end())) {
            return;
        }
        let (range, function) = (call.func.range(), (*call.func).clone());
        let arguments = Arguments {
            node_index: AtomicNodeIndex::NONE,
            range,
            args: Box::new([function]),
            keywords: Default::default(),
            runtime_args: None,
            runtime_bases: None,
        };
        *call.func = Expr::Call(ExprCall {
            node_index: AtomicNodeIndex::NONE,
            range_start: range.start(),
            func: Box::new(variable(START, ExprContext::Load, range)),
            arguments,
        });
    }
}

/// The awaited calls that were found.
#[derive(Default)]
struct Calls {
    /// The ranges of calls.
    starts: BTreeSet<(TextSize, TextSize)>,
    /// Variables that contain futures, directly or in lists.
    variables: BTreeSet<String>,
    /// Functions of the script that return futures.
    functions: BTreeSet<String>,
}

impl Calls {
    fn found(&self) -> (usize, usize, usize) {
        (self.starts.len(), self.variables.len(), self.functions.len())
    }

    /// Takes an expression that is awaited, or that contains awaited values.
    fn future(&mut self, expression: &Expr) {
        match expression {
            Expr::Name(name) => drop(self.variables.insert(name.id.to_string())),
            Expr::Call(call) => self.call(call),
            Expr::Starred(it) => self.future(&it.value),
            Expr::Subscript(it) => self.future(&it.value),
            Expr::Named(it) => {
                self.future(&it.target);
                self.future(&it.value);
            }
            Expr::If(it) => {
                self.future(&it.body);
                self.future(&it.orelse);
            }
            Expr::List(it) => it.elts.iter().for_each(|item| self.future(item)),
            Expr::Tuple(it) => it.elts.iter().for_each(|item| self.future(item)),
            Expr::Set(it) => it.elts.iter().for_each(|item| self.future(item)),
            Expr::Dict(it) => it.items.iter().for_each(|item| self.future(&item.value)),
            Expr::ListComp(it) => self.future(&it.elt),
            Expr::SetComp(it) => self.future(&it.elt),
            Expr::Generator(it) => self.future(&it.elt),
            Expr::DictComp(it) => self.future(&it.value),
            _ => {}
        }
    }

    fn call(&mut self, call: &ExprCall) {
        match &*call.func {
            // Its arguments are awaited in any position.
            _ if awaits(call) => {}
            Expr::Name(function) if CONTAINERS.contains(&function.id.as_str()) => {
                self.arguments(&call.arguments);
            }
            Expr::Name(function) => {
                self.functions.insert(function.id.to_string());
                self.starts.insert((call.start(), call.end()));
            }
            Expr::Attribute(method) if GETTERS.contains(&&*method.attr) => {
                self.future(&method.value);
            }
            _ => {}
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        arguments.args.iter().for_each(|argument| self.future(argument));
    }

    /// Returns true if a target is a variable that contains futures.
    fn holds(&self, target: &Expr) -> bool {
        match target {
            Expr::Name(name) => self.variables.contains(name.id.as_str()),
            Expr::Subscript(it) => self.holds(&it.value),
            Expr::Starred(it) => self.holds(&it.value),
            Expr::Tuple(it) => it.elts.iter().any(|item| self.holds(item)),
            Expr::List(it) => it.elts.iter().any(|item| self.holds(item)),
            _ => false,
        }
    }

    fn assign(&mut self, target: &Expr, value: &Expr) {
        if self.holds(target) {
            self.future(value);
        }
        if let (Expr::Name(name), Expr::Lambda(lambda)) = (target, value)
            && self.functions.contains(name.id.as_str())
        {
            self.future(&lambda.body);
        }
    }
}

/// Returns true if a call awaits its arguments.
fn awaits(call: &ExprCall) -> bool {
    match &*call.func {
        Expr::Name(function) => AWAITING.contains(&function.id.as_str()),
        Expr::Attribute(method) => {
            let is_asyncio = matches!(&*method.value, Expr::Name(name) if name.id == "asyncio");
            AWAITING.contains(&&*method.attr)
                || is_asyncio && AWAITING_IN_ASYNCIO.contains(&&*method.attr)
        }
        _ => false,
    }
}

impl<'a> Visitor<'a> for Calls {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(it) => {
                it.targets.iter().for_each(|target| self.assign(target, &it.value));
            }
            Stmt::AnnAssign(it) => {
                it.value.iter().for_each(|value| self.assign(&it.target, value));
            }
            Stmt::AugAssign(it) => self.assign(&it.target, &it.value),
            Stmt::For(it) if self.holds(&it.target) => self.future(&it.iter),
            Stmt::FunctionDef(it) if !it.is_async && self.functions.contains(&*it.name) => {
                for value in returned(it) {
                    self.future(value);
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(it) => self.future(&it.value),
            Expr::Call(it) if awaits(it) => self.arguments(&it.arguments),
            Expr::Call(it) => {
                if let Expr::Attribute(method) = &*it.func
                    && ADDERS.contains(&&*method.attr)
                    && self.holds(&method.value)
                {
                    self.arguments(&it.arguments);
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        if self.holds(&comprehension.target) {
            self.future(&comprehension.iter);
        }
        visitor::walk_comprehension(self, comprehension);
    }
}

/// Returns the values that a function returns.
fn returned(function: &StmtFunctionDef) -> Vec<&Expr> {
    struct Returned<'a>(Vec<&'a Expr>);

    impl<'a> Visitor<'a> for Returned<'a> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::Return(it) => self.0.extend(it.value.as_deref()),
                // Those of functions inside it are theirs.
                Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
                _ => visitor::walk_stmt(self, statement),
            }
        }
    }

    let mut returned = Returned(Vec::new());
    visitor::walk_body(&mut returned, &function.body);
    returned.0
}
