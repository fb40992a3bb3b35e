//! Which calls of tools a script awaits.
//!
//! A call returns its result, and the script waits for it, unless the call is awaited: then it
//! returns a future, so that several calls run concurrently. Python has two kinds of functions for
//! this; the script determines which one a call means. A call is awaited if it is an operand of
//! `await` or `gather(…)`, directly or through variables and lists.
//!
//! The interpreter does not report the position of a call. Therefore the names of functions in
//! awaited calls are changed by one character in the interpreter's input, and changed back in its
//! output.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Alias, Arguments, ExceptHandler, Expr, ExprContext, Parameter, Stmt, StmtFunctionDef,
};
use ruff_python_parser::parse_module;
use ruff_text_size::Ranged;

use crate::names::is_own;

/// How often variables are followed; each time goes one assignment further.
const ROUNDS: usize = 8;

/// The names of functions whose calls are awaited.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    /// By the name that the interpreter has for it.
    names: BTreeMap<String, String>,
}

impl Awaited {
    /// Reads a script whose variables at its start are these, and changes the names in it.
    pub(crate) fn read<'a>(code: &mut String, inputs: impl Iterator<Item = &'a str>) -> Self {
        let mut awaited = Self::default();
        if !code.contains("await") && !code.contains("asyncio") {
            return awaited;
        }
        // The interpreter reports invalid Python.
        let Ok(module) = parse_module(code) else { return awaited };
        let body = &module.syntax().body;
        let mut bound = Bound(inputs.map(str::to_owned).collect());
        visitor::walk_body(&mut bound, body);
        let mut calls = Calls { bound: bound.0, ..Calls::default() };
        for _ in 0..ROUNDS {
            let before = calls.found();
            visitor::walk_body(&mut calls, body);
            if calls.found() == before {
                break;
            }
        }
        // From the last one on, so that the others stay where they are.
        for (start, name) in calls.names.into_iter().rev() {
            let changed = changed(&name);
            // A script that has such a name itself means that.
            if !awaited.names.contains_key(&changed) && code.contains(&changed) {
                continue;
            }
            code.replace_range(start..start + name.len(), &changed);
            awaited.names.insert(changed, name);
        }
        awaited
    }

    /// Returns the name in the script for the name of awaited calls.
    pub(crate) fn name(&self, changed: &str) -> Option<&str> {
        self.names.get(changed).map(String::as_str)
    }

    /// Puts the names of the script into what the interpreter says.
    pub(crate) fn restore<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for (changed, name) in &self.names {
            if text.contains(changed) {
                text = Cow::Owned(text.replace(changed, name));
            }
        }
        text
    }
}

/// A name with as many characters that no script has, which are letters as the first one is.
fn changed(name: &str) -> String {
    let mut rest = name.chars();
    let first = rest.next().map(|first| match first {
        // Letters of Georgian and Cherokee.
        'a'..='z' => char::from_u32(0x10D0 + u32::from(first) - u32::from('a')),
        'A'..='Z' => char::from_u32(0x13A0 + u32::from(first) - u32::from('A')),
        _ => Some('\u{10F0}'),
    });
    first.flatten().into_iter().chain(rest).collect()
}

/// The names that a script gives something to.
struct Bound(BTreeSet<String>);

impl<'a> Visitor<'a> for Bound {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(it) => drop(self.0.insert(it.name.to_string())),
            Stmt::ClassDef(it) => drop(self.0.insert(it.name.to_string())),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression
            && name.ctx != ExprContext::Load
        {
            self.0.insert(name.id.to_string());
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.0.insert(parameter.name.to_string());
        visitor::walk_parameter(self, parameter);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name);
        self.0.insert(name.split('.').next().unwrap_or_default().to_owned());
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(it) = handler;
        self.0.extend(it.name.iter().map(ToString::to_string));
        visitor::walk_except_handler(self, handler);
    }
}

/// The calls that are awaited, as far as they were found.
#[derive(Default)]
struct Calls {
    bound: BTreeSet<String>,
    /// The names of their functions, by where they begin.
    names: BTreeMap<usize, String>,
    /// Variables that contain futures, directly or in lists.
    variables: BTreeSet<String>,
    /// Functions of the script that return futures.
    functions: BTreeSet<String>,
}

impl Calls {
    fn found(&self) -> (usize, usize, usize) {
        (self.names.len(), self.variables.len(), self.functions.len())
    }

    /// Takes what is awaited, or holds what is.
    fn future(&mut self, expression: &Expr) {
        match expression {
            Expr::Name(name) => drop(self.variables.insert(name.id.to_string())),
            Expr::Call(call) => match &*call.func {
                Expr::Name(function)
                    if matches!(function.id.as_str(), "list" | "tuple" | "reversed") =>
                {
                    self.arguments(&call.arguments);
                }
                // Its arguments are awaited in any position.
                Expr::Name(function) if function.id == "gather" => {}
                Expr::Name(function) if self.bound.contains(function.id.as_str()) => {
                    self.functions.insert(function.id.to_string());
                }
                Expr::Name(function) if !is_own(&function.id) && function.id.is_ascii() => {
                    self.names.insert(function.start().to_usize(), function.id.to_string());
                }
                Expr::Attribute(method)
                    if matches!(&*method.attr, "copy" | "get" | "pop" | "popleft" | "values") =>
                {
                    self.future(&method.value);
                }
                _ => {}
            },
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
                let mut returned = Returned(Vec::new());
                returned.of(it);
                returned.0.into_iter().for_each(|value| self.future(value));
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Await(it) => self.future(&it.value),
            Expr::Call(it) => match &*it.func {
                Expr::Name(function) if function.id == "gather" => self.arguments(&it.arguments),
                Expr::Attribute(method) if matches!(&*method.attr, "gather" | "run") => {
                    self.arguments(&it.arguments);
                }
                Expr::Attribute(method)
                    if matches!(
                        &*method.attr,
                        "add" | "append" | "appendleft" | "extend" | "insert" | "setdefault"
                    ) && self.holds(&method.value) =>
                {
                    self.arguments(&it.arguments);
                }
                _ => {}
            },
            _ => {}
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        if self.holds(&comprehension.target) {
            self.future(&comprehension.iter);
        }
        visitor::walk_comprehension(self, comprehension);
    }
}

/// The values that a function returns.
struct Returned<'a>(Vec<&'a Expr>);

impl<'a> Returned<'a> {
    fn of(&mut self, function: &'a StmtFunctionDef) {
        visitor::walk_body(self, &function.body);
    }
}

impl<'a> Visitor<'a> for Returned<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Return(it) => self.0.extend(it.value.as_deref()),
            // Those of others inside it are theirs.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            _ => visitor::walk_stmt(self, statement),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks the functions of awaited calls with a `~`.
    #[track_caller]
    fn check(code: &str, expected: &str) {
        let mut changed = code.to_owned();
        let awaited = Awaited::read(&mut changed, ["given"].into_iter());
        assert_eq!(changed.chars().count(), code.chars().count());
        assert_eq!(awaited.restore(&changed), code);
        for (name, plain) in &awaited.names {
            changed = changed.replace(name, &format!("~{plain}"));
        }
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_plain_call_is_not_awaited() {
        check("a = f(1)\nb = [g(x) for x in a]", "a = f(1)\nb = [g(x) for x in a]");
        check("import asyncio\na = f(1)\nawait h()", "import asyncio\na = f(1)\nawait ~h()");
    }

    #[test]
    fn calls_are_awaited_directly_or_gathered() {
        check("x = await f(1)", "x = await ~f(1)");
        check("x = (await f(g(1)))['a']", "x = (await ~f(g(1)))['a']");
        check("await asyncio.gather(f(1), g(h(2)))", "await asyncio.gather(~f(1), ~g(h(2)))");
        check("await gather(*[f(x) for x in g()])", "await gather(*[~f(x) for x in g()])");
        check(
            "await gather(*(F(x) if x else _g() for x in y))",
            "await gather(*(~F(x) if x else ~_g() for x in y))",
        );
    }

    #[test]
    fn a_call_is_awaited_through_variables_and_lists() {
        check(
            "tasks = [f(x) for x in xs]\nr = await asyncio.gather(*tasks)\ng(r)",
            "tasks = [~f(x) for x in xs]\nr = await asyncio.gather(*tasks)\ng(r)",
        );
        check(
            "t = []\nt.append(f(1))\nt += [g(2)]\nawait gather(*t)",
            "t = []\nt.append(~f(1))\nt += [~g(2)]\nawait gather(*t)",
        );
        check("a, b = f(1), g(2)\nawait a\nawait b", "a, b = ~f(1), ~g(2)\nawait a\nawait b");
        check(
            "d = {k: f(k) for k in x}\nfor t in d.values():\n    await t",
            "d = {k: ~f(k) for k in x}\nfor t in d.values():\n    await t",
        );
        check(
            "ts = list(f(x) for x in y)\n[await t for t in ts]",
            "ts = list(~f(x) for x in y)\n[await t for t in ts]",
        );
    }

    #[test]
    fn a_function_of_the_script_is_called_as_python_calls_it() {
        check(
            "async def one(x):\n    y = f(x)\n    return await g(y)\nawait gather(one(1), one(h(2)))",
            "async def one(x):\n    y = f(x)\n    return await ~g(y)\nawait gather(one(1), one(h(2)))",
        );
        check(
            "def one(x):\n    return f(x)\nawait gather(one(1))",
            "def one(x):\n    return ~f(x)\nawait gather(one(1))",
        );
        check("one = lambda x: f(x)\nawait one(1)", "one = lambda x: ~f(x)\nawait one(1)");
    }

    #[test]
    fn names_that_the_script_or_python_has_stay() {
        check("await given(1)", "await given(1)");
        check("f = g\nawait f(1)", "f = g\nawait f(1)");
        check("from a import f\nawait f(1)", "from a import f\nawait f(1)");
        check("await gather(len(x))", "await gather(len(x))");
        // No Python.
        check("await f(", "await f(");
        // A name that is as a changed one.
        check("\u{10D5} = 1\nawait f(2)", "\u{10D5} = 1\nawait f(2)");
    }
}
