//! Links and headings.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::{Handle, NodeData};
use url::Url;

use crate::content::UNJOINED;
use crate::dom::{
    ancestors, append, attribute, element, elements, has_text, is_heading, name, set_attribute,
    take_children, text_of,
};
use crate::image::{SPECIAL, encoded, escaped};

/// URL parameters that track the origin of a visit and do not affect the page.
const TRACKING: [&str; 28] = [
    "fbclid",
    "gclid",
    "gclsrc",
    "dclid",
    "wbraid",
    "gbraid",
    "msclkid",
    "yclid",
    "ysclid",
    "twclid",
    "ttclid",
    "igshid",
    "igsh",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "__hssc",
    "__hstc",
    "__hsfp",
    "hsctatracking",
    "oly_anon_id",
    "oly_enc_id",
    "vero_id",
];

/// Pages that redirect to the address in a parameter: the suffix of the host, the prefix of the
/// path, and the parameter.
const REDIRECTORS: [(&str, &str, &str); 9] = [
    ("google.com", "/url", "q"),
    ("google.com", "/url", "url"),
    ("l.facebook.com", "/l.php", "u"),
    ("lm.facebook.com", "/l.php", "u"),
    ("l.instagram.com", "/", "u"),
    ("duckduckgo.com", "/l/", "uddg"),
    ("youtube.com", "/redirect", "q"),
    ("safelinks.protection.outlook.com", "/", "url"),
    ("linkedin.com", "/redir/", "url"),
];

/// Makes a link absolute, removes tracking parameters, and removes an invalid address.
pub(crate) fn clean(link: &Handle, base: Option<&Url>) {
    let Some(href) = attribute(link, "href") else { return };
    let href = href.trim();
    let begins =
        |scheme: &str| href.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    if href.is_empty() || href == "#" || begins("javascript:") || begins("data:") {
        return set_attribute(link, "href", None);
    }
    let absolute = base.and_then(|base| base.join(href).ok()).map(String::from);
    let href = absolute.as_deref().unwrap_or(href);
    let target = redirected(href);
    set_attribute(link, "href", Some(&without_tracking(target.as_deref().unwrap_or(href))));
}

/// Returns the target of a redirector.
fn redirected(href: &str) -> Option<String> {
    if !REDIRECTORS.iter().any(|(host, ..)| href.contains(host)) {
        return None;
    }
    let url = Url::parse(href).ok()?;
    let host = url.host_str()?;
    REDIRECTORS.iter().find_map(|(name, path, key)| {
        let is_host = host.strip_suffix(name).is_some_and(|it| it.is_empty() || it.ends_with('.'));
        if !is_host || !url.path().starts_with(path) {
            return None;
        }
        let (_, target) = url.query_pairs().find(|(is, _)| is == key)?;
        let target = Url::parse(&target).ok()?;
        matches!(target.scheme(), "http" | "https").then(|| target.into())
    })
}

fn without_tracking(href: &str) -> String {
    let (address, fragment) = match href.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (href, None),
    };
    let Some((path, query)) = address.split_once('?') else { return href.to_owned() };
    let tracks = |parameter: &&str| {
        let key = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
        key.starts_with("utm_") || TRACKING.contains(&&*key)
    };
    if !query.split('&').any(|parameter| tracks(&parameter)) {
        return href.to_owned();
    }
    let kept: Vec<&str> = query.split('&').filter(|parameter| !tracks(parameter)).collect();
    let mut cleaned = path.to_owned();
    for (mark, part) in [('?', kept.join("&")), ('#', fragment.unwrap_or_default().to_owned())] {
        if !part.is_empty() {
            cleaned.push(mark);
            cleaned.push_str(&part);
        }
    }
    cleaned
}

/// Moves a link that contains blocks into their first heading or first text: Markdown has no
/// equivalent.
pub(crate) fn move_into_block(link: &Handle) {
    if attribute(link, "href").is_none() {
        return;
    }
    let is_block = |node: &&Handle| name(node) != "a" && UNJOINED.contains(&name(node));
    let inner = elements(link);
    let mut blocks = inner.iter().filter(is_block).peekable();
    if blocks.peek().is_none() {
        return;
    }
    let heading = inner.iter().find(|node| is_heading(node) && has_text(node));
    let is_last = |node: &&Handle| {
        has_text(node)
            && !elements(node).iter().skip(1).any(|inner| is_block(&inner) && has_text(inner))
    };
    let Some(target) = heading.or_else(|| blocks.find(is_last)) else { return };
    let NodeData::Element { attrs, .. } = &link.data else { return };
    let moved = element("a", attrs.borrow().clone());
    append(&moved, take_children(target));
    append(target, vec![moved]);
    for key in ["href", "title", "aria-label"] {
        set_attribute(link, key, None);
    }
}

/// Writes a link on one line. Returns an empty string if it has no text.
pub(crate) fn link(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let content = handlers.walk_children(element.node).content;
    let of = |key| attribute(element.node, key).filter(|it| !it.trim().is_empty());
    let Some(href) = of("href") else { return Some(content.into()) };
    let text = match content.contains("\n\n") && content.trim().contains("\n\n") {
        // Blocks without text, such as two images.
        true => return Some(content.into()),
        false => one_line(&content),
    };
    if is_permalink(element.node, &href) {
        return Some(String::new().into());
    }
    let label = of("aria-label").or_else(|| of("title")).filter(|_| text.is_empty());
    let text = label.map_or(text, |label| escaped(&label, &SPECIAL));
    if text.is_empty() {
        return Some(content.into());
    }
    let title = of("title").map(|title| escaped(&title, &['\\', '"'])).filter(|it| *it != text);
    let title = title.map_or_else(String::new, |title| format!(" \"{title}\""));
    // Leading and trailing white space stays outside of the link.
    let at = |is_there: bool| if is_there { " " } else { "" };
    let (before, after) = (content.starts_with(' '), content.ends_with([' ', '\n']));
    let target = address(&href);
    Some(format!("{}[{text}]({target}{title}){}", at(before), at(after)).into())
}

/// Returns whether a link is the anchor symbol beside its heading.
fn is_permalink(link: &Handle, href: &str) -> bool {
    href.contains('#')
        && match text_of(link).trim() {
            "¶" | "#" | "§" | "🔗" | "⚓" | "⚓︎" | "∞" | "\u{f0c1}" => true,
            "" => elements(link).len() == 1 && ancestors(link).take(2).any(|it| is_heading(&it)),
            _ => false,
        }
}

/// Escapes unbalanced parentheses in an address, which would end it in Markdown.
fn address(href: &str) -> String {
    let mut depth = 0_i32;
    let are_paired = href.chars().all(|it| {
        depth += i32::from(it == '(') - i32::from(it == ')');
        depth >= 0
    });
    encoded(href, if are_paired && depth == 0 { "" } else { "()" })
}

/// Writes a heading on one line. Returns an empty string if it has no text.
pub(crate) fn heading(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let text = one_line(&handlers.walk_children(element.node).content);
    if text.is_empty() {
        return Some(String::new().into());
    }
    let level =
        element.tag.as_bytes().get(1).map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
    Some(format!("\n\n{} {text}\n\n", "#".repeat(level)).into())
}

fn one_line(content: &str) -> String {
    let lines = content.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Makes the addresses of an image absolute.
pub(crate) fn join_source(image: &Handle, base: Option<&Url>) {
    let Some(source) = attribute(image, "src") else { return };
    if let Some(url) = base.and_then(|base| base.join(source.trim()).ok()) {
        set_attribute(image, "src", Some(url.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::{redirected, without_tracking};

    #[test]
    fn parameters_that_track_readers_are_dropped() {
        let check = |href, expected| assert_eq!(without_tracking(href), expected);
        check("/a?utm_source=x&b=1&UTM_Medium=y#c", "/a?b=1#c");
        check("https://a.test/?fbclid=1", "https://a.test/");
        check("https://a.test/?q=utm_source", "https://a.test/?q=utm_source");
        check("https://a.test/a#?utm_source=x", "https://a.test/a#?utm_source=x");
        check("/a?", "/a?");
    }

    #[test]
    fn redirectors_are_replaced_by_their_target() {
        let check =
            |href, expected: Option<&str>| assert_eq!(redirected(href).as_deref(), expected);
        check(
            "https://www.google.com/url?sa=t&q=https%3A%2F%2Fa.test%2Fb",
            Some("https://a.test/b"),
        );
        check(
            "https://l.facebook.com/l.php?u=https%3A%2F%2Fa.test%2F&h=x",
            Some("https://a.test/"),
        );
        check("https://www.google.com/url?q=javascript:alert(1)", None);
        check("https://evilgoogle.com/url?q=https://a.test/", None);
        check("https://www.google.com/search?q=https://a.test/", None);
    }
}
