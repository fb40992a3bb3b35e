//! The end of a call, for what reads values for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When the call that needs a value ends. What takes a while, such as a program that asks its
/// user, ends with it.
///
/// The default is a call that has not ended.
#[derive(Default)]
pub struct CallEnd(Mutex<State>);

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    has_ended: bool,
    actions: BTreeMap<u64, Action>,
    next_number: u64,
}

/// What happens at the end of a call, until this is dropped.
#[must_use]
pub struct AtEnd<'a> {
    end: &'a CallEnd,
    number: u64,
}

impl CallEnd {
    /// Ends the call. What [`at_end`](Self::at_end) was given has been done when this returns.
    pub fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        for (_, action) in std::mem::take(&mut state.actions) {
            action();
        }
    }

    /// Whether the call has ended.
    pub fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Does this when the call ends, on the thread that ends it; at once where it has ended.
    /// It must not wait. Once the result was dropped it is not done any more.
    pub fn at_end(&self, action: impl FnOnce() + Send + 'static) -> AtEnd<'_> {
        let mut state = self.state();
        let number = state.next_number;
        state.next_number += 1;
        match state.has_ended {
            true => action(),
            false => drop(state.actions.insert(number, Box::new(action))),
        }
        AtEnd { end: self, number }
    }

    /// A panic while this is held leaves nothing half-done behind.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.end.state().actions.remove(&self.number);
    }
}

impl fmt::Debug for CallEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEnd").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn what_is_to_be_done_at_the_end_is_done_once() {
        let end = CallEnd::default();
        let (sender, done) = mpsc::channel();
        let note = |number: u32| {
            let sender = sender.clone();
            move || sender.send(number).unwrap()
        };
        let _first = end.at_end(note(1));
        drop(end.at_end(note(2)));
        let _third = end.at_end(note(3));
        assert!(!end.has_ended());
        assert_eq!(done.try_iter().count(), 0);
        end.end();
        assert!(end.has_ended());
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [1, 3]);
        let _late = end.at_end(note(4));
        end.end();
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [4]);
    }
}
