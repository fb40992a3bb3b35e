//! Filters that are written in Rust.

use data_encoding::BASE32;
use jaq_core::box_iter::box_once;
use jaq_core::native::{Fun, bome, run, unary, v};
use jaq_core::{Bind, Exn, ValR, data};
use jaq_json::Val;

use super::{paths, regex, stack};

type Data = data::JustLut<Val>;
type Error = jaq_core::Error<Val>;

/// Returns all of these filters.
pub(super) fn all() -> impl Iterator<Item = Fun<Data>> {
    let filters: [jaq_core::native::Filter<jaq_core::RunPtr<Data>>; 12] = [
        ("delpaths", v(1), |cv| unary(cv, paths::delete)),
        ("setpath", v(2), |mut cv| {
            let (new, path) = (cv.0.pop_var(), cv.0.pop_var());
            bome(paths::set(cv.1, &path, new))
        }),
        ("__modify", [Bind::Fun(()), Bind::Fun(())].into(), |mut cv| {
            let (update, update_context) = cv.0.pop_fun();
            let (places, places_context) = cv.0.pop_fun();
            let found = places.paths((places_context, (cv.1.clone(), Default::default())));
            let found = found.map(|found| {
                let mut path: Vec<Val> = found?.1.iter().cloned().collect();
                path.reverse();
                Ok(path)
            });
            box_once(found.collect::<Result<Vec<_>, Exn<'_, Val>>>().and_then(|found| {
                paths::modify(cv.1, found, |old| {
                    update.run((update_context.clone(), old)).next().transpose()
                })
            }))
        }),
        ("matches", v(2), |mut cv| {
            let (flags, re) = (cv.0.pop_var(), cv.0.pop_var());
            bome(regex::apply(&cv.1, &re, &flags, regex::Parts::Matches))
        }),
        ("split_matches", v(2), |mut cv| {
            let (flags, re) = (cv.0.pop_var(), cv.0.pop_var());
            bome(regex::apply(&cv.1, &re, &flags, regex::Parts::Both))
        }),
        ("split_", v(2), |mut cv| {
            let (flags, re) = (cv.0.pop_var(), cv.0.pop_var());
            bome(regex::apply(&cv.1, &re, &flags, regex::Parts::Between))
        }),
        ("env", v(0), |_| bome(Ok(environment()))),
        ("__is_too_deep", v(0), |_| bome(Ok(Val::Bool(stack::is_used_up())))),
        ("__too_deep", v(0), |_| {
            bome(Err(Error::str(
                "recursion is too deep: a definition calls itself endlessly or too often",
            )))
        }),
        ("__escape_tsv", v(0), |cv| bome(text(&cv.1).map(|text| Val::from(escape_tsv(text))))),
        ("__base32", v(0), |cv| {
            bome(text(&cv.1).map(|text| Val::from(BASE32.encode(text.as_bytes()))))
        }),
        ("__base32d", v(0), |cv| bome(decode_base32(&cv.1))),
    ];
    filters.into_iter().map(run::<Data>)
}

/// Returns the variables that the tool is granted.
pub(super) fn environment() -> Val {
    let entry = |(name, value): (String, String)| (Val::from(name), Val::from(value));
    Val::obj(std::env::vars().map(entry).collect())
}

/// Returns a string, or an error for another type.
pub(super) fn text(value: &Val) -> Result<&str, Error> {
    match value {
        Val::TStr(bytes) => str::from_utf8(bytes).map_err(Error::str),
        value => Err(Error::typ(value.clone(), "string")),
    }
}

fn escape_tsv(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\\' => escaped.push_str("\\\\"),
            char => escaped.push(char),
        }
    }
    escaped
}

fn decode_base32(value: &Val) -> ValR<Val> {
    let decoded = BASE32.decode(text(value)?.as_bytes());
    let decoded = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Val::from).ok_or_else(|| Error::str("the text is not Base32 of UTF-8"))
}
