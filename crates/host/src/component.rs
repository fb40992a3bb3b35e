//! From where a component comes to something that can be instantiated.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Seek, Take};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;

use kitbag_contract::{ByteSize, Description, FileId};
use kitbag_files::{OpenAs, OpenError, id_of, open};
use rustix::fs::{FileType, Stat};
use wasmtime::Engine;
use wasmtime::component::{ComponentExportIndex, InstancePre, Linker};

use crate::artifact::{EmbeddedArtifact, load_compiled, load_verified};
use crate::budget::{MemoryBudget, Reservation};
use crate::cache::{CacheProblem, DiskCache, Key};
use crate::call::{NotNow, State};
use crate::compile::compile;
use crate::described::Described;
use crate::engine::{Engines, Metering};
use crate::error::{InvalidComponent, LoadError};
use crate::imports;
use crate::report::Audience;
use crate::timer::Cancellation;
use crate::wait::Wait;

/// The largest component that is compiled.
pub const COMPONENT_BYTES: ByteSize = ByteSize::mib(128);

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ComponentSource {
    /// This binary.
    Embedded(EmbeddedArtifact),
    /// A `.wasm` file; an absolute path with no symbolic link on the way.
    File(PathBuf),
}

/// A component that is compiled, checked and linked.
///
/// Cheap to clone; each call makes an instance of its own from it.
#[derive(Clone)]
pub struct Component(Arc<Loaded>);

/// Which component one is, each time that it is loaded anew.
#[derive(Clone)]
pub struct ComponentIdentity(Weak<Loaded>);

impl PartialEq for ComponentIdentity {
    // An address is not used again as long as something points to it.
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

struct Loaded {
    instance: InstancePre<State>,
    run: ComponentExportIndex,
    described: Described,
    problems: Vec<CacheProblem>,
    compiled: bool,
    /// Its code, where that is not part of this binary.
    memory: Option<Reservation>,
}

/// How a component is compiled that has to be.
pub(crate) struct Compilation<'a> {
    /// The program that is started for it.
    pub(crate) program: Option<&'a Path>,
    /// What it reserves its memory from.
    pub(crate) memory: &'a MemoryBudget,
    /// Who hears how long it takes.
    pub(crate) audience: &'a Audience,
    /// What gives it up.
    pub(crate) cancellation: &'a Cancellation,
}

impl<'a> Compilation<'a> {
    fn wait(&self, path: &'a Path, size: u64) -> Wait<'a> {
        Wait::new(path, size, self.audience, self.cancellation)
    }
}

/// The components of one host, each loaded at its first use.
pub(crate) struct Components {
    memory: MemoryBudget,
    /// Those that do not count their instructions, and those that do.
    slots: [Mutex<HashMap<ComponentSource, Arc<Slot>>>; 2],
}

/// The place of one component. Whoever comes first loads it, the others wait.
#[derive(Default)]
struct Slot(Mutex<Held>);

/// What is in a slot: the file as it was loaded, and what came of it.
type Held = Option<(Stamp, Result<Component, LoadError>)>;

/// What tells whether a file is still the one that was loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stamp {
    /// Part of this binary, and never another one.
    Embedded,
    File {
        id: FileId,
        size: i64,
        modified: (i64, i64),
    },
}

/// A component's file, open and known to be one.
struct Opened<'a> {
    /// As messages name it.
    path: &'a Path,
    file: File,
    stamp: Stamp,
    size: u64,
}

impl Component {
    /// What the tool says of itself, where it does and the host has asked.
    pub fn description(&self) -> Option<&Description> {
        self.0.described.description()
    }

    /// What came of asking it, where the host has asked.
    pub fn described(&self) -> &Described {
        &self.0.described
    }

    /// What was wrong with the disk cache when this was loaded.
    pub fn cache_problems(&self) -> &[CacheProblem] {
        &self.0.problems
    }

    /// Whether this process had to compile it.
    pub fn was_compiled(&self) -> bool {
        self.0.compiled
    }

    /// What tells it from every other one, and does not keep it in memory.
    pub fn identity(&self) -> ComponentIdentity {
        ComponentIdentity(Arc::downgrade(&self.0))
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.0.instance.engine()
    }

    pub(crate) fn instance(&self) -> &InstancePre<State> {
        &self.0.instance
    }

    pub(crate) fn run(&self) -> &ComponentExportIndex {
        &self.0.run
    }
}

impl Components {
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self { memory, slots: Default::default() }
    }

    /// Reserves the memory of a component's code. Components that no call uses
    /// make room for it.
    fn reserve(
        &self,
        path: &Path,
        component: &wasmtime::component::Component,
    ) -> Result<Reservation, LoadError> {
        let image = component.image_range();
        let bytes = (image.end as usize - image.start as usize) as u64;
        let reserved = self.memory.reserve(bytes).or_else(|| {
            self.drop_idle();
            self.memory.reserve(bytes)
        });
        let size = ByteSize::bytes(bytes);
        reserved.ok_or_else(|| LoadError::NoMemory { path: path.to_owned(), size })
    }

    /// Drops the components of files that nothing but their slot holds.
    fn drop_idle(&self) {
        for metering in [Metering::Off, Metering::Fuel] {
            for (source, slot) in &*self.slots(metering) {
                if let (ComponentSource::File(_), Ok(mut held)) = (source, slot.0.try_lock())
                    && let Some((_, Ok(component))) = &*held
                    && Arc::strong_count(&component.0) == 1
                {
                    *held = None;
                }
            }
        }
    }

    /// Forgets the components of all other files. What calls use of them is dropped
    /// with those.
    pub(crate) fn retain(&self, sources: &HashSet<ComponentSource>) {
        for metering in [Metering::Off, Metering::Fuel] {
            self.slots(metering).retain(|source, _| {
                matches!(source, ComponentSource::Embedded(_)) || sources.contains(source)
            });
        }
    }

    fn slots(&self, metering: Metering) -> MutexGuard<'_, HashMap<ComponentSource, Arc<Slot>>> {
        let slots = match metering {
            Metering::Off => &self.slots[0],
            Metering::Fuel => &self.slots[1],
        };
        slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A component that is in memory, unless its file has changed or somebody
    /// loads it just now.
    pub(crate) fn loaded(&self, source: &ComponentSource, metering: Metering) -> Option<Component> {
        let slot = {
            let slots = self.slots(metering);
            Arc::clone(slots.get(source)?)
        };
        let slot = slot.0.try_lock().ok()?;
        let (stamp, component) = slot.as_ref()?;
        (*stamp == Stamp::of(source).ok()?).then(|| component.clone().ok())?
    }

    /// The component of a source: the loaded one, while its file is unchanged.
    ///
    /// `describe` asks a freshly compiled component what it says of itself;
    /// `compiling` says how it is compiled where it has to be.
    pub(crate) fn get(
        &self,
        source: &ComponentSource,
        metering: Metering,
        engines: &Engines<'_>,
        cache: Option<&DiskCache>,
        compiling: &Compilation<'_>,
        describe: impl Fn(&InstancePre<State>, &ComponentExportIndex) -> Result<Described, NotNow>,
    ) -> Result<Component, LoadError> {
        let slot = {
            let mut slots = self.slots(metering);
            match slots.get(source) {
                Some(slot) => Arc::clone(slot),
                None => Arc::clone(slots.entry(source.clone()).or_default()),
            }
        };
        // Asked before the slot is taken, so that calls do not wait for each other's
        // question.
        let stamp = Stamp::of(source)?;
        let mut slot = slot.take(source, stamp, compiling)?;
        if let Some((loaded, component)) = &*slot
            && *loaded == stamp
        {
            return component.clone();
        }
        let (stamp, component) = match source {
            ComponentSource::Embedded(artifact) => {
                (stamp, Component::embedded(engines, *artifact, metering))
            }
            ComponentSource::File(path) => {
                let opened = Opened::at(path, path)?;
                let stamp = opened.stamp;
                let reserve = |component: &_| self.reserve(path, component);
                let loaded =
                    Component::file(engines, opened, metering, cache, compiling, describe, reserve);
                (stamp, loaded)
            }
        };
        // What is no tool stays none while the file is the same; anything else
        // that went wrong may go right the next time.
        if matches!(component, Ok(_) | Err(LoadError::Invalid { .. })) {
            *slot = Some((stamp, component.clone()));
        }
        component
    }
}

impl Component {
    fn embedded(
        engines: &Engines<'_>,
        artifact: EmbeddedArtifact,
        metering: Metering,
    ) -> Result<Self, LoadError> {
        let component = artifact.load(engines.first, metering).map_err(|error| {
            LoadError::Engine(format!("the embedded tool `{}`: {error:#}", artifact.name()))
        })?;
        let linked = link(&component);
        let linked =
            linked.map_err(|problem| LoadError::invalid(Path::new(artifact.name()), problem))?;
        Ok(Self(Arc::new(linked)))
    }

    fn file(
        engines: &Engines<'_>,
        mut opened: Opened<'_>,
        metering: Metering,
        cache: Option<&DiskCache>,
        compiling: &Compilation<'_>,
        describe: impl Fn(&InstancePre<State>, &ComponentExportIndex) -> Result<Described, NotNow>,
        reserve: impl Fn(&wasmtime::component::Component) -> Result<Reservation, LoadError>,
    ) -> Result<Self, LoadError> {
        let (path, mut problems) = (opened.path, Vec::new());
        if let Some(cache) = cache
            && let Some(cached) =
                Self::cached(engines, path, cache, opened.key(metering)?, &reserve, &mut problems)?
        {
            return Ok(cached);
        }
        let content = opened.read()?;
        let wait = compiling.wait(path, content.len() as u64);
        // Of what is compiled: the file may have been written since.
        let key_of = |content: &[u8]| {
            let key = Key::of(content, metering).map_err(|error| LoadError::from_io(path, &error));
            key.map(|(key, _)| key)
        };
        let mut lock = None;
        let kept = match cache {
            Some(cache) => {
                let key = key_of(&content)?;
                lock = cache.lock(key, &wait);
                // The process that had the lock before has stored the entry by now.
                let cached = Self::cached(engines, path, cache, key, &reserve, &mut problems)?;
                if let Some(cached) = cached {
                    return Ok(cached);
                }
                Some((cache, key))
            }
            None => None,
        };
        let compiled =
            compile(&wait, content, metering, None, compiling.program, compiling.memory)?;
        let component = engines
            .load(|engine| load_compiled(engine, &compiled))
            .map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        let memory = Some(reserve(&component)?);
        let linked = link(&component);
        let mut loaded = linked.map_err(|problem| LoadError::invalid(path, problem))?;
        loaded.compiled = true;
        loaded.memory = memory;
        let described = match component.get_export_index(None, "describe") {
            Some(export) => describe(&loaded.instance, &export),
            None => Ok(Described::Nothing),
        };
        let is_final = described.is_ok();
        loaded.described = described.unwrap_or_else(|NotNow| {
            Described::Unusable("it did not answer in time, and is asked again later".into())
        });
        if let Some((cache, key)) = kept
            && is_final
            && let Err(problem) = cache.store(key, compiled.bytes(), &loaded.described)
            && !problems.contains(&problem)
        {
            problems.push(problem);
        }
        drop(lock);
        loaded.problems = problems;
        Ok(Self(Arc::new(loaded)))
    }

    /// The component of a key from the cache, if there is one that can be trusted.
    /// What is wrong with the cache is added to `problems`.
    fn cached(
        engines: &Engines<'_>,
        path: &Path,
        cache: &DiskCache,
        key: Key,
        reserve: impl Fn(&wasmtime::component::Component) -> Result<Reservation, LoadError>,
        problems: &mut Vec<CacheProblem>,
    ) -> Result<Option<Self>, LoadError> {
        let found = cache.load(key).and_then(|entry| {
            let Some(entry) = entry else { return Ok(None) };
            let artifact = entry.artifact().map_err(|reason| cache.distrust(key, reason))?;
            // Made by this version with other settings, or for a processor that
            // this machine does not have.
            let other = |_| cache.distrust(key, "made by another engine".into());
            let component = engines.load(|engine| load_verified(engine, &artifact));
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
        let memory = Some(reserve(&component)?);
        let linked = link(&component);
        let linked = linked.map_err(|problem| LoadError::invalid(path, problem))?;
        let problems = std::mem::take(problems);
        Ok(Some(Self(Arc::new(Loaded { described, problems, memory, ..linked }))))
    }
}

/// Links a component with what it imports and finds its `run`.
fn link(component: &wasmtime::component::Component) -> Result<Loaded, InvalidComponent> {
    let engine = component.engine();
    let refused = |error: wasmtime::Error| InvalidComponent::Compile(format!("{error:#}"));
    let mut linker = Linker::new(engine);
    imports::link(&mut linker, &component.component_type()).map_err(refused)?;
    let instance = linker.instantiate_pre(component).map_err(refused)?;
    let run = component.get_export_index(None, "run");
    let run = run.ok_or(InvalidComponent::NoRun { expected: crate::RUN_TYPE })?;
    let (described, problems) = (Described::Nothing, Vec::new());
    Ok(Loaded { instance, run, described, problems, compiled: false, memory: None })
}

impl Slot {
    /// Waits until nobody else loads the component, of which the audience hears.
    fn take(
        &self,
        source: &ComponentSource,
        stamp: Stamp,
        compiling: &Compilation<'_>,
    ) -> Result<MutexGuard<'_, Held>, LoadError> {
        let look = || match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match (look(), source, stamp) {
            (Some(held), ..) => Ok(held),
            (None, ComponentSource::File(path), Stamp::File { size, .. }) => {
                let wait = compiling.wait(path, size.cast_unsigned());
                wait.poll(Duration::MAX, look).ok_or(LoadError::Cancelled)
            }
            (None, ..) => Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Stamp {
    fn of(source: &ComponentSource) -> Result<Self, LoadError> {
        match source {
            ComponentSource::Embedded(_) => Ok(Self::Embedded),
            ComponentSource::File(path) => {
                // By whatever links: where it is another file, that one is opened.
                let found = rustix::fs::stat(path)
                    .map_err(|error| LoadError::from_io(path, &error.into()))?;
                Ok(Self::of_file(&found))
            }
        }
    }

    fn of_file(stat: &Stat) -> Self {
        let modified = (stat.st_mtime, stat.st_mtime_nsec.cast_signed());
        Self::File { id: id_of(stat), size: stat.st_size, modified }
    }
}

impl<'a> Opened<'a> {
    /// Opens a component's file, unless it is too large or no file at all. It may
    /// still grow while it is read, and is read no further than it takes to tell.
    ///
    /// Messages name it as `path`; it is opened as `real`, on which there is no link.
    fn at(path: &'a Path, real: &Path) -> Result<Self, LoadError> {
        let (file, stat) = open(real, OpenAs::File).map_err(|error| failed(path, error))?;
        let found = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => None,
            FileType::Directory => Some("a directory"),
            FileType::Fifo => Some("a FIFO"),
            FileType::Socket => Some("a socket"),
            _ => Some("a device"),
        };
        if let Some(found) = found {
            return Err(LoadError::NotAFile { path: path.to_owned(), found });
        }
        let size = stat.st_size.cast_unsigned();
        check_size(path, size)?;
        Ok(Self { path, file, stamp: Stamp::of_file(&stat), size })
    }

    /// The file from its start, and a little more of it than it may have.
    fn content(&mut self) -> Result<Take<&File>, LoadError> {
        self.file.rewind().map_err(|error| LoadError::from_io(self.path, &error))?;
        Ok((&self.file).take(COMPONENT_BYTES.as_u64() + 1))
    }

    /// The key of its content. The file is read a piece at a time and never
    /// mapped: whoever builds it anew in its place would end this process.
    fn key(&mut self, metering: Metering) -> Result<Key, LoadError> {
        let key = Key::of(self.content()?, metering);
        let (key, length) = key.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, length)?;
        Ok(key)
    }

    fn read(&mut self) -> Result<Vec<u8>, LoadError> {
        let mut content = Vec::with_capacity(usize::try_from(self.size).unwrap_or(0));
        let read = self.content()?.read_to_end(&mut content);
        read.map_err(|error| LoadError::from_io(self.path, &error))?;
        check_size(self.path, content.len() as u64)?;
        Ok(content)
    }
}

/// The key of a component's file.
///
/// # Errors
///
/// As for loading it.
pub(crate) fn key(path: &Path, metering: Metering) -> Result<Key, LoadError> {
    Opened::at(path, path)?.key(metering)
}

/// Reads a component's file by whatever links lead to it, unless it is too large
/// or no file at all.
///
/// # Errors
///
/// [`LoadError`] names the file and what it is instead.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let real = path.canonicalize().map_err(|error| LoadError::from_io(path, &error))?;
    Opened::at(path, &real)?.read()
}

/// Why a component's file was not opened.
fn failed(path: &Path, error: OpenError) -> LoadError {
    match error {
        OpenError::Link { path } => LoadError::Link { path },
        OpenError::Io(error) => LoadError::from_io(path, &error),
        OpenError::Kernel { .. } => {
            LoadError::Unreadable { path: path.to_owned(), reason: error.to_string() }
        }
    }
}

/// Refuses a component that is too large.
fn check_size(path: &Path, size: u64) -> Result<(), LoadError> {
    if size <= COMPONENT_BYTES.as_u64() {
        return Ok(());
    }
    let (path, size) = (path.to_owned(), ByteSize::bytes(size));
    Err(LoadError::TooLarge { path, size, limit: COMPONENT_BYTES })
}
