//! Tables.
//!
//! `htmd` pads the columns, leaves out the heading of a row and takes a table without headings
//! apart; padding costs tokens, and memory where one cell is long.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::{Handle, NodeData};

use crate::content::{ancestors, attribute, is};

/// The most columns of a table, however wide its cells say that they are.
const MOST_COLUMNS: usize = 50;

/// Writes a table. What lies in a cell, holds another table or has one column without a heading
/// is there for its looks: its cells are written one after the other.
pub(crate) fn table(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let is_in_cell = ancestors(element.node).any(|above| is(&above, "td") || is(&above, "th"));
    let parts = parts(element.node);
    let columns = parts.rows.iter().map(|row| width(row)).max().unwrap_or(0).min(MOST_COLUMNS);
    let least = if parts.has_headings { 1 } else { 2 };
    let is_layout = attribute(element.node, "role").as_deref() == Some("presentation");
    if is_in_cell || is_layout || columns < least || parts.has_table {
        let content = handlers.walk_children(element.node).content;
        return Some(format!("\n\n{}\n\n", content.trim_matches('\n')).into());
    }
    let mut markdown = String::from("\n\n");
    for caption in &parts.captions {
        let caption = handlers.walk_children(caption).content;
        markdown.push_str(&format!("{}\n\n", caption.trim()));
    }
    let mut rows = parts.rows.iter();
    // Markdown has no table without headings: they are empty then.
    let first = match parts.has_headings {
        true => rows.next(),
        false => None,
    };
    write_row(&mut markdown, handlers, first.map_or(&[], Vec::as_slice), columns);
    markdown.push_str(&format!("|{}\n", " --- |".repeat(columns)));
    for row in rows {
        write_row(&mut markdown, handlers, row, columns);
    }
    markdown.push('\n');
    Some(markdown.into())
}

/// What a table is made of.
struct Parts {
    captions: Vec<Handle>,
    /// The cells of each row.
    rows: Vec<Vec<Handle>>,
    /// Whether the first row has the headings of the columns.
    has_headings: bool,
    /// Whether a table lies in it.
    has_table: bool,
}

fn parts(table: &Handle) -> Parts {
    let mut parts =
        Parts { captions: Vec::new(), rows: Vec::new(), has_headings: false, has_table: false };
    let mut open: Vec<(Handle, bool)> = vec![(table.clone(), false)];
    while let Some((node, is_head)) = open.pop() {
        let children = node.children.borrow();
        if is(&node, "tr") {
            let is_cell = |node: &&Handle| is(node, "td") || is(node, "th");
            let cells: Vec<Handle> = children.iter().filter(is_cell).cloned().collect();
            if parts.rows.is_empty() {
                parts.has_headings =
                    !cells.is_empty() && (is_head || cells.iter().all(|cell| is(cell, "th")));
            }
            if !cells.is_empty() {
                parts.rows.push(cells);
            }
            parts.has_table |= children.iter().any(has_table);
            continue;
        }
        parts.captions.extend(children.iter().filter(|it| is(it, "caption")).cloned());
        let inner = children.iter().rev().filter(|node| {
            matches!(&node.data, NodeData::Element { name, .. }
                if matches!(&*name.local, "thead" | "tbody" | "tfoot" | "tr"))
        });
        open.extend(inner.map(|inner| (inner.clone(), is_head || is(inner, "thead"))));
    }
    parts
}

fn has_table(node: &Handle) -> bool {
    let mut open = vec![node.clone()];
    while let Some(node) = open.pop() {
        if is(&node, "table") {
            return true;
        }
        open.extend(node.children.borrow().iter().cloned());
    }
    false
}

/// How many columns a cell takes.
fn span(cell: &Handle) -> usize {
    let span = attribute(cell, "colspan").and_then(|span| span.trim().parse().ok());
    span.unwrap_or(1).clamp(1, MOST_COLUMNS)
}

fn width(row: &[Handle]) -> usize {
    row.iter().map(span).sum()
}

fn write_row(markdown: &mut String, handlers: &dyn Handlers, row: &[Handle], columns: usize) {
    markdown.push('|');
    let mut written = 0;
    for cell in row {
        if written == columns {
            break;
        }
        let content = handlers.walk_children(cell).content;
        let words: Vec<&str> = content.split_whitespace().collect();
        let content = words.join(" ").replace('|', "\\|");
        markdown.push_str(if content.is_empty() { "" } else { " " });
        markdown.push_str(&content);
        markdown.push_str(" |");
        // A cell over several columns stands in the first.
        let empty = (span(cell) - 1).min(columns - written - 1);
        markdown.push_str(&" |".repeat(empty));
        written += 1 + empty;
    }
    // A row may have fewer cells than there are columns; headings may not.
    if row.is_empty() {
        markdown.push_str(&" |".repeat(columns));
    }
    markdown.push('\n');
}
