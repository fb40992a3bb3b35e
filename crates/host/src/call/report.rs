//! What a tool tells while it runs, and gives besides its text: the interface
//! `host` of the contract. And what the host itself tells before that.
//!
//! Here are its bounds. How it is shown, and how often, is left to the
//! listens.

use std::sync::{Arc, Mutex, PoisonError};

use kitbag_base::ByteSize;
use kitbag_contract::bindings::host;
use kitbag_contract::{Content, LogLevel, Progress};
use kitbag_engine::Compiling;
use wasmtime::component::HasData;

use crate::call::replay::Replay;
use crate::call::truncate::{truncate_line, truncate_text};
use crate::grants::HeldSecrets;

/// The longest message of a log, in bytes.
const LOG_BYTES: usize = 4 << 10;

/// How many messages a call logs, and how many bytes in all.
const LOGS: usize = 1000;
const ALL_LOG_BYTES: usize = 64 << 10;

/// The longest message of a progress, in bytes.
const PROGRESS_BYTES: usize = 1 << 10;

/// How much a call emits besides what its output limit says.
const ITEMS: usize = 1000;

/// What is logged when there were more messages than a call may log.
const DROPPED: &str = "the tool logs more than 1,000 messages or 64 KiB; the rest is dropped";

/// Receives what a tool reports while it runs.
///
/// Called on the thread of the call, while the tool waits: it should hand on
/// what it got and return. Everything that it gets is bounded, and untrusted.
pub trait Listener: Send + Sync {
    /// The tool logs a message.
    fn log(&self, level: LogLevel, message: &str) {
        let _ = (level, message);
    }

    /// The tool tells how far it is. What is done rises from one time to the
    /// next; how often there is a next time is the tool's.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// The call waits for its component, which is compiled here or by another
    /// process. Reported half a second after that began and about once a second from
    /// then on; how much is left is unknown.
    fn compiling(&self, compiling: &Compiling<'_>) {
        let _ = compiling;
    }

    /// The tool is about to run: its component is loaded and its arguments fit. Once
    /// for each run of a call.
    fn started(&self) {}
}

/// Where the events of a call go, and which there were so far: a tool that is run
/// again with an answer begins neither its progress nor its log anew.
///
/// Cheap to clone; clones are the same sink. Default: they are dropped.
#[derive(Clone, Default)]
pub struct EventSink {
    listening: Option<Arc<Listening>>,
    /// What every text goes through, before it is cut.
    mask: Option<TextMask>,
}

/// Changes a text of a tool before anybody gets it.
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

/// What one run of a tool reports. Default: nothing is taken.
#[derive(Default)]
pub(crate) struct Reports(Option<Open>);

struct Open {
    events: EventSink,
    limit: ByteSize,
    emitted: Emitted,
    secrets: HeldSecrets,
    /// `None` where no later run logs the same.
    replay: Option<Replayed>,
}

/// The log of a run that begins as the one before.
struct Replayed {
    replay: Replay,
    /// What was logged before.
    before: usize,
    logged: usize,
}

#[derive(Default)]
pub(crate) struct Emitted {
    pub(crate) items: Vec<Content>,
    /// The size of the items that were taken.
    taken_bytes: usize,
    pub(crate) total_bytes: u64,
}

/// Names the data behind the interface for the linker.
pub(crate) struct Reporting;

impl HasData for Reporting {
    type Data<'a> = &'a mut Reports;
}

impl EventSink {
    /// Passes the events of one call on to a listener: of all the runs that it takes
    /// to have its questions answered.
    pub fn new(listener: Arc<dyn Listener>) -> Self {
        let listening = Listening { listener, heard: Mutex::default() };
        Self { listening: Some(Arc::new(listening)), mask: None }
    }

    /// Has `mask` change every message before it is passed on.
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

    /// Passes a log message on, as far as a call may log.
    pub fn log(&self, level: LogLevel, message: &str) {
        if let Some(listening) = &self.listening {
            listening.log(level, self.changed(message.to_owned()));
        }
    }

    /// Passes progress on, where it rises.
    pub fn progress(&self, progress: Progress) {
        if let Some(listening) = &self.listening {
            let message = progress.message.map(|message| self.changed(message));
            listening.progress(progress.done, progress.total, message);
        }
    }

    pub(crate) fn started(&self) {
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
        // A zero has no sign here.
        let total = total.filter(is_amount).map(f64::abs);
        self.listener.progress(&Progress { done: done.abs(), total, message });
    }
}

impl Reports {
    /// A run that may have a listener, and whose content is taken up to this
    /// limit.
    pub(crate) fn new(events: EventSink, limit: ByteSize) -> Self {
        let (emitted, secrets) = (Emitted::default(), HeldSecrets::default());
        Self(Some(Open { events, limit, emitted, secrets, replay: None }))
    }

    /// Has the secrets of a call masked in what is reported from now on.
    pub(crate) fn mask_with(&mut self, secrets: &HeldSecrets) {
        if let Some(open) = &mut self.0 {
            open.secrets = secrets.clone();
        }
    }

    /// Leaves out of the log what earlier runs of the call have logged.
    pub(crate) fn go_on(&mut self, replay: &Replay) {
        if let Some(open) = &mut self.0 {
            let (replay, before) = (replay.clone(), replay.logged());
            open.replay = Some(Replayed { replay, before, logged: 0 });
        }
    }

    /// Whether a message is one that an earlier run has logged.
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
                "the item has {size} bytes, more than the {left} that are left of the output \
                 limit ({limit})"
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
            None => Err("there is no answer to add to: a tool emits while it runs, not while it \
                         describes itself or renders a call"
                .into()),
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
    fn progress_that_does_not_rise_is_dropped() {
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
