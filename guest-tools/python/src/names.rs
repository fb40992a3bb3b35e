//! Names of tools in a script.

use std::collections::BTreeSet;

/// Keywords, soft keywords that are used as names excepted.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns the name of each of these tools in a script: unchanged if it is an identifier, otherwise
/// with `_` in place of `-`, and after a name that Python or another tool has.
pub(crate) fn identifiers(tools: &[&str], is_builtin: impl Fn(&str) -> bool) -> Vec<String> {
    let is_own = |name: &str| KEYWORDS.contains(&name) || is_builtin(name);
    let is_identifier = |tool: &str| !tool.contains('-') && !is_own(tool);
    let mut taken: BTreeSet<String> =
        tools.iter().filter(|tool| is_identifier(tool)).map(|tool| (*tool).to_owned()).collect();
    let named = tools.iter().map(|tool| {
        let mut name = tool.replace('-', "_");
        if !is_identifier(tool) {
            while is_own(&name) || taken.contains(&name) {
                name.push('_');
            }
            taken.insert(name.clone());
        }
        name
    });
    named.collect()
}
