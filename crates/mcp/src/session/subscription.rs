//! Subscriptions of clients to changes of a resource.
//!
//! A change affects a topic's documents, a component, or one resource of an MCP server. The documents
//! of a topic are not distinguished, so a client may be notified of an unchanged document.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kitbag_host::{Account, Reservation};
use kitbag_toolbox::{ItemSubscription, SERVER_SCHEME};
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use tokio::task::JoinSet;

use crate::methods::component_items;
use crate::methods::knowledge::{self, not_found};
use crate::methods::skills;
use crate::server::generation::Changes;
use crate::session::Session;

const SUBSCRIPTIONS: usize = 1_000;

/// Memory of a subscription in addition to its URI.
const SUBSCRIPTION_BYTES: u64 = 256;

/// The subscribed resources of a session. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<BTreeMap<String, Subscription>>>);

struct Subscription {
    _memory: Reservation,
    /// The subscription at an MCP server, if the resource is one of it.
    _at_server: Option<ItemSubscription>,
}

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
        let is_of_server = uri.starts_with(SERVER_SCHEME);
        let is_served = match topic_of(session, &uri) {
            _ if is_of_server => is_of_offered_server(session, &uri),
            Some(topic) => has_topic(session, &topic),
            None => component_items::find(session, |served| served.resource(&uri).map(drop))
                .await?
                .is_some(),
        };
        if !is_served {
            return Err(not_found(&uri, "no listed resource has this URI"));
        }
        if self.uris().contains_key(&uri) {
            return Ok(());
        }
        if self.uris().len() >= SUBSCRIPTIONS {
            let message = format!("a session has at most {SUBSCRIPTIONS} subscriptions");
            return Err(ErrorData::invalid_request(message, None));
        }
        let bytes = uri.len() as u64 + SUBSCRIPTION_BYTES;
        let memory = session.hold(account, bytes)?;
        let at_server = match is_of_server {
            true => {
                let toolbox = session.generation().toolbox.clone();
                let subscribed = toolbox.subscribe_to_server(&uri).await;
                Some(subscribed.map_err(|reason| ErrorData::invalid_request(reason, None))?)
            }
            false => None,
        };
        self.uris().insert(uri, Subscription { _memory: memory, _at_server: at_server });
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.uris().remove(uri);
    }

    pub(crate) fn updated(&self, session: &Session, seen: &Changes, now: &Changes) -> Vec<String> {
        let uris = self.uris();
        uris.keys().filter(|uri| is_updated(session, uri, seen, now)).cloned().collect()
    }

    fn uris(&self) -> MutexGuard<'_, BTreeMap<String, Subscription>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the accepted part of a stateless client's subscription request: everything except
/// subjects of unknown topics and subscriptions above the limit.
pub(crate) fn accepted(session: &Session, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = requested.clone();
    if let Some(uris) = &mut accepted.resource_subscriptions {
        uris.retain(|uri| match topic_of(session, uri) {
            _ if uri.starts_with(SERVER_SCHEME) => is_of_offered_server(session, uri),
            Some(topic) => has_topic(session, &topic),
            // The resources of a component may not be known yet.
            None => true,
        });
        uris.truncate(SUBSCRIPTIONS);
    }
    accepted
}

/// Subscribes at MCP servers to the accepted resources. The subscriptions end with the tasks.
pub(crate) fn at_servers(session: &Session, accepted: &SubscriptionFilter) -> AtServers {
    let mut tasks = JoinSet::new();
    let uris = accepted.resource_subscriptions.iter().flatten();
    for uri in uris.filter(|uri| uri.starts_with(SERVER_SCHEME)).cloned() {
        let toolbox = session.generation().toolbox.clone();
        tasks.spawn(async move {
            let subscribed = toolbox.subscribe_to_server(&uri).await;
            subscribed.inspect_err(|error| tracing::debug!("no subscription: {error}")).ok()
        });
    }
    tasks
}

/// Tasks that subscribe at MCP servers. Each keeps its subscription as its result.
pub(crate) type AtServers = JoinSet<Option<ItemSubscription>>;

/// Returns whether the resource at a URI may have changed.
pub(crate) fn is_updated(session: &Session, uri: &str, seen: &Changes, now: &Changes) -> bool {
    let is_topic_updated = |topic: &String| seen.topics.get(topic) != now.topics.get(topic);
    match (knowledge::parse(uri), skills::topic_of(uri)) {
        _ if uri.starts_with(SERVER_SCHEME) => {
            seen.server_resources.get(uri) != now.server_resources.get(uri)
                && is_of_offered_server(session, uri)
        }
        (Some((topic, _)), _) => is_topic_updated(&topic),
        (None, topic) => {
            topic.is_some_and(|topic| is_topic_updated(&topic)) || seen.components != now.components
        }
    }
}

/// Returns whether a client may read the resource of a server.
fn is_of_offered_server(session: &Session, uri: &str) -> bool {
    session.generation().toolbox.server_resource(uri).is_some()
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
