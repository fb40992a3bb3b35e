//! The tools of the embedding program: its own code, and components as bytes.

use std::sync::Arc;

use kitbag_config::{
    Config, ConfiguredTool, DiagnosticKind, Origin, Person, PersonName, Sourced, ToolSource,
};
use kitbag_contract::ToolName;
use kitbag_host::ComponentBytes;

use crate::error::ToolboxError;
use crate::registry::{ProgramTools, ReloadState, Toolbox};
use crate::remote::RemoteRunner;
use crate::sources::native::{Native, NativeTool};
use crate::sources::server::ServerPool;

impl Toolbox {
    /// Adds a tool that is code of the embedding program, and returns the new toolbox. Running
    /// calls keep the toolbox that they started with.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] for an invalid name, for the name of an existing tool, and for a
    /// name for which the user config has rules; [`ToolboxError::Schema`] for a schema that no call
    /// can be checked against.
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

    /// Adds a tool whose component the embedding program has as bytes, and returns the new toolbox.
    /// The component is compiled at its first use, and has the grants and limits that the
    /// configuration gives a tool of that name, or the defaults of a local tool.
    ///
    /// A component with several tools is added once for each, by the tool's own name.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] for an invalid name, for the name of an existing tool, and for a
    /// name for which the user config has rules and that was unknown when the user config was read.
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
            // The tool was configured before the program added it.
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

    /// Removes a tool that [`with_tool`](Self::with_tool) or
    /// [`with_component`](Self::with_component) added, and returns the new toolbox.
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

    /// Returns this toolbox with the program tools of another toolbox instead of its own, and with
    /// the calls that the other toolbox counted in memory. Use this after loading a toolbox again.
    ///
    /// # Errors
    ///
    /// [`ToolboxError::Register`] if a tool of this toolbox already has the name.
    pub fn with_program_tools_of(&self, other: &Self) -> Result<Self, ToolboxError> {
        let mut config = self.0.config.clone();
        let program = &other.0.program;
        config.tools.retain(|name, tool| match tool.source.value {
            ToolSource::Builtin { .. }
            | ToolSource::Local(_)
            | ToolSource::Script(_)
            | ToolSource::Server(_) => true,
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
        let (mut config, program) = toolbox.parts();
        let is_server = |tool: &ConfiguredTool| matches!(tool.source.value, ToolSource::Server(_));
        for tool in other.0.config.tools.values() {
            if is_server(tool) && tool.source.origin == Origin::Caller {
                config.tools.entry(tool.name.clone()).or_insert_with(|| tool.clone());
            }
        }
        toolbox = toolbox.with_parts(config, program);
        Ok(toolbox)
    }

    /// Returns this toolbox with only the tools that a person may use, however they are reached.
    /// `None` as the person leaves no tool. Counts and approvals are shared.
    #[must_use]
    pub fn for_person(&self, person: Option<(&PersonName, &Person)>) -> Self {
        let (_, program) = self.parts();
        self.with_parts(self.0.config.for_person(person), program)
    }

    pub(crate) fn parts(&self) -> (Config, ProgramTools) {
        (self.0.config.clone(), self.0.program.clone())
    }

    pub(crate) fn with_parts(&self, config: Config, program: ProgramTools) -> Self {
        self.with_parts_and(config, program, self.0.servers.clone(), self.0.remote.clone())
    }

    pub(crate) fn with_parts_and(
        &self,
        config: Config,
        program: ProgramTools,
        servers: ServerPool,
        remote: Option<Arc<dyn RemoteRunner>>,
    ) -> Self {
        let (host, builtins) = (self.0.host.clone(), self.0.builtins);
        let kept = ReloadState {
            counts: Arc::clone(&self.0.counts),
            auditor: self.0.auditor.clone(),
            approvals: Arc::clone(&self.0.approvals),
            servers,
            remote,
        };
        let secrets = Arc::clone(&self.0.secrets);
        Self::from_parts(host, config, builtins, program, kept, secrets, self.1.clone())
    }

    /// Continues from another toolbox, with the approvals of this process and, if calls are counted
    /// in memory, with the counts of calls of tools that have a rate.
    fn with_kept_of(&self, other: &Self) -> Self {
        let (config, program) = self.parts();
        let (host, builtins) = (self.0.host.clone(), self.0.builtins);
        let in_memory = self.0.counts.are_in_memory() && other.0.counts.are_in_memory();
        let kept = ReloadState {
            counts: Arc::clone(if in_memory { &other.0.counts } else { &self.0.counts }),
            auditor: self.0.auditor.clone(),
            approvals: Arc::clone(&other.0.approvals),
            servers: other.0.servers.clone(),
            remote: self.0.remote.clone().or_else(|| other.0.remote.clone()),
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
    let reason = "a tool with this name exists; remove it first".to_owned();
    ToolboxError::Register { tool: name.to_string(), reason }
}

/// Refuses a name for which the user config has rules. The rules apply only to tools that exist
/// when the configuration is read.
fn ruled_before(config: &Config, name: &ToolName) -> Result<(), ToolboxError> {
    let kind = DiagnosticKind::AbsentTool(name.to_string());
    match config.absent.iter().find(|absent| absent.kind == kind) {
        Some(absent) => Err(ToolboxError::Register {
            tool: name.to_string(),
            reason: format!(
                "{} has rules for a tool with this name, which do not apply to a tool that is \
                 added later; remove them, or use another name",
                absent.place
            ),
        }),
        None => Ok(()),
    }
}
