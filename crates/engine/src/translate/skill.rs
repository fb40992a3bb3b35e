//! Skills for Blufio: a function `run` without parameters, and host functions that are given pointers
//! into the memory of the module.
//!
//! The functions that read the memory become those of [`SKILL_HOST`], in which a pointer and a length
//! are a list. `get_input` and `get_env` write to the memory, at an address that the module chose.
//! A small module carries them out: it copies a buffer of the host, eight bytes at a time.

use wasmparser::{FuncType, ValType};

use super::module::{ModuleImport, ModuleType};
use crate::lane::{BLUFIO, PREVIEW_1};
use crate::load_error::InvalidComponent;

/// The interface of the host functions of a translated skill.
pub const SKILL_HOST: &str = "kitbag:lane/skill-host";

/// The entry of a skill.
const RUN: &str = "run";

/// The function that starts a module for preview 1.
const INITIALIZE: &str = "_initialize";

/// The host functions of Blufio, with the number of their parameters, and true for those that return
/// a number.
const FUNCTIONS: &[(&str, usize, bool)] = &[
    ("log", 3, false),
    ("get_input_len", 0, true),
    (GET_INPUT, 1, false),
    ("set_output", 2, false),
    ("http_request", 5, true),
    ("read_file", 4, true),
    ("write_file", 4, true),
    (GET_ENV, 4, true),
];

/// The functions that write to the memory of the module.
const GET_INPUT: &str = "get_input";
const GET_ENV: &str = "get_env";

/// Checks that a skill has the functions of this interface, and imports only those that this kitbag
/// provides.
///
/// # Errors
///
/// [`InvalidComponent`] names the imports.
pub(super) fn check(module: &ModuleType) -> Result<(), InvalidComponent> {
    let missing = module.imports.iter().filter(|import| !is_provided(import));
    let imports: Vec<_> =
        missing.map(|import| format!("{}::{}", import.module, import.name)).collect();
    if !imports.is_empty() {
        return Err(InvalidComponent::Imports { imports });
    }
    let run = module.exported_function(RUN);
    match run.is_some_and(|ty| ty.params().is_empty() && ty.results().is_empty()) {
        true if module.exports_memory() => Ok(()),
        _ => Err(InvalidComponent::Translate(
            "a skill must export `memory` and a function `run` without parameters and results"
                .to_owned(),
        )),
    }
}

/// The adapter refuses functions that WASI does not have.
fn is_provided(import: &ModuleImport) -> bool {
    let has_type = |ty: &FuncType| {
        let are_numbers = |types: &[ValType]| types.iter().all(|ty| *ty == ValType::I32);
        FUNCTIONS.iter().any(|(name, params, has_result)| {
            *name == import.name
                && (ty.params().len(), ty.results().len()) == (*params, usize::from(*has_result))
                && are_numbers(ty.params())
                && are_numbers(ty.results())
        })
    };
    match &*import.module {
        BLUFIO => import.ty.function().is_some_and(has_type),
        module => module == PREVIEW_1 && import.ty.function().is_some(),
    }
}

#[cfg(feature = "compiler")]
pub(super) use self::compiler::component;

#[cfg(feature = "compiler")]
mod compiler {
    use wasi_preview1_component_adapter_provider::{
        WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
    };
    use wasm_encoder::{
        BlockType, CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection,
        ImportSection, MemArg, MemoryType, Module, TypeSection, ValType,
    };
    use wasmparser::{Export, ExternalKind, Import};
    use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
    use wit_parser::Resolve;

    use super::{GET_ENV, GET_INPUT, INITIALIZE, RUN, SKILL_HOST, check};
    use crate::lane::{BLUFIO, PREVIEW_1, SKILL_INSTANCE};
    use crate::load_error::InvalidComponent;
    use crate::translate::module::{ModuleType, renamed};

    /// The world of a skill. Its core types are those of Blufio's functions. The parameters that
    /// Blufio ignores are numbers, so that any value is valid.
    const WIT: &str = "
package kitbag:lane;

interface skill-host {
    log: func(level: s32, message: list<u8>);
    get-input-len: func() -> s32;
    set-output: func(data: list<u8>);
    http-request: func(url: list<u8>, method: s32, body: s32, body-length: s32) -> s32;
    read-file: func(path: list<u8>, buffer: s32, buffer-length: s32) -> s32;
    write-file: func(path: list<u8>, data: list<u8>) -> s32;

    /// Fills the buffer, and returns its length. `-1`: the variable does not exist.
    open-input: func() -> s32;
    open-variable: func(name: list<u8>) -> s32;
    /// Returns eight bytes of the buffer, with zeros after its end.
    load: func(offset: s32) -> s64;
}

interface skill {
    run: func();
}

world skill-module {
    import skill-host;
    export skill;
}

world skill-memory {
    import skill-host;
}
";

    /// Returns the component of a skill. It exports [`SKILL_INSTANCE`].
    ///
    /// # Errors
    ///
    /// If it imports functions that this kitbag does not provide.
    pub(in crate::translate) fn component(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
        let ty = ModuleType::read(module)
            .map_err(|error| InvalidComponent::Malformed(error.to_string()))?;
        check(&ty)?;
        let mut module = with_names(module)?;
        let uses_wasi = ty.imports.iter().any(|import| import.module == PREVIEW_1);
        let writes = ty.imports.iter().any(|import| is_writing(&import.module, &import.name));
        let mut encode = || {
            let mut resolve = Resolve::default();
            let package = resolve.push_str("skill.wit", WIT)?;
            let world = resolve.select_world(&[package], Some("skill-module"))?;
            embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
            let mut encoder = ComponentEncoder::default().module(&module)?;
            if writes {
                let mut memory = memory_module();
                let world = resolve.select_world(&[package], Some("skill-memory"))?;
                embed_component_metadata(&mut memory, &resolve, world, StringEncoding::UTF8)?;
                encoder = encoder.adapter(BLUFIO, &memory)?;
            }
            if uses_wasi {
                let name = WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
                encoder = encoder.adapter(name, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
            }
            encoder.encode()
        };
        encode().map_err(|error| InvalidComponent::Translate(format!("{error:#}")))
    }

    /// Returns true for a function that writes to the memory of the module.
    fn is_writing(module: &str, name: &str) -> bool {
        module == BLUFIO && matches!(name, GET_INPUT | GET_ENV)
    }

    /// Renames imports and exports for wit-component. All other exports are removed.
    fn with_names(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
        let import = |import: &Import<'_>| match import.module {
            BLUFIO if !is_writing(import.module, import.name) => {
                (SKILL_HOST.to_owned(), import.name.replace('_', "-"))
            }
            module => (module.to_owned(), import.name.to_owned()),
        };
        let export = |export: &Export<'_>| match (export.kind, export.name) {
            (ExternalKind::Memory, "memory") => Some("memory".to_owned()),
            (ExternalKind::Func, RUN) => Some(format!("{SKILL_INSTANCE}#{RUN}")),
            (ExternalKind::Func, INITIALIZE) => Some(INITIALIZE.to_owned()),
            _ => None,
        };
        renamed(module, import, export)
    }

    /// The module that writes to the memory of the skill.
    fn memory_module() -> Vec<u8> {
        // Types and functions, by their indices.
        let (to_length, name_to_length, load_type, input_type, env_type) = (0, 1, 2, 3, 4);
        let (open_input, open_variable, load, copy) = (0, 1, 2, 3);
        let copy_type = 5;
        let i32 = ValType::I32;
        let mut module = Module::new();
        let mut types = TypeSection::new();
        types.ty().function([], [i32]);
        types.ty().function([i32; 2], [i32]);
        types.ty().function([i32], [ValType::I64]);
        types.ty().function([i32], []);
        types.ty().function([i32; 4], [i32]);
        types.ty().function([i32; 2], []);
        module.section(&types);
        let mut imports = ImportSection::new();
        imports.import(SKILL_HOST, "open-input", EntityType::Function(to_length));
        imports.import(SKILL_HOST, "open-variable", EntityType::Function(name_to_length));
        imports.import(SKILL_HOST, "load", EntityType::Function(load_type));
        let memory = MemoryType {
            minimum: 0,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        };
        imports.import("env", "memory", memory);
        module.section(&imports);
        let mut functions = FunctionSection::new();
        functions.function(copy_type).function(input_type).function(env_type);
        module.section(&functions);
        let mut exports = ExportSection::new();
        exports.export(GET_INPUT, ExportKind::Func, copy + 1);
        exports.export(GET_ENV, ExportKind::Func, copy + 2);
        module.section(&exports);
        let mut code = CodeSection::new();
        code.function(&copy_function(load));
        let mut get_input = Function::new([]);
        get_input.instructions().local_get(0).call(open_input).call(copy).end();
        code.function(&get_input);
        code.function(&get_env(open_variable, copy));
        module.section(&code);
        module.finish()
    }

    /// Copies the first bytes of the buffer to an address. The last bytes are written one by one, since
    /// the module has room for no more.
    fn copy_function(load: u32) -> Function {
        let (address, length, offset, bytes) = (0, 1, 2, 3);
        let at = |align| MemArg { offset: 0, align, memory_index: 0 };
        let mut function = Function::new([(1, ValType::I32), (1, ValType::I64)]);
        let mut body = function.instructions();
        body.block(BlockType::Empty).loop_(BlockType::Empty);
        body.local_get(length).local_get(offset).i32_sub().i32_const(8).i32_lt_u().br_if(1);
        body.local_get(address).local_get(offset).i32_add();
        body.local_get(offset).call(load).i64_store(at(0));
        body.local_get(offset).i32_const(8).i32_add().local_set(offset).br(0);
        body.end().end();
        body.local_get(offset).local_get(length).i32_eq().if_(BlockType::Empty).return_().end();
        body.local_get(offset).call(load).local_set(bytes);
        body.loop_(BlockType::Empty);
        body.local_get(address).local_get(offset).i32_add().local_get(bytes).i64_store8(at(0));
        body.local_get(bytes).i64_const(8).i64_shr_u().local_set(bytes);
        body.local_get(offset).i32_const(1).i32_add().local_tee(offset);
        body.local_get(length).i32_lt_u().br_if(0);
        body.end().end();
        function
    }

    /// Returns the length of a variable after copying it, `-1` if it does not exist, and `-2` if the
    /// module has no room for it.
    fn get_env(open_variable: u32, copy: u32) -> Function {
        let (name, name_length, address, room, length) = (0, 1, 2, 3, 4);
        let mut function = Function::new([(1, ValType::I32)]);
        let mut body = function.instructions();
        body.local_get(name).local_get(name_length).call(open_variable).local_tee(length);
        body.i32_const(0).i32_lt_s().if_(BlockType::Empty).i32_const(-1).return_().end();
        body.local_get(length).local_get(room).i32_gt_u().if_(BlockType::Empty);
        body.i32_const(-2).return_().end();
        body.local_get(address).local_get(length).call(copy).local_get(length).end();
        function
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(text: &str) -> Vec<u8> {
        wat::parse_str(format!(r#"(module {text} (memory (export "memory") 1))"#)).unwrap()
    }

    const RUN_FUNCTION: &str = r#"(func (export "run"))"#;

    /// Imports all functions of Blufio.
    fn imports() -> String {
        let imports = FUNCTIONS.iter().map(|(name, params, has_result)| {
            let params = "i32 ".repeat(*params);
            let result = if *has_result { "(result i32)" } else { "" };
            format!(r#"(import "blufio" "{name}" (func (param {params}) {result}))"#)
        });
        imports.collect()
    }

    #[test]
    fn a_skill_becomes_a_component() {
        let wasi = r#"(import "wasi_snapshot_preview1" "random_get"
            (func (param i32 i32) (result i32)))"#;
        for imports in
            [imports(), imports() + wasi, imports().split_inclusive("))").take(1).collect()]
        {
            let component = component(&module(&format!("{imports}{RUN_FUNCTION}"))).unwrap();
            wasmparser::validate(&component).unwrap();
            for name in [SKILL_HOST, crate::lane::SKILL_INSTANCE] {
                assert!(component.windows(name.len()).any(|it| it == name.as_bytes()), "{name}");
            }
        }
    }

    #[test]
    fn other_functions_are_refused_by_name() {
        let check = |import: &str, expected: &str| {
            let refused = component(&module(&format!("{}{import}{RUN_FUNCTION}", imports())));
            let imports = vec![expected.to_owned()];
            assert_eq!(refused, Err(InvalidComponent::Imports { imports }));
        };
        check(r#"(import "blufio" "send_mail" (func (param i32)))"#, "blufio::send_mail");
        check(r#"(import "blufio" "log" (func (param i64 i32 i32)))"#, "blufio::log");
        check(r#"(import "blufio" "memory" (memory 1))"#, "blufio::memory");
        check(r#"(import "env" "http_request" (func))"#, "env::http_request");
    }

    #[test]
    fn a_skill_needs_run() {
        for run in ["", r#"(func (export "run") (param i32))"#, r#"(func (export "main"))"#] {
            let refused = component(&module(&format!("{}{run}", imports())));
            assert!(matches!(refused, Err(InvalidComponent::Translate(_))), "{refused:?}");
        }
    }
}
