//! Requests until they are answered: their ids and reserved memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kitbag_host::Reservation;
use rmcp::model::RequestId;

/// The ids of requests in flight, of one client or of all sessions. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<Ids>>);

/// Requests by session and id. A request that is answered elsewhere is stored here until then. For
/// other requests only the id is stored, until they are dropped.
type Ids = HashMap<Key, Option<InFlightRequest>>;

/// The session, which is empty if there is only one client, and the id.
type Key = (Box<str>, RequestId);

/// A request in flight. It is stored in the extensions of its message, so that it lives while the
/// message is handled.
#[derive(Clone)]
pub(crate) struct InFlightRequest(#[expect(dead_code, reason = "held, not read")] Arc<RequestHold>);

struct RequestHold {
    id: Option<(InFlight, Key)>,
    _memory: Reservation,
}

impl InFlightRequest {
    /// Creates a request whose id is unique, such as the only request of its connection.
    pub(crate) fn alone(memory: Reservation) -> Self {
        Self(Arc::new(RequestHold { id: None, _memory: memory }))
    }
}

impl InFlight {
    pub(crate) fn len(&self) -> usize {
        self.ids().len()
    }

    pub(crate) fn contains(&self, id: &RequestId) -> bool {
        self.ids().contains_key(&key("", id))
    }

    /// Adds a request until [`answered`](Self::answered). `None` if a request with its id is in
    /// flight.
    pub(crate) fn add(&self, id: &RequestId, memory: Reservation) -> Option<InFlightRequest> {
        let request = self.add_to("", id, memory)?;
        self.ids().insert(key("", id), Some(request.clone()));
        Some(request)
    }

    /// Adds a request of a session until it is dropped. `None` if a request with its id is in
    /// flight.
    pub(crate) fn add_to(
        &self,
        session: &str,
        id: &RequestId,
        memory: Reservation,
    ) -> Option<InFlightRequest> {
        let key = key(session, id);
        match self.ids().entry(key.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(vacant) => vacant.insert(None),
        };
        let id = Some((self.clone(), key));
        Some(InFlightRequest(Arc::new(RequestHold { id, _memory: memory })))
    }

    pub(crate) fn answered(&self, id: &RequestId) {
        // Dropped without holding the lock, which the drop takes.
        let answered = self.ids().remove(&key("", id));
        drop(answered);
    }

    /// Releases a request that will not be answered once its work ends.
    pub(crate) fn cancelled(&self, id: &RequestId) {
        let cancelled = self.ids().get_mut(&key("", id)).and_then(Option::take);
        drop(cancelled);
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestHold {
    fn drop(&mut self) {
        if let Some((pending, key)) = self.id.take() {
            let mut ids = pending.ids();
            // Another request may have taken the id, and is stored there itself.
            if ids.get(&key).is_some_and(Option::is_none) {
                ids.remove(&key);
            }
        }
    }
}

fn key(session: &str, id: &RequestId) -> Key {
    (session.into(), id.clone())
}

#[cfg(test)]
mod tests {
    use kitbag_host::MemoryBudget;

    use super::*;

    fn memory() -> Reservation {
        MemoryBudget::unlimited().reserve(1).unwrap()
    }

    #[test]
    fn answered_request_frees_its_id() {
        let (pending, id) = (InFlight::default(), RequestId::Number(1));
        let first = pending.add(&id, memory()).unwrap();
        assert!(pending.add(&id, memory()).is_none());
        // Handled, but not answered yet.
        drop(first);
        assert!(pending.add(&id, memory()).is_none());
        pending.answered(&id);
        assert_eq!(pending.len(), 0);
        assert!(pending.add(&id, memory()).is_some());
    }

    #[test]
    fn cancelled_request_frees_its_id_when_its_work_ends() {
        let (pending, id) = (InFlight::default(), RequestId::Number(1));
        let first = pending.add(&id, memory()).unwrap();
        pending.cancelled(&id);
        assert!(pending.add(&id, memory()).is_none());
        drop(first);
        assert_eq!(pending.len(), 0);
        // Handled before it was cancelled.
        drop(pending.add(&id, memory()).unwrap());
        pending.cancelled(&id);
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn request_ids_are_separate_per_session() {
        let (pending, id) = (InFlight::default(), RequestId::Number(1));
        let first = pending.add_to("a", &id, memory()).unwrap();
        assert!(pending.add_to("b", &id, memory()).is_some());
        assert!(pending.add_to("a", &id, memory()).is_none());
        drop(first);
        assert!(pending.add_to("a", &id, memory()).is_some());
        assert_eq!(pending.len(), 0);
    }

    #[test]
    fn request_releases_its_memory() {
        let budget = MemoryBudget::new(kitbag_base::ByteSize::mib(1));
        let (pending, id) = (InFlight::default(), RequestId::Number(1));
        let request = pending.add(&id, budget.reserve(1 << 20).unwrap());
        drop(request);
        assert!(budget.reserve(1).is_none());
        pending.answered(&id);
        assert!(budget.reserve(1 << 20).is_some());
    }
}
