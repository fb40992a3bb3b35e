//! The result of a compilation.

use crate::model::Model;

/// Native code that this process has compiled, in wasmtime's format.
pub struct CompiledCode {
    bytes: Vec<u8>,
    model: Model,
}

impl CompiledCode {
    /// `bytes` must be the result of wasmtime's compiler in this process, or in one that this
    /// process has started, for the engine of this model.
    #[cfg(any(feature = "compiler", test))]
    pub(crate) fn new(bytes: Vec<u8>, model: Model) -> Self {
        Self { bytes, model }
    }

    /// Returns the native code.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the part of the component model that the component needs.
    pub fn model(&self) -> Model {
        self.model
    }

    #[cfg(feature = "compiler")]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
