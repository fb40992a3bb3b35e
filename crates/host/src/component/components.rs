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
use wasmtime::component::{ComponentExportIndex, InstancePre};

use crate::call::state::State;
use crate::component::{Compilation, Component, ComponentSource};
use crate::description::NotNow;
use crate::schedule::budget::{MemoryBudget, Reservation};

/// The components of one host, each loaded at its first use.
pub(crate) struct Components {
    memory: MemoryBudget,
    /// Those that do not count their instructions, and those that do.
    slots: [Mutex<HashMap<ComponentSource, Arc<Slot>>>; 2],
}

/// The slot of one component. The first call that needs it loads it; the others wait.
#[derive(Default)]
struct Slot(Mutex<SlotContent>);

/// What is in a slot: the file as it was loaded, where it is one, and what came of it.
type SlotContent = Option<(Option<Stamp>, Result<Component, LoadError>)>;

impl Components {
    pub(crate) fn new(memory: MemoryBudget) -> Self {
        Self { memory, slots: Default::default() }
    }

    /// Reserves the memory of a component's code. Components that no call uses
    /// make room for it.
    fn reserve(&self, path: &Path, bytes: u64) -> Result<Reservation, LoadError> {
        let reserved = self.memory.reserve(bytes).or_else(|| {
            self.drop_idle();
            self.memory.reserve(bytes)
        });
        let size = ByteSize::bytes(bytes);
        reserved.ok_or_else(|| LoadError::NoMemory { path: path.to_owned(), size })
    }

    /// An embedded component. What its code takes is never given back.
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

    /// Drops the components that were compiled and that nothing but their slot holds.
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

    /// Forgets the components of all other sources but this binary. What calls use of them is dropped
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

    /// A component that is in memory, unless its file has changed or
    /// another call is loading it.
    pub(crate) fn loaded(&self, source: &ComponentSource, metering: Metering) -> Option<Component> {
        let slot = {
            let slots = self.slots(metering);
            Arc::clone(slots.get(source)?)
        };
        let slot = slot.0.try_lock().ok()?;
        let (stamp, component) = slot.as_ref()?;
        (*stamp == stamp_of(source).ok()?).then(|| component.clone().ok())?
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
        describe: impl Fn(&InstancePre<State>, &ComponentExportIndex) -> Result<DescribeResult, NotNow>,
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
        let stamp = stamp_of(source)?;
        let mut slot = slot.take(source, stamp, compiling)?;
        // It may have more time to compile now.
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
        // An invalid component stays invalid while its file is the same; any other error
        // may be gone the next time. With a low priority it may also have taken too long
        // only for that.
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
    /// Waits until no other call loads the component, which is reported.
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

/// The stamp of a component's file; none where it is in memory.
fn stamp_of(source: &ComponentSource) -> Result<Option<Stamp>, LoadError> {
    match source {
        ComponentSource::Embedded(_) | ComponentSource::Bytes(_) => Ok(None),
        ComponentSource::File(file) => Stamp::of(&file.path).map(Some),
    }
}
