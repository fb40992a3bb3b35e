//! Faster names at the top level of a script.
//!
//! RustPython looks up a name of a module in its dictionary. For each use of a built-in function
//! it creates an exception there, because the dictionary has no such key. A name that is declared
//! `global` is looked up through a cache instead, and at the top level that changes nothing else.

use std::collections::BTreeSet;

use ruff_text_size::{Ranged, TextRange};
use rustpython_vm::compiler::ast::visitor::{self, Visitor};
use rustpython_vm::compiler::ast::{
    AtomicNodeIndex, Expr, ExprContext, Identifier, ModModule, Stmt, StmtGlobal, TypeParams,
};

/// Declares the names that the top level of a script uses as `global`.
pub(crate) fn declare(module: &mut ModModule) {
    let body = &mut module.body;
    let mut names = Names::default();
    visitor::walk_body(&mut names, body);
    let Names { used, excluded, .. } = names;
    let range = body.first().map_or_else(TextRange::default, |first| first.range());
    let names: Vec<_> = used
        .difference(&excluded)
        .filter(|name| !name.starts_with("__"))
        .map(|name| Identifier::new(name.as_str(), range))
        .collect();
    if names.is_empty() {
        return;
    }
    // A docstring and imports from `__future__` must come first.
    let is_docstring =
        |first: &Stmt| matches!(first, Stmt::Expr(it) if it.value.is_string_literal_expr());
    let start = usize::from(body.first().is_some_and(is_docstring));
    let is_of_future = |statement: &&Stmt| match statement {
        Stmt::ImportFrom(it) => it.module.as_ref().is_some_and(|name| name == "__future__"),
        _ => false,
    };
    let at = start + body[start..].iter().take_while(is_of_future).count();
    body.insert(at, Stmt::Global(StmtGlobal { node_index: AtomicNodeIndex::NONE, range, names }));
}

/// The names at the top level of a script.
#[derive(Default)]
struct Names {
    used: BTreeSet<String>,
    /// Names that cannot be declared: with an annotation, type parameters, and variables of
    /// comprehensions.
    excluded: BTreeSet<String>,
    /// The number of comprehensions around the expression.
    depth: usize,
}

impl<'a> Visitor<'a> for Names {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            // These have scopes of their own.
            Stmt::FunctionDef(it) => return self.exclude_parameters(it.type_params.as_deref()),
            Stmt::ClassDef(it) => return self.exclude_parameters(it.type_params.as_deref()),
            Stmt::TypeAlias(it) => {
                self.exclude_parameters(it.type_params.as_deref());
                return self.exclude(&it.name);
            }
            Stmt::AnnAssign(it) => self.exclude(&it.target),
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if self.depth == 0 => drop(self.used.insert(name.id.to_string())),
            Expr::Name(name) if name.ctx != ExprContext::Load => self.exclude(expression),
            Expr::Lambda(_) => {}
            Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => {
                self.depth += 1;
                visitor::walk_expr(self, expression);
                self.depth -= 1;
            }
            _ => visitor::walk_expr(self, expression),
        }
    }
}

impl Names {
    fn exclude_parameters(&mut self, parameters: Option<&TypeParams>) {
        for parameter in parameters.into_iter().flat_map(|it| &it.type_params) {
            self.excluded.insert(parameter.name().to_string());
        }
    }

    fn exclude(&mut self, target: &Expr) {
        if let Expr::Name(name) = target {
            self.excluded.insert(name.id.to_string());
        }
    }
}
