//! What comes of a compilation.

/// Native code that this process has compiled, in wasmtime's own format.
pub struct CompiledCode(Vec<u8>);

impl CompiledCode {
    /// What wasmtime's compiler has returned to this process, or to one that this
    /// process has started for it.
    #[cfg(any(feature = "compiler", test))]
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The native code.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    #[cfg(feature = "compiler")]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
