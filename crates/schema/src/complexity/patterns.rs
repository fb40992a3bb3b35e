//! Patterns: what it takes to translate, compile and match them.

use jsonschema::PatternOptions;
use kitbag_base::ByteSize;
use regex_automata::nfa::thompson::{Compiler, Config};
use serde_json::{Map, Value};

use kitbag_base::json::pointer;

/// The largest program that a pattern is compiled to.
const PROGRAM_BYTES: ByteSize = ByteSize::mib(1);

/// The most that is read to translate a pattern.
pub(super) const TRANSLATED_BYTES: u64 = 4 << 20;

/// What an escape becomes at most: `\s` is a class of all that is white space.
const ESCAPE_BYTES: u64 = 160;

/// The most that the programs of all patterns of a schema may take in memory while
/// texts are matched: as much as a call has by default.
pub(super) const PROGRAMS_BYTES: ByteSize = ByteSize::mib(64);

/// What each of a pattern's two automata may keep of what it has found out.
const AUTOMATON_BYTES: u64 = 128 << 10;

/// The largest table that the engine makes for a pattern with groups, and what a
/// state of the program takes of it: two numbers of 4 bytes for each value of a byte.
const GROUPS_BYTES: u64 = 1 << 20;
const GROUPS_BYTES_PER_STATE: u64 = 2 << 10;

/// The options under which the library reads every schema of a tool's.
pub(crate) fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    let patterns = PatternOptions::regex()
        .size_limit(PROGRAM_BYTES.as_usize())
        .dfa_size_limit(AUTOMATON_BYTES as usize);
    jsonschema::options().with_pattern_options(patterns)
}

/// What a pattern is compiled to.
pub(super) struct Program {
    /// What it takes to translate it.
    pub(super) translation: u64,
    /// How much each byte of a text takes.
    pub(super) states: u64,
    /// What it takes in memory while texts are matched.
    pub(super) bytes: u64,
}

/// How many bytes are read to translate a pattern to the syntax of the engine: all of it
/// again for each of its escapes, which may have become longer.
fn translation(pattern: &str) -> u64 {
    let escapes = pattern.bytes().filter(|byte| *byte == b'\\').count() as u64;
    let length = pattern.len() as u64 + escapes * ESCAPE_BYTES;
    (escapes + 1).saturating_mul(length)
}

/// Compiles a pattern as the library does later on.
///
/// # Errors
///
/// Says why it cannot be used.
pub(super) fn program(pattern: &str) -> Result<Program, String> {
    let translation = translation(pattern);
    if translation > TRANSLATED_BYTES {
        return Err("it has too many escapes for its length; shorten it".into());
    }
    let translated = jsonschema_regex::to_rust_regex(pattern)
        .map_err(|()| "it is not a regular expression of ECMA-262".to_owned())?;
    let limit = PROGRAM_BYTES;
    let config = Config::new().nfa_size_limit(Some(limit.as_usize()));
    let program =
        Compiler::new().configure(config).build(&translated).map_err(|error| {
            match error.size_limit() {
                Some(_) => format!("it takes more than {limit} when it is compiled; shorten it"),
                None => {
                    "look-around and back-references are not supported; write it without".into()
                }
            }
        })?;
    let states = program.states().len() as u64;
    let groups = match program.group_info().explicit_slot_len() {
        0 => 0,
        _ => GROUPS_BYTES.min(states * GROUPS_BYTES_PER_STATE),
    };
    let bytes = 2 * (program.memory_usage() as u64 + AUTOMATON_BYTES) + groups;
    Ok(Program { translation, states, bytes })
}

/// The patterns of a keyword, and the place of each below the keyword.
pub(super) fn patterns<'r>(
    keyword: &str,
    rule: &'r Value,
) -> impl Iterator<Item = (&'r str, String)> {
    let (own, keys) = match (keyword, rule) {
        ("pattern", Value::String(pattern)) => (Some((&**pattern, String::new())), None),
        ("patternProperties", Value::Object(schemas)) => (None, Some(schemas)),
        _ => (None, None),
    };
    let keys = keys.into_iter().flat_map(Map::keys).map(|key| (&**key, pointer(key)));
    own.into_iter().chain(keys)
}
