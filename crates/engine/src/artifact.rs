//! Native code that comes with the binary.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::mem;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;
use zstd::zstd_safe::{MAGICNUMBER, get_frame_content_size};

use crate::compile::CompiledCode;
use crate::metering::Metering;
use crate::sys::path_of;

/// Whether an artifact can be used without a copy. On other processors than x86-64 caches have
/// to be flushed for new code, which wasmtime does for what it has copied.
const IN_PLACE: bool = cfg!(target_arch = "x86_64");

/// The size from which on native code is packed, in bytes.
///
/// The two largest components would add 16 MB to the binary. Smaller code is used without a copy: to
/// unpack that of `learn` takes a process 1.5 ms, as long as a start.
const LARGE: usize = 8 << 20;

/// Defines the features of a processor that embedded native code for x86-64 needs, and whether
/// this one has them.
macro_rules! x86_64_features {
    ($($feature:tt)*) => {
        /// The instructions beyond the baseline that embedded native code for x86-64 may use. Nearly
        /// every processor made since 2009 has them.
        ///
        /// Without them, Cranelift turns each shuffle of a vector into a call of a function of
        /// wasmtime.
        #[cfg(feature = "compiler")]
        pub(crate) const X86_64_FEATURES: &[&str] = &[$($feature),*];

        #[cfg(target_arch = "x86_64")]
        fn has_features() -> bool {
            $(std::arch::is_x86_feature_detected!($feature))&&*
        }
    };
}

// x86-64-v2.
x86_64_features!("sse3" "ssse3" "sse4.1" "sse4.2" "popcnt");

#[cfg(not(target_arch = "x86_64"))]
fn has_features() -> bool {
    true
}

/// Whether this is the first question about these bytes. wasmtime knows native
/// code by its address, so one engine of the process can have it in place.
fn is_first(bytes: &'static [u8]) -> bool {
    static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(bytes.as_ptr().addr())
}

/// A component that is part of the binary, with the native code that this very build
/// compiled it to where it has the compiler for that.
#[derive(Clone, Copy)]
pub struct EmbeddedArtifact {
    name: &'static str,
    /// For calls without fuel. `None`: compiled at the first use, and kept in the cache.
    native: Option<NativeCode>,
    /// What it was made from, packed: calls with fuel need other native code.
    component: &'static [u8],
}

/// The native code of an embedded component, as [`EmbeddedArtifact::pack_native`] returned it.
#[derive(Clone, Copy, Debug)]
pub struct NativeCode(&'static [u8]);

impl EmbeddedArtifact {
    /// Compresses a component, with a level of Zstandard: 1 is the fastest, 19 gives the
    /// smallest.
    ///
    /// # Errors
    ///
    /// There is no such level, or no memory.
    pub fn pack(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
        zstd::bulk::compress(bytes, level)
    }

    /// Compresses native code that is large, and returns smaller code unchanged.
    ///
    /// # Errors
    ///
    /// As [`pack`](Self::pack).
    pub fn pack_native(native: Vec<u8>, level: i32) -> io::Result<Vec<u8>> {
        if native.len() < LARGE { Ok(native) } else { Self::pack(&native, level) }
    }

    /// Names an embedded component, as [`pack`](Self::pack) made it, and its native code.
    ///
    /// Without native code, which is empty then, the component is compiled at its first use like
    /// that of a file, and kept in the cache.
    ///
    /// # Safety
    ///
    /// `native` is, unchanged, what [`pack_native`](Self::pack_native) made of what
    /// [`precompile`] of this version of kitbag returned for that component, and starts at
    /// a page boundary. It is native code, run without any further check.
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

    /// Names an embedded component without native code.
    pub const fn uncompiled(name: &'static str, component: &'static [u8]) -> Self {
        Self { name, native: None, component }
    }

    /// The name of the component.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The component that it was made from, as it is in a file.
    pub fn component(&self) -> Vec<u8> {
        unpack(self.component).expect("the build packed it").into_owned()
    }

    /// The native code for calls with or without fuel. `None` if the binary has none that runs on
    /// this processor: the component is compiled at its first use then.
    pub fn native(&self, metering: Metering) -> Option<NativeCode> {
        match metering {
            Metering::Off => self.native.filter(|_| has_features()),
            Metering::Fuel => None,
        }
    }
}

impl NativeCode {
    /// How much memory the process keeps for it, in bytes.
    pub fn memory(self) -> u64 {
        unpacked_size(self.0).unwrap_or_default()
    }

    /// Turns it into a component: from the binary without a copy if it is not packed.
    #[expect(unsafe_code, reason = "loading an artifact that this build embedded")]
    pub fn load(self, engine: &Engine) -> wasmtime::Result<Component> {
        let bytes = unpack(self.0)?;
        if let Cow::Borrowed(bytes) = bytes
            && IN_PLACE
            && is_first(bytes)
        {
            // SAFETY: by the contract of `new` the bytes are an artifact of this
            // build, which starts at a page boundary, and being `'static` and shared
            // they outlive the component and are never written to. Their text is made executable here and stays so: no other engine
            // is given them, and this component is never dropped.
            let component = unsafe { Component::deserialize_raw(engine, NonNull::from(bytes)) }?;
            mem::forget(component.clone());
            return Ok(component);
        }
        // SAFETY: by the contract of `new` the bytes are an artifact of this
        // build. Here they are copied.
        unsafe { Component::deserialize(engine, bytes) }
    }
}

/// The bytes that [`EmbeddedArtifact::pack`] was given, or these if they are not packed.
fn unpack(bytes: &'static [u8]) -> io::Result<Cow<'static, [u8]>> {
    let Some(size) = unpacked_size(bytes) else { return Ok(Cow::Borrowed(bytes)) };
    let size = usize::try_from(size).map_err(io::Error::other)?;
    Ok(Cow::Owned(zstd::bulk::decompress(bytes, size)?))
}

/// The size of the bytes that were packed. `None` if these are not packed.
fn unpacked_size(bytes: &[u8]) -> Option<u64> {
    // An artifact and a component start with other bytes.
    bytes.starts_with(&MAGICNUMBER.to_le_bytes()).then_some(())?;
    get_frame_content_size(bytes).ok().flatten()
}

/// Loads an artifact that this process has just compiled.
#[expect(unsafe_code, reason = "loading what this process compiled")]
pub fn load_compiled(engine: &Engine, artifact: &CompiledCode) -> wasmtime::Result<Component> {
    // SAFETY: only `compile` makes a `CompiledCode`, from what wasmtime's compiler
    // returned to it, and nothing can change its bytes since.
    unsafe { Component::deserialize(engine, artifact.bytes()) }
}

/// Loads an artifact that the private cache has verified, from where it lies.
#[expect(unsafe_code, reason = "loading an artifact that the private cache verified")]
pub fn load_verified(
    engine: &Engine,
    artifact: &crate::cache::VerifiedCode<'_>,
) -> wasmtime::Result<Component> {
    // The very file that was verified, whatever its name stands for by now.
    let file = path_of(artifact.file());
    // SAFETY: a `VerifiedCode` exists only for a file which we own in a directory which
    // only we can write, and whose digest is the one that was recorded when we
    // compiled it. Nothing changes the file, as `cache::entry` has it, so wasmtime
    // maps what was verified: the same pages of the same file.
    let mapped = unsafe { Component::deserialize_file(engine, file) };
    mapped.or_else(|_| {
        // SAFETY: as above. Here the bytes are copied: there is no such path, or
        // nothing may be executed where the cache lies.
        unsafe { Component::deserialize(engine, artifact.bytes()) }
    })
}

impl fmt::Debug for EmbeddedArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedArtifact").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for EmbeddedArtifact {
    // By where its bytes lie.
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
