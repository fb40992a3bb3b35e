//! Storage: the standard interface `wasi:keyvalue`, backed by a file of the workspace.
//!
//! The interface is offered to every component, so that a component which only links it runs. The
//! grants decide when a guest opens its bucket; each use of the bucket is one transaction of
//! [`kitbag_storage`]. It blocks the thread of the call, as file operations do, and waits for
//! other writers at most until the call's deadline.

use std::sync::Arc;
use std::time::Instant;

use kitbag_base::ByteSize;
use kitbag_policy::{
    Decision, GrantRefusal, Grants, Request, StorageGrant, StorageRequest, decide,
};
use kitbag_state::storage::{Namespace, StorageError};
use wasmtime::component::{HasData, Resource, ResourceTable, ResourceTableError};

use self::bindings::wasi::keyvalue::{atomics, batch, store};
use super::context::GrantContext;
use crate::call::refusals::Refusals;
use crate::call::state::State;
use crate::interface::{Interfaces, Version};

/// Maximum number of bytes that one operation returns to a guest.
const ANSWER_BYTES: ByteSize = ByteSize::mib(16);

/// Host memory for the storage of one call: an answer, and the pages of the file that SQLite
/// holds.
const STORAGE_BYTES: ByteSize = ByteSize::mib(20);

/// Maximum number of refusals that one call records.
const MOST_REFUSALS: usize = 5;

/// Names under which a guest may open its storage.
const NAMES: [&str; 2] = ["", "default"];

mod bindings {
    wasmtime::component::bindgen!({
        path: "wit/keyvalue",
        world: "wasi:keyvalue/imports",
        imports: { default: trappable },
        with: { "wasi:keyvalue/store.bucket": crate::grants::storage::Bucket },
        trappable_error_type: { "wasi:keyvalue/store.error" => crate::grants::storage::BucketError },
    });
}

/// The interfaces have not been released.
pub(crate) const INTERFACES: Interfaces = Interfaces {
    version: Version::Exactly("0.2.0-draft"),
    bytes: STORAGE_BYTES,
    list: &[
        ("wasi:keyvalue/atomics", PURPOSE, |l| atomics::add_to_linker::<_, HasStorage>(l, view)),
        ("wasi:keyvalue/batch", PURPOSE, |l| batch::add_to_linker::<_, HasStorage>(l, view)),
        ("wasi:keyvalue/store", PURPOSE, |l| store::add_to_linker::<_, HasStorage>(l, view)),
    ],
};

const PURPOSE: &str = "stored data of the tool, if granted";

fn view(state: &mut State) -> StorageView<'_> {
    let (granted, table) = state.granted_and_table();
    StorageView { held: &mut granted.storage, table }
}

pub(crate) struct HeldStorage {
    grants: Arc<Grants>,
    /// `None` if opening the storage is refused.
    namespace: Option<Namespace>,
    refused: Vec<GrantRefusal>,
    /// The refusals, for the record of the call.
    refusals: Refusals,
}

/// An open bucket of a guest. There is one namespace, and any number of handles to it.
#[expect(unreachable_pub, reason = "the generated code exports it again")]
pub struct Bucket;

/// Why an operation on storage failed.
#[expect(unreachable_pub, reason = "the generated code exports it again")]
pub enum BucketError {
    /// The guest named a store that does not exist.
    NoSuchStore,
    /// Storage is not granted.
    AccessDenied,
    /// Another error, as a message for the guest.
    Other(String),
    /// The guest must end.
    Trap(wasmtime::Error),
}

type Answer<T> = Result<T, BucketError>;

impl HeldStorage {
    pub(crate) fn new(granting: GrantContext<'_>, until: Option<Instant>) -> Self {
        let GrantContext { grants, storage, .. } = granting;
        let namespace = grants.storage.zip(storage).map(|(grant, place)| {
            place.storage.namespace(&place.namespace, grant, ANSWER_BYTES, until)
        });
        Self {
            grants: Arc::clone(grants),
            namespace,
            refused: Vec::new(),
            refusals: Refusals::default(),
        }
    }

    /// Uses the storage for a host function other than those of `wasi:keyvalue`.
    ///
    /// # Errors
    ///
    /// The reason, if storage is not granted or the operation failed.
    pub(crate) fn access<T>(
        &mut self,
        work: impl FnOnce(&Namespace) -> Result<T, StorageError>,
    ) -> Result<T, String> {
        self.open().map_err(|refusal| refusal.reason)?;
        self.using(work).map_err(|error| match error {
            BucketError::Other(reason) => reason,
            BucketError::Trap(error) => error.to_string(),
            BucketError::NoSuchStore | BucketError::AccessDenied => {
                "the storage is not available".to_owned()
            }
        })
    }

    /// Checks that there is storage, and records a refusal.
    fn open(&mut self) -> Result<(), GrantRefusal> {
        if self.namespace.is_some() {
            return Ok(());
        }
        let word = if self.grants.storage.is_none() { "grant" } else { "unusable" };
        let refusal = refusal(&self.grants);
        self.note(refusal.clone(), word);
        Err(refusal)
    }

    /// Takes the refusals, at most five.
    pub(crate) fn take_refused(&mut self) -> Vec<GrantRefusal> {
        std::mem::take(&mut self.refused)
    }

    pub(crate) fn take_refusals(&mut self) -> Refusals {
        std::mem::take(&mut self.refusals)
    }

    fn note(&mut self, refusal: GrantRefusal, reason: &'static str) {
        self.refusals.note(StorageGrant::KEY, "", reason);
        if self.refused.len() < MOST_REFUSALS && !self.refused.contains(&refusal) {
            self.refused.push(refusal);
        }
    }

    /// Uses the namespace, and records errors that a person must resolve.
    fn using<T>(&mut self, work: impl FnOnce(&Namespace) -> Result<T, StorageError>) -> Answer<T> {
        // A guest without a namespace has no bucket.
        let namespace = self.namespace.as_ref().ok_or(BucketError::AccessDenied)?;
        work(namespace).map_err(|error| {
            if error.needs_person() {
                let (reason, missing) = (error.to_string(), error.missing());
                let word = if missing.is_some() { "quota" } else { "unusable" };
                self.note(GrantRefusal { key: StorageGrant::KEY, reason, missing }, word);
            }
            BucketError::Other(error.for_tool())
        })
    }
}

fn refusal(grants: &Grants) -> GrantRefusal {
    let request = Request::Storage(StorageRequest(StorageGrant::default()));
    match decide(grants, &request) {
        Decision::Denied { reason, missing } if grants.storage.is_none() => {
            GrantRefusal { key: StorageGrant::KEY, reason, missing }
        }
        Decision::Denied { .. } | Decision::Allowed { .. } => GrantRefusal {
            key: StorageGrant::KEY,
            reason: "storage is unavailable, because the state directory is unknown; set \
                     `KITBAG_STATE_DIR`"
                .into(),
            missing: None,
        },
    }
}

/// The storage of a call, for the functions of the interface.
struct StorageView<'a> {
    held: &'a mut HeldStorage,
    table: &'a mut ResourceTable,
}

struct HasStorage;

impl HasData for HasStorage {
    type Data<'a> = StorageView<'a>;
}

impl StorageView<'_> {
    /// Uses an open bucket.
    fn using<T>(
        &mut self,
        bucket: &Resource<Bucket>,
        work: impl FnOnce(&Namespace) -> Result<T, StorageError>,
    ) -> Answer<T> {
        let Bucket = self.table.get(bucket)?;
        self.held.using(work)
    }
}

impl store::Host for StorageView<'_> {
    fn open(&mut self, identifier: String) -> Answer<Resource<Bucket>> {
        if !NAMES.contains(&&*identifier) {
            return Err(BucketError::NoSuchStore);
        }
        self.held.open().map_err(|_| BucketError::AccessDenied)?;
        Ok(self.table.push(Bucket)?)
    }

    fn convert_error(&mut self, error: BucketError) -> wasmtime::Result<store::Error> {
        match error {
            BucketError::NoSuchStore => Ok(store::Error::NoSuchStore),
            BucketError::AccessDenied => Ok(store::Error::AccessDenied),
            BucketError::Other(reason) => Ok(store::Error::Other(reason)),
            BucketError::Trap(error) => Err(error),
        }
    }
}

impl store::HostBucket for StorageView<'_> {
    fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<Option<Vec<u8>>> {
        self.using(&bucket, |namespace| namespace.get(&key))
    }

    fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Answer<()> {
        self.using(&bucket, |namespace| namespace.set(&key, &value))
    }

    fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<()> {
        self.using(&bucket, |namespace| namespace.delete(&key))
    }

    fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Answer<bool> {
        self.using(&bucket, |namespace| namespace.exists(&key))
    }

    fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<u64>,
    ) -> Answer<store::KeyResponse> {
        let page = self.using(&bucket, |namespace| namespace.list_keys(cursor))?;
        Ok(store::KeyResponse { keys: page.keys, cursor: page.cursor })
    }

    fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for StorageView<'_> {
    fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Answer<u64> {
        self.using(&bucket, |namespace| namespace.increment(&key, delta))
    }
}

impl batch::Host for StorageView<'_> {
    fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Answer<Vec<Option<(String, Vec<u8>)>>> {
        self.using(&bucket, |namespace| namespace.get_many(&keys))
    }

    fn set_many(
        &mut self,
        bucket: Resource<Bucket>,
        key_values: Vec<(String, Vec<u8>)>,
    ) -> Answer<()> {
        self.using(&bucket, |namespace| namespace.set_many(&key_values))
    }

    fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Answer<()> {
        self.using(&bucket, |namespace| namespace.delete_many(&keys))
    }
}

impl From<ResourceTableError> for BucketError {
    /// A guest that exceeds its limit on handles must end, as for any other resource.
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}
