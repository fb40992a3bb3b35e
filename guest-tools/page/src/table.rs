//! Tables.
//!
//! `htmd` pads the columns, drops row headings and cells that span rows, and splits up a table
//! without headings. Padding costs tokens, and memory if one cell is long.

use std::rc::Rc;

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::Handle;

use crate::code;
use crate::dom::{ancestors, attribute, is, name};

/// Maximum number of columns of a table, regardless of `colspan`.
const MOST_COLUMNS: usize = 50;

/// Maximum number of rows that a cell spans, as in browsers.
const MOST_ROWS: usize = 65_534;

/// Maximum number of bytes of cells with a row span that are repeated in a table.
const MOST_REPEATED: usize = 64 << 10;

/// Maximum length of a heading that is repeated for each of its columns, in bytes.
const SHORT: usize = 200;

/// Writes a table. A table that is nested, contains another table or has one column without a
/// heading is used for layout: its cells are written in order. A table with preformatted text is
/// code with line numbers or remarks.
pub(crate) fn table(handlers: &dyn Handlers, element: Element) -> Option<HandlerResult> {
    let node = element.node;
    let parts = parts(node);
    if let Some(code) = lines_of_code(node, &parts) {
        return Some(code.into());
    }
    let has_code = parts.rows.iter().flat_map(|row| &row.cells).any(code::has_pre);
    if has_code {
        drop_gutters(&parts);
    }
    let is_in_cell = ancestors(node).any(|above| is(&above, "td") || is(&above, "th"));
    let columns = columns(&parts.rows);
    let least = if parts.headings > 0 { 1 } else { 2 };
    let is_layout = attribute(node, "role").as_deref() == Some("presentation");
    if is_in_cell || is_layout || has_code || columns < least || parts.has_table {
        let content = handlers.walk_children(node).content;
        return Some(format!("\n\n{}\n\n", content.trim_matches('\n')).into());
    }
    let mut markdown = String::from("\n\n");
    for caption in &parts.captions {
        let caption = handlers.walk_children(caption).content;
        markdown.push_str(&format!("{}\n\n", caption.trim()));
    }
    let mut grid = Grid::new(columns);
    // Markdown requires headings, so missing headings are empty.
    let (headings, rows) = parts.rows.split_at(parts.headings);
    let headings: Vec<Vec<Cell>> = headings.iter().map(|row| grid.row(handlers, row)).collect();
    write_row(&mut markdown, &joined(&headings, columns), columns);
    markdown.push_str(&format!("|{}\n", " --- |".repeat(columns)));
    for row in rows {
        let cells = grid.row(handlers, row);
        if !row.cells.is_empty() {
            write_row(&mut markdown, &cells, cells.len());
        }
    }
    markdown.push('\n');
    Some(markdown.into())
}

/// The parts of a table.
struct Parts {
    captions: Vec<Handle>,
    rows: Vec<Row>,
    /// The number of first rows that are column headings.
    headings: usize,
    /// True if it contains a table.
    has_table: bool,
}

/// A row.
struct Row {
    cells: Vec<Handle>,
    /// The number of its `thead`, `tbody` or `tfoot`, which limits the row span of its cells.
    group: usize,
    is_heading: bool,
}

fn parts(table: &Handle) -> Parts {
    let mut parts = Parts { captions: Vec::new(), rows: Vec::new(), headings: 0, has_table: false };
    let mut groups = 0;
    let mut open: Vec<(Handle, usize, bool)> = vec![(table.clone(), 0, false)];
    while let Some((node, group, is_head)) = open.pop() {
        let children = node.children.borrow();
        if is(&node, "tr") {
            let is_cell = |node: &&Handle| is(node, "td") || is(node, "th");
            let cells: Vec<Handle> = children.iter().filter(is_cell).cloned().collect();
            let is_heading = is_head || cells.iter().all(|cell| is(cell, "th"));
            parts.has_table |= children.iter().any(has_table);
            parts.rows.push(Row { cells, group, is_heading });
            continue;
        }
        parts.captions.extend(children.iter().filter(|it| is(it, "caption")).cloned());
        let inner = children
            .iter()
            .rev()
            .filter(|node| matches!(name(node), "thead" | "tbody" | "tfoot" | "tr"));
        for inner in inner {
            groups += 1;
            let group = if is(inner, "tr") { group } else { groups };
            open.push((inner.clone(), group, is_head || is(inner, "thead")));
        }
    }
    // Leading rows without cells have no content.
    let first = parts.rows.iter().position(|row| !row.cells.is_empty());
    parts.rows.drain(..first.unwrap_or(parts.rows.len()));
    let headings = parts.rows.iter().take_while(|row| row.is_heading).count();
    // A table of headings only has one heading row.
    parts.headings = if headings == parts.rows.len() { headings.min(1) } else { headings };
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

/// Returns a table whose rows are numbered lines of code as a code block.
fn lines_of_code(table: &Handle, parts: &Parts) -> Option<String> {
    let is_line = |row: &Row| {
        row.cells.iter().any(code::is_gutter)
            && !row.cells.iter().all(code::is_gutter)
            && !row.cells.iter().any(code::has_pre)
    };
    let is_code = !parts.rows.is_empty() && !parts.has_table && parts.rows.iter().all(is_line);
    is_code.then(|| {
        let lines: Vec<String> = parts
            .rows
            .iter()
            .map(|row| {
                let cells = row.cells.iter().filter(|cell| !code::is_gutter(cell));
                cells.map(code::text).collect::<String>().trim_matches('\n').to_owned()
            })
            .collect();
        code::block(&lines.join("\n"), code::language(table).as_deref())
    })
}

/// Removes the content of cells with line numbers beside code.
fn drop_gutters(parts: &Parts) {
    for row in &parts.rows {
        if row.cells.iter().any(|cell| !code::is_gutter_cell(cell)) {
            for gutter in row.cells.iter().filter(|cell| code::is_gutter_cell(cell)) {
                gutter.children.borrow_mut().clear();
            }
        }
    }
}

/// Returns the number of columns or rows that a cell spans.
fn span(cell: &Handle, key: &str, most: usize) -> usize {
    let span = attribute(cell, key).and_then(|span| span.trim().parse().ok());
    span.unwrap_or(1).min(most)
}

/// Returns the number of columns of a table.
fn columns(rows: &[Row]) -> usize {
    let mut spans = Spans::default();
    rows.iter().map(|row| spans.place(row).len()).max().unwrap_or(0)
}

/// The columns of the next rows that are covered by cells of previous rows.
#[derive(Default)]
struct Spans {
    /// The number of further rows that each column is occupied.
    left: Vec<usize>,
    group: usize,
}

/// The content of one column of a row.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    /// A cell with this number starts.
    Cell(usize),
    /// The previous cell extends to this column.
    Reached,
    /// A cell of a previous row extends to this row.
    Spanned,
}

impl Spans {
    /// Returns the columns of the next row.
    fn place(&mut self, row: &Row) -> Vec<Slot> {
        if row.group != self.group {
            self.left.clear();
            self.group = row.group;
        }
        let mut slots = Vec::new();
        let take_spanned = |left: &mut Vec<usize>, slots: &mut Vec<Slot>| {
            while let Some(left) = left.get_mut(slots.len()).filter(|left| **left > 0) {
                *left -= 1;
                slots.push(Slot::Spanned);
            }
        };
        for (index, cell) in row.cells.iter().enumerate() {
            take_spanned(&mut self.left, &mut slots);
            // 0 means up to the end of the row group.
            let rows = match span(cell, "rowspan", MOST_ROWS) {
                0 => MOST_ROWS,
                rows => rows,
            };
            for column in 0..span(cell, "colspan", MOST_COLUMNS).max(1) {
                if slots.len() == MOST_COLUMNS {
                    break;
                }
                if self.left.len() <= slots.len() {
                    self.left.resize(slots.len() + 1, 0);
                }
                self.left[slots.len()] = rows - 1;
                slots.push(if column == 0 { Slot::Cell(index) } else { Slot::Reached });
            }
        }
        take_spanned(&mut self.left, &mut slots);
        // Covered columns after a gap.
        for left in self.left.iter_mut().skip(slots.len()) {
            *left = left.saturating_sub(1);
        }
        slots
    }
}

/// The text in a column of a row.
#[derive(Clone)]
struct Cell {
    text: Rc<str>,
    /// True if the cell starts in a previous column.
    is_reached: bool,
}

/// The written rows of a table.
struct Grid {
    spans: Spans,
    /// The cell that was last written in each column.
    above: Vec<Cell>,
    /// The number of repeated bytes.
    repeated: usize,
}

impl Grid {
    fn new(columns: usize) -> Self {
        let empty = Cell { text: "".into(), is_reached: false };
        Self { spans: Spans::default(), above: vec![empty; columns], repeated: 0 }
    }

    /// Returns the next row.
    fn row(&mut self, handlers: &dyn Handlers, row: &Row) -> Vec<Cell> {
        let slots = self.spans.place(row);
        for (column, slot) in slots.iter().enumerate() {
            match slot {
                Slot::Cell(index) => {
                    let content = handlers.walk_children(&row.cells[*index]).content;
                    let words: Vec<&str> = content.split_whitespace().collect();
                    let text = words.join(" ").replace('|', "\\|").into();
                    self.above[column] = Cell { text, is_reached: false };
                }
                Slot::Reached => {
                    let text = self.above[column - 1].text.clone();
                    self.above[column] = Cell { text, is_reached: true };
                }
                Slot::Spanned => {
                    let cell = &mut self.above[column];
                    self.repeated += cell.text.len();
                    if self.repeated > MOST_REPEATED {
                        cell.text = "".into();
                    }
                }
            }
        }
        self.above[..slots.len()].to_vec()
    }
}

/// Merges heading rows: each column has the text of all its cells in order.
fn joined(headings: &[Vec<Cell>], columns: usize) -> Vec<Cell> {
    if let [only] = headings {
        return only.clone();
    }
    let of_column = |column: usize| {
        let mut texts: Vec<&str> = Vec::new();
        let cells = headings.iter().filter_map(|row| row.get(column));
        for text in
            cells.filter(|cell| !cell.is_reached || cell.text.len() <= SHORT).map(|it| &*it.text)
        {
            if !text.is_empty() && texts.last() != Some(&text) {
                texts.push(text);
            }
        }
        Cell { text: texts.join(" / ").into(), is_reached: false }
    };
    (0..columns).map(of_column).collect()
}

/// Writes a row with empty cells up to a number of columns. A cell that spans columns is written in
/// the first.
fn write_row(markdown: &mut String, cells: &[Cell], columns: usize) {
    markdown.push('|');
    for column in 0..columns {
        match cells.get(column).filter(|cell| !cell.is_reached && !cell.text.is_empty()) {
            Some(cell) => {
                markdown.push(' ');
                markdown.push_str(&cell.text);
                markdown.push_str(" |");
            }
            None => markdown.push_str(" |"),
        }
    }
    markdown.push('\n');
}
