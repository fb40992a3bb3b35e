//! What comes of a request.

use crate::secret::SecretGrant;
use crate::storage::StorageGrant;
use crate::tools::ToolGrants;

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
    /// The entry of that key's list or table, in TOML. Of `storage`, and of all tools of a
    /// caller, the setting, since there is no list: `storage = true`.
    pub entry: String,
}

impl MissingGrant {
    /// It as a line under `grants` of its own: `env = ["LANG"]`.
    pub fn as_setting(&self) -> String {
        match self.key {
            _ if self.is_setting() => self.entry.clone(),
            SecretGrant::KEY | ToolGrants::KEY => format!("{} = {{ {} }}", self.key, self.entry),
            key => format!("{key} = [{}]", self.entry),
        }
    }

    /// The dotted key of the list or table that holds the entry, in a configuration: of these
    /// `grants`.
    pub fn place(&self, grants: &str) -> String {
        match self.is_setting() {
            true => grants.to_owned(),
            false => format!("{grants}.{}", self.key),
        }
    }

    /// What to do with the entry at such places: ``add `"LANG"` to `tools.a.grants.env` ``.
    pub fn advice(&self, places: &[&str]) -> String {
        let (verb, preposition) = match self.is_setting() {
            // There may be one already.
            true => ("set", "in"),
            false => ("add", "to"),
        };
        let place = |place: &&str| format!("{preposition} `{place}`");
        let places: Vec<_> = places.iter().map(place).collect();
        format!("{verb} `{}` {}", self.entry, places.join(" and "))
    }

    /// The same for a tool, where no place is bound by a ceiling.
    pub fn advice_for(&self, tool: &str) -> String {
        self.advice(&[&self.place(&format!("tools.{tool}.grants"))])
    }

    /// Whether the entry is the whole setting.
    pub fn is_setting(&self) -> bool {
        match self.key {
            StorageGrant::KEY => true,
            ToolGrants::KEY => self.entry == ToolGrants::CALLER_SETTING,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_grant_reads_as_it_is_written() {
        let check = |key: &'static str, entry: &str, setting: &str, advice: &str| {
            let missing = MissingGrant { key, entry: entry.to_owned() };
            assert_eq!(missing.as_setting(), setting);
            assert_eq!(missing.advice(&[&missing.place("g")]), advice);
        };
        check("env", "\"A\"", "env = [\"A\"]", "add `\"A\"` to `g.env`");
        check("secrets", "a = {}", "secrets = { a = {} }", "add `a = {}` to `g.secrets`");
        check("tools", "a = \"b\"", "tools = { a = \"b\" }", "add `a = \"b\"` to `g.tools`");
        let caller = "tools = \"caller\"";
        check("tools", caller, caller, "set `tools = \"caller\"` in `g`");
    }
}
