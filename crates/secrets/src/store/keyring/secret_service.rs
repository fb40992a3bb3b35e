//! The Secret Service of GNOME, KDE and KeePassXC, over D-Bus.
//!
//! Values cross the bus unencrypted. The socket is private to the user, and an encrypted session
//! would protect the values only from programs that can request them anyway.
//!
//! Specification: Secret Service API 0.2, freedesktop.org.

use std::collections::HashMap;
use std::io;
use std::thread;
use std::time::Duration;

use crate::{CallEnd, ReadError, SecretValue};
use futures_util::StreamExt;
use kitbag_policy::SecretName;
use serde::Serialize;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::timeout;
use zbus::fdo;
use zbus::message::Type;
use zbus::wire::DynamicDeserialize;
use zbus::{
    Connection, DynamicType, MatchRule, MessageStream, OwnedObjectPath, OwnedVariant, Variant,
};
use zeroize::Zeroizing;

use super::{APPLICATION, label};
use crate::store::error::StoreError;

/// The bus name.
const SERVICE: &str = "org.freedesktop.secrets";

/// The object path.
const PATH: &str = "/org/freedesktop/secrets";

/// The time limit for unlocking.
const TIME: Duration = Duration::from_secs(60);

/// The path that means no object.
const NOTHING: &str = "/";

/// An entry: session, parameters, value, and content type.
type Kept = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";
const SERVICE_INTERFACE: &str = "org.freedesktop.Secret.Service";

pub(super) fn names(end: &CallEnd) -> Result<Vec<SecretName>, StoreError> {
    run(end, async {
        let service = Service::open().await?;
        let mut names = Vec::new();
        for entry in service.entries(None).await? {
            let of = (ITEM, "Attributes");
            let properties = "org.freedesktop.DBus.Properties";
            let found: OwnedVariant = service.call(&entry, properties, "Get", &of).await?;
            let mut found: HashMap<String, String> = found.try_into().map_err(refused)?;
            // Another program may have written an invalid name.
            names.extend(found.remove("secret").and_then(|name| SecretName::new(&name).ok()));
        }
        Ok(names)
    })
}

pub(super) fn get(name: &SecretName, end: &CallEnd) -> Result<Option<Vec<u8>>, StoreError> {
    run(end, async {
        let service = Service::open().await?;
        let Some(entry) = service.entries(Some(name)).await?.into_iter().next() else {
            return Ok(None);
        };
        let session = service.session().await?;
        let (_, _, value, _): Kept = service.call(&entry, ITEM, "GetSecret", &session).await?;
        Ok(Some(value))
    })
}

pub(super) fn set(
    name: &SecretName,
    value: &SecretValue,
    end: &CallEnd,
) -> Result<bool, StoreError> {
    run(end, async {
        let service = Service::open().await?;
        let session = service.session().await?;
        let value = Zeroizing::new(value.reveal().as_bytes().to_vec());
        let none: &[u8] = &[];
        let kept = (&session, none, &**value, "text/plain");
        // In any collection: creating an entry would not replace one in another collection.
        if let Some(entry) = service.entries(Some(name)).await?.into_iter().next() {
            service.call::<_, ()>(&entry, ITEM, "SetSecret", &(kept,)).await?;
            return Ok(true);
        }
        let collection = service.collection().await?;
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(label(name))),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(attributes(Some(name)))),
        ]);
        let made = (properties, kept, true);
        let (_, prompt): (OwnedObjectPath, OwnedObjectPath) =
            service.call(&collection, COLLECTION, "CreateItem", &made).await?;
        service.answer(&prompt).await?;
        Ok(false)
    })
}

pub(super) fn delete(name: &SecretName, end: &CallEnd) -> Result<bool, StoreError> {
    run(end, async {
        let service = Service::open().await?;
        let entries = service.entries(Some(name)).await?;
        for entry in &entries {
            let prompt: OwnedObjectPath = service.call(entry, ITEM, "Delete", &()).await?;
            service.answer(&prompt).await?;
        }
        Ok(!entries.is_empty())
    })
}

/// Runs a future on a separate thread, which any runtime can wait for, until `end`.
fn run<T: Send>(
    end: &CallEnd,
    work: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let (sender, ended) = oneshot::channel();
    let _at_end = end.at_end(move || {
        // The receiver may be gone.
        let _ = sender.send(());
    });
    let wait = || {
        let failed = |error: io::Error| StoreError::Keyring { reason: error.to_string() };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = ended => Err(ReadError::CallEnded.into()),
                done = timeout(TIME, work) => {
                    done.unwrap_or(Err(StoreError::SlowKeyring { time: TIME }))
                }
            }
        })
    };
    let done = thread::scope(|scope| scope.spawn(wait).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A connection to the keyring. Its prompts end with it.
struct Service(Connection);

impl Service {
    async fn open() -> Result<Self, StoreError> {
        let missing = |error: zbus::Error| StoreError::NoKeyring { reason: error.to_string() };
        Connection::session().await.map(Self).map_err(missing)
    }

    async fn call<B, R>(
        &self,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, StoreError>
    where
        B: Serialize + DynamicType,
        R: for<'a> DynamicDeserialize<'a>,
    {
        let called = self.0.call_method(Some(SERVICE), path, Some(interface), method, body);
        called.await.and_then(|reply| reply.body().deserialize()).map_err(refused)
    }

    /// Opens a session without encryption.
    async fn session(&self) -> Result<OwnedObjectPath, StoreError> {
        let plain = ("plain", Variant::from(""));
        let (_, session): (OwnedVariant, OwnedObjectPath) =
            self.call(PATH, SERVICE_INTERFACE, "OpenSession", &plain).await?;
        Ok(session)
    }

    /// Returns the unlocked entries of a secret, or of all secrets of kitbag.
    async fn entries(&self, name: Option<&SecretName>) -> Result<Vec<OwnedObjectPath>, StoreError> {
        let (mut entries, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
            self.call(PATH, SERVICE_INTERFACE, "SearchItems", &(attributes(name),)).await?;
        self.unlock(&locked).await?;
        entries.extend(locked);
        Ok(entries)
    }

    /// Returns the unlocked collection for new entries.
    async fn collection(&self) -> Result<OwnedObjectPath, StoreError> {
        let path: OwnedObjectPath =
            self.call(PATH, SERVICE_INTERFACE, "ReadAlias", &"default").await?;
        if path.as_str() != NOTHING {
            self.unlock(std::slice::from_ref(&path)).await?;
            return Ok(path);
        }
        let label = HashMap::from([(
            "org.freedesktop.Secret.Collection.Label",
            Variant::from("Default keyring"),
        )]);
        let (path, prompt): (OwnedObjectPath, OwnedObjectPath) =
            self.call(PATH, SERVICE_INTERFACE, "CreateCollection", &(label, "default")).await?;
        match self.answer(&prompt).await? {
            Some(path) => path.try_into().map_err(refused),
            None => Ok(path),
        }
    }

    /// Unlocks objects. The keyring may ask the user.
    async fn unlock(&self, paths: &[OwnedObjectPath]) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let (_, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
            self.call(PATH, SERVICE_INTERFACE, "Unlock", &(paths,)).await?;
        self.answer(&prompt).await.map(drop)
    }

    /// Waits for the user's answer. `None` if there was no prompt.
    async fn answer(&self, prompt: &OwnedObjectPath) -> Result<Option<OwnedVariant>, StoreError> {
        if prompt.as_str() == NOTHING {
            return Ok(None);
        }
        let rule = MatchRule::builder()
            .msg_type(Type::Signal)
            .path(prompt.as_str())
            .interface(PROMPT)
            .member("Completed")
            .build()
            .map_err(refused)?;
        let mut completed =
            MessageStream::for_match_rule(rule, &self.0, None).await.map_err(refused)?;
        self.call::<_, ()>(prompt, PROMPT, "Prompt", &"").await?;
        let completed = completed.next().await.ok_or(StoreError::LockedKeyring)?;
        let completed = completed.map_err(refused)?;
        let (is_dismissed, result): (bool, OwnedVariant) =
            completed.body().deserialize().map_err(refused)?;
        match is_dismissed {
            true => Err(StoreError::LockedKeyring),
            false => Ok(Some(result)),
        }
    }
}

/// Converts an error of the bus.
fn refused(error: zbus::Error) -> StoreError {
    let reason = error.to_string();
    match error {
        zbus::Error::FDO(error) if matches!(*error, fdo::Error::ServiceUnknown(_)) => {
            StoreError::NoKeyring { reason }
        }
        _ => StoreError::Keyring { reason },
    }
}

/// Returns the attributes of a secret's entries, or of all entries of kitbag.
fn attributes(name: Option<&SecretName>) -> HashMap<&'static str, String> {
    let mut attributes = HashMap::from([("application", APPLICATION.to_owned())]);
    if let Some(name) = name {
        attributes.insert("secret", name.to_string());
    }
    attributes
}
