//! The pattern of a search, and the extent of its matches.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use kitbag_sdk::ErrorInfo;
use regex_syntax::ast::{self, Ast, ClassPerlKind, ClassSet, ClassSetItem};
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::arguments::{Case, SearchFiles};
use crate::folded::FoldedLiteral;

/// Maximum size of a compiled pattern and of its caches, in bytes.
const PATTERN_BYTES: usize = 8 << 20;

/// A newline of Unix or Windows. Escaped, since `(?x)` ignores plain ones.
const NEWLINE: &str = r"(?:\r?\n)";

/// A compiled pattern.
pub(crate) struct Pattern {
    pub(crate) matcher: RegexMatcher,
    /// A match may span several lines: the pattern has `\n`, or matches every character with
    /// `(?s).` or `[\s\S]`.
    pub(crate) is_multi_line: bool,
    /// The same pattern for matches across lines, if matches within lines are searched for first:
    /// patterns with `\s` in the middle.
    pub(crate) across: Option<RegexMatcher>,
    /// A text that each match contains in any case, if the pattern ignores case and is searched in
    /// lines.
    pub(crate) literal: Option<FoldedLiteral>,
    /// A class such as `[^"]` would match line endings, which are not part of lines.
    pub(crate) has_open_class: bool,
}

/// The extent of a pattern's matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Lines,
    /// White space in the middle may match line endings.
    Blanks,
    Everything,
}

impl Pattern {
    /// Compiles the pattern of a call.
    ///
    /// # Errors
    ///
    /// The problem of the pattern.
    pub(crate) fn new(arguments: &SearchFiles) -> Result<Self, ErrorInfo> {
        let (text, across_text) = match arguments.literal {
            true => {
                let text = regex_syntax::escape(&arguments.pattern);
                let text = text.replace("\r\n", "\n").replace('\n', NEWLINE);
                (text.clone(), text)
            }
            false => {
                let of = |blanks| with_newlines(&arguments.pattern, blanks);
                (of(false), of(true))
            }
        };
        let build = |lines: bool| {
            let mut builder = RegexMatcherBuilder::new();
            builder
                .multi_line(true)
                .unicode(true)
                .case_smart(matches!(arguments.case, Case::Smart))
                .case_insensitive(matches!(arguments.case, Case::Insensitive))
                .size_limit(PATTERN_BYTES)
                .dfa_size_limit(PATTERN_BYTES)
                // `$` also matches before `\r\n`.
                .crlf(true);
            if !lines {
                builder.line_terminator(None);
            }
            builder.build(if lines { &text } else { &across_text })
        };
        let reach = reach(&text);
        let of_lines = match reach {
            Reach::Everything => None,
            Reach::Lines | Reach::Blanks => match build(true) {
                Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => None,
                other => Some(other),
            },
        };
        let is_multi_line = of_lines.is_none();
        let matcher = of_lines.unwrap_or_else(|| build(false)).map_err(|error| {
            let hint =
                if arguments.literal { "" } else { "\nto search for it literally, set `literal`" };
            let error = error.to_string();
            if error.contains("size limit") {
                return ErrorInfo::new(format!(
                    "`pattern` takes more than {} MiB when it is compiled: repeat less, such as \
                     `\\w+` for `\\w{{1,300}}`",
                    PATTERN_BYTES >> 20
                ));
            }
            // The error repeats the pattern, and describes the problem at its end.
            let end = error.rsplit_once('\n').filter(|_| arguments.pattern.len() > 200);
            let error = end.map_or(&*error, |(_, end)| end);
            ErrorInfo::new(format!("invalid `pattern`: {error}{hint}"))
        })?;
        // If the pattern is too large in this form, only lines are searched.
        let across = (reach == Reach::Blanks && !is_multi_line).then(|| build(false).ok());
        let has_open_class = !is_multi_line && reach == Reach::Lines && has_open_class(&text);
        let ignores_case = match arguments.case {
            Case::Smart => !arguments.pattern.contains(char::is_uppercase),
            Case::Sensitive => false,
            Case::Insensitive => true,
        };
        let literal = || FoldedLiteral::of(&parsed_as(&text, true)?);
        let literal = (ignores_case && !is_multi_line).then(literal).flatten();
        Ok(Self { matcher, is_multi_line, across: across.flatten(), literal, has_open_class })
    }
}

/// Makes each newline of a pattern, and each class that names one (`[,\n]`), match `\r\n` as well;
/// with `blanks` also `\s`. An invalid pattern is returned unchanged and is refused when it is
/// compiled.
fn with_newlines(pattern: &str, blanks: bool) -> String {
    let mut newlines = Newlines { blanks, found: Vec::new() };
    if let Ok(parsed) = ast::parse::Parser::new().parse(pattern) {
        let Ok(()) = ast::visit(&parsed, &mut newlines);
    }
    let mut text = String::with_capacity(pattern.len());
    let mut end = 0;
    for (span, is_class) in newlines.found {
        let (start, after) = (span.start.offset, span.end.offset);
        text.push_str(&pattern[end..start]);
        match is_class {
            true => text.extend([r"(?:\r\n|", &pattern[start..after], ")"]),
            false => text.push_str(NEWLINE),
        }
        end = after;
    }
    text.push_str(&pattern[end..]);
    text
}

/// The parts of a pattern that match a newline.
struct Newlines {
    /// True if `\s` is one of them.
    blanks: bool,
    /// Each part, and whether it is a class.
    found: Vec<(ast::Span, bool)>,
}

impl Newlines {
    fn is_in_set(&self, set: &ClassSet) -> bool {
        match set {
            ClassSet::Item(item) => self.is_in_item(item),
            ClassSet::BinaryOp(_) => false,
        }
    }

    fn is_in_item(&self, item: &ClassSetItem) -> bool {
        match item {
            ClassSetItem::Literal(literal) => literal.c == '\n',
            ClassSetItem::Perl(class) => self.is_blank(class),
            ClassSetItem::Union(union) => union.items.iter().any(|item| self.is_in_item(item)),
            ClassSetItem::Bracketed(class) => !class.negated && self.is_in_set(&class.kind),
            _ => false,
        }
    }

    fn is_blank(&self, class: &ast::ClassPerl) -> bool {
        self.blanks && !class.negated && class.kind == ClassPerlKind::Space
    }
}

impl ast::Visitor for &mut Newlines {
    type Output = ();
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::Literal(literal) if literal.c == '\n' => self.found.push((literal.span, false)),
            Ast::ClassPerl(class) if self.is_blank(class) => self.found.push((class.span, true)),
            Ast::ClassBracketed(class) if !class.negated && self.is_in_set(&class.kind) => {
                self.found.push((class.span, true));
            }
            _ => {}
        }
        Ok(())
    }
}

fn parsed(pattern: &str) -> Option<Hir> {
    parsed_as(pattern, false)
}

fn parsed_as(pattern: &str, ignores_case: bool) -> Option<Hir> {
    let mut parser = regex_syntax::ParserBuilder::new();
    parser.multi_line(true).crlf(true).utf8(false).case_insensitive(ignores_case);
    parser.build().parse(pattern).ok()
}

/// Returns true if a pattern has a negated class such as `[^"]` in the middle.
fn has_open_class(pattern: &str) -> bool {
    let is_open = |hir: &Hir| match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            let has =
                |char: char| class.iter().any(|range| range.start() <= char && char <= range.end());
            has('\n') && has('a') && !is_everything(hir)
        }
        _ => false,
    };
    match parsed(pattern).as_ref().map(Hir::kind) {
        Some(HirKind::Concat(parts)) => {
            parts[..parts.len() - 1].iter().any(|part| has(part, &is_open))
        }
        _ => false,
    }
}

fn reach(pattern: &str) -> Reach {
    match parsed(pattern) {
        Some(parsed) if has(&parsed, &is_everything) => Reach::Everything,
        Some(parsed) if has_inner_blank(&parsed) => Reach::Blanks,
        _ => Reach::Lines,
    }
}

/// Returns true if any part of a pattern satisfies a predicate.
fn has(hir: &Hir, is: &dyn Fn(&Hir) -> bool) -> bool {
    is(hir)
        || match hir.kind() {
            HirKind::Repetition(repetition) => has(&repetition.sub, is),
            HirKind::Capture(capture) => has(&capture.sub, is),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                parts.iter().any(|part| has(part, is))
            }
            HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
        }
}

/// Returns true for every character: `(?s).` and `[\s\S]`.
fn is_everything(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            matches!(class.ranges(), [all] if all.start() == '\0' && all.end() == char::MAX)
        }
        HirKind::Class(Class::Bytes(class)) => {
            matches!(class.ranges(), [all] if all.start() == 0 && all.end() == u8::MAX)
        }
        _ => false,
    }
}

/// Returns true for white space and newlines, such as `\s`. Returns false for negated classes such
/// as `[^"]`.
fn is_blank(hir: &Hir) -> bool {
    let HirKind::Class(Class::Unicode(class)) = hir.kind() else { return false };
    let has = |char: char| class.iter().any(|range| range.start() <= char && char <= range.end());
    has('\n') && !has('a')
}

/// Returns true if white space is between other parts of a pattern, and not only at its ends.
fn has_inner_blank(hir: &Hir) -> bool {
    let is_end = |part: &Hir| match part.kind() {
        HirKind::Look(_) => true,
        HirKind::Repetition(repetition) => is_blank(&repetition.sub),
        _ => is_blank(part),
    };
    match hir.kind() {
        HirKind::Capture(capture) => has_inner_blank(&capture.sub),
        HirKind::Alternation(parts) => parts.iter().any(has_inner_blank),
        HirKind::Repetition(repetition) => {
            !is_blank(&repetition.sub) && has(&repetition.sub, &is_blank)
        }
        HirKind::Concat(parts) => {
            let first = parts.iter().position(|part| !is_end(part)).unwrap_or(parts.len());
            let last = parts.iter().rposition(|part| !is_end(part)).map_or(first, |last| last + 1);
            parts[first..last].iter().any(|part| has(part, &is_blank))
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newlines_match_windows_newlines() {
        for (pattern, of_lines, across) in [
            (r"a\nb", r"a(?:\r?\n)b", None),
            ("a\nb", r"a(?:\r?\n)b", None),
            (r"a\x0A+", r"a(?:\r?\n)+", None),
            (r"(?x)a\n b", r"(?x)a(?:\r?\n) b", None),
            (r"a\\nb", r"a\\nb", None),
            (r"a[\n]b", r"a(?:\r\n|[\n])b", None),
            (r"a[,[\x0a]]+b", r"a(?:\r\n|[,[\x0a]])+b", None),
            (r"[^\n]*", r"[^\n]*", None),
            (r"[a[^\n]]", r"[a[^\n]]", None),
            (r"[\n&&\s]", r"[\n&&\s]", None),
            (r"a\sb\S", r"a\sb\S", Some(r"a(?:\r\n|\s)b\S")),
            (r"a[\s,]b", r"a[\s,]b", Some(r"a(?:\r\n|[\s,])b")),
            ("(?x)a\n b", "(?x)a\n b", None),
            ("(", "(", None),
        ] {
            assert_eq!(with_newlines(pattern, false), of_lines, "{pattern}");
            assert_eq!(with_newlines(pattern, true), across.unwrap_or(of_lines), "{pattern}");
        }
    }

    #[test]
    fn the_reach_of_a_pattern_is_known() {
        let check = |patterns: &[&str], expected: Reach| {
            for pattern in patterns {
                assert!(reach(pattern) == expected, "{pattern}");
            }
        };
        check(&["a.*b", "^\\s*fn", "\\s+$", "\"[^\"]*\"", "a b", "(?-u:\\w)", "\\s"], Reach::Lines);
        check(&["a\\s+b", "(a|b\\s*c)", "^\\s*fn\\s+x", "(?:a\\s)+", "f\\W+g"], Reach::Blanks);
        check(&["(?s)a.*b", "a[\\s\\S]*?b", "a(?s:.)b", "[\\d\\D]"], Reach::Everything);
    }
    #[test]
    fn open_classes_in_the_middle_of_a_pattern_are_known() {
        for (pattern, expected) in [
            ("f\\([^)]*\\)", true),
            ("\"([^\"]*)\"", true),
            ("a\\D+b", true),
            ("a[^\"\\n]*b", false),
            ("a[^)]*", false),
            ("a\\S+b", false),
            ("a.*b", false),
        ] {
            assert_eq!(has_open_class(pattern), expected, "{pattern}");
        }
    }
}
