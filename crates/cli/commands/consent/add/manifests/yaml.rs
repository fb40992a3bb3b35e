//! YAML as a tree, built from parser events.
//!
//! Aliases, merge keys and tags are not followed: a person cannot read their expansion in place,
//! and a few lines of aliases can expand to gigabytes.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::node::{Budget, Node, Problem, check_size, insert};

const ALIAS: Node = Node::Unusable("an alias, which is not followed");
const TAGGED: Node = Node::Unusable("a value with a tag, which is not supported");

/// An unfinished list or table.
struct Frame {
    container: Container,
    /// The value has a tag, so its meaning is unknown.
    is_tagged: bool,
}

enum Container {
    List(Vec<Node>),
    Table { entries: Vec<(String, Node)>, key: Option<Option<String>> },
}

/// Reads the only document of a stream.
pub(crate) fn read(text: &str) -> Result<Node, Problem> {
    check_size(text)?;
    let mut budget = Budget::default();
    let (mut frames, mut root) = (Vec::<Frame>::new(), None);
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            format!("{} at line {} column {}", error.info(), marker.line(), marker.col() + 1)
        })?;
        let value = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let line = span.start.line();
                    return Err(format!("it has a second document at line {line}"));
                }
                continue;
            }
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Nothing => continue,
            Event::SequenceStart(_, tag) => {
                budget.take(frames.len())?;
                let container = Container::List(Vec::new());
                frames.push(Frame { container, is_tagged: tag.is_some() });
                continue;
            }
            Event::MappingStart(_, tag) => {
                budget.take(frames.len())?;
                let container = Container::Table { entries: Vec::new(), key: None };
                frames.push(Frame { container, is_tagged: tag.is_some() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match frames.pop() {
                Some(Frame { is_tagged: true, .. }) => TAGGED,
                Some(Frame { container: Container::List(list), .. }) => Node::List(list),
                Some(Frame { container: Container::Table { entries, .. }, .. }) => {
                    Node::Table(entries)
                }
                None => continue,
            },
            Event::Alias(_) => {
                budget.take(frames.len())?;
                ALIAS
            }
            Event::Scalar(_, _, _, Some(_)) => {
                budget.take(frames.len())?;
                TAGGED
            }
            Event::Scalar(text, style, _, None) => {
                budget.take(frames.len())?;
                scalar(&text, style)
            }
        };
        match frames.last_mut() {
            Some(frame) => frame.add(value),
            None => root = Some(value),
        }
    }
    Ok(root.unwrap_or(Node::Null))
}

impl Frame {
    fn add(&mut self, value: Node) {
        match &mut self.container {
            Container::List(list) => list.push(value),
            Container::Table { entries, key } => match key.take() {
                None => *key = Some(as_key(value)),
                Some(Some(key)) if key == "<<" => {
                    insert(entries, key, Node::Unusable("a merged key, which is not followed"));
                }
                Some(Some(key)) => insert(entries, key, value),
                // A key that is not a string does not name a field.
                Some(None) => {
                    insert(entries, "?".to_owned(), Node::Unusable("a key that is not a string"));
                }
            },
        }
    }
}

/// Returns a key as a string. A number is kept as it is written.
fn as_key(key: Node) -> Option<String> {
    match key {
        Node::Text(text) => Some(text),
        Node::Bool(value) => Some(value.to_string()),
        Node::Integer(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Parses a scalar of the core schema of YAML 1.2.
fn scalar(text: &str, style: ScalarStyle) -> Node {
    if style != ScalarStyle::Plain {
        return Node::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Node::Null,
        "true" | "True" | "TRUE" => return Node::Bool(true),
        "false" | "False" | "FALSE" => return Node::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() {
        return text.parse().map_or_else(|_| Node::Number(text.to_owned()), Node::Integer);
    }
    let radix = |prefix: &str, radix| i128::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    if let Some(integer) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Node::Integer(integer);
    }
    let starts_as_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    match starts_as_number && text.parse::<f64>().is_ok() {
        true => Node::Number(text.to_owned()),
        false => Node::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_yaml_features_are_reported() {
        let read = |text: &str| read(text).unwrap();
        let node = read("a: &x [1]\nb: *x\nc: !env TOKEN\nd: {<<: *x}\n? [k]\n: 1\n");
        assert_eq!(node.get("a"), Some(&Node::List(vec![Node::Integer(1)])));
        assert_eq!(node.get("b"), Some(&ALIAS));
        assert_eq!(node.get("c"), Some(&TAGGED));
        let merged = node.get("d").and_then(|node| node.get("<<"));
        assert_eq!(merged.map(Node::kind), Some("a merged key, which is not followed"));
        assert_eq!(node.get("?").map(Node::kind), Some("a key that is not a string"));
        let twice = read("a: 1\na: 2\n");
        assert_eq!(twice.get("a"), Some(&crate::commands::consent::add::manifests::node::TWICE));
    }

    #[test]
    fn document_size_and_depth_are_limited() {
        let check = |text: &str, expected: &str| {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        };
        check(&"[".repeat(100), "nests deeper than 32 levels");
        check(&"- a\n".repeat(30_000), "more than 20000 values");
        check(&" ".repeat(300_000), "more than the limit of 256 KiB");
        check("a: 1\n---\nb: 2\n", "a second document at line 2");
        check("a: [\n", "at line 2");
    }
}
