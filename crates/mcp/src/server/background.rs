//! Compiles components before their first call.
//!
//! One low-priority thread compiles them one after the other. Components whose description is not
//! known come first, since clients list descriptions. The thread ends when everything is compiled.
//! A server without tool files has no such thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use kitbag_host::Cancellation;
use kitbag_toolbox::Toolbox;
use tokio::sync::watch;

/// Maximum time that a listing waits for components to describe themselves.
pub(crate) const LISTING_TIME: Duration = Duration::from_millis(300);

/// A toolbox whose components are compiled ahead of their calls.
pub(crate) trait Precompile: Send + Sync {
    fn toolbox(&self) -> &Toolbox;

    /// Records that a tool's description is now known.
    fn learned(&self, name: &str);

    fn is_over(&self) -> bool;
}

/// Compiles the components of one toolbox after the other.
pub(crate) struct Background {
    work: Mutex<Work>,
    /// `true` once no more components are compiled for their descriptions.
    is_described: watch::Sender<bool>,
    /// Cancels the current compilation.
    cancellation: Cancellation,
}

#[derive(Default)]
struct Work {
    /// The toolbox that the thread compiles next; the rest of the current toolbox is skipped.
    next: Option<Box<dyn Precompile>>,
    is_running: bool,
}

impl Default for Background {
    fn default() -> Self {
        let cancellation = Cancellation::default();
        Self { work: Mutex::default(), is_described: watch::Sender::new(true), cancellation }
    }
}

impl Background {
    /// Starts to compile the components of a toolbox, and stops compiling those of the previous
    /// one.
    pub(crate) fn start(self: &Arc<Self>, ahead: impl Precompile + 'static) {
        let has_work = ahead.toolbox().has_files();
        let mut work = self.work();
        self.is_described.send_replace(!has_work);
        if has_work || work.is_running {
            work.next = Some(Box::new(ahead));
        }
        if work.next.is_none() || work.is_running {
            return;
        }
        let (background, cancellation) = (Arc::downgrade(self), self.cancellation.clone());
        let thread = thread::Builder::new().name("compile-ahead".into());
        match thread.spawn(move || compile_all(&background, &cancellation)) {
            Ok(_) => work.is_running = true,
            Err(error) => {
                tracing::warn!("tools are not compiled in advance: {error}");
                work.next = None;
                self.is_described.send_replace(true);
            }
        }
    }

    /// Waits until all components are described, at most for `time`.
    pub(crate) async fn described(&self, time: Duration) {
        let mut is_described = self.is_described.subscribe();
        let wait = is_described.wait_for(|is_described| *is_described);
        // Components that are not described by then are listed with their configured description.
        let _ = tokio::time::timeout(time, wait).await;
    }

    /// Returns the next toolbox. `None` ends the thread.
    fn next(&self) -> Option<Box<dyn Precompile>> {
        let mut work = self.work();
        let next = work.next.take();
        work.is_running = next.is_some();
        next
    }

    fn is_superseded(&self) -> bool {
        self.work().next.is_some()
    }

    /// Records that all components of a toolbox are described, if possible, unless another toolbox
    /// has replaced it.
    fn set_described(&self) {
        let work = self.work();
        if work.next.is_none() {
            self.is_described.send_replace(true);
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

fn compile_all(background: &Weak<Background>, cancellation: &Cancellation) {
    // Holds the server only between two steps.
    let next = || background.upgrade()?.next();
    while let Some(ahead) = next() {
        let undescribed = ahead.toolbox().undescribed();
        let compile = |name: &str| compile_one(background, &*ahead, name, cancellation);
        if !undescribed.iter().all(|name| compile(name.as_str())) {
            continue;
        }
        if let Some(background) = background.upgrade() {
            background.set_described();
        }
        let _ = ahead.toolbox().uncompiled().iter().all(|name| {
            // A second attempt would fail as well.
            undescribed.contains(name) || compile(name.as_str())
        });
    }
}

/// Compiles one tool. Returns whether to continue with the next.
fn compile_one(
    background: &Weak<Background>,
    ahead: &dyn Precompile,
    name: &str,
    cancellation: &Cancellation,
) -> bool {
    let is_superseded = |background: Arc<Background>| background.is_superseded();
    if background.upgrade().is_none_or(is_superseded) || ahead.is_over() {
        return false;
    }
    match ahead.toolbox().compile_ahead(name, cancellation) {
        Ok(()) => ahead.learned(name),
        Err(_) if cancellation.is_cancelled() => return false,
        Err(error) => tracing::warn!(tool = name, "cannot be loaded: {error}"),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.unwrap().block_on(work)
    }

    #[test]
    fn listing_waits_for_descriptions_up_to_its_limit() {
        let background = Background::default();
        // Nothing is being compiled.
        block_on(background.described(Duration::MAX));
        background.is_described.send_replace(false);
        block_on(background.described(Duration::ZERO));
        block_on(async {
            let described = background.described(Duration::from_secs(3_600));
            tokio::join!(described, async { background.set_described() });
        });
    }
}
