//! Code: preformatted text, and the line-number gutters beside it.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::{Handle, NodeData};

use crate::dom::{ancestors, attribute, elements, has_word, is, name, text_of};

/// Writes preformatted text as a code block, character by character.
pub(crate) fn pre(_: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let mut writer = Writer::default();
    writer.children(element.node);
    Some(block(&writer.text, language(element.node).as_deref()).into())
}

/// Formats a code block. Returns an empty string if the code has only white space.
pub(crate) fn block(code: &str, language: Option<&str>) -> String {
    if code.trim().is_empty() {
        return String::new();
    }
    let code = code.trim_matches('\n');
    let runs = code.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(runs + 1));
    format!("\n\n{fence}{}\n{code}\n{fence}\n\n", language.unwrap_or_default())
}

/// Returns the text of an element with its white space, without gutters.
pub(crate) fn text(node: &Handle) -> String {
    let mut writer = Writer::default();
    writer.children(node);
    writer.text
}

#[derive(Default)]
struct Writer {
    text: String,
    /// True if a block has ended, so that the next text starts a line.
    ends_line: bool,
}

impl Writer {
    fn children(&mut self, node: &Handle) {
        for child in node.children.borrow().iter() {
            self.node(child);
        }
    }

    fn node(&mut self, node: &Handle) {
        if let NodeData::Text { contents } = &node.data {
            return self.push(&contents.borrow());
        }
        if is_gutter(node) {
            return;
        }
        match name(node) {
            "br" => {
                self.end_line();
                self.text.push('\n');
            }
            "img" => self.push(&attribute(node, "alt").unwrap_or_default()),
            "script" | "style" | "button" => {}
            // White space between the parts of a table is not text.
            "table" | "thead" | "tbody" | "tfoot" | "colgroup" | "tr" => {
                self.block();
                for child in node.children.borrow().iter().filter(|it| !name(it).is_empty()) {
                    self.node(child);
                }
                self.block();
            }
            "address" | "article" | "blockquote" | "caption" | "div" | "dd" | "dl" | "dt"
            | "figcaption" | "figure" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "hr" | "li"
            | "ol" | "p" | "pre" | "section" | "ul" => {
                self.block();
                self.children(node);
                self.block();
            }
            _ => self.children(node),
        }
    }

    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        // A line break between two blocks ends the first.
        match text.starts_with(['\n', '\r']) {
            true => self.ends_line = false,
            false => self.end_line(),
        }
        self.text.push_str(text);
    }

    fn block(&mut self) {
        self.ends_line |= !self.text.is_empty() && !self.text.ends_with('\n');
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.ends_line) {
            self.text.push('\n');
        }
    }
}

/// Returns whether a class marks a gutter or a line number.
pub(crate) fn is_gutter_class(class: &str) -> bool {
    class.to_ascii_lowercase().split_ascii_whitespace().any(is_gutter_word)
}

fn is_gutter_word(word: &str) -> bool {
    matches!(
        word,
        "gutter"
            | "rouge-gutter"
            | "lineno"
            | "linenos"
            | "linenodiv"
            | "lineno-container"
            | "line-number"
            | "line-numbers-rows"
            | "linenumber"
            | "linenumbers"
            | "blob-num"
            | "hljs-ln-numbers"
            | "hljs-ln-line-number"
            | "react-line-number"
            | "line-num"
            | "lnum"
            | "ln"
            | "lnt"
            | "lines-num"
            | "diff-line-num"
    )
}

/// Returns whether an element holds the line numbers of the code beside it.
pub(crate) fn is_gutter(node: &Handle) -> bool {
    has_word(node, is_gutter_word)
}

/// Returns whether a cell contains only numbers, such as line numbers.
fn is_numbers(cell: &Handle) -> bool {
    let text = text_of(cell);
    text.contains(|it: char| it.is_ascii_digit())
        && text.chars().all(|it| it.is_ascii_digit() || it.is_whitespace() || it == '.')
}

/// Returns whether a cell contains code.
pub(crate) fn has_pre(cell: &Handle) -> bool {
    elements(cell).iter().any(|node| is(node, "pre"))
}

/// Returns whether a cell is a gutter of a table that contains code.
pub(crate) fn is_gutter_cell(cell: &Handle) -> bool {
    is_gutter(cell) || is_numbers(cell)
}

/// Returns the language of code, from the classes of highlighters on the element and its ancestors.
pub(crate) fn language(node: &Handle) -> Option<String> {
    let inner = elements(node).into_iter().filter(|inner| is(inner, "code")).take(1);
    let around = ancestors(node).take(6).filter(|above| {
        matches!(name(above), "div" | "figure" | "section" | "table" | "td" | "code")
    });
    inner.chain([node.clone()]).chain(around).find_map(|node| language_of(&node))
}

fn language_of(node: &Handle) -> Option<String> {
    let class = attribute(node, "class")?;
    let mut words = class.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        let language = ["language-", "lang-", "highlight-source-", "brush:"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix));
        let language = match (language, word) {
            (Some(""), _) => words.peek().copied(),
            // Hexo: `<figure class="highlight python">`.
            (None, "highlight") if is(node, "figure") => words.peek().copied(),
            // Sphinx: `<div class="highlight-python notranslate">`.
            (None, word) if is(node, "div") => word.strip_prefix("highlight-"),
            (language, _) => language,
        };
        let language = language.map(|it| it.trim_end_matches(';').to_ascii_lowercase());
        let is_name = |it: &String| {
            (1..=20).contains(&it.len())
                && it.chars().all(|it| it.is_ascii_alphanumeric() || "+#-_.".contains(it))
                && !matches!(
                    &**it,
                    "default" | "none" | "text" | "plain" | "plaintext" | "notranslate"
                )
        };
        if let Some(language) = language.filter(is_name) {
            return Some(language);
        }
    }
    None
}
