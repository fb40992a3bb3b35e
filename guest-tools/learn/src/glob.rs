//! Globs as the crate `glob` has them, which the host checks a configuration with:
//! `*` stays within one level, `**` crosses levels. That crate reads directories too
//! and so needs `std`, which this tool does without; the tests hold the two together.
//!
//! A leading dot needs no care: what is hidden is never offered to a glob.

use alloc::vec;
use alloc::vec::Vec;

/// A glob, ready to be matched.
#[derive(Debug)]
pub(crate) struct Glob(Vec<Token>);

#[derive(Debug)]
enum Token {
    /// This character.
    Literal(char),
    /// `?`: a character, but no `/`.
    Any,
    /// `[a-z]` or `[!a-z]`: a character in, or not in, one of the ranges, but no `/`.
    Class { ranges: Vec<(char, char)>, is_negated: bool },
    /// `*`: any characters within a level.
    Star,
    /// `**/`: any levels, or none.
    Levels,
    /// `**` at the end: whatever there is.
    Rest,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    ///
    /// Why it is none, in the words of the crate `glob`.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
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
                    // The first character is one of the class, be it a `]`.
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

    /// Whether it matches all of a path.
    ///
    /// Every way to match is followed at once, so that the time does not depend on how
    /// many there are.
    pub(crate) fn matches(&self, path: &str) -> bool {
        // Of each token whether it may be the next one; behind the last is the end.
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

    /// Notes that a token may be the next one, and so those behind it that stand behind
    /// what may be nothing.
    fn reach(&self, states: &mut [bool], index: usize) {
        let behind = &self.0[index..];
        let empty = behind
            .iter()
            .take_while(|token| matches!(token, Token::Star | Token::Levels | Token::Rest));
        states[index..=index + empty.count()].fill(true);
    }
}

impl Token {
    /// Whether it stands for this one character.
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

/// The ranges of a class: `a-z`, or a single character.
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
