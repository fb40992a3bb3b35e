//! TOML as a tree. A repeated key makes the whole document invalid, as TOML requires.

use kitbag::config::dismantle;
use toml::de::{DeTable, DeValue};

use super::node::{Budget, DEPTH, Node, Problem, check_size};

pub(crate) fn read(text: &str) -> Result<Node, Problem> {
    check_size(text)?;
    let table = DeTable::parse(text).map_err(|error| error.message().to_owned())?.into_inner();
    let document = DeValue::Table(table);
    let read = node(&document, 0, &mut Budget::default());
    // Each bracket and each part of a dotted key may be a level of nesting.
    dismantle(document);
    read
}

fn node(value: &DeValue<'_>, depth: usize, budget: &mut Budget) -> Result<Node, Problem> {
    budget.take(depth)?;
    Ok(match value {
        DeValue::String(text) => Node::Text(text.to_string()),
        DeValue::Integer(integer) => {
            match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => Node::Integer(integer),
                Err(_) => Node::Number(integer.as_str().to_owned()),
            }
        }
        DeValue::Float(float) => Node::Number(float.as_str().to_owned()),
        DeValue::Boolean(value) => Node::Bool(*value),
        DeValue::Datetime(_) => Node::Unusable("a date"),
        DeValue::Array(array) => {
            let nodes = array.iter().map(|value| node(value.get_ref(), depth + 1, budget));
            Node::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => {
            let mut entries = Vec::with_capacity(table.len());
            for (key, value) in table {
                entries
                    .push((key.get_ref().to_string(), node(value.get_ref(), depth + 1, budget)?));
            }
            Node::Table(entries)
        }
    })
}

const _: () = assert!(DEPTH < 64, "reading recurses as deep");
