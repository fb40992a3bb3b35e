//! What comes of a request.

use crate::secret::SecretGrant;
use crate::storage::StorageGrant;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is allowed.
    Allowed {
        /// The grant that allows it, as [`crate::Kind::lines`] writes it.
        by: String,
    },
    /// Nothing allows it, or something denies it.
    Denied {
        /// Why, in a line.
        reason: String,
        /// What would allow it. `None`: no grant can.
        missing: Option<MissingGrant>,
    },
}

/// A grant that would allow what was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// The key under `grants` that it belongs to.
    pub key: &'static str,
    /// The entry of that key's list or table, in TOML; of `storage`, which is neither, the
    /// setting: `storage = true`.
    pub entry: String,
}

impl MissingGrant {
    /// It as a line under `grants` of its own: `env = ["LANG"]`.
    pub fn as_setting(&self) -> String {
        match self.key {
            StorageGrant::KEY => self.entry.clone(),
            SecretGrant::KEY => format!("{} = {{ {} }}", self.key, self.entry),
            key => format!("{key} = [{}]", self.entry),
        }
    }

    /// The dotted key of the list or table that holds the entry, in a configuration: of these
    /// `grants`.
    pub fn place(&self, grants: &str) -> String {
        match self.key {
            StorageGrant::KEY => grants.to_owned(),
            key => format!("{grants}.{key}"),
        }
    }

    /// What to do with the entry at such places: ``add `"LANG"` to `tools.a.grants.env` ``.
    pub fn advice(&self, places: &[&str]) -> String {
        let (verb, preposition) = match self.key {
            // There may be one already.
            StorageGrant::KEY => ("set", "in"),
            _ => ("add", "to"),
        };
        let place = |place: &&str| format!("{preposition} `{place}`");
        let places: Vec<_> = places.iter().map(place).collect();
        format!("{verb} `{}` {}", self.entry, places.join(" and "))
    }

    /// The same for a tool, where no place is bound by a ceiling.
    pub fn advice_for(&self, tool: &str) -> String {
        self.advice(&[&self.place(&format!("tools.{tool}.grants"))])
    }
}
