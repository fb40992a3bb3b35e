//! Translates core modules to components, so that one engine, one cache and one linker run
//! everything.
//!
//! The compiler calls it, so that hostile modules are translated in the process that compiles them.
//! Components are returned unchanged.

#[cfg(feature = "compiler")]
mod command;
mod core;
mod module;
mod plugin;
mod skill;

#[cfg(feature = "compiler")]
use std::borrow::Cow;

#[cfg(feature = "compiler")]
use wasm_encoder::{Module, RawSection};
use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

pub use self::core::CORE_OUTPUT;
use self::module::ModuleType;
pub use self::module::demangle;
pub use self::plugin::{PLUGIN_KERNEL, PLUGIN_USER};
pub use self::skill::SKILL_HOST;
use crate::lane::Lane;
use crate::load_error::InvalidComponent;

/// The imports and exports of a core module.
#[derive(Debug, Default)]
pub(crate) struct ModuleItems<'a> {
    /// The imports: module, name and type.
    pub(crate) imports: Vec<(&'a str, &'a str, TypeRef)>,
    /// The exports: name and kind.
    pub(crate) exports: Vec<(&'a str, ExternalKind)>,
}

/// Returns the component to compile for a component or a core module.
///
/// # Errors
///
/// [`InvalidComponent`] for a module that is malformed, or not made for a known host.
#[cfg(feature = "compiler")]
pub(crate) fn translate(bytes: &[u8]) -> Result<Cow<'_, [u8]>, InvalidComponent> {
    if !Parser::is_core_wasm(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let items = ModuleItems::read(bytes).map_err(malformed)?;
    let module = without_custom_sections(bytes).map_err(malformed)?;
    let component = match items.lane() {
        Some(Lane::Command) => command::component(&module)?,
        Some(Lane::Core) => core::component(&module)?,
        Some(Lane::Plugin) => plugin::component(&module)?,
        Some(Lane::Skill) => skill::component(&module)?,
        Some(Lane::Run | Lane::Functions | Lane::Agent | Lane::Act) | None => {
            return Err(InvalidComponent::Module { items: items.names() });
        }
    };
    Ok(Cow::Owned(component))
}

/// Checks the types of a module's imports and exports, which its lane does not show.
///
/// # Errors
///
/// [`InvalidComponent`] if the module cannot be called.
pub(crate) fn check(module: &[u8], lane: Lane) -> Result<(), InvalidComponent> {
    let ty = || ModuleType::read(module).map_err(malformed);
    match lane {
        Lane::Core => core::check(&ty()?),
        Lane::Plugin => plugin::check(&ty()?),
        Lane::Skill => skill::check(&ty()?),
        Lane::Run | Lane::Functions | Lane::Command | Lane::Agent | Lane::Act => Ok(()),
    }
}

impl<'a> ModuleItems<'a> {
    /// Reads the imports and exports of a module.
    pub(crate) fn read(bytes: &'a [u8]) -> wasmparser::Result<Self> {
        let mut items = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        items.imports.push((import.module, import.name, import.ty));
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        items.exports.push((export.name, export.kind));
                    }
                }
                _ => {}
            }
        }
        Ok(items)
    }

    /// Recognises the lane of the module.
    pub(crate) fn lane(&self) -> Option<Lane> {
        let functions = self.exports.iter().filter(|(_, kind)| *kind == ExternalKind::Func);
        let has_memory = self.exports.contains(&("memory", ExternalKind::Memory));
        let imports = self.imports.iter().map(|(module, ..)| *module);
        Lane::of_module(imports, functions.map(|(name, _)| *name), has_memory)
    }

    /// Returns the names of the modules of the imports and of the exports, for messages.
    #[cfg(feature = "compiler")]
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let imports = self.imports.iter().map(|(module, ..)| *module);
        for name in imports.chain(self.exports.iter().map(|(name, _)| *name)) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// Returns a module without its custom sections: some of them would instruct the encoder.
#[cfg(feature = "compiler")]
fn without_custom_sections(bytes: &[u8]) -> wasmparser::Result<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        if let Some((id, range)) = payload.as_section()
            && !matches!(payload, Payload::CustomSection(_))
        {
            module.section(&RawSection { id, data: &bytes[range] });
        }
    }
    Ok(module.finish())
}

fn malformed(error: wasmparser::BinaryReaderError) -> InvalidComponent {
    InvalidComponent::Malformed(error.to_string())
}
