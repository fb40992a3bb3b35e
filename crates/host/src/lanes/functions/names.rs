//! The names of the tools of a component.
//!
//! They are those of Wassette (`component2json`): the name of the exported interface, if any, and
//! the name of the function in lower case, joined by `_`, with `_` in place of each character other
//! than letters, digits and `-`. A name that is too long or in use is shortened: first the
//! interface to its last part, then the name to the function alone, then it gets a number.

use std::collections::HashSet;

use kitbag_contract::ToolName;

/// The location of an exported function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionPath {
    /// The exported instance with the function, such as `local:fs/files@0.1.0`.
    pub(super) instance: Option<String>,
    pub(super) function: String,
}

impl FunctionPath {
    /// Returns the name of the interface without package and version.
    pub(super) fn interface(&self) -> Option<&str> {
        let instance = self.instance.as_deref()?;
        let path = instance.split('@').next().unwrap_or(instance);
        path.rsplit('/').next()
    }

    fn full_name(&self) -> String {
        let instance = self.instance.as_deref();
        joined([instance, Some(&*self.function)])
    }

    fn short_names(&self) -> [String; 2] {
        [joined([self.interface(), Some(&*self.function)]), joined([None, Some(&*self.function)])]
    }
}

/// Returns the name of the tool of each function, in the same order. All names are different.
pub(super) fn assign(paths: &[FunctionPath]) -> Vec<String> {
    let mut used = HashSet::new();
    let mut take = |name: String| (is_name(&name) && used.insert(name.clone())).then_some(name);
    // A shortened name never takes the full name of another function.
    let full: Vec<_> = paths.iter().map(|path| take(path.full_name())).collect();
    let names = paths.iter().zip(full).map(|(path, full)| {
        let short = || path.short_names().into_iter().find_map(&mut take);
        full.or_else(short).unwrap_or_else(|| numbered(path, &mut take))
    });
    names.collect()
}

/// Returns a name that ends in a number.
fn numbered(path: &FunctionPath, take: &mut impl FnMut(String) -> Option<String>) -> String {
    const DIGITS: usize = 8;
    let [_, mut name] = path.short_names();
    // All characters are ASCII.
    name.truncate(ToolName::MAX_LEN - DIGITS);
    if !is_name(&name) {
        name = "function".to_owned();
    }
    let mut numbers = 1_u32..;
    numbers.find_map(|number| take(format!("{name}-{number}"))).unwrap_or(name)
}

fn is_name(name: &str) -> bool {
    ToolName::new(name).is_ok()
}

fn joined(parts: [Option<&str>; 2]) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().map(normalized).collect();
    parts.join("_")
}

fn normalized(name: &str) -> String {
    let replaced = |c: char| match c {
        'A'..='Z' => c.to_ascii_lowercase(),
        'a'..='z' | '0'..='9' | '-' => c,
        _ => '_',
    };
    name.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[(&str, &str)], expected: &[&str]) {
        let path = |(instance, function): &(&str, &str)| FunctionPath {
            instance: (!instance.is_empty()).then(|| (*instance).to_owned()),
            function: (*function).to_owned(),
        };
        let paths: Vec<_> = paths.iter().map(path).collect();
        assert_eq!(assign(&paths), expected);
    }

    #[test]
    fn names_are_those_of_wassette() {
        check(&[("", "list-directory"), ("", "fetch")], &["list-directory", "fetch"]);
        check(
            &[("local:context7/context7@0.1.0", "resolve-library-id")],
            &["local_context7_context7_0_1_0_resolve-library-id"],
        );
        check(&[("math", "add-HTTP")], &["math_add-http"]);
        check(&[("", "[static]file.open")], &["_static_file_open"]);
    }

    #[test]
    fn names_that_are_too_long_are_shortened() {
        let long = "organisation:package-with-a-long-name/files@1.22.333";
        check(&[(long, "read")], &["files_read"]);
        let interface = format!("a:b/{}", "i".repeat(48));
        check(&[(&interface, "read")], &["read"]);
        let function = "f".repeat(60);
        check(&[("", &function)], &[&format!("{}-1", "f".repeat(40))]);
    }

    #[test]
    fn names_in_use_are_not_taken_again() {
        let long = "organisation:package-with-a-long-name/files@1.22.333";
        check(
            &[(long, "read"), ("files", "read"), ("", "read"), (long, "read")],
            &["read-1", "files_read", "read", "read-2"],
        );
        check(&[("a:b", "c"), ("a/b", "c")], &["a_b_c", "b_c"]);
    }
}
