//! The front matter of a file `SKILL.md`: YAML between two lines `---`.
//!
//! Source: Agent Skills, agentskills.io/specification. Many files in use are not valid YAML, such
//! as `description: Use when: …`. Their name and description are read line by line.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Maximum size of front matter in bytes.
const BYTES: usize = 64 << 10;

/// Maximum nesting of tables and lists.
const DEPTH: usize = 32;

/// Maximum number of values.
const VALUES: usize = 2_000;

/// The front matter of a skill.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrontMatter {
    /// The name. `None`: it is missing, empty or not a string.
    pub(crate) name: Option<String>,
    /// The description. `None`: it is missing, empty or not a string.
    pub(crate) description: Option<String>,
    /// All fields, or the reason why they cannot be read.
    pub(crate) fields: Result<Map<String, Value>, String>,
}

impl FrontMatter {
    /// Reads the front matter at the start of a file.
    pub(crate) fn read(text: &str) -> Self {
        let unread = |problem| Self { name: None, description: None, fields: Err(problem) };
        let missing = || unread("it has no front matter".to_owned());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(block) = block(text) else { return missing() };
        if block.len() > BYTES {
            return unread(format!("its front matter has more than {} KiB", BYTES >> 10));
        }
        match parse(block) {
            Ok(Value::Object(fields)) => {
                let text = |key| fields.get(key).and_then(Value::as_str).and_then(trimmed);
                let (name, description) = (text("name"), text("description"));
                Self { name, description, fields: Ok(fields) }
            }
            Ok(_) => missing(),
            Err(problem) => {
                let line = |key| line(block, key).as_deref().and_then(trimmed);
                let (name, description) = (line("name"), line("description"));
                let fields = Err(format!("its front matter is not valid YAML: {problem}"));
                Self { name, description, fields }
            }
        }
    }
}

/// Returns the text without spaces at its ends, if there is any.
fn trimmed(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the text between the first line, `---`, and the next such line.
fn block(text: &str) -> Option<&str> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some(&text[first.len()..end]);
        }
        end += line.len();
    }
    None
}

/// Returns the rest of the line of a key, with the indented lines that follow it.
fn line(block: &str, key: &str) -> Option<String> {
    let mut lines = block.lines().skip_while(|line| value_of(line, key).is_none());
    let mut value = value_of(lines.next()?, key)?.to_owned();
    for line in lines.take_while(|line| line.starts_with([' ', '\t'])) {
        value.push(' ');
        value.push_str(line.trim());
    }
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
    Some(value.trim())
}

/// An unfinished list or table.
enum Frame {
    List(Vec<Value>),
    Table { fields: Map<String, Value>, key: Option<String> },
}

/// Parses one YAML document. Aliases are refused: a few lines of them expand to gigabytes.
fn parse(text: &str) -> Result<Value, String> {
    let (mut frames, mut root, mut values) = (Vec::<Frame>::new(), Value::Null, 0);
    for event in Parser::new_from_str(text) {
        let (event, _) = event
            .map_err(|error| format!("{} at line {}", error.info(), error.marker().line() + 1))?;
        values += 1;
        if values > VALUES {
            return Err(format!("it has more than {VALUES} values"));
        }
        let value = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if frames.len() == DEPTH {
                    return Err(format!("it nests deeper than {DEPTH} levels"));
                }
                frames.push(match event {
                    Event::SequenceStart(..) => Frame::List(Vec::new()),
                    _ => Frame::Table { fields: Map::new(), key: None },
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match frames.pop() {
                Some(Frame::List(list)) => list.into(),
                Some(Frame::Table { fields, .. }) => fields.into(),
                None => continue,
            },
            Event::Alias(_) => return Err("it has an alias".to_owned()),
            Event::Scalar(text, style, _, _) => scalar(&text, style),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::Nothing => continue,
        };
        match frames.last_mut() {
            None => root = value,
            Some(Frame::List(list)) => list.push(value),
            Some(Frame::Table { fields, key }) => match key.take() {
                None => *key = Some(as_key(value)?),
                Some(key) if fields.contains_key(&key) => {
                    return Err(format!("it has the key `{key}` twice"));
                }
                Some(key) => drop(fields.insert(key, value)),
            },
        }
    }
    Ok(root)
}

fn as_key(key: Value) -> Result<String, String> {
    match key {
        Value::String(key) => Ok(key),
        Value::Bool(_) | Value::Number(_) => Ok(key.to_string()),
        _ => Err("it has a key that is not a string".to_owned()),
    }
}

/// Parses a scalar of the core schema of YAML 1.2.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let starts_as_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let float = || text.parse().ok().and_then(Number::from_f64).map(Value::Number);
    let number = match text.parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) if starts_as_number => float(),
        Err(_) => None,
    };
    number.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, name: Option<&str>, description: Option<&str>, fields: Value) {
        let read = FrontMatter::read(text);
        let found = (read.name.as_deref(), read.description.as_deref());
        assert_eq!(found, (name, description), "{text}");
        let shown = match read.fields {
            Ok(fields) => fields.into(),
            Err(problem) => Value::String(problem),
        };
        assert_eq!(shown, fields, "{text}");
    }

    #[test]
    fn all_fields_are_read() {
        check(
            "---\nname: pdf\ndescription: Read PDFs.\nmetadata:\n  version: 1.5\n  tags: [a, 2]\n---\n# PDF\n",
            Some("pdf"),
            Some("Read PDFs."),
            json!({
                "name": "pdf",
                "description": "Read PDFs.",
                "metadata": { "version": 1.5, "tags": ["a", 2] },
            }),
        );
    }

    #[test]
    fn files_in_use_are_read() {
        let both = json!({ "name": "csv", "description": "Read tables." });
        for text in [
            "\u{feff}---\r\nname: csv\r\ndescription: >-\r\n  Read\r\n  tables.\r\n---\r\n",
            "---\nname: 'csv'\ndescription: \"Read tables.\"\n---",
            "--- \nname: csv\ndescription: |-\n  Read tables.\n---  \ntext",
        ] {
            check(text, Some("csv"), Some("Read tables."), both.clone());
        }
        check("# No front matter\n", None, None, "it has no front matter".into());
        check("---\nname: open\n", None, None, "it has no front matter".into());
        check("---\n---\n", None, None, "it has no front matter".into());
        check("---\nname: 7\n---\n", None, None, json!({ "name": 7 }));
    }

    #[test]
    fn invalid_yaml_keeps_name_and_description() {
        let read = FrontMatter::read(
            "---\nname: pdf\ndescription: Use it when: a form\n  is asked for\n---\n",
        );
        assert_eq!(read.name.as_deref(), Some("pdf"));
        assert_eq!(read.description.as_deref(), Some("Use it when: a form is asked for"));
        let problem = read.fields.unwrap_err();
        assert!(problem.starts_with("its front matter is not valid YAML: "), "{problem}");
    }

    #[test]
    fn hostile_front_matter_is_bounded() {
        for (body, expected) in [
            ("a: &x [1]\nb: *x\n".to_owned(), "it has an alias"),
            (format!("a: {}", "[".repeat(100)), "nests deeper than 32 levels"),
            (format!("a: [{}]", "1,".repeat(3_000)), "more than 2000 values"),
            (format!("a: {}", "x".repeat(70 << 10)), "more than 64 KiB"),
            ("a: 1\na: 2\n".to_owned(), "the key `a` twice"),
        ] {
            let problem = FrontMatter::read(&format!("---\n{body}\n---\n")).fields.unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
