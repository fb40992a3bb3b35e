//! Exit codes: the one place where they are given out.

use std::process::ExitCode;

/// How the process ends.
///
/// `docs/` and the help of `kitbag` repeat this list; a test holds them to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The tool answered with an error.
    ToolError = 1,
    /// The command line or the arguments are wrong.
    Usage = 2,
    /// The tool asked a question that was not answered, or kitbag one.
    Question = 3,
    /// The configuration is wrong, or names a file that is missing.
    Configuration = 4,
    /// The tool ran into a limit.
    Limit = 5,
    /// Something that was granted cannot be given, what `why` asks about is denied, a workspace is
    /// not trusted, or a component is not the one that was added.
    Denied = 6,
    /// The tool broke off, or is no component that kitbag can run.
    Trap = 7,
    /// Standard output cannot be written, or a file that was asked for.
    Output = 8,
    /// The tool was called more often than its rate allows.
    Rate = 9,
    /// The call was not approved: nobody could be asked, or they said no.
    Approval = 10,
    /// Interrupted, with Ctrl-C for one.
    Interrupted = 130,
    /// A bug in kitbag.
    Bug = 255,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The list for the help text.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done
  1    the tool answered with an error
  2    wrong usage or arguments
  3    a question without an answer, or without a yes
  4    wrong configuration, or a file it names is missing
  5    a limit
  6    denied: by a grant, without trust, or as another component than was added
  7    a trap, or no component that kitbag can run
  8    standard output, or a file that was asked for, cannot be written
  9    the rate of the tool is used up
  10   the call was not approved, or nobody could be asked
  130  interrupted
  255  a bug in kitbag";
