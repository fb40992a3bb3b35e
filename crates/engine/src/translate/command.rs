//! Commands for WASI preview 1, wrapped by the adapter of the Bytecode Alliance.
//!
//! The adapter reports only whether a command failed. So `proc_exit` becomes
//! `exit-with-code` of `wasi:cli/exit`, which reports the exit code.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wasm_encoder::{EntityType, ImportSection, Module, RawSection};
use wasmparser::{Parser, Payload};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::lane::PREVIEW_1;
use crate::load_error::InvalidComponent;

/// The interface of the adapter that has the function for exit codes.
const EXIT: &str = "wasi:cli/exit@0.2.12";

/// The world of a command.
const WORLD: &str = "
package wasi:cli@0.2.12;

interface exit {
    exit: func(status: result);
    exit-with-code: func(status-code: u8);
}

world program {
    import exit;
}
";

/// Returns the component of a module that exports `_start`. It exports `wasi:cli/run`.
pub(super) fn component(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
    let encode = || {
        let mut module = with_exit_codes(module)?;
        let mut resolve = Resolve::default();
        let package = resolve.push_str("command.wit", WORLD)?;
        let world = resolve.select_world(&[package], Some("program"))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        ComponentEncoder::default()
            .module(&module)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
            .encode()
    };
    encode().map_err(|error| InvalidComponent::Translate(format!("{error:#}")))
}

/// Returns a module that imports `exit-with-code` instead of `proc_exit`, which has the same core
/// type.
fn with_exit_codes(bytes: &[u8]) -> Result<Vec<u8>, wasm_encoder::reencode::Error> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        let Some((id, range)) = payload.as_section() else { continue };
        let Payload::ImportSection(section) = payload else {
            module.section(&RawSection { id, data: &bytes[range] });
            continue;
        };
        let mut imports = ImportSection::new();
        for import in section.into_imports() {
            let import = import?;
            let (from, name) = match (import.module, import.name) {
                (PREVIEW_1, "proc_exit") => (EXIT, "exit-with-code"),
                other => other,
            };
            imports.import(from, name, EntityType::try_from(import.ty)?);
        }
        module.section(&imports);
    }
    Ok(module.finish())
}
