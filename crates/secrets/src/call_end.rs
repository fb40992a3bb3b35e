//! The end of a call, for code that reads values for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Signals the end of the call that needs a value. Long operations, such as a program that asks its
/// user, end with the call.
///
/// By default, the call has not ended.
#[derive(Default)]
pub struct CallEnd(Mutex<State>);

type Action = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    has_ended: bool,
    actions: BTreeMap<u64, Action>,
    next_number: u64,
}

/// An action at the end of a call. Dropping this cancels it.
#[must_use]
pub struct AtEnd<'a> {
    end: &'a CallEnd,
    number: u64,
}

impl CallEnd {
    /// Ends the call. All actions of [`at_end`](Self::at_end) are complete when this returns.
    pub fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        for (_, action) in std::mem::take(&mut state.actions) {
            action();
        }
    }

    /// Returns true if the call has ended.
    pub fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Runs an action when the call ends, on the thread that ends it, or immediately if it has
    /// ended. The action must not block. Dropping the result cancels the action.
    pub fn at_end(&self, action: impl FnOnce() + Send + 'static) -> AtEnd<'_> {
        let number = self.state().add(Box::new(action));
        AtEnd { end: self, number }
    }

    /// Starts something together with the action that ends it, so that the call cannot end in
    /// between. The action runs as in [`at_end`](Self::at_end). Starting must not block.
    ///
    /// # Errors
    ///
    /// The error of `start`.
    pub fn start<T, E, A: FnOnce() + Send + 'static>(
        &self,
        start: impl FnOnce() -> Result<(T, A), E>,
    ) -> Result<(T, AtEnd<'_>), E> {
        let mut state = self.state();
        let (started, action) = start()?;
        let number = state.add(Box::new(action));
        drop(state);
        Ok((started, AtEnd { end: self, number }))
    }

    /// A panic while this is locked leaves a consistent state.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds an action, or runs it if the call has ended.
    fn add(&mut self, action: Action) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        match self.has_ended {
            true => action(),
            false => drop(self.actions.insert(number, action)),
        }
        number
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
    fn end_actions_run_once() {
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
