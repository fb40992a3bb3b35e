//! JSON as a tree. Unlike `serde_json`, it detects repeated keys.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::node::{Budget, Node, Problem, check_size, insert};

pub(crate) fn read(text: &str) -> Result<Node, Problem> {
    check_size(text)?;
    let mut budget = Budget::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Value { depth: 0, budget: &mut budget };
    let read = value.deserialize(&mut deserializer);
    let node = read.map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(node)
}

struct Value<'a> {
    depth: usize,
    budget: &'a mut Budget,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.budget.take(self.depth).map_err(D::Error::custom)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        let depth = self.depth + 1;
        while let Some(value) = seq.next_element_seed(Value { depth, budget: self.budget })? {
            list.push(value);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        let depth = self.depth + 1;
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Value { depth, budget: self.budget })?;
            insert(&mut entries, key, value);
        }
        Ok(Node::Table(entries))
    }
}
