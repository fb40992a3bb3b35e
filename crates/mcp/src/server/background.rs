//! Compiles and loads components before their first call.
//!
//! One low-priority thread loads them one after the other. Components whose description is not
//! known come first, since clients list descriptions. Built-in tools come last, once a client has
//! started a session. The thread ends when everything is loaded.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread;
use std::time::Duration;

use kitbag_base::text::printable;
use kitbag_contract::ToolName;
use kitbag_host::{Cancellation, lower_thread_priority};
use kitbag_toolbox::Toolbox;
use tokio::sync::watch;

use crate::server::Server;

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
    /// The toolbox whose built-in tools the thread loads after that.
    builtins: Option<Box<dyn Precompile>>,
    is_running: bool,
    /// Is disconnected when the last thread ends.
    thread: Option<mpsc::Receiver<Infallible>>,
}

/// Components of a toolbox to load.
enum Job {
    Files(Box<dyn Precompile>),
    Builtins(Box<dyn Precompile>),
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
        self.run(work);
    }

    /// Starts to load the built-in tools of a toolbox.
    pub(crate) fn load_builtins(self: &Arc<Self>, ahead: impl Precompile + 'static) {
        let mut work = self.work();
        work.builtins = Some(Box::new(ahead));
        self.run(work);
    }

    /// Starts the thread if there is work for it.
    fn run(self: &Arc<Self>, mut work: MutexGuard<'_, Work>) {
        let has_work = work.next.is_some() || work.builtins.is_some();
        if !has_work || work.is_running {
            return;
        }
        let (background, cancellation) = (Arc::downgrade(self), self.cancellation.clone());
        let (is_alive, thread) = mpsc::channel();
        work.thread = Some(thread);
        let run = move || {
            compile_all(&background, &cancellation);
            drop(is_alive);
        };
        let name = if work.next.is_some() { "compile-ahead" } else { "load-ahead" };
        match thread::Builder::new().name(name.into()).spawn(run) {
            Ok(_) => work.is_running = true,
            Err(error) => {
                tracing::warn!("tools are not compiled in advance: {error}");
                (work.next, work.builtins) = (None, None);
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

    /// Cancels the work and waits for the thread, at most for `time`: a component that describes
    /// itself cannot be cancelled.
    pub(crate) fn stop(&self, time: Duration) {
        self.cancellation.cancel();
        let mut work = self.work();
        (work.next, work.builtins) = (None, None);
        let thread = work.thread.take();
        drop(work);
        // The thread sends nothing.
        let _ = thread.map(|thread| thread.recv_timeout(time));
    }

    /// Returns the next job. `None` ends the thread.
    fn next(&self) -> Option<Job> {
        let mut work = self.work();
        let next = work.next.take().map(Job::Files);
        let next = next.or_else(|| work.builtins.take().map(Job::Builtins));
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
    while let Some(job) = next() {
        let ahead = match job {
            Job::Files(ahead) => ahead,
            Job::Builtins(ahead) => {
                lower_thread_priority();
                let unloaded = ahead.toolbox().unloaded_builtins();
                let load = |name: &ToolName| compile_one(background, &*ahead, name, cancellation);
                let _ = unloaded.iter().all(load);
                continue;
            }
        };
        let undescribed = ahead.toolbox().undescribed();
        let compile = |name: &ToolName| compile_one(background, &*ahead, name, cancellation);
        if !undescribed.iter().all(compile) {
            continue;
        }
        if let Some(background) = background.upgrade() {
            background.set_described();
        }
        let _ = ahead.toolbox().uncompiled().iter().all(|name| {
            // A second attempt would fail as well.
            undescribed.contains(name) || compile(name)
        });
    }
}

/// Compiles one tool. Returns whether to continue with the next.
fn compile_one(
    background: &Weak<Background>,
    ahead: &dyn Precompile,
    name: &ToolName,
    cancellation: &Cancellation,
) -> bool {
    let is_superseded = |background: Arc<Background>| background.is_superseded();
    if background.upgrade().is_none_or(is_superseded)
        || cancellation.is_cancelled()
        || ahead.is_over()
    {
        return false;
    }
    match ahead.toolbox().compile_ahead(name.as_str(), cancellation) {
        Ok(()) => ahead.learned(name.as_str()),
        Err(_) if cancellation.is_cancelled() => return false,
        Err(error) => tracing::warn!(tool = name.as_str(), "cannot be loaded: {error}"),
    }
    true
}

/// Starts the MCP servers whose tools are offered, one after the other, on a thread that ends
/// afterwards, to learn their prompts and resources and to warn of changed tools.
///
/// The thread has the usual priority, because the processes of servers inherit it.
pub(super) fn check_servers(server: &Server) {
    let names = server.generation().toolbox.servers_to_check();
    if names.is_empty() {
        return;
    }
    let server = server.downgrade();
    let check = move || {
        for name in names {
            let Some(toolbox) = server.upgrade().map(|it| it.generation().toolbox.clone()) else {
                return;
            };
            let problems = toolbox.check_server(&name);
            // The end of kitbag is not a problem of the server.
            if server.upgrade().is_none_or(|server| server.closing().is_cancelled()) {
                return;
            }
            problems.iter().for_each(|problem| tracing::warn!("{}", printable(problem)));
        }
    };
    if let Err(error) = thread::Builder::new().name("check-servers".into()).spawn(check) {
        tracing::warn!("servers are not checked in advance: {error}");
    }
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
