//! The table of built-in tools, which a build script writes and a library includes.

use std::fmt::{self, Write};
use std::path::PathBuf;

use kitbag_contract::{ToolDescription, WORKSPACE_GUEST_PATH};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::description::Described;
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

/// The grants that a built-in requests, as far as the table has an entry for them. `kitbag-policy`
/// reads all of them at run time; this crate does not depend on it.
#[derive(Deserialize)]
struct Requested {
    #[serde(default)]
    filesystem: Vec<Directory>,
    #[serde(default)]
    storage: Option<Value>,
    #[serde(default)]
    tools: Option<Value>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct Directory {
    guest: String,
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum Mode {
    #[default]
    #[serde(rename = "ro")]
    ReadOnly,
    #[serde(rename = "rw")]
    ReadWrite,
}

/// One tool of an embedded component.
#[derive(Debug)]
struct EmbeddedTool {
    name: String,
    /// As JSON.
    description: String,
    workspace: Option<Mode>,
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
        let tools = tools(section::described(component, &Support::ANY).unwrap_or_default())
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
        let grants = tool.grants.clone().unwrap_or_default();
        let requested = Requested::deserialize(&grants).map_err(|error| error.to_string())?;
        if requested.storage.as_ref().is_some_and(|storage| *storage != Value::Bool(true)) {
            return Err("it requests storage of another size".into());
        }
        let is_workspace = |directory: &&Directory| directory.guest == WORKSPACE_GUEST_PATH;
        let (workspace, given_by_call): (Vec<_>, Vec<_>) =
            requested.filesystem.iter().partition(is_workspace);
        let required = requested.required.iter().map(|kind| required(kind, &grants));
        Ok(Self {
            name: tool.name.clone(),
            description: serde_json::to_string(tool).map_err(|error| error.to_string())?,
            workspace: workspace.iter().map(|directory| directory.mode).max(),
            keeps: requested.storage.is_some(),
            given_by_call: given_by_call.iter().map(|it| it.guest.clone()).collect(),
            required: required.collect::<Result<_, _>>()?,
            // Tools with a name are not given to a built-in automatically.
            calls: requested.tools == Some(Value::String("caller".into())),
        })
    }
}

/// A required grant as a line of TOML.
fn required(kind: &str, grants: &Map<String, Value>) -> Result<String, String> {
    match grants.get(kind) {
        Some(Value::Bool(true)) => Ok(format!("{kind} = true")),
        // JSON writes strings as TOML does.
        Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
            let values: Vec<_> = values.iter().map(ToString::to_string).collect();
            Ok(format!("{kind} = [{}]", values.join(", ")))
        }
        _ => Err(format!("it requires `{kind}`, which has no entry in the table of built-ins")),
    }
}

/// An entry of the macro `builtins!`.
impl fmt::Display for EmbeddedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, description, workspace, keeps, given_by_call, required, calls } = self;
        let workspace = match workspace {
            None => "none",
            Some(Mode::ReadOnly) => "ro",
            Some(Mode::ReadWrite) => "rw",
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
        check(
            r#"{"http":["https://docs.rs/**"],"required":["http"]}"#,
            r#"none, false, [], ["http = [\"https://docs.rs/**\"]"], false"#,
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
