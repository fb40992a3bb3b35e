//! Configuration values that a tool reads by key.

use std::collections::BTreeMap;
use std::fmt;

use kitbag_base::text::shown;
use serde_json::Value;

use crate::Grants;
use crate::consent::{GrantText, Surroundings};
use crate::kind::{DefaultCeiling, Effects, GrantForm, Kind, KindInfo};

/// The configuration values of a tool, by key. They are not secret and are shown to people.
///
/// They refer to nothing on the host: the granted value is the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigValues(BTreeMap<String, String>);

/// The error for an invalid configuration value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigValueError {
    /// The key is empty, too long, or contains invisible characters.
    #[error(
        "`{}` is not a valid key of a configuration value: use 1 to {} bytes without control \
         characters",
        shown(key),
        ConfigValues::KEY_BYTES
    )]
    Key {
        /// The invalid key.
        key: String,
    },
    /// The value is too long.
    #[error(
        "the configuration value `{}` has {bytes} bytes; the limit is {}",
        shown(key),
        ConfigValues::VALUE_BYTES
    )]
    Value {
        /// The key of the value.
        key: String,
        /// The size in bytes.
        bytes: usize,
    },
    /// The tool has too many values.
    #[error(
        "the tool already has {} configuration values, which is the limit; cannot add `{}`",
        ConfigValues::MOST,
        shown(key)
    )]
    TooMany {
        /// The key that exceeds the limit.
        key: String,
    },
}

impl ConfigValues {
    /// The key of these grants.
    pub const KEY: &'static str = "config";

    /// Maximum number of values of one tool.
    pub const MOST: usize = 64;

    /// Maximum length of a key in bytes.
    pub const KEY_BYTES: usize = 128;

    /// Maximum length of a value in bytes: 32 KiB.
    pub const VALUE_BYTES: usize = 32 << 10;

    /// Sets a value. Replaces an existing value with the same key.
    ///
    /// # Errors
    ///
    /// [`ConfigValueError`] if the key or value is not valid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigValueError> {
        let key = key.to_owned();
        if !(1..=Self::KEY_BYTES).contains(&key.len()) || key.contains(char::is_control) {
            return Err(ConfigValueError::Key { key });
        }
        if value.len() > Self::VALUE_BYTES {
            return Err(ConfigValueError::Value { key, bytes: value.len() });
        }
        if self.0.len() >= Self::MOST && !self.0.contains_key(&key) {
            return Err(ConfigValueError::TooMany { key });
        }
        self.0.insert(key, value.to_owned());
        Ok(())
    }

    /// Iterates over the values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// The kind of these grants. They give access to nothing, so they have no ceiling.
pub(crate) const KIND: KindInfo = KindInfo {
    imports: Some("wasi:config/"),
    ceiling: DefaultCeiling::Unlimited,
    ..KindInfo::new(ConfigValues::KEY, "settings", GrantForm::Table)
};

impl Kind for ConfigValues {
    fn info(&self) -> &'static KindInfo {
        &KIND
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn lines(&self) -> Vec<String> {
        self.iter().map(line).collect()
    }

    fn brief(&self) -> Vec<String> {
        // Configuration values grant no access outside the sandbox.
        Vec::new()
    }

    fn to_json(&self) -> Value {
        self.iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
    }

    fn uncovered(&self, own: &Grants) -> Option<String> {
        self.iter()
            .find(|(key, value)| own.config.0.get(*key).map(String::as_str) != Some(value))
            .map(line)
    }

    fn singles(&self) -> Vec<Grants> {
        let single = |(key, value): (&String, &String)| Grants {
            config: Self([(key.clone(), value.clone())].into()),
            ..Grants::default()
        };
        self.0.iter().map(single).collect()
    }

    /// Configuration values need no consent.
    fn texts(&self, _: &Surroundings<'_>) -> Vec<GrantText> {
        Vec::new()
    }
}

/// Formats a key and a value as they would be typed, escaped for terminals.
fn line((key, value): (&str, &str)) -> String {
    struct Quoted<'a>(&'a str);
    impl fmt::Display for Quoted<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", Value::from(self.0))
        }
    }
    format!("config {} = {}", shown(key), shown(&Quoted(value).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> ConfigValues {
        let mut values = ConfigValues::default();
        for (key, value) in pairs {
            values.set(key, value).unwrap();
        }
        values
    }

    #[test]
    fn key_and_value_sizes_are_bounded() {
        let check = |key: &str, value: &str, expected: bool| {
            let result = ConfigValues::default().set(key, value);
            assert_eq!(result.is_ok(), expected, "{key:?} {}", value.len());
        };
        check("api_version", "", true);
        check("a b.c/é", "x", true);
        check("", "x", false);
        check("a\nb", "x", false);
        check(&"k".repeat(ConfigValues::KEY_BYTES + 1), "x", false);
        check("k", &"v".repeat(ConfigValues::VALUE_BYTES), true);
        check("k", &"v".repeat(ConfigValues::VALUE_BYTES + 1), false);
    }

    #[test]
    fn value_count_is_bounded_and_values_are_replaced() {
        let mut values = ConfigValues::default();
        for number in 0..ConfigValues::MOST {
            values.set(&number.to_string(), "x").unwrap();
        }
        assert!(matches!(values.set("more", "x"), Err(ConfigValueError::TooMany { .. })));
        values.set("0", "y").unwrap();
    }

    #[test]
    fn different_values_are_beyond() {
        let own = Grants { config: values(&[("a", "1"), ("b", "2")]), ..Grants::default() };
        let check = |pairs: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(values(pairs).uncovered(&own).as_deref(), expected);
        };
        check(&[], None);
        check(&[("b", "2")], None);
        check(&[("a", "2")], Some("config a = \"2\""));
        check(&[("c", "2")], Some("config c = \"2\""));
    }
}
