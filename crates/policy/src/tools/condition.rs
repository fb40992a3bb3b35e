//! Conditions on the arguments of a call.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::str::FromStr;

use kitbag_base::text::shown;
use serde_json::{Map, Number, Value};
use url::Url;

use super::pattern::{Misfit, TextPattern, TextPatternError, check_written};

/// The argument of a condition: a top-level name, or a JSON pointer to a nested value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArgumentPath(String);

/// The error for a string that is not an argument path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not an argument: write its name (1 to 64 letters, digits, `_`, `-` and `.`), or a JSON \
     pointer such as `/options/url`, of at most {} bytes",
    shown(text),
    ArgumentPath::MOST_BYTES
)]
pub struct ArgumentPathError {
    /// The invalid string.
    pub text: String,
}

/// The permitted values of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition(Vec<Expected>);

/// A permitted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A string that matches a pattern.
    Text(TextPattern),
    /// This boolean.
    Bool(bool),
    /// This number, with `1` equal to `1.0`.
    Number(Number),
}

/// The error for a value that is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// A string is not a pattern.
    #[error(transparent)]
    Pattern(#[from] TextPatternError),
    /// A list is empty.
    #[error("an empty list matches nothing; write the permitted values, or remove the condition")]
    Empty,
    /// A list is too long.
    #[error("the list has {count} values; the limit is {}", Condition::MOST)]
    TooMany {
        /// The number of values.
        count: usize,
    },
    /// A value of another type.
    #[error("a condition must be a string, `true`, `false`, a number, or a list of these")]
    Other,
}

impl ArgumentPath {
    /// The longest pointer, in bytes.
    pub const MOST_BYTES: usize = 256;

    /// The longest name, in bytes.
    const NAME_BYTES: usize = 64;

    /// Creates a path from a name or a pointer.
    ///
    /// # Errors
    ///
    /// [`ArgumentPathError`] if the string is neither.
    pub fn new(text: impl Into<String>) -> Result<Self, ArgumentPathError> {
        let text = text.into();
        let is_path = match text.starts_with('/') {
            true => {
                // RFC 6901, 3.
                let is_escape = |rest: &str| rest.starts_with(['0', '1']);
                text.len() <= Self::MOST_BYTES
                    && !text.contains(char::is_control)
                    && text.split('~').skip(1).all(is_escape)
            }
            false => {
                let is_in_name = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
                (1..=Self::NAME_BYTES).contains(&text.len()) && text.bytes().all(is_in_name)
            }
        };
        if is_path { Ok(Self(text)) } else { Err(ArgumentPathError { text }) }
    }

    /// Returns the name or the pointer.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value at this path.
    pub(crate) fn find<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let Some(pointer) = self.0.strip_prefix('/') else { return arguments.get(&self.0) };
        let end = pointer.find('/').unwrap_or(pointer.len());
        let (name, rest) = pointer.split_at(end);
        let name: Cow<'_, str> = match name.contains('~') {
            true => name.replace("~1", "/").replace("~0", "~").into(),
            false => name.into(),
        };
        arguments.get(&*name)?.pointer(rest)
    }
}

impl Condition {
    /// Maximum number of values in a list.
    pub const MOST: usize = 64;

    /// Maximum amount of text of an array that is compared with patterns: 64 KiB.
    pub const ARRAY_BYTES: usize = 64 << 10;

    /// Parses a condition of a configuration.
    ///
    /// # Errors
    ///
    /// [`ConditionError`] if the value is not a condition.
    pub fn new(value: &Value) -> Result<Self, ConditionError> {
        let Value::Array(values) = value else { return Ok(Self(vec![Expected::new(value)?])) };
        match values.len() {
            0 => Err(ConditionError::Empty),
            count if count > Self::MOST => Err(ConditionError::TooMany { count }),
            _ => Ok(Self(values.iter().map(Expected::new).collect::<Result<_, _>>()?)),
        }
    }

    /// Checks that the value at a path matches.
    ///
    /// # Errors
    ///
    /// [`Misfit`] and the value that does not match.
    pub fn check<'a>(
        &self,
        path: &ArgumentPath,
        arguments: &'a Map<String, Value>,
    ) -> Result<(), (Misfit, Option<&'a Value>)> {
        let value = path.find(arguments).ok_or((Misfit::Absent, None))?;
        let mut left = Self::ARRAY_BYTES;
        self.fits(value, &mut left).map_err(|(misfit, at)| (misfit, Some(at)))
    }

    /// Returns true if the value at a path may match. Unlike [`check`](Self::check), it returns
    /// true if that cannot be decided: one matching element of an array is enough, and so is an
    /// incomparable value (absent, null, an object, an empty array, too long, or a string with
    /// segments `.` or `..` or control characters). Paths are compared in every form they have
    /// below the guest path `root`: with it, without it, and with single slashes.
    pub fn may_hold(
        &self,
        path: &ArgumentPath,
        arguments: &Map<String, Value>,
        root: &str,
    ) -> bool {
        let mut left = Self::ARRAY_BYTES;
        path.find(arguments).is_none_or(|value| self.may_be(value, root, &mut left))
    }

    fn may_be(&self, value: &Value, root: &str, left: &mut usize) -> bool {
        match value {
            Value::Array(elements) => {
                elements.is_empty()
                    || elements.iter().any(|element| self.may_be(element, root, left))
            }
            Value::String(text) => match left.checked_sub(text.len()) {
                Some(rest) => {
                    *left = rest;
                    self.may_be_text(text, root)
                }
                None => true,
            },
            Value::Object(_) | Value::Null => true,
            // A tool may convert one type to another.
            Value::Bool(value) => self.0.iter().any(|one| match one {
                Expected::Bool(own) => own == value,
                Expected::Text(_) | Expected::Number(_) => true,
            }),
            Value::Number(value) => self.0.iter().any(|one| match one {
                Expected::Number(_) => one.is_number(value),
                Expected::Text(_) | Expected::Bool(_) => true,
            }),
        }
    }

    fn may_be_text(&self, text: &str, root: &str) -> bool {
        let patterns = || {
            self.0.iter().filter_map(|one| match one {
                Expected::Text(pattern) => Some(pattern),
                Expected::Bool(_) | Expected::Number(_) => None,
            })
        };
        if self.0.iter().any(|one| !matches!(one, Expected::Text(_)))
            || text.len() > TextPattern::TEXT_BYTES
            || check_written(text, false).is_err()
        {
            return true;
        }
        let root = root.trim_end_matches('/');
        let mut plain = String::with_capacity(text.len());
        for c in text.chars() {
            if c != '/' || !plain.ends_with('/') {
                plain.push(c);
            }
        }
        let plain = if plain.len() > 1 { plain.trim_end_matches('/') } else { &*plain };
        if plain == root {
            return true;
        }
        let below = plain.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        let above = (!plain.starts_with('/')).then(|| format!("{root}/{plain}"));
        let forms = [Some(text), Some(plain), below, above.as_deref()];
        patterns().any(|pattern| {
            let fits = |form: &str| {
                !matches!(pattern.check(form), Err(Misfit::Differs)) || is_above(form, pattern)
            };
            forms.into_iter().flatten().any(fits) || may_be_url(text, pattern)
        })
    }

    /// Checks a value, or each element of an array. `left` is the amount of text that may still be
    /// compared with patterns.
    fn fits<'a>(&self, value: &'a Value, left: &mut usize) -> Result<(), (Misfit, &'a Value)> {
        let refused = |misfit| Err((misfit, value));
        match value {
            Value::Array(elements) if elements.is_empty() => refused(Misfit::Empty),
            Value::Array(elements) => {
                elements.iter().try_for_each(|element| self.fits(element, left))
            }
            Value::Object(_) => refused(Misfit::Object),
            Value::Null => refused(Misfit::Null),
            Value::String(text) => match left.checked_sub(text.len()) {
                Some(rest) => {
                    *left = rest;
                    self.fits_text(text).or_else(refused)
                }
                None => refused(Misfit::Long),
            },
            Value::Bool(value) if self.0.contains(&Expected::Bool(*value)) => Ok(()),
            Value::Number(value) if self.0.iter().any(|one| one.is_number(value)) => Ok(()),
            Value::Bool(_) | Value::Number(_) => refused(Misfit::Differs),
        }
    }

    fn fits_text(&self, text: &str) -> Result<(), Misfit> {
        let mut why = Misfit::Differs;
        for expected in &self.0 {
            let Expected::Text(pattern) = expected else { continue };
            match pattern.check(text) {
                Ok(()) => return Ok(()),
                Err(Misfit::Differs) => {}
                Err(misfit) => why = misfit,
            }
        }
        Err(why)
    }

    /// Returns true if every value that matches `other` matches. False if this cannot be decided
    /// value by value.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.iter().all(|other| self.0.iter().any(|own| own.holds(other)))
    }

    /// Extends the condition by a value, or by each element of an array. `None` if the value cannot
    /// be expressed or the list is full.
    pub(super) fn and(&self, value: &Value) -> Option<Self> {
        fn add(all: &mut Condition, value: &Value) -> Option<()> {
            if let Value::Array(elements) = value {
                return elements.iter().try_for_each(|element| add(all, element));
            }
            let added = Expected::new(value).ok()?;
            // A value with a `*` would match more than itself.
            let is_exact = !matches!(&added, Expected::Text(text) if text.has_wildcard());
            let mut left = usize::MAX;
            if all.fits(value, &mut left).is_err() {
                all.0.push(added);
            }
            (is_exact && all.0.len() <= Condition::MOST).then_some(())
        }
        let mut all = self.clone();
        add(&mut all, value)?;
        Some(all)
    }

    /// Returns the condition as it would be typed.
    pub fn to_json(&self) -> Value {
        match &*self.0 {
            [one] => one.to_json(),
            several => several.iter().map(Expected::to_json).collect(),
        }
    }
}

impl Expected {
    fn new(value: &Value) -> Result<Self, ConditionError> {
        match value {
            Value::String(text) => Ok(Self::Text(TextPattern::new(text.as_str())?)),
            Value::Bool(value) => Ok(Self::Bool(*value)),
            Value::Number(number) => Ok(Self::Number(number.clone())),
            _ => Err(ConditionError::Other),
        }
    }

    fn is_number(&self, number: &Number) -> bool {
        matches!(self, Self::Number(own) if is_equal(own, number))
    }

    fn holds(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(own), Self::Text(other)) => own.holds(other),
            (Self::Number(own), Self::Number(other)) => is_equal(own, other),
            (own, other) => own == other,
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Text(pattern) => pattern.as_str().into(),
            Self::Bool(value) => (*value).into(),
            Self::Number(number) => number.clone().into(),
        }
    }
}

/// Returns true if two numbers are equal. JSON Schema, 6.1.1: `1` equals `1.0`.
fn is_equal(a: &Number, b: &Number) -> bool {
    /// Floats beyond this represent several integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |number: &Number| match number.as_f64() {
        Some(float) if number.is_f64() => {
            // Exact: the float is whole and far from the limits of the type.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the float is whole and within 2^53"
            )]
            (float.fract() == 0.0 && float.abs() <= EXACT).then(|| i128::from(float as i64))
        }
        _ => number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)),
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a == b,
        _ => false,
    }
}

impl FromStr for ArgumentPath {
    type Err = ArgumentPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

impl Borrow<str> for ArgumentPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArgumentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Condition {
    /// Formats the condition as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A JSON string is a TOML string, except for one character that TOML does not allow.
        let one = |one: &Expected| one.to_json().to_string().replace('\u{7f}', "\\u007f");
        match &*self.0 {
            [only] => f.write_str(&one(only)),
            several => {
                let several: Vec<_> = several.iter().map(one).collect();
                write!(f, "[{}]", several.join(", "))
            }
        }
    }
}

/// Returns true if a path is a parent directory of everything that a pattern matches: a tool may
/// use it with all its contents.
fn is_above(path: &str, pattern: &TextPattern) -> bool {
    let pattern = pattern.to_string();
    let literal = &pattern[..pattern.find('*').unwrap_or(pattern.len())];
    literal.strip_prefix(path).is_some_and(|rest| path.ends_with('/') || rest.starts_with('/'))
}

/// Returns true if a string may be a URL that a pattern matches, in normal form with its path
/// decoded, or is not a valid URL.
fn may_be_url(text: &str, pattern: &TextPattern) -> bool {
    if !pattern.to_string().contains("://") {
        return false;
    }
    let Ok(mut url) = Url::parse(text) else { return true };
    let _ = (url.set_username(""), url.set_password(None));
    url.set_fragment(None);
    let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    let path = percent_decode(url.path());
    let mut plain = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !plain.ends_with('/') {
            plain.push(c);
        }
    }
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let scheme = url.scheme();
    let fits = |form: &str| !matches!(pattern.check(form), Err(Misfit::Differs));
    ["", &*port].into_iter().any(|port| {
        let path = |path: &str, query: &str| fits(&format!("{scheme}://{host}{port}{path}{query}"));
        path(&plain, &query) || path(&plain, "") || path(url.path(), &query)
    })
}

/// Decodes `%` repeatedly until none is left, since a server may decode twice.
fn percent_decode(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..3 {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, more @ ..] = rest {
            let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
            match (first, digit(0), digit(1)) {
                (b'%', Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    rest = &more[2..];
                }
                _ => {
                    bytes.push(*first);
                    rest = more;
                }
            }
        }
        let decoded = String::from_utf8_lossy(&bytes).into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    text
}

#[cfg(test)]
mod tests {
    use kitbag_contract::WORKSPACE_GUEST_PATH;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(condition: Value, path: &str, arguments: Value, expected: Result<(), Misfit>) {
        let condition = Condition::new(&condition).unwrap();
        let path = ArgumentPath::new(path).unwrap();
        let found = condition.check(&path, arguments.as_object().unwrap());
        assert_eq!(found.map_err(|(misfit, _)| misfit), expected, "{condition} {path} {arguments}");
    }

    #[test]
    fn values_match_constants_patterns_and_lists() {
        let differs = Err(Misfit::Differs);
        check(json!("a*"), "x", json!({ "x": "ab" }), Ok(()));
        check(json!("a*"), "x", json!({ "x": "b" }), differs);
        check(json!("1"), "x", json!({ "x": 1 }), differs);
        check(json!("true"), "x", json!({ "x": true }), differs);
        check(json!(true), "x", json!({ "x": true }), Ok(()));
        check(json!(true), "x", json!({ "x": false }), differs);
        check(json!(true), "x", json!({ "x": "true" }), differs);
        check(json!(1), "x", json!({ "x": 1 }), Ok(()));
        check(json!(1), "x", json!({ "x": 1.0 }), Ok(()));
        check(json!(1), "x", json!({ "x": true }), differs);
        check(json!(0), "x", json!({ "x": -0.0 }), Ok(()));
        check(json!(0.5), "x", json!({ "x": 0.5 }), Ok(()));
        check(json!(u64::MAX), "x", json!({ "x": u64::MAX }), Ok(()));
        check(json!(u64::MAX), "x", json!({ "x": 18_446_744_073_709_551_616.0 }), differs);
        check(json!(i64::MAX), "x", json!({ "x": 9_223_372_036_854_775_807.0_f64 }), differs);
        check(json!(["a", "b*", 3, false]), "x", json!({ "x": "bc" }), Ok(()));
        check(json!(["a", "b*", 3, false]), "x", json!({ "x": 3 }), Ok(()));
        check(json!(["a", "b*", 3, false]), "x", json!({ "x": "c" }), differs);
        check(json!(["../a", "b/**"]), "x", json!({ "x": "../a" }), Ok(()));
    }

    #[test]
    fn values_without_a_comparison_are_refused() {
        check(json!("**"), "x", json!({}), Err(Misfit::Absent));
        check(json!("**"), "x", json!({ "y": "a" }), Err(Misfit::Absent));
        check(json!("**"), "x", json!({ "x": null }), Err(Misfit::Null));
        check(json!("**"), "x", json!({ "x": {} }), Err(Misfit::Object));
        check(json!("**"), "x", json!({ "x": { "x": "a" } }), Err(Misfit::Object));
        check(json!("**"), "x", json!({ "x": "../a" }), Err(Misfit::Dots));
    }

    #[test]
    fn every_array_element_must_match() {
        check(json!("a*"), "x", json!({ "x": ["a", "ab"] }), Ok(()));
        check(json!("a*"), "x", json!({ "x": ["a", "b"] }), Err(Misfit::Differs));
        check(json!("a*"), "x", json!({ "x": [["a"], "ab"] }), Ok(()));
        check(json!("a*"), "x", json!({ "x": [["a", "b"]] }), Err(Misfit::Differs));
        check(json!("a*"), "x", json!({ "x": ["a", {}] }), Err(Misfit::Object));
        check(json!("a*"), "x", json!({ "x": ["a", null] }), Err(Misfit::Null));
        check(json!("a*"), "x", json!({ "x": [] }), Err(Misfit::Empty));
        check(json!("a*"), "x", json!({ "x": ["a", []] }), Err(Misfit::Empty));
        let long = vec!["a".repeat(TextPattern::TEXT_BYTES); 8];
        check(json!("a*"), "x", json!({ "x": long }), Ok(()));
        let longer = [long, vec!["a".to_owned()]].concat();
        check(json!("a*"), "x", json!({ "x": longer }), Err(Misfit::Long));
    }

    #[test]
    fn undecidable_values_may_match() {
        let check = |condition: Value, arguments: Value, expected: bool| {
            let condition = Condition::new(&condition).unwrap();
            let path = ArgumentPath::new("path").unwrap();
            let found =
                condition.may_hold(&path, arguments.as_object().unwrap(), WORKSPACE_GUEST_PATH);
            assert_eq!(found, expected, "{condition} {arguments}");
        };
        for pattern in ["secrets/**", "secrets/key", "/workspace/secrets/*", "**/key"] {
            for text in [
                "secrets/key",
                "/workspace/secrets/key",
                "secrets//key",
                "//workspace///secrets/key",
                "./secrets/key",
                "a/../secrets/key",
                "secrets/%2e%2e/key",
                "a/..",
                ".",
                "secrets/\u{0}key",
            ] {
                check(json!(pattern), json!({ "path": text }), true);
            }
            check(json!(pattern), json!({ "path": "public/a" }), false);
            check(json!(pattern), json!({ "path": "/workspace/public/a" }), false);
            check(json!(pattern), json!({ "path": ["public/a", "secrets/key"] }), true);
            check(json!(pattern), json!({ "path": ["public/a", ["b"]] }), false);
            check(json!(pattern), json!({ "path": [] }), true);
            check(json!(pattern), json!({ "path": {} }), true);
            check(json!(pattern), json!({ "path": null }), true);
            check(json!(pattern), json!({}), true);
            check(json!(pattern), json!({ "path": 1 }), true);
            check(json!(pattern), json!({ "path": "a".repeat(TextPattern::TEXT_BYTES + 1) }), true);
        }
        check(json!("secrets/**"), json!({ "path": "secrets/" }), true);
        check(json!("secrets/**"), json!({ "path": "secrets" }), true);
        check(json!(true), json!({ "path": true }), true);
        check(json!(true), json!({ "path": false }), false);
        check(json!(true), json!({ "path": "true" }), true);
        check(json!(5), json!({ "path": "5" }), true);
        check(json!(5), json!({ "path": 6 }), false);
        check(json!("5*"), json!({ "path": 5 }), true);
        for above in ["a", "a/", "/workspace/a", "/workspace", "a/secrets"] {
            check(json!("a/secrets/**"), json!({ "path": above }), true);
        }
        for beside in ["ab", "b", "a/secret", "a/public"] {
            check(json!("a/secrets/**"), json!({ "path": beside }), false);
        }
        let admin = json!(["https://example.com/admin/**", "http://127.0.0.1:9/admin/**"]);
        for url in [
            "http://127.0.0.1:9/admin/x",
            "HTTP://127.0.0.1:9/admin/x",
            "http://127.0.0.1:09/admin/x",
            "http://127.1:9/admin/x",
            "http://127.0.0.1:9/%61dmin/x",
            "http://127.0.0.1:9/%2561dmin/x",
            "http://127.0.0.1:9//admin/x",
            " http://127.0.0.1:9/admin/x",
            "http://u:p@127.0.0.1:9/admin/x",
            "https://EXAMPLE.com/admin/x",
            "https://example.com:443/admin/x",
            "https://example.com./admin/x",
            "https://example.com/%61dmin/x?q#f",
            "https:/example.com/admin/x",
            "no url",
        ] {
            check(admin.clone(), json!({ "path": url }), true);
        }
        for url in [
            "https://example.com/public",
            "https://example.org/admin/x",
            "http://127.0.0.1:8/admin/x",
        ] {
            check(admin.clone(), json!({ "path": url }), false);
        }
        check(json!(true), json!({}), true);
        check(json!([1, "a"]), json!({ "path": 1.0 }), true);
        check(json!([1, 3]), json!({ "path": 2 }), false);
    }

    #[test]
    fn pointers_select_nested_values() {
        let arguments = || json!({ "a": { "b": ["x", "y"] }, "c/d~": "z", "/a": "w" });
        check(json!("y"), "/a/b/1", arguments(), Ok(()));
        check(json!("x"), "/a/b/1", arguments(), Err(Misfit::Differs));
        check(json!("x"), "/a/b/2", arguments(), Err(Misfit::Absent));
        check(json!(["x", "y"]), "/a/b", arguments(), Ok(()));
        check(json!("z"), "/c~1d~0", arguments(), Ok(()));
        check(json!("w"), "/a", arguments(), Err(Misfit::Object));
        check(json!("w"), "/~1a", arguments(), Ok(()));
    }

    #[test]
    fn argument_paths_are_names_or_pointers() {
        let check = |text: &str, expected: bool| {
            assert_eq!(ArgumentPath::new(text).is_ok(), expected, "{text:?}");
        };
        for text in ["url", "a.b", "a-b", "_", "9", "/", "/a", "/a/b~0~1/0", "/a b"] {
            check(text, true);
        }
        for text in ["", " ", "a b", "a/b", "ä", "a[0]", "$.a", "/~", "/~2", "/a\nb"] {
            check(text, false);
        }
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check(&format!("/{}", "a".repeat(ArgumentPath::MOST_BYTES - 1)), true);
        check(&format!("/{}", "a".repeat(ArgumentPath::MOST_BYTES)), false);
    }

    #[test]
    fn invalid_conditions_are_refused() {
        for value in [json!(null), json!({}), json!([[]]), json!([null]), json!([{}])] {
            assert_eq!(Condition::new(&value), Err(ConditionError::Other), "{value}");
        }
        assert_eq!(Condition::new(&json!([])), Err(ConditionError::Empty));
        let many: Value = (0..=Condition::MOST).collect();
        let count = Condition::MOST + 1;
        assert_eq!(Condition::new(&many), Err(ConditionError::TooMany { count }));
        assert!(matches!(Condition::new(&json!("a**")), Err(ConditionError::Pattern(_))));
    }

    #[test]
    fn conditions_cover_narrower_conditions() {
        let check = |own: Value, other: Value, expected: bool| {
            let condition = |value| Condition::new(value).unwrap();
            assert_eq!(condition(&own).holds(&condition(&other)), expected, "{own} {other}");
        };
        check(json!("a*"), json!(["ab", "ac*"]), true);
        check(json!("a*"), json!(["ab", "b"]), false);
        check(json!(["a", 1, true]), json!([true, 1.0]), true);
        check(json!([1]), json!(["1"]), false);
    }
}
