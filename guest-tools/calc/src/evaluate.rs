//! Parses and evaluates an expression in one pass.
//!
//! Precedence from high to low: postfix `!` and `%`; right-associative `^`; signs; `* / // mod of`;
//! `+ -`. So `-2^2` is -4 and `2^3^2` is 512.

use crate::budget::MOST_DEPTH;
use crate::fail::{Fail, error};
use crate::functions;
use crate::lexer::{Lexer, Token, quoted};
use crate::number::{Context, Number};

/// A number, and whether it was written as a percentage: `10%`.
struct Operand {
    number: Number,
    is_percent: bool,
}

/// One pass over an expression.
pub(crate) struct Evaluation<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
    /// The start of the next word.
    at: usize,
    depth: usize,
    /// The number of calls around the next word.
    calls: usize,
    pub(crate) context: Context,
    /// Notes on ambiguous parts of the expression.
    pub(crate) notes: Vec<&'static str>,
}

const OF_PERCENT: &str = "in `a + b%` and `a - b%`, b% was taken as b% of a";
const REMAINDER: &str = "`a % b` was read as the remainder, with the sign of b";
const PERCENT: &str = "`%` was read as percent; `mod` is the remainder";

impl<'a> Evaluation<'a> {
    /// Evaluates a whole expression.
    pub(crate) fn run(text: &'a str, context: Context) -> Result<(Number, Self), Fail> {
        let mut evaluation = Self {
            lexer: Lexer::new(text),
            next: Token::End,
            at: 0,
            depth: 0,
            calls: 0,
            context,
            notes: Vec::new(),
        };
        evaluation.advance()?;
        if evaluation.next == Token::End {
            return error("the expression is empty; write one such as `(2 + 3) * 4`");
        }
        let result = evaluation.sum()?.number;
        match evaluation.next {
            Token::End => Ok((result, evaluation)),
            _ => evaluation.unexpected(),
        }
    }

    fn advance(&mut self) -> Result<Token<'a>, Fail> {
        let (token, at) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.next, token))
    }

    fn take(&mut self, sign: char) -> Result<bool, Fail> {
        let is_next = self.next == Token::Sign(sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn fail<T>(&self, message: &str) -> Result<T, Fail> {
        self.lexer.fail(self.at, message)
    }

    fn unexpected<T>(&self) -> Result<T, Fail> {
        match &self.next {
            Token::End => self.fail("the expression ends, but a number is expected"),
            Token::Sign(',') if self.calls == 0 => {
                self.fail("`,` separates arguments of functions; write 1234.5 for 1,234.5")
            }
            Token::Sign(')') if self.depth > 0 => self.fail("a number is missing before this `)`"),
            Token::Sign(')') => self.fail("this `)` has no matching `(`"),
            Token::Sign('(') | Token::Number(_) => {
                self.fail("an operator is missing before this; `*` multiplies")
            }
            Token::Sign('⌊') => self.fail("`//` is not expected here"),
            Token::Sign(sign) => self.fail(&format!("`{sign}` is not expected here")),
            Token::Name(name) if functions::exists(name) => {
                self.fail("an operator is missing before this; `*` multiplies")
            }
            Token::Name(name) => self.fail(&functions::unknown(name)),
        }
    }

    fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Recurses into a nested expression, up to the depth limit.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Fail>) -> Result<T, Fail> {
        if self.depth == MOST_DEPTH {
            return self.fail(&format!(
                "parentheses, powers and signs are nested more than {MOST_DEPTH} deep"
            ));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn sum(&mut self) -> Result<Operand, Fail> {
        let mut left = self.product()?;
        loop {
            let is_minus = match self.next {
                Token::Sign('+') => false,
                Token::Sign('-') => true,
                _ => return Ok(left),
            };
            self.advance()?;
            let right = self.product()?;
            if left.is_percent && !right.is_percent {
                self.note(PERCENT);
            }
            let mut number = right.number;
            // Like a pocket calculator: 200 + 10% is 220, and 5% + 10% is 15%.
            if right.is_percent && !left.is_percent {
                self.note(OF_PERCENT);
                number = left.number.clone().multiply(number, &mut self.context)?;
            }
            let number = if is_minus { number.negated() } else { number };
            left = Operand {
                number: left.number.add(number, &mut self.context)?,
                is_percent: left.is_percent && right.is_percent,
            };
        }
    }

    fn product(&mut self) -> Result<Operand, Fail> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.next {
                Token::Sign(sign @ ('*' | '/' | '⌊')) => sign,
                // The remainder operator, since a number follows; otherwise `%` means percent.
                Token::Sign('%') => {
                    self.note(REMAINDER);
                    '%'
                }
                Token::Name(name) if name.eq_ignore_ascii_case("mod") => '%',
                Token::Name(name) if name.eq_ignore_ascii_case("of") => '*',
                _ => return Ok(left),
            };
            self.advance()?;
            let (one, two) = (left.number, self.signed()?.number);
            let context = &mut self.context;
            let number = match operator {
                '*' => one.multiply(two, context),
                '/' => one.divide(two, context),
                '%' => one.modulo(two, context),
                _ => one.divide(two, context).and_then(|it| it.floor()).map(Number::integer),
            }?;
            left = Operand { number, is_percent: false };
        }
    }

    fn signed(&mut self) -> Result<Operand, Fail> {
        let mut is_negative = false;
        let mut has_sign = false;
        // A loop, so that a thousand signs use no stack.
        while let Token::Sign(sign @ ('+' | '-')) = self.next {
            self.advance()?;
            is_negative ^= sign == '-';
            has_sign = true;
        }
        let Operand { number, is_percent } = self.power()?;
        match has_sign && is_negative {
            true => Ok(Operand { number: number.negated(), is_percent }),
            false => Ok(Operand { number, is_percent }),
        }
    }

    fn power(&mut self) -> Result<Operand, Fail> {
        let base = self.postfix()?;
        if !self.take('^')? {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?.number;
        let number = base.number.power(exponent, &mut self.context)?;
        Ok(Operand { number, is_percent: false })
    }

    fn postfix(&mut self) -> Result<Operand, Fail> {
        let mut number = self.primary()?;
        let mut is_percent = false;
        loop {
            match self.next {
                Token::Sign('!') => {
                    self.advance()?;
                    number = functions::factorial(&number, &mut self.context)?;
                    is_percent = false;
                }
                Token::Sign('%') if !self.number_follows_percent()? => {
                    self.advance()?;
                    number = number.divide(Number::integer(100), &mut self.context)?;
                    is_percent = true;
                }
                _ => return Ok(Operand { number, is_percent }),
            }
        }
    }

    /// Returns true if a number follows `%`, which is then the remainder operator.
    fn number_follows_percent(&self) -> Result<bool, Fail> {
        let mut ahead = Lexer::at(&self.lexer);
        Ok(match ahead.next()?.0 {
            Token::Number(_) | Token::Sign('(' | '√') => true,
            Token::Name(name) => functions::exists(name),
            _ => false,
        })
    }

    fn primary(&mut self) -> Result<Number, Fail> {
        let at = self.at;
        match self.next.clone() {
            Token::Number(number) => {
                self.advance()?;
                Ok(Number::Exact(number))
            }
            Token::Sign('(') => {
                self.advance()?;
                let calls = std::mem::take(&mut self.calls);
                let number = self.deeper(Self::sum)?.number;
                self.calls = calls;
                match self.take(')')? {
                    true => Ok(number),
                    false if self.next == Token::End => {
                        self.lexer.fail(at, "this `(` is never closed")
                    }
                    false => self.unexpected(),
                }
            }
            Token::Sign('√') => {
                self.advance()?;
                let number = self.deeper(Self::postfix)?.number;
                functions::call("sqrt", vec![number], &mut self.context)
            }
            Token::Name(name) => {
                if !functions::exists(name) {
                    return self.unexpected();
                }
                self.advance()?;
                let lower = name.to_lowercase();
                if let Some(constant) = functions::constant(&lower, &mut self.context)? {
                    return Ok(constant);
                }
                let open = self.at;
                if !self.take('(')? {
                    return self
                        .lexer
                        .fail(at, &format!("{} is a function; write {lower}(…)", quoted(name)));
                }
                let arguments = self.deeper(|evaluation| evaluation.arguments(open))?;
                functions::call(&lower, arguments, &mut self.context).map_err(|fail| match fail {
                    Fail::Error(message) if !message.starts_with("column") => {
                        self.lexer.fail::<()>(at, &message).unwrap_err()
                    }
                    fail => fail,
                })
            }
            _ => self.unexpected(),
        }
    }

    /// Parses the arguments of a function and the closing parenthesis. `open` is the position of
    /// the opening parenthesis.
    fn arguments(&mut self, open: usize) -> Result<Vec<Number>, Fail> {
        self.calls += 1;
        let mut arguments = Vec::new();
        if self.next != Token::Sign(')') {
            arguments.push(self.sum()?.number);
            while self.take(',')? {
                arguments.push(self.sum()?.number);
            }
        }
        self.calls -= 1;
        match self.take(')')? {
            true => Ok(arguments),
            false if self.next == Token::End => self.lexer.fail(open, "this `(` is never closed"),
            false => {
                self.calls += 1;
                self.unexpected()
            }
        }
    }
}
