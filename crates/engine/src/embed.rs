//! The table of built-in tools, which a build script writes and a library includes.

use std::fmt::Write;
use std::path::PathBuf;

use kitbag_contract::ToolDescription;

use crate::description::DescribeResult;
use crate::inspect::Support;
use crate::section;

/// A component that is part of a binary, with its files and its tools.
#[derive(Debug)]
pub struct EmbeddedComponent {
    name: String,
    native: PathBuf,
    packed: PathBuf,
    tools: Vec<EmbeddedTool>,
}

#[derive(Debug)]
struct EmbeddedTool {
    name: String,
    description: String,
    /// The requested grants, as JSON.
    grants: String,
}

impl EmbeddedComponent {
    /// Reads the tools of a component from its section `kitbag:describe`, without running it.
    ///
    /// `native` is the file with the native code, which may be packed, and `packed` the
    /// file of the packed component.
    ///
    /// # Errors
    ///
    /// The section is missing or malformed, or the component cannot be built in.
    pub fn read(
        name: &str,
        component: &[u8],
        native: PathBuf,
        packed: PathBuf,
    ) -> Result<Self, String> {
        let tools = tools(section::described(component, &Support::ANY).unwrap_or_default())
            .map_err(|reason| format!("the built-in `{name}` cannot be described: {reason}"))?;
        Ok(Self { name: name.to_owned(), native, packed, tools })
    }

    /// Returns the Rust source of the table: a call of the macro `builtins!`, and the macro
    /// `for_each_tool!`.
    ///
    /// # Errors
    ///
    /// Two components have a tool of the same name.
    pub fn table(components: &[Self]) -> Result<String, String> {
        let mut entries = String::new();
        let mut names: Vec<&str> = Vec::new();
        for Self { name, native, packed, tools } in components {
            if let Some(tool) = tools.iter().find(|tool| names.contains(&tool.name.as_str())) {
                return Err(format!("two built-ins have a tool `{}`, one is `{name}`", tool.name));
            }
            names.extend(tools.iter().map(|tool| tool.name.as_str()));
            let entry = |tool: &EmbeddedTool| {
                let EmbeddedTool { name, description, grants } = tool;
                format!("{name}: {description:?}, {grants:?}")
            };
            let tools = tools.iter().map(entry).collect::<Vec<_>>().join(", ");
            writeln!(entries, "    {name}: {native:?}, {packed:?}, [{tools}];")
                .expect("a string grows");
        }
        let names = names.join(" ");
        Ok(format!(
            "/// Calls a macro with the names of all built-in tools, as identifiers.\n\
             ///\n\
             /// `tests/` uses it to prove that every tool has its tests.\n\
             #[macro_export]\n\
             macro_rules! for_each_tool {{\n    ($macro:ident) => {{ $macro! {{ {names} }} }};\n}}\n\n\
             builtins! {{\n{entries}}}\n"
        ))
    }
}

fn tools(described: DescribeResult) -> Result<Vec<EmbeddedTool>, String> {
    let description = match described {
        DescribeResult::Description(description) => description,
        DescribeResult::Unusable(problem) => return Err(problem),
        DescribeResult::Nothing => return Err("it has no section `kitbag:describe`".into()),
    };
    if description.tools.is_empty() {
        return Err("it has no tool".into());
    }
    if !description.prompts.is_empty() || !description.resources.is_empty() {
        return Err("only tools can be built in".into());
    }
    description.tools.iter().map(EmbeddedTool::new).collect()
}

impl EmbeddedTool {
    fn new(tool: &ToolDescription) -> Result<Self, String> {
        let json = |error: serde_json::Error| error.to_string();
        Ok(Self {
            name: tool.name.clone(),
            description: serde_json::to_string(tool).map_err(json)?,
            grants: serde_json::to_string(&tool.grants.clone().unwrap_or_default())
                .map_err(json)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, section: &str) -> Result<EmbeddedComponent, String> {
        let text = format!("(component (@custom \"kitbag:describe\" {section:?}))");
        EmbeddedComponent::read(name, &wat::parse_str(text).unwrap(), "n".into(), "p".into())
    }

    #[test]
    fn the_table_holds_descriptions_and_requested_grants() {
        let section = r#"{"name":"a","grants":{"storage":true}}"#;
        let table = EmbeddedComponent::table(&[component("c", section).unwrap()]).unwrap();
        let entry = table.lines().find(|line| line.starts_with("    c: ")).unwrap();
        let (description, grants) =
            (format!("{section:?}"), format!("{:?}", r#"{"storage":true}"#));
        assert_eq!(entry, format!(r#"    c: "n", "p", [a: {description}, {grants}];"#));
    }

    #[test]
    fn the_table_names_each_tool_once() {
        let two = r#"{"tools":[{"name":"a"},{"name":"b"}]}"#;
        let table = EmbeddedComponent::table(&[component("c", two).unwrap()]).unwrap();
        assert!(table.contains("($macro:ident) => { $macro! { a b } };"), "{table}");
        let components = [component("c", two).unwrap(), component("d", r#"{"name":"b"}"#).unwrap()];
        let error = EmbeddedComponent::table(&components).unwrap_err();
        assert_eq!(error, "two built-ins have a tool `b`, one is `d`");
    }

    #[test]
    fn components_that_cannot_be_built_in_are_refused() {
        let check = |section: &str, expected: &str| {
            let error = component("c", section).unwrap_err();
            assert_eq!(error, format!("the built-in `c` cannot be described: {expected}"));
        };
        check("[]", "its section `kitbag:describe`: it is not a JSON object");
        let bare = wat::parse_str("(component)").unwrap();
        let error = EmbeddedComponent::read("c", &bare, "n".into(), "p".into()).unwrap_err();
        assert!(error.ends_with("it has no section `kitbag:describe`"), "{error}");
    }
}
