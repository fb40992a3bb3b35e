//! Subscriptions of clients to changes of a resource.
//!
//! A change affects a topic's documents or a component. The documents of a topic are not
//! distinguished, so a client may be notified of an unchanged document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kitbag_host::{Account, Reservation};
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;

use crate::methods::component_items;
use crate::methods::knowledge::{self, not_found};
use crate::methods::skills;
use crate::server::generation::Changes;
use crate::session::Session;

const SUBSCRIPTIONS: usize = 1_000;

/// Memory of a subscription in addition to its URI.
const SUBSCRIPTION_BYTES: u64 = 256;

/// The subscribed resources of a session, each with its reserved memory. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<BTreeMap<String, Reservation>>>);

impl Subscriptions {
    /// # Errors
    ///
    /// If the URI is not served, the limit is reached, or no memory is available now.
    pub(crate) async fn add(
        &self,
        session: &Session,
        account: &Account,
        uri: String,
    ) -> Result<(), ErrorData> {
        let is_served = match topic_of(session, &uri) {
            Some(topic) => has_topic(session, &topic),
            None => component_items::find(session, |served| served.resource(&uri).map(drop))
                .await?
                .is_some(),
        };
        if !is_served {
            return Err(not_found(&uri, "no listed resource has this URI"));
        }
        let mut uris = self.uris();
        if uris.contains_key(&uri) {
            return Ok(());
        }
        if uris.len() >= SUBSCRIPTIONS {
            let message = format!("a session has at most {SUBSCRIPTIONS} subscriptions");
            return Err(ErrorData::invalid_request(message, None));
        }
        let bytes = uri.len() as u64 + SUBSCRIPTION_BYTES;
        let memory = session.hold(account, bytes)?;
        uris.insert(uri, memory);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.uris().remove(uri);
    }

    pub(crate) fn updated(&self, seen: &Changes, now: &Changes) -> Vec<String> {
        self.uris().keys().filter(|uri| is_updated(uri, seen, now)).cloned().collect()
    }

    fn uris(&self) -> MutexGuard<'_, BTreeMap<String, Reservation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the accepted part of a stateless client's subscription request: everything except
/// subjects of unknown topics and subscriptions above the limit.
pub(crate) fn accepted(session: &Session, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.retain(|uri| match topic_of(session, uri) {
            Some(topic) => has_topic(session, &topic),
            // The resources of a component may not be known yet.
            None => true,
        });
        uris.truncate(SUBSCRIPTIONS);
    }
    accepted
}

/// Returns whether the resource at a URI may have changed.
pub(crate) fn is_updated(uri: &str, seen: &Changes, now: &Changes) -> bool {
    let is_topic_updated = |topic: &String| seen.topics.get(topic) != now.topics.get(topic);
    match (knowledge::parse(uri), skills::topic_of(uri)) {
        (Some((topic, _)), _) => is_topic_updated(&topic),
        (None, topic) => {
            topic.is_some_and(|topic| is_topic_updated(&topic)) || seen.components != now.components
        }
    }
}

/// Returns the topic of the URI of a subject, or of a file of a skill.
fn topic_of(session: &Session, uri: &str) -> Option<String> {
    // A component may serve resources with the same scheme.
    let of_skill = || skills::topic_of(uri).filter(|topic| has_topic(session, topic));
    knowledge::parse(uri).map(|(topic, _)| topic).or_else(of_skill)
}

fn has_topic(session: &Session, id: &str) -> bool {
    let toolbox = &session.generation().toolbox;
    toolbox.has_learn()
        && toolbox.config().topics.values().any(|topic| topic.enable.value && *topic.id == *id)
}
