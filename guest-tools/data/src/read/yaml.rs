//! YAML 1.2, read from the events of a parser that builds no values itself: numbers keep their
//! digits, and the values that aliases add are counted before they are copied.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Value};

use super::scalar;
use crate::format::Format;
use crate::mistake::{DEPTH, Mistake};
use crate::notes::Notes;
use crate::pointer;

/// Maximum number of values that aliases and anchors may copy in a stream.
const COPIED_VALUES: usize = 100_000;

/// Maximum total length of the copied strings in bytes.
const COPIED_BYTES: usize = 4 << 20;

/// The note about tags that are read as keys.
const KEYS: &str = "tags are read as keys";
const DROPPED: &str = "tags are dropped";

/// The prefix of the core schema's tags.
const CORE: &str = "tag:yaml.org,2002:";

/// Reads the documents of a stream one at a time.
pub(crate) struct Documents<'a> {
    parser: Parser<'a, StrInput<'a>>,
    frames: Vec<Frame>,
    root: Option<Value>,
    anchors: HashMap<usize, Anchor>,
    copied_values: usize,
    copied_bytes: usize,
    /// The keys of the value whose position is requested.
    wanted: Vec<String>,
    /// The start of the last value on the path.
    found: Option<Marker>,
    pub(crate) notes: Notes,
}

/// A mapping or a sequence that has not ended.
struct Frame {
    container: Container,
    /// The number of its anchor, or 0.
    anchor: usize,
    /// The depth of its values.
    height: usize,
    is_wanted: bool,
    /// True for a tag, which ends with its value.
    is_tag: bool,
}

enum Container {
    Mapping {
        map: Map<String, Value>,
        /// The key of the next value.
        key: Option<Key>,
        /// The entries that `<<` adds.
        merged: Vec<Map<String, Value>>,
    },
    Sequence(Vec<Value>),
}

enum Key {
    Named(String),
    /// `<<`.
    Merge,
}

struct Anchor {
    value: Value,
    height: usize,
    values: usize,
    bytes: usize,
}

/// Returns the start of a value in one document: its line and column, from 1.
pub(crate) fn place(text: &str, number: usize, pointer: &str) -> (usize, usize) {
    let mut documents = Documents::new(text);
    for _ in 0..number {
        let _ = documents.next();
    }
    documents.wanted = pointer::keys(pointer);
    documents.found = None;
    let _ = documents.next();
    documents.found.map_or((1, 1), line_and_column)
}

fn line_and_column(marker: Marker) -> (usize, usize) {
    (marker.line(), marker.col() + 1)
}

impl<'a> Documents<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            parser: Parser::new_from_str(text),
            frames: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            copied_values: 0,
            copied_bytes: 0,
            wanted: Vec::new(),
            found: None,
            notes: Notes::default(),
        }
    }

    /// Returns the next document. `None` at the end of the stream, and after an error.
    pub(crate) fn next(&mut self) -> Result<Option<Value>, Mistake> {
        while let Some(event) = self.parser.next_event() {
            let (event, span) = event.map_err(|error| {
                let at = line_and_column(*error.marker());
                let mistake = Mistake::syntax(Format::Yaml, error.info(), at);
                Mistake { pointer: Some(self.pointer()), ..mistake }
            })?;
            match event {
                Event::DocumentEnd => {
                    // Anchors are valid in one document.
                    self.anchors.clear();
                    return Ok(Some(self.root.take().unwrap_or_default()));
                }
                Event::StreamEnd => return Ok(None),
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
                event => self.take(event, span.start)?,
            }
        }
        Ok(None)
    }

    fn take(&mut self, event: Event<'_>, at: Marker) -> Result<(), Mistake> {
        if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            let Some(frame) = self.frames.pop() else { return Ok(()) };
            let value = frame.container.value();
            return self.add(value, frame.anchor, frame.height, at);
        }
        if self.wants_key() {
            return self.take_key(event, at);
        }
        if self.is_wanted() {
            self.found = Some(at);
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = self.tag(tag.as_deref(), "", anchor, at)?;
                let anchor = if tag.is_key { 0 } else { anchor };
                let value = self.scalar(&text, style, tag.kind, at)?;
                self.add(value, anchor, 0, at)
            }
            Event::Alias(anchor) => {
                let Some(Anchor { height, values, bytes, .. }) = self.anchors.get(&anchor) else {
                    return Err(self.syntax("an alias is part of its own value", at));
                };
                let (height, values, bytes) = (*height, *values, *bytes);
                self.count(values, bytes, at)?;
                let value = self.anchors[&anchor].value.clone();
                self.add(value, 0, height, at)
            }
            Event::SequenceStart(anchor, tag) => {
                let tag = self.tag(tag.as_deref(), "seq", anchor, at)?;
                let anchor = if tag.is_key { 0 } else { anchor };
                let is_wanted = self.is_wanted();
                self.push(Container::Sequence(Vec::new()), anchor, is_wanted, at)
            }
            Event::MappingStart(anchor, tag) => {
                let tag = self.tag(tag.as_deref(), "map", anchor, at)?;
                let anchor = if tag.is_key { 0 } else { anchor };
                let (map, merged) = (Map::new(), Vec::new());
                let mapping = Container::Mapping { map, key: None, merged };
                let is_wanted = self.is_wanted();
                self.push(mapping, anchor, is_wanted, at)
            }
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        let container = self.frames.last().map(|frame| &frame.container);
        matches!(container, Some(Container::Mapping { key: None, .. }))
    }

    /// Returns true if the current value is on the path to the requested one.
    fn is_wanted(&self) -> bool {
        let Some(frame) = self.frames.last() else { return true };
        let Some(wanted) = self.wanted.get(self.frames.len() - 1) else { return false };
        frame.is_wanted
            && match &frame.container {
                Container::Mapping { key: Some(Key::Named(key)), .. } => key == wanted,
                Container::Mapping { .. } => false,
                Container::Sequence(items) => items.len().to_string() == *wanted,
            }
    }

    fn take_key(&mut self, event: Event<'_>, at: Marker) -> Result<(), Mistake> {
        let key = match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) if text == "<<" => Key::Merge,
            Event::Scalar(text, _, anchor, tag) => {
                if let Some(tag) = tag.as_deref().filter(|tag| !is_known(tag, "")) {
                    self.notes.named(DROPPED, &shown(tag), at.line());
                }
                if anchor != 0 {
                    self.anchor(anchor, &Value::from(&*text), 0, at)?;
                }
                Key::Named(text.into_owned())
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).map(|anchor| &anchor.value) {
                Some(Value::String(text)) => Key::Named(text.clone()),
                Some(Value::Array(_) | Value::Object(_)) | None => return Err(self.no_key(at)),
                Some(value) => Key::Named(value.to_string()),
            },
            _ => return Err(self.no_key(at)),
        };
        let Some(Frame { container: Container::Mapping { map, key: next, .. }, .. }) =
            self.frames.last_mut()
        else {
            return Ok(());
        };
        if let Key::Named(name) = &key
            && map.contains_key(name)
        {
            let what = format!("the key `{name}` exists twice");
            return Err(self.syntax(&what, at));
        }
        *next = Some(key);
        Ok(())
    }

    fn no_key(&self, at: Marker) -> Mistake {
        let what = "a key that is a mapping or a sequence";
        Mistake::unfit(what, line_and_column(at), self.pointer())
    }

    fn push(
        &mut self,
        container: Container,
        anchor: usize,
        is_wanted: bool,
        at: Marker,
    ) -> Result<(), Mistake> {
        if self.frames.len() >= DEPTH {
            return Err(self.syntax("recursion limit exceeded", at));
        }
        self.frames.push(Frame { container, anchor, height: 0, is_wanted, is_tag: false });
        Ok(())
    }

    /// Reads the tag of a value that starts: a collection of the kind `expected`, or a scalar if
    /// `expected` is empty. An unknown tag becomes a key whose value follows.
    fn tag<'t>(
        &mut self,
        tag: Option<&'t Tag>,
        expected: &'t str,
        anchor: usize,
        at: Marker,
    ) -> Result<Tagged<'t>, Mistake> {
        let Some(tag) = tag else { return Ok(Tagged { kind: "", is_key: false }) };
        if is_known(tag, expected) {
            return Ok(Tagged { kind: kind(tag), is_key: false });
        }
        // These tags only describe the meaning of keys or items.
        if tag.handle == CORE && ["set", "omap", "pairs"].contains(&tag.suffix.as_str()) {
            self.notes.named(DROPPED, &shown(tag), at.line());
            return Ok(Tagged { kind: "", is_key: false });
        }
        self.notes.named(KEYS, &shown(tag), at.line());
        let key = Some(Key::Named(name(tag)));
        let container = Container::Mapping { map: Map::new(), key, merged: Vec::new() };
        let is_wanted = self.is_wanted();
        self.push(container, anchor, is_wanted, at)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.is_tag = true;
        }
        if self.is_wanted() {
            self.found = Some(at);
        }
        Ok(Tagged { kind: "", is_key: true })
    }

    /// Adds a value of this depth at the current position.
    fn add(
        &mut self,
        value: Value,
        anchor: usize,
        height: usize,
        at: Marker,
    ) -> Result<(), Mistake> {
        if self.frames.len() + height > DEPTH {
            return Err(self.syntax("recursion limit exceeded", at));
        }
        if anchor != 0 {
            self.anchor(anchor, &value, height, at)?;
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        frame.height = frame.height.max(height + 1);
        match &mut frame.container {
            Container::Sequence(items) => items.push(value),
            Container::Mapping { map, key, merged } => match key.take() {
                Some(Key::Named(key)) => {
                    map.insert(key, value);
                }
                Some(Key::Merge) => {
                    let values = match value {
                        Value::Array(values) => values,
                        value => vec![value],
                    };
                    for value in values {
                        let Value::Object(map) = value else {
                            return Err(self.syntax("`<<` merges mappings only", at));
                        };
                        merged.push(map);
                    }
                }
                None => {}
            },
        }
        match self.frames.pop_if(|frame| frame.is_tag) {
            Some(tag) => self.add(tag.container.value(), tag.anchor, tag.height, at),
            None => Ok(()),
        }
    }

    fn anchor(
        &mut self,
        anchor: usize,
        value: &Value,
        height: usize,
        at: Marker,
    ) -> Result<(), Mistake> {
        let (values, bytes) = size(value);
        self.count(values, bytes, at)?;
        let value = value.clone();
        self.anchors.insert(anchor, Anchor { value, height, values, bytes });
        Ok(())
    }

    /// Counts values that are about to be copied.
    fn count(&mut self, values: usize, bytes: usize, at: Marker) -> Result<(), Mistake> {
        self.copied_values += values;
        self.copied_bytes += bytes;
        if self.copied_values > COPIED_VALUES || self.copied_bytes > COPIED_BYTES {
            let what = format!(
                "its aliases expand to more than {COPIED_VALUES} values or {} MiB: use fewer of \
                 them, or split the document",
                COPIED_BYTES >> 20
            );
            return Err(self.syntax(&what, at));
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        kind: &str,
        at: Marker,
    ) -> Result<Value, Mistake> {
        if matches!(kind, "str" | "binary" | "timestamp")
            || kind.is_empty() && style != ScalarStyle::Plain
        {
            return Ok(Value::from(text));
        }
        let resolved = scalar::resolve(text);
        let is_int = |text: &str| text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
        let fits = match (kind, &resolved) {
            ("", _) => true,
            ("null", Ok(value)) => value.is_null(),
            ("bool", Ok(value)) => value.is_boolean(),
            ("int", Ok(value)) => is_int(&value.to_string()),
            ("float", Ok(value)) => value.is_number(),
            ("float", Err(_)) => true,
            _ => false,
        };
        match fits {
            true => {
                Ok(resolved
                    .unwrap_or_else(|special| special.value(text, &mut self.notes, at.line())))
            }
            false => Err(self.syntax(&format!("`{text}` is not a `!!{kind}`"), at)),
        }
    }

    fn syntax(&self, what: &str, at: Marker) -> Mistake {
        let mistake = Mistake::syntax(Format::Yaml, what, line_and_column(at));
        Mistake { pointer: Some(self.pointer()), ..mistake }
    }

    /// Returns the pointer of the current value.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.frames {
            match &frame.container {
                Container::Mapping { key: Some(Key::Named(key)), .. } => {
                    pointer::push(&mut pointer, key);
                }
                Container::Mapping { .. } => {}
                Container::Sequence(items) => {
                    pointer::push(&mut pointer, &items.len().to_string());
                }
            }
        }
        pointer
    }
}

/// The meaning of the tag of a value.
struct Tagged<'t> {
    /// The kind of scalar in the core schema. Empty if the tag does not determine it.
    kind: &'t str,
    /// The tag has become a key.
    is_key: bool,
}

/// Returns true if a tag is redundant, or is the kind of a scalar.
fn is_known(tag: &Tag, expected: &str) -> bool {
    const SCALARS: [&str; 7] = ["str", "null", "bool", "int", "float", "binary", "timestamp"];
    let is_plain = tag.handle.is_empty() && tag.suffix == "!";
    let kind = tag.suffix.as_str();
    let fits = if expected.is_empty() { SCALARS.contains(&kind) } else { kind == expected };
    is_plain || tag.handle == CORE && fits
}

/// Returns the kind of scalar of a known tag.
fn kind(tag: &Tag) -> &str {
    if tag.suffix == "!" { "str" } else { &tag.suffix }
}

/// Returns the tag in source form.
fn name(tag: &Tag) -> String {
    let handle = if tag.handle == CORE { "!!" } else { &tag.handle };
    match handle.is_empty() {
        true => format!("!<{}>", tag.suffix),
        false => format!("{handle}{}", tag.suffix),
    }
}

/// Formats the tag for a note.
fn shown(tag: &Tag) -> String {
    format!("`{}`", name(tag))
}

impl Container {
    /// Returns the finished value. A direct key overrides a merged one, and an earlier merge a
    /// later one.
    fn value(self) -> Value {
        match self {
            Self::Sequence(items) => Value::Array(items),
            Self::Mapping { mut map, merged, .. } => {
                for (key, value) in merged.into_iter().flatten() {
                    map.entry(key).or_insert(value);
                }
                Value::Object(map)
            }
        }
    }
}

/// Returns the number of values in a value, including itself, and the total length of its strings.
fn size(value: &Value) -> (usize, usize) {
    let add = |(values, bytes): (usize, usize), (more, longer)| (values + more, bytes + longer);
    match value {
        Value::Null | Value::Bool(_) => (1, 0),
        Value::Number(number) => (1, number.as_str().len()),
        Value::String(text) => (1, text.len()),
        Value::Array(items) => items.iter().map(size).fold((1, 0), add),
        Value::Object(map) => {
            let sizes = map.iter().map(|(key, value)| add((0, key.len()), size(value)));
            sizes.fold((1, 0), add)
        }
    }
}
