//! Values as they were written, with their places in the file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use crate::layers::origin::{Origin, Sourced};
use crate::read::file::SourceFile;
use crate::report::Span;

/// A value and its place in its file.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A table with keys that the user chooses, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Table<V>(Vec<Entry<V>>);

/// A key of a [`Table`] and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry<V> {
    pub(crate) key: Written<String>,
    pub(crate) value: Written<V>,
}

/// Any TOML value.
#[derive(Clone, Debug)]
pub(crate) struct AnyValue(pub(crate) toml::Value);

/// A short form, or a longer form of another type.
#[derive(Clone, Debug)]
pub(crate) enum Or<S, T> {
    Short(S),
    Other(T),
}

/// A string, or a table or an array.
pub(crate) type StringOr<T> = Or<String, T>;

/// `true`, `false`, or a table.
pub(crate) type BoolOr<T> = Or<bool, T>;

/// A type of TOML that is a short form.
pub(crate) trait Short: Sized {
    const EXPECTED: &'static str;
    /// The name of the type in a JSON Schema.
    const TYPE: &'static str;

    fn from_str(_: &str) -> Option<Self> {
        None
    }

    fn from_bool(_: bool) -> Option<Self> {
        None
    }
}

impl Short for String {
    const EXPECTED: &'static str = "a string, a table or an array";
    const TYPE: &'static str = "string";

    fn from_str(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Short for bool {
    const EXPECTED: &'static str = "`true`, `false` or a table";
    const TYPE: &'static str = "boolean";

    fn from_bool(value: bool) -> Option<Self> {
        Some(value)
    }
}

/// A written value together with the file that contains it.
#[derive(Debug)]
pub(crate) struct At<'a, T: ?Sized> {
    pub(crate) file: &'a SourceFile,
    pub(crate) span: Span,
    pub(crate) value: &'a T,
}

/// The entry of one file under a key of a [`Table`].
#[derive(Debug)]
pub(crate) struct Part<'a, T> {
    /// The key, as it is written in the file.
    pub(crate) key: At<'a, str>,
    /// The value of the key.
    pub(crate) at: At<'a, T>,
}

impl<T> Written<T> {
    pub(crate) fn at<'a>(&'a self, file: &'a SourceFile) -> At<'a, T> {
        At { file, span: self.span, value: &self.value }
    }
}

impl<'a, T: ?Sized> At<'a, T> {
    /// Returns the place, as it is shown to a person.
    pub(crate) fn origin(&self) -> Origin {
        self.file.origin(self.span.start)
    }

    /// Returns a resolved value with this place as its origin.
    pub(crate) fn sourced<U>(&self, value: U) -> Sourced<U> {
        Sourced { value, origin: self.origin() }
    }

    /// Returns another value at this place.
    pub(crate) fn with<U: ?Sized>(&self, value: &'a U) -> At<'a, U> {
        At { file: self.file, span: self.span, value }
    }

    /// Returns a part of this value.
    pub(crate) fn inner<U>(
        &self,
        part: impl FnOnce(&'a T) -> Option<&'a Written<U>>,
    ) -> Option<At<'a, U>> {
        part(self.value).map(|written| written.at(self.file))
    }
}

impl<V> Table<V> {
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Entry<V>> {
        self.0.iter()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.iter().any(|entry| entry.key.value == key)
    }

    /// Replaces each entry with the result of `change`, which receives the key, the place of the
    /// key and the value. Removes an entry if the result is `None`.
    pub(crate) fn filter_map(self, mut change: impl FnMut(&str, Span, V) -> Option<V>) -> Self {
        let entries = self.0.into_iter().filter_map(|Entry { key, value }| {
            let Written { value, span } = value;
            let value = change(&key.value, key.span, value)?;
            Some(Entry { key, value: Written { value, span } })
        });
        Self(entries.collect())
    }

    /// Removes and returns the entries that `is_out` selects.
    pub(crate) fn take_out(&mut self, is_out: impl FnMut(&V) -> bool) -> Vec<Entry<V>> {
        let mut is_out = is_out;
        self.0.extract_if(.., |entry| is_out(&entry.value.value)).collect()
    }

    /// Returns the entries with the file that contains them.
    pub(crate) fn parts<'a>(&'a self, file: &'a SourceFile) -> impl Iterator<Item = Part<'a, V>> {
        self.iter().map(move |entry| entry.part(file))
    }
}

/// Merges the tables of several layers by their keys; the weakest layer comes first.
///
/// The keys are in the order of their first appearance, each with its entry in every layer that has
/// it, again the weakest first.
pub(crate) fn merge<'a, V>(
    tables: impl IntoIterator<Item = (&'a SourceFile, &'a Table<V>)>,
) -> Vec<Vec<Part<'a, V>>> {
    let mut merged: Vec<Vec<Part<'a, V>>> = Vec::new();
    let mut tables = tables.into_iter().peekable();
    if let Some((file, table)) = tables.next() {
        merged.extend(table.iter().map(|entry| vec![entry.part(file)]));
    }
    if tables.peek().is_none() {
        return merged;
    }
    let mut index: HashMap<&str, usize> =
        merged.iter().enumerate().map(|(index, parts)| (parts[0].key.value, index)).collect();
    for (file, table) in tables {
        for entry in table.iter() {
            let part = entry.part(file);
            let place = *index.entry(part.key.value).or_insert(merged.len());
            match merged.get_mut(place) {
                Some(parts) => parts.push(part),
                None => merged.push(vec![part]),
            }
        }
    }
    merged
}

/// Returns the value of a field in every layer that sets it, the weakest first.
pub(crate) fn all<'a, T, U: 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> impl DoubleEndedIterator<Item = At<'a, U>> {
    parts.iter().filter_map(move |part| part.at.inner(&field))
}

/// Returns the value of a field in the strongest layer that sets it.
pub(crate) fn last<'a, T, U: 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> Option<At<'a, U>> {
    all(parts, field).next_back()
}

/// Returns a copy of the value of a field in the strongest layer that sets it.
pub(crate) fn copied<'a, T, U: Clone + 'a>(
    parts: &[Part<'a, T>],
    field: impl Fn(&'a T) -> Option<&'a Written<U>>,
) -> Option<Sourced<U>> {
    last(parts, field).map(|at| at.sourced(at.value.clone()))
}

impl<V> Entry<V> {
    fn part<'a>(&'a self, file: &'a SourceFile) -> Part<'a, V> {
        Part {
            key: At { file, span: self.key.span, value: self.key.value.as_str() },
            at: self.value.at(file),
        }
    }
}

// A derive would require `T: Copy`, although only the reference is copied.
impl<T: ?Sized> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for At<'_, T> {}

impl<T> Clone for Part<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Part<'_, T> {}

impl From<std::ops::Range<usize>> for Span {
    fn from(range: std::ops::Range<usize>) -> Self {
        let offset = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: offset(range.start), end: offset(range.end) }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(deserializer)?;
        let span = spanned.span().into();
        Ok(Self { value: spanned.into_inner(), span })
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Table<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Table<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some((key, value)) = map.next_entry()? {
                    entries.push(Entry { key, value });
                }
                Ok(Table(entries))
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<'de, S: Short, T: Deserialize<'de>> Deserialize<'de> for Or<S, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<S, T>(PhantomData<(S, T)>);

        impl<'de, S: Short, T: Deserialize<'de>> Visitor<'de> for Either<S, T> {
            type Value = Or<S, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(S::EXPECTED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                let short = S::from_str(text).map(Or::Short);
                short.ok_or_else(|| E::invalid_type(Unexpected::Str(text), &self))
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                let short = S::from_bool(value).map(Or::Short);
                short.ok_or_else(|| E::invalid_type(Unexpected::Bool(value), &self))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Or::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                T::deserialize(SeqAccessDeserializer::new(seq)).map(Or::Other)
            }
        }

        // An untagged enum would lose the places of the values that it tries.
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Value::deserialize(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for Written<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<V: JsonSchema> JsonSchema for Table<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("TableOf{}", V::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": generator.subschema_for::<V>(),
        })
    }
}

impl<S: Short, T: JsonSchema> JsonSchema for Or<S, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", S::TYPE, T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": S::TYPE }, generator.subschema_for::<T>()] })
    }
}

impl JsonSchema for AnyValue {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AnyValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        true.into()
    }
}
