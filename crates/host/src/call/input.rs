//! Standard input and arguments of a guest.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tokio::io::AsyncRead;
use wasmtime::component::HasData;
use wasmtime_wasi::cli::{IsTerminal, StdinStream, WasiCliCtxView};
use wasmtime_wasi::p2::InputStream;
use wasmtime_wasi::p2::bindings::cli::environment;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::p3::bindings::cli::environment as asynchronous;

/// Standard input. Empty unless it is set before the guest reads it.
#[derive(Clone, Default)]
pub(crate) struct Input(Arc<OnceLock<MemoryInputPipe>>);

impl Input {
    pub(crate) fn set(&self, bytes: Bytes) {
        // The guest has not read yet, so nothing is set.
        let _ = self.0.set(MemoryInputPipe::new(bytes));
    }

    fn pipe(&self) -> MemoryInputPipe {
        self.0.get_or_init(|| MemoryInputPipe::new(Bytes::new())).clone()
    }
}

impl IsTerminal for Input {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for Input {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(self.pipe())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.pipe())
    }
}

/// Names the data behind `wasi:cli/environment` for the linker.
pub(crate) struct Environment;

/// The environment of WASI, with the arguments of this call.
pub(crate) struct EnvironmentView<'a> {
    pub(crate) wasi: WasiCliCtxView<'a>,
    pub(crate) arguments: &'a [String],
}

impl HasData for Environment {
    type Data<'a> = EnvironmentView<'a>;
}

impl environment::Host for EnvironmentView<'_> {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        environment::Host::get_environment(&mut self.wasi)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.arguments.to_owned())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        environment::Host::initial_cwd(&mut self.wasi)
    }
}

impl asynchronous::Host for EnvironmentView<'_> {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        environment::Host::get_environment(self)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        environment::Host::get_arguments(self)
    }

    fn get_initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        environment::Host::initial_cwd(self)
    }
}
