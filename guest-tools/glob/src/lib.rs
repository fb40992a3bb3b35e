//! Globs of a configuration and of the tool `learn`: `*` stays within one level, `**` crosses
//! levels.
//!
//! The semantics are those of the crate `glob`, with which the tests compare them. That crate needs
//! `std`, which `learn` does not use, and takes exponential time for some patterns. A leading dot
//! is an ordinary character.
//!
//! `globset` needs `std` and a regular-expression engine, and parses some patterns differently:
//! braces are alternatives, `[^a]` is a negated class, `[!a]` matches `/`, and `a**b` is accepted.
//! A file or a grant with a brace in its name would change its meaning, and a class would cross
//! levels.

#![no_std]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;

/// Globs of paths that are included although a rule excludes their names.
#[derive(Clone, Debug, Default)]
pub struct Include {
    globs: Vec<Glob>,
    /// The part of each glob before each of its slashes: the parent directories.
    above: Vec<Glob>,
}

/// A glob, ready to be matched.
#[derive(Clone, Debug)]
pub struct Glob(Vec<Token>);

#[derive(Clone, Debug)]
enum Token {
    /// This character.
    Literal(char),
    /// `?`: any character except `/`.
    Any,
    /// `[a-z]` or `[!a-z]`: a character in, or not in, one of the ranges, but not `/`.
    Class { ranges: Vec<(char, char)>, is_negated: bool },
    /// `*`: any characters within a level.
    Star,
    /// `**/`: any levels, or none.
    Levels,
    /// `**` at the end: any remaining path.
    Rest,
}

impl Include {
    /// Parses the globs.
    ///
    /// # Errors
    ///
    /// The first invalid glob, and the reason.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, (&str, &'static str)> {
        let mut include = Self::default();
        for text in texts.iter().map(AsRef::as_ref) {
            include.globs.push(Glob::new(text).map_err(|reason| (text, reason))?);
            let ends = text.match_indices('/').map(|(end, _)| &text[..end]);
            include.above.extend(ends.filter_map(|above| Glob::new(above).ok()));
        }
        Ok(include)
    }

    /// Returns true if there are no globs.
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Returns true if a path is included: each excluded name on it has a glob that matches the
    /// path up to that name, or a glob matches the whole path. A directory is also included if a
    /// glob matches a path in it.
    ///
    /// `keeps_out` receives a name, and whether it is a directory.
    pub fn lets_in(
        &self,
        path: &str,
        is_directory: bool,
        keeps_out: impl Fn(&str, bool) -> bool,
    ) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| (end, true));
        let mut start = 0;
        let is_let_in = ends.chain([(path.len(), is_directory)]).all(|(end, is_directory)| {
            let name = &path[start..end];
            start = end + 1;
            !keeps_out(name, is_directory) || names(&self.globs, &path[..end])
        });
        is_let_in || names(&self.globs, path) || is_directory && names(&self.above, path)
    }
}

fn names(globs: &[Glob], path: &str) -> bool {
    globs.iter().any(|glob| glob.matches(path))
}

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    ///
    /// The reason why it is invalid, in the words of the crate `glob`.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let chars: Vec<char> = text.chars().collect();
        let mut tokens = Vec::new();
        let mut rest = chars.as_slice();
        while let [first, behind @ ..] = rest {
            let before = chars[..chars.len() - rest.len()].last();
            rest = behind;
            tokens.push(match first {
                '?' => Token::Any,
                '*' => match rest {
                    ['*', '*', ..] => {
                        return Err("wildcards are either regular `*` or recursive `**`");
                    }
                    ['*', end @ ..] => {
                        let is_component = before.is_none_or(|before| *before == '/');
                        rest = match end {
                            [] | ['/'] if is_component => &[],
                            ['/', rest @ ..] if is_component => rest,
                            _ => {
                                return Err(
                                    "recursive wildcards must form a single path component",
                                );
                            }
                        };
                        if rest.is_empty() { Token::Rest } else { Token::Levels }
                    }
                    _ => Token::Star,
                },
                '[' => {
                    let is_negated = rest.first() == Some(&'!');
                    let class = &rest[usize::from(is_negated)..];
                    // The first character belongs to the class, even a `]`.
                    let end = class.iter().skip(1).position(|char| *char == ']');
                    let end = end.ok_or("invalid range pattern")? + 1;
                    rest = &class[end + 1..];
                    Token::Class { ranges: ranges(&class[..end]), is_negated }
                }
                literal => Token::Literal(*literal),
            });
        }
        Ok(Self(tokens))
    }

    /// Returns true if the glob matches the whole path.
    ///
    /// All possible matches are followed at once, so that the time does not depend on their number.
    pub fn matches(&self, path: &str) -> bool {
        // For each token, whether it may be the next one. The last entry is the end.
        let mut states = vec![false; self.0.len() + 1];
        let mut next = states.clone();
        self.reach(&mut states, 0);
        for char in path.chars() {
            next.fill(false);
            let reached = self.0.iter().enumerate().filter(|(index, _)| states[*index]);
            for (index, token) in reached {
                match token {
                    Token::Star if char == '/' => {}
                    Token::Star | Token::Rest => self.reach(&mut next, index),
                    Token::Levels => {
                        next[index] = true;
                        if char == '/' {
                            self.reach(&mut next, index + 1);
                        }
                    }
                    token if token.takes(char) => self.reach(&mut next, index + 1),
                    _ => {}
                }
            }
            core::mem::swap(&mut states, &mut next);
        }
        states[self.0.len()]
    }

    /// Marks a token as a possible next one, and also the tokens after optional ones.
    fn reach(&self, states: &mut [bool], index: usize) {
        let behind = &self.0[index..];
        let empty = behind
            .iter()
            .take_while(|token| matches!(token, Token::Star | Token::Levels | Token::Rest));
        states[index..=index + empty.count()].fill(true);
    }
}

impl Token {
    /// Returns true if the token matches this character.
    fn takes(&self, char: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == char,
            Self::Any => char != '/',
            Self::Class { ranges, is_negated } => {
                let is_in = ranges.iter().any(|(from, to)| (from..=to).contains(&&char));
                char != '/' && is_in != *is_negated
            }
            Self::Star | Self::Levels | Self::Rest => false,
        }
    }
}

/// Returns the ranges of a class: `a-z`, or a single character.
fn ranges(mut class: &[char]) -> Vec<(char, char)> {
    let mut ranges = Vec::new();
    while let [from, rest @ ..] = class {
        let (to, rest) = match rest {
            ['-', to, rest @ ..] => (to, rest),
            _ => (from, rest),
        };
        ranges.push((*from, *to));
        class = rest;
    }
    ranges
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::{Glob, Include};

    #[test]
    fn excluded_names_are_included_by_matching_globs() {
        let check = |globs: &[&str], path: &str, is_directory: bool, expected: bool| {
            let include = Include::new(globs).unwrap();
            let keeps_out = |name: &str, _: bool| name.starts_with('.');
            let is_let_in = include.lets_in(path, is_directory, keeps_out);
            assert_eq!(is_let_in, expected, "{globs:?} {path}");
        };
        check(&[], "a/b", false, true);
        check(&[], "a/.b", false, false);
        check(&[], ".a/b", false, false);
        check(&[".a"], ".a", true, true);
        check(&[".a"], ".a/b", false, true);
        check(&[".a"], ".a/.b", false, false);
        check(&[".a"], "c/.a/b", false, false);
        check(&["c"], "c/.a", false, false);
        check(&[".a/*"], ".a/.b", false, true);
        check(&["*/.b"], "a/.b", false, true);
        check(&[".a/b/.c"], ".a/b/.c", false, true);
        check(&[".a/b/.c"], ".a/b/d", false, false);
        // The parent directories, but not files there.
        check(&[".a/b/.c"], ".a/b", true, true);
        check(&[".a/b/.c"], ".a", true, true);
        check(&[".a/b/.c"], ".a", false, false);
        check(&["**"], ".a/.b", false, true);
        assert_eq!(Include::new(&["a", "x["]).unwrap_err(), ("x[", "invalid range pattern"));
    }

    #[test]
    fn braces_are_literal_and_classes_stay_within_a_level() {
        let check = |glob: &str, path: &str, expected: bool| {
            assert_eq!(Glob::new(glob).unwrap().matches(path), expected, "{glob} {path}");
        };
        check("{a,b}", "{a,b}", true);
        check("{a,b}", "a", false);
        check("a{", "a{", true);
        check("a}", "a}", true);
        check("[!a]", "/", false);
        check("[^a]", "^", true);
        check("[^a]", "b", false);
        check("[z-a]", "b", false);
        check("\\*", "\\x", true);
        check("**/*", "a/.b", true);
        check("A", "a", false);
        check("!a", "b", false);
        Glob::new("a**b").unwrap_err();
    }

    proptest! {
        #[test]
        fn globs_match_the_crate_glob(
            pattern in "[ab/*?!\\[\\]-]{0,10}|[ab]?([*?/ab]|[*][*]/|\\[!?[a-c]-[a-c]?\\]){0,6}",
            paths in prop::collection::vec("[abc\\-!\\]/]{0,8}", 1..20),
        ) {
            let options = glob::MatchOptions {
                case_sensitive: true,
                require_literal_separator: true,
                require_literal_leading_dot: false,
            };
            match (Glob::new(&pattern), glob::Pattern::new(&pattern)) {
                (Ok(ours), Ok(theirs)) => for path in &paths {
                    let expected = theirs.matches_with(path, options);
                    prop_assert_eq!(ours.matches(path), expected, "{} {}", pattern, path);
                },
                (ours, theirs) => prop_assert_eq!(ours.err(), theirs.err().map(|error| error.msg)),
            }
        }
    }
}
