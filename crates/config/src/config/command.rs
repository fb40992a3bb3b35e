//! The command line of a command, with places for the arguments of a call.

use std::borrow::Cow;

use kitbag_base::text::shown;

use crate::layers::origin::Sourced;

/// The part of a component that a tool calls, and the form of the call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentCall {
    /// The component's own name of the tool. `None`: the name of the tool, or the only tool of the
    /// component.
    pub function: Option<Sourced<String>>,
    /// The command line of a command. `None`: the caller chooses it.
    pub command: Option<Sourced<CommandTemplate>>,
}

/// The command line and the standard input of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTemplate {
    /// The arguments, without the name of the command.
    pub arguments: Vec<Template>,
    /// The standard input. `None`: empty.
    pub stdin: Option<Template>,
}

/// A string with places for arguments: `--number={number}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Argument(String),
}

impl CommandTemplate {
    /// Returns the templates in the order of the file.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.arguments.iter().chain(&self.stdin)
    }
}

impl Template {
    /// Parses a template: `{name}` is the place of an argument, `{{` and `}}` are braces.
    ///
    /// # Errors
    ///
    /// The brace that has no counterpart.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let name = after.split_once('}').filter(|(name, _)| brace == "{" && is_name(name));
            let Some((name, after)) = name else {
                return Err(format!(
                    "`{}` has a single `{brace}`; write `{{name}}` for the argument `name`, or \
                     `{brace}{brace}` for a brace",
                    shown(text)
                ));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Argument(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the template as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of the arguments.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(name) => Some(&**name),
            Part::Text(_) => None,
        })
    }

    /// Puts in the values of the arguments. `None` if one has no value.
    pub fn fill<'a>(&self, value: impl Fn(&str) -> Option<Cow<'a, str>>) -> Option<String> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Argument(name) => filled.push_str(&value(name)?),
            }
        }
        Some(filled)
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !name.is_empty() && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_put_into_their_places() {
        let value = |name: &str| match name {
            "a" => Some(Cow::Borrowed("x y {b}")),
            "empty" => Some(Cow::Borrowed("")),
            _ => None,
        };
        let check = |text: &str, expected: Option<&str>| {
            let filled = Template::read(text).unwrap().fill(value);
            assert_eq!(filled.as_deref(), expected, "{text}");
        };
        check("", Some(""));
        check("--count", Some("--count"));
        check("{a}", Some("x y {b}"));
        check("--a={a}!", Some("--a=x y {b}!"));
        check("{empty}", Some(""));
        check("{a}{missing}", None);
        check("{{a}} }}{{", Some("{a} }{"));
        check("ä{a}ö", Some("äx y {b}ö"));
    }

    #[test]
    fn single_braces_are_refused() {
        for text in ["{", "}", "{a", "a}", "{}", "{a b}", "{\"a\": 1}", "{{a}", "{ä}"] {
            let error = Template::read(text).unwrap_err();
            assert!(error.contains("has a single"), "{text}: {error}");
        }
    }
}
