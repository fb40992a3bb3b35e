//! Checks patterns for `new RegExp(pattern, "u")` in JavaScript.

/// General categories of Unicode, which both spellings of a property may name.
const CATEGORIES: [&str; 37] = [
    "L", "Lu", "Ll", "Lt", "LC", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp",
    "C", "Cc", "Cf", "Co", "Letter",
];

/// Returns true if a pattern is certainly valid in JavaScript. Returns false for some valid
/// patterns: group references and most Unicode properties.
pub(super) fn is_pattern(pattern: &str) -> bool {
    let mut reader = Reader { rest: pattern.chars().collect(), at: 0, names: Vec::new() };
    reader.disjunction(0).is_some() && reader.at == reader.rest.len()
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    names: Vec<String>,
}

/// The deepest nesting of groups.
const DEPTH: usize = 100;

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn take(&mut self, expected: char) -> bool {
        let is_it = self.peek() == Some(expected);
        self.at += usize::from(is_it);
        is_it
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    /// Parses up to a `)` or the end. `None` if the pattern is not valid.
    fn disjunction(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        while let Some(next) = self.peek() {
            let can_repeat = match next {
                ')' => return Some(()),
                '|' | '^' | '$' => {
                    self.at += 1;
                    false
                }
                '(' => self.group(depth)?,
                '[' => self.class().map(|()| true)?,
                '\\' => self.escape()?,
                '*' | '+' | '?' | '{' | '}' | ']' => return None,
                _ => {
                    self.at += 1;
                    true
                }
            };
            if self.quantifier()? && !can_repeat {
                return None;
            }
        }
        Some(())
    }

    /// Parses a group. Returns false if it cannot be repeated, as for look-around.
    fn group(&mut self, depth: usize) -> Option<bool> {
        self.at += 1;
        let mut can_repeat = true;
        if self.take('?') {
            match self.next()? {
                ':' => {}
                '=' | '!' => can_repeat = false,
                '<' => match self.peek()? {
                    '=' | '!' => {
                        self.at += 1;
                        can_repeat = false;
                    }
                    _ => self.name()?,
                },
                _ => return None,
            }
        }
        self.disjunction(depth + 1)?;
        self.take(')').then_some(can_repeat)
    }

    fn name(&mut self) -> Option<()> {
        let mut name = String::new();
        loop {
            match self.next()? {
                '>' => break,
                c if c == '_' || c.is_ascii_alphabetic() => name.push(c),
                c if c.is_ascii_digit() && !name.is_empty() => name.push(c),
                _ => return None,
            }
        }
        let is_new = !name.is_empty() && !self.names.contains(&name);
        self.names.push(name);
        is_new.then_some(())
    }

    /// Parses an optional quantifier.
    fn quantifier(&mut self) -> Option<bool> {
        match self.peek() {
            Some('*' | '+' | '?') => self.at += 1,
            Some('{') => {
                self.at += 1;
                let least = self.number()?;
                if self.take(',') && self.peek() != Some('}') && self.number()? < least {
                    return None;
                }
                if !self.take('}') {
                    return None;
                }
            }
            _ => return Some(false),
        }
        self.take('?');
        Some(true)
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.at += 1;
        }
        digits.parse().ok()
    }

    /// Parses an escape outside a class. Returns false if it cannot be repeated.
    fn escape(&mut self) -> Option<bool> {
        self.at += 1;
        match self.peek()? {
            'b' | 'B' => {
                self.at += 1;
                Some(false)
            }
            _ => self.escaped().map(|_| true),
        }
    }

    /// Parses the part after a backslash. Returns the character, or `None` for a class.
    fn escaped(&mut self) -> Option<Option<char>> {
        let next = self.next()?;
        Some(match next {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => None,
            'p' | 'P' => {
                let mut name = String::new();
                if !self.take('{') {
                    return None;
                }
                while !self.take('}') {
                    name.push(self.next()?);
                }
                if !CATEGORIES.contains(&&*name) {
                    return None;
                }
                None
            }
            't' => Some('\t'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            'v' => Some('\u{b}'),
            'f' => Some('\u{c}'),
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => Some('\0'),
            'c' => {
                let letter = self.next().filter(char::is_ascii_alphabetic)?;
                char::from_u32(u32::from(letter) % 32)
            }
            'x' => Some(self.hex(2)?),
            'u' if self.take('{') => {
                let mut digits = String::new();
                while !self.take('}') {
                    digits.push(self.next()?);
                }
                Some(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?)
            }
            'u' => Some(self.hex(4)?),
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            | '/' => Some(next),
            _ => return None,
        })
    }

    fn hex(&mut self, length: usize) -> Option<char> {
        let digits: String = (0..length).map_while(|_| self.next()).collect();
        let is_hex = digits.len() == length && digits.chars().all(|c| c.is_ascii_hexdigit());
        u32::from_str_radix(&digits, 16).ok().filter(|_| is_hex).and_then(char::from_u32)
    }

    fn class(&mut self) -> Option<()> {
        self.at += 1;
        self.take('^');
        loop {
            if self.take(']') {
                return Some(());
            }
            let first = self.member()?;
            if self.peek() == Some('-') && self.rest.get(self.at + 1).is_some_and(|c| *c != ']') {
                self.at += 1;
                let last = self.member()?;
                // A range must be ascending.
                if first? > last? {
                    return None;
                }
            }
        }
    }

    /// Parses a member of a class. Returns the character, or `None` for a class.
    fn member(&mut self) -> Option<Option<char>> {
        match self.next()? {
            '\\' => match self.peek()? {
                '-' => {
                    self.at += 1;
                    Some(Some('-'))
                }
                'b' => {
                    self.at += 1;
                    Some(Some('\u{8}'))
                }
                _ => self.escaped(),
            },
            c => Some(Some(c)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_checks_match_javascript() {
        for pattern in [
            "",
            "^a$",
            "a|b",
            "[a-z0-9_-]+",
            "^[^/]*$",
            r"\d{4}-\d{2}",
            "a{2,3}?",
            r"(?:a)(?<x>b)",
            r"(?=a)b",
            r"(?<!a)b",
            r"[\w\-.]+@[\w.]+",
            r"\p{Lu}\P{N}",
            r"\u{1F600}\u00e9\x41\cA\0",
            "[]",
            "[^]",
            "[[]",
            "é+",
            r"^/(a|b)/\.x$",
            r"[\b]",
            "a{1,}",
            r"^\$\{a\}$",
        ] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for pattern in [
            "(",
            ")",
            "[",
            "a)",
            "*a",
            "a**",
            "a{",
            "}",
            "]",
            "a{3,2}",
            "(?i)a",
            "(?P<x>a)",
            "(?>a)",
            "a++",
            r"\A",
            r"\Z",
            r"\h",
            r"\-",
            r"\_",
            r"\ ",
            r"[\d-x]",
            "[z-a]",
            r"\p{Foo}",
            r"\pL",
            r"\x4",
            r"\u12",
            r"\01",
            "(?<x>a)(?<x>b)",
            "(?=a)*",
            "^*",
            r"\b+",
            r"\",
            "(?#a)",
            r"\c1",
            "(?<1>a)",
            "{1}",
        ] {
            assert!(!is_pattern(pattern), "{pattern}");
        }
    }
}
