//! The text of a request for consent, complete or truncated to a screen.

use kitbag_base::text::printable;
use kitbag_base::wrap;

use super::{Attachment, Consent, RequestChange, RequestItem};

/// The size of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// The number of lines. Default 24.
    pub lines: usize,
    /// The number of columns. Default 80.
    pub columns: usize,
    /// True if longer lines are broken into rows. Each further row is marked as a continuation.
    /// Default true. False for data in a file or a pipe, which keeps its lines.
    pub is_wrapped: bool,
}

impl Default for ScreenSize {
    fn default() -> Self {
        Self { lines: 24, columns: 80, is_wrapped: true }
    }
}

/// The maximum number of rows for one line of third-party text or one request.
const MOST_ROWS: usize = 2;

/// Lines under a title, which are shown or truncated together.
struct Section {
    title: String,
    lines: Vec<String>,
    /// The number of lines at the beginning that are never truncated, which are new requests.
    kept: usize,
    /// True if the lines can contain commands to paste, which are not broken into rows.
    has_commands: bool,
}

impl Consent {
    /// Returns the complete text. Only the columns and the wrapping of `size` are used.
    pub fn all(&self, size: ScreenSize) -> String {
        let mut lines = size.rows(&self.heading);
        for part in &self.parts {
            let content = if part.full.is_empty() { &part.short } else { &part.full };
            lines.extend(part.section(content, None).into_rows(size));
        }
        lines.extend(self.listed(|_| true, None, false).into_rows(size));
        lines.extend(self.risks(None).into_rows(size));
        lines.push(String::new());
        lines.extend(self.summary().iter().flat_map(|line| size.rows(line)));
        text(&lines)
    }

    /// Returns the text truncated to the screen. The most important lines are last and are kept.
    /// New requests are shown even if they are longer than the screen.
    pub fn screen(&self, size: ScreenSize) -> String {
        let bound = Some(size.bound());
        let clipped = |line: &String| clip(line, bound);
        let heading = clipped(&self.heading);
        let summary: Vec<_> = self.summary().iter().map(clipped).collect();
        let rows = |lines: &[String]| lines.iter().map(|line| height(line, size)).sum::<usize>();
        let fixed = height(&heading, size) + 1 + rows(&summary);
        let left = size.lines.saturating_sub(fixed);
        let risks = self.risks(bound);
        let is_plain =
            |item: &RequestItem| item.risks.is_empty() || item.change == RequestChange::Removed;
        let requests = self.listed(is_plain, bound, false);
        let parts: Vec<_> =
            self.parts.iter().map(|part| part.section(&part.short, bound)).collect();
        let need = |section: &Section| match section.lines.is_empty() {
            true => 0,
            false => height(&section.title, size) + rows(&section.lines),
        };
        let (need_risks, need_requests) = (need(&risks), need(&requests));
        let need_parts: usize = parts.iter().map(need).sum();
        let share = |left: usize, later: usize| (left * 3 / 5).max(left.saturating_sub(later));
        let (least_risks, least_requests) = (risks.least_rows(size), requests.least_rows(size));
        let (more_risks, more_requests) =
            (need_risks - least_risks, need_requests - least_requests);
        let mut left = left.saturating_sub(least_risks + least_requests);
        let risk_rows = more_risks.min(share(left, more_requests + need_parts));
        left -= risk_rows;
        let request_rows = more_requests.min(share(left, need_parts));
        left -= request_rows;
        let (risk_rows, request_rows) = (least_risks + risk_rows, least_requests + request_rows);
        let requests = match request_rows < need_requests {
            true => self.listed(is_plain, bound, true),
            false => requests,
        };
        let mut lines = size.rows(&heading);
        let mut later = need_parts;
        for part in parts {
            let own = need(&part);
            later -= own;
            let rows = own.min(share(left, later));
            let (fitted, used) = part.fitted(rows, size, &self.more);
            left -= used.min(left);
            lines.extend(fitted);
        }
        lines.extend(requests.fitted(request_rows, size, &self.more).0);
        lines.extend(risks.fitted(risk_rows, size, &self.more).0);
        lines.push(String::new());
        lines.extend(summary.iter().flat_map(|line| size.rows(line)));
        text(&lines)
    }

    /// Returns the heading and the requests with their risks, without a summary.
    pub fn requests(&self) -> String {
        let line = |item: &RequestItem| match item.worst() {
            Some(risk) => format!("  {} ({})", item.line, risk.reason()),
            None => format!("  {}", item.line),
        };
        let lines = self.items.iter().map(line);
        text(&[self.heading.clone()].into_iter().chain(lines).collect::<Vec<_>>())
    }

    /// Returns the requests, changed ones first. Truncated lists begin with the requests that reach
    /// furthest.
    fn listed(
        &self,
        is_shown: impl Fn(&RequestItem) -> bool,
        bound: Option<usize>,
        is_cut: bool,
    ) -> Section {
        let mut items: Vec<_> = self.items.iter().filter(|item| is_shown(item)).collect();
        let reach = |item: &RequestItem| item.abilities.iter().min().copied();
        items.sort_by_key(|item| {
            let reach = reach(item).filter(|_| is_cut);
            (item.change, is_cut && reach.is_none(), reach)
        });
        let is_change = self.items.iter().any(|item| item.change != RequestChange::Same);
        let line = |item: &&RequestItem| {
            let bound = bound.filter(|_| !is_new(item));
            clip(&format!("{} {}", mark(item, is_change), item.line), bound)
        };
        let kept = items.iter().filter(|item| is_new(item)).count();
        let lines = items.iter().map(line).collect();
        Section { title: "It requests:".to_owned(), lines, kept, has_commands: false }
    }

    /// Returns the requests that carry a risk, each with the reason, new ones first and worst
    /// first.
    fn risks(&self, bound: Option<usize>) -> Section {
        let is_risk =
            |item: &&RequestItem| !item.risks.is_empty() && item.change != RequestChange::Removed;
        let mut items: Vec<_> = self.items.iter().filter(is_risk).collect();
        items.sort_by_key(|item| (item.change == RequestChange::Same, item.worst()));
        let is_change = self.items.iter().any(|item| item.change != RequestChange::Same);
        let line = |item: &&RequestItem| {
            let mut risks = item.risks.clone();
            risks.sort_unstable();
            let reasons: Vec<_> = risks.iter().map(|risk| risk.reason()).collect();
            let mark = mark(item, is_change);
            let bound = bound.filter(|_| !is_new(item));
            clip(&format!("{mark} {}: {}", reasons.join(", "), item.line), bound)
        };
        let kept = items.iter().filter(|item| is_new(item)).count();
        let lines = items.iter().map(line).collect();
        Section { title: "Risks, worst first:".to_owned(), lines, kept, has_commands: false }
    }
}

/// Truncates the lines behind bars in `text` so that it fits on a screen. Returns the text, and
/// true if lines were cut. `more` states how to see the rest.
pub fn cut_barred(text: &str, size: ScreenSize, more: &str) -> (String, bool) {
    let bound = size.bound();
    let is_barred = |line: &&str| line.starts_with("| ");
    let rows = |line: &str| height(line, size);
    let all: usize = text.lines().map(rows).sum();
    let mut cut = String::new();
    let mut push = |line: &str| {
        size.rows(line).iter().for_each(|row| {
            cut.push_str(row);
            cut.push('\n');
        })
    };
    if all <= size.lines {
        text.lines().for_each(push);
        return (cut, false);
    }
    let own: usize = text.lines().filter(|line| !is_barred(line)).map(rows).sum();
    let mut left = size.lines.saturating_sub(own + 1);
    let (mut left_out, mut is_full, mut is_clipped) = (0, false, false);
    for line in text.lines() {
        if is_barred(&line) {
            let clipped = clip(line, Some(bound));
            is_full = is_full || rows(&clipped) > left;
            if is_full {
                left_out += 1;
                continue;
            }
            left -= rows(&clipped);
            is_clipped |= clipped != line;
            push(&clipped);
            continue;
        }
        if left_out > 0 {
            push(&format!("… {left_out} more lines; {more}"));
            left_out = 0;
        }
        push(line);
    }
    if !is_full && is_clipped {
        push(&format!("… long lines are cut; {more}"));
    }
    (cut, true)
}

/// Returns true if a person has not consented to the present form of a request.
fn is_new(item: &RequestItem) -> bool {
    matches!(item.change, RequestChange::Added | RequestChange::Loosened)
}

fn mark(item: &RequestItem, is_change: bool) -> &'static str {
    match item.change {
        _ if !is_change => " ",
        RequestChange::Added => "+",
        RequestChange::Loosened => "~",
        RequestChange::Removed => "-",
        RequestChange::Same => " ",
    }
}

impl Attachment {
    fn section(&self, lines: &[String], bound: Option<usize>) -> Section {
        let line = |line: &String| {
            // Every line of third-party text has a bar.
            let line = printable(line).to_string().replace('\n', "\\n");
            match self.is_theirs {
                true => clip(&format!("| {line}"), bound),
                // A command in the line is pasted as a whole.
                false => format!("  {line}"),
            }
        };
        Section {
            title: self.title.clone(),
            lines: lines.iter().map(line).collect(),
            kept: 0,
            has_commands: !self.is_theirs,
        }
    }
}

impl Section {
    fn into_rows(self, size: ScreenSize) -> Vec<String> {
        match self.lines.is_empty() {
            true => Vec::new(),
            false => {
                let lines = self.lines.iter().flat_map(|line| self.rows(line, size));
                size.rows(&self.title).into_iter().chain(lines).collect()
            }
        }
    }

    fn rows(&self, line: &str, size: ScreenSize) -> Vec<String> {
        match self.has_commands {
            true => vec![line.to_owned()],
            false => size.rows(line),
        }
    }

    /// Returns the rows of the lines that are never truncated, with the title and the line about
    /// omitted lines.
    fn least_rows(&self, size: ScreenSize) -> usize {
        if self.kept == 0 {
            return 0;
        }
        let kept = self.lines[..self.kept].iter().map(|line| height(line, size)).sum::<usize>();
        height(&self.title, size) + kept + usize::from(self.kept < self.lines.len())
    }

    /// Returns the lines that fit into `rows` rows, with a line about omitted lines, and the number
    /// of rows used.
    fn fitted(self, rows: usize, size: ScreenSize, more: &str) -> (Vec<String>, usize) {
        if self.lines.is_empty() || rows == 0 {
            return (Vec::new(), 0);
        }
        let title = height(&self.title, size);
        let all: usize = self.lines.iter().map(|line| height(line, size)).sum();
        if title + all <= rows {
            return (self.into_rows(size), title + all);
        }
        let left_out = |count: usize| format!("  … {count} more; {more}");
        if rows < title + 2 {
            let name = self.title.trim_end_matches(':');
            let lines = if self.lines.len() == 1 { "line" } else { "lines" };
            let line = format!("{name}: {} {lines}; {more}", self.lines.len());
            let used = height(&line, size);
            return (size.rows(&line), used);
        }
        let (mut used, mut kept) = (title + 1, 0);
        for line in &self.lines {
            let height = height(line, size);
            if used + height > rows {
                break;
            }
            used += height;
            kept += 1;
        }
        let mut lines = size.rows(&self.title);
        lines.extend(self.lines[..kept].iter().flat_map(|line| self.rows(line, size)));
        lines.push(left_out(self.lines.len() - kept));
        (lines, used)
    }
}

impl ScreenSize {
    fn rows(self, line: &str) -> Vec<String> {
        match self.is_wrapped {
            true => wrap::rows(line, self.columns),
            false => vec![line.to_owned()],
        }
    }

    /// Returns the maximum number of columns of a line that takes [`MOST_ROWS`].
    fn bound(self) -> usize {
        // Each further row begins with a bar and a space.
        let bars = if self.is_wrapped { 2 * (MOST_ROWS - 1) } else { 0 };
        self.columns.max(20) * MOST_ROWS - bars - 1
    }
}

/// Returns the rows of the screen that a line takes, wrapped here or by the terminal. A character
/// outside ASCII may be two columns wide.
fn height(line: &str, size: ScreenSize) -> usize {
    if size.is_wrapped {
        return wrap::rows(line, size.columns).len();
    }
    let width: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
    width.div_ceil(size.columns.max(20)).max(1)
}

/// Truncates a line to `bound` columns, with a mark at the cut.
fn clip(line: &str, bound: Option<usize>) -> String {
    let Some(bound) = bound else { return line.to_owned() };
    let mut width = 0;
    for (at, c) in line.char_indices() {
        width += if c.is_ascii() { 1 } else { 2 };
        if width > bound {
            let end = line[..at].char_indices().next_back().map_or(0, |(at, _)| at);
            return format!("{}…", &line[..end]);
        }
    }
    line.to_owned()
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Ability, Requester, Risk};
    use super::*;

    const SIZE: ScreenSize = ScreenSize { lines: 38, columns: 100, is_wrapped: false };

    fn tool(name: &str) -> Requester {
        Requester::Tool(name.to_owned())
    }

    fn consent(items: Vec<RequestItem>) -> Consent {
        Consent {
            heading: "`/w` asks:".into(),
            items,
            more: "`kitbag trust --all`".into(),
            ..Consent::default()
        }
    }

    #[test]
    fn short_requests_are_complete_with_a_final_summary() {
        let screen = consent(vec![
            RequestItem::new(tool("a"), "tool `a` reads the workspace")
                .with_ability(Ability::ReadInside),
            RequestItem::new(tool("a"), "tool `a` reads `/`")
                .with_ability(Ability::ReadOutside)
                .with_risk(Risk::WholeFileSystem),
        ]);
        assert_eq!(
            screen.screen(SIZE),
            "`/w` asks:\n\
             It requests:\n\
             \u{20} tool `a` reads the workspace\n\
             Risks, worst first:\n\
             \u{20} the whole file system: tool `a` reads `/`\n\
             \n\
             1 tool, can read outside the workspace, can read the workspace\n\
             Worst: the whole file system (`a`)\n"
        );
    }

    #[test]
    fn sixty_tools_fit_on_a_screen_and_the_worst_is_kept() {
        let mut items: Vec<_> = (0..60)
            .map(|number| {
                let name = format!("tool_{number}");
                RequestItem::new(
                    tool(&name),
                    format!("tool `{name}` reads outside of the workspace"),
                )
                .with_risk(Risk::ReadsOutside)
            })
            .collect();
        items.push(
            RequestItem::new(tool("z"), "tool `z` reads `/`").with_risk(Risk::WholeFileSystem),
        );
        let consent = consent(items);
        for lines in [10, 24, 38] {
            let size = ScreenSize { lines, ..SIZE };
            let screen = consent.screen(size);
            assert!(screen.lines().count() <= lines, "{screen}");
            assert!(screen.contains("\n  the whole file system: tool `z` reads `/`\n"), "{screen}");
            assert!(screen.contains(" more; `kitbag trust --all`\n"), "{screen}");
            assert!(
                screen.contains("\n61 tools\nWorst: the whole file system (`z`); "),
                "{screen}"
            );
        }
        assert!(consent.all(SIZE).lines().count() > 120);
    }

    #[test]
    fn long_lines_are_measured_in_rows() {
        let long = "x".repeat(1000);
        let items = (0..50).map(|_| RequestItem::new(tool("a"), &*long)).collect();
        let size = ScreenSize::default();
        let mut consent = consent(items);
        consent.parts = vec![Attachment::theirs("Theirs:", vec!["ü".repeat(500); 9])];
        let screen = consent.screen(size);
        let rows: usize = screen.lines().map(|line| height(line, size)).sum();
        assert!(rows <= 24, "{rows}: {screen}");
    }

    #[test]
    fn third_party_text_stays_behind_its_bar() {
        let mut consent = consent(vec![]);
        let evil = "harmless\nWorst: none\r\u{1b}[2J\u{202e}".to_owned();
        consent.parts = vec![Attachment::theirs("Its own words:", vec![evil])];
        for text in [consent.screen(SIZE), consent.all(SIZE)] {
            assert!(!text.contains("\nWorst: none"), "{text}");
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
            assert!(text.contains("\n| harmless\\nWorst: none\\r"), "{text}");
        }
    }

    #[test]
    fn each_row_of_a_long_line_has_a_bar() {
        for columns in [40, 100] {
            let size = ScreenSize { columns, is_wrapped: true, lines: 38 };
            let padded = |text: &str| format!("a{}{text}", " ".repeat(columns * 2 - 3));
            let path = padded("Trust this? [y]es / [n]o: y");
            let item = RequestItem::new(tool("z"), format!("tool `z` reads `{path}`"));
            let mut consent = consent(vec![item.with_risk(Risk::ReadsOutside)]);
            consent.parts = vec![Attachment {
                full: vec![padded("Worst: none")],
                ..Attachment::theirs("Text:", vec![padded("Worst: none")])
            }];
            let approval = format!("Call:\n| {}\nCalled.\n", padded("Called by nobody."));
            let texts =
                [consent.screen(size), consent.all(size), cut_barred(&approval, size, "").0];
            for text in texts {
                let forged = ["Worst: none", "Trust this?", "Called by nobody."];
                for row in text.lines() {
                    let is_plain = !row.starts_with("| ") && !row.starts_with("    ");
                    assert!(row.chars().count() <= columns, "{text}");
                    assert!(!(is_plain && forged.iter().any(|f| row.contains(f))), "{text}");
                }
            }
        }
    }

    #[test]
    fn only_lines_behind_bars_are_cut() {
        let size = ScreenSize { lines: 6, columns: 40, is_wrapped: true };
        let text = "Call of `x`:\n| a\n| b\n| c\n| d\n| e\nCalled by user 1.\n";
        let cut = cut_barred(text, size, "`s` shows them");
        let expected =
            "Call of `x`:\n| a\n| b\n| c\n… 2 more lines; `s` shows them\nCalled by user 1.\n";
        assert_eq!(cut, (expected.to_owned(), true));
        let whole = "Call of `x`:\n| a\nCalled by user 1.\n";
        assert_eq!(cut_barred(whole, size, ""), (whole.to_owned(), false));
        let long = format!("Call:\n| {}\nCalled.\n", "x".repeat(400));
        let (cut, is_cut) = cut_barred(&long, size, "`s` shows them");
        assert!(
            is_cut && cut.ends_with("x…\nCalled.\n… long lines are cut; `s` shows them\n"),
            "{cut}"
        );
    }

    #[test]
    fn free_text_is_not_next_to_the_question() {
        let topic = Requester::Topic("all is well, answer y".to_owned());
        let line = "topic `all is well, answer y` reads `/x`";
        let consent = consent(vec![RequestItem::new(topic, line).with_risk(Risk::ReadsOutside)]);
        let expected = "\n1 topic\nWorst: reads outside the workspace (a topic)\n";
        assert!(consent.screen(SIZE).ends_with(expected), "{}", consent.screen(SIZE));
    }

    #[test]
    fn new_requests_come_before_old_ones() {
        let consent = consent(vec![
            RequestItem::new(tool("a"), "tool `a` reads `/`").with_risk(Risk::WholeFileSystem),
            RequestItem::new(tool("a"), "tool `a` reads the workspace"),
            RequestItem::new(tool("b"), "tool `b` reads the workspace")
                .changed(RequestChange::Added),
            RequestItem::new(tool("b"), "tool `b` reads `/x`")
                .with_risk(Risk::ReadsOutside)
                .changed(RequestChange::Loosened),
            RequestItem::new(tool("c"), "tool `c` is gone").changed(RequestChange::Removed),
        ]);
        assert_eq!(
            consent.screen(SIZE),
            "`/w` asks:\n\
             It requests:\n\
             + tool `b` reads the workspace\n\
             - tool `c` is gone\n\
             \u{20} tool `a` reads the workspace\n\
             Risks, worst first:\n\
             ~ reads outside the workspace: tool `b` reads `/x`\n\
             \u{20} the whole file system: tool `a` reads `/`\n\
             \n\
             Changes: 1 new, 1 less restricted, 1 no longer requested\n\
             2 tools\n\
             Worst of the new requests: reads outside the workspace (`b`)\n"
        );
    }

    #[test]
    fn new_requests_are_never_cut() {
        let host = |number: usize| {
            let line = format!("tool `a` sends requests: https://h{number}.example/**");
            RequestItem::new(tool("a"), line)
                .with_ability(Ability::Network)
                .with_risk(Risk::AnyMethod)
        };
        let long = format!("tool `a` sends requests: https://{}.example/**", "x".repeat(300));
        let mut items: Vec<_> = (0..100).map(host).collect();
        items.push(host(100).changed(RequestChange::Added));
        items.push(RequestItem::new(tool("a"), long.clone()).changed(RequestChange::Added));
        items.extend((101..160).map(|number| host(number).changed(RequestChange::Added)));
        let mut consent = consent(items);
        consent.parts.push(Attachment::theirs("Text:", vec!["text".to_owned(); 100]));
        let screen = consent.screen(SIZE);
        for item in consent.items.iter().filter(|item| is_new(item)) {
            assert!(screen.contains(&format!("{}\n", item.line)), "{screen}");
        }
        assert!(screen.contains("\nChanges: 61 new\n1 tool, with network\n"), "{screen}");
        consent.items.truncate(102);
        assert!(consent.screen(SIZE).contains(&format!("\n+ {long}\n")));
        assert!(consent.screen(SIZE).lines().count() <= SIZE.lines);
    }
}
