//! Tests of encodings, and of pages that are designed to be slow: each would take many minutes in
//! quadratic time.

use std::cell::{Cell, RefCell};

use htmd::HtmlToMarkdown;
use html5ever::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{
    BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use markup5ever_rcdom::{Handle, NodeData};
use proptest::prelude::*;

use crate::attributes::Attributes;
use crate::tree::Tree;
use crate::{Page, View};

fn view(main: bool) -> View<'static> {
    View { base: None, main, all: "main=false" }
}

fn markdown(page: impl Into<String>) -> String {
    Page::parse(page.into()).unwrap().markdown(&view(true)).text
}

/// Converts a page in an encoding, with its notes.
fn markdown_of(bytes: &[u8]) -> String {
    let failed = |error: std::io::Error| kitbag_sdk::ErrorInfo::new(error.to_string());
    let page = Page::read(std::io::Cursor::new(bytes), None, None, failed).unwrap();
    page.markdown(&view(true)).piece(0, usize::MAX).unwrap()
}

#[test]
fn undeclared_encodings_are_guessed_and_named() {
    let check = |bytes: &[u8], expected: &str, note: &str| {
        let note = format!("\n[encoding guessed: {note}]");
        assert_eq!(markdown_of(bytes), format!("{expected}{note}"));
    };
    check(b"<p>caf\xe9 \x80", "café €", "windows-1252; none is declared");
    check(
        b"<meta charset=nonsense><p>caf\xe9",
        "café",
        "windows-1252; the declared `nonsense` is not known",
    );
    let rain = "Сколько воды падает с неба за месяц";
    for encoding in [encoding_rs::WINDOWS_1251, encoding_rs::KOI8_U, encoding_rs::IBM866] {
        let page = format!("<p>{rain}</p>");
        let note = format!("{}; none is declared", encoding.name());
        check(&encoding.encode(&page).0, rain, &note);
    }
    let rain = "一か月にどれだけの雨が降るかを簡単な器具が示す";
    for encoding in [encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP, encoding_rs::ISO_2022_JP] {
        let page = format!("<p>{rain}</p>");
        let note = format!("{}; none is declared", encoding.name());
        check(&encoding.encode(&page).0, rain, &note);
    }
    // The first non-ASCII letters occur late.
    let page = format!("{}<p>Größe", "<p>a</p>".repeat(20_000));
    let shown = markdown_of(&encoding_rs::WINDOWS_1252.encode(&page).0);
    assert!(shown.ends_with("Größe\n[encoding guessed: windows-1252; none is declared]"));
    // An escape sequence alone does not determine the encoding.
    assert_eq!(markdown_of(b"<p>a \x1b$ b"), "a \u{1b}$ b");
}

#[test]
fn a_tag_has_a_million_attributes() {
    let many: String = (0..1_000_000).map(|number| format!("a{number} ")).collect();
    assert_eq!(markdown(format!("<p><a href=b {many}>c</a> d")), "[c](b) d");
    assert_eq!(markdown(format!("<p>c</p {many}>d")), "c\n\nd");
}

#[test]
fn tag_look_alikes_do_not_hide_tags() {
    let many: String = (0..300).map(|number| format!("a{number} ")).collect();
    let check = |page: String, expected: &str| assert_eq!(markdown(page), expected);
    check(format!("c<b {many}='>'>d</b>"), "c**d**");
    check(format!("<!-- <a {many} -->c"), "c");
    check(format!("<script><a {many}</script>c"), "c");
    check(format!("c<!-- <a b=\"--><b {many}>d</b>"), "c**d**");
    check(format!("c<script><a b=\"</script {many}>d"), "cd");
}

#[test]
fn unmatched_end_tags_do_not_change_the_depth() {
    for tag in ["<div></x>", "<b></x></x>", "<p><font color=1></x></x></p>", "<a><b><div></x></a>"]
    {
        let page = format!("<p>before</p>{}deep", tag.repeat(20_000));
        let markdown = markdown(page);
        assert!(markdown.starts_with("before") && markdown.contains("deep"), "{tag}");
    }
}

#[test]
fn elements_that_the_tree_builder_adds_are_counted() {
    let styles: String = (0..100).map(|number| format!("<b title={number}>")).collect();
    let page = format!("<p>{styles}</p>{}", "<p>a</p>".repeat(20_000));
    assert_eq!(Page::parse(page).err(), Some(crate::parse::too_many()));
}

#[test]
fn misplaced_table_content_moves_before_the_table() {
    let page = format!("<table>{}<tr><th>b<th>c", "a<hr>".repeat(300_000));
    let before = "a\n\n- - -\n\n".repeat(300_000);
    assert!(markdown(page) == format!("{before}| b | c |\n| --- | --- |"));
}

#[test]
fn equal_adjacent_elements_are_merged() {
    let many = 200_000;
    let check = |one: &str, expected: String| assert!(markdown(one.repeat(many)) == expected);
    check("<b>a</b>", format!("**{}**", "a".repeat(many)));
    check("<q>a</q>", "a".repeat(many));
}

#[test]
fn hidden_parts_take_linear_time() {
    let many = 100_000;
    let page =
        format!("<p>seen</p>{}", "<noscript>a</noscript><template>b</template>".repeat(many));
    let shown = Page::parse(page).unwrap().markdown(&view(false)).text;
    assert_eq!(shown.matches('b').count(), many);
    let streamed = "<template id=B:1></template><div hidden id=S:1>a</div>".repeat(many);
    assert!(markdown(streamed).starts_with('a'));
    let images = "<img class=lazy><noscript><img src=/a.png></noscript>".repeat(many);
    assert_eq!(markdown(images).matches("![](/a.png)").count(), many);
}

#[test]
fn repetition_of_spanning_cells_is_limited() {
    let cell = "long ".repeat(2_000);
    let rows = "<tr><td>b".repeat(10_000);
    let page = format!("<table><tr><th>a<th>b<tr><td rowspan=0>{cell}<td>c{rows}</table>");
    let shown = markdown(page);
    assert!(shown.len() < 500_000, "{}", shown.len());
    assert!(shown.contains("\n| | b |\n"));
}

/// Names of elements, some of them not in HTML.
const NAMES: &str = "a abbr acronym address article aside b bdi bdo big blink blockquote center \
    cite code data dd del details dfn dir div dl dt em fieldset figcaption figure font footer h1 \
    h2 h6 header hgroup i ins kbd label legend li main mark math menu nav nobr ol p pre q rp rt \
    ruby s samp search section small span strike strong sub summary sup time tt u ul var x-y";

#[test]
fn merging_matches_htmd() {
    let children = |node: &Handle| node.children.borrow().len();
    for name in NAMES.split_whitespace() {
        for (one, other) in [(name, name), (name, "em"), ("strong", name)] {
            let page = format!("<{one}>1</{one}><{other}>2</{other}>");
            let body = |tree: &Handle| {
                let html = tree.children.borrow()[0].clone();
                let body = html.children.borrow()[1].clone();
                assert!(matches!(&body.data, NodeData::Element { name, .. }
                    if &*name.local == "body"));
                body
            };
            let converter = HtmlToMarkdown::new();
            let theirs = converter.html_to_tree(&page).unwrap();
            converter.tree_to_markdown(&theirs);
            let Page(ours) = Page::parse(page.clone()).unwrap();
            crate::content::select(&ours.tree, &view(false), 0);
            assert_eq!(children(&body(&ours.tree.document)), children(&body(&theirs)), "{page}");
        }
    }
}

/// A sink that records tags and text.
struct Recorder {
    builder: TreeBuilder<Handle, Tree>,
    has_token: Cell<bool>,
    tags: RefCell<Vec<Tag>>,
    text: RefCell<String>,
}

impl TokenSink for Recorder {
    type Handle = Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Handle> {
        match &token {
            Token::ParseError(_) => return TokenSinkResult::Continue,
            Token::TagToken(tag) => self.tags.borrow_mut().push(tag.clone()),
            Token::CharacterTokens(text) => self.text.borrow_mut().push_str(text),
            _ => {}
        }
        self.has_token.set(true);
        self.builder.process_token(token, line)
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder.adjusted_current_node_present_but_not_in_html_namespace()
    }
}

/// Returns the tags and the text of a page that arrives in pieces, with at most this many
/// attributes.
fn tokens(pieces: &[&str], most: usize) -> (Vec<Tag>, String) {
    let tokenizer = Tokenizer::new(
        Recorder {
            builder: TreeBuilder::new(Tree::default(), TreeBuilderOpts::default()),
            has_token: Cell::default(),
            tags: RefCell::default(),
            text: RefCell::default(),
        },
        TokenizerOpts::default(),
    );
    let (mut attributes, input) = (Attributes::new(most), BufferQueue::default());
    for piece in pieces {
        attributes.pass(&StrTendril::from(*piece), |text| {
            tokenizer.sink.has_token.set(false);
            input.push_back(text);
            while let TokenizerResult::Script(_) = tokenizer.feed(&input) {}
            tokenizer.sink.has_token.get()
        });
    }
    tokenizer.end();
    let Recorder { tags, text, .. } = tokenizer.sink;
    (tags.into_inner(), text.into_inner())
}

const IN_TAGS: [&str; 18] = [
    "<a ", "</a ", "<", "</", ">", "b", "c ", "=", " = ", "\"", "'", "/", "\n", "\r", "&", "&amp",
    "\0", "é",
];

const AROUND_TAGS: [&str; 9] = [
    "<script>",
    "</script",
    "<title>",
    "</title ",
    "<textarea ",
    "<style",
    "<plaintext>",
    "<body ",
    "-->",
];

const COMMENTS: [&str; 5] = ["<!--", "--!>", "<!", "<?", "--"];

const FOREIGN: [&str; 4] = ["<svg>", "<math ", "<![CDATA[", "]]>"];

fn pieces(of: &[&[&'static str]]) -> impl Strategy<Value = Vec<&'static str>> {
    let all: Vec<&str> = of.concat();
    prop::collection::vec(prop::sample::select(all), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn no_tag_has_more_attributes(pieces in pieces(&[&IN_TAGS, &AROUND_TAGS, &COMMENTS, &FOREIGN])) {
        for pieces in [&*pieces, &[&*pieces.concat()]] {
            let (tags, _) = tokens(pieces, 2);
            prop_assert!(tags.iter().all(|tag| tag.attrs.len() <= 2), "{tags:?}");
        }
    }

    #[test]
    fn only_attributes_are_removed(pieces in pieces(&[&IN_TAGS, &AROUND_TAGS, &COMMENTS])) {
        for pieces in [&*pieces, &[&*pieces.concat()]] {
            let (tags, text) = tokens(pieces, 2);
            let (all, all_text) = tokens(pieces, usize::MAX);
            prop_assert_eq!(text, all_text);
            prop_assert_eq!(tags.len(), all.len());
            for (tag, all) in tags.iter().zip(&all) {
                prop_assert_eq!((tag.kind, &tag.name), (all.kind, &all.name));
                prop_assert!(all.attrs.starts_with(&tag.attrs));
            }
        }
    }
}
