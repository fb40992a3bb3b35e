//! The exit codes of the program.

use std::process::ExitCode;

use kitbag::contract::ErrorKind;

/// The exit code of the process.
///
/// `docs/` and the help of `kitbag` repeat this list; a test compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    ToolError = 1,
    /// The command line or the arguments are wrong.
    Usage = 2,
    /// The tool, or kitbag, asked a question that was not answered.
    Question = 3,
    /// The configuration is wrong, or names a missing file.
    Configuration = 4,
    Limit = 5,
    /// A grant cannot be provided, the request of `why` is denied, a workspace is not trusted, or a
    /// component does not match the lock file.
    Denied = 6,
    /// The tool trapped, or is not a component that kitbag can run.
    Trap = 7,
    /// Standard output or a requested file cannot be written.
    Output = 8,
    /// The tool exceeded its rate limit.
    Rate = 9,
    /// The call was not approved: no person could be asked, or the person refused.
    Approval = 10,
    Interrupted = 130,
    Bug = 255,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns the exit code of an error kind, and the kind's name in JSON.
pub(crate) fn of_kind(kind: ErrorKind) -> (Exit, &'static str) {
    match kind {
        ErrorKind::Answer
        | ErrorKind::Arguments
        | ErrorKind::Declined
        | ErrorKind::Disabled
        | ErrorKind::ExcessGrant
        | ErrorKind::ExcessLimit
        | ErrorKind::State
        | ErrorKind::UnknownTool
        | ErrorKind::Usage => (Exit::Usage, "usage"),
        ErrorKind::Unanswered => (Exit::Question, "bug"),
        ErrorKind::NoConsent => (Exit::Question, "denied"),
        ErrorKind::Broken | ErrorKind::Configuration | ErrorKind::PresetAnswer => {
            (Exit::Configuration, "configuration")
        }
        ErrorKind::MissingFile => (Exit::Configuration, "not-found"),
        ErrorKind::Busy
        | ErrorKind::Depth
        | ErrorKind::Limit(_)
        | ErrorKind::LoadBusy
        | ErrorKind::OpenFiles
        | ErrorKind::Size => (Exit::Limit, "limit"),
        ErrorKind::Audit
        | ErrorKind::Changed
        | ErrorKind::Counts
        | ErrorKind::Distrusted
        | ErrorKind::Grant
        | ErrorKind::GrantUnavailable
        | ErrorKind::Inaccessible
        | ErrorKind::Link
        | ErrorKind::Secret
        | ErrorKind::Untrusted => (Exit::Denied, "denied"),
        ErrorKind::Contract | ErrorKind::Trap => (Exit::Trap, "trap"),
        ErrorKind::MayHaveActed => (Exit::Trap, "may-have-acted"),
        ErrorKind::Compiler | ErrorKind::Component => (Exit::Trap, "invalid-component"),
        ErrorKind::Output => (Exit::Output, "output"),
        ErrorKind::Rate => (Exit::Rate, "rate"),
        ErrorKind::Approval => (Exit::Approval, "approval"),
        ErrorKind::Cancelled => (Exit::Interrupted, "cancelled"),
        ErrorKind::Internal | ErrorKind::System => (Exit::Bug, "bug"),
    }
}

/// The list for the help text.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done
  1    the tool answered with an error
  2    wrong usage or arguments
  3    a question without an answer, or consent was not given
  4    wrong configuration, or a file that it names is missing
  5    a limit was reached
  6    denied: missing grant, untrusted workspace, or the component does not match the lock file
  7    the tool trapped, or the file is not a component that kitbag can run
  8    standard output or a requested file cannot be written
  9    the rate of the tool is used up
  10   the call was not approved, or no person could be asked
  130  interrupted
  255  a bug in kitbag";
