//! Persistent storage of a tool.

use std::fmt;

use kitbag_base::ByteSize;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decision::{Decision, MissingGrant};
use crate::kind::{
    DefaultCeiling, Effects, GrantForm, Kind, KindInfo, KindRequest, RefusalWords, TypedRequest,
};
use crate::{Grants, Request};

/// Persistent values of a tool, by key, that no other tool can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageGrant {
    /// Maximum total size of all keys and values. Default 16 MiB.
    quota: ByteSize,
    /// Maximum number of keys. Default 10,000.
    keys: u64,
}

/// The error for an invalid size of storage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageGrantError {
    /// The quota is too large.
    #[error("`{0}` exceeds {max}, the largest quota", max = StorageGrant::MOST_QUOTA)]
    Quota(ByteSize),
    /// The number of keys is zero or too large.
    #[error("`{0}` keys: the number must be from 1 to {max}", max = StorageGrant::MOST_KEYS)]
    Keys(u64),
}

/// A request for storage of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageRequest(pub StorageGrant);

/// The storage that a tool requests: `true` or a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedStorage {
    /// `true`: the default size. `false`: no storage.
    Default(bool),
    /// A quota, a number of keys, or both.
    Sized {
        /// Maximum total size of all keys and values.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quota: Option<ByteSize>,
        /// Maximum number of keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keys: Option<u64>,
    },
}

impl StorageGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "storage";

    /// The default quota.
    pub const QUOTA: ByteSize = ByteSize::mib(16);

    /// The default number of keys.
    pub const KEYS: u64 = 10_000;

    /// The largest quota: 1 TiB.
    pub const MOST_QUOTA: ByteSize = ByteSize::mib(1 << 20);

    /// The largest number of keys.
    pub const MOST_KEYS: u64 = 1_000_000_000;

    /// Creates a storage grant; `None` is the default.
    ///
    /// # Errors
    ///
    /// [`StorageGrantError`] for an invalid size.
    pub fn new(quota: Option<ByteSize>, keys: Option<u64>) -> Result<Self, StorageGrantError> {
        let (quota, keys) = (quota.unwrap_or(Self::QUOTA), keys.unwrap_or(Self::KEYS));
        if quota > Self::MOST_QUOTA {
            return Err(StorageGrantError::Quota(quota));
        }
        match (1..=Self::MOST_KEYS).contains(&keys) {
            true => Ok(Self { quota, keys }),
            false => Err(StorageGrantError::Keys(keys)),
        }
    }

    /// Returns the maximum total size of all keys and values.
    pub fn quota(&self) -> ByteSize {
        self.quota
    }

    /// Returns the maximum number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns true if this is not larger than another grant.
    pub fn is_within(&self, other: &Self) -> bool {
        self.quota <= other.quota && self.keys <= other.keys
    }

    /// Formats the setting: `storage = true`, or with the sizes that differ from the default.
    pub fn as_setting(&self) -> String {
        format!("{} = {}", Self::KEY, self.as_value())
    }

    /// Formats the value of [`as_setting`](Self::as_setting).
    pub fn as_value(&self) -> String {
        let quota = (self.quota != Self::QUOTA).then(|| format!("quota = \"{}\"", self.quota));
        let keys = (self.keys != Self::KEYS).then(|| format!("keys = {}", self.keys));
        let fields: Vec<_> = [quota, keys].into_iter().flatten().collect();
        match fields.is_empty() {
            true => "true".to_owned(),
            false => format!("{{ {} }}", fields.join(", ")),
        }
    }
}

impl Default for StorageGrant {
    fn default() -> Self {
        Self { quota: Self::QUOTA, keys: Self::KEYS }
    }
}

impl RequestedStorage {
    /// Converts to a request. `None` if nothing is requested or no grant can satisfy it.
    pub fn request(&self) -> Option<StorageRequest> {
        let grant = match self {
            Self::Default(false) => None,
            Self::Default(true) => Some(StorageGrant::default()),
            Self::Sized { quota, keys } => StorageGrant::new(*quota, *keys).ok(),
        };
        grant.map(StorageRequest)
    }
}

/// Decides whether a grant is as large as requested.
pub(crate) fn decide(grant: Option<&StorageGrant>, request: &StorageRequest) -> Decision {
    let StorageRequest(requested) = request;
    let denied = |reason| {
        // Never less than granted, since sizes that are not requested must remain.
        let grant = grant.copied().unwrap_or(*requested);
        let (quota, keys) = (grant.quota.max(requested.quota), grant.keys.max(requested.keys));
        let entry = StorageGrant { quota, keys }.as_setting();
        Decision::Denied { reason, missing: Some(MissingGrant::setting(StorageGrant::KEY, entry)) }
    };
    match grant {
        Some(grant) if requested.is_within(grant) => Decision::Allowed { by: grant.to_string() },
        Some(grant) => denied(format!("no more is granted than `{grant}`")),
        None => denied("no storage is granted".to_owned()),
    }
}

/// The kind of these grants. The data is not outside the sandbox.
pub(crate) const KIND: KindInfo = KindInfo {
    imports: Some("wasi:keyvalue/"),
    ceiling: DefaultCeiling::Setting(|| StorageGrant::default().as_setting()),
    typed: Some(TypedRequest::new(StorageGrant::KEY, 0..=1, |words| {
        let size = words.first().map(|size| size.parse::<ByteSize>()).transpose();
        let size = size.map_err(|error| error.to_string())?;
        let grant = StorageGrant::new(size, None).map_err(|error| error.to_string())?;
        Ok(Request::Storage(StorageRequest(grant)))
    })),
    refusals: Some(RefusalWords {
        kind: "storage",
        access: "keep anything",
        reasons: &[
            ("grant", "not granted"),
            ("quota", "the granted quota is used up"),
            ("unusable", "the storage cannot be used"),
        ],
    }),
    ..KindInfo::new(StorageGrant::KEY, "storage", GrantForm::Setting)
};

impl Kind for Option<StorageGrant> {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        self.is_none()
    }

    fn effects(&self) -> Effects {
        Effects { changes: self.is_some(), open_world: false }
    }

    fn lines(&self) -> Vec<String> {
        self.iter().map(StorageGrant::to_string).collect()
    }

    fn brief(&self) -> Vec<String> {
        self.iter().map(|grant| StorageRequest(*grant).brief()).collect()
    }

    fn to_json(&self) -> Value {
        match self {
            Some(StorageGrant { quota, keys }) => {
                json!({ "quota": quota.to_string(), "keys": keys })
            }
            None => false.into(),
        }
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        let is_held = |grant: &&StorageGrant| own.storage.is_some_and(|own| grant.is_within(&own));
        self.as_ref().filter(|grant| !is_held(grant)).map(StorageGrant::to_string)
    }

    fn singles(&self) -> Vec<Grants> {
        self.iter().map(|grant| Grants { storage: Some(*grant), ..Grants::default() }).collect()
    }

    fn as_ceiling(&self) -> Option<String> {
        self.as_ref().map(StorageGrant::as_setting)
    }
}

impl KindRequest for StorageRequest {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn decide(&self, grants: &Grants) -> Decision {
        decide(grants.storage.as_ref(), self)
    }

    fn brief(&self) -> String {
        format!("keeps up to {}", self.0.quota)
    }
}

impl fmt::Display for StorageGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "storage {}, {} keys", self.quota, self.keys)
    }
}

impl fmt::Display for StorageRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Grants, Request, RequestedGrants};

    fn grant(quota: u64, keys: u64) -> StorageGrant {
        StorageGrant::new(Some(ByteSize::mib(quota)), Some(keys)).unwrap()
    }

    fn decision(grant: Option<StorageGrant>, requested: StorageGrant) -> Decision {
        let grants = Grants { storage: grant, ..Grants::default() };
        crate::decide(&grants, &Request::Storage(StorageRequest(requested)))
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(StorageGrant::new(None, None), Ok(StorageGrant::default()));
        let check = |quota: ByteSize, keys: u64, expected: &str| {
            let error = StorageGrant::new(Some(quota), Some(keys)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        let most = StorageGrant::MOST_QUOTA;
        let beyond = ByteSize::bytes(most.as_u64() + 1);
        assert!(StorageGrant::new(Some(most), Some(StorageGrant::MOST_KEYS)).is_ok());
        check(beyond, 1, "`1099511627777 bytes` exceeds 1024 GiB, the largest quota");
        check(most, 0, "`0` keys: the number must be from 1 to 1000000000");
        check(
            most,
            u64::MAX,
            "`18446744073709551615` keys: the number must be from 1 to 1000000000",
        );
    }

    #[test]
    fn denied_storage_names_the_missing_setting() {
        let check = |granted: Option<StorageGrant>, requested: StorageGrant, expected: &str| {
            let Decision::Denied { missing: Some(missing), .. } = decision(granted, requested)
            else {
                panic!("{requested} is allowed")
            };
            assert_eq!((&*missing.entry, &*missing.as_setting()), (expected, expected));
        };
        check(None, StorageGrant::default(), "storage = true");
        check(None, grant(32, 10_000), "storage = { quota = \"32 MiB\" }");
        check(None, grant(16, 7), "storage = { keys = 7 }");
        check(Some(grant(1, 50)), grant(2, 7), "storage = { quota = \"2 MiB\", keys = 50 }");
    }

    #[test]
    fn granted_storage_is_listed() {
        let grants = Grants { storage: Some(grant(1, 20)), ..Grants::default() };
        let lines = ["storage 1 MiB, 20 keys", "no directory, no environment, no network"];
        assert_eq!(grants.lines(&[]), lines);
        assert_eq!(grants.brief(&[]), "keeps up to 1 MiB");
        assert!(grants.effects().changes && !grants.effects().open_world);
        assert_eq!(grants.storage.to_json(), json!({ "quota": "1 MiB", "keys": 20 }));
        let missing = Grants::default().beyond(&grants);
        assert_eq!(missing, None);
        assert_eq!(grants.beyond(&Grants::default()).as_deref(), Some(lines[0]));
    }

    #[test]
    fn requested_storage_has_the_form_of_a_grant() {
        let check = |requested: Value, expected: &[&str]| {
            let requested = json!({ "storage": requested, "required": ["storage"] });
            let requested = RequestedGrants::read(requested.as_object().unwrap()).unwrap();
            let none = Grants::default();
            let missing = requested.missing_required(&none);
            let missing: Vec<_> = missing.map(|(_, missing)| missing.entry).collect();
            assert_eq!(missing, expected);
            // A part of the requested size is enough to work with.
            let some = Grants { storage: Some(grant(1, 1)), ..Grants::default() };
            assert_eq!(requested.missing_required(&some).count(), 0);
        };
        check(json!(true), &["storage = true"]);
        check(json!({}), &["storage = true"]);
        check(json!({ "quota": "1MiB" }), &["storage = { quota = \"1 MiB\" }"]);
        check(json!(false), &[]);
        check(json!({ "keys": 0 }), &[]);
        let malformed = json!({ "storage": { "quota": 7 } });
        assert!(RequestedGrants::read(malformed.as_object().unwrap()).is_err());
    }

    proptest! {
        #[test]
        fn smaller_grants_never_allow_more(
            (granted, requested, less) in ((1_u64..5, 1_u64..5), (1_u64..5, 1_u64..5), (1_u64..5, 1_u64..5))
        ) {
            // The plain model.
            let fits = requested.0 <= granted.0 && requested.1 <= granted.1;
            let [granted, requested, less] = [granted, requested, less].map(|(quota, keys)| grant(quota, keys));
            let is_allowed = |grant: Option<StorageGrant>| {
                matches!(decision(grant, requested), Decision::Allowed { .. })
            };
            prop_assert_eq!(is_allowed(Some(granted)), fits);
            prop_assert!(!is_allowed(None));
            if less.is_within(&granted) && is_allowed(Some(less)) {
                prop_assert!(is_allowed(Some(granted)));
            }
            // The missing grant allows the request.
            if let Decision::Denied { .. } = decision(Some(granted), requested) {
                let quota = granted.quota.max(requested.quota);
                let more = StorageGrant { quota, keys: granted.keys.max(requested.keys) };
                prop_assert!(is_allowed(Some(more)));
            }
        }
    }
}
