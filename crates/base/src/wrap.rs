//! Line wrapping for terminals.

/// The prefix of third-party lines and of the rows that continue them.
const BAR: &str = "| ";

/// The prefix of rows that continue other lines.
const INDENT: &str = "    ";

/// The minimum assumed terminal width.
const FEWEST_COLUMNS: usize = 20;

/// Breaks a line into rows of at most `columns` columns.
///
/// Rows that continue a line behind a bar begin with a bar. Rows that continue other lines are
/// indented and begin with a word. Otherwise a long line could place its text at the start of a
/// row, where a person expects a line of kitbag.
pub fn rows(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(FEWEST_COLUMNS);
    let continuation = if line.starts_with(BAR) { BAR } else { INDENT };
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let width = width(c);
        if used + width > columns {
            // The last word moves to the next row unless it is long.
            let word = row.rfind(' ').map_or(row.len(), |at| at + 1);
            let is_short = continuation == INDENT && word > columns / 2;
            let rest = row.split_off(if is_short { word } else { row.len() });
            rows.push(std::mem::replace(&mut row, format!("{continuation}{rest}")));
            used = row.chars().map(self::width).sum();
        }
        row.push(c);
        used += width;
    }
    rows.push(row);
    rows
}

/// Breaks each line of a text into [`rows`].
pub fn wrapped(text: &str, columns: usize) -> String {
    let lines = text.split('\n').map(|line| rows(line, columns).join("\n"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the most columns that a character may take. Terminals differ in the width of non-ASCII
/// characters.
fn width(c: char) -> usize {
    match c {
        '\t' => 8,
        _ if c.is_ascii() => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_rows_have_a_bar() {
        let evil = format!("| {}Worst: none", " ".repeat(38));
        assert_eq!(rows(&evil, 40), [format!("| {}", " ".repeat(38)), "| Worst: none".to_owned()]);
        assert_eq!(rows(&evil, 100), [&*evil]);
        for (start, continuation) in [("| ", "| "), ("`lab` asks: ", "    ")] {
            let long = format!("{start}{}", "x".repeat(1000));
            for columns in [40, 100] {
                let rows = rows(&long, columns);
                assert!(rows[1..].iter().all(|row| row.starts_with(continuation)), "{rows:?}");
                assert!(rows.iter().all(|row| row.len() <= columns), "{rows:?}");
                let own = |row: &String| row.matches('x').count();
                assert_eq!(rows.iter().map(own).sum::<usize>(), 1000);
            }
        }
        let words = "tool `a` reads files and directories";
        assert_eq!(rows(words, 20), ["tool `a` reads ", "    files and ", "    directories"]);
    }

    #[test]
    fn wide_characters_and_tabs_fit() {
        assert_eq!(rows(&"語".repeat(11), 20), ["語".repeat(10), "    語".to_owned()]);
        assert_eq!(rows(&"\t".repeat(3), 20), ["\t\t", "    \t"]);
    }

    #[test]
    fn short_lines_and_line_endings_are_kept() {
        assert_eq!(wrapped("", 20), "");
        assert_eq!(wrapped("a\n\nb\n", 20), "a\n\nb\n");
        assert_eq!(rows("", 20), [""]);
        assert_eq!(rows(&"x".repeat(20), 20), ["x".repeat(20)]);
    }
}
