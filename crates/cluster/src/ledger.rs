//! Signed records: who may write one, and what it says.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::envelope::{WireError, open, seal};
use crate::identity::{Identity, Purpose};
use crate::members::Members;
use crate::queue::{Queue, QueueError};
use crate::record::Record;
use crate::wire::{self, WireCall, WireEnd};

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The call that the record belongs to.
    pub(crate) call: Of,
    pub(crate) record: Record<WireEnd>,
}

/// The parts of a call by which a front end recognises its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Of {
    pub(crate) tool: String,
    pub(crate) caller: String,
    pub(crate) arguments_digest: String,
}

/// A record that was read, with its revision. 0: there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    pub(crate) revision: u64,
    pub(crate) sealed: Bytes,
    pub(crate) entry: Option<Entry>,
}

/// An error of reading or writing a record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerError {
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("the record of the call: {0}")]
    Wire(#[from] WireError),
}

impl Of {
    pub(crate) fn call(call: &WireCall) -> Self {
        Self {
            tool: call.tool.to_string(),
            caller: call.caller.clone(),
            arguments_digest: call.arguments_digest.clone(),
        }
    }
}

/// Reads a record and checks who wrote it.
pub(crate) async fn read(queue: &Queue, key: &str, members: &Members) -> Result<Read, LedgerError> {
    let Some(stored) = queue.record(key).await? else { return Ok(Read::default()) };
    let entry = open_entry(&stored.sealed, key, members)?;
    Ok(Read { revision: stored.revision, sealed: stored.sealed, entry: Some(entry) })
}

/// Signs a record. A front end signs only records of calls that it gives up.
pub(crate) fn seal_entry(
    identity: &Identity,
    purpose: Purpose,
    key: &str,
    entry: &Entry,
) -> Vec<u8> {
    seal(identity, purpose, &context(key), &wire::write(entry))
}

/// Opens a record of a worker or a front end.
pub(crate) fn open_entry(sealed: &[u8], key: &str, members: &Members) -> Result<Entry, WireError> {
    let context = context(key);
    let is_worker = |key: &str| members.workers.contains(key);
    let opened = match open(sealed, Purpose::Reply, &context, "worker", is_worker) {
        Err(WireError::Stranger { key, .. }) if members.front_ends.contains(&key) => {
            open(sealed, Purpose::Call, &context, "front end", |_| true)?
        }
        opened => opened?,
    };
    wire::read(opened.body)
}

fn context(key: &str) -> String {
    format!("record {key}")
}
