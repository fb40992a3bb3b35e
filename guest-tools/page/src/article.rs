//! Finds the article in a page that does not mark it, by the positions of its running text.
//!
//! Only pages with running text are narrowed: an index, search results or a short page keep
//! everything.

use std::collections::HashSet;
use std::rc::Rc;

use markup5ever_rcdom::{Handle, NodeData};

use crate::content::UNJOINED;
use crate::dom::{attribute, has_word, is, name};

/// The minimum number of characters outside links in a block of running text.
const PROSE: u32 = 80;

/// The minimum number of characters of running text in an article.
const ARTICLE: u32 = 600;

/// Larger pages are not reduced to their article, because of the memory.
const MOST_NODES: usize = 200_000;

/// Parts of a class or an id that name elements around an article.
const EXTRAS: [&str; 26] = [
    "related",
    "recommend",
    "newsletter",
    "outbrain",
    "taboola",
    "sponsor",
    "promo",
    "social",
    "sharing",
    "sharebar",
    "share-",
    "-share",
    "share_",
    "_share",
    "trending",
    "most-read",
    "mostread",
    "most-popular",
    "mostpopular",
    "sidebar",
    "footer",
    "masthead",
    "advert",
    "adsense",
    "breadcrumb",
    "subscribe",
];

/// Names of comment sections.
const COMMENTS: [&str; 6] = [
    "comments",
    "comment-list",
    "commentlist",
    "disqus_thread",
    "comments-area",
    "comments-section",
];

/// A node of a page with the length of the text below it, in characters.
struct Weighed {
    node: Handle,
    parent: u32,
    /// The nearest enclosing block.
    block: u32,
    is_in_link: bool,
    text: u32,
    link: u32,
    links: u32,
    prose: u32,
    /// The number of paragraphs of running text that are direct children.
    paragraphs: u32,
    /// The number of blocks of running text, including itself.
    blocks: u32,
}

/// Removes the elements around the article of a page.
pub(crate) fn narrow(root: &Handle) {
    let Some(nodes) = weigh(root) else { return };
    let all = nodes[0].prose;
    if all < ARTICLE {
        return;
    }
    let mut dropped = HashSet::new();
    let path = path(&nodes);
    let article = path.last().copied();
    let path: HashSet<u32> = path.into_iter().collect();
    for (index, weighed) in nodes.iter().enumerate().skip(1) {
        if path.contains(&(index as u32)) || !is_box(&weighed.node) {
            continue;
        }
        let is_beside = path.contains(&weighed.parent) && Some(weighed.parent) != article;
        let parent = &nodes[weighed.parent as usize];
        if (is_beside && !is_part(weighed, &nodes, index)) || is_extra(weighed, parent, all) {
            dropped.insert(Rc::as_ptr(&weighed.node));
        }
    }
    for weighed in &nodes {
        let is_kept = |child: &Handle| !dropped.contains(&Rc::as_ptr(child));
        weighed.node.children.borrow_mut().retain(is_kept);
    }
}

/// Returns whether an element may hold a section of a page, not only part of its text.
fn is_box(node: &Handle) -> bool {
    matches!(
        name(node),
        "div"
            | "section"
            | "ul"
            | "ol"
            | "dl"
            | "table"
            | "tr"
            | "td"
            | "form"
            | "aside"
            | "article"
            | "center"
    )
}

fn is_block(node: &Handle) -> bool {
    name(node) != "a" && UNJOINED.contains(&name(node))
}

/// Returns the number of characters other than white space. A Chinese, Japanese or Korean character
/// has the weight of three.
fn width(text: &str) -> u32 {
    let width = |it: char| if it >= '\u{2e80}' { 3 } else { 1 };
    text.chars().filter(|it| !it.is_whitespace()).map(width).sum()
}

/// Returns all nodes in document order, each with the weight of its content.
fn weigh(root: &Handle) -> Option<Vec<Weighed>> {
    let mut nodes: Vec<Weighed> = Vec::new();
    let mut open = vec![(root.clone(), 0)];
    while let Some((node, parent)) = open.pop() {
        if nodes.len() == MOST_NODES {
            return None;
        }
        let index = nodes.len() as u32;
        let above = nodes.get(parent as usize);
        // A link within the page is part of the text.
        let is_link = is(&node, "a")
            && attribute(&node, "href").is_some_and(|href| !href.trim_start().starts_with('#'));
        let is_in_link = is_link || above.is_some_and(|above| above.is_in_link);
        let block = above.filter(|_| !is_block(&node)).map_or(index, |above| above.block);
        let count = match &node.data {
            NodeData::Text { contents } => width(&contents.borrow()),
            _ => 0,
        };
        open.extend(node.children.borrow().iter().rev().map(|child| (child.clone(), index)));
        nodes.push(Weighed {
            node,
            parent,
            block,
            is_in_link,
            text: count,
            link: if is_in_link { count } else { 0 },
            links: u32::from(is_link),
            prose: 0,
            paragraphs: 0,
            blocks: 0,
        });
    }
    // The text of each block without the text of nested blocks.
    let mut own = vec![(0_u32, 0_u32); nodes.len()];
    for weighed in &nodes {
        let (text, link) = &mut own[weighed.block as usize];
        *text += weighed.text;
        *link += weighed.link;
    }
    for (weighed, (text, link)) in nodes.iter_mut().zip(own) {
        if text - link >= PROSE && link * 2 < text {
            weighed.prose = text - link;
            weighed.blocks = 1;
        }
    }
    for index in (1..nodes.len()).rev() {
        let Weighed { ref node, parent, text, link, links, prose, blocks, .. } = nodes[index];
        let is_paragraph = prose > 0 && matches!(name(node), "p" | "pre" | "blockquote");
        let above = &mut nodes[parent as usize];
        above.text += text;
        above.link += link;
        above.links += links;
        above.prose += prose;
        above.blocks += blocks;
        above.paragraphs += u32::from(is_paragraph);
    }
    Some(nodes)
}

/// Returns the elements from the root down to the one with nearly all running text.
fn path(nodes: &[Weighed]) -> Vec<u32> {
    let most = nodes[0].prose;
    let mut path = vec![0];
    for (index, weighed) in nodes.iter().enumerate().skip(1) {
        let is_container = matches!(
            name(&weighed.node),
            "div"
                | "section"
                | "article"
                | "main"
                | "table"
                | "tbody"
                | "tr"
                | "td"
                | "center"
                | "form"
                | "font"
                | "span"
        );
        // Nodes are in document order, so a child follows its parent.
        if path.last() == Some(&weighed.parent)
            && is_container
            && u64::from(weighed.prose) * 10 >= u64::from(most) * 9
        {
            path.push(index as u32);
        }
    }
    // A cell with several blocks of text is used for layout, all others are data.
    let name_of = |index: &u32| name(&nodes[*index as usize].node);
    let is_data = |at: &usize| {
        let cell = path[*at..].iter().find(|index| name_of(index) == "td");
        cell.is_none_or(|cell| nodes[*cell as usize].blocks < 3)
    };
    let tables = (0..path.len()).filter(|at| name_of(&path[*at]) == "table");
    let end = tables.into_iter().find(is_data);
    path.truncate(end.unwrap_or(path.len()));
    path
}

/// Returns whether a box beside the article belongs to it, because it has running text or the
/// title.
fn is_part(weighed: &Weighed, nodes: &[Weighed], index: usize) -> bool {
    let is_below = |it: &&Weighed| it.parent as usize >= index;
    let has_title = || {
        weighed.text < ARTICLE
            && nodes[index + 1..].iter().take_while(is_below).take(200).any(|it| is(&it.node, "h1"))
    };
    (weighed.prose > 0 && weighed.link * 3 < weighed.text) || has_title()
}

/// Returns whether an element in an article is not part of it: links to other pages, or comments.
fn is_extra(weighed: &Weighed, parent: &Weighed, all: u32) -> bool {
    let node = &weighed.node;
    // A part of a table is not a section of a page.
    if matches!(name(node), "tr" | "td") {
        return false;
    }
    let is_list = matches!(name(node), "ul" | "ol" | "dl" | "table");
    // A list between paragraphs is part of the text.
    let is_in_text = is_list && parent.paragraphs > 0;
    let is_links = weighed.prose == 0
        && weighed.links >= 3
        && weighed.link * 5 > weighed.text * 3
        && !is_in_text;
    is_links
        || (weighed.prose * 5 < all
            && has_word(node, |word| EXTRAS.iter().any(|extra| word.contains(extra))))
        || (weighed.prose * 2 < all && has_word(node, |word| COMMENTS.contains(&word)))
}
