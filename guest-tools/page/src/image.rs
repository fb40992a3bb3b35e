//! Images.
//!
//! Real pages load images late: the address is in one of many attributes, in a `source` beside the
//! image or in a `noscript`, while `src` has a placeholder. [`resolve`] reduces each image to one
//! address.
//!
//! `htmd` does not escape the text of an image: a `]` would end it, and the page's author could
//! insert a link or a line into the document.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, QualName, local_name, ns};
use markup5ever_rcdom::Handle;

use crate::dom::{ancestors, attribute, is};

/// Attributes from which scripts take the address of an image, best first.
const LAZY: [&str; 16] = [
    "data-src",
    "data-original",
    "data-lazy-src",
    "data-actualsrc",
    "data-original-src",
    "data-hi-res-src",
    "data-full-src",
    "data-lazy",
    "data-image",
    "data-img",
    "data-url",
    "data-echo",
    "data-li-src",
    "data-img-src",
    "data-image-src",
    "data-lazyload",
];

/// Attributes with a list of addresses, best first.
const SETS: [&str; 4] = ["data-srcset", "data-lazy-srcset", "data-original-set", "srcset"];

/// Maximum width of an image from a list, in pixels, if there is a choice.
const WIDE: f64 = 1600.0;

/// Maximum length of an image's address, in bytes.
const MOST_BYTES: usize = 8 << 10;

/// Reduces an `img` or a `source` to its best address, as `src`. Returns false for a tracking
/// pixel.
pub(crate) fn resolve(attributes: &mut Vec<Attribute>) -> bool {
    let of = |key: &str| {
        let found = attributes.iter().find(|it| &*it.name.local == key);
        found.map(|it| it.value.trim()).filter(|it| !it.is_empty())
    };
    let is_dot = |key| of(key).is_some_and(|it| matches!(it.trim_end_matches("px"), "0" | "1"));
    if is_dot("width") && is_dot("height") {
        return false;
    }
    let source = of("src").filter(|it| is_address(it));
    let lazy = LAZY.iter().find_map(|key| of(key).filter(|it| is_address(it)));
    let other = || {
        let mut data = attributes.iter().filter(|it| it.name.local.starts_with("data-"));
        data.find(|it| has_extension(it.value.trim())).map(|it| it.value.trim())
    };
    let set = || SETS.iter().find_map(|key| of(key).and_then(best_of));
    let shown = source.filter(|it| !is_placeholder(it));
    let best = lazy.or(shown).or_else(set).or_else(other).or(source);
    let best = best.map(StrTendril::from);
    attributes.retain(|it| &*it.name.local != "src");
    if let Some(value) = best {
        let name = QualName::new(None, ns!(), local_name!("src"));
        attributes.push(Attribute { name, value });
    }
    true
}

/// Returns whether a value may be the address of an image. An image embedded in the page has no
/// address.
fn is_address(value: &str) -> bool {
    let is_inline = value.get(..5).is_some_and(|it| it.eq_ignore_ascii_case("data:"));
    !is_inline
        && value.len() <= MOST_BYTES
        && !value.starts_with(['{', '[', '#'])
        && value.contains(['/', '.'])
}

/// Returns whether a URL has the extension of an image.
fn has_extension(value: &str) -> bool {
    let path = value.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    is_address(value)
        && !value.contains(char::is_whitespace)
        && [".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif", ".svg"]
            .iter()
            .any(|end| path.ends_with(end))
}

/// Returns whether a URL refers to a placeholder image.
fn is_placeholder(address: &str) -> bool {
    let name = address.split(['?', '#']).next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    ["placeholder", "blank.", "spacer", "transparent", "lazyload", "loading.", "1x1", "pixel."]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns the best address of a `srcset`: the widest up to the limit, otherwise the narrowest.
fn best_of(set: &str) -> Option<&str> {
    let mut best: Option<(f64, &str)> = None;
    let mut rest = set.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (address, after) = rest.split_at(end);
        // An address may contain commas, but does not end with one.
        let (address, descriptor, next) = match address.strip_suffix(',') {
            Some(address) => (address, "", after),
            None => {
                let end = after.find(',').unwrap_or(after.len());
                (address, after[..end].trim(), &after[end..])
            }
        };
        // A density of 1 is about as wide as a page.
        let number = descriptor.get(..descriptor.len().saturating_sub(1)).unwrap_or_default();
        let number: f64 = number.parse().unwrap_or(1.0);
        let width = if descriptor.ends_with('w') { number } else { number * WIDE / 2.0 };
        let is_better = |(other, _): (f64, &str)| match (width <= WIDE, other <= WIDE) {
            (true, true) => width > other,
            (false, false) => width < other,
            (is_fine, _) => is_fine,
        };
        if is_address(address) && best.is_none_or(is_better) {
            best = Some((width, address));
        }
        rest = next.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
    }
    best.map(|(_, address)| address)
}

/// Returns whether an image has an address that is not a placeholder.
pub(crate) fn has_address(image: &Handle) -> bool {
    attribute(image, "src").is_some_and(|it| !it.trim().is_empty() && !is_placeholder(&it))
}

/// Returns whether an image is visible content and not a tracking pixel.
pub(crate) fn is_content(image: &Handle) -> bool {
    let source = attribute(image, "src").unwrap_or_default();
    has_extension(source.trim()) || attribute(image, "alt").is_some_and(|it| !it.trim().is_empty())
}

/// Copies the address of a `source` of its `picture` to an image without an address.
pub(crate) fn take_source(image: &Handle) {
    if has_address(image) {
        return;
    }
    let Some(picture) = ancestors(image).take(3).find(|above| is(above, "picture")) else { return };
    let sources = picture.children.borrow();
    let source = sources.iter().filter(|it| is(it, "source")).find_map(|it| attribute(it, "src"));
    if let Some(source) = source {
        crate::dom::set_attribute(image, "src", Some(&source));
    }
}

/// Writes an image with its address, or only its text if it has none.
pub(crate) fn image(_: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let of = |name| attribute(element.node, name).unwrap_or_default();
    let alt = escaped(&of("alt"), &SPECIAL);
    let source = destination(&of("src"));
    if source.is_empty() {
        return Some(if alt.is_empty() { String::new() } else { format!("![{alt}]()") }.into());
    }
    let title = match escaped(&of("title"), &['\\', '"']) {
        title if title.is_empty() => title,
        title => format!(" \"{title}\""),
    };
    Some(format!("![{alt}]({source}{title})").into())
}

/// Characters that would turn a page's text into a link, code or an element.
pub(crate) const SPECIAL: [char; 5] = ['\\', '[', ']', '`', '<'];

/// Returns the text on one line, with a backslash before each of these characters.
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

/// Returns the address with characters percent-encoded that would end it.
pub(crate) fn destination(source: &str) -> String {
    encoded(source, "()")
}

/// Returns the address with these characters, and all others that would end it, percent-encoded.
pub(crate) fn encoded(source: &str, special: &str) -> String {
    let mut encoded = String::with_capacity(source.len());
    for character in source.trim().chars() {
        match character {
            // Removed, as in browsers.
            '\t' | '\n' | '\r' => {}
            '\0'..=' ' | '<' | '>' | '\\' | '\x7f' => {
                encoded.push_str(&format!("%{:02X}", u32::from(character)));
            }
            _ if special.contains(character) => {
                encoded.push_str(&format!("%{:02X}", u32::from(character)));
            }
            _ => encoded.push(character),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::best_of;

    #[test]
    fn the_widest_image_within_the_limit_is_used() {
        let check = |set, expected| assert_eq!(best_of(set), expected, "{set}");
        check("a.png", Some("a.png"));
        check("a.png 1x, b.png 2x, c.png 3x", Some("b.png"));
        check("a.png 320w, b.png 1280w, c.png 4000w", Some("b.png"));
        check("c.png 4000w,b.png 2000w", Some("b.png"));
        check("/w_300,c_fill/a.png 300w, /w_600,c_fill/a.png 600w", Some("/w_600,c_fill/a.png"));
        check("a.png, b.png 2x", Some("b.png"));
        check("data:image/gif;base64,R0lG 1x, b.png 2x", Some("b.png"));
        check(" , ,", None);
        check("", None);
        check("é", None);
    }
}
