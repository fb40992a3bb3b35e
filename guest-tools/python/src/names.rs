//! Names of tools in a script.

use std::collections::BTreeSet;

use ruff_python_stdlib::builtins::is_python_builtin;
use ruff_python_stdlib::keyword::is_keyword;

/// The version of Python whose built-ins a script expects.
const MINOR_VERSION: u8 = 14;

/// Returns true if a name belongs to Python.
pub(crate) fn is_own(name: &str) -> bool {
    is_keyword(name) || is_python_builtin(name, MINOR_VERSION, false)
}

/// Returns the name of each of these tools in a script: unchanged if it is an identifier, otherwise
/// with `_` in place of `-`, and after a name that Python or another tool has.
pub(crate) fn identifiers<'a>(tools: &[&'a str]) -> Vec<(String, &'a str)> {
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
        (name, *tool)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_or_taken_names_get_underscores() {
        let tools = ["a-b", "a_b", "a-b_", "import", "open", "plain"];
        let names: Vec<_> = identifiers(&tools).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a_b_", "a_b", "a_b__", "import_", "open_", "plain"]);
    }
}
