//! What one generation serves besides tools, kept once it is known.

use std::sync::{Arc, Mutex, PoisonError};

use kitbag_toolbox::{Served, Toolbox};

/// What one generation serves, once it was read.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<Arc<Served>>>);

impl Slot {
    /// What is served, read at the first time.
    pub(crate) fn get(&self, toolbox: &Toolbox) -> Arc<Served> {
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

    /// What is served, if it has been read.
    pub(crate) fn known(&self) -> Option<Arc<Served>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that a tool was loaded. If it was not known what the tool serves, it is read
    /// again. Returns whether the tool serves more than was known.
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
