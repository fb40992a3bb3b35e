//! Builds a tree of a page: any bytes in any encoding, with bounded depth and size.
//!
//! `html5ever` builds the tree as browsers do, and repairs errors. Between its tokenizer and its
//! tree builder, a filter removes parts that Markdown cannot express: scripts, styles, comments and
//! most attributes. It also removes the tags of elements that are nested too deeply, and keeps
//! their text. `attributes` precedes the tokenizer, and `tree` is the tree, so that everything
//! takes linear time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, Read, Seek};

use encoding_rs::{Decoder, Encoding, ISO_2022_JP, UTF_8};
use html5ever::interface::Tracer;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts, TreeSink};
use html5ever::{Attribute, LocalName, TokenizerResult, local_name};
use kitbag_sdk::ErrorInfo;
use markup5ever_rcdom::{Handle, RcDom};
use url::Url;

use crate::attributes::{Attributes, MOST_ATTRIBUTES};
use crate::charset::{self, Charset, Guess, HEAD_BYTES, Validity};
use crate::tree::Tree;
use crate::visibility::hides;
use crate::{code, image};

/// Maximum nesting of elements. Pages have up to a hundred levels; writing a level as Markdown uses
/// stack.
pub(crate) const MOST_DEPTH: usize = 128;

/// Maximum number of elements and text nodes of a page that is parsed completely.
const MOST_NODES: usize = 1_000_000;

/// Number of bytes that are read and decoded at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A parsed page.
pub(crate) struct Parsed {
    pub(crate) tree: RcDom,
    /// True if the tree has all elements and text nodes of the page.
    pub(crate) is_whole: bool,
    /// The number of elements and text nodes that may be added to the page.
    pub(crate) room: usize,
    /// The note that names the encoding if it was guessed.
    pub(crate) guess: Option<String>,
}

/// Builds the tree of a page from text.
pub(crate) fn text(text: String) -> Result<Parsed, ErrorInfo> {
    let mut parser = Parser::new(MOST_NODES, MOST_DEPTH);
    parser.feed(text);
    match parser.is_full() {
        true => Err(too_many()),
        false => Ok(parser.finish(None)),
    }
}

/// Parses a part of a page that browsers do not show, with at most `most_nodes` elements and text
/// nodes and `most_depth` levels.
pub(crate) fn fragment(text: String, most_nodes: usize, most_depth: usize) -> Parsed {
    let mut parser = Parser::new(most_nodes, most_depth);
    parser.feed(text);
    parser.finish(None)
}

/// Returns the error for a page with too many elements.
pub(crate) fn too_many() -> ErrorInfo {
    ErrorInfo::new(format!(
        "the page has more than {MOST_NODES} elements and text nodes, the limit; pass a part of it \
         as `text`"
    ))
}

/// Parses a page that is read twice, and a third time if its encoding is guessed. If it has more
/// elements and text nodes than `most_nodes`, the tree has the start of the page.
pub(crate) fn read(
    mut file: impl Read + Seek,
    known: Option<&'static Encoding>,
    url: Option<&Url>,
    most_nodes: Option<usize>,
    failed: impl Fn(io::Error) -> ErrorInfo,
) -> Result<Parsed, ErrorInfo> {
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
    let (encoding, guess) = match Charset::find(&head, known, &validity) {
        Charset::Known(encoding) => (encoding, None),
        Charset::Unknown { label } => {
            file.rewind().map_err(&failed)?;
            let mut guess = Guess::new();
            loop {
                let read = file.read(&mut chunk).map_err(&failed)?;
                if read == 0 {
                    guess.end();
                    break;
                }
                if !guess.look(&chunk[..read]) {
                    break;
                }
            }
            match guess.encoding(url) {
                // An escape sequence in a UTF-8 page, or a truncated page.
                encoding if validity.is_utf8() && encoding != ISO_2022_JP => (UTF_8, None),
                encoding if encoding == UTF_8 => (encoding, None),
                encoding => (encoding, Some(charset::note(encoding, label.as_deref()))),
            }
        }
    };
    file.rewind().map_err(&failed)?;
    let mut decoder = encoding.new_decoder();
    let mut parser = Parser::new(most_nodes.unwrap_or(MOST_NODES), MOST_DEPTH);
    loop {
        let read = file.read(&mut chunk).map_err(&failed)?;
        parser.feed(decoded(&mut decoder, &chunk[..read], read == 0));
        if read == 0 || parser.is_full() {
            return Ok(parser.finish(guess));
        }
    }
}

fn decoded(decoder: &mut Decoder, bytes: &[u8], is_last: bool) -> String {
    let capacity = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3);
    let mut text = String::with_capacity(capacity);
    let _ = decoder.decode_to_string(bytes, &mut text, is_last);
    text
}

struct Parser {
    attributes: Attributes,
    tokenizer: Tokenizer<Filter>,
    input: BufferQueue,
}

impl Parser {
    fn new(most_nodes: usize, most_depth: usize) -> Self {
        let builder = TreeBuilder::new(Tree::default(), TreeBuilderOpts::default());
        let filter = Filter {
            builder,
            has_token: Cell::new(false),
            depth: Cell::new(0),
            most_depth,
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
            // A browser would run a script here.
            while let TokenizerResult::Script(_) = tokenizer.feed(input) {}
            tokenizer.sink.has_token.get()
        });
    }

    /// Returns whether the page has reached its limit of elements and text nodes.
    fn is_full(&self) -> bool {
        self.tokenizer.sink.is_full()
    }

    fn finish(self, guess: Option<String>) -> Parsed {
        while let TokenizerResult::Script(_) = self.tokenizer.feed(&self.input) {}
        self.tokenizer.end();
        let filter = self.tokenizer.sink;
        let room = filter.most_nodes.saturating_sub(filter.nodes());
        Parsed { is_whole: !filter.is_full(), room, guess, tree: filter.builder.sink.finish() }
    }
}

/// A filter between the tokenizer and the tree builder.
struct Filter {
    builder: TreeBuilder<Handle, Tree>,
    /// True if the tokenizer has produced output for its last input.
    has_token: Cell<bool>,
    /// Upper bound on the number of open elements, without those that the tree builder adds.
    depth: Cell<usize>,
    most_depth: usize,
    most_nodes: usize,
    /// The number of elements and text nodes in the page.
    nodes: Cell<usize>,
    /// The number of open elements by name that were removed, so that their end tags are removed as
    /// well.
    left_out: RefCell<HashMap<LocalName, usize>>,
    /// True in a script or a style.
    is_silent: Cell<bool>,
    /// True in an option of a form.
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
    /// Returns whether the page has reached its limit of elements and text nodes, so that the rest
    /// is dropped.
    fn is_full(&self) -> bool {
        self.nodes() > self.most_nodes
    }

    fn nodes(&self) -> usize {
        self.nodes.get().max(self.builder.sink.elements())
    }

    /// Returns whether a tag is added to the tree.
    fn takes(&self, tag: &mut Tag) -> bool {
        if &*tag.name == "amp-img" {
            if tag.kind == TagKind::EndTag {
                return false;
            }
            tag.name = local_name!("img");
        }
        if matches!(&*tag.name, "img" | "source") && !image::resolve(&mut tag.attrs) {
            return false;
        }
        let name = &*tag.name;
        let is_start = tag.kind == TagKind::StartTag;
        self.is_option.set(is_start && name == "option");
        // The options of a form are not part of the text.
        if matches!(name, "select" | "option" | "optgroup" | "datalist" | "selectedcontent") {
            return false;
        }
        if is_raw(name) {
            self.is_silent.set(
                is_start
                    && !matches!(name, "textarea" | "title" | "xmp" | "plaintext" | "noscript"),
            );
            tag.attrs.clear();
            return true;
        }
        if is_start {
            let is_refresh = name == "meta" && refreshes(&tag.attrs);
            tag.attrs.retain(|attribute| {
                let value = &attribute.value;
                match &*attribute.name.local {
                    "src" => true,
                    // Each attribute costs memory, so only those that tell content from
                    // surroundings and code are kept.
                    "class" | "id" => {
                        value.len() <= 200
                            && match name {
                                "div" | "section" | "ul" | "ol" | "table" | "td" | "th" | "a"
                                | "pre" | "code" | "figure" | "template" => true,
                                "span" | "li" => code::is_gutter_class(value),
                                _ => false,
                            }
                    }
                    "role" => value.len() <= 200,
                    "style" => value.len() <= 8 << 10 && hides(value),
                    "content" => is_refresh && value.len() <= 8 << 10,
                    "aria-label" => name == "a" && value.len() <= 200,
                    "shadowrootmode" => name == "template",
                    "href" | "alt" | "title" | "hidden" | "aria-hidden" | "start" | "align"
                    | "colspan" | "rowspan" | "type" | "encoding" | "color" | "face" | "size" => {
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
        if self.depth.get() >= self.most_depth {
            // Only the tree builder knows which elements an end tag closes, and which close without
            // one, so open elements are counted.
            let count = Count(Cell::new(0));
            self.builder.trace_handles(&count);
            self.depth.set(count.0.get());
        }
        if self.depth.get() >= self.most_depth && !is_structure(&tag.name) {
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

/// Returns whether the attributes of a `meta` make browsers load another page.
fn refreshes(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        &*attribute.name.local == "http-equiv"
            && attribute.value.trim().eq_ignore_ascii_case("refresh")
    })
}

/// Counts the open elements of a tree builder.
struct Count(Cell<usize>);

impl Tracer for Count {
    type Handle = Handle;

    fn trace_handle(&self, _: &Handle) {
        self.0.set(self.0.get() + 1);
    }
}

/// Elements that occur once per page, so their tags add no depth.
fn is_structure(name: &LocalName) -> bool {
    [local_name!("html"), local_name!("head"), local_name!("body")].contains(name)
}

/// Elements whose content is raw text: the tree builder switches the tokenizer.
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

/// Elements without content.
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
