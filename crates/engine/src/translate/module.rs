//! The imports and exports of a core module.

use wasmparser::{ExternalKind, FuncType, Parser, Payload, TypeRef};

#[cfg(feature = "compiler")]
use crate::load_error::InvalidComponent;

/// The interface of a core module, which shows the host that it was made for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleType {
    /// The imports, in the order of the module.
    pub(crate) imports: Vec<ModuleImport>,
    /// The exports, in the order of the module.
    pub(crate) exports: Vec<ModuleExport>,
}

/// An import of a core module.
#[derive(Clone, Debug)]
pub(crate) struct ModuleImport {
    /// The module that defines the item, such as `wasi_snapshot_preview1`.
    pub(crate) module: String,
    /// The name of the item.
    pub(crate) name: String,
    /// The type of the item.
    pub(crate) ty: ItemType,
}

/// An export of a core module.
#[derive(Clone, Debug)]
pub(crate) struct ModuleExport {
    /// The name of the item.
    pub(crate) name: String,
    /// The type of the item.
    pub(crate) ty: ItemType,
}

/// The type of an import or export.
#[derive(Clone, Debug)]
pub(crate) enum ItemType {
    /// A function.
    Function(FuncType),
    /// A memory.
    Memory,
    /// A table, a global or a tag.
    Other,
}

impl ItemType {
    /// Returns the type of a function.
    pub(crate) fn function(&self) -> Option<&FuncType> {
        match self {
            Self::Function(ty) => Some(ty),
            Self::Memory | Self::Other => None,
        }
    }
}

impl ModuleType {
    /// Reads the interface of a core module. The type of an item with an invalid type index is
    /// [`ItemType::Other`]; the validator refuses such a module.
    ///
    /// # Errors
    ///
    /// If the module is malformed.
    pub(crate) fn read(module: &[u8]) -> Result<Self, wasmparser::BinaryReaderError> {
        let (mut types, mut functions) = (Vec::new(), Vec::new());
        let mut this = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::TypeSection(section) => {
                    for ty in section.into_iter_err_on_gc_types() {
                        types.push(ty?);
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        let ty = match import.ty {
                            TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                                functions.push(index);
                                function(&types, index)
                            }
                            TypeRef::Memory(_) => ItemType::Memory,
                            TypeRef::Table(_) | TypeRef::Global(_) | TypeRef::Tag(_) => {
                                ItemType::Other
                            }
                        };
                        let (module, name) = (import.module.to_owned(), import.name.to_owned());
                        this.imports.push(ModuleImport { module, name, ty });
                    }
                }
                Payload::FunctionSection(section) => {
                    for index in section {
                        functions.push(index?);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        let ty = match export.kind {
                            ExternalKind::Func | ExternalKind::FuncExact => {
                                match functions.get(export.index as usize) {
                                    Some(&index) => function(&types, index),
                                    None => ItemType::Other,
                                }
                            }
                            ExternalKind::Memory => ItemType::Memory,
                            ExternalKind::Table | ExternalKind::Global | ExternalKind::Tag => {
                                ItemType::Other
                            }
                        };
                        this.exports.push(ModuleExport { name: export.name.to_owned(), ty });
                    }
                }
                _ => {}
            }
        }
        Ok(this)
    }

    /// Returns the type of an exported function.
    pub(crate) fn exported_function(&self, name: &str) -> Option<&FuncType> {
        self.exports.iter().find(|export| export.name == name)?.ty.function()
    }

    /// Returns the names of the exported functions with these parameters and results.
    pub(crate) fn functions_of_type<'a>(
        &'a self,
        is_type: impl Fn(&FuncType) -> bool + 'a,
    ) -> impl Iterator<Item = &'a str> {
        let exports = self.exports.iter();
        exports
            .filter(move |export| export.ty.function().is_some_and(&is_type))
            .map(|export| &*export.name)
    }

    /// Returns true if the module exports its memory.
    pub(crate) fn exports_memory(&self) -> bool {
        self.exports
            .iter()
            .any(|export| export.name == "memory" && matches!(export.ty, ItemType::Memory))
    }
}

fn function(types: &[FuncType], index: u32) -> ItemType {
    types.get(index as usize).cloned().map_or(ItemType::Other, ItemType::Function)
}

/// Returns a module with other names of its imports and exports. `import` returns the module and
/// the name of an import, and `export` the name of an export, or `None` to remove it.
#[cfg(feature = "compiler")]
pub(crate) fn renamed(
    bytes: &[u8],
    import: impl Fn(&wasmparser::Import<'_>) -> (String, String),
    export: impl Fn(&wasmparser::Export<'_>) -> Option<String>,
) -> Result<Vec<u8>, InvalidComponent> {
    use wasm_encoder::{EntityType, ExportKind, ExportSection, ImportSection, Module, RawSection};

    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.map_err(malformed)?;
        match &payload {
            Payload::ImportSection(section) => {
                let mut imports = ImportSection::new();
                for item in section.clone().into_imports() {
                    let item = item.map_err(malformed)?;
                    let ty = EntityType::try_from(item.ty).map_err(malformed)?;
                    let (from, name) = import(&item);
                    imports.import(&from, &name, ty);
                }
                module.section(&imports);
            }
            Payload::ExportSection(section) => {
                let mut exports = ExportSection::new();
                for item in section.clone() {
                    let item = item.map_err(malformed)?;
                    if let Some(name) = export(&item) {
                        let kind = ExportKind::from(item.kind);
                        exports.export(&name, kind, item.index);
                    }
                }
                module.section(&exports);
            }
            payload => {
                if let Some((id, range)) = payload.as_section() {
                    module.section(&RawSection { id, data: &bytes[range] });
                }
            }
        }
    }
    Ok(module.finish())
}

#[cfg(feature = "compiler")]
fn malformed(error: impl ToString) -> InvalidComponent {
    InvalidComponent::Malformed(error.to_string())
}

/// Returns the name of a component's function for the function of a module, whose name can be any
/// text: `x` and the text in hexadecimal.
#[cfg(feature = "compiler")]
pub(crate) fn mangle(name: &str) -> String {
    use std::fmt::Write;

    name.bytes().fold(String::from("x"), |mut mangled, byte| {
        let _ = write!(mangled, "{byte:02x}");
        mangled
    })
}

/// Returns the name of a module's function from the name of the component's function.
pub fn demangle(name: &str) -> Option<String> {
    let digits = name.strip_prefix('x')?.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes = digits.chunks_exact(2).map(|pair| {
        let value = (digit(pair[0])? << 4) | digit(pair[1])?;
        u8::try_from(value).ok()
    });
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_mangling() {
        for name in ["execute", "", "ä b", "x", "a-b_c.d"] {
            assert_eq!(demangle(&mangle(name)), Some(name.to_owned()));
        }
        for name in ["", "execute", "x1", "xzz", "xff"] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn imports_shift_function_indices() {
        let module = wat::parse_str(
            r#"(module
                (import "a" "b" (func (param i64)))
                (import "a" "m" (memory 1))
                (func (export "f") (result i32) i32.const 1)
                (export "g" (func 0))
                (export "memory" (memory 0)))"#,
        );
        let ty = ModuleType::read(&module.unwrap()).unwrap();
        assert_eq!(ty.exported_function("f").unwrap().results().len(), 1);
        assert_eq!(ty.exported_function("g").unwrap().params().len(), 1);
        assert!(ty.exports_memory());
        assert!(matches!(ty.imports[1].ty, ItemType::Memory));
    }
}
