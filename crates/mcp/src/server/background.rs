//! Components that are compiled before their first call.
//!
//! One thread compiles them one after the other, with a low priority: first those of
//! which it is not known what they say of themselves, since clients list that. It ends
//! when there is nothing left to compile. A server without tools of files has none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use kitbag_host::Cancellation;
use kitbag_toolbox::Toolbox;
use tokio::sync::watch;

/// How long a listing waits at most for what components say of themselves.
pub(crate) const LISTING_TIME: Duration = Duration::from_millis(300);

/// A toolbox whose components are compiled ahead of their calls.
pub(crate) trait Precompile: Send + Sync {
    fn toolbox(&self) -> &Toolbox;

    /// Notes that more is known of a tool than before.
    fn learned(&self, name: &str);

    fn is_over(&self) -> bool;
}

/// Compiles the components of one toolbox after the other.
pub(crate) struct Background {
    work: Mutex<Work>,
    /// Whether nothing more is compiled to learn what a component says of itself.
    is_described: watch::Sender<bool>,
    /// Gives up what is being compiled.
    cancellation: Cancellation,
}

#[derive(Default)]
struct Work {
    /// What the thread turns to next, leaving what it has not begun.
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
    /// Has the components of a toolbox compiled, and no longer those of the one
    /// before.
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
                tracing::warn!("no tool is compiled before it is called: {error}");
                work.next = None;
                self.is_described.send_replace(true);
            }
        }
    }

    /// Waits until all is known that components say of themselves, and no longer than
    /// this.
    pub(crate) async fn described(&self, time: Duration) {
        let mut is_described = self.is_described.subscribe();
        let wait = is_described.wait_for(|is_described| *is_described);
        // Those that are not known by then are listed with what configuration says.
        let _ = tokio::time::timeout(time, wait).await;
    }

    /// The next toolbox. Without one the thread has to end.
    fn next(&self) -> Option<Box<dyn Precompile>> {
        let mut work = self.work();
        let next = work.next.take();
        work.is_running = next.is_some();
        next
    }

    fn is_superseded(&self) -> bool {
        self.work().next.is_some()
    }

    /// Notes that all is known of a toolbox that can be, unless another has taken its
    /// place.
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
    // The server is kept alive between two steps only.
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
            // What has just failed would fail again.
            undescribed.contains(name) || compile(name.as_str())
        });
    }
}

/// Compiles one tool: whether to go on with the next.
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
    fn a_listing_waits_for_what_tools_say_and_not_for_longer_than_it_may() {
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
