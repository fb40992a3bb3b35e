//! The interfaces to the store, random numbers and the time.

use kitbag_sdk::ErrorInfo;

use crate::date::Moment;

/// The number of values that are read at once: their total size is below the host's limit.
pub(crate) const AT_ONCE: usize = 200;

/// Maximum number of entries that are written at once, set by the host.
pub(crate) const MOST_WRITTEN: usize = 10_000;

/// Values by key. All errors are messages of the host.
pub(crate) trait Store {
    /// Returns the keys in arbitrary order.
    fn keys(&self) -> Result<Vec<String>, ErrorInfo>;

    /// Returns the values of these keys at one moment, in order.
    fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, ErrorInfo>;

    /// Sets values, all or none.
    fn set(&self, entries: &[(String, Vec<u8>)]) -> Result<(), ErrorInfo>;

    /// Removes keys, all or none.
    fn delete(&self, keys: &[String]) -> Result<(), ErrorInfo>;

    /// Returns the value of one key.
    fn value(&self, key: &str) -> Result<Option<Vec<u8>>, ErrorInfo> {
        Ok(self.get(&[key.to_owned()])?.pop().flatten())
    }
}

/// The time and random numbers.
pub(crate) trait Clock {
    /// Returns the time.
    fn now(&self) -> Moment;

    /// Returns a random number.
    fn random(&self) -> u64;
}

#[cfg(target_family = "wasm")]
pub(crate) use host::open;

#[cfg(target_family = "wasm")]
mod host {
    use std::time::{SystemTime, UNIX_EPOCH};

    use kitbag_sdk::ErrorInfo;
    use wasip2::random::random::get_random_u64;

    use super::{Clock, Store};
    use crate::bindings::wasi::keyvalue::batch;
    use crate::bindings::wasi::keyvalue::store::{self, Bucket, Error};
    use crate::date::Moment;

    /// The store that the host opened for the caller.
    pub(crate) struct HostStore(Bucket);

    /// The host's clock and random numbers.
    pub(crate) struct HostClock;

    /// Opens the caller's store.
    ///
    /// # Errors
    ///
    /// No storage is granted.
    pub(crate) fn open() -> Result<(HostStore, HostClock), ErrorInfo> {
        Ok((HostStore(store::open("").map_err(failed)?), HostClock))
    }

    impl Store for HostStore {
        fn keys(&self) -> Result<Vec<String>, ErrorInfo> {
            let (mut keys, mut cursor) = (Vec::new(), None);
            loop {
                let page = self.0.list_keys(cursor).map_err(failed)?;
                keys.extend(page.keys);
                cursor = page.cursor;
                if cursor.is_none() {
                    return Ok(keys);
                }
            }
        }

        fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, ErrorInfo> {
            let values = batch::get_many(&self.0, keys).map_err(failed)?;
            Ok(values.into_iter().map(|value| value.map(|(_, value)| value)).collect())
        }

        fn set(&self, entries: &[(String, Vec<u8>)]) -> Result<(), ErrorInfo> {
            batch::set_many(&self.0, entries).map_err(failed)
        }

        fn delete(&self, keys: &[String]) -> Result<(), ErrorInfo> {
            batch::delete_many(&self.0, keys).map_err(failed)
        }
    }

    impl Clock for HostClock {
        fn now(&self) -> Moment {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let moment = i64::try_from(time.as_millis()).ok().and_then(Moment::from_millis);
            moment.unwrap_or(Moment::EARLIEST)
        }

        fn random(&self) -> u64 {
            get_random_u64()
        }
    }

    /// Converts a store error. The host adds the grant that would allow the access.
    fn failed(error: Error) -> ErrorInfo {
        ErrorInfo::new(match error {
            Error::NoSuchStore => "no storage is available".to_owned(),
            Error::AccessDenied => "memories cannot be stored".to_owned(),
            Error::Other(reason) => reason,
        })
    }
}

/// The tool's own tests have no host.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn open() -> Result<(NoHost, NoHost), ErrorInfo> {
    Err(ErrorInfo::new("there is no host"))
}

/// Replaces the host in native builds.
#[cfg(not(target_family = "wasm"))]
pub(crate) enum NoHost {}

#[cfg(not(target_family = "wasm"))]
impl Store for NoHost {
    fn keys(&self) -> Result<Vec<String>, ErrorInfo> {
        match *self {}
    }

    fn get(&self, _: &[String]) -> Result<Vec<Option<Vec<u8>>>, ErrorInfo> {
        match *self {}
    }

    fn set(&self, _: &[(String, Vec<u8>)]) -> Result<(), ErrorInfo> {
        match *self {}
    }

    fn delete(&self, _: &[String]) -> Result<(), ErrorInfo> {
        match *self {}
    }
}

#[cfg(not(target_family = "wasm"))]
impl Clock for NoHost {
    fn now(&self) -> Moment {
        match *self {}
    }

    fn random(&self) -> u64 {
        match *self {}
    }
}
