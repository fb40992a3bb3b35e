//! Random bytes, in portions of bounded size.
//!
//! wasmtime-wasi also bounds them, but traps with a message of its own; here the error names the
//! limit.

use kitbag_contract::LimitKind;
use wasmtime::component::HasData;
use wasmtime_wasi::p2::bindings::random::{insecure, random};
use wasmtime_wasi::p3::bindings::random as asynchronous;
use wasmtime_wasi::random::WasiRandomCtx;

use crate::limits::{LimitReached, RANDOM_BYTES};

/// Names the data behind `wasi:random` for the linker.
pub(crate) struct BoundedRandom;

/// `wasi:random`, with our limit checked before wasmtime-wasi's.
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

impl asynchronous::random::Host for Bounded<'_> {
    fn get_random_bytes(&mut self, max: u64) -> wasmtime::Result<Vec<u8>> {
        // A shorter result is allowed.
        random::Host::get_random_bytes(self, max.min(RANDOM_BYTES))
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        random::Host::get_random_u64(self)
    }
}

impl asynchronous::insecure::Host for Bounded<'_> {
    fn get_insecure_random_bytes(&mut self, max: u64) -> wasmtime::Result<Vec<u8>> {
        insecure::Host::get_insecure_random_bytes(self, max.min(RANDOM_BYTES))
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        insecure::Host::get_insecure_random_u64(self)
    }
}

fn check(len: u64) -> Result<(), LimitReached> {
    if len > RANDOM_BYTES { Err(LimitReached(LimitKind::Random)) } else { Ok(()) }
}
