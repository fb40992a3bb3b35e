//! Modules for Butterfly Bot: JSON in and out, by `alloc` and a packed pointer and length.
//!
//! Such a module exports `memory`, `alloc(i32) -> i32`, `dealloc(i32, i32)` and one or more entries
//! `(i32, i32) -> i64`, usually `execute`, and imports nothing. The component has the module and a
//! small one that calls it: `alloc` makes the room for the input, and the result is passed to the
//! host by an import, so that nothing else is written to the module's memory.
//!
//! `dealloc` is never called: an instance ends with its call.

use wasmparser::{FuncType, ValType};

use super::module::ModuleType;
use crate::load_error::InvalidComponent;

/// The interface through which a translated module returns its result.
pub const CORE_OUTPUT: &str = "kitbag:lane/output";

/// Checks that a module has the functions of this interface.
///
/// # Errors
///
/// [`InvalidComponent::Translate`] if it has others.
pub(super) fn check(module: &ModuleType) -> Result<(), InvalidComponent> {
    let is = |name: &str, params: &[ValType], results: &[ValType]| {
        module.exported_function(name).is_some_and(|ty| has_type(ty, params, results))
    };
    let is_core = module.imports.is_empty()
        && module.exports_memory()
        && is("alloc", &[ValType::I32], &[ValType::I32])
        && is("dealloc", &[ValType::I32; 2], &[])
        && entries(module).next().is_some();
    match is_core {
        true => Ok(()),
        false => Err(InvalidComponent::Translate(
            "a module with `alloc` must also have `memory`, `dealloc(i32, i32)`, and an entry \
             `(i32, i32) -> i64`, and no imports"
                .to_owned(),
        )),
    }
}

/// Returns the functions that can be called.
pub(super) fn entries(module: &ModuleType) -> impl Iterator<Item = &str> {
    module.functions_of_type(|ty| has_type(ty, &[ValType::I32; 2], &[ValType::I64]))
}

fn has_type(ty: &FuncType, params: &[ValType], results: &[ValType]) -> bool {
    ty.params() == params && ty.results() == results
}

#[cfg(feature = "compiler")]
pub(super) use self::compiler::component;

#[cfg(feature = "compiler")]
mod compiler {
    use wasm_encoder::{
        Alias, CanonicalFunctionSection, CanonicalOption, CodeSection, Component,
        ComponentAliasSection, ComponentExportKind, ComponentExportSection, ComponentImportSection,
        ComponentInstanceSection, ComponentSectionId, ComponentTypeRef, ComponentTypeSection,
        ComponentValType, EntityType, ExportKind, ExportSection, Function, FunctionSection,
        ImportSection, InstanceSection, InstanceType, Module, ModuleArg, ModuleSection,
        PrimitiveValType, RawSection, TypeSection, ValType,
    };

    use super::{CORE_OUTPUT, check, entries};
    use crate::lane::CORE_INSTANCE;
    use crate::load_error::InvalidComponent;
    use crate::translate::module::{ModuleType, mangle};

    /// Returns the component of a module. It exports [`CORE_INSTANCE`], with a function for each
    /// entry: `func(input: list<u8>)`. It passes the result to [`CORE_OUTPUT`] before it returns.
    ///
    /// # Errors
    ///
    /// If the module has other functions.
    pub(in crate::translate) fn component(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
        let ty = ModuleType::read(module)
            .map_err(|error| InvalidComponent::Malformed(error.to_string()))?;
        check(&ty)?;
        let entries: Vec<_> = entries(&ty).collect();
        Ok(encode(module, &entries))
    }

    const LIST: u32 = 1;
    const ENTRY: u32 = 2;

    /// Index spaces are counted by hand: the component has a fixed shape.
    fn encode(module: &[u8], entries: &[&str]) -> Vec<u8> {
        let mut component = Component::new();
        let mut types = ComponentTypeSection::new();
        types.instance(&output());
        types.defined_type().list(PrimitiveValType::U8);
        types.function().params([("input", ComponentValType::Type(LIST))]).result(None);
        component.section(&types);
        let mut imports = ComponentImportSection::new();
        imports.import(CORE_OUTPUT, ComponentTypeRef::Instance(0));
        component.section(&imports);
        let mut aliases = ComponentAliasSection::new();
        let kind = ComponentExportKind::Func;
        aliases.alias(Alias::InstanceExport { instance: 0, kind, name: "set" });
        component.section(&aliases);

        // The module and its memory, which the host reads the result from.
        component.section(&RawSection { id: ComponentSectionId::CoreModule.into(), data: module });
        let mut instances = InstanceSection::new();
        instances.instantiate(0, [] as [(&str, ModuleArg); 0]);
        component.section(&instances);
        component.section(&core_aliases(0, ExportKind::Memory, ["memory".to_owned()]));
        let mut functions = CanonicalFunctionSection::new();
        functions.lower(0, [CanonicalOption::Memory(0)]);
        component.section(&functions);

        // The small module between it and the host.
        component.section(&ModuleSection(&caller(entries)));
        let mut instances = InstanceSection::new();
        instances.export_items([("set", ExportKind::Func, 0)]);
        instances
            .instantiate(1, [("module", ModuleArg::Instance(0)), ("host", ModuleArg::Instance(1))]);
        component.section(&instances);
        let names = (0..entries.len()).map(|index| index.to_string());
        let names = std::iter::once("realloc".to_owned()).chain(names);
        component.section(&core_aliases(2, ExportKind::Func, names));
        let mut functions = CanonicalFunctionSection::new();
        let realloc = 1;
        for index in indices(entries) {
            let options = [CanonicalOption::Memory(0), CanonicalOption::Realloc(realloc)];
            functions.lift(realloc + 1 + index, ENTRY, options);
        }
        component.section(&functions);

        let names: Vec<_> = entries.iter().map(|entry| mangle(entry)).collect();
        let items = names.iter().zip(indices(entries));
        let items: Vec<_> =
            items.map(|(name, index)| (&**name, ComponentExportKind::Func, 1 + index)).collect();
        let mut instances = ComponentInstanceSection::new();
        instances.export_items(items);
        component.section(&instances);
        let mut exports = ComponentExportSection::new();
        exports.export(CORE_INSTANCE, ComponentExportKind::Instance, 1, None);
        component.section(&exports);
        component.finish()
    }

    fn indices(entries: &[&str]) -> impl Iterator<Item = u32> {
        (0u32..).take(entries.len())
    }

    fn core_aliases(
        instance: u32,
        kind: ExportKind,
        names: impl IntoIterator<Item = String>,
    ) -> ComponentAliasSection {
        let mut aliases = ComponentAliasSection::new();
        for name in names {
            aliases.alias(Alias::CoreInstanceExport { instance, kind, name: &name });
        }
        aliases
    }

    /// The type of [`CORE_OUTPUT`].
    fn output() -> InstanceType {
        let mut ty = InstanceType::new();
        ty.ty().defined_type().list(PrimitiveValType::U8);
        ty.ty().function().params([("data", ComponentValType::Type(0))]).result(None);
        ty.export("set", ComponentTypeRef::Func(1));
        ty
    }

    /// The module that calls the tool's functions. Its exports have the numbers of the entries.
    fn caller(entries: &[&str]) -> Module {
        const ALLOC: u32 = 0;
        const SET: u32 = 1;
        let mut module = Module::new();
        let mut types = TypeSection::new();
        let (alloc, set, entry, realloc) = (0, 1, 2, 3);
        types.ty().function([ValType::I32], [ValType::I32]);
        types.ty().function([ValType::I32; 2], []);
        types.ty().function([ValType::I32; 2], [ValType::I64]);
        types.ty().function([ValType::I32; 4], [ValType::I32]);
        module.section(&types);
        let mut imports = ImportSection::new();
        imports.import("module", "alloc", EntityType::Function(alloc));
        imports.import("host", "set", EntityType::Function(set));
        for name in entries {
            imports.import("module", name, EntityType::Function(entry));
        }
        module.section(&imports);
        let mut functions = FunctionSection::new();
        functions.function(realloc);
        indices(entries).for_each(|_| {
            functions.function(set);
        });
        module.section(&functions);
        let first_entry = SET + 1;
        let defined = first_entry + indices(entries).map(|_| 1).sum::<u32>();
        let mut exports = ExportSection::new();
        exports.export("realloc", ExportKind::Func, defined);
        for index in indices(entries) {
            exports.export(&index.to_string(), ExportKind::Func, defined + 1 + index);
        }
        module.section(&exports);
        let mut code = CodeSection::new();
        // The host asks for the whole input at once, and never for less or more room later.
        let mut body = Function::new([]);
        body.instructions().local_get(3).call(ALLOC).end();
        code.function(&body);
        for index in indices(entries) {
            let (pointer, length, packed) = (0, 1, 2);
            let mut body = Function::new([(1, ValType::I64)]);
            body.instructions()
                .local_get(pointer)
                .local_get(length)
                .call(first_entry + index)
                .local_tee(packed)
                .i64_const(32)
                .i64_shr_u()
                .i32_wrap_i64()
                .local_get(packed)
                .i32_wrap_i64()
                .call(SET)
                .end();
            code.function(&body);
        }
        module.section(&code);
        module
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::{Validator, WasmFeatures};

    use super::*;
    use crate::lane::CORE_INSTANCE;

    const PARTS: &str = r#"
        (memory (export "memory") 1)
        (func (export "alloc") (param i32) (result i32) i32.const 8)
        (func (export "dealloc") (param i32 i32))"#;

    fn module(rest: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {rest})")).unwrap()
    }

    fn is(rest: &str) -> bool {
        check(&ModuleType::read(&module(rest)).unwrap()).is_ok()
    }

    #[test]
    fn modules_are_recognised_by_their_exports() {
        let entry = r#"(func (export "execute") (param i32 i32) (result i64) i64.const 0)"#;
        assert!(is(&format!("{PARTS}{entry}")));
        assert!(is(&format!("{PARTS}{}", entry.replace("execute", "other"))));
        assert!(!is(PARTS));
        assert!(!is(entry));
        assert!(!is(&format!("{PARTS}{}", entry.replace("i64", "i32"))));
        assert!(!is(&format!(r#"(import "env" "f" (func)) {PARTS}{entry}"#)));
    }

    #[test]
    fn each_entry_becomes_a_function() {
        let module = module(&format!(
            r#"{PARTS}
            (func (export "execute") (param i32 i32) (result i64) i64.const 0)
            (func (export "ä") (param i32 i32) (result i64) i64.const 0)"#,
        ));
        let component = component(&module).unwrap();
        let features = WasmFeatures::default();
        let types = Validator::new_with_features(features).validate_all(&component).unwrap();
        let types = types.as_ref();
        let exported = types.component_item_for_export(CORE_INSTANCE).unwrap();
        let instance = match exported.ty {
            wasmparser::component_types::ComponentEntityType::Instance(id) => &types[id],
            other => panic!("{other:?}"),
        };
        let names: Vec<_> = instance.exports.keys().map(String::as_str).collect();
        assert_eq!(names, ["x65786563757465", "xc3a4"]);
    }
}
