//! Loading of components, from their source to an instance.

pub(crate) mod components;
pub(crate) mod imports;
pub(crate) mod support;

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kitbag_base::{ByteSize, ContentDigest};
use kitbag_contract::Description;
use kitbag_engine::{
    CacheProblem, CompiledCode, ComponentBytes, ComponentFile, Content, DescribeResult, DiskCache,
    EmbeddedArtifact, Engines, InvalidComponent, Key, Lane, LoadError, Metering, Model, NativeCode,
    Wait, check_pins, compile, described_section, digest_of_bytes, load_compiled, load_verified,
};
use wasmtime::Engine;
use wasmtime::component::{InstancePre, Linker};

use crate::call::context::RunContext;
use crate::call::state::State;
use crate::component::support::SUPPORT;
use crate::description::NotNow;
use crate::lanes::Entry;
use crate::schedule::budget::{MemoryBudget, Reservation};

/// Source of a component.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ComponentSource {
    /// This binary.
    Embedded(EmbeddedArtifact),
    /// A `.wasm` file.
    File(ComponentFile),
    /// Memory.
    Bytes(ComponentBytes),
}

/// A component that is compiled, checked and linked.
///
/// Cheap to clone; each call creates its own instance.
#[derive(Clone)]
pub struct Component(Arc<Loaded>);

/// Identity of a component. Each load creates a new identity.
#[derive(Clone)]
pub struct ComponentIdentity(Weak<Loaded>);

impl PartialEq for ComponentIdentity {
    // An address is not reused while a weak pointer refers to it.
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

struct Loaded {
    instance: InstancePre<State>,
    entry: Entry,
    described: DescribeResult,
    problems: Vec<CacheProblem>,
    compiled: bool,
    /// Host memory that a call needs for the component's imports.
    host_bytes: ByteSize,
    memory: Option<Reservation>,
    /// Digest of the component's bytes, unless they are part of this binary.
    digest: Option<ContentDigest>,
}

pub(crate) struct Compilation<'a> {
    pub(crate) program: Option<&'a Path>,
    pub(crate) memory: &'a MemoryBudget,
    pub(crate) time: Duration,
    /// Receives progress, and cancels the compilation.
    pub(crate) context: &'a RunContext,
}

impl<'a> Compilation<'a> {
    pub(crate) fn wait(&self, path: &'a Path, size: u64) -> Wait<'a> {
        Wait::new(path, size, self.context, self.time)
    }
}

impl Component {
    /// Returns the tool's description, if the component gave one.
    pub fn description(&self) -> Option<&Description> {
        self.0.described.description()
    }

    /// Returns the result of reading the description.
    pub fn described(&self) -> &DescribeResult {
        &self.0.described
    }

    /// Returns the disk cache problems that occurred while loading the component.
    pub fn cache_problems(&self) -> &[CacheProblem] {
        &self.0.problems
    }

    /// Returns true if this process compiled the component.
    pub fn was_compiled(&self) -> bool {
        self.0.compiled
    }

    /// Returns the digest of the component's bytes in hexadecimal. `None` if the component is part
    /// of this binary.
    pub fn digest(&self) -> Option<String> {
        self.0.digest.map(|digest| digest.to_string())
    }

    /// Returns an identity that distinguishes this load from all others and does not keep the
    /// component in memory.
    pub fn identity(&self) -> ComponentIdentity {
        ComponentIdentity(Arc::downgrade(&self.0))
    }

    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns true if the component's code takes memory, because it is not part of this binary.
    pub(crate) fn has_code_of_its_own(&self) -> bool {
        self.0.memory.is_some()
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.0.instance.engine()
    }

    pub(crate) fn instance(&self) -> &InstancePre<State> {
        &self.0.instance
    }

    /// Returns the host memory that a call needs for the component's imports.
    pub(crate) fn host_bytes(&self) -> ByteSize {
        self.0.host_bytes
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0.entry
    }

    /// Returns the binary interface through which the component is called.
    pub fn lane(&self) -> Lane {
        self.0.entry.lane()
    }
}

impl Component {
    pub(crate) fn embedded(
        engines: &Engines<'_>,
        name: &str,
        native: NativeCode,
    ) -> Result<Self, LoadError> {
        let component = native
            .load(engines.first)
            .map_err(|error| LoadError::Engine(format!("the embedded tool `{name}`: {error:#}")))?;
        let linked = link(&component);
        let loaded = linked.map_err(|problem| LoadError::invalid(Path::new(name), problem))?;
        Ok(Self(Arc::new(loaded)))
    }

    pub(crate) fn compiled(
        engines: &Engines<'_>,
        mut content: impl Content,
        metering: Metering,
        cache: Option<&DiskCache>,
        compiling: &Compilation<'_>,
        describe: impl Fn(&Entry, &InstancePre<State>) -> Result<DescribeResult, NotNow>,
        reserve: impl Fn(&Path, &wasmtime::component::Component) -> Result<Reservation, LoadError>,
    ) -> Result<Self, LoadError> {
        let (path, mut problems) = (content.path().to_owned(), Vec::new());
        let path = &*path;
        if let Some(cache) = cache {
            let digest = content.digest()?;
            check_pins(path, content.pins(), digest)?;
            let cached =
                Self::cached(engines, path, cache, (digest, metering), &reserve, &mut problems)?;
            if let Some(cached) = cached {
                return Ok(cached);
            }
        }
        let bytes = content.read()?;
        let mut original = content;
        // Digest of the bytes compiled here: the file may have been written since.
        let digest = digest_of_bytes(&bytes);
        check_pins(path, original.pins(), digest)?;
        let content = bytes;
        let wait = compiling.wait(path, content.len() as u64);
        let mut lock = None;
        let kept = match cache {
            Some(cache) => {
                // The model is not known yet.
                lock = cache.lock(Key::of(digest, metering, Model::Basic), &wait);
                // The previous holder of the lock may have stored the entry.
                let cached = Self::cached(
                    engines,
                    path,
                    cache,
                    (digest, metering),
                    &reserve,
                    &mut problems,
                )?;
                if let Some(cached) = cached {
                    return Ok(cached);
                }
                Some(cache)
            }
            None => None,
        };
        let section = described_section(&content, &SUPPORT);
        let compiled =
            compile(&wait, content, metering, None, compiling.program, compiling.memory, &SUPPORT)?;
        let component = load_fresh(engines, &compiled)?;
        let memory = Some(reserve(path, &component)?);
        // The file may have been written since.
        let read = || original.read().ok().filter(|bytes| digest_of_bytes(bytes) == digest);
        let (mut loaded, is_final) = link_fresh(path, &component, section, read, describe)?;
        loaded.memory = memory;
        loaded.digest = Some(digest);
        if let Some(cache) = kept
            && is_final
        {
            let key = Key::of(digest, metering, compiled.model());
            let remembered = cache.remember(digest, &loaded.described);
            let stored = cache.store(key, &compiled, &loaded.described);
            if let Err(problem) = remembered.and(stored)
                && !problems.contains(&problem)
            {
                problems.push(problem);
            }
        }
        drop(lock);
        loaded.problems = problems;
        Ok(Self(Arc::new(loaded)))
    }

    /// Returns a component from the cache, if the entry can be trusted. Problems with the cache are
    /// added to `problems`.
    fn cached(
        engines: &Engines<'_>,
        path: &Path,
        cache: &DiskCache,
        (digest, metering): (ContentDigest, Metering),
        reserve: impl Fn(&Path, &wasmtime::component::Component) -> Result<Reservation, LoadError>,
        problems: &mut Vec<CacheProblem>,
    ) -> Result<Option<Self>, LoadError> {
        for model in Model::ALL {
            let of = (digest, metering, model);
            let cached = Self::cached_for(engines, path, cache, of, &reserve, problems)?;
            if cached.is_some() {
                return Ok(cached);
            }
        }
        Ok(None)
    }

    /// Returns a component from the cache that was compiled for the engine of this model.
    fn cached_for(
        engines: &Engines<'_>,
        path: &Path,
        cache: &DiskCache,
        (digest, metering, model): (ContentDigest, Metering, Model),
        reserve: impl Fn(&Path, &wasmtime::component::Component) -> Result<Reservation, LoadError>,
        problems: &mut Vec<CacheProblem>,
    ) -> Result<Option<Self>, LoadError> {
        let key = Key::of(digest, metering, model);
        let found = cache.load(key).and_then(|entry| {
            let Some(entry) = entry else { return Ok(None) };
            let artifact = entry.artifact().map_err(|reason| cache.distrust(key, reason))?;
            // Created by this version with other settings, or for a processor that this machine
            // does not have.
            let other = |_| cache.distrust(key, "made by another engine".into());
            let component = engines.load(model, |engine| load_verified(engine, &artifact));
            Ok(Some((component.map_err(other)?, entry.described)))
        });
        let (component, described) = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(problem) => {
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
                return Ok(None);
            }
        };
        let memory = Some(reserve(path, &component)?);
        let linked = link(&component);
        let linked = linked.map_err(|problem| LoadError::invalid(path, problem))?;
        let problems = std::mem::take(problems);
        let digest = Some(digest);
        Ok(Some(Self(Arc::new(Loaded { described, problems, memory, digest, ..linked }))))
    }
}

/// Loads the code that this process has just compiled.
fn load_fresh(
    engines: &Engines<'_>,
    compiled: &CompiledCode,
) -> Result<wasmtime::component::Component, LoadError> {
    let loaded = engines.load(compiled.model(), |engine| load_compiled(engine, compiled));
    loaded.map_err(|error| LoadError::Engine(format!("{error:#}")))
}

/// Links freshly compiled code, and asks it for its description unless a section contains one. The
/// flag in the result is true if the component answered.
fn link_fresh(
    path: &Path,
    component: &wasmtime::component::Component,
    section: Option<DescribeResult>,
    read: impl FnOnce() -> Option<Vec<u8>>,
    describe: impl Fn(&Entry, &InstancePre<State>) -> Result<DescribeResult, NotNow>,
) -> Result<(Loaded, bool), LoadError> {
    let linked = link(component);
    let mut loaded = linked.map_err(|problem| LoadError::invalid(path, problem))?;
    loaded.compiled = true;
    // Only tools of other hosts are described by their types.
    let is_read = section.is_none() && loaded.entry.lane().is_foreign();
    let content = is_read.then(read).flatten().unwrap_or_default();
    let described = match (section, loaded.entry.description(component, &content)) {
        (Some(described), _) => Ok(described),
        (None, Some(description)) => Ok(DescribeResult::Description(description)),
        (None, None) if loaded.entry.describes() => describe(&loaded.entry, &loaded.instance),
        (None, None) => Ok(DescribeResult::Nothing),
    };
    let is_final = described.is_ok();
    loaded.described = described.unwrap_or_else(|NotNow(reason)| {
        DescribeResult::Unusable(format!("{reason}; it is asked again later"))
    });
    Ok((loaded, is_final))
}

/// Links a component with its imports and finds its entry point.
fn link(component: &wasmtime::component::Component) -> Result<Loaded, InvalidComponent> {
    let engine = component.engine();
    let refused = |error: wasmtime::Error| InvalidComponent::Compile(format!("{error:#}"));
    let mut linker = Linker::new(engine);
    let component_type = component.component_type();
    let entry = Entry::of(component)?;
    imports::link(&mut linker, &component_type).map_err(refused)?;
    entry.link(&mut linker).map_err(refused)?;
    let host_bytes = imports::host_bytes(engine, &component_type);
    let instance = linker.instantiate_pre(component).map_err(refused)?;
    let (described, problems) = (DescribeResult::Nothing, Vec::new());
    let (memory, digest) = (None, None);
    Ok(Loaded { instance, entry, described, problems, compiled: false, host_bytes, memory, digest })
}
