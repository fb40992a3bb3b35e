//! Calls that wait for an answer after they have called other tools.
//!
//! The answers of those tools stay here, under an id that goes on with the call once: what
//! has been done is not done again, and nothing of it travels.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use kitbag_host::{MemoryBudget, Reservation};
use kitbag_toolbox::InnerCalls;

use crate::state_codec::{Binding, LIFETIME};

/// How many calls are kept; where one more comes, the oldest goes.
const MOST: usize = 256;

/// The calls of one server.
#[derive(Default)]
pub(crate) struct KeptCalls(Mutex<HashMap<String, Kept>>);

struct Kept {
    inner: InnerCalls,
    binding: Binding,
    since: Instant,
    _memory: Reservation,
}

impl KeptCalls {
    /// Keeps what a call has made, for an hour at most, and gives the id to take it by.
    ///
    /// # Errors
    ///
    /// Where the server has no memory left for it, or the system no random bytes.
    pub(crate) fn keep(
        &self,
        inner: InnerCalls,
        binding: Binding,
        memory: &MemoryBudget,
    ) -> Result<String, String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let id = format!("{:032x}", u128::from_le_bytes(random));
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.retain(|_, kept| kept.since.elapsed() < LIFETIME);
        let oldest = calls.iter().min_by_key(|(_, kept)| kept.since);
        if let Some(oldest) = oldest.map(|(id, _)| id.clone()).filter(|_| calls.len() >= MOST) {
            calls.remove(&oldest);
        }
        let reserved = memory.reserve(inner.size() as u64);
        let memory = reserved.ok_or("the server has no memory left to keep the call until then")?;
        calls.insert(id.clone(), Kept { inner, binding, since: Instant::now(), _memory: memory });
        Ok(id)
    }

    /// Takes what the same call has made.
    ///
    /// # Errors
    ///
    /// Where it is not kept any longer, or belongs to another call.
    pub(crate) fn take(&self, id: &str, binding: &Binding) -> Result<InnerCalls, String> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of_call = calls
            .get(id)
            .is_some_and(|kept| kept.binding == *binding && kept.since.elapsed() < LIFETIME);
        match calls.remove(id).filter(|_| is_of_call) {
            Some(kept) => Ok(kept.inner),
            None => Err("the call cannot go on: this server keeps what it had done for an hour, \
                         until it goes on, and for the same name and arguments only; make the \
                         call again from its start"
                .into()),
        }
    }
}
