//! The tools in the binary, and the host's part of some of them.

pub(crate) mod adapter;
pub(crate) mod component_skills;
mod eject;
pub(crate) mod knowledge;
mod knowledge_block;
pub(crate) mod learn;
pub(crate) mod python;
pub(crate) mod skills;
pub(crate) mod time;

pub use eject::Ejected;

use kitbag_config::{BuiltinTool, PYTHON};
use kitbag_contract::WORKSPACE_GUEST_PATH;
use kitbag_host::EmbeddedArtifact;
use kitbag_policy::tools::RequestedTools;
use kitbag_policy::{Access, Grants, RequestedGrants};

use crate::error::ToolboxError;
use crate::registry::ToolboxState;

/// A tool that is part of the binary.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// The part of the tool's declaration that configuration needs.
    pub declaration: BuiltinTool<'static>,
    /// The tool's component, which may also contain other tools.
    pub artifact: EmbeddedArtifact,
    /// The tool's own description, as the JSON of [`kitbag_contract::ToolDescription`].
    pub description: &'static str,
}

impl Builtin {
    /// Creates a tool of a component. `toolset` is the name of the component. `grants` is the
    /// requested grants of the description, as JSON.
    ///
    /// Built-ins live as long as the process, so the strings that are created here are never freed.
    ///
    /// # Panics
    ///
    /// Panics if `grants` cannot be read.
    pub fn new(
        name: &'static str,
        toolset: &'static str,
        artifact: EmbeddedArtifact,
        description: &'static str,
        grants: &str,
    ) -> Self {
        let requested: RequestedGrants =
            serde_json::from_str(grants).expect("a built-in requests grants in the form of kitbag");
        let nothing = Grants::default();
        let required = requested.missing_required(&nothing);
        let required: Vec<_> = required.map(|(_, it)| (it.key, &*it.as_setting().leak())).collect();
        let (workspace, given_by_call): (Vec<_>, Vec<_>) =
            requested.directories.into_iter().partition(|it| it.guest == WORKSPACE_GUEST_PATH);
        let given_by_call: Vec<&str> =
            given_by_call.into_iter().map(|it| &*it.guest.leak()).collect();
        let is_writable = workspace.iter().any(|it| it.mode == Access::ReadWrite);
        let access = if is_writable { Access::ReadWrite } else { Access::ReadOnly };
        let declaration = BuiltinTool {
            name,
            toolset,
            workspace: (!workspace.is_empty()).then_some(access),
            keeps: requested.storage.is_some(),
            given_by_call: given_by_call.leak(),
            required: required.leak(),
            // A built-in does not receive tools with a name automatically.
            calls: matches!(requested.tools, Some(RequestedTools::Caller(_))),
        };
        Self { declaration, artifact, description }
    }
}

impl ToolboxState {
    pub(crate) fn builtin(&self, name: &str) -> Result<&'static Builtin, ToolboxError> {
        self.builtins.iter().find(|builtin| builtin.declaration.name == name).ok_or_else(|| {
            ToolboxError::unknown_tool(name, self.builtins.iter().map(|b| b.declaration.name))
        })
    }

    pub(crate) fn interpreter(&self) -> Result<&'static Builtin, ToolboxError> {
        self.builtin(PYTHON)
    }

    pub(crate) fn shares_component(&self, name: &str) -> bool {
        let own = self.builtins.iter().find(|builtin| builtin.declaration.name == name);
        own.is_some_and(|own| {
            let same = |other: &&Builtin| other.artifact == own.artifact;
            self.builtins.iter().filter(same).count() > 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(grants: &str, expected: BuiltinTool<'static>) {
        let artifact = EmbeddedArtifact::uncompiled("c", &[]);
        let builtin = Builtin::new("a", "c", artifact, "{}", grants);
        let expected = BuiltinTool { name: "a", toolset: "c", ..expected };
        assert_eq!(builtin.declaration, expected, "{grants}");
    }

    #[test]
    fn requested_grants_become_the_declaration() {
        let none = BuiltinTool::default;
        check(r#"{"filesystem":[]}"#, none());
        check(
            r#"{"filesystem":[{"guest":"/workspace","mode":"rw"}]}"#,
            BuiltinTool { workspace: Some(Access::ReadWrite), ..none() },
        );
        check(
            r#"{"filesystem":[{"guest":"/subjects","mode":"ro"}],"tools":"caller"}"#,
            BuiltinTool { given_by_call: &["/subjects"], calls: true, ..none() },
        );
        check(
            r#"{"storage":true,"required":["storage"]}"#,
            BuiltinTool { keeps: true, required: &[("storage", "storage = true")], ..none() },
        );
        check(
            r#"{"http":["https://docs.rs/**"],"required":["http"]}"#,
            BuiltinTool { required: &[("http", "http = [\"https://docs.rs/**\"]")], ..none() },
        );
    }
}
