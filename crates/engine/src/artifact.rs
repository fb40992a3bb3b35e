//! Native code that is embedded in the binary.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;
use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, MAGICNUMBER, SafeResult, compress_bound, get_error_name,
    get_frame_content_size,
};

use crate::compile::CompiledCode;
use crate::metering::Metering;
use crate::sys::path_of;

/// True if an artifact can be used without a copy. On processors other than x86-64, caches must be
/// flushed for new code, which wasmtime does only for code that it copied.
const IN_PLACE: bool = cfg!(target_arch = "x86_64");

/// The distance in which equal bytes are found, as a power of two: that of native code and component.
const WINDOW_LOG: u32 = 27;

/// Defines the processor features that embedded native code for x86-64 requires, and a function
/// that returns which of them this processor has.
macro_rules! x86_64_features {
    ($($feature:tt)*) => {
        /// The instructions beyond the baseline that embedded native code for x86-64 may use. Nearly
        /// every processor made since 2009 has them.
        ///
        /// Without them, Cranelift compiles each vector shuffle to a call of a wasmtime function.
        #[cfg(feature = "compiler")]
        pub(crate) const X86_64_FEATURES: &[&str] = &[$($feature),*];

        #[cfg(target_arch = "x86_64")]
        fn features() -> Vec<bool> {
            vec![$(std::arch::is_x86_feature_detected!($feature)),*]
        }
    };
}

// x86-64-v2.
x86_64_features!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt");

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<bool> {
    Vec::new()
}

/// Returns true at the first call for these bytes. wasmtime registers native code by its address,
/// so only one engine of the process can use it in place.
fn is_first(bytes: &'static [u8]) -> bool {
    static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(bytes.as_ptr().addr())
}

/// A component that is embedded in the binary, with the native code that this build compiled if it
/// has the compiler.
#[derive(Clone, Copy)]
pub struct EmbeddedArtifact {
    name: &'static str,
    /// For calls without fuel. `None`: compiled at the first use and cached.
    native: Option<NativeCode>,
    /// The component, compressed with the native code as its prefix, which has the same data: calls
    /// with fuel need different native code.
    component: &'static [u8],
}

/// The native code of an embedded component, which may be packed.
#[derive(Clone, Copy, Debug)]
pub struct NativeCode(&'static [u8]);

impl EmbeddedArtifact {
    /// Compresses a component with a Zstandard level: 1 is the fastest, 19 has the smallest result.
    /// `native` is its native code, which may be empty; the result can only be read with the same.
    ///
    /// # Errors
    ///
    /// If the level is not valid or memory is insufficient.
    pub fn pack(component: &[u8], native: &[u8], level: i32) -> io::Result<Vec<u8>> {
        let mut context = CCtx::create();
        let settings = [
            CParameter::CompressionLevel(level),
            CParameter::EnableLongDistanceMatching(true),
            CParameter::WindowLog(WINDOW_LOG),
        ];
        for setting in settings {
            of_zstd(context.set_parameter(setting))?;
        }
        of_zstd(context.ref_prefix(native))?;
        let mut packed = Vec::with_capacity(compress_bound(component.len()));
        of_zstd(context.compress2(&mut packed, component))?;
        Ok(packed)
    }

    /// Creates an embedded component from the results of [`pack`](Self::pack). Native code may
    /// be packed, without a prefix.
    ///
    /// If `native` is empty, the component is compiled at its first use like a file, and
    /// cached.
    ///
    /// # Safety
    ///
    /// `native` must be the unchanged result of [`precompile`] in this version of kitbag for that
    /// component, or of [`pack`](Self::pack) for that result, and must start at a page boundary. It
    /// is native code, which runs without further checks.
    ///
    /// [`precompile`]: fn@crate::precompile
    #[expect(unsafe_code, reason = "the caller vouches for native code")]
    pub const unsafe fn new(
        name: &'static str,
        native: &'static [u8],
        component: &'static [u8],
    ) -> Self {
        let native = if native.is_empty() { None } else { Some(NativeCode(native)) };
        Self { name, native, component }
    }

    /// Creates an embedded component without native code.
    pub const fn uncompiled(name: &'static str, component: &'static [u8]) -> Self {
        Self { name, native: None, component }
    }

    /// Returns the name of the component.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the component's bytes.
    pub fn component(&self) -> Vec<u8> {
        let native = self.native.map_or(Ok(Cow::Borrowed(&[][..])), |native| unpack(native.0, &[]));
        let component = native.and_then(|native| unpack(self.component, &native));
        component.expect("the build packed it").into_owned()
    }

    /// Returns the native code for calls with or without fuel. `None` if the binary has none that
    /// runs on this processor: the component is then compiled at its first use.
    pub fn native(&self, metering: Metering) -> Option<NativeCode> {
        self.native_on(metering, &features())
    }

    /// Returns the native code for a processor that has the features marked with true.
    fn native_on(&self, metering: Metering, features: &[bool]) -> Option<NativeCode> {
        match metering {
            Metering::Off => self.native.filter(|_| features.iter().all(|has| *has)),
            Metering::Fuel => None,
        }
    }
}

impl NativeCode {
    /// Returns the memory that the process keeps for it, in bytes.
    pub fn memory(self) -> u64 {
        unpacked_size(self.0).unwrap_or_default()
    }

    /// Loads the component; without a copy if it is not compressed.
    #[expect(unsafe_code, reason = "loading an artifact that this build embedded")]
    pub fn load(self, engine: &Engine) -> wasmtime::Result<Component> {
        let bytes = unpack(self.0, &[])?;
        if let Cow::Borrowed(bytes) = bytes
            && IN_PLACE
            && is_first(bytes)
        {
            // SAFETY: by the contract of `new`, the bytes are an artifact of this build that starts
            // at a page boundary. Being `'static` and shared, they outlive the component and are
            // never written to. Their text becomes executable here and remains so: no other engine
            // receives them, and this component is never dropped.
            let component = unsafe { Component::deserialize_raw(engine, NonNull::from(bytes)) }?;
            mem::forget(component.clone());
            return Ok(component);
        }
        // SAFETY: by the contract of `new`, the bytes are an artifact of this build. They are
        // copied here.
        unsafe { Component::deserialize(engine, bytes) }
    }
}

/// Decompresses bytes of [`EmbeddedArtifact::pack`], or returns them if they are not compressed.
fn unpack(bytes: &'static [u8], prefix: &[u8]) -> io::Result<Cow<'static, [u8]>> {
    let Some(size) = unpacked_size(bytes) else { return Ok(Cow::Borrowed(bytes)) };
    let mut context = DCtx::create();
    of_zstd(context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)))?;
    of_zstd(context.ref_prefix(prefix))?;
    let mut unpacked = Vec::with_capacity(usize::try_from(size).map_err(io::Error::other)?);
    of_zstd(context.decompress(&mut unpacked, bytes))?;
    Ok(Cow::Owned(unpacked))
}

fn of_zstd(result: SafeResult) -> io::Result<()> {
    result.map(drop).map_err(|code| io::Error::other(get_error_name(code)))
}

/// Returns the size of the decompressed bytes. `None` if they are not compressed.
fn unpacked_size(bytes: &[u8]) -> Option<u64> {
    // Artifacts and components start with other bytes.
    bytes.starts_with(&MAGICNUMBER.to_le_bytes()).then_some(())?;
    get_frame_content_size(bytes).ok().flatten()
}

/// Loads an artifact that this process has just compiled.
#[expect(unsafe_code, reason = "loading what this process compiled")]
pub fn load_compiled(engine: &Engine, artifact: &CompiledCode) -> wasmtime::Result<Component> {
    // SAFETY: only `compile` creates a `CompiledCode`, from bytes that wasmtime's compiler returned to
    // it, and nothing can change these bytes since.
    unsafe { Component::deserialize(engine, artifact.bytes()) }
}

/// Loads an artifact that the private cache has verified, directly from its file.
#[expect(unsafe_code, reason = "loading an artifact that the private cache verified")]
pub fn load_verified(
    engine: &Engine,
    artifact: &crate::cache::VerifiedCode<'_>,
) -> wasmtime::Result<Component> {
    // The verified file itself, even if its name refers to another file now.
    let file = path_of(artifact.file());
    // SAFETY: a `VerifiedCode` exists only for a file that we own in a directory that only we can
    // write, and whose digest is the one that was recorded when we compiled it. The file is never
    // changed (see `cache::entry`), so wasmtime maps what was verified: the same pages of the same
    // file.
    let mapped = unsafe { Component::deserialize_file(engine, file) };
    mapped.or_else(|_| {
        // SAFETY: as above. The bytes are copied here: the path does not exist, or the cache is on
        // a file system without execution.
        unsafe { Component::deserialize(engine, artifact.bytes()) }
    })
}

impl fmt::Debug for EmbeddedArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedArtifact").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for EmbeddedArtifact {
    // Compares the addresses of the bytes.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.component, other.component)
    }
}

impl Eq for EmbeddedArtifact {}

impl std::hash::Hash for EmbeddedArtifact {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.component.as_ptr().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_processors_compile_the_embedded_component() {
        let native = Some(NativeCode(b"native code"));
        let artifact = EmbeddedArtifact { name: "a", native, component: b"" };
        let all = vec![true; features().len()];
        assert!(artifact.native_on(Metering::Off, &all).is_some());
        assert!(artifact.native_on(Metering::Fuel, &all).is_none());
        for missing in 0..all.len() {
            let mut features = all.clone();
            features[missing] = false;
            assert!(artifact.native_on(Metering::Off, &features).is_none(), "{missing}");
        }
        // Another architecture needs no check.
        assert!(artifact.native_on(Metering::Off, &[]).is_some());
    }

    #[cfg(all(target_arch = "x86_64", feature = "compiler"))]
    #[test]
    fn every_feature_of_embedded_code_is_checked() {
        assert_eq!(features().len(), X86_64_FEATURES.len());
        assert!(!X86_64_FEATURES.is_empty());
    }

    #[test]
    fn data_of_the_native_code_is_not_packed_again() {
        // Does not compress.
        let step = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*state >> 24) as u8)
        };
        let data: Vec<u8> =
            std::iter::repeat_n((), 1 << 20).scan(1, |state, ()| step(state)).collect();
        let component = [b"component", &data[..], b"end"].concat();
        let native = [b"native code", &data[..]].concat();
        let alone = EmbeddedArtifact::pack(&component, &[], 1).unwrap();
        let packed = EmbeddedArtifact::pack(&component, &native, 1).unwrap();
        assert!(alone.len() > data.len() && packed.len() < 1 << 10, "{}", packed.len());
        assert_eq!(unpack(alone.leak(), &[]).unwrap(), &component[..]);
        let packed = packed.leak();
        assert_eq!(unpack(packed, &native).unwrap(), &component[..]);
        unpack(packed, &[]).unwrap_err();
    }
}
