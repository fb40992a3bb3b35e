//! `docs/errors.md`: each kind of error with its exit code, its form over MCP and its fix.

use std::collections::HashSet;
use std::fmt::Write as _;

use kitbag::contract::{ErrorKind, LimitKind};
use kitbag::mcp::ErrorForm;

use crate::command_reference::assert_current;
use crate::exit;

const INTRODUCTION: &str = "\
# Error reference

Every kind of error with its fix. Messages name the file, line, key or limit concerned, and usually the line to
change. This page is generated from the tables in the code.

- **Exit code**: the exit code of `kitbag`.
- **`kind`**: the field of the error with `--json`.
- **MCP**: the form of the error over MCP. *result* is a result with `isError`, which the model reads; *retry* adds
  the advice to repeat the call; the numbers are errors of JSON-RPC. A dash is an error of the command line only.
";

/// Lists the kinds in the order of the exit codes, with meaning and fix.
fn kinds() -> Vec<(ErrorKind, &'static str, &'static str)> {
    use ErrorKind as K;
    vec![
        (
            K::Usage,
            "The command line, or a file that it names, is wrong",
            "`kitbag COMMAND --help` shows the arguments",
        ),
        (
            K::UnknownTool,
            "No tool has this name",
            "`kitbag list` shows the tools; the message suggests a similar name",
        ),
        (
            K::Disabled,
            "The tool is switched off",
            "`kitbag list` shows the reason; switch it on with `enable` or `[toolsets]`",
        ),
        (
            K::Arguments,
            "The arguments do not match the tool's schema",
            "`kitbag describe NAME` shows the arguments; the message has the JSON pointer of each problem",
        ),
        (
            K::State,
            "The state of a suspended call belongs to another call, is expired or was used",
            "make the call again",
        ),
        (
            K::ExcessGrant,
            "The call requests more grants than the tool has",
            "add the grant to the configuration, or omit it from the call",
        ),
        (
            K::ExcessLimit,
            "The call requests a higher limit than the tool has",
            "raise the limit in the configuration, or lower it in the call",
        ),
        (
            K::Declined,
            "A person declined the tool's question",
            "call again and answer, or do not repeat the call",
        ),
        (
            K::Answer,
            "An answer does not fit its question",
            "give an answer of the type that the message names",
        ),
        (
            K::Unanswered,
            "The tool asked a question, and no answer was given",
            "pass `--answer ID=VALUE`",
        ),
        (
            K::NoConsent,
            "Consent was not given, or no person could be asked",
            "run the command on a terminal, or add `--yes` after a review",
        ),
        (
            K::Configuration,
            "The configuration has a mistake",
            "`kitbag check` lists all mistakes with line and column",
        ),
        (
            K::Broken,
            "The tool is off because its configuration has a mistake",
            "fix the mistake that `kitbag check` reports",
        ),
        (
            K::PresetAnswer,
            "An answer in the configuration does not fit its question",
            "correct the value in `answers` of the tool",
        ),
        (
            K::MissingFile,
            "A file that the configuration names does not exist",
            "build or copy the file, or correct its path",
        ),
        (
            K::Limit(LimitKind::Memory),
            "The call reached a limit",
            "use the tool on less data, or raise the limit that the message names: under `[limits]`, in `[tools.NAME.limits]`, or with an option of `kitbag run`",
        ),
        (
            K::Size,
            "An answer, a call or kept data exceeds its size bound",
            "split the call, or raise the limit that the message names",
        ),
        (
            K::Depth,
            "Calls are nested more than four levels deep",
            "let the tool call the inner tool directly",
        ),
        (
            K::OpenFiles,
            "The process may not open more files",
            "raise the limit, for example with `ulimit -n 1024`",
        ),
        (
            K::Busy,
            "The maximum number of calls is running and waiting, or their memory is reserved",
            "repeat the call later; raise `memory` under `[serve]`",
        ),
        (
            K::LoadBusy,
            "No memory or place is free to compile or load a component",
            "repeat the call later; raise `memory` under `[serve]`",
        ),
        (
            K::Untrusted,
            "The workspace is not trusted, or requests more than you trusted",
            "`kitbag trust` shows the requests and asks you",
        ),
        (
            K::Grant,
            "No grant allows the call of another tool",
            "add the line of the message to the tool's grants; `kitbag why` checks it",
        ),
        (
            K::GrantUnavailable,
            "A grant cannot be given, such as a directory that does not exist",
            "correct the grant that the message names",
        ),
        (
            K::Secret,
            "A granted secret has no value or cannot be read",
            "`kitbag secret set NAME`; `kitbag secret test NAME` checks it",
        ),
        (
            K::Changed,
            "The component or its description differs from the lock file",
            "`kitbag update NAME` shows the difference and records it",
        ),
        (
            K::Link,
            "The path of the component has a link that a tool could have made",
            "use a path without that link, or remove the tool's write access to that directory",
        ),
        (
            K::Distrusted,
            "Another user can change the component",
            "correct owner and mode of the file that the message names, or add the directory to `[trust] directories`",
        ),
        (
            K::Audit,
            "The call cannot be logged, and `required = true` under `[audit]`",
            "free space or repair the log: `kitbag audit verify` names the damage",
        ),
        (K::Counts, "The counts of rates cannot be stored", "make the state directory writable"),
        (
            K::Inaccessible,
            "A file of kitbag, such as the cache or the secrets, cannot be read or changed",
            "correct the permissions of the path that the message names",
        ),
        (
            K::Trap,
            "The tool crashed",
            "the message has the tool's last output; report it to the author of the tool",
        ),
        (
            K::MayHaveActed,
            "The worker of the call is gone, and the tool may have changed or sent something",
            "check what happened, and call again if it did not; [guarantees](cluster-calls.md)",
        ),
        (
            K::Contract,
            "The tool breaks the contract: its schema, its answer or its question is not allowed",
            "report it to the author of the tool; `kitbag check` names a schema that is wrong",
        ),
        (
            K::Component,
            "The file is not a component that kitbag can run",
            "`kitbag inspect FILE` names the reason; rebuild the component",
        ),
        (
            K::Compiler,
            "The process that compiles components failed",
            "repeat the call; free memory for the compiler",
        ),
        (
            K::Output,
            "Standard output or a requested file cannot be written",
            "free space, or correct the path",
        ),
        (
            K::Rate,
            "The rate of the tool is used up",
            "wait for the time in the message, or raise `rate` of the tool",
        ),
        (
            K::Approval,
            "The call was not approved, or no person could be asked",
            "approve the call, pass `--approve`, or set `approve = \"never\"` for the tool",
        ),
        (K::Cancelled, "The call was cancelled", "make the call again"),
        (
            K::System,
            "The machine or the embedding program does not provide a resource",
            "correct the cause in the message",
        ),
        (K::Internal, "kitbag itself failed", "report the message as a bug"),
    ]
}

/// Returns whether the kind is an error of the command line only.
fn is_command_line(kind: ErrorKind) -> bool {
    use ErrorKind as K;
    matches!(
        kind,
        K::Usage
            | K::Unanswered
            | K::NoConsent
            | K::Configuration
            | K::OpenFiles
            | K::Inaccessible
            | K::Output
    )
}

#[test]
fn the_error_reference_is_current() {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| error | exit code | `kind` | MCP | fix |\n|---|---|---|---|---|\n");
    let kinds = kinds();
    for (kind, meaning, fix) in &kinds {
        let (code, word) = exit::of_kind(*kind);
        // A question is not printed as an error.
        let word =
            if *kind == ErrorKind::Unanswered { "–".to_owned() } else { format!("`{word}`") };
        let form = match ErrorForm::of(*kind) {
            _ if is_command_line(*kind) => "–",
            ErrorForm::InvalidParams => "-32602",
            ErrorForm::Internal => "-32603",
            ErrorForm::Result { is_transient: true } => "result, retry",
            ErrorForm::Result { is_transient: false } => "result",
        };
        let _ = writeln!(page, "| {meaning} | {} | {word} | {form} | {fix} |", code as u8);
    }
    assert_current("errors.md", &page);
    let codes: Vec<_> = kinds.iter().map(|(kind, ..)| exit::of_kind(*kind).0 as u8).collect();
    assert!(codes.is_sorted(), "{codes:?}");
}

#[test]
fn the_error_reference_has_every_kind() {
    let source = include_str!("../contract/src/error_kind.rs");
    let (_, variants) = source.split_once("pub enum ErrorKind {").unwrap();
    let (variants, _) = variants.split_once("\n}").unwrap();
    let variants = variants.lines().filter(|line| line.ends_with(',')).count();
    let kinds = kinds();
    let distinct: HashSet<_> = kinds.iter().map(|(kind, ..)| kind).collect();
    assert_eq!((kinds.len(), distinct.len()), (variants, variants));
}
