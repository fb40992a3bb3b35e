//! The documentation of functions in the custom section `package-docs`, which WIT tools write.

use std::collections::HashMap;

use kitbag_base::json::{self, JsonBudget};
use serde_json::Value;
use wasmparser::Encoding;

use crate::section::custom_sections;

/// The name of the section: a version byte, then JSON.
const NAME: &str = "package-docs";

/// The versions, which have the same form in the parts that are read here.
const VERSIONS: [u8; 2] = [0, 1];

/// The documentation of one function, in bytes. Longer text is cut.
const DOCS_BYTES: usize = 4 << 10;

/// The documentation of a component's functions. Untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionDocs {
    /// By the name of the interface, without package and version, and the name of the function. The
    /// name of the interface is empty for functions of a world.
    texts: HashMap<(String, String), String>,
}

/// Reads the documentation of the functions of a component. Sections that cannot be read are
/// ignored.
pub fn function_docs(component: &[u8]) -> FunctionDocs {
    let mut docs = FunctionDocs::default();
    custom_sections(component, |within, name, data| {
        // A tool that encodes WIT puts the section into the component that holds the types.
        let is_of_component = within.iter().all(|it| *it == Encoding::Component);
        if name == NAME
            && is_of_component
            && let Some((version, text)) = data.split_first()
            && VERSIONS.contains(version)
            && let Ok(package) = json::parse(text, JsonBudget::DESCRIPTION)
        {
            docs.add_package(&package);
        }
    });
    docs
}

impl FunctionDocs {
    /// Returns the documentation of a function: of an interface, without package and version, or of
    /// the component itself.
    pub fn of(&self, interface: Option<&str>, function: &str) -> Option<&str> {
        let key = (interface.unwrap_or_default().to_owned(), function.to_owned());
        self.texts.get(&key).map(String::as_str)
    }

    fn add_package(&mut self, package: &Value) {
        self.add_interfaces(&package["interfaces"]);
        for (_, world) in entries(&package["worlds"]) {
            self.add_functions("", &world["func_exports"]);
            self.add_functions("", &world["funcs"]);
            self.add_interfaces(&world["interface_exports"]);
            self.add_interfaces(&world["interfaces"]);
        }
    }

    fn add_interfaces(&mut self, interfaces: &Value) {
        for (name, interface) in entries(interfaces) {
            self.add_functions(name, &interface["funcs"]);
        }
    }

    fn add_functions(&mut self, interface: &str, functions: &Value) {
        for (name, function) in entries(functions) {
            // Version 0 has the second form.
            let text = function["docs"].as_str().or_else(|| function.as_str());
            let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { continue };
            let text = text[..text.floor_char_boundary(DOCS_BYTES)].to_owned();
            self.texts.entry((interface.to_owned(), name.to_owned())).or_insert(text);
        }
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (&**name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(section: &str, interface: Option<&str>, function: &str, expected: Option<&str>) {
        let text = format!("(component (@custom \"package-docs\" \"{section}\"))");
        let docs = function_docs(&wat::parse_str(text).unwrap());
        assert_eq!(docs.of(interface, function), expected);
    }

    #[test]
    fn functions_of_worlds_and_interfaces_are_found() {
        let world = r#"\01{\"worlds\":{\"w\":{\"funcs\":{\"add\":{\"docs\":\" Adds. \"}}}}}"#;
        check(world, None, "add", Some("Adds."));
        check(world, Some("add"), "add", None);
        check(world, None, "subtract", None);
        let interface = r#"\00{\"interfaces\":{\"i\":{\"funcs\":{\"add\":\"Adds.\"}}}}"#;
        check(interface, Some("i"), "add", Some("Adds."));
        check(interface, None, "add", None);
    }

    #[test]
    fn sections_that_cannot_be_read_are_ignored() {
        let functions = r#"{\"worlds\":{\"w\":{\"funcs\":{\"add\":{\"docs\":\"Adds.\"}}}}}"#;
        check(&format!(r"\01{functions}"), None, "add", Some("Adds."));
        for section in [
            "".to_owned(),
            r"\01".to_owned(),
            format!(r"\02{functions}"),
            format!(r"\01{functions}}}"),
            r"\01[1]".to_owned(),
            r#"\01{\"worlds\":[{}],\"interfaces\":1}"#.to_owned(),
        ] {
            check(&section, None, "add", None);
        }
        let nested = "(component (core module (@custom \"package-docs\" \"\\01{}\")))";
        assert_eq!(function_docs(&wat::parse_str(nested).unwrap()), FunctionDocs::default());
        assert_eq!(function_docs(b"no component"), FunctionDocs::default());
    }

    #[test]
    fn long_documentation_is_cut() {
        let text = "ä".repeat(5_000);
        let section = format!(
            r#"\01{{\"worlds\":{{\"w\":{{\"funcs\":{{\"add\":{{\"docs\":\"{text}\"}}}}}}}}}}"#
        );
        check(&section, None, "add", Some(&"ä".repeat(2_048)));
    }
}
