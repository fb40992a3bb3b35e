//! Rewrites a filter before it is compiled.
//!
//! Each definition and each filter argument checks the stack when it is called: endless recursion
//! would otherwise overflow the stack and end the tool. Calls in tail position still use no stack.
//! The operators `=`, `|=` and similar ones become calls of filters that create missing values, as
//! jq does.

use std::mem;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path;

/// The variable with the right side of an assignment such as `+=`.
const RIGHT: &str = "$__right";

/// Rewrites a definition of the prelude.
pub(super) fn definition(def: Def<&str>) -> Def<&str> {
    Rewriter::default().definition(def)
}

/// Rewrites a term.
pub(super) fn term(term: Term<&str>) -> Term<&str> {
    Rewriter::default().map(term)
}

/// Wraps a term in a check that fails if the stack is used up.
fn checked(term: Term<&str>) -> Term<&str> {
    let check = Term::Call("__is_too_deep", Vec::new());
    let fail = Term::Call("__too_deep", Vec::new());
    Term::IfThenElse(vec![(check, fail)], Some(Box::new(term)))
}

#[derive(Default)]
struct Rewriter<'a> {
    /// The arguments of the enclosing definitions.
    arguments: Vec<&'a str>,
}

impl<'a> Rewriter<'a> {
    fn definition(&mut self, def: Def<&'a str>) -> Def<&'a str> {
        let outer = self.arguments.len();
        self.arguments.extend(&def.args);
        let body = checked(self.map(def.body));
        self.arguments.truncate(outer);
        Def { body, ..def }
    }

    fn boxed(&mut self, mut term: Box<Term<&'a str>>) -> Box<Term<&'a str>> {
        *term = self.map(mem::take(&mut *term));
        term
    }

    fn all(&mut self, terms: Vec<Term<&'a str>>) -> Vec<Term<&'a str>> {
        terms.into_iter().map(|it| self.map(it)).collect()
    }

    fn map(&mut self, term: Term<&'a str>) -> Term<&'a str> {
        match term {
            Term::Def(defs, term) => Term::Def(
                defs.into_iter().map(|def| self.definition(def)).collect(),
                self.boxed(term),
            ),
            Term::Str(format, parts) => {
                let part = |part| match part {
                    StrPart::Term(term) => StrPart::Term(self.map(term)),
                    part => part,
                };
                Term::Str(format, parts.into_iter().map(part).collect())
            }
            Term::Arr(term) => Term::Arr(term.map(|it| self.boxed(it))),
            Term::Obj(entries) => {
                let entry =
                    |(key, value): (_, Option<_>)| (self.map(key), value.map(|it| self.map(it)));
                Term::Obj(entries.into_iter().map(entry).collect())
            }
            Term::Neg(term) => Term::Neg(self.boxed(term)),
            Term::BinOp(left, op, right) => {
                let (left, right) = (self.boxed(left), self.boxed(right));
                // `l += r` is `r as $r | l |= . + $r`.
                let bound = |left: Box<Term<_>>, op, right| {
                    let update = Term::BinOp(Box::new(Term::Id), op, Box::new(Term::Var(RIGHT)));
                    let modify = Term::Call("__modify", vec![*left, update]);
                    let pipe = BinaryOp::Pipe(Some(Pattern::Var(RIGHT)));
                    Term::BinOp(right, pipe, Box::new(modify))
                };
                match op {
                    BinaryOp::Assign => Term::Call("__assign", vec![*left, *right]),
                    BinaryOp::Update => Term::Call("__modify", vec![*left, *right]),
                    BinaryOp::UpdateMath(op) => bound(left, BinaryOp::Math(op), right),
                    BinaryOp::UpdateAlt => bound(left, BinaryOp::Alt, right),
                    BinaryOp::Pipe(found) => {
                        Term::BinOp(left, BinaryOp::Pipe(found.map(|it| self.pattern(it))), right)
                    }
                    op => Term::BinOp(left, op, right),
                }
            }
            Term::Label(name, term) => Term::Label(name, self.boxed(term)),
            Term::Fold(name, term, found, terms) => {
                Term::Fold(name, self.boxed(term), self.pattern(found), self.all(terms))
            }
            Term::TryCatch(term, catch) => {
                Term::TryCatch(self.boxed(term), catch.map(|it| self.boxed(it)))
            }
            Term::IfThenElse(branches, other) => {
                let branch = |(condition, then)| (self.map(condition), self.map(then));
                Term::IfThenElse(
                    branches.into_iter().map(branch).collect(),
                    other.map(|it| self.boxed(it)),
                )
            }
            Term::Call(name, arguments)
                if arguments.is_empty() && self.arguments.contains(&name) =>
            {
                checked(Term::Call(name, arguments))
            }
            Term::Call(name, arguments) => Term::Call(name, self.all(arguments)),
            Term::Path(term, path::Path(parts)) => {
                let term = self.boxed(term);
                let parts = parts.into_iter().map(|(part, opt)| {
                    let part = match part {
                        path::Part::Index(index) => path::Part::Index(self.map(index)),
                        path::Part::Range(from, to) => path::Part::Range(
                            from.map(|it| self.map(it)),
                            to.map(|it| self.map(it)),
                        ),
                    };
                    (part, opt)
                });
                Term::Path(term, path::Path(parts.collect()))
            }
            term => term,
        }
    }

    fn pattern(&mut self, found: Pattern<&'a str>) -> Pattern<&'a str> {
        match found {
            Pattern::Arr(patterns) => {
                Pattern::Arr(patterns.into_iter().map(|it| self.pattern(it)).collect())
            }
            Pattern::Obj(entries) => {
                let entry = |(key, value)| (self.map(key), self.pattern(value));
                Pattern::Obj(entries.into_iter().map(entry).collect())
            }
            found => found,
        }
    }
}
