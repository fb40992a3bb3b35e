//! What is wrong with a configuration, and where.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::text::{is_hidden, shown};
use kitbag_contract::{ByteSize, LEAST_SERVER_MEMORY, ParseLimitError, ToolNameError};
use kitbag_policy::GuestPathError;

use crate::file::SourceFile;
use crate::origin::{Origin, Sourced};
use crate::text::shown_path;
use crate::written::{At, Span};

/// Everything that is wrong with a configuration, as far as it could be found
/// in one go: at least one [`Diagnostic`], in the order of files and lines.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct ConfigErrors {
    diagnostics: Vec<Diagnostic>,
}

/// One thing that is wrong, where it stands, and what was likely meant.
///
/// Reads as
///
/// ```text
/// .kitbag/config.toml:4:1: unknown key `desciption` in `tools.word_count`
///   4 | desciption = "Count words"
///     | ^^^^^^^^^^
///   did you mean `description`?
/// ```
///
/// Whatever comes from a file is escaped, so that it can be written to a
/// terminal.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// What it is about: a place in a file, a file, a variable or a flag.
    pub origin: Origin,
    /// What is wrong.
    pub problem: Problem,
    /// The line in question, where there is one.
    pub excerpt: Option<Excerpt>,
    /// What to do about it, as a fragment: ``did you mean `description`?``.
    pub hint: Option<String>,
}

/// The line that a diagnostic is about, or the part of it around the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line as it is shown: escaped, and cut with `…` where it is long.
    pub text: String,
    /// What is meant: a range of the characters of `text`.
    pub mark: Range<usize>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A file or directory cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// What the operating system says.
        reason: String,
    },
    /// There is a directory where a file should be.
    #[error("is a directory; a file is expected here")]
    Directory,
    /// There is something else where a directory should be.
    #[error("is not a directory")]
    NotADirectory,
    /// There is a FIFO, a socket or a device where a file should be.
    #[error("is not a regular file")]
    NotAFile,
    /// A file is far larger than any configuration.
    #[error("is larger than 1 MiB, which is the most that is read")]
    TooLarge,
    /// A file is not UTF-8.
    #[error("is not UTF-8 from here on; save the file as UTF-8")]
    NotUtf8,
    /// A file is not TOML.
    #[error("syntax error: {message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// Values nest deeper than anything that is needed.
    #[error("tables and arrays nest deeper than {most} levels")]
    TooDeep {
        /// The deepest that is read.
        most: usize,
    },
    /// A key is not known.
    #[error("unknown key `{}` {}", shown(key), within(table))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table it stands in; empty at the top level.
        table: String,
    },
    /// A value is of another type.
    #[error("`{key}` takes {expected}, not {found}")]
    WrongType {
        /// The dotted key of the value.
        key: String,
        /// The type that it takes, with its article.
        expected: String,
        /// What stands there: its type, and the value where it is short.
        found: String,
    },
    /// A value is none of those that are possible.
    #[error("`{key}` takes {expected}, not `{}`", shown(found))]
    UnknownValue {
        /// The dotted key of the value.
        key: String,
        /// The values that it takes, quoted.
        expected: String,
        /// The value that stands there.
        found: String,
    },
    /// A key is missing.
    #[error("missing key `{}` {}", shown(key), within(table))]
    MissingKey {
        /// The key.
        key: String,
        /// The table that should have it.
        table: String,
    },
    /// A number is larger than any that is read.
    #[error("number `{}` is out of range", shown(number))]
    NumberOutOfRange {
        /// The number as it is written.
        number: String,
    },
    /// A value is not what the format asks for, in serde's words.
    #[error("{message}")]
    Rejected {
        /// What serde says.
        message: String,
    },
    /// A variable of the environment starts with `KITBAG_` and means nothing.
    #[error("unknown variable")]
    UnknownVariable,
    /// The workspace that was asked for is not a directory.
    #[error("workspace `{}` is not a directory", shown_path(path))]
    NoWorkspace {
        /// The path that was given.
        path: PathBuf,
    },
    /// A name is not that of a tool.
    #[error(transparent)]
    ToolName(#[from] ToolNameError),
    /// A tool does not say where it comes from.
    #[error(
        "tool `{tool}` has no `source`; add `source = \"local\"` and `wasm`, \
         or `source = \"builtin\"`"
    )]
    NoSource {
        /// The name of the tool.
        tool: String,
    },
    /// A local tool does not say where its component is.
    #[error("local tool `{tool}` has no `wasm`; add the path of its component")]
    NoWasm {
        /// The name of the tool.
        tool: String,
    },
    /// A built-in is given what it brings along.
    #[error("built-in tool `{tool}` takes no `{key}`: {}; remove the key", fixed(key))]
    FixedByBuiltin {
        /// The name of the tool.
        tool: String,
        /// The key that has no place there.
        key: &'static str,
    },
    /// A local tool names a built-in.
    #[error("local tool `{tool}` takes no `builtin`; remove it, or write `source = \"builtin\"`")]
    BuiltinOfLocal {
        /// The name of the tool.
        tool: String,
    },
    /// There is no such built-in.
    #[error("no built-in tool is named `{}`", shown(name))]
    UnknownBuiltin {
        /// The name that was given.
        name: String,
    },
    /// A local tool has the name of a built-in.
    #[error("local tool `{tool}` has the name of a built-in tool; give it another one")]
    ShadowsBuiltin {
        /// The name of both.
        tool: String,
    },
    /// A built-in is renamed to the name of another one.
    #[error(
        "tool `{tool}` stands for the built-in `{builtin}`, but has the name of another \
         built-in; give it another one"
    )]
    TakenName {
        /// The name of the tool.
        tool: String,
        /// The built-in that it stands for.
        builtin: String,
    },
    /// Two components claim one name.
    #[error(
        "two tools are named `{tool}`: this one and `{}`; give one of them another name",
        shown_path(other)
    )]
    TwoTools {
        /// The name of both.
        tool: String,
        /// The component of the one in `.kitbag/tools/`, as it is shown.
        other: PathBuf,
    },
    /// A tool in `.kitbag/tools/` is said to be in another file, which is not there.
    #[error(
        "this file does not exist, and `{tool}` is the component `{}`; remove `wasm`",
        shown_path(other)
    )]
    MissingWasm {
        /// The name of the tool.
        tool: String,
        /// Its component in `.kitbag/tools/`, as it is shown.
        other: PathBuf,
    },
    /// A manifest stands there without the tool it describes.
    #[error("describes a tool that is not there; `{}` is missing", shown_path(missing))]
    NoComponent {
        /// The component, as it is shown.
        missing: PathBuf,
    },
    /// A manifest says what the file beside it already says.
    #[error("`{key}` has no place in a manifest: it describes `{tool}.wasm` beside it; remove it")]
    NotInManifest {
        /// The name of the tool.
        tool: String,
        /// The key that has no place there.
        key: &'static str,
    },
    /// A path in a person's own file is relative, where nothing is for it to be relative to.
    #[error(
        "`{}` is relative, and this file is for all workspaces; write an absolute path, or one \
         that starts with `~/`",
        shown(path)
    )]
    RelativePath {
        /// The path as it was given.
        path: String,
    },
    /// A path starts with `~/`, and nobody knows the home directory.
    #[error(
        "`{}` cannot be found: the home directory is not known; write an absolute path",
        shown(path)
    )]
    NoHome {
        /// The path as it was given.
        path: String,
    },
    /// A path is empty.
    #[error("the path is empty; write `.` for the workspace")]
    EmptyPath,
    /// A text is neither a size nor a duration nor a budget of fuel.
    #[error(transparent)]
    Limit(#[from] ParseLimitError),
    /// A file of a workspace sets a limit above its ceiling.
    #[error(
        "`{key}` is `{value}`, above the ceiling of `{}` ({}); lower it, or put \
         `{setting}` under `[ceiling]` in {}",
        ceiling.value,
        ceiling.origin,
        own_file(file)
    )]
    AboveCeiling {
        /// The dotted key of the limit.
        key: String,
        /// What it is set to, as it would be typed.
        value: String,
        /// The ceiling, as it would be typed, and who set it.
        ceiling: Box<Sourced<String>>,
        /// The ceiling that would do, as it stands in a file.
        setting: Box<str>,
        /// The person's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// A server is given less memory than it needs.
    #[error("`serve.memory` is `{value}`; a server needs at least `{LEAST_SERVER_MEMORY}`")]
    LittleServerMemory {
        /// What it is set to.
        value: ByteSize,
    },
    /// A file of a workspace gives a server more memory than the person's own file.
    #[error(
        "`serve.memory` is `{value}`, above `{}` ({}), which a workspace may only lower; lower it, \
         or put `memory = \"{value}\"` under `[serve]` in {}",
        own.value,
        own.origin,
        own_file(file)
    )]
    AboveServerMemory {
        /// What it is set to.
        value: ByteSize,
        /// What it may be, and who set that.
        own: Box<Sourced<ByteSize>>,
        /// The person's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// A file of a workspace has a table that only the user's own file may have.
    #[error(
        "`{key}` has no place in a workspace's file: only {} may hold it; remove it",
        own_file(file)
    )]
    NotOwnFile {
        /// The key that has no place there.
        key: &'static str,
        /// The person's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// A text is not a path inside the guest.
    #[error(transparent)]
    GuestPath(#[from] GuestPathError),
    /// A directory that is to be granted is not there.
    #[error("directory `{}` cannot be granted: {reason}", shown_path(host))]
    NoDirectory {
        /// The directory; absolute.
        host: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A tool is granted more directories than it can hold.
    #[error("{count} directories are granted, and {most} is the most; grant one that holds them")]
    TooManyGrants {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two directories would stand at one place.
    #[error(
        "two directories are granted as `{}`; give one of them another guest path",
        shown(guest)
    )]
    SameGuestPath {
        /// The path of both.
        guest: String,
    },
    /// A directory would stand where a built-in finds what each of its calls is given.
    #[error(
        "`{}` overlaps `{}`, which each call of the built-in `{builtin}` is given by itself; use \
         another guest path",
        shown(guest),
        shown(own)
    )]
    GivenByCall {
        /// The guest path of the grant.
        guest: String,
        /// The guest path of what the call is given.
        own: String,
        /// The built-in.
        builtin: String,
    },
    /// Two grants overlap and differ in what they allow.
    #[error(
        "`{}` (`{mode}`) and `{}` (`{other_mode}`) overlap; give them the same mode, or keep them \
         apart",
        shown(path),
        shown(other)
    )]
    Overlap {
        /// Guest path or directory of this grant.
        path: String,
        /// Its mode.
        mode: String,
        /// Guest path or directory of the other one.
        other: String,
        /// The mode of that.
        other_mode: String,
    },
    /// Writing there would change what decides what a tool may do.
    #[error(
        "`{}` cannot be granted for writing: no tool may change `{}`; use `mode = \"ro\"`, or \
         another directory",
        shown_path(host),
        shown_path(guarded)
    )]
    NeverWritable {
        /// The directory that is to be granted; absolute.
        host: PathBuf,
        /// What must not be changed.
        guarded: PathBuf,
    },
    /// A grant would let a tool write a repository, or in one, that has no working
    /// tree.
    #[error(
        "`{}` cannot be granted for writing: git takes `{}` for a repository without a working \
         tree, in which a tool could leave commands that git runs; use `mode = \"ro\"`, or another \
         directory",
        shown_path(host),
        shown_path(repository)
    )]
    RepositoryNeverWritable {
        /// The directory that is to be granted; absolute.
        host: PathBuf,
        /// The repository.
        repository: PathBuf,
    },
    /// A parameter has a name that the host uses.
    #[error(
        "parameter `{}` starts with `_`, which is reserved for the host; rename it",
        shown(name)
    )]
    ReservedParameter {
        /// Its name.
        name: String,
    },
    /// A parameter has a name that models do not take.
    #[error(
        "`{}` is not the name of a parameter: it takes 1 to 64 letters, digits, `_`, `-` and `.`",
        shown(name)
    )]
    ParameterName {
        /// Its name.
        name: String,
    },
    /// A key of a parameter means nothing with its type.
    #[error(
        "`{key}` means something for the type `{only}` only, and this {}",
        actual_type(actual, only)
    )]
    MisplacedKey {
        /// The key.
        key: &'static str,
        /// The type that it belongs to.
        only: &'static str,
        /// The type of the parameter, where it names one.
        actual: Option<&'static str>,
    },
    /// A key of a parameter means nothing for the elements of an array.
    #[error("`{key}` means nothing for the elements of an array; remove it")]
    MeaninglessInItems {
        /// The key.
        key: &'static str,
    },
    /// A list of possible values is empty.
    #[error("`enum` is empty, so that no value fits; list the values, or remove it")]
    EmptyEnum,
    /// A possible value is listed twice.
    #[error("`{}` is listed twice", shown(value))]
    DuplicateChoice {
        /// The value as JSON.
        value: String,
    },
    /// A number has no form in JSON.
    #[error("`{number}` cannot be handed to a tool: JSON has no such number")]
    NotJson {
        /// `nan`, `inf` or `-inf`.
        number: String,
    },
    /// A text is not the id of a topic.
    #[error(
        "`{}` is not the id of a topic: it has 1 to 64 characters, no `/`, nothing invisible, and \
         no space at its ends",
        shown(id)
    )]
    TopicId {
        /// The text.
        id: String,
    },
    /// A topic does not say where its documents are.
    #[error("topic `{}` has no `subjects`; add the directory of its documents", shown(topic))]
    NoSubjects {
        /// The id of the topic.
        topic: String,
    },
    /// A topic has a title that nobody can see.
    #[error("the title of topic `{}` is empty; remove it, and the id is shown", shown(topic))]
    EmptyTitle {
        /// The id of the topic.
        topic: String,
    },
    /// Two topics answer to one name.
    #[error(
        "topics `{}` and `{}` are both named `{}`, ignoring case; give one of them another \
         title or id",
        shown(topic),
        shown(other),
        shown(name)
    )]
    SameTopicName {
        /// The id of this topic.
        topic: String,
        /// The id of the other one.
        other: String,
        /// The name, as this topic has it.
        name: String,
    },
    /// A text is not a glob.
    #[error("`{}` is not a glob: {reason}", shown(glob))]
    Glob {
        /// The text.
        glob: String,
        /// Why not.
        reason: String,
    },
}

/// Collects diagnostics.
#[derive(Debug, Default)]
pub(crate) struct Report {
    diagnostics: Vec<(Rank, Diagnostic)>,
}

/// Files in the order of their layers and paths, then what has no line.
type Rank = (u8, Arc<Path>, u32);

impl ConfigErrors {
    /// The diagnostics, in the order of files and lines; never empty.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    fn render(&self) -> String {
        // A hostile file of 1 MiB can be wrong in 100,000 places.
        const MOST: usize = 100;
        let mut lines: Vec<_> =
            self.diagnostics.iter().take(MOST).map(Diagnostic::to_string).collect();
        if let Some(more) = self.diagnostics.len().checked_sub(MOST).filter(|more| *more > 0) {
            lines.push(format!("… and {more} more"));
        }
        lines.join("\n")
    }
}

impl Report {
    /// Takes down what is wrong at a place in a file.
    pub(crate) fn at<T: ?Sized>(&mut self, at: At<'_, T>, problem: impl Into<Problem>) {
        self.span(at.file, at.span, problem, None);
    }

    /// The same, with a hint.
    pub(crate) fn at_with<T: ?Sized>(
        &mut self,
        at: At<'_, T>,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        self.span(at.file, at.span, problem, hint);
    }

    /// Takes down what is wrong with a range of bytes.
    pub(crate) fn span(
        &mut self,
        file: &SourceFile,
        span: Span,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        let origin = file.origin(span.start);
        let excerpt = Some(Excerpt::new(file.text(), span));
        let rank = (file.layer() as u8, file.shown().clone(), span.start);
        self.diagnostics
            .push((rank, Diagnostic { origin, problem: problem.into(), excerpt, hint }));
    }

    /// Takes down what is wrong with something that has no lines.
    pub(crate) fn origin(
        &mut self,
        origin: Origin,
        problem: impl Into<Problem>,
        hint: Option<String>,
    ) {
        let path = match &origin {
            Origin::Found { path } | Origin::File { path, .. } => path.clone(),
            _ => Path::new("").into(),
        };
        let rank = (u8::MAX, path, 0);
        let diagnostic = Diagnostic { origin, problem: problem.into(), excerpt: None, hint };
        self.diagnostics.push((rank, diagnostic));
    }

    /// Takes over what another one has.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.diagnostics.append(&mut other.diagnostics);
    }

    /// Everything that was taken down, in order; `Ok` where that is nothing.
    pub(crate) fn finish(self) -> Result<(), ConfigErrors> {
        let mut ranked = self.diagnostics;
        if ranked.is_empty() {
            return Ok(());
        }
        ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
        Err(ConfigErrors {
            diagnostics: ranked.into_iter().map(|(_, diagnostic)| diagnostic).collect(),
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.problem)?;
        if let (Some(excerpt), Origin::File { line, .. }) = (&self.excerpt, &self.origin) {
            let number = line.to_string();
            let (before, marked) = (excerpt.mark.start, excerpt.mark.len());
            write!(f, "\n  {number} | {}\n  {:2$} | ", excerpt.text, "", number.len())?;
            write!(f, "{:before$}{:^<marked$}", "", "")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl Excerpt {
    /// Takes the line around a place.
    ///
    /// Looks at a bounded number of characters, so that many mistakes in one
    /// long line cost no more than in many lines. Widths are counted in
    /// characters: what takes two cells of a terminal moves the mark, which is
    /// better than tables of Unicode in the binary.
    fn new(text: &str, span: Span) -> Self {
        const MOST: usize = 120;
        const LEAST_BEFORE: usize = 40;
        let start = text.floor_char_boundary(span.start as usize);
        let end = span.end as usize;
        let rest = || line_end(&text[start..]).take(MOST + 1);
        let before: Vec<_> =
            text[..start].chars().rev().take_while(|c| *c != '\n').take(MOST + 1).collect();
        let room = MOST.saturating_sub(rest().count()).max(LEAST_BEFORE);
        let shown_before = before.len().min(room);

        let mut excerpt = Self { text: String::new(), mark: 0..0 };
        let mut width = 0;
        if shown_before < before.len() {
            excerpt.push('…', &mut width);
        }
        for c in before[..shown_before].iter().rev() {
            excerpt.push(*c, &mut width);
        }
        excerpt.mark = width..width + 1;
        for (count, (at, c)) in rest().enumerate() {
            if count == MOST - shown_before {
                excerpt.push('…', &mut width);
                break;
            }
            excerpt.push(c, &mut width);
            if start + at < end {
                excerpt.mark.end = width;
            }
        }
        excerpt
    }

    fn push(&mut self, c: char, width: &mut usize) {
        let mut push = |c| {
            self.text.push(c);
            *width += 1;
        };
        match c {
            '\t' => push(' '),
            c if is_hidden(c) => c.escape_debug().for_each(push),
            c => push(c),
        }
    }
}

/// The characters up to the end of the line, with their offsets.
fn line_end(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().take_while(|(at, c)| *c != '\n' && !text[*at..].starts_with("\r\n"))
}

fn within(table: &str) -> String {
    if table.is_empty() { "at the top level".to_owned() } else { format!("in `{table}`") }
}

pub(crate) fn own_file(file: &Option<Arc<Path>>) -> String {
    match file {
        Some(path) => format!("your own `{}`", shown_path(path)),
        None => "your own `config.toml`".to_owned(),
    }
}

fn actual_type(actual: &Option<&'static str>, only: &str) -> String {
    match actual {
        Some(actual) => format!("is of type `{actual}`"),
        None => format!("names none; add `type = \"{only}\"`"),
    }
}

fn fixed(key: &str) -> &'static str {
    match key {
        "parameters" => "it brings its own",
        _ => "its component is part of kitbag",
    }
}
