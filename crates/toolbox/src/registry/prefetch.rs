//! Compiling and loading tools before their first call.

use kitbag_config::{ConfiguredTool, ToolSource};
use kitbag_contract::ToolName;
use kitbag_host::{Cancellation, ComponentSource, Metering, RunContext};

use crate::error::ToolboxError;
use crate::registry::Toolbox;
use crate::registry::resolve;

impl Toolbox {
    /// Returns true if the component of an enabled tool is a file or bytes.
    pub fn has_files(&self) -> bool {
        self.files().next().is_some()
    }

    /// Returns the enabled tools from files and bytes whose own descriptions are unknown. Nothing
    /// is compiled or run.
    pub fn undescribed(&self) -> Vec<ToolName> {
        let mut known = resolve::KnownDescriptions::default();
        let mut is_unknown = |source: ComponentSource, metering: Metering| {
            matches!(known.description(&self.0, source, metering), Ok(None))
        };
        self.files_where(&mut is_unknown)
    }

    /// Returns the enabled tools from files and bytes that a call would have to compile. Nothing is
    /// compiled or run.
    pub fn uncompiled(&self) -> Vec<ToolName> {
        self.files_where(&mut |source, metering| !self.0.host.is_compiled(&source, metering))
    }

    /// Returns the enabled built-in tools whose native code in the binary is not loaded yet.
    ///
    /// Omits tools whose code takes memory of its own, because it is compressed or has to be
    /// compiled.
    pub fn unloaded_builtins(&self) -> Vec<ToolName> {
        let is_unloaded = |tool: &ConfiguredTool| {
            let metering = Metering::of(&tool.limits.limits());
            match (&tool.source.value, self.0.component_source(&tool.source.value)) {
                (ToolSource::Builtin { .. }, Ok(ComponentSource::Embedded(artifact))) => {
                    artifact.native(metering).is_some_and(|native| native.memory() == 0)
                        && !self.0.host.is_loaded(&ComponentSource::Embedded(artifact), metering)
                }
                _ => false,
            }
        };
        let unloaded = self.enabled().filter(|(_, tool)| is_unloaded(tool));
        unloaded.map(|(name, _)| name.clone()).collect()
    }

    /// Compiles or loads a tool for later calls. Compilation has a low priority if it uses a separate
    /// process.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    pub fn compile_ahead(
        &self,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<(), ToolboxError> {
        let tool = self.0.find(name)?;
        let source = self.0.component_source(&tool.source.value)?;
        let cancellation = cancellation.clone();
        let context = RunContext { cancellation, is_background: true, ..RunContext::default() };
        self.0.host.component(&source, &tool.limits.limits(), &context)?;
        Ok(())
    }

    fn files(&self) -> impl Iterator<Item = (&ToolName, &ConfiguredTool)> {
        self.enabled().filter(|(_, tool)| tool.source.value.is_component())
    }

    /// Returns the tools from files and bytes that may be loaded and match `holds`.
    fn files_where(
        &self,
        holds: &mut dyn FnMut(ComponentSource, Metering) -> bool,
    ) -> Vec<ToolName> {
        let mut names = Vec::new();
        for (name, tool) in self.files() {
            // A tool that may not be loaded is reported when it is called.
            if let Ok(source) = self.0.component_source(&tool.source.value)
                && holds(source, Metering::of(&tool.limits.limits()))
            {
                names.push(name.clone());
            }
        }
        names
    }
}
