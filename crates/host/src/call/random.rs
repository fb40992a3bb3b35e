//! Random bytes, in portions that the host can hold.
//!
//! wasmtime-wasi bounds them too, but breaks off with a text of its own; here
//! the error is the limit.

use kitbag_contract::LimitKind;
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, random};
use wasmtime_wasi::random::WasiRandomCtx;

use crate::limits::{LimitReached, RANDOM_BYTES};

/// Names the data behind `wasi:random` for the linker.
pub(crate) struct BoundedRandom;

/// `wasi:random` with the limit in front of wasmtime-wasi's own.
pub(crate) struct Bounded<'a>(pub(crate) &'a mut WasiRandomCtx);

impl HasData for BoundedRandom {
    type Data<'a> = Bounded<'a>;
}

impl random::Host for Bounded<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        check(len)?;
        random::Host::get_random_bytes(self.0, len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        random::Host::get_random_u64(self.0)
    }
}

impl insecure::Host for Bounded<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        check(len)?;
        insecure::Host::get_insecure_random_bytes(self.0, len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        insecure::Host::get_insecure_random_u64(self.0)
    }
}

fn check(len: u64) -> Result<(), LimitReached> {
    if len > RANDOM_BYTES { Err(LimitReached(LimitKind::Random)) } else { Ok(()) }
}
