//! Native code that comes with the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::mem;
use std::num::NonZero;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};
use std::thread;

use memmap2::MmapMut;
use wasmtime::Engine;
use wasmtime::component::Component;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

use crate::compile::Compiled;
use crate::metering::Metering;
use crate::sys::path_of;

/// Whether an artifact is used where it lies. Elsewhere than on x86-64 caches have
/// to be flushed for new code, which wasmtime does for what it has copied.
const IN_PLACE: bool = cfg!(target_arch = "x86_64");

/// How much one thread packs and unpacks, in bytes.
const PART: usize = 2 << 20;

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

/// The native code of an embedded component: what [`Host::precompile`] returned.
///
/// [`Host::precompile`]: crate::Host::precompile
#[derive(Clone, Copy)]
pub enum NativeCode {
    /// As it is, from a page boundary on. It is used where it lies, and only the pages
    /// that a call goes through are read.
    InPlace(&'static [u8]),
    /// As [`EmbeddedArtifact::pack`] made it: a third of the size. It is unpacked at its
    /// first use, into memory that the process keeps.
    Packed(&'static [u8]),
}

impl EmbeddedArtifact {
    /// Compresses a component or native code, with a level of Zstandard: 1 is the fastest,
    /// 19 gives the smallest.
    ///
    /// # Errors
    ///
    /// There is no such level, or no memory.
    pub fn pack(bytes: &[u8], level: i32) -> io::Result<Vec<u8>> {
        let mut packed = Vec::new();
        for part in bytes.chunks(PART) {
            packed.extend(zstd::bulk::compress(part, level)?);
        }
        Ok(packed)
    }

    /// Names an embedded component, as [`pack`](Self::pack) made it, and its native code.
    ///
    /// # Safety
    ///
    /// `native` is, unchanged, what [`Host::precompile`] of this version of kitbag
    /// returned for that component, and starts at a page boundary where it is used in
    /// place. It is native code, run without any further check.
    ///
    /// [`Host::precompile`]: crate::Host::precompile
    #[expect(unsafe_code, reason = "the caller vouches for native code")]
    pub const unsafe fn new(
        name: &'static str,
        native: NativeCode,
        component: &'static [u8],
    ) -> Self {
        Self { name, native: Some(native), component }
    }

    /// Names an embedded component, as [`pack`](Self::pack) made it, without native code:
    /// it is compiled like that of a file, at its first use, and kept in the cache.
    pub const fn uncompiled(name: &'static str, component: &'static [u8]) -> Self {
        Self { name, native: None, component }
    }

    /// The name of the component.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The component that it was made from, as it is in a file.
    pub fn component(&self) -> Vec<u8> {
        let mut unpacked = vec![0; unpacked_size(self.component)];
        unpack(self.component, &mut unpacked);
        unpacked
    }

    /// Its native code for such calls, where there is any.
    pub(crate) fn native(&self, metering: Metering) -> Option<NativeCode> {
        match metering {
            Metering::Off => self.native,
            Metering::Fuel => None,
        }
    }
}

impl NativeCode {
    /// How much memory the process keeps for it, in bytes.
    pub(crate) fn memory(self) -> u64 {
        match self {
            Self::InPlace(_) => 0,
            Self::Packed(bytes) => unpacked_size(bytes) as u64,
        }
    }

    /// Turns it into a component, without copying it where that can be.
    #[expect(unsafe_code, reason = "loading an artifact that this build embedded")]
    pub(crate) fn load(self, engine: &Engine) -> wasmtime::Result<Component> {
        let bytes = match self {
            Self::InPlace(bytes) => bytes,
            Self::Packed(bytes) => unpacked(bytes)?,
        };
        if IN_PLACE && is_first(bytes) {
            // SAFETY: by the contract of `new` the bytes are an artifact of this
            // build, which starts at a page boundary as every mapping does, and being
            // `'static` and shared they outlive the component and are never written
            // to. Their text is made executable here and stays so: no other engine
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

/// The native code that is packed in these bytes, which each process unpacks once.
fn unpacked(packed: &'static [u8]) -> io::Result<&'static [u8]> {
    static UNPACKED: Mutex<BTreeMap<usize, &'static [u8]>> = Mutex::new(BTreeMap::new());
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(native) = all.get(&packed.as_ptr().addr()) {
        return Ok(native);
    }
    let mut memory = MmapMut::map_anon(unpacked_size(packed))?;
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    unpack(packed, &mut memory);
    let native: &'static [u8] = Box::leak(Box::new(memory.make_read_only()?));
    all.insert(packed.as_ptr().addr(), native);
    Ok(native)
}

/// The size of what [`EmbeddedArtifact::pack`] was given, in bytes.
fn unpacked_size(packed: &[u8]) -> usize {
    parts(packed).map(|(_, size)| size).sum()
}

/// The parts of what was packed, each with its size when it is unpacked.
fn parts(mut packed: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    std::iter::from_fn(move || {
        if packed.is_empty() {
            return None;
        }
        let length = find_frame_compressed_size(packed).expect("`pack` wrote whole parts");
        let size = get_frame_content_size(packed).ok().flatten().expect("`pack` wrote the sizes");
        let (part, others) = packed.split_at(length);
        packed = others;
        Some((part, size.try_into().expect("it was in memory")))
    })
}

/// Unpacks what [`EmbeddedArtifact::pack`] made, on all processors where it has several
/// parts.
fn unpack(packed: &[u8], mut unpacked: &mut [u8]) {
    let mut work = Vec::new();
    for (part, size) in parts(packed) {
        let (here, others) = unpacked.split_at_mut(size);
        unpacked = others;
        work.push((part, here));
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let others = processors.min(work.len()).saturating_sub(1);
    let work = Mutex::new(work);
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let unpack = || {
        while let Some((part, here)) = take() {
            zstd::bulk::decompress_to_buffer(part, here).expect("the build packed it");
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // Where there can be no other thread this one does all of it.
            let _ = thread::Builder::new().spawn_scoped(scope, unpack);
        }
        unpack();
    });
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
    let file = path_of(artifact.file());
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
