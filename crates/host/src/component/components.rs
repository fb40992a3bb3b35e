//! The components of one host, each loaded at its first use.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use kitbag_base::ByteSize;
use kitbag_engine::{
    Content, DescribeResult, DiskCache, Engines, LoadError, Metering, NativeCode, OpenComponent,
    Stamp,
};
use wasmtime::component::InstancePre;

use crate::call::state::State;
use crate::component::{Compilation, Component, ComponentSource};
use crate::description::NotNow;
use crate::lanes::Entry;
use crate::schedule::budget::{MemoryBudget, Reservation};

/// The components of one host, each loaded at its first use.
pub(crate) struct Components {
    memory: MemoryBudget,
    /// Components without instruction counting, then components with it.
    slots: [Mutex<HashMap<ComponentSource, Arc<Slot>>>; 2],
}

/// The slot of one component. The first call that needs the component loads it; other calls wait.
#[derive(Default)]
struct Slot(Mutex<SlotContent>);

/// Content of a slot: the stamp of the loaded file, if any, and the result of loading.
type SlotContent = Option<(Option<Stamp>, Result<Component, LoadError>)>;

impl Components {
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self { memory, slots: Default::default() }
    }

    /// Reserves memory for a component's code. Evicts components that no call uses.
    fn reserve(&self, path: &Path, bytes: u64) -> Result<Reservation, LoadError> {
        let reserved = self.memory.reserve(bytes).or_else(|| {
            self.drop_idle();
            self.memory.reserve(bytes)
        });
        let size = ByteSize::bytes(bytes);
        reserved.ok_or_else(|| LoadError::NoMemory { path: path.to_owned(), size })
    }

    /// Loads an embedded component. The memory of its code is never released.
    fn embedded(
        &self,
        engines: &Engines<'_>,
        name: &str,
        native: NativeCode,
    ) -> Result<Component, LoadError> {
        let memory = self.reserve(Path::new(name), native.memory())?;
        let component = Component::embedded(engines, name, native)?;
        mem::forget(memory);
        Ok(component)
    }

    /// Drops compiled components that only their slot holds.
    fn drop_idle(&self) {
        for metering in [Metering::Off, Metering::Fuel] {
            for slot in self.slots(metering).values() {
                if let Ok(mut held) = slot.0.try_lock()
                    && let Some((_, Ok(component))) = &*held
                    && component.has_code_of_its_own()
                    && component.is_idle()
                {
                    *held = None;
                }
            }
        }
    }

    /// Forgets all components except those of `sources` and of this binary. A component in use is
    /// dropped when its last call ends.
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

    /// Returns a component that is in memory, unless its file has changed or another call is
    /// loading it.
    pub(crate) fn loaded(&self, source: &ComponentSource, metering: Metering) -> Option<Component> {
        let slot = {
            let slots = self.slots(metering);
            Arc::clone(slots.get(source)?)
        };
        let slot = slot.0.try_lock().ok()?;
        let (stamp, component) = slot.as_ref()?;
        (*stamp == stamp_of(source).ok()?).then(|| component.clone().ok())?
    }

    /// Returns the component of a source, from memory if its file is unchanged.
    ///
    /// `describe` asks a freshly compiled component for its description; `compiling` configures
    /// any compilation.
    pub(crate) fn get(
        &self,
        source: &ComponentSource,
        metering: Metering,
        engines: &Engines<'_>,
        cache: Option<&DiskCache>,
        compiling: &Compilation<'_>,
        describe: impl Fn(&Entry, &InstancePre<State>) -> Result<DescribeResult, NotNow>,
    ) -> Result<Component, LoadError> {
        let slot = {
            let mut slots = self.slots(metering);
            match slots.get(source) {
                Some(slot) => Arc::clone(slot),
                None => Arc::clone(slots.entry(source.clone()).or_default()),
            }
        };
        // Read before the slot is locked, so that calls do not wait for each other's file access.
        let stamp = stamp_of(source)?;
        let mut slot = slot.take(source, stamp, compiling)?;
        // A longer time limit may now let the component compile.
        let is_final = |component: &Result<_, LoadError>| match component {
            Err(LoadError::Invalid { problem, .. }) => !problem.has_more_time(compiling.time),
            Ok(_) | Err(_) => true,
        };
        if let Some((loaded, component)) = &*slot
            && *loaded == stamp
            && is_final(component)
        {
            return component.clone();
        }
        let reserve = |path: &Path, component: &wasmtime::component::Component| {
            let image = component.image_range();
            self.reserve(path, (image.end as usize - image.start as usize) as u64)
        };
        let (stamp, component) = match source {
            ComponentSource::Embedded(artifact) => {
                let component = match artifact.native(metering) {
                    Some(native) => self.embedded(engines, artifact.name(), native),
                    None => Component::compiled(
                        engines, *artifact, metering, cache, compiling, describe, reserve,
                    )
                    .map_err(|error| match error {
                        LoadError::NoCompiler => {
                            LoadError::BuiltinUncompiled { name: artifact.name(), metering }
                        }
                        error => error,
                    }),
                };
                (stamp, component)
            }
            ComponentSource::File(file) => {
                let opened = OpenComponent::new(file)?;
                let stamp = opened.stamp;
                let loaded = Component::compiled(
                    engines, opened, metering, cache, compiling, describe, reserve,
                );
                (Some(stamp), loaded)
            }
            ComponentSource::Bytes(bytes) => {
                let bytes = bytes.clone();
                let loaded = Component::compiled(
                    engines, bytes, metering, cache, compiling, describe, reserve,
                );
                (stamp, loaded)
            }
        };
        // An invalid component stays invalid while its file is unchanged; any other error may be
        // gone next time. With a low priority, even a compilation timeout may be temporary.
        let is_kept = match &component {
            Ok(_) => true,
            Err(LoadError::Invalid { .. }) => !compiling.context.is_background,
            Err(_) => false,
        };
        if is_kept {
            *slot = Some((stamp, component.clone()));
        }
        component
    }
}

impl Slot {
    /// Waits until no other call loads the component, and reports the wait.
    fn take(
        &self,
        source: &ComponentSource,
        stamp: Option<Stamp>,
        compiling: &Compilation<'_>,
    ) -> Result<MutexGuard<'_, SlotContent>, LoadError> {
        let look = || match self.0.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(held) = look() {
            return Ok(held);
        }
        let compiled = match (source, stamp) {
            (ComponentSource::File(file), Some(Stamp { size, .. })) => Some((&*file.path, size)),
            (ComponentSource::Bytes(bytes), _) => Some((bytes.path(), bytes.size())),
            (ComponentSource::File(_) | ComponentSource::Embedded(_), _) => None,
        };
        match compiled {
            Some((path, size)) => {
                let wait = compiling.wait(path, size);
                wait.poll(Duration::MAX, look).ok_or(LoadError::Cancelled)
            }
            None => Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Returns the stamp of a component's file, or `None` for a component in memory.
fn stamp_of(source: &ComponentSource) -> Result<Option<Stamp>, LoadError> {
    match source {
        ComponentSource::Embedded(_) | ComponentSource::Bytes(_) => Ok(None),
        ComponentSource::File(file) => Stamp::of(&file.path).map(Some),
    }
}
