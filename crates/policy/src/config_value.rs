//! Configuration values of a tool, which it reads by their keys.

use std::collections::BTreeMap;
use std::fmt;

use kitbag_base::text::shown;
use serde_json::Value;

use crate::kind::{Effects, Kind, Reach};

/// What a tool reads as its configuration, by key. Not secret: it is shown to people.
///
/// Nothing of it is of the host's: a grant is the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigValues(BTreeMap<String, String>);

/// A key and a value that no tool is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigValueError {
    /// The key is empty or long, or holds what is not seen.
    #[error(
        "`{}` is not the key of a configuration value: it has 1 to {} bytes, and no control \
         characters",
        shown(key),
        ConfigValues::KEY_BYTES
    )]
    Key {
        /// The key.
        key: String,
    },
    /// The value is long.
    #[error(
        "the configuration value `{}` has {bytes} bytes; {} is the most",
        shown(key),
        ConfigValues::VALUE_BYTES
    )]
    Value {
        /// Its key.
        key: String,
        /// Its size.
        bytes: usize,
    },
    /// There are many values.
    #[error(
        "the tool has {} configuration values already, the most; `{}` is one more",
        ConfigValues::MOST,
        shown(key)
    )]
    TooMany {
        /// The key that is one too many.
        key: String,
    },
}

impl ConfigValues {
    /// The key of these grants.
    pub const KEY: &'static str = "config";

    /// The most values of one tool.
    pub const MOST: usize = 64;

    /// The longest key, in bytes.
    pub const KEY_BYTES: usize = 128;

    /// The longest value, in bytes: 32 KiB.
    pub const VALUE_BYTES: usize = 32 << 10;

    /// Sets a value, in the place of another one with the same key.
    ///
    /// # Errors
    ///
    /// [`ConfigValueError`], where a key or a value cannot be given.
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

    /// The values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// The first of these values that `own` does not have.
    pub(crate) fn beyond(&self, own: &Self) -> Option<String> {
        self.iter()
            .find(|(key, value)| own.0.get(*key).map(String::as_str) != Some(value))
            .map(line)
    }
}

impl Kind for ConfigValues {
    fn key(&self) -> &'static str {
        Self::KEY
    }

    fn reach(&self) -> Reach {
        Reach::Configuration
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
        // They reach nothing outside of the sandbox.
        Vec::new()
    }

    fn to_json(&self) -> Value {
        self.iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect()
    }
}

/// A value as it would be typed, and as a terminal shows it.
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
    fn a_key_and_a_value_have_a_size() {
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
    fn there_are_so_many_values_and_one_can_be_replaced() {
        let mut values = ConfigValues::default();
        for number in 0..ConfigValues::MOST {
            values.set(&number.to_string(), "x").unwrap();
        }
        assert!(matches!(values.set("more", "x"), Err(ConfigValueError::TooMany { .. })));
        values.set("0", "y").unwrap();
    }

    #[test]
    fn other_values_are_beyond() {
        let own = values(&[("a", "1"), ("b", "2")]);
        let check = |pairs: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(values(pairs).beyond(&own).as_deref(), expected);
        };
        check(&[], None);
        check(&[("b", "2")], None);
        check(&[("a", "2")], Some("config a = \"2\""));
        check(&[("c", "2")], Some("config c = \"2\""));
    }
}
