//! What can be compiled before its first call.

use kitbag_config::ConfiguredTool;
use kitbag_contract::ToolName;
use kitbag_host::{Cancellation, ComponentSource, Metering, RunContext};

use crate::error::ToolboxError;
use crate::registry::Toolbox;
use crate::registry::resolve;

impl Toolbox {
    /// Whether the component of an enabled tool is a file, or bytes.
    pub fn has_files(&self) -> bool {
        self.files().next().is_some()
    }

    /// The enabled tools of files and bytes of which it is not known what they say of themselves.
    /// Nothing is compiled and nothing runs.
    pub fn undescribed(&self) -> Vec<ToolName> {
        let mut known = resolve::KnownDescriptions::default();
        let mut is_unknown = |source: ComponentSource, metering: Metering| {
            matches!(known.description(&self.0, source, metering), Ok(None))
        };
        self.files_where(&mut is_unknown)
    }

    /// The enabled tools of files and bytes that a call would have to compile. Nothing is compiled
    /// and nothing runs.
    pub fn uncompiled(&self) -> Vec<ToolName> {
        self.files_where(&mut |source, metering| !self.0.host.is_compiled(&source, metering))
    }

    /// Compiles a tool for later calls, with a low priority where that takes a process of
    /// its own.
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

    /// The tools of files and bytes that may be loaded, and of which this holds.
    fn files_where(
        &self,
        holds: &mut dyn FnMut(ComponentSource, Metering) -> bool,
    ) -> Vec<ToolName> {
        let mut names = Vec::new();
        for (name, tool) in self.files() {
            // What may not be loaded is reported where it is called.
            if let Ok(source) = self.0.component_source(&tool.source.value)
                && holds(source, Metering::of(&tool.limits.limits()))
            {
                names.push(name.clone());
            }
        }
        names
    }
}
