//! Configuration values: the standard interface `wasi:config`.

use kitbag_base::ByteSize;
use wasmtime_wasi_config::WasiConfig;

use crate::call::state::State;
use crate::interface::{Interfaces, Version};

pub(crate) const INTERFACES: Interfaces = Interfaces {
    version: Version::Exactly("0.2.0-rc.1"),
    bytes: ByteSize::bytes(0),
    list: &[("wasi:config/store", "granted configuration values", |l| {
        wasmtime_wasi_config::add_to_linker(l, |state: &mut State| {
            WasiConfig::from(&state.granted().config)
        })
    })],
};
