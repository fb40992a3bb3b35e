//! One state of the files, and the changes from one state to the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kitbag_toolbox::{ServedItems, Toolbox};

use crate::methods::catalog::Catalog;
use crate::server::background::Precompile;
use crate::server::{Server, WeakServer};

/// The number of changes of each list and each readable document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: u64,
    pub(crate) resources: u64,
    pub(crate) prompts: u64,
    /// Changes of the documents of a topic, by the topic's id.
    pub(crate) topics: BTreeMap<String, u64>,
    pub(crate) components: u64,
    pub(crate) trust: u64,
}

/// One state of the files. Running calls keep their generation until they end.
pub(crate) struct Generation {
    pub(crate) toolbox: Toolbox,
    pub(crate) served: ServedCache,
    catalog: Mutex<Option<Arc<Catalog>>>,
}

/// A generation whose components are compiled before their calls.
pub(super) struct GenerationPrecompile {
    pub(super) server: WeakServer,
    pub(super) generation: Arc<Generation>,
}

impl Precompile for GenerationPrecompile {
    fn toolbox(&self) -> &Toolbox {
        &self.generation.toolbox
    }

    fn learned(&self, name: &str) {
        if let Some(server) = self.server.upgrade() {
            self.generation.learned(&server, name);
        }
    }

    fn is_over(&self) -> bool {
        self.server.upgrade().is_none_or(|server| server.closing().is_cancelled())
    }
}

impl Generation {
    pub(crate) fn new(toolbox: Toolbox) -> Self {
        Self { toolbox, served: ServedCache::default(), catalog: Mutex::default() }
    }

    /// Returns the tools, which are read on first use.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let catalog = catalog.get_or_insert_with(|| Arc::new(Catalog::of(&self.toolbox)));
        Arc::clone(catalog)
    }

    pub(crate) fn known_catalog(&self) -> Option<Arc<Catalog>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a tool was loaded, also in the generation that has since replaced this one.
    pub(crate) fn learned(&self, server: &Server, name: &str) {
        self.note_loaded(server, name);
        let current = server.generation();
        if !std::ptr::eq(&*current, self) {
            current.note_loaded(server, name);
        }
    }

    /// Reads the list again if the tool had no description when the tools were listed.
    fn note_loaded(&self, server: &Server, name: &str) {
        let mut catalog = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = catalog
            .as_ref()
            .is_some_and(|c| c.undescribed.iter().any(|undescribed| undescribed == name));
        if is_news {
            *catalog = None;
            server.tell(|changes| changes.tools += 1);
        }
        drop(catalog);
        if self.served.learned(&self.toolbox, name) {
            server.tell(|changes| {
                changes.prompts += 1;
                changes.resources += 1;
            });
        }
    }
}

/// The prompts and resources of one generation, read on first use.
#[derive(Default)]
pub(crate) struct ServedCache(Mutex<Option<Arc<ServedItems>>>);

impl ServedCache {
    pub(crate) fn get(&self, toolbox: &Toolbox) -> Arc<ServedItems> {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let served = served.get_or_insert_with(|| {
            let served = toolbox.known_served();
            for problem in &served.problems {
                tracing::warn!("{problem}");
            }
            Arc::new(served)
        });
        Arc::clone(served)
    }

    pub(crate) fn known(&self) -> Option<Arc<ServedItems>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that a tool was loaded. Reads its prompts and resources again if they were unknown.
    /// Returns whether the tool serves more than was known.
    pub(crate) fn learned(&self, toolbox: &Toolbox, name: &str) -> bool {
        let mut served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = served.as_ref().is_some_and(|served| {
            served.undescribed.iter().any(|undescribed| undescribed.as_str() == name)
        });
        if !is_news {
            return false;
        }
        *served = None;
        drop(served);
        toolbox.serves_more(name)
    }
}
