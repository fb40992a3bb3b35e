//! Images.
//!
//! `htmd` writes the text of an image as it is in the page, where a `]` would end it and what
//! comes then would be a link, or a line of the document, that the page's author chose.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};

use crate::content::attribute;

/// Writes an image; nothing where it has no source.
pub(crate) fn image(_: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let of = |name| attribute(element.node, name).unwrap_or_default();
    let source = destination(&of("src"));
    if source.is_empty() {
        return Some(String::new().into());
    }
    let alt = escaped(&of("alt"), &SPECIAL);
    let title = match escaped(&of("title"), &['\\', '"']) {
        title if title.is_empty() => title,
        title => format!(" \"{title}\""),
    };
    Some(format!("![{alt}]({source}{title})").into())
}

/// What would make a text of a page a link, code or an element.
pub(crate) const SPECIAL: [char; 5] = ['\\', '[', ']', '`', '<'];

/// The text on one line, with a backslash before each of these characters.
pub(crate) fn escaped(text: &str, special: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !escaped.is_empty() {
            escaped.push(' ');
        }
        for character in word.chars() {
            if special.contains(&character) {
                escaped.push('\\');
            }
            escaped.push(character);
        }
    }
    escaped
}

/// The address, with what would end it percent-encoded.
fn destination(source: &str) -> String {
    let mut destination = String::with_capacity(source.len());
    for character in source.trim().chars() {
        match character {
            // As a browser reads it.
            '\t' | '\n' | '\r' => {}
            '\0'..=' ' | '(' | ')' | '<' | '>' | '\\' | '\x7f' => {
                destination.push_str(&format!("%{:02X}", u32::from(character)));
            }
            _ => destination.push(character),
        }
    }
    destination
}
