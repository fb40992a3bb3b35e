//! Changes that a server reports: of its lists, and of single resources that callers subscribe to.
#![expect(deprecated, reason = "`resources/subscribe` is for servers before 2026-07-28")]

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kitbag_policy::server::{Era, ServerName};
use rmcp::RoleClient;
use rmcp::model::{
    ServerNotification, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, ServiceError};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::client::{Changes, message};
use crate::connection::Connection;
use crate::error::ServerError;
use crate::pool::Servers;
use crate::target::ServerTarget;

/// The largest number of resources of a server with a subscription, for all callers.
const MOST: usize = 1_000;

/// The time in which a server must answer a subscription.
const ANSWER: Duration = Duration::from_secs(10);

/// The pause before a stream of changes is opened again, which doubles up to the longest one.
const REOPEN: Duration = Duration::from_secs(1);
const REOPEN_LONGEST: Duration = Duration::from_secs(300);

/// The subscriptions of all callers to the resources of one server. Clones share them. They outlive
/// a connection, and are made again after a restart.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<watch::Sender<Entries>>);

/// The subscribed resources, by the server's URIs.
type Entries = BTreeMap<String, Entry>;

#[derive(Clone, Debug, Default)]
struct Entry {
    /// The number of callers.
    holders: usize,
    /// The answer of the server. `None`: it has not answered yet.
    answer: Option<Result<(), ServerError>>,
}

/// A subscription to a resource of a server, which ends when it is dropped.
pub struct ResourceSubscription {
    subscriptions: Subscriptions,
    uri: String,
}

impl Servers {
    /// Subscribes to changes of a resource by the server's URI. Starts the server if necessary, and
    /// keeps it running. [`Servers::on_change`] sets the receiver of changes.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if the server offers no subscriptions or refuses this one.
    pub async fn subscribe(
        &self,
        target: &ServerTarget,
        uri: &str,
    ) -> Result<ResourceSubscription, ServerError> {
        let (lease, subscriptions) = self.connect_for_subscription(target).await?;
        let refused = |reason: &str| refused(&target.name, reason);
        let info = lease.0.peer.peer_info();
        let resources = info.as_ref().and_then(|info| info.capabilities.resources.as_ref());
        let is_offered = match lease.0.listing.era {
            Era::Initialize => resources.is_some_and(|own| own.subscribe == Some(true)),
            // The answer to the subscription shows it.
            Era::Stateless => resources.is_some(),
        };
        if !is_offered {
            return Err(refused("offers no subscriptions to resources"));
        }
        let Some(held) = subscriptions.hold(uri) else {
            return Err(refused("has too many subscriptions to resources"));
        };
        match timeout(ANSWER, held.answered()).await {
            Ok(answer) => answer.map(|()| held),
            Err(_) => Err(refused("did not answer the subscription in time")),
        }
    }
}

impl Subscriptions {
    /// Adds a caller of a resource. `None`: the limit is reached.
    fn hold(&self, uri: &str) -> Option<ResourceSubscription> {
        let is_held = self.0.send_if_modified(|entries| {
            if entries.len() >= MOST && !entries.contains_key(uri) {
                return false;
            }
            entries.entry(uri.to_owned()).or_default().holders += 1;
            true
        });
        let held = || ResourceSubscription { subscriptions: self.clone(), uri: uri.to_owned() };
        is_held.then(held)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns whether a caller subscribes to a resource.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.0.borrow().contains_key(uri)
    }

    fn answer(&self, uri: &str, answer: Result<(), ServerError>) {
        self.0.send_modify(|entries| {
            if let Some(entry) = entries.get_mut(uri) {
                entry.answer = Some(answer);
            }
        });
    }
}

impl ResourceSubscription {
    /// Waits for the answer of the server.
    async fn answered(&self) -> Result<(), ServerError> {
        let mut entries = self.subscriptions.0.subscribe();
        let answer = |entries: &Entries| entries.get(&self.uri)?.answer.clone();
        let found = entries.wait_for(|entries| answer(entries).is_some()).await;
        found.ok().and_then(|entries| answer(&entries)).unwrap_or(Ok(()))
    }
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        self.subscriptions.0.send_modify(|entries| {
            if let Some(entry) = entries.get_mut(&self.uri) {
                entry.holders -= 1;
                if entry.holders == 0 {
                    entries.remove(&self.uri);
                }
            }
        });
    }
}

/// Asks a server for its changes and for those of the subscribed resources, and notes them. Does not
/// end.
pub(crate) async fn follow(
    name: &ServerName,
    connection: &Connection,
    changes: &Changes,
    subscriptions: &Subscriptions,
) {
    match connection.listing.era {
        Era::Initialize => subscribe_each(name, connection, subscriptions).await,
        Era::Stateless => listen(name, connection, changes, subscriptions).await,
    }
}

fn uris(entries: &Entries) -> BTreeSet<String> {
    entries.keys().cloned().collect()
}

fn refused(server: &ServerName, reason: &str) -> ServerError {
    ServerError::Protocol { server: server.clone(), reason: reason.to_owned() }
}

/// Sends a request for each resource to a server with sessions, which reports its lists unasked.
async fn subscribe_each(name: &ServerName, connection: &Connection, subscriptions: &Subscriptions) {
    let (peer, mut entries) = (&connection.peer, subscriptions.0.subscribe());
    let (mut sent, mut refused_uris) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let wanted = uris(&entries.borrow_and_update());
        for uri in sent.difference(&wanted).filter(|uri| !refused_uris.remove(*uri)) {
            let _ = timeout(ANSWER, peer.unsubscribe(UnsubscribeRequestParams::new(uri))).await;
        }
        for uri in wanted.difference(&sent) {
            let subscribe = peer.subscribe(SubscribeRequestParams::new(uri));
            let answer = match timeout(ANSWER, subscribe).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(ServiceError::McpError(error))) => {
                    Err(ServerError::Answered { message: message(&error, &connection.redaction) })
                }
                Ok(Err(error)) => {
                    let reason = connection.redaction.text(format!("failed: {error}"));
                    Err(refused(name, &reason))
                }
                Err(_) => Err(refused(name, "did not answer the subscription in time")),
            };
            if answer.is_err() {
                refused_uris.insert(uri.clone());
            }
            subscriptions.answer(uri, answer);
        }
        sent = wanted;
        if entries.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// Keeps a stream of changes of a stateless server open. It is opened again for other resources, and
/// after it ended.
async fn listen(
    name: &ServerName,
    connection: &Connection,
    changes: &Changes,
    subscriptions: &Subscriptions,
) {
    let (peer, mut entries) = (&connection.peer, subscriptions.0.subscribe());
    let lists = reported_lists(peer);
    let (mut pause, mut is_reopened, mut before) = (REOPEN, false, None);
    loop {
        let wanted = uris(&entries.borrow_and_update());
        let mut filter = lists.clone();
        filter.resource_subscriptions =
            Some(wanted.iter().cloned().collect()).filter(|uris: &Vec<_>| !uris.is_empty());
        if filter == SubscriptionFilter::default() {
            drop(before.take());
            if entries.changed().await.is_err() {
                pending::<()>().await;
            }
            continue;
        }
        if let Ok(Ok(mut stream)) = timeout(ANSWER, peer.listen(filter)).await {
            // The old stream ends after the new one has started, so that no change is missed.
            drop(before.take());
            let accepted = stream.acknowledged().resource_subscriptions.clone().unwrap_or_default();
            for uri in &wanted {
                let is_accepted = accepted.contains(uri);
                let refused = || refused(name, "does not accept the subscription");
                subscriptions.answer(uri, is_accepted.then_some(()).ok_or_else(refused));
            }
            if is_reopened {
                // Lists may have changed while there was no stream.
                changes.tools.note();
                changes.items.note();
            }
            let is_changed = loop {
                tokio::select! {
                    next = stream.next() => match next {
                        Ok(Some(notification)) => {
                            pause = REOPEN;
                            note(changes, notification);
                        }
                        _ => break false,
                    },
                    Ok(()) = entries.changed() => {
                        if uris(&entries.borrow_and_update()) != wanted {
                            break true;
                        }
                    }
                }
            };
            if is_changed {
                (before, is_reopened) = (Some(stream), false);
                continue;
            }
        } else {
            for uri in &wanted {
                subscriptions.answer(uri, Err(refused(name, "does not accept the subscription")));
            }
        }
        drop(before.take());
        is_reopened = true;
        sleep(pause).await;
        pause = (pause * 2).min(REOPEN_LONGEST);
    }
}

/// Returns the lists whose changes a server reports.
fn reported_lists(peer: &Peer<RoleClient>) -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::default();
    let Some(info) = peer.peer_info() else { return filter };
    let own = &info.capabilities;
    let reports = |list_changed: Option<bool>| list_changed.filter(|reports| *reports);
    filter.tools_list_changed = own.tools.as_ref().and_then(|own| reports(own.list_changed));
    filter.prompts_list_changed = own.prompts.as_ref().and_then(|own| reports(own.list_changed));
    filter.resources_list_changed =
        own.resources.as_ref().and_then(|own| reports(own.list_changed));
    filter
}

fn note(changes: &Changes, notification: ServerNotification) {
    match notification {
        ServerNotification::ToolListChangedNotification(_) => changes.tools.note(),
        ServerNotification::ResourceUpdatedNotification(updated) => {
            changes.resources.note(updated.params.uri);
        }
        _ => changes.items.note(),
    }
}
