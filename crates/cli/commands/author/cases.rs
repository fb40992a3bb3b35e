//! Case files: calls of a tool and their expected answers.

use std::fmt;
use std::ops::Range;

use kitbag::base::text::shown;
use kitbag::host::RecordedResponse;
use kitbag::policy::http::HttpRequest;

/// A file of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaseFile {
    lines: Vec<String>,
    pub(crate) cases: Vec<Case>,
}

/// One call, and what it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    /// The index of the line with the call.
    line: usize,
    pub(crate) setup: Setup,
    pub(crate) tool: String,
    /// A JSON object.
    pub(crate) arguments: String,
    /// The answers to questions, by the id of the question.
    pub(crate) answers: Vec<(String, String)>,
    /// The expected lines.
    pub(crate) expected: Vec<String>,
    /// The indices of these lines in the file.
    range: Range<usize>,
}

/// The files, responses and grants of a block of calls. A blank line ends the block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// Files of the workspace, by path, with their contents.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) responses: Vec<RecordedResponse>,
    /// Further grants, each as `KIND=GRANT`.
    pub(crate) grants: Vec<String>,
    /// True if the tool may change files of the workspace.
    pub(crate) may_write: bool,
}

/// A mistake in a case file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CaseError {
    /// The number of the line, from 1.
    pub(crate) line: usize,
    reason: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Case {
    /// Returns the number of the line with the call, from 1.
    pub(crate) fn number(&self) -> usize {
        self.line + 1
    }
}

impl CaseFile {
    /// Reads the text of a case file.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub(crate) fn parse(text: &str) -> Result<Self, CaseError> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (mut cases, mut setup) = (Vec::new(), Setup::default());
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let failed = |reason: String| CaseError { line: at + 1, reason };
            if line.trim().is_empty() {
                setup = Setup::default();
            } else if line.starts_with(['=', '!', '?', '+']) {
                return Err(failed("there is no call above this line".into()));
            } else if !line.starts_with('#') && !setup.read(line).map_err(failed)? {
                let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
                if serde_json::from_str::<serde_json::Map<_, _>>(arguments).is_err() {
                    let reason =
                        format!("the arguments of `{}` are not a JSON object", shown(tool));
                    return Err(failed(reason));
                }
                let mut case = Case {
                    line: at,
                    setup: setup.clone(),
                    tool: tool.to_owned(),
                    arguments: arguments.to_owned(),
                    ..Case::default()
                };
                at = case.read_below(&lines, at + 1);
                cases.push(case);
                continue;
            }
            at += 1;
        }
        Ok(Self { lines, cases })
    }

    /// Returns the text with these lines instead of the expected ones.
    pub(crate) fn with_answers(&self, answers: &[Vec<String>]) -> String {
        let mut text = String::new();
        let mut at = 0;
        for (case, answer) in self.cases.iter().zip(answers) {
            let kept = self.lines[at..case.range.start].iter();
            for line in kept.chain(answer) {
                text.push_str(line);
                text.push('\n');
            }
            at = case.range.end;
        }
        for line in &self.lines[at..] {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

impl Case {
    /// Reads the lines below a call. Returns the index of the next line.
    fn read_below(&mut self, lines: &[String], mut at: usize) -> usize {
        while let Some((id, answer)) = lines.get(at).and_then(|line| answer(line)) {
            self.answers.push((id.to_owned(), answer.to_owned()));
            at += 1;
        }
        let start = at;
        while lines.get(at).is_some_and(|line| line.starts_with(['=', '!', '?', '+'])) {
            at += 1;
        }
        self.expected = lines[start..at].iter().map(|line| line.trim_end().to_owned()).collect();
        self.range = start..at;
        at
    }
}

impl Setup {
    /// Reads a line that is not a call. Returns false for a call.
    fn read(&mut self, line: &str) -> Result<bool, String> {
        let Some((word, rest)) = line.split_once(' ') else { return Ok(false) };
        // A tool may have such a name; its arguments are an object.
        if rest.trim_start().starts_with('{') {
            return Ok(false);
        }
        match word {
            "file" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                // The files of kitbag could grant a tool directories of this machine.
                let is_plain = |part: &str| {
                    !["", ".", ".."].contains(&part)
                        && !part.to_ascii_lowercase().starts_with(".kitbag")
                };
                if !path.split('/').all(is_plain) {
                    return Err(format!(
                        "`{}` is not a path of a file in the workspace outside `.kitbag`",
                        shown(path)
                    ));
                }
                self.files.push((path.to_owned(), unescaped(content)?));
            }
            "http" => self.responses.push(response(rest)?),
            "grant" if rest == "write" => self.may_write = true,
            "grant" => self.grants.push(rest.to_owned()),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Reads `? id = answer`.
fn answer(line: &str) -> Option<(&str, &str)> {
    let (id, answer) = line.strip_prefix('?')?.split_once('=')?;
    Some((id.trim(), answer.trim()))
}

/// Reads `METHOD URL STATUS BODY`.
fn response(text: &str) -> Result<RecordedResponse, String> {
    let mut words = text.splitn(4, ' ');
    let (Some(method), Some(url), Some(status)) = (words.next(), words.next(), words.next()) else {
        return Err("write `http METHOD URL STATUS BODY`".into());
    };
    let request = HttpRequest::new(method, url).map_err(|error| error.reason)?;
    let status = status.parse().ok().filter(|status| (200..600).contains(status));
    let status = status.ok_or_else(|| "a status is a number from 200 to 599".to_owned())?;
    let body = unescaped(words.next().unwrap_or_default())?;
    let media = match serde_json::from_str::<serde_json::Value>(&body) {
        Ok(_) => "application/json",
        Err(_) if body.trim_start().starts_with('<') => "text/html; charset=utf-8",
        Err(_) => "text/plain; charset=utf-8",
    };
    let headers = vec![("content-type".to_owned(), media.to_owned())];
    Ok(RecordedResponse { request, status, headers, body: body.into_bytes() })
}

/// Replaces `\n`, `\t` and `\\`. JSON is unchanged.
fn unescaped(text: &str) -> Result<String, String> {
    if text.starts_with(['{', '[', '"']) {
        return Ok(text.to_owned());
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('\\') => '\\',
            _ => return Err("the escapes are `\\n`, `\\t` and `\\\\`".into()),
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A file.
file notes.txt one\\ntwo
http GET https://a.example/x 200 {\"a\":\"\\n\"}
count {\"path\":\"notes.txt\"}
= 2 lines
=
count
? path = notes.txt
? path

file {\"name\":1}
! no
";

    #[test]
    fn cases_have_files_responses_answers_and_results() {
        let file = CaseFile::parse(TEXT).unwrap();
        let [first, second, third] = &file.cases[..] else { panic!("{file:?}") };
        assert_eq!(first.setup.files, [("notes.txt".to_owned(), "one\ntwo".to_owned())]);
        assert_eq!(first.setup.responses[0].body, br#"{"a":"\n"}"#);
        assert_eq!(first.setup.responses[0].headers[0].1, "application/json");
        assert_eq!((&*first.tool, &*first.arguments), ("count", r#"{"path":"notes.txt"}"#));
        assert_eq!(
            (first.number(), &first.expected[..]),
            (4, &["= 2 lines".into(), "=".into()][..])
        );
        assert_eq!(second.setup, first.setup);
        assert_eq!(second.answers, [("path".to_owned(), "notes.txt".to_owned())]);
        assert_eq!(second.expected, ["? path"]);
        assert_eq!(third.setup, Setup::default());
        assert_eq!((&*third.tool, &*third.arguments), ("file", r#"{"name":1}"#));
    }

    #[test]
    fn new_answers_replace_only_the_expected_lines() {
        let file = CaseFile::parse(TEXT).unwrap();
        let same: Vec<_> = file.cases.iter().map(|case| case.expected.clone()).collect();
        assert_eq!(file.with_answers(&same), TEXT);
        let new = [vec!["= a".to_owned()], vec![], vec!["= b".to_owned(), "= c".to_owned()]];
        let expected = TEXT.replace("= 2 lines\n=\n", "= a\n").replace("? path\n", "");
        let expected = expected.replace("! no", "= b\n= c");
        assert_eq!(file.with_answers(&new), expected);
    }

    #[test]
    fn mistakes_have_a_line_and_a_reason() {
        let check = |text: &str, line, reason: &str| {
            let error = CaseFile::parse(text).unwrap_err();
            assert_eq!((error.line, error.to_string().as_str()), (line, reason));
        };
        check("\n= a\n", 2, "there is no call above this line");
        check("count [1]\n", 1, "the arguments of `count` are not a JSON object");
        for path in ["../a", "/a", "a/../../b", "./a", ".kitbag/config.toml", "a/.Kitbag/b"] {
            let reason = "is not a path of a file in the workspace outside `.kitbag`";
            check(&format!("file {path} b\n"), 1, &format!("`{path}` {reason}"));
        }
        check("file a \\x\n", 1, "the escapes are `\\n`, `\\t` and `\\\\`");
        check("http GET\n", 1, "write `http METHOD URL STATUS BODY`");
        check("http GET https://a.example/ 99\n", 1, "a status is a number from 200 to 599");
        check(
            "http GET ftp://a.example/ 200\n",
            1,
            "`ftp://a.example/` is refused: only `https` and `http` can be granted",
        );
    }
}
