//! What comes of a request.

use kitbag_base::text::shown;

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
    form: Form,
}

/// What stands under the key of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    List,
    Table {
        /// What the entry names.
        names: String,
    },
    /// One value.
    Setting,
}

impl MissingGrant {
    /// One of a kind whose grants are a list.
    pub const fn of_list(key: &'static str, entry: String) -> Self {
        Self { key, entry, form: Form::List }
    }

    /// One of a kind whose grants are a table: `entry` is a key and its value, and `names` what
    /// it names, a tool or a secret.
    pub fn of_table(key: &'static str, entry: String, names: &str) -> Self {
        Self { key, entry, form: Form::Table { names: names.to_owned() } }
    }

    /// One that is all of its kind: `setting` is the key of the kind and its value.
    pub const fn setting(key: &'static str, setting: String) -> Self {
        Self { key, entry: setting, form: Form::Setting }
    }

    /// It as a line under `grants` of its own: `env = ["LANG"]`.
    pub fn as_setting(&self) -> String {
        match &self.form {
            Form::Setting => self.entry.clone(),
            Form::Table { .. } => format!("{} = {{ {} }}", self.key, self.entry),
            Form::List => format!("{} = [{}]", self.key, self.entry),
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
    pub fn advice(&self, places: &str) -> String {
        let entry = shown(&self.entry);
        match self.is_setting() {
            // There may be one already.
            true => format!("set `{entry}` in {places}"),
            false => format!("add `{entry}` to {places}"),
        }
    }

    /// The same under `[ceiling.grants]`, where what is a table elsewhere is a list of names.
    pub fn of_ceiling(&self) -> Self {
        match &self.form {
            Form::Table { names } => Self::of_list(self.key, format!("\"{names}\"")),
            Form::List | Form::Setting => self.clone(),
        }
    }

    /// Whether the entry is the whole setting.
    pub fn is_setting(&self) -> bool {
        self.form == Form::Setting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_grant_reads_as_it_is_written() {
        let check = |missing: MissingGrant, setting: &str, advice: &str| {
            assert_eq!(missing.as_setting(), setting);
            assert_eq!(missing.advice(&format!("`{}`", missing.place("g"))), advice);
        };
        let list = MissingGrant::of_list("env", "\"A\"".to_owned());
        check(list, "env = [\"A\"]", "add `\"A\"` to `g.env`");
        let table = MissingGrant::of_table("secrets", "a = {}".to_owned(), "a");
        assert_eq!(table.of_ceiling(), MissingGrant::of_list("secrets", "\"a\"".to_owned()));
        check(table, "secrets = { a = {} }", "add `a = {}` to `g.secrets`");
        let caller = "tools = \"caller\"";
        let setting = MissingGrant::setting("tools", caller.to_owned());
        check(setting, caller, "set `tools = \"caller\"` in `g`");
    }
}
