//! `search_files`.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io;
use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use grep_matcher::LineTerminator;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::{Encoding, Kind};

use crate::answer::{ANSWER_BYTES, COUNTED, FULL, add_passed_over, count};
use crate::arguments::{SearchFiles, Show};
use crate::folded::LineMatcher;
use crate::hits::{Collector, Hits};
use crate::long;
use crate::pattern::Pattern;
use crate::place::{SearchRoot, in_words, is_full, shown};
use crate::text::{Sniffed, Whole, read_text};
use crate::walk::{Found, PassedOver, walk};

/// Maximum length of a line that is searched as a line, and maximum size of a file in which matches
/// may span lines.
const HEAP_BYTES: usize = 16 << 20;

/// Maximum number of files that are named with their encoding.
const NAMED_ENCODINGS: usize = 5;

/// The hint for a pattern that may have been intended for several lines.
const ONE_BY_ONE: &str = "; lines are searched one by one, and classes such as `[^x]` match no \
                          line ending; `\\n` or `(?s)` in the pattern spans lines";

/// A matching file.
struct FileHits {
    modified: Duration,
    path: String,
    /// The encoding of a file that is not plain UTF-8.
    encoding: Option<Encoding>,
    hits: Hits,
}

/// The state of one search.
struct Search<'a> {
    arguments: &'a SearchFiles,
    pattern: Pattern,
    searcher: Searcher,
    /// The buffer for the start of each file.
    first: Vec<u8>,
    /// Searches for matches that span lines although the pattern has no newline.
    across: Searcher,
    /// Files to show, in the order in which they were found.
    files: Vec<FileHits>,
    /// Shown matching lines, or files if no lines are shown.
    shown: u64,
    /// The length of the output, in bytes.
    bytes: usize,
    /// The number of matching lines that are omitted from displayed files, and of these files.
    left_out_of_shown: (u64, u64),
    /// The number of matching lines of omitted files, and of these files.
    left_out: (u64, u64),
    /// The first file that is omitted for lack of room.
    first_without_room: Option<String>,
    searched: u64,
    /// Files that are too large to search for matches over several lines.
    searched_in_lines: u64,
    is_stopped: bool,
}

/// Runs a call.
pub(crate) fn run(call: &Call, arguments: &SearchFiles) -> Result<String, ErrorInfo> {
    if arguments.pattern.is_empty() {
        return Err(ErrorInfo::new(
            "`pattern` is empty and would match every line; to list files use `find_files`",
        ));
    }
    let pattern = Pattern::new(arguments)?;
    let place = SearchRoot::find(call, &arguments.path)?;
    let filter = arguments.filter(&place)?;
    let binary = match place.is_directory {
        true => BinaryDetection::quit(0),
        false => BinaryDetection::convert(0),
    };
    let mut builder = SearcherBuilder::new();
    builder
        .line_terminator(LineTerminator::crlf())
        .line_number(arguments.show == Show::Lines)
        .before_context(arguments.context)
        .after_context(arguments.context)
        .binary_detection(binary)
        .heap_limit(Some(HEAP_BYTES));
    let searcher = builder.multi_line(pattern.is_multi_line).build();
    let mut search = Search {
        arguments,
        pattern,
        searcher,
        first: Vec::new(),
        across: builder.multi_line(true).build(),
        files: Vec::new(),
        shown: 0,
        bytes: 0,
        left_out_of_shown: (0, 0),
        left_out: (0, 0),
        first_without_room: None,
        searched: 0,
        searched_in_lines: 0,
        is_stopped: false,
    };
    let passed = walk(&place, &filter, &mut |found, passed| search.visit(&found, passed))
        .map_err(|error| ErrorInfo::new(format!("`{}` {}", arguments.path, in_words(&error))))?;
    Ok(search.answer(&place, &passed))
}

impl Search<'_> {
    fn visit(&mut self, found: &Found<'_>, passed: &mut PassedOver) -> ControlFlow<()> {
        if found.kind != Kind::File {
            return ControlFlow::Continue(());
        }
        let has_no_room = !self.arguments.newest && self.bytes >= ANSWER_BYTES;
        let room = match self.arguments.newest {
            true => self.arguments.limit,
            false if has_no_room => 0,
            false => self.arguments.limit - self.shown,
        };
        let counted = self.left_out.0 + self.left_out_of_shown.0;
        let (pattern, arguments) = (&self.pattern, self.arguments);
        let collector = |matcher, spans| Collector {
            matcher,
            show: arguments.show,
            room: room.min(arguments.per_file).min(COUNTED),
            // All files must be searched to find the newest ones.
            countable: if arguments.newest { COUNTED } else { COUNTED - counted.min(COUNTED) },
            spans,
            hits: Hits::default(),
        };
        let matcher = &pattern.matcher;
        let line_matcher = LineMatcher { regex: matcher, literal: pattern.literal.as_ref() };
        let mut first = mem::take(&mut self.first);
        let mut collected = collector(matcher, false);
        let mut encoding = None;
        let mut search = || -> io::Result<()> {
            let open = || found.directory.file(found.name, found.is_named);
            let mut file = Sniffed::new(open()?, &mut first)?;
            if file.is_binary {
                collected.hits.is_binary = true;
                if !found.is_named {
                    return Ok(());
                }
            }
            match self.searcher.search_reader(&line_matcher, &mut file, &mut collected) {
                Err(error) if is_full(&error) && !pattern.is_multi_line => {
                    collected = collector(matcher, false);
                    return long::search(open()?, matcher, &mut collected);
                }
                other => other?,
            }
            encoding = file.marked();
            if !file.is_utf8()
                && let Whole::Text(decoded) = read_text(found)?
            {
                collected = collector(matcher, false);
                self.searcher.search_slice(matcher, decoded.text.as_bytes(), &mut collected)?;
                encoding = Some(decoded.encoding);
            }
            let is_missing = collected.hits.matches() == 0 && !collected.hits.is_binary;
            if is_missing && let Some(matcher) = &pattern.across {
                match read_text(found)? {
                    Whole::Text(decoded) => {
                        collected = collector(matcher, true);
                        let text = decoded.text.as_bytes();
                        self.across.search_slice(matcher, text, &mut collected)?;
                    }
                    Whole::Binary => {}
                    Whole::TooLarge => self.searched_in_lines += 1,
                }
            }
            Ok(())
        };
        let searched = search();
        self.first = first;
        let hits = collected.hits;
        match searched {
            Err(error) => passed.failure(found.path, &error),
            Ok(()) if hits.is_binary && !found.is_named && hits.matches() == 0 => {
                passed.binary += 1;
            }
            Ok(()) => self.searched += 1,
        }
        if hits.matches() > 0 {
            self.keep(found, encoding, hits, room);
        }
        match self.is_stopped {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Keeps the matches of a file while there is room.
    fn keep(&mut self, found: &Found<'_>, encoding: Option<Encoding>, hits: Hits, room: u64) {
        let modified = match self.arguments.newest {
            true => found.directory.modified(found.name).unwrap_or_default(),
            false => Duration::ZERO,
        };
        if !self.arguments.newest {
            self.is_stopped = hits.is_stopped;
            if room == 0 {
                if self.shown < self.arguments.limit && self.first_without_room.is_none() {
                    self.first_without_room = Some(found.path.to_owned());
                }
                self.leave_out(&hits);
                self.is_stopped |= self.left_out.1 >= COUNTED;
                return;
            }
        }
        self.take(&hits, 1);
        self.files.push(FileHits { modified, path: found.path.to_owned(), encoding, hits });
        if self.arguments.newest {
            self.drop_oldest();
        }
    }

    /// Drops the oldest files that are not needed to reach the limit.
    fn drop_oldest(&mut self) {
        loop {
            let oldest = self.files.iter().enumerate().min_by(|(_, one), (_, other)| {
                one.modified.cmp(&other.modified).then_with(|| other.path.cmp(&one.path))
            });
            let Some((index, file)) = oldest else { return };
            let is_enough = self.shown - self.weight(&file.hits) >= self.arguments.limit
                || self.bytes - bytes_of(&file.hits) >= ANSWER_BYTES;
            if !is_enough {
                return;
            }
            let file = self.files.swap_remove(index);
            self.take(&file.hits, -1);
            if self.shown < self.arguments.limit {
                self.first_without_room = Some(file.path.clone());
            }
            self.leave_out(&file.hits);
        }
    }

    /// Adds or removes a file's part of the displayed output.
    fn take(&mut self, hits: &Hits, sign: i64) {
        let has_more = hits.left_out > 0;
        self.shown = self.shown.saturating_add_signed(sign * self.weight(hits) as i64);
        self.bytes = self.bytes.saturating_add_signed(sign as isize * bytes_of(hits) as isize);
        let (lines, files) = &mut self.left_out_of_shown;
        *lines = lines.saturating_add_signed(sign * hits.left_out as i64);
        *files = files.saturating_add_signed(sign * i64::from(has_more));
    }

    fn leave_out(&mut self, hits: &Hits) {
        self.left_out.0 += hits.matches();
        self.left_out.1 += 1;
    }

    /// Returns the weight of a file for the limit.
    fn weight(&self, hits: &Hits) -> u64 {
        if self.arguments.show == Show::Lines { hits.shown } else { 1 }
    }

    fn answer(mut self, place: &SearchRoot, passed: &PassedOver) -> String {
        if self.arguments.newest {
            self.files.sort_by(|one, other| {
                (Reverse(one.modified), &one.path).cmp(&(Reverse(other.modified), &other.path))
            });
            self.cut_last();
        }
        let mut answer = String::new();
        for FileHits { path, hits, .. } in &self.files {
            let path = shown(path);
            let _ = match self.arguments.show {
                Show::Files => writeln!(answer, "{}{path}", place.shown_root),
                Show::Counts => writeln!(answer, "{}{path}:{}", place.shown_root, hits.shown),
                Show::Lines => writeln!(answer, "{}{path}", place.shown_root),
            };
            if self.arguments.show != Show::Lines {
                continue;
            }
            for (_, line) in &hits.lines {
                answer.push_str(line);
                answer.push('\n');
            }
            if hits.is_binary && !place.is_directory {
                answer.push_str("[binary file matches; its lines are not shown]\n");
            } else if hits.is_binary {
                answer.push_str("[binary from here on, not searched further]\n");
            } else if hits.left_out > 0 {
                let at_least = if hits.is_stopped { "at least " } else { "" };
                let _ = writeln!(answer, "[{at_least}{} more]", hits.left_out);
            }
            answer.push('\n');
        }
        answer.truncate(answer.trim_end().len());
        if self.files.is_empty() {
            let files = count(self.searched, "file", "files");
            answer = match self.left_out.1 {
                0 => format!("no matches in {files}"),
                _ => String::new(),
            };
            if self.searched == 0 {
                answer.push_str("; see `path`, `globs`, `types`, `hidden`, `ignored`");
            } else if self.pattern.has_open_class && !answer.is_empty() {
                answer.push_str(ONE_BY_ONE);
            }
        }
        self.add_left_out(&mut answer);
        if self.searched_in_lines > 0 {
            let files = count(self.searched_in_lines, "file", "files");
            let _ =
                write!(answer, "\n[{files} of more than 8 MiB: only single lines were searched]");
        }
        self.add_encodings(&mut answer);
        add_passed_over(&mut answer, passed);
        answer
    }

    /// Names the encodings of displayed files that are not plain UTF-8.
    fn add_encodings(&self, answer: &mut String) {
        let mut others = self.files.iter().filter_map(|file| Some((&file.path, file.encoding?)));
        let named = others.by_ref().take(NAMED_ENCODINGS);
        let named: Vec<_> =
            named.map(|(path, encoding)| format!("`{}` is {encoding}", shown(path))).collect();
        if named.is_empty() {
            return;
        }
        let more = match others.count() {
            0 => String::new(),
            more => format!("; {} not UTF-8", count(more as u64, "more is", "more are")),
        };
        let _ = write!(answer, "\n[{}{more}]", named.join("; "));
    }

    /// Truncates the last file to the limit, since whole files were kept.
    fn cut_last(&mut self) {
        if self.arguments.show != Show::Lines {
            return;
        }
        let Some(mut last) = self.files.pop() else { return };
        self.take(&last.hits, -1);
        last.hits.cut(self.arguments.limit - self.shown.min(self.arguments.limit));
        self.take(&last.hits, 1);
        self.files.push(last);
    }

    fn add_left_out(&self, answer: &mut String) {
        let (lines, files) = self.left_out;
        let (more_lines, more_files) = self.left_out_of_shown;
        let mut parts = Vec::new();
        if more_files > 0 && self.arguments.show == Show::Lines {
            let matches = count(more_lines, "match", "matches");
            let files = count(more_files, "file above", "files above");
            parts.push(format!("{matches} in {files} (`per_file`)"));
        }
        if files > 0 {
            let more = count(files, "more file", "more files");
            let why = match &self.first_without_room {
                None => "`limit`".to_owned(),
                Some(path) => format!("from {} on: {FULL}, or lower `per_file`", shown(path)),
            };
            parts.push(match self.arguments.show {
                Show::Lines => format!("{} in {more} ({why})", count(lines, "match", "matches")),
                Show::Files | Show::Counts => format!("{more} ({why})"),
            });
        }
        if parts.is_empty() {
            return;
        }
        if !answer.is_empty() {
            answer.push_str("\n\n");
        }
        let at_least = if self.is_stopped { "at least " } else { "" };
        let _ = write!(answer, "[omitted: {at_least}{}]", parts.join(", "));
    }
}

/// Returns the total length of a file's lines.
fn bytes_of(hits: &Hits) -> usize {
    hits.lines.iter().map(|(_, line)| line.len() + 1).sum()
}
