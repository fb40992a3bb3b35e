//! What can be wrong with a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kitbag_contract::text::shown;
use kitbag_contract::{
    ByteSize, ContentDigestError, LEAST_SERVER_MEMORY, ParseLimitError, ToolNameError, shell,
};
use kitbag_policy::{ApprovalRuleError, ParseRatesError};

use crate::discover::Bound;
use crate::origin::{Origin, Sourced};
use crate::text::{own_file, shown_path};

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
    /// A file or directory cannot be read now, since this process has too many files open.
    #[error("cannot be read: {reason}")]
    TooManyFiles {
        /// What the operating system says.
        reason: String,
    },
    /// There is a directory where a file should be.
    #[error("is a directory; a file is expected here")]
    Directory,
    /// The extension of a component is not in lower case.
    #[error(
        "is not read: the name of a component ends with `.wasm`; rename it to `{}`",
        shown(file)
    )]
    Extension {
        /// The name that it should have.
        file: String,
    },
    /// There is something else where a directory should be.
    #[error("is not a directory")]
    NotADirectory,
    /// There is a FIFO, a socket or a device where a file should be.
    #[error("is not a regular file")]
    NotAFile,
    /// A file is far larger than any configuration.
    #[error("is larger than 1 MiB, which is the most that is read")]
    TooLarge,
    /// A workspace has more than is read.
    #[error(transparent)]
    Bound(#[from] Bound),
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
         `source = \"builtin\"`, or `script`"
    )]
    NoSource {
        /// The name of the tool.
        tool: String,
    },
    /// The user's own file says something of a tool that is not there.
    #[error("there is no tool `{tool}` here, and its table has no effect")]
    AbsentTool {
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
    /// Something else than a local tool is to replace a built-in.
    #[error("tool `{tool}` takes no `replaces`: only a local tool replaces a built-in; remove it")]
    ReplacesNothing {
        /// The name of the tool.
        tool: String,
    },
    /// Two tools are to replace one built-in.
    #[error("`{builtin}` is replaced by `{other}` already; remove one `replaces`")]
    ReplacedTwice {
        /// The built-in.
        builtin: String,
        /// The other tool.
        other: String,
    },
    /// A pattern of `[serve] tools` or `--tools` matches no tool.
    #[error("`{}` matches no tool", shown(pattern))]
    NoSuchTools {
        /// The pattern.
        pattern: String,
    },
    /// A toolset is switched that this binary was built without.
    #[error("this kitbag was built without the toolset `{toolset}`: it switches nothing")]
    AbsentToolset {
        /// The toolset.
        toolset: &'static str,
    },
    /// A name or a glob in `learned` or `disabled` of a topic matches no subject.
    #[error("`{}` in `knowledge.{}.{key}` matches no subject", shown(name), shown(topic))]
    NoSuchSubject {
        /// The name or glob.
        name: String,
        /// The id of the topic.
        topic: String,
        /// The list: `learned` or `disabled`.
        key: &'static str,
    },
    /// There is no such built-in.
    #[error("no built-in tool is named `{}`", shown(name))]
    UnknownBuiltin {
        /// The name that was given.
        name: String,
    },
    /// A local tool has the name of a built-in.
    #[error(
        "local tool `{tool}` has the name of a built-in tool; give it another one, or replace the \
         built-in with `replaces = \"{tool}\"` in `tools.{tool}`"
    )]
    ShadowsBuiltin {
        /// The name of both.
        tool: String,
    },
    /// A table names the source of a tool that the embedding program brings.
    #[error(
        "tool `{tool}` takes no `{key}`: its component comes from the program; remove the key, or \
         give the tool of this table another name"
    )]
    FixedByProgram {
        /// The name of the tool.
        tool: String,
        /// The key that has no place there.
        key: &'static str,
    },
    /// A local tool has the name of one that the embedding program brings.
    #[error("local tool `{tool}` has the name of a tool of the program; give it another one")]
    ShadowsProgram {
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
    /// A component in `.kitbag/tools/` has the name of a tool of the user's own file.
    #[error(
        "is not used: `{tool}` is the tool of your own file ({own}); give this one another name"
    )]
    UnusedComponent {
        /// The name of both.
        tool: String,
        /// Where the user's own file says what it stands for.
        own: Origin,
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
    /// The header of a script does not end.
    #[error(
        "this header does not end: lines that begin with `# ` follow, or `#` alone, and then `# ///`"
    )]
    UnclosedHeader,
    /// A script has a second header.
    #[error("a script has one header, and this is another one; remove it")]
    SecondHeader,
    /// A line looks like the first one of a header.
    #[error("a header begins with `# /// kitbag`, as this line almost does; write it so")]
    HeaderForm,
    /// A link leads to a script.
    #[error(
        "a symbolic link leads to it; a script lies in `.kitbag/scripts` of the workspace itself: put \
         the file there"
    )]
    LinkedScript,
    /// There is no such script.
    #[error("no script in `.kitbag/scripts` is named `{}`", shown(name))]
    UnknownScript {
        /// The name that was given.
        name: String,
    },
    /// The user's own file names a script.
    #[error(
        "this file is for all workspaces, and a script is one of a workspace: name it in its \
         `.kitbag/config.toml`"
    )]
    OwnScript,
    /// A tool that is something else names a script.
    #[error("tool `{tool}` takes no `script`: {is}; remove it")]
    NotAScript {
        /// The name of the tool.
        tool: String,
        /// What it is, as a sentence.
        is: &'static str,
    },
    /// A script is said to be another kind of tool.
    #[error("`{tool}` is the script `{}`, which takes no `{key}`; remove it", shown_path(script))]
    FixedByScript {
        /// The name of the tool.
        tool: String,
        /// The script, as it is shown.
        script: PathBuf,
        /// The key that has no place there.
        key: &'static str,
    },
    /// A parameter of a script cannot be a variable.
    #[error(
        "`{}` cannot be a variable of a script: it takes letters, digits and `_`, does not \
         start with a digit, and is not a keyword of Python",
        shown(name)
    )]
    VariableName {
        /// Its name.
        name: String,
    },
    /// A key of a parameter means nothing for an answer.
    #[error("`{key}` means nothing for the answer of a tool; remove it")]
    MeaninglessInOutput {
        /// The key.
        key: &'static str,
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
    /// A path starts with `~/`, and the home directory is not known.
    #[error(
        "`{}` cannot be found: the home directory is not known; write an absolute path",
        shown(path)
    )]
    NoHome {
        /// The path as it was given.
        path: String,
    },
    /// A URL is where a path should be.
    #[error(
        "`{}` is a URL, and the path of a file is expected here: kitbag downloads nothing; \
         download the file, look at it with `kitbag inspect FILE`, and add it with \
         `kitbag add FILE`",
        shown(url)
    )]
    UrlAsPath {
        /// The URL.
        url: String,
    },
    /// A path is empty.
    #[error("the path is empty; write `.` for the workspace")]
    EmptyPath,
    /// A text is neither a size nor a duration nor a budget of fuel.
    #[error(transparent)]
    Limit(#[from] ParseLimitError),
    /// A text is not a list of rates.
    #[error(transparent)]
    Rate(#[from] ParseRatesError),
    /// A name is not that of a class of questions.
    #[error(
        "`{}` is no class: letters, digits, `:`, `_`, `-` and `.`, at most 64 of them, or the \
         beginning of one and `*`",
        shown(name)
    )]
    NotAClass {
        /// The name.
        name: String,
    },
    /// A name is not that of a rule by which answers are looked at.
    #[error("there is no rule `{}`", shown(name))]
    UnknownScreenRule {
        /// The name.
        name: String,
    },
    /// A value does not say before which calls a person is asked.
    #[error(transparent)]
    Approve(#[from] ApprovalRuleError),
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
    /// The audit log is to be smaller than it can be.
    #[error("`audit.size` is `{value}`; the log needs at least `{least}`")]
    SmallAuditLog {
        /// What it is set to.
        value: ByteSize,
        /// The least.
        least: ByteSize,
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
    /// A file of what was recorded has another form.
    #[error(
        "this file has version {found}, and this kitbag reads version {known}; take another version \
         of kitbag"
    )]
    LockVersion {
        /// The version of the file.
        found: u64,
        /// The version that is read.
        known: u64,
    },
    /// A text is not a digest.
    #[error(transparent)]
    Digest(#[from] ContentDigestError),
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
    /// A grant cannot be given. Each kind of grant has its own reasons.
    #[error("{reason}")]
    Grant {
        /// The key of the kind under `grants`.
        kind: &'static str,
        /// Why not, and what helps.
        reason: String,
    },
    /// Connections cannot be made as `[network]` says.
    #[error("{reason}")]
    Network {
        /// Why not, and what helps.
        reason: String,
    },
    /// What a workspace grants is not within the ceiling, and does not count.
    #[error(
        "this grant does not count: what the files and components of a workspace are granted \
         counts only within `[ceiling.grants]` of your own file{}; to allow it, have \
         `[ceiling.grants]` in {} include `{setting}`",
        ceiling.as_ref().map(|place| format!(" ({place})")).unwrap_or_default(),
        own_file(file)
    )]
    BeyondGrantCeiling {
        /// Where the ceiling of its kind stands. `None`: there is none.
        ceiling: Option<Box<Origin>>,
        /// The ceiling that would do, as it stands in a file.
        setting: String,
        /// The person's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// What a workspace grants that is not trusted.
    #[error("this grant does not count, since the workspace is not trusted; see `kitbag trust`")]
    UntrustedGrant,
    /// A topic of an untrusted workspace is outside of it, or looks like a secret.
    #[error(
        "the topic `{}` is left out: `{}` is outside of the workspace or looks like a secret, and \
         the workspace is not trusted; see `kitbag trust`",
        shown(topic),
        shown_path(path)
    )]
    UntrustedTopic {
        /// Its id.
        topic: String,
        /// Where it leads.
        path: PathBuf,
    },
    /// The variable by which a workspace is trusted has another value.
    #[error("`{}` is not a value of this variable; set it to `1`, or unset it", shown(value))]
    TrustVariable {
        /// The value.
        value: String,
    },
    /// What a workspace grants takes the place of what the user's own file grants the tool, and
    /// not all of it counts.
    #[error(
        "`{kind}` of the workspace takes the place of what your own file grants the tool ({own}), and \
         not all of it counts; without it your own grants count here"
    )]
    ReplacesOwnGrants {
        /// The key of the kind under `grants`.
        kind: &'static str,
        /// Where the user's own grants stand.
        own: Box<Origin>,
    },
    /// A mistake in a file outside of the workspace, to which a link of the workspace leads.
    #[error(
        "there is a mistake here, and nothing of this file is shown, since a link leads to it from \
         the workspace; put a copy into the workspace to see it"
    )]
    Outside,
    /// A tool names a secret that the user does not have.
    #[error(
        "there is no secret `{name}`; keep one with `{} --to 'https://…'`",
        shell::command(["kitbag", "secret", "set", name])
    )]
    NoSecret {
        /// Its name.
        name: String,
    },
    /// A tool may call one that is not there.
    #[error(
        "`{alias}` is `{tool}`, and no tool has that name: a call of it fails, where no program brings \
         the tool{hint}"
    )]
    NoTool {
        /// The alias.
        alias: String,
        /// The name of the tool.
        tool: String,
        /// Which one was most likely meant: empty, or the end of a sentence.
        hint: String,
    },
    /// What is granted for one call is not within the ceiling.
    #[error(
        "a call is granted no more than `[ceiling.grants]` of your own file allows; to allow it, \
         have `[ceiling.grants]` in {} include `{setting}`",
        own_file(file)
    )]
    CallGrantCeiling {
        /// The ceiling that would do, as it stands in a file.
        setting: String,
        /// The person's own file, where it is known.
        file: Option<Arc<Path>>,
    },
    /// What is granted for one call is of no kind that can be.
    #[error(
        "`{}` cannot be granted for one call; write KIND=GRANT, where the kind is {known}",
        shown(kind)
    )]
    CallGrantKind {
        /// The kind that was given.
        kind: String,
        /// Those that there are, quoted.
        known: String,
    },
    /// A variable that is granted is not set.
    #[error("the variable `{name}` is not set, so that the tool does not find it")]
    UnsetVariable {
        /// Its name.
        name: String,
    },
    /// A variable that is granted has a value that no guest can be given.
    #[error("the value of the variable `{name}` {reason}, so that the tool does not find it")]
    UnusableVariable {
        /// Its name.
        name: String,
        /// What is wrong with the value.
        reason: &'static str,
    },
    /// A variable that is granted most likely holds a secret.
    #[error(
        "`{name}` looks like a secret, which the tool can read and pass on as long as it is granted \
         like this"
    )]
    SecretVariable {
        /// Its name.
        name: String,
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
    /// A topic has a title without visible characters.
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

fn within(table: &str) -> String {
    if table.is_empty() { "at the top level".to_owned() } else { format!("in `{table}`") }
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
