//! jq filters: the language is defined by the crate jaq. Parts of jq that jaq lacks or implements
//! differently are in `prelude.jq` and in [`functions`].

mod functions;
mod paths;
mod regex;
mod rewrite;
mod stack;

use std::borrow::Cow;

use jaq_core::load::parse::Def;
use jaq_core::load::{Arena, File, Lexer, Loader, Parser, parse};
use jaq_core::{Ctx, Vars, data};
use jaq_json::{Map, Val, read};
use kitbag_sdk::ErrorInfo;

use crate::excerpt;
use crate::pointer;
use crate::read::csv::Cell;

/// Maximum length of a filter in bytes.
const FILTER_BYTES: usize = 64 << 10;

/// Maximum nesting of brackets in a filter.
const BRACKETS: usize = 200;

/// Global variables of a filter: the line of the input, its file, and the location in the filter.
const VARIABLES: [&str; 4] = ["$__line", "$__file", "$__loc__", "$ENV"];

/// Filters of jaq that are replaced by those with the same name in [`functions`].
const REPLACED: [&str; 6] = ["delpaths", "setpath", "matches", "split_matches", "split_", "env"];

/// A compiled filter.
pub(crate) struct Filter {
    code: jaq_core::Filter<data::JustLut<Val>>,
    /// The values of `$__loc__` and `$ENV`.
    constants: [Val; 2],
}

/// The reason why no more results follow.
pub(crate) enum End {
    /// `halt`.
    Halted,
    /// An error with this message.
    Failed(String),
}

/// The value of an input.
pub(crate) enum Value<'a> {
    Json(Cow<'a, str>),
    Row(Row),
}

/// An input of a filter.
pub(crate) struct Input<'a> {
    pub(crate) value: Value<'a>,
    /// The path of the file.
    pub(crate) file: Option<&'a str>,
    /// The line of the file at which the input ends.
    pub(crate) line: usize,
}

/// A row of CSV, built without JSON text.
pub(crate) struct Row(Map);

/// The keys of rows.
#[derive(Default)]
pub(crate) struct Keys(Vec<Option<Val>>);

impl Row {
    pub(crate) fn with_capacity(cells: usize) -> Self {
        Self(Map::with_capacity_and_hasher(cells, Default::default()))
    }

    /// Adds the cell of a column whose name is always the same.
    pub(crate) fn insert(&mut self, keys: &mut Keys, column: usize, name: &str, cell: Cell<'_>) {
        if keys.0.len() <= column {
            keys.0.resize(column + 1, None);
        }
        let key = keys.0[column].get_or_insert_with(|| Val::from(name.to_owned())).clone();
        let value = match cell {
            Cell::Null => Val::Null,
            Cell::Bool(value) => Val::Bool(value),
            // The same function reads the numbers of JSON.
            Cell::Number(number) => {
                read::parse_single_num(number.as_bytes()).map_or(Val::Null, Val::Num)
            }
            Cell::Text(text) => Val::from(text.to_owned()),
        };
        self.0.insert(key, value);
    }
}

impl Filter {
    /// Parses a filter. `input`, which would read another document, and modules are not available.
    pub(crate) fn new(code: &str) -> Result<Self, ErrorInfo> {
        if code.len() > FILTER_BYTES {
            let what = format!(
                "the filter has more than {} KiB, the limit; shorten it",
                FILTER_BYTES >> 10
            );
            return Err(invalid(code, "", &what));
        }
        check_brackets(code)?;
        let code = &*surrogates(code);
        let tokens = Lexer::new(code).lex().map_err(|errors| match errors.first() {
            Some((expected, found)) => expected_found(code, found, expected.as_str()),
            None => ErrorInfo::new("invalid jq filter"),
        })?;
        let term =
            Parser::new(&tokens).parse(|parser| parser.term()).map_err(|errors| {
                match errors.first() {
                    Some((expected, found)) => {
                        let found = jaq_core::load::lex::Token::opt_as_str(*found, code);
                        expected_found(code, found, expected.as_str())
                    }
                    None => ErrorInfo::new("invalid jq filter"),
                }
            })?;
        // A definition in the prelude, so that it can be rewritten before it is compiled.
        let query = Def { name: "__query", args: Vec::new(), body: rewrite::term(term) };
        let own = parse(include_str!("prelude.jq"), |parser| parser.defs()).unwrap_or_default();
        let own = own.into_iter().map(rewrite::definition);
        let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let defs = defs.filter(|def| !REPLACED.contains(&def.name));
        let arena = Arena::default();
        let modules = Loader::new(defs.chain(own).map(shorter).chain([query]))
            .load(&arena, File { code: "__query", path: () })
            .map_err(|_| ErrorInfo::new("invalid jq filter"))?;
        let funs = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
        let funs = funs.filter(|(name, ..)| !REPLACED.contains(name)).chain(functions::all());
        let compiler = jaq_core::Compiler::default().with_funs(funs).with_global_vars(VARIABLES);
        let place = [("file", Val::utf8_str("<top-level>")), ("line", Val::from(1_usize))];
        let place = place.into_iter().map(|(key, value)| (Val::utf8_str(key), value));
        let constants = [Val::obj(place.collect()), functions::environment()];
        compiler.compile(modules).map(|code| Self { code, constants }).map_err(|errors| {
            let first = errors.into_iter().next().and_then(|(_, errors)| errors.into_iter().next());
            match first {
                Some((name, undefined)) => {
                    let hint = hint(code, name);
                    let (kind, shown) = (undefined.as_str(), excerpt::value(name));
                    let what = format!("there is no {kind} `{shown}` here{hint}");
                    invalid(code, name, &what)
                }
                None => ErrorInfo::new("invalid jq filter"),
            }
        })
    }

    /// Calls `visit` with each result until `visit` wants no more. Returns whether it wants more.
    ///
    /// # Errors
    ///
    /// The message of the filter, or the input is not JSON.
    pub(crate) fn run(
        &self,
        input: Input<'_>,
        visit: &mut dyn FnMut(&Val) -> Result<bool, ErrorInfo>,
    ) -> Result<Result<bool, End>, ErrorInfo> {
        let value = match input.value {
            Value::Json(json) => match read::parse_single(json.as_bytes()) {
                Ok(value) => value,
                Err(error) => return Ok(Err(End::Failed(format!("the input: {error}")))),
            },
            Value::Row(Row(row)) => Val::obj(row),
        };
        let [place, environment] = self.constants.clone();
        let file = input.file.map_or(Val::Null, |file| Val::from(file.to_owned()));
        let variables = [Val::from(input.line), file, place, environment];
        let context = Ctx::<data::JustLut<Val>>::new(&self.code.lut, Vars::new(variables));
        stack::begin();
        for output in self.code.id.run((context, value)) {
            match output {
                Ok(output) if visit(&output)? => {}
                Ok(_) => return Ok(Ok(false)),
                Err(stop) => {
                    return Ok(Err(match stop.get_err() {
                        Ok(error) => End::Failed(message(&error.to_string())),
                        Err(_) => End::Halted,
                    }));
                }
            }
        }
        Ok(Ok(true))
    }
}

/// Returns the message of an error. A string is formatted as JSON.
fn message(error: &str) -> String {
    serde_json::from_str(error).unwrap_or_else(|_| error.to_owned())
}

/// Replaces pairs of escapes that are surrogates by characters.
fn surrogates(code: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = code.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut changed = String::new();
    let mut end = 0;
    let mut position = 0;
    while let Some(found) = code[position..].find('\\') {
        let at = position + found;
        position = at + 2;
        if let (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) = (unit(at), unit(at + 6))
        {
            changed.push_str(&code[end..at]);
            let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            changed.extend(char::from_u32(code));
            (end, position) = (at + 12, at + 12);
        } else if !code.is_char_boundary(position) {
            position = at + 1;
        }
        if position >= code.len() {
            break;
        }
    }
    match end {
        0 => Cow::Borrowed(code),
        end => Cow::Owned(changed + &code[end..]),
    }
}

/// Shortens the lifetime of a definition's code.
fn shorter<'a>(definition: Def<&'static str>) -> Def<&'a str> {
    definition
}

/// Returns the error for a part of a filter.
fn invalid(code: &str, part: &str, what: &str) -> ErrorInfo {
    let offset = (part.as_ptr() as usize).checked_sub(code.as_ptr() as usize);
    let offset = offset.filter(|offset| *offset <= code.len()).unwrap_or(code.len());
    let (line, column) = pointer::line_and_column(code, offset);
    let what = excerpt::message(what);
    ErrorInfo::new(format!("invalid jq filter: {what} (line {line}, column {column})"))
}

fn expected_found(code: &str, found: &str, expected: &str) -> ErrorInfo {
    let shown = match found.chars().next() {
        Some(first) => {
            let word = found.split_whitespace().next().map_or(first.to_string(), excerpt::value);
            format!("`{word}`")
        }
        None => "the end".to_owned(),
    };
    if ["include", "import"].iter().any(|word| code.trim_start().starts_with(word)) {
        return invalid(code, code, "modules are not supported");
    }
    invalid(code, found, &format!("expected {expected}, found {shown}{}", hint(code, found)))
}

/// Suggests the notation for the likely meaning of an unknown name.
fn hint(code: &str, name: &str) -> String {
    let offset = (name.as_ptr() as usize).wrapping_sub(code.as_ptr() as usize);
    let before = code.get(..offset).unwrap_or_default();
    match name {
        "input" | "inputs" => "; each document is a separate input".to_owned(),
        name if name.starts_with('\'') => "; put strings in double quotes".to_owned(),
        _ => match quoted_key(before, &code[before.len()..]) {
            Some((char, key)) => {
                let key = excerpt::value(&key);
                format!("; put a key with `{char}` in quotes: `.\"{key}\"`")
            }
            None => String::new(),
        },
    }
}

/// Returns the key in `.a-b`, if `before` ends with `.a-`, and the character that requires quotes:
/// `-`, `@`, or a digit at the start.
pub(crate) fn quoted_key(before: &str, rest: &str) -> Option<(char, String)> {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '@');
    let begin = before.trim_end_matches(is_part);
    let end = rest.len() - rest.trim_start_matches(is_part).len();
    let key = format!("{}{}", &before[begin.len()..], &rest[..end]);
    let first = key.chars().next().filter(char::is_ascii_digit);
    let odd = first.or_else(|| key.chars().find(|char| matches!(char, '-' | '@')))?;
    (begin.ends_with('.') && !key.starts_with('-')).then_some((odd, key))
}

/// Refuses a filter whose brackets are nested too deeply: parsing it would overflow the stack.
fn check_brackets(code: &str) -> Result<(), ErrorInfo> {
    let mut depth = 0_usize;
    for (at, char) in code.char_indices() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > BRACKETS {
            let what = format!("brackets are nested more than {BRACKETS} deep");
            return Err(invalid(code, &code[at..], &what));
        }
    }
    Ok(())
}
