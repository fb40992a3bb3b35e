//! Commands for WASI preview 1, wrapped by the adapter of the Bytecode Alliance.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wit_component::ComponentEncoder;

use crate::load_error::InvalidComponent;

/// Returns the component of a module that exports `_start`. It exports `wasi:cli/run`.
pub(super) fn component(module: &[u8]) -> Result<Vec<u8>, InvalidComponent> {
    let encode = || {
        ComponentEncoder::default()
            .module(module)?
            .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)?
            .encode()
    };
    encode().map_err(|error| InvalidComponent::Translate(format!("{error:#}")))
}
