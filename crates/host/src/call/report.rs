//! Events and content that a tool reports while it runs (the contract's interface `host`), and
//! events of the host before that.
//!
//! This module bounds them. Listeners decide how to show them, and how often.

use std::sync::{Arc, Mutex, PoisonError};

use kitbag_base::ByteSize;
use kitbag_contract::bindings::host;
use kitbag_contract::{Content, LogLevel, Progress};
use kitbag_engine::Compiling;
use wasmtime::component::HasData;

use crate::call::replay::Replay;
use crate::call::truncate::{truncate_line, truncate_text};
use crate::grants::HeldSecrets;

/// Maximum length of a log message, in bytes.
const LOG_BYTES: usize = 4 << 10;

/// Number of messages that a call may log, and their total size in bytes.
const LOGS: usize = 1000;
const ALL_LOG_BYTES: usize = 64 << 10;

/// Maximum length of a progress message, in bytes.
const PROGRESS_BYTES: usize = 1 << 10;

/// Number of items that a call may emit, in addition to its output limit.
const ITEMS: usize = 1000;

/// Logged when a call exceeds its number of log messages.
const DROPPED: &str = "the tool logs more than 1,000 messages or 64 KiB; the rest is dropped";

/// Receives a tool's reports while it runs.
///
/// Called on the thread of the call while the tool waits, so implementations should forward the
/// event and return. All values are bounded and untrusted.
pub trait Listener: Send + Sync {
    /// Receives a log message.
    fn log(&self, level: LogLevel, message: &str) {
        let _ = (level, message);
    }

    /// Receives progress. The completed amount increases from call to call; the tool chooses how
    /// often it reports.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// The call waits for its component to be compiled, here or by another process. Called after
    /// half a second and then about once a second; the remaining time is unknown.
    fn compiling(&self, compiling: &Compiling<'_>) {
        let _ = compiling;
    }

    /// The tool is about to run: its component is loaded and its arguments match. Called once for
    /// each run of a call.
    fn started(&self) {}
}

/// Destination of a call's events, with the progress and log of its earlier runs: a tool that is
/// run again with an answer repeats neither.
///
/// Cheap to clone; clones share one sink. By default, events are dropped.
#[derive(Clone, Default)]
pub struct EventSink {
    listening: Option<Arc<Listening>>,
    /// Applied to every message before truncation.
    mask: Option<TextMask>,
}

/// Masks a tool's text before it is forwarded.
pub type TextMask = Arc<dyn Fn(&mut String) + Send + Sync>;

struct Listening {
    listener: Arc<dyn Listener>,
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    done: Option<f64>,
    messages: usize,
    message_bytes: usize,
    is_full: bool,
}

/// Reports of one run of a tool. By default, none are accepted.
#[derive(Default)]
pub(crate) struct Reports(Option<Open>);

struct Open {
    events: EventSink,
    limit: ByteSize,
    emitted: Emitted,
    secrets: HeldSecrets,
    /// `None` if no later run can log the same messages.
    replay: Option<Replayed>,
}

/// State of a run that begins by repeating the log of an earlier run.
struct Replayed {
    replay: Replay,
    /// Number of messages logged by earlier runs.
    before: usize,
    logged: usize,
}

#[derive(Default)]
pub(crate) struct Emitted {
    pub(crate) items: Vec<Content>,
    /// Size of the accepted items.
    taken_bytes: usize,
    pub(crate) total_bytes: u64,
}

/// Names the data behind the interface for the linker.
pub(crate) struct Reporting;

impl HasData for Reporting {
    type Data<'a> = &'a mut Reports;
}

impl EventSink {
    /// Creates a sink that forwards the events of one call to a listener, across all runs that
    /// answer the tool's questions.
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        let listening = Listening { listener, heard: Mutex::default() };
        Self { listening: Some(Arc::new(listening)), mask: None }
    }

    /// Applies `mask` to every message before it is forwarded.
    #[must_use]
    pub fn masked(self, mask: TextMask) -> Self {
        Self { mask: Some(mask), ..self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listening.is_none()
    }

    pub(crate) fn compiling(&self, compiling: &Compiling<'_>) {
        if let Some(listening) = &self.listening {
            listening.listener.compiling(compiling);
        }
    }

    /// Forwards a log message, within the limits on logging.
    pub fn log(&self, level: LogLevel, message: &str) {
        if let Some(listening) = &self.listening {
            listening.log(level, self.changed(message.to_owned()));
        }
    }

    /// Forwards progress if it increases.
    pub fn progress(&self, progress: Progress) {
        if let Some(listening) = &self.listening {
            let message = progress.message.map(|message| self.changed(message));
            listening.progress(progress.done, progress.total, message);
        }
    }

    /// Reports that the tool is about to run.
    pub fn started(&self) {
        if let Some(listening) = &self.listening {
            listening.listener.started();
        }
    }

    fn changed(&self, mut text: String) -> String {
        if let Some(mask) = &self.mask {
            mask(&mut text);
        }
        text
    }
}

impl Listening {
    fn log(&self, level: LogLevel, mut message: String) {
        truncate_text(&mut message, LOG_BYTES, "message");
        let has_room = {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if heard.is_full {
                return;
            }
            let bytes = heard.message_bytes + message.len();
            heard.is_full = heard.messages == LOGS || bytes > ALL_LOG_BYTES;
            heard.messages += 1;
            heard.message_bytes = bytes;
            !heard.is_full
        };
        match has_room {
            true => self.listener.log(level, &message),
            false => self.listener.log(LogLevel::Notice, DROPPED),
        }
    }

    fn progress(&self, done: f64, total: Option<f64>, mut message: Option<String>) {
        let is_amount = |number: &f64| number.is_finite() && *number >= 0.0;
        {
            let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_amount(&done) || heard.done.is_some_and(|before| done <= before) {
                return;
            }
            heard.done = Some(done);
        }
        message.iter_mut().for_each(|message| truncate_line(message, PROGRESS_BYTES));
        // Removes the sign of a negative zero.
        let total = total.filter(is_amount).map(f64::abs);
        self.listener.progress(&Progress { done: done.abs(), total, message });
    }
}

impl Reports {
    /// Creates the reports of a run that may have a listener, with a limit on emitted content.
    pub(crate) fn new(events: EventSink, limit: ByteSize) -> Self {
        let (emitted, secrets) = (Emitted::default(), HeldSecrets::default());
        Self(Some(Open { events, limit, emitted, secrets, replay: None }))
    }

    /// Masks the call's secrets in all later reports.
    pub(crate) fn mask_with(&mut self, secrets: &HeldSecrets) {
        if let Some(open) = &mut self.0 {
            open.secrets = secrets.clone();
        }
    }

    /// Omits messages that earlier runs of the call have logged.
    pub(crate) fn go_on(&mut self, replay: &Replay) {
        if let Some(open) = &mut self.0 {
            let (replay, before) = (replay.clone(), replay.logged());
            open.replay = Some(Replayed { replay, before, logged: 0 });
        }
    }

    /// Returns true if an earlier run has logged the message.
    fn is_repeated(&mut self) -> bool {
        let Some(replayed) = self.0.as_mut().and_then(|open| open.replay.as_mut()) else {
            return false;
        };
        replayed.logged += 1;
        replayed.replay.log(replayed.logged);
        replayed.logged <= replayed.before
    }

    pub(crate) fn take_emitted(&mut self) -> Emitted {
        self.0.as_mut().map(|open| std::mem::take(&mut open.emitted)).unwrap_or_default()
    }

    fn listening(&self) -> Option<(&EventSink, &HeldSecrets)> {
        let Open { events, secrets, .. } = self.0.as_ref()?;
        (!events.is_empty()).then_some((events, secrets))
    }
}

impl Open {
    fn emit(&mut self, mut content: Content) -> Result<(), String> {
        let Self { limit, emitted, secrets, .. } = self;
        secrets.mask_content(&mut content);
        let size = content.size();
        emitted.total_bytes = emitted.total_bytes.saturating_add(size as u64);
        content.check().map_err(|error| error.to_string())?;
        if emitted.items.len() >= ITEMS {
            return Err(format!("a call emits at most {ITEMS} items"));
        }
        let left = limit.as_usize().saturating_sub(emitted.taken_bytes);
        if size > left {
            return Err(format!(
                "the item has {size} bytes, but only {left} of the output limit ({limit}) are left"
            ));
        }
        emitted.taken_bytes += size;
        emitted.items.push(content);
        Ok(())
    }
}

impl host::Host for Reports {
    fn log(&mut self, level: host::Level, mut message: String) {
        if self.is_repeated() {
            return;
        }
        if let Some((events, secrets)) = self.listening() {
            secrets.mask(&mut message);
            events.log(level.into(), &message);
        }
    }

    fn progress(&mut self, done: f64, total: Option<f64>, mut message: Option<String>) {
        if let Some((events, secrets)) = self.listening() {
            message.iter_mut().for_each(|message| secrets.mask(message));
            events.progress(Progress { done, total, message });
        }
    }

    fn emit(&mut self, content: host::Content) -> Result<(), String> {
        match &mut self.0 {
            Some(open) => open.emit(content.into()),
            None => {
                Err("a tool may emit content only during a call, not while it describes itself \
                         or renders a call"
                    .into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Notes {
        logs: Mutex<Vec<(LogLevel, String)>>,
        progress: Mutex<Vec<Progress>>,
    }

    impl Listener for Notes {
        fn log(&self, level: LogLevel, message: &str) {
            self.logs.lock().unwrap().push((level, message.to_owned()));
        }

        fn progress(&self, progress: &Progress) {
            self.progress.lock().unwrap().push(progress.clone());
        }
    }

    fn listening() -> (Arc<Notes>, Arc<Listening>) {
        let notes = Arc::<Notes>::default();
        let events = EventSink::new(Arc::clone(&notes) as Arc<dyn Listener>);
        (notes, events.listening.unwrap())
    }

    #[test]
    fn progress_without_an_increase_is_dropped() {
        let (notes, listening) = listening();
        for done in [-0.0, 1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY, 2.0] {
            listening.progress(done, Some(-1.0), None);
        }
        listening.progress(3.0, Some(f64::NAN), Some("ä".repeat(1000)));
        listening.progress(4.0, Some(2.0), Some("four".into()));
        let received = notes.progress.lock().unwrap();
        let done: Vec<_> = received.iter().map(|progress| progress.done).collect();
        assert_eq!(done, [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert!(done[0].is_sign_positive());
        let totals: Vec<_> = received.iter().map(|progress| progress.total).collect();
        assert_eq!(totals, [None, None, None, None, Some(2.0)]);
        let message = received[3].message.as_ref().unwrap();
        assert_eq!(*message, format!("{}…", "ä".repeat(510)));
        assert!(message.len() <= PROGRESS_BYTES);
    }

    #[test]
    fn a_flood_of_messages_ends_with_one_notice() {
        let check = |message: &str, times: usize, expected: usize| {
            let (notes, listening) = listening();
            for _ in 0..times {
                listening.log(LogLevel::Error, message.to_owned());
            }
            let received = notes.logs.lock().unwrap();
            let whole = (LogLevel::Error, message.to_owned());
            let kept = received.iter().take_while(|log| **log == whole).count();
            assert_eq!(kept, expected);
            let rest: Vec<_> = received[kept..].to_vec();
            let notice = (LogLevel::Notice, DROPPED.to_owned());
            assert_eq!(rest, if times > expected { vec![notice] } else { vec![] });
        };
        check("", 1000, 1000);
        check("", 5000, 1000);
        check(&"x".repeat(1024), 64, 64);
        check(&"x".repeat(1024), 65, 64);
        check(&"x".repeat(4096), 17, 16);
    }

    #[test]
    fn a_long_message_is_cut_and_marked() {
        let (notes, listening) = listening();
        listening.log(LogLevel::Info, "ä".repeat(5000));
        let received = notes.logs.lock().unwrap();
        let (_, message) = &received[0];
        assert!(message.len() <= LOG_BYTES);
        assert!(message.ends_with("ä\n[cut by kitbag: this message had 10000 bytes]"), "{message}");
    }
}
