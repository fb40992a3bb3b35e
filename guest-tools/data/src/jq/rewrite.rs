//! Changes to a filter before it is compiled.
//!
//! Each definition looks at the stack when it is called: one that calls itself without end would
//! take all of it, which ends the tool. Calls in tail position still take no stack. And `=`, `|=`
//! and their kin become calls of filters, which create what is not there, as jq does.

use std::mem;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Def, Pattern, Term};
use jaq_core::path;

/// The variable that holds the right side of an assignment such as `+=`.
const RIGHT: &str = "$__right";

/// Changes a definition.
pub(super) fn definition(def: Def<&str>) -> Def<&str> {
    let check = Term::Call("__is_too_deep", Vec::new());
    let fail = Term::Call("__too_deep", Vec::new());
    let body = Term::IfThenElse(vec![(check, fail)], Some(Box::new(map(def.body))));
    Def { body, ..def }
}

fn boxed(mut term: Box<Term<&str>>) -> Box<Term<&str>> {
    *term = map(mem::take(&mut *term));
    term
}

fn all(terms: Vec<Term<&str>>) -> Vec<Term<&str>> {
    terms.into_iter().map(map).collect()
}

/// Changes a term.
pub(super) fn map(term: Term<&str>) -> Term<&str> {
    match term {
        Term::Def(defs, term) => Term::Def(defs.into_iter().map(definition).collect(), boxed(term)),
        Term::Str(format, parts) => {
            let part = |part| match part {
                StrPart::Term(term) => StrPart::Term(map(term)),
                part => part,
            };
            Term::Str(format, parts.into_iter().map(part).collect())
        }
        Term::Arr(term) => Term::Arr(term.map(boxed)),
        Term::Obj(entries) => {
            let entry = |(key, value): (_, Option<_>)| (map(key), value.map(map));
            Term::Obj(entries.into_iter().map(entry).collect())
        }
        Term::Neg(term) => Term::Neg(boxed(term)),
        Term::BinOp(left, op, right) => {
            let (left, right) = (boxed(left), boxed(right));
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
                    Term::BinOp(left, BinaryOp::Pipe(found.map(pattern)), right)
                }
                op => Term::BinOp(left, op, right),
            }
        }
        Term::Label(name, term) => Term::Label(name, boxed(term)),
        Term::Fold(name, term, found, terms) => {
            Term::Fold(name, boxed(term), pattern(found), all(terms))
        }
        Term::TryCatch(term, catch) => Term::TryCatch(boxed(term), catch.map(boxed)),
        Term::IfThenElse(branches, other) => {
            let branch = |(condition, then)| (map(condition), map(then));
            Term::IfThenElse(branches.into_iter().map(branch).collect(), other.map(boxed))
        }
        Term::Call(name, arguments) => Term::Call(name, all(arguments)),
        Term::Path(term, path::Path(parts)) => {
            let part = |part| match part {
                path::Part::Index(index) => path::Part::Index(map(index)),
                path::Part::Range(from, to) => path::Part::Range(from.map(map), to.map(map)),
            };
            let parts = parts.into_iter().map(|(it, opt)| (part(it), opt));
            Term::Path(boxed(term), path::Path(parts.collect()))
        }
        term => term,
    }
}

fn pattern(found: Pattern<&str>) -> Pattern<&str> {
    match found {
        Pattern::Arr(patterns) => Pattern::Arr(patterns.into_iter().map(pattern).collect()),
        Pattern::Obj(entries) => {
            let entry = |(key, value)| (map(key), pattern(value));
            Pattern::Obj(entries.into_iter().map(entry).collect())
        }
        found => found,
    }
}
