//! The table of built-in tools, which a build script writes and a library includes.

use std::fmt::{self, Write};
use std::path::PathBuf;

use kitbag_contract::ToolDescription;
use kitbag_policy::{
    Access, Grants, Request, RequestedGrants, StorageGrant, StorageRequest, WantedTool,
};

use crate::described::Described;
use crate::section;

/// A component that is part of a binary, with its files and its tools.
#[derive(Debug)]
pub struct EmbeddedComponent {
    name: String,
    native: PathBuf,
    packed: PathBuf,
    tools: Vec<EmbeddedTool>,
}

/// One tool of an embedded component.
#[derive(Debug)]
struct EmbeddedTool {
    name: String,
    /// As JSON.
    description: String,
    workspace: Option<Access>,
    /// Whether it requests storage, of the default size.
    keeps: bool,
    /// The guest paths of the directories that each call is given.
    given_by_call: Vec<String>,
    /// The grants that it requires, each as a line of TOML.
    required: Vec<String>,
    /// Whether it requests the tools that its caller may call.
    calls: bool,
}

impl EmbeddedComponent {
    /// Reads the tools of a component from its section `kitbag:describe`; nothing runs.
    ///
    /// `native` is the file of what [`EmbeddedArtifact::pack_native`] returned, `packed` that of the
    /// packed component.
    ///
    /// # Errors
    ///
    /// The section is missing or malformed, or the component cannot be built in.
    ///
    /// [`EmbeddedArtifact::pack_native`]: crate::EmbeddedArtifact::pack_native
    pub fn read(
        name: &str,
        component: &[u8],
        native: PathBuf,
        packed: PathBuf,
    ) -> Result<Self, String> {
        let tools = tools(section::described(component).unwrap_or_default())
            .map_err(|reason| format!("the built-in `{name}` cannot be described: {reason}"))?;
        Ok(Self { name: name.to_owned(), native, packed, tools })
    }

    /// The Rust source of the table: a call of the macro `builtins!`, and the macro
    /// `for_each_tool!`.
    ///
    /// # Errors
    ///
    /// Two components have a tool of one name.
    pub fn table(components: &[Self]) -> Result<String, String> {
        let mut entries = String::new();
        let mut names: Vec<&str> = Vec::new();
        for Self { name, native, packed, tools } in components {
            if let Some(tool) = tools.iter().find(|tool| names.contains(&tool.name.as_str())) {
                return Err(format!("two built-ins have a tool `{}`, one is `{name}`", tool.name));
            }
            names.extend(tools.iter().map(|tool| tool.name.as_str()));
            let tools: Vec<_> = tools.iter().map(ToString::to_string).collect();
            let tools = tools.join(", ");
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

fn tools(described: Described) -> Result<Vec<EmbeddedTool>, String> {
    let description = match described {
        Described::Description(description) => description,
        Described::Unusable(problem) => return Err(problem),
        Described::Nothing => return Err("it has no section `kitbag:describe`".into()),
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
        let requested = RequestedGrants::read(&tool.grants.clone().unwrap_or_default());
        let requested = requested.map_err(|error| error.to_string())?;
        let no_grants = Grants::default();
        let missing = requested.missing_required(&no_grants);
        let mut embedded = Self {
            name: tool.name.clone(),
            description: serde_json::to_string(tool).map_err(|error| error.to_string())?,
            workspace: None,
            keeps: false,
            given_by_call: Vec::new(),
            required: missing.map(|(_, missing)| missing.as_setting()).collect(),
            calls: false,
        };
        for request in requested.requests() {
            match request {
                Request::Path(request) if !request.is_workspace() => {
                    embedded.given_by_call.push(request.guest.to_string());
                }
                Request::Path(_) if embedded.workspace == Some(Access::ReadWrite) => {}
                Request::Path(request) => embedded.workspace = Some(request.access),
                Request::Tool(WantedTool::Caller) => embedded.calls = true,
                Request::Storage(StorageRequest(wanted)) if wanted == StorageGrant::default() => {
                    embedded.keeps = true;
                }
                Request::Storage(_) => return Err("it requests storage of another size".into()),
                // A grant with a name is not given to a built-in automatically.
                _ => {}
            }
        }
        Ok(embedded)
    }
}

/// An entry of the macro `builtins!`.
impl fmt::Display for EmbeddedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, workspace, keeps, given_by_call, required, calls } = self;
        let workspace = match workspace {
            None => "none",
            Some(Access::ReadOnly) => "ro",
            Some(Access::ReadWrite) => "rw",
        };
        write!(
            f,
            "{name}: {description:?}, {workspace}, {keeps}, {given_by_call:?}, {required:?}, {calls}"
        )
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
    fn requested_grants_become_entries_of_the_table() {
        let check = |grants: &str, expected: &str| {
            let section = format!(r#"{{"name":"a","grants":{grants}}}"#);
            let table = EmbeddedComponent::table(&[component("c", &section).unwrap()]).unwrap();
            let entry = table.lines().find(|line| line.starts_with("    c: ")).unwrap();
            let start = r#"    c: "n", "p", [a: "#;
            let (_, rest) = entry.strip_prefix(start).unwrap().rsplit_once("}\", ").unwrap();
            assert_eq!(rest, format!("{expected}];"), "{grants}");
        };
        check(r#"{"filesystem":[]}"#, "none, false, [], [], false");
        check(r#"{"filesystem":[{"guest":"/workspace","mode":"rw"}]}"#, "rw, false, [], [], false");
        check(
            r#"{"filesystem":[{"guest":"/subjects","mode":"ro"}],"tools":"caller"}"#,
            r#"none, false, ["/subjects"], [], true"#,
        );
        check(
            r#"{"storage":true,"required":["storage"]}"#,
            r#"none, true, [], ["storage = true"], false"#,
        );
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
        check(
            r#"{"name":"a","grants":{"storage":{"quota":"2MiB"}}}"#,
            "it requests storage of another size",
        );
        let bare = wat::parse_str("(component)").unwrap();
        let error = EmbeddedComponent::read("c", &bare, "n".into(), "p".into()).unwrap_err();
        assert!(error.ends_with("it has no section `kitbag:describe`"), "{error}");
    }
}
