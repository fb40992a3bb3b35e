//! The result of a compilation.

/// Native code that this process has compiled, in wasmtime's format.
pub struct CompiledCode(Vec<u8>);

impl CompiledCode {
    /// `bytes` must be the result of wasmtime's compiler in this process, or in one that this
    /// process has started.
    #[cfg(any(feature = "compiler", test))]
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the native code.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(feature = "compiler")]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
