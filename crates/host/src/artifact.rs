//! Native code that comes with the binary.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compile::Compiled;
use crate::metering::Metering;
use crate::sys::path_of;

/// Whether an artifact is used where it lies. Elsewhere than on x86-64 caches have
/// to be flushed for new code, which wasmtime does for what it has copied.
const IN_PLACE: bool = cfg!(target_arch = "x86_64");

/// Whether this is the first question about these bytes. wasmtime knows native
/// code by its address, so one engine of the process can have it in place.
fn is_first(bytes: &'static [u8]) -> bool {
    static SEEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    seen.insert(bytes.as_ptr().addr())
}

/// A component that is part of the binary, most often with the native code that this
/// very build compiled it to.
#[derive(Clone, Copy)]
pub struct EmbeddedArtifact {
    name: &'static str,
    /// For calls without fuel. `None`: compiled at the first use, and kept in the cache.
    native: Option<&'static [u8]>,
    /// What it was made from: calls with fuel need other native code.
    component: Source,
}

/// The bytes of an embedded component.
#[derive(Clone, Copy)]
enum Source {
    /// As they are.
    Plain(&'static [u8]),
    /// As [`EmbeddedArtifact::pack`] made them.
    Packed(&'static [u8]),
}

impl EmbeddedArtifact {
    /// Compresses a component, for [`new`](Self::new).
    pub fn pack(component: &[u8]) -> Vec<u8> {
        // The smallest that it gives; a build does this once for each component.
        miniz_oxide::deflate::compress_to_vec_zlib(component, 9)
    }

    /// Names an embedded component, as [`pack`](Self::pack) made it, and its native code.
    ///
    /// # Safety
    ///
    /// `native` is, unchanged, what [`Host::precompile`] of this version of kitbag
    /// returned for that component, and starts at a page boundary. It is native code, run
    /// without any further check.
    ///
    /// [`Host::precompile`]: crate::Host::precompile
    #[expect(unsafe_code, reason = "the caller vouches for native code")]
    pub const unsafe fn new(
        name: &'static str,
        native: &'static [u8],
        packed: &'static [u8],
    ) -> Self {
        Self { name, native: Some(native), component: Source::Packed(packed) }
    }

    /// Names an embedded component without native code, which is compiled like that of
    /// a file: at its first use, and kept in the cache.
    pub const fn uncompiled(name: &'static str, component: &'static [u8]) -> Self {
        Self { name, native: None, component: Source::Plain(component) }
    }

    /// The name of the component.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The size of its native code, in bytes.
    pub fn size(&self) -> usize {
        self.native.map_or(0, <[u8]>::len)
    }

    /// The component that it was made from, as it is in a file.
    pub fn component(&self) -> Cow<'static, [u8]> {
        match self.component {
            Source::Plain(bytes) => bytes.into(),
            Source::Packed(bytes) => {
                let unpacked = miniz_oxide::inflate::decompress_to_vec_zlib(bytes);
                unpacked.expect("the build packed it").into()
            }
        }
    }

    /// What tells it from another one: where its bytes lie.
    fn bytes(&self) -> &'static [u8] {
        match self.component {
            Source::Plain(bytes) | Source::Packed(bytes) => bytes,
        }
    }

    /// Turns the native code into a component, the first time without copying it.
    /// `None` where there is none for that.
    pub(crate) fn load(
        &self,
        engine: &Engine,
        metering: Metering,
    ) -> Option<wasmtime::Result<Component>> {
        match metering {
            Metering::Off => self.native.map(|native| Self::load_native(engine, native)),
            Metering::Fuel => None,
        }
    }

    #[expect(unsafe_code, reason = "loading an artifact that this build embedded")]
    fn load_native(engine: &Engine, bytes: &'static [u8]) -> wasmtime::Result<Component> {
        if IN_PLACE && is_first(bytes) {
            // SAFETY: by the contract of `new` the bytes are an artifact of this
            // build, and being `'static` and shared they outlive the component
            // and are never written to. Their text is made executable here and
            // stays so: no other engine is given them, and this component is
            // never dropped.
            let component = unsafe { Component::deserialize_raw(engine, NonNull::from(bytes)) }?;
            std::mem::forget(component.clone());
            return Ok(component);
        }
        // SAFETY: by the contract of `new` the bytes are an artifact of this
        // build. Here they are copied.
        unsafe { Component::deserialize(engine, bytes) }
    }
}

/// Loads an artifact that this process has just compiled.
#[expect(unsafe_code, reason = "loading what this process compiled")]
pub(crate) fn load_compiled(engine: &Engine, artifact: &Compiled) -> wasmtime::Result<Component> {
    // SAFETY: only `compile` makes a `Compiled`, from what wasmtime's compiler
    // returned to it, and nothing can change its bytes since.
    unsafe { Component::deserialize(engine, artifact.bytes()) }
}

/// Loads an artifact that the private cache has verified, from where it lies.
#[expect(unsafe_code, reason = "loading an artifact that the private cache verified")]
pub(crate) fn load_verified(
    engine: &Engine,
    artifact: &crate::cache::Verified<'_>,
) -> wasmtime::Result<Component> {
    // The very file that was verified, whatever its name stands for by now.
    let file = path_of(artifact.file().as_fd());
    // SAFETY: a `Verified` exists only for a file which we own in a directory which
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
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.bytes(), other.bytes())
    }
}

impl Eq for EmbeddedArtifact {}

impl std::hash::Hash for EmbeddedArtifact {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bytes().as_ptr().hash(state);
    }
}
