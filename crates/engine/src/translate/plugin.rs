//! Plugins for Extism: functions without parameters that exchange data by a memory of the host.
//!
//! Such a module imports functions of `extism:host/env`, and may import WASI preview 1 and the
//! functions of hyper-mcp in `extism:host/user`. All of them take and return numbers, so the
//! component has the module with other names of its imports and exports: the functions of the
//! host become those of [`PLUGIN_KERNEL`] and [`PLUGIN_USER`], and the plugin's own functions those
//! of [`PLUGIN_INSTANCE`].

use wasmparser::{FuncType, ValType};

use super::module::{ModuleImport, ModuleType};
use crate::lane::PREVIEW_1;
use crate::load_error::InvalidComponent;

/// The functions of `extism:host/env`, with `-` instead of `_` in their names.
pub const PLUGIN_KERNEL: &str = "kitbag:lane/kernel";

/// The functions of `extism:host/user` that hyper-mcp defines, with `-` instead of `_`.
pub const PLUGIN_USER: &str = "kitbag:lane/user";

const ENV: &str = "extism:host/env";
const USER: &str = "extism:host/user";

/// A number in the type of a host function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    U8,
    U32,
    U64,
}

use Number::{U8, U32, U64};

impl Number {
    /// Returns the type in a core module.
    fn core_type(self) -> ValType {
        match self {
            U8 | U32 => ValType::I32,
            U64 => ValType::I64,
        }
    }

    #[cfg(feature = "compiler")]
    fn wit_type(self) -> &'static str {
        match self {
            U8 => "u8",
            U32 => "u32",
            U64 => "u64",
        }
    }
}

/// A host function: its name, its parameters and its result.
type HostFunction = (&'static str, &'static [Number], Option<Number>);

/// The functions of Extism's kernel and of its plugin development kit.
const KERNEL_FUNCTIONS: &[HostFunction] = &[
    ("alloc", &[U64], Some(U64)),
    ("free", &[U64], None),
    ("length", &[U64], Some(U64)),
    ("length_unsafe", &[U64], Some(U64)),
    ("load_u8", &[U64], Some(U8)),
    ("load_u64", &[U64], Some(U64)),
    ("store_u8", &[U64, U32], None),
    ("store_u64", &[U64, U64], None),
    ("input_set", &[U64, U64], None),
    ("input_length", &[], Some(U64)),
    ("input_offset", &[], Some(U64)),
    ("input_load_u8", &[U64], Some(U8)),
    ("input_load_u64", &[U64], Some(U64)),
    ("output_set", &[U64, U64], None),
    ("output_length", &[], Some(U64)),
    ("output_offset", &[], Some(U64)),
    ("error_set", &[U64], None),
    ("error_get", &[], Some(U64)),
    ("reset", &[], None),
    ("memory_bytes", &[], Some(U64)),
    ("config_get", &[U64], Some(U64)),
    ("var_get", &[U64], Some(U64)),
    ("var_set", &[U64, U64], None),
    ("http_request", &[U64, U64], Some(U64)),
    ("http_status_code", &[], Some(U32)),
    ("http_headers", &[], Some(U64)),
    ("log_trace", &[U64], None),
    ("log_debug", &[U64], None),
    ("log_info", &[U64], None),
    ("log_warn", &[U64], None),
    ("log_error", &[U64], None),
    ("get_log_level", &[], Some(U32)),
];

/// The functions that hyper-mcp offers to its plugins.
const USER_FUNCTIONS: &[HostFunction] = &[
    ("create_elicitation", &[U64], Some(U64)),
    ("create_message", &[U64], Some(U64)),
    ("list_roots", &[], Some(U64)),
    ("notify_logging_message", &[U64], None),
    ("notify_progress", &[U64], None),
    ("notify_prompt_list_changed", &[], None),
    ("notify_resource_list_changed", &[], None),
    ("notify_resource_updated", &[U64], None),
    ("notify_tool_list_changed", &[], None),
];

/// Checks that a plugin exports a function, and imports only functions that this kitbag provides.
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
    match functions(module).next() {
        Some(_) => Ok(()),
        None => Err(InvalidComponent::Translate(
            "a plugin must export a function without parameters".to_owned(),
        )),
    }
}

/// The adapter refuses functions that WASI does not have.
fn is_provided(import: &ModuleImport) -> bool {
    let functions = match &*import.module {
        ENV => KERNEL_FUNCTIONS,
        USER => USER_FUNCTIONS,
        module => return module == PREVIEW_1 && import.ty.function().is_some(),
    };
    let has_type = |ty: &FuncType| {
        functions.iter().any(|(name, params, result)| {
            *name == import.name
                && ty.params().iter().copied().eq(params.iter().map(|it| it.core_type()))
                && ty.results().iter().copied().eq(result.iter().map(|it| it.core_type()))
        })
    };
    import.ty.function().is_some_and(has_type)
}

/// Returns the functions that can be called: those without parameters that return a status or
/// nothing, except the ones that start the plugin.
pub(super) fn functions(module: &ModuleType) -> impl Iterator<Item = &str> {
    let functions = module.functions_of_type(|ty| {
        ty.params().is_empty() && matches!(ty.results(), [] | [ValType::I32])
    });
    functions.filter(|name| *name != INITIALIZE && *name != START && !name.starts_with("__"))
}

/// The names of the functions that start a plugin. A host calls the first one that exists.
const CONSTRUCTORS: &str = "__wasm_call_ctors";
const INITIALIZE: &str = "_initialize";
const START: &str = "_start";

#[cfg(feature = "compiler")]
pub(super) use self::compiler::component;

#[cfg(feature = "compiler")]
mod compiler {
    use std::collections::HashSet;
    use std::fmt::Write;

    use wasi_preview1_component_adapter_provider::{
        WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
    };
    use wasmparser::{Export, ExternalKind, Import};
    use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
    use wit_parser::Resolve;

    use super::{
        CONSTRUCTORS, ENV, HostFunction, INITIALIZE, KERNEL_FUNCTIONS, PLUGIN_KERNEL, PLUGIN_USER,
        USER, USER_FUNCTIONS, check, functions,
    };
    use crate::lane::{PLUGIN_INSTANCE, PREVIEW_1};
    use crate::load_error::InvalidComponent;
    use crate::translate::module::{ModuleType, mangle, renamed};

    /// Returns the component of a plugin. It exports [`PLUGIN_INSTANCE`], with each function under
    /// its mangled name.
    ///
    /// # Errors
    ///
    /// If it imports functions that this kitbag does not provide.
    pub(in crate::translate) fn component(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
        let ty = ModuleType::read(module)
            .map_err(|error| InvalidComponent::Malformed(error.to_string()))?;
        check(&ty)?;
        let mut module = with_names(module, &ty)?;
        let uses_wasi = ty.imports.iter().any(|import| import.module == PREVIEW_1);
        let mut encode = || {
            let mut resolve = Resolve::default();
            let package = resolve.push_str("plugin.wit", &wit(&ty))?;
            let world = resolve.select_world(&[package], Some("plugin-module"))?;
            embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
            let mut encoder = ComponentEncoder::default().module(&module)?;
            if uses_wasi {
                let name = WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
                encoder = encoder.adapter(name, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
            }
            encoder.encode()
        };
        encode().map_err(|error| InvalidComponent::Translate(format!("{error:#}")))
    }

    /// Returns the world of a plugin as WIT.
    fn wit(module: &ModuleType) -> String {
        let mut wit = String::from("package kitbag:lane;\n");
        for (interface, functions) in
            [(PLUGIN_KERNEL, KERNEL_FUNCTIONS), (PLUGIN_USER, USER_FUNCTIONS)]
        {
            let _ = writeln!(wit, "interface {} {{", short(interface));
            for (name, params, result) in functions {
                let params = params.iter().enumerate();
                let params = params.map(|(index, it)| format!("p{index}: {}", it.wit_type()));
                let params: Vec<_> = params.collect();
                let result = result.map(|it| format!(" -> {}", it.wit_type()));
                let (name, params) = (kebab(name), params.join(", "));
                let _ = writeln!(wit, "{name}: func({params}){};", result.unwrap_or_default());
            }
            wit.push_str("}\n");
        }
        let _ = writeln!(wit, "interface {} {{", short(PLUGIN_INSTANCE));
        for name in functions(module) {
            let is_silent =
                module.exported_function(name).is_some_and(|it| it.results().is_empty());
            let result = if is_silent { "" } else { " -> s32" };
            let _ = writeln!(wit, "{}: func(){result};", mangle(name));
        }
        let [kernel, user, plugin] = [PLUGIN_KERNEL, PLUGIN_USER, PLUGIN_INSTANCE].map(short);
        let _ = write!(
            wit,
            "}}\nworld plugin-module {{ import {kernel}; import {user}; export {plugin}; }}"
        );
        wit
    }

    /// Returns the name of an interface without its package.
    fn short(interface: &str) -> &str {
        interface.rsplit_once('/').map_or(interface, |(_, name)| name)
    }

    fn kebab(name: &str) -> String {
        name.replace('_', "-")
    }

    /// Renames imports and exports for wit-component. All other exports are removed.
    fn with_names(module: &[u8], ty: &ModuleType) -> Result<Vec<u8>, InvalidComponent> {
        let has_constructors = ty.exported_function(CONSTRUCTORS).is_some();
        let callable: HashSet<_> = functions(ty).collect();
        let import = |import: &Import<'_>| {
            let own = |functions: &[HostFunction]| {
                functions.iter().any(|(name, ..)| *name == import.name)
            };
            match import.module {
                ENV if own(KERNEL_FUNCTIONS) => (PLUGIN_KERNEL.to_owned(), kebab(import.name)),
                USER if own(USER_FUNCTIONS) => (PLUGIN_USER.to_owned(), kebab(import.name)),
                module => (module.to_owned(), import.name.to_owned()),
            }
        };
        let export = |export: &Export<'_>| match (export.kind, export.name) {
            (ExternalKind::Memory, "memory") => Some("memory".to_owned()),
            (ExternalKind::Func, name) if callable.contains(name) => {
                Some(format!("{PLUGIN_INSTANCE}#{}", mangle(name)))
            }
            (ExternalKind::Func, CONSTRUCTORS) => Some(INITIALIZE.to_owned()),
            (ExternalKind::Func, INITIALIZE) if !has_constructors => Some(INITIALIZE.to_owned()),
            _ => None,
        };
        renamed(module, import, export)
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::{Validator, WasmFeatures};

    use super::*;
    use crate::lane::PLUGIN_INSTANCE;
    use crate::load_error::InvalidComponent;
    use crate::translate::module::mangle;

    fn module(text: &str) -> Vec<u8> {
        wat::parse_str(format!("(module {text})")).unwrap()
    }

    /// Returns the imports and exports of a translated module.
    fn names(text: &str) -> (Vec<String>, Vec<String>) {
        let component = component(&module(text)).unwrap();
        Validator::new_with_features(WasmFeatures::default()).validate_all(&component).unwrap();
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        let mut depth = 0;
        for payload in wasmparser::Parser::new(0).parse_all(&component) {
            match payload.unwrap() {
                wasmparser::Payload::Version { .. } => depth += 1,
                wasmparser::Payload::End(_) => depth -= 1,
                wasmparser::Payload::ComponentImportSection(section) if depth == 1 => {
                    imports.extend(section.into_iter().map(|it| it.unwrap().name.name.to_owned()));
                }
                wasmparser::Payload::ComponentExportSection(section) if depth == 1 => {
                    exports.extend(section.into_iter().map(|it| it.unwrap().name.name.to_owned()));
                }
                _ => {}
            }
        }
        (imports, exports)
    }

    const ALLOC: &str = r#"(import "extism:host/env" "alloc" (func (param i64) (result i64)))"#;
    const FUNCTION: &str = r#"(func (export "count_vowels") (result i32) i32.const 0)"#;

    #[test]
    fn a_plugin_needs_a_function() {
        let start = r#"(func (export "_initialize")) (func (export "_start"))"#;
        let refused = component(&module(&format!("{ALLOC}{start}")));
        assert!(matches!(refused, Err(InvalidComponent::Translate(_))), "{refused:?}");
    }

    #[test]
    fn a_plugin_becomes_a_component() {
        let (imports, exports) = names(&format!("{ALLOC}{FUNCTION}"));
        assert_eq!(imports, [PLUGIN_KERNEL]);
        assert_eq!(exports, [PLUGIN_INSTANCE]);
    }

    #[test]
    fn every_host_function_is_known() {
        let core = |number: &Number| match number {
            U8 | U32 => "i32",
            U64 => "i64",
        };
        let mut text = String::new();
        for (module, functions) in [(ENV, KERNEL_FUNCTIONS), (USER, USER_FUNCTIONS)] {
            for (name, params, result) in functions {
                let params: Vec<_> = params.iter().map(core).collect();
                let result = result.iter().map(core).collect::<Vec<_>>().join("");
                text += &format!(
                    "(import \"{module}\" \"{name}\" (func (param {}) (result {result})))",
                    params.join(" ")
                );
            }
        }
        let (imports, _) = names(&format!("{text}{FUNCTION}"));
        assert_eq!(imports, [PLUGIN_KERNEL, PLUGIN_USER]);
    }

    #[test]
    fn wasi_becomes_wasi_0_2() {
        let (imports, _) = names(&format!(
            r#"{ALLOC}
            (import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))
            (memory (export "memory") 1)
            (func (export "_initialize"))
            {FUNCTION}"#
        ));
        assert!(imports.iter().any(|import| import.starts_with("wasi:random/")), "{imports:?}");
        assert!(imports.iter().all(|import| !import.contains("preview1")), "{imports:?}");
    }

    #[test]
    fn functions_of_another_host_are_refused() {
        let check = |import: &str, expected: &str| {
            let refused = component(&module(&format!("{ALLOC}{import}{FUNCTION}")));
            let imports = vec![expected.to_owned()];
            assert_eq!(refused, Err(InvalidComponent::Imports { imports }));
        };
        let own = r#"(import "extism:host/user" "hello_world" (func (param i64) (result i64)))"#;
        check(own, "extism:host/user::hello_world");
        // A function with another type, and memory of the kernel.
        check(r#"(import "extism:host/env" "free" (func))"#, "extism:host/env::free");
        check(r#"(import "extism:host/env" "memory" (memory 1))"#, "extism:host/env::memory");
        check(r#"(import "env" "f" (func))"#, "env::f");
    }

    #[test]
    fn constructors_run_instead_of_initialize() {
        let (_, exports) = names(&format!(
            r#"{ALLOC}{FUNCTION}
            (func (export "__wasm_call_ctors"))
            (func (export "_initialize"))"#
        ));
        assert_eq!(exports, [PLUGIN_INSTANCE]);
    }

    #[test]
    fn odd_names_are_callable() {
        let text = format!(r#"{ALLOC}(func (export "Größe (2)") (result i32) i32.const 0)"#);
        let component = component(&module(&text)).unwrap();
        let name = mangle("Größe (2)");
        assert!(component.windows(name.len()).any(|part| part == name.as_bytes()));
    }
}
