//! Bounds the attributes of a tag.
//!
//! The tokenizer of `html5ever` compares each attribute of a tag with all previous ones, so that a
//! page with a single huge tag would take hours. Further attributes of a tag are therefore removed.
//! [`Attributes`] finds them as the tokenizer does. It does not know whether the tokenizer is in a
//! script or in other text: an assumed tag or comment ends as soon as the tokenizer processes its
//! start.

use html5ever::tendril::StrTendril;

/// Maximum number of attributes of a tag that are parsed.
pub(crate) const MOST_ATTRIBUTES: usize = 256;

/// The state of the scanner in a page.
pub(crate) struct Attributes {
    most: usize,
    state: State,
    /// The number of attributes in the tag.
    count: usize,
    /// True if the rest of the tag is skipped.
    skips: bool,
    /// True if the tokenizer has produced output since the assumed tag started, so it is not a tag.
    is_over: bool,
}

/// The states of the tokenizer in a tag.
#[derive(Clone, Copy)]
enum State {
    Text,
    /// After `<`.
    Open,
    /// After `</`.
    EndOpen,
    /// After `<!`, `<?` and similar. The tokenizer determines the end.
    Comment,
    Name,
    /// The possible start of an attribute.
    Between,
    Attribute,
    /// After the name of an attribute and a space.
    AfterAttribute,
    /// After `=`.
    Equals,
    Unquoted,
    Quoted(u8),
}

impl Attributes {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, state: State::Text, count: 0, skips: false, is_over: false }
    }

    /// Passes a piece of a page to the tokenizer, without excess attributes. `give` returns whether
    /// the tokenizer has produced output.
    pub(crate) fn pass(&mut self, text: &StrTendril, give: impl Fn(StrTendril) -> bool) {
        let mut piece = Piece { text, given: 0, tag: 0, give };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if matches!(self.state, State::Text) {
                let Some(next) = bytes[at..].iter().position(|byte| *byte == b'<') else { break };
                at += next;
            }
            self.step(bytes[at], at, &mut piece);
            at += 1;
        }
        self.is_none(bytes.len(), &mut piece);
    }

    fn step(&mut self, byte: u8, at: usize, piece: &mut Piece<impl Fn(StrTendril) -> bool>) {
        use State::{
            AfterAttribute, Attribute, Between, Comment, EndOpen, Equals, Name, Open, Quoted, Text,
            Unquoted,
        };
        self.state = match (self.state, byte) {
            (Text | Open, b'<') => return self.begin(at, piece),
            // The text would be an attribute.
            (Between | AfterAttribute, b'<') if self.is_none(at, piece) => {
                return self.begin(at, piece);
            }
            (EndOpen | Comment | Name | Attribute | Equals | Unquoted | Quoted(_), b'<')
                if self.is_none(at + 1, piece) =>
            {
                return self.begin(at, piece);
            }
            (Open, b'/') => EndOpen,
            (Open | EndOpen, byte) if byte.is_ascii_alphabetic() => Name,
            (Open, b'!' | b'?') => Comment,
            (EndOpen, b'>') => Text,
            (EndOpen, _) => Comment,
            (Comment, b'>') if self.is_none(at + 1, piece) => Text,
            (Comment, _) => Comment,
            (Text | Open, _) => Text,
            (Quoted(quote), byte) if byte == quote => Between,
            (Quoted(_), b'>') if self.is_none(at + 1, piece) => Text,
            (Quoted(quote), _) => Quoted(quote),
            (_, b'>') => {
                if self.skips {
                    piece.given = at;
                    self.skips = false;
                }
                Text
            }
            (Equals, b'"' | b'\'') => Quoted(byte),
            (Equals, byte) if byte.is_ascii_whitespace() => Equals,
            (Equals, _) => Unquoted,
            (Attribute | AfterAttribute, byte) if byte.is_ascii_whitespace() => AfterAttribute,
            (_, byte) if byte.is_ascii_whitespace() => Between,
            (Unquoted, _) => Unquoted,
            (_, b'/') => Between,
            (Attribute | AfterAttribute, b'=') => Equals,
            (Between | AfterAttribute, _) => {
                self.count += 1;
                if self.count > self.most && !self.skips {
                    self.skips = !self.is_none(at, piece);
                }
                match self.count > self.most && !self.skips {
                    true => Text,
                    false => Attribute,
                }
            }
            (Name | Attribute, _) => self.state,
        };
    }

    /// Handles a `<` that may start a tag.
    fn begin(&mut self, at: usize, piece: &mut Piece<impl Fn(StrTendril) -> bool>) {
        piece.tag = at + 1;
        self.state = State::Open;
        self.count = 0;
        self.is_over = false;
    }

    /// Returns true if an assumed tag is not one, according to the tokenizer's output.
    fn is_none(&mut self, end: usize, piece: &mut Piece<impl Fn(StrTendril) -> bool>) -> bool {
        if !self.skips {
            self.is_over |= piece.give_to(end);
        }
        self.is_over
    }
}

/// A piece of a page for the tokenizer.
struct Piece<'a, G> {
    text: &'a StrTendril,
    /// The number of bytes that were passed on.
    given: usize,
    /// The position after the `<` of the last tag, 0 if that was earlier. The tokenizer needs the
    /// `<` to recognize a preceding `&` as text.
    tag: usize,
    give: G,
}

impl<G: Fn(StrTendril) -> bool> Piece<'_, G> {
    /// Passes the input up to this position. Returns whether the tokenizer has produced output
    /// since the last tag.
    fn give_to(&mut self, end: usize) -> bool {
        if self.given < self.tag {
            self.give(self.tag);
        }
        self.give(end)
    }

    fn give(&mut self, end: usize) -> bool {
        if self.given == end {
            return false;
        }
        let part = self.text.subtendril(self.given as u32, (end - self.given) as u32);
        self.given = end;
        (self.give)(part)
    }
}
