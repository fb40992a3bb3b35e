//! The tools that the embedding program brings: its own code, and components as bytes.

use std::sync::Arc;

use kitbag_config::{Config, ConfiguredTool, DiagnosticKind, Origin, Sourced, ToolSource};
use kitbag_contract::ToolName;
use kitbag_host::ComponentBytes;

use crate::error::ToolboxError;
use crate::registry::{ProgramTools, ReloadState, Toolbox};
use crate::sources::native::{Native, NativeTool};

impl Toolbox {
    /// The same toolbox with one more tool, which is code of the embedding program. Calls
    /// that run keep the toolbox that they began with.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] for an invalid name, for one that a tool has already, and for
    /// one for which the user's own file has rules, and [`ToolboxError::Schema`] for a schema that no call can be checked against.
    pub fn with_tool(&self, tool: Arc<dyn NativeTool>) -> Result<Self, ToolboxError> {
        let native = Native::new(tool);
        let own_name = native.description().name;
        let name = valid(&own_name)?;
        let (mut config, mut program) = self.parts();
        if config.tools.contains_key(&name) {
            return Err(taken(&name));
        }
        ruled_before(&config, &name)?;
        let source = Sourced { value: ToolSource::Native, origin: Origin::Caller };
        let mut tool = ConfiguredTool::of_caller(name.clone(), source, config.limits.clone());
        tool.approve = config.default_approval();
        config.tools.insert(name.clone(), tool);
        program.natives.insert(name, native);
        let toolbox = self.with_parts(config, program);
        toolbox.tool(&own_name)?.check_schemas()?;
        Ok(toolbox)
    }

    /// The same toolbox with one more tool, whose component the embedding program has as
    /// bytes. It is compiled at its first use, and has the grants and limits that
    /// configuration gives a tool of that name, or the defaults of a local tool.
    ///
    /// A component that has several tools is added once for each, by the tool's own name.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] for an invalid name, for one that a tool has already, and for
    /// one for which the user's own file has rules and that was unknown when it was read.
    pub fn with_component(
        &self,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Self, ToolboxError> {
        let name = valid(name)?;
        let bytes = ComponentBytes::new(name.as_str(), bytes);
        self.with_bytes(name, bytes)
    }

    fn with_bytes(&self, name: ToolName, bytes: ComponentBytes) -> Result<Self, ToolboxError> {
        let (mut config, mut program) = self.parts();
        let is_taken = match config.tools.get(&name) {
            // Configured before the program brought it.
            Some(tool) if matches!(tool.source.value, ToolSource::Bytes(_)) => {
                program.components.contains_key(&name)
            }
            Some(_) => true,
            None => false,
        };
        if is_taken || self.0.builtin(name.as_str()).is_ok() {
            return Err(taken(&name));
        }
        if !config.tools.contains_key(&name) {
            ruled_before(&config, &name)?;
            config.tools.insert(name.clone(), config.bytes_tool(&name));
        }
        program.components.insert(name, bytes);
        Ok(self.with_parts(config, program))
    }

    /// The same toolbox without a tool that [`with_tool`](Self::with_tool) or
    /// [`with_component`](Self::with_component) added.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::UnknownTool`] for any other name.
    pub fn without_tool(&self, name: &str) -> Result<Self, ToolboxError> {
        let (mut config, mut program) = self.parts();
        let names = || program.natives.keys().chain(program.components.keys());
        let found = names().find(|known| known.as_str() == name).cloned();
        let unknown = || ToolboxError::unknown_tool(name, names().map(ToolName::as_str));
        let name = found.ok_or_else(unknown)?;
        config.tools.remove(&name);
        program.remove(&name);
        Ok(self.with_parts(config, program))
    }

    /// The same toolbox with the tools that the embedding program brought to another one,
    /// instead of its own, and with the calls that it has counted in memory: for a toolbox
    /// that was loaded anew.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] for a name that a tool of this one has.
    pub fn with_program_tools_of(&self, other: &Self) -> Result<Self, ToolboxError> {
        let mut config = self.0.config.clone();
        let program = &other.0.program;
        config.tools.retain(|name, tool| match tool.source.value {
            ToolSource::Builtin { .. } | ToolSource::Local(_) | ToolSource::Script(_) => true,
            ToolSource::Bytes(_) => program.components.contains_key(name),
            ToolSource::Native => false,
        });
        let mut toolbox = self.with_parts(config, ProgramTools::default()).with_kept_of(other);
        for native in program.natives.values() {
            toolbox = toolbox.with_tool(native.tool())?;
        }
        for (name, bytes) in &program.components {
            toolbox = toolbox.with_bytes(name.clone(), bytes.clone())?;
        }
        Ok(toolbox)
    }

    pub(crate) fn parts(&self) -> (Config, ProgramTools) {
        (self.0.config.clone(), self.0.program.clone())
    }

    pub(crate) fn with_parts(&self, config: Config, program: ProgramTools) -> Self {
        let (host, builtins) = (self.0.host.clone(), self.0.builtins);
        let kept = ReloadState {
            counts: Arc::clone(&self.0.counts),
            auditor: self.0.auditor.clone(),
            approvals: Arc::clone(&self.0.approvals),
        };
        let secrets = Arc::clone(&self.0.secrets);
        Self::from_parts(host, config, builtins, program, kept, secrets, self.1.clone())
    }

    /// Goes on where another toolbox stopped: with what was approved in this process, and with
    /// counting the calls of tools that have a rate, where that is done in memory.
    fn with_kept_of(&self, other: &Self) -> Self {
        let (config, program) = self.parts();
        let (host, builtins) = (self.0.host.clone(), self.0.builtins);
        let in_memory = self.0.counts.are_in_memory() && other.0.counts.are_in_memory();
        let kept = ReloadState {
            counts: Arc::clone(if in_memory { &other.0.counts } else { &self.0.counts }),
            auditor: self.0.auditor.clone(),
            approvals: Arc::clone(&other.0.approvals),
        };
        let secrets = Arc::clone(&self.0.secrets);
        Self::from_parts(host, config, builtins, program, kept, secrets, self.1.clone())
    }
}

fn valid(name: &str) -> Result<ToolName, ToolboxError> {
    let refused = |reason| ToolboxError::Register { tool: name.to_owned(), reason };
    ToolName::new(name).map_err(|error| refused(error.to_string()))
}

fn taken(name: &ToolName) -> ToolboxError {
    let reason = "there is a tool of that name; remove it first".to_owned();
    ToolboxError::Register { tool: name.to_string(), reason }
}

/// Refuses a name for which the user's own file has rules: they count for tools that are there
/// when the configuration is read.
fn ruled_before(config: &Config, name: &ToolName) -> Result<(), ToolboxError> {
    let kind = DiagnosticKind::AbsentTool(name.to_string());
    match config.absent.iter().find(|absent| absent.kind == kind) {
        Some(absent) => Err(ToolboxError::Register {
            tool: name.to_string(),
            reason: format!(
                "{} has rules for a tool of that name, which do not count for one that is added \
                 later; take them out, or give it another name",
                absent.place
            ),
        }),
        None => Ok(()),
    }
}
