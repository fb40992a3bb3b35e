//! The cost of translating, compiling and matching patterns.

use jsonschema::PatternOptions;
use kitbag_base::ByteSize;
use regex_automata::nfa::thompson::{Compiler, Config};
use serde_json::{Map, Value};

use kitbag_base::json::pointer;

/// The largest compiled program of a pattern.
const PROGRAM_BYTES: ByteSize = ByteSize::mib(1);

/// Maximum number of bytes that are read to translate a pattern.
pub(super) const TRANSLATED_BYTES: u64 = 4 << 20;

/// The longest translation of an escape: `\s` is a class of all white space.
const ESCAPE_BYTES: u64 = 160;

/// Maximum memory for the programs of all patterns of a schema during matching: the default memory
/// of a call.
pub(super) const PROGRAMS_BYTES: ByteSize = ByteSize::mib(64);

/// The cache size of each of a pattern's two automata.
const AUTOMATON_BYTES: u64 = 128 << 10;

/// The largest table of the engine for a pattern with groups, and the part of it for each program
/// state: two numbers of 4 bytes for each byte value.
const GROUPS_BYTES: u64 = 1 << 20;
const GROUPS_BYTES_PER_STATE: u64 = 2 << 10;

/// Returns the library's options for every schema of a tool.
pub(crate) fn options<'i>() -> jsonschema::ValidationOptions<'i> {
    let patterns = PatternOptions::regex()
        .size_limit(PROGRAM_BYTES.as_usize())
        .dfa_size_limit(AUTOMATON_BYTES as usize);
    jsonschema::options().with_pattern_options(patterns)
}

/// The compiled form of a pattern.
pub(super) struct Program {
    /// The cost of translating the pattern.
    pub(super) translation: u64,
    /// The cost per byte of text.
    pub(super) states: u64,
    /// The memory during matching.
    pub(super) bytes: u64,
}

/// Returns the number of bytes that are read to translate a pattern to the engine's syntax: the
/// library reads all of it again for each escape, and translations may be longer.
fn translation(pattern: &str) -> u64 {
    let escapes = pattern.bytes().filter(|byte| *byte == b'\\').count() as u64;
    let length = pattern.len() as u64 + escapes * ESCAPE_BYTES;
    (escapes + 1).saturating_mul(length)
}

/// Compiles a pattern as the library does later.
///
/// # Errors
///
/// Why the pattern cannot be used.
pub(super) fn program(pattern: &str) -> Result<Program, String> {
    let translation = translation(pattern);
    if translation > TRANSLATED_BYTES {
        return Err("it has too many escapes for its length; shorten it".into());
    }
    let translated = jsonschema_regex::to_rust_regex(pattern)
        .map_err(|()| "it is not an ECMA-262 regular expression".to_owned())?;
    let limit = PROGRAM_BYTES;
    let config = Config::new().nfa_size_limit(Some(limit.as_usize()));
    let program =
        Compiler::new().configure(config).build(&translated).map_err(|error| {
            match error.size_limit() {
                Some(_) => format!("it needs more than {limit} when compiled; shorten it"),
                None => "look-around and back-references are not supported".into(),
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

/// Returns the patterns of a keyword and their pointers below the keyword.
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
