//! Decisions on requests.

use kitbag_base::text::shown;

/// The decision on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allowed {
        /// The grant that allows the request, as formatted by [`crate::Kind::lines`].
        by: String,
    },
    /// The request is not granted, or it is denied.
    Denied {
        /// The reason, in one line.
        reason: String,
        /// The grant that would allow the request. `None`: no grant can.
        missing: Option<MissingGrant>,
    },
}

/// A refused access that a person must resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRefusal {
    /// The key of the kind of grants.
    pub key: &'static str,
    /// The reason, in one line.
    pub reason: String,
    /// The grant that would allow the access. `None`: no grant can.
    pub missing: Option<MissingGrant>,
}

/// A grant that would allow a denied request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// The key under `grants`.
    pub key: &'static str,
    /// The entry to add to the key's list or table, in TOML. For `storage`, and for all tools of a
    /// caller, the whole setting: `storage = true`.
    pub entry: String,
    form: Form,
}

/// The form of the value under a grant's key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    List,
    Table {
        /// The subject of the entry.
        names: String,
    },
    /// A single value.
    Setting,
}

impl MissingGrant {
    /// Creates an entry of a list.
    pub const fn of_list(key: &'static str, entry: String) -> Self {
        Self { key, entry, form: Form::List }
    }

    /// Creates an entry of a table. `entry` is a key and its value, and `names` is the tool or
    /// secret that it grants.
    pub fn of_table(key: &'static str, entry: String, names: &str) -> Self {
        Self { key, entry, form: Form::Table { names: names.to_owned() } }
    }

    /// Creates a whole setting: the key of the kind and its value.
    pub const fn setting(key: &'static str, setting: String) -> Self {
        Self { key, entry: setting, form: Form::Setting }
    }

    /// Formats the grant as a line under `grants`: `env = ["LANG"]`.
    pub fn as_setting(&self) -> String {
        match &self.form {
            Form::Setting => self.entry.clone(),
            Form::Table { .. } => format!("{} = {{ {} }}", self.key, self.entry),
            Form::List => format!("{} = [{}]", self.key, self.entry),
        }
    }

    /// Returns the dotted key of the list or table that contains the entry, given the key of
    /// `grants`.
    pub fn place(&self, grants: &str) -> String {
        match self.is_setting() {
            true => grants.to_owned(),
            false => format!("{grants}.{}", self.key),
        }
    }

    /// Describes how to add the entry at these places: ``add `"LANG"` to `tools.a.grants.env` ``.
    pub fn advice(&self, places: &str) -> String {
        let entry = shown(&self.entry);
        match self.is_setting() {
            // The entry may exist already.
            true => format!("set `{entry}` in {places}"),
            false => format!("add `{entry}` to {places}"),
        }
    }

    /// Returns the grant under `[ceiling.grants]`, where tables are lists of names.
    pub fn of_ceiling(&self) -> Self {
        match &self.form {
            Form::Table { names } => Self::of_list(self.key, format!("\"{names}\"")),
            Form::List | Form::Setting => self.clone(),
        }
    }

    /// Formats the value as it is typed on a command line: a pattern or a name without quotes, a
    /// table as in a file, and `KEY=VALUE` for an entry of a table.
    pub fn typed(&self) -> String {
        let plain = |value: &str| {
            let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            text.unwrap_or(value).to_owned()
        };
        match (&self.form, self.entry.split_once(" = ")) {
            (Form::Setting, Some((_, value))) => plain(value),
            (Form::Table { .. }, Some((key, value))) => format!("{key}={}", plain(value)),
            _ => plain(&self.entry),
        }
    }

    /// Returns true if the entry is a whole setting.
    pub fn is_setting(&self) -> bool {
        self.form == Form::Setting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_grants_are_formatted_as_written() {
        let check = |missing: MissingGrant, setting: &str, typed: &str, advice: &str| {
            assert_eq!(missing.as_setting(), setting);
            assert_eq!(missing.typed(), typed);
            assert_eq!(missing.advice(&format!("`{}`", missing.place("g"))), advice);
        };
        let list = MissingGrant::of_list("env", "\"A\"".to_owned());
        check(list, "env = [\"A\"]", "A", "add `\"A\"` to `g.env`");
        let table = MissingGrant::of_table("secrets", "a = {}".to_owned(), "a");
        assert_eq!(table.of_ceiling(), MissingGrant::of_list("secrets", "\"a\"".to_owned()));
        check(table, "secrets = { a = {} }", "a={}", "add `a = {}` to `g.secrets`");
        let caller = "tools = \"caller\"";
        let setting = MissingGrant::setting("tools", caller.to_owned());
        check(setting, caller, "caller", "set `tools = \"caller\"` in `g`");
    }
}
