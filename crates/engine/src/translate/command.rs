//! Commands for WASI preview 1, wrapped by the adapter of the Bytecode Alliance.
//!
//! The adapter reports only whether a command failed. So `proc_exit` becomes
//! `exit-with-code` of `wasi:cli/exit`, which reports the exit code.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wasmparser::Import;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::module::renamed;
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
    let mut module = with_exit_codes(module)?;
    let mut encode = || {
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
fn with_exit_codes(bytes: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
    let import = |import: &Import<'_>| match (import.module, import.name) {
        (PREVIEW_1, "proc_exit") => (EXIT.to_owned(), "exit-with-code".to_owned()),
        (module, name) => (module.to_owned(), name.to_owned()),
    };
    renamed(bytes, import, |export| Some(export.name.to_owned()))
}
