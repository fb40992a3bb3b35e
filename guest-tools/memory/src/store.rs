//! The interfaces to the store, random numbers and the time.

use kitbag_sdk::ErrorInfo;

use crate::date::Moment;

/// The number of values that are read at once: together they do not exceed the host's limit.
pub(crate) const AT_ONCE: usize = 200;

/// The most entries that are written at once, which the host sets.
pub(crate) const MOST_WRITTEN: usize = 10_000;

/// Values by key. All errors are those of the host, in words.
pub(crate) trait Store {
    /// The keys, in no order that means something.
    fn keys(&self) -> Result<Vec<String>, ErrorInfo>;

    /// The values of these keys at one moment, in their order.
    fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, ErrorInfo>;

    /// Sets values, all or none.
    fn set(&self, entries: &[(String, Vec<u8>)]) -> Result<(), ErrorInfo>;

    /// Removes keys, all or none.
    fn delete(&self, keys: &[String]) -> Result<(), ErrorInfo>;

    /// The value of one key.
    fn value(&self, key: &str) -> Result<Option<Vec<u8>>, ErrorInfo> {
        Ok(self.get(&[key.to_owned()])?.pop().flatten())
    }
}

/// The environment of a tool besides the store.
pub(crate) trait Clock {
    /// The time.
    fn now(&self) -> Moment;

    /// A random number.
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

    /// The store that the host opens for the caller.
    pub(crate) struct HostStore(Bucket);

    /// The clock and the random numbers of the host.
    pub(crate) struct HostClock;

    /// Opens what is kept for the caller.
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

    /// The host adds the line that would allow it.
    fn failed(error: Error) -> ErrorInfo {
        ErrorInfo::new(match error {
            Error::NoSuchStore => "no storage is available".to_owned(),
            Error::AccessDenied => "memories cannot be stored".to_owned(),
            Error::Other(reason) => reason,
        })
    }
}

/// In a tool's own tests there is no host.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn open() -> Result<(NoHost, NoHost), ErrorInfo> {
    Err(ErrorInfo::new("there is no host"))
}

/// Stands in for the host in native builds.
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
