//! Makes a tree of a page: of any bytes, in any encoding, of bounded depth and size.
//!
//! The tree is built by `html5ever` as browsers do it, which mends what is broken. Between
//! its tokenizer and its tree builder stands a filter, which leaves out what no Markdown has:
//! scripts, styles, comments and most attributes. It also leaves out the tags of what lies too
//! deep, and keeps their text. `attributes` stands before the tokenizer, and the tree is that
//! of `tree`, so that all of it takes time in proportion to the page.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, Read, Seek};

use encoding_rs::{Decoder, Encoding, UTF_8, WINDOWS_1252};
use html5ever::interface::Tracer;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};
use html5ever::{LocalName, TokenizerResult, local_name};
use kitbag_sdk::ErrorInfo;
use markup5ever_rcdom::{Handle, RcDom};

use crate::attributes::{Attributes, MOST_ATTRIBUTES};
use crate::content::hides;
use crate::tree::Tree;

/// How deep elements may lie in each other. Pages have up to a hundred; writing one level as
/// Markdown takes some stack.
const MOST_DEPTH: usize = 128;

/// How many elements and texts a page may have that is read as a whole.
const MOST_NODES: usize = 1_000_000;

/// How much is read and decoded at once.
const CHUNK_BYTES: usize = 64 << 10;

/// How much of a page is looked at for its encoding.
const HEAD_BYTES: usize = 4 << 10;

/// Makes a tree of a page that is text.
pub(crate) fn text(text: String) -> Result<RcDom, ErrorInfo> {
    let mut parser = Parser::new(MOST_NODES);
    parser.feed(text);
    match parser.is_full() {
        true => Err(too_many()),
        false => Ok(parser.finish()),
    }
}

/// Why a page is not read as a whole.
pub(crate) fn too_many() -> ErrorInfo {
    ErrorInfo::new(format!(
        "the page has more than {MOST_NODES} elements and texts, which is the most that is \
         converted"
    ))
}

/// Makes a tree of a page that is read twice, or of its beginning where it has more elements
/// and texts than `most_nodes`. Tells whether it is all of it.
pub(crate) fn read(
    mut file: impl Read + Seek,
    known: Option<&'static Encoding>,
    most_nodes: Option<usize>,
    failed: impl Fn(io::Error) -> ErrorInfo,
) -> Result<(RcDom, bool), ErrorInfo> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut validity = Validity::default();
    let mut head = Vec::new();
    loop {
        let read = file.read(&mut chunk).map_err(&failed)?;
        if read == 0 {
            break;
        }
        if head.len() < HEAD_BYTES {
            head.extend_from_slice(&chunk[..read.min(HEAD_BYTES)]);
        }
        validity.look(&chunk[..read]);
    }
    let is_utf8 = validity.is_utf8();
    file.rewind().map_err(&failed)?;
    let mut decoder = encoding(&head, known, is_utf8).new_decoder();
    let mut parser = Parser::new(most_nodes.unwrap_or(MOST_NODES));
    loop {
        let read = file.read(&mut chunk).map_err(&failed)?;
        parser.feed(decoded(&mut decoder, &chunk[..read], read == 0));
        let is_full = parser.is_full();
        if read == 0 || is_full {
            return Ok((parser.finish(), !is_full));
        }
    }
}

fn decoded(decoder: &mut Decoder, bytes: &[u8], is_last: bool) -> String {
    let capacity = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3);
    let mut text = String::with_capacity(capacity);
    let _ = decoder.decode_to_string(bytes, &mut text, is_last);
    text
}

/// The encoding of a page: by its byte order mark, else what is known of it, else as it says
/// itself, else UTF-8 where it is that, else windows-1252, as browsers do.
fn encoding(head: &[u8], known: Option<&'static Encoding>, is_utf8: bool) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    if let Some(encoding) = known {
        return encoding;
    }
    // UTF-16 without a mark: every other byte of what is ASCII is zero.
    let zeros = |first: usize| head.iter().skip(first).step_by(2).filter(|it| **it == 0).count();
    match (zeros(0) * 3 > head.len(), zeros(1) * 3 > head.len()) {
        (true, false) => return encoding_rs::UTF_16BE,
        (false, true) => return encoding_rs::UTF_16LE,
        _ => {}
    }
    match declared(head) {
        // What can be read as ASCII to find this is no UTF-16.
        Some(encoding)
            if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE =>
        {
            UTF_8
        }
        // Many pages say something else and are UTF-8.
        Some(_) if is_utf8 && !head.is_ascii() => UTF_8,
        Some(encoding) => encoding,
        None if is_utf8 => UTF_8,
        None => WINDOWS_1252,
    }
}

/// The encoding that a page names in `<meta charset="…">`, `<meta content="…; charset=…">` or
/// `<?xml encoding="…"?>`.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let tags = head.split('<').filter(|tag| tag.starts_with("meta") || tag.starts_with("?xml"));
    tags.filter_map(|tag| {
        let name = if tag.starts_with('?') { "encoding" } else { "charset" };
        let value = tag[tag.find(name)? + name.len()..].trim_start().strip_prefix('=')?;
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|it: char| !(it.is_ascii_alphanumeric() || "-_:.+".contains(it)));
        Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
    })
    .next()
}

/// Whether bytes that come in pieces are UTF-8.
#[derive(Default)]
struct Validity {
    is_invalid: bool,
    /// The beginning of a character at the end of the last piece.
    rest: Vec<u8>,
}

impl Validity {
    fn look(&mut self, bytes: &[u8]) {
        if self.is_invalid {
            return;
        }
        let mut bytes = bytes;
        // A character has four bytes at most.
        while !self.rest.is_empty() && !bytes.is_empty() {
            self.rest.push(bytes[0]);
            bytes = &bytes[1..];
            match std::str::from_utf8(&self.rest) {
                Ok(_) => self.rest.clear(),
                Err(error) if error.error_len().is_some() => self.is_invalid = true,
                Err(_) => {}
            }
            if self.is_invalid {
                return;
            }
        }
        if let Err(error) = std::str::from_utf8(bytes) {
            self.is_invalid = error.error_len().is_some();
            self.rest = bytes[error.valid_up_to()..].to_vec();
        }
    }

    fn is_utf8(&self) -> bool {
        !self.is_invalid && self.rest.is_empty()
    }
}

struct Parser {
    attributes: Attributes,
    tokenizer: Tokenizer<Filter>,
    input: BufferQueue,
}

impl Parser {
    fn new(most_nodes: usize) -> Self {
        let builder = TreeBuilder::new(Tree::default(), TreeBuilderOpts::default());
        let filter = Filter {
            builder,
            has_token: Cell::new(false),
            depth: Cell::new(0),
            most_nodes,
            nodes: Cell::new(0),
            left_out: RefCell::default(),
            is_silent: Cell::new(false),
            is_option: Cell::new(false),
        };
        Self {
            attributes: Attributes::new(MOST_ATTRIBUTES),
            tokenizer: Tokenizer::new(filter, TokenizerOpts::default()),
            input: BufferQueue::default(),
        }
    }

    fn feed(&mut self, text: String) {
        let Self { attributes, tokenizer, input } = self;
        attributes.pass(&StrTendril::from(text), |text| {
            tokenizer.sink.has_token.set(false);
            input.push_back(text);
            // A script would run here.
            while let TokenizerResult::Script(_) = tokenizer.feed(input) {}
            tokenizer.sink.has_token.get()
        });
    }

    /// Whether the page has more elements and texts than it may have.
    fn is_full(&self) -> bool {
        self.tokenizer.sink.is_full()
    }

    fn finish(self) -> RcDom {
        while let TokenizerResult::Script(_) = self.tokenizer.feed(&self.input) {}
        self.tokenizer.end();
        self.tokenizer.sink.builder.sink.finish()
    }
}

/// Stands between the tokenizer and the tree builder.
struct Filter {
    builder: TreeBuilder<Handle, Tree>,
    /// Whether the tokenizer has made something of what it got last.
    has_token: Cell<bool>,
    /// As many elements are open at most, but for those that the tree builder adds.
    depth: Cell<usize>,
    most_nodes: usize,
    /// How many elements and texts the page has so far.
    nodes: Cell<usize>,
    /// How many elements of a name are left out, so that their end tags are too.
    left_out: RefCell<HashMap<LocalName, usize>>,
    /// In a script or a style.
    is_silent: Cell<bool>,
    /// In an option of a form.
    is_option: Cell<bool>,
}

impl TokenSink for Filter {
    type Handle = Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Handle> {
        if let Token::ParseError(_) = token {
            return TokenSinkResult::Continue;
        }
        self.has_token.set(true);
        match token {
            Token::CommentToken(_) => TokenSinkResult::Continue,
            _ if self.is_full() => TokenSinkResult::Continue,
            Token::CharacterTokens(_) if self.is_silent.get() || self.is_option.get() => {
                TokenSinkResult::Continue
            }
            Token::CharacterTokens(_) => {
                self.nodes.set(self.nodes.get() + 1);
                self.builder.process_token(token, line)
            }
            Token::TagToken(mut tag) => match self.takes(&mut tag) {
                true => self.builder.process_token(Token::TagToken(tag), line),
                false => TokenSinkResult::Continue,
            },
            token => self.builder.process_token(token, line),
        }
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl Filter {
    /// Whether the page has more elements and texts than it may have: the rest is left out.
    fn is_full(&self) -> bool {
        self.nodes.get().max(self.builder.sink.elements()) > self.most_nodes
    }

    /// Whether a tag goes into the tree.
    fn takes(&self, tag: &mut Tag) -> bool {
        let name = &*tag.name;
        let is_start = tag.kind == TagKind::StartTag;
        self.is_option.set(is_start && name == "option");
        // What a form offers is no text of the page.
        if matches!(name, "select" | "option" | "optgroup" | "datalist" | "selectedcontent") {
            return false;
        }
        if is_raw(name) {
            self.is_silent
                .set(is_start && !matches!(name, "textarea" | "title" | "xmp" | "plaintext"));
            tag.attrs.clear();
            return true;
        }
        if is_start {
            tag.attrs.retain_mut(|attribute| {
                let value = &attribute.value;
                match &*attribute.name.local {
                    // A picture in the page itself is no text.
                    "src" => !value.starts_with("data:"),
                    // Of what may be surroundings or code; each attribute costs memory.
                    "class" | "id" => {
                        value.len() <= 200
                            && matches!(
                                name,
                                "div"
                                    | "section"
                                    | "ul"
                                    | "ol"
                                    | "table"
                                    | "td"
                                    | "a"
                                    | "pre"
                                    | "code"
                            )
                    }
                    "role" => value.len() <= 200,
                    "style" => value.len() <= 8 << 10 && hides(value),
                    "href" | "alt" | "title" | "hidden" | "aria-hidden" | "start" | "align"
                    | "colspan" | "type" | "encoding" | "color" | "face" | "size" => {
                        value.len() <= 8 << 10
                    }
                    _ => false,
                }
            });
            self.nodes.set(self.nodes.get() + 1);
        }
        if is_void(name) {
            return true;
        }
        match tag.kind {
            TagKind::StartTag => self.takes_start(tag),
            TagKind::EndTag => self.takes_end(tag),
        }
    }

    fn takes_start(&self, tag: &Tag) -> bool {
        if self.depth.get() >= MOST_DEPTH {
            // Which elements an end tag ends, and which end without one, the tree builder
            // knows: count those that are open.
            let count = Count(Cell::new(0));
            self.builder.trace_handles(&count);
            self.depth.set(count.0.get());
        }
        if self.depth.get() >= MOST_DEPTH && !is_structure(&tag.name) {
            *self.left_out.borrow_mut().entry(tag.name.clone()).or_default() += 1;
            return false;
        }
        self.depth.set(self.depth.get() + 1);
        true
    }

    fn takes_end(&self, tag: &Tag) -> bool {
        let mut left_out = self.left_out.borrow_mut();
        match left_out.get_mut(&tag.name).filter(|count| **count > 0) {
            Some(count) => {
                *count -= 1;
                false
            }
            None => true,
        }
    }
}

/// Counts the elements that a tree builder holds.
struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = Handle;

    fn trace_handle(&self, _: &Handle) {
        self.0.set(self.0.get() + 1);
    }
}

/// Elements that are in a page once: their tags add no depth.
fn is_structure(name: &LocalName) -> bool {
    [local_name!("html"), local_name!("head"), local_name!("body")].contains(name)
}

/// Elements whose content is text for the tokenizer, which the tree builder tells it.
fn is_raw(name: &str) -> bool {
    matches!(
        name,
        "script"
            | "style"
            | "textarea"
            | "title"
            | "xmp"
            | "iframe"
            | "noembed"
            | "noframes"
            | "noscript"
            | "plaintext"
    )
}

/// Elements that hold nothing.
fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "param"
            | "source"
            | "track"
            | "wbr"
            | "image"
    )
}
