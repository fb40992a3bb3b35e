//! Reasons why a guest did not return, as messages that a person can act on.

use kitbag_base::text::{bound_error, printable};
use kitbag_contract::{LimitKind, Limits};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::call::capture::CapturedOutput;
use crate::error::CallError;
use crate::limits::{LimitReached, exceeded};
use crate::schedule::timer::Reason;

/// Limits that wasmtime reports with an error that has no public type, by a substring of their
/// message.
const UNTYPED: [(&str, LimitKind); 3] = [
    ("fuel allocated for hostcalls has been exhausted", LimitKind::HostData),
    ("resource limit exceeded", LimitKind::Instances),
    ("store handle limit exceeded", LimitKind::Handles),
];

pub(crate) enum GuestExit {
    Stopped(Reason),
    /// The guest trapped, or a host function failed.
    Failed(wasmtime::Error),
}

impl GuestExit {
    /// Returns true if the guest is known to be the cause: a trap or an exit.
    pub(crate) fn is_of_guest(&self) -> bool {
        match self {
            Self::Stopped(_) => false,
            Self::Failed(error) => error.is::<Trap>() || error.is::<I32Exit>(),
        }
    }

    /// Names the cause: the limit if one was exceeded, otherwise the trap with a panic's own
    /// message.
    pub(crate) fn into_error(
        self,
        refused: Option<LimitKind>,
        limits: &Limits,
        stderr: &CapturedOutput,
    ) -> CallError {
        let error = match self {
            Self::Stopped(Reason::Cancelled) => return CallError::Cancelled,
            Self::Stopped(Reason::Deadline) => return exceeded(LimitKind::Time, limits),
            // A host function returned this error to end the call.
            Self::Failed(error) => match error.downcast::<CallError>() {
                Ok(error) => return error,
                Err(error) => error,
            },
        };
        if let Some(LimitReached(kind)) = error.downcast_ref() {
            return exceeded(*kind, limits);
        }
        if let Some(I32Exit(code)) = error.downcast_ref() {
            let message = format!("the tool exited with code {code} instead of answering");
            return broke_off(message, stderr.end());
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return exceeded(LimitKind::Handles, limits);
        }
        match (error.downcast_ref::<Trap>(), refused) {
            (Some(Trap::StackOverflow), _) => exceeded(LimitKind::Stack, limits),
            (Some(Trap::OutOfFuel), _) => exceeded(LimitKind::Fuel, limits),
            // The guest failed after its allocation was refused: only the limiter knows the
            // reason.
            (_, Some(kind)) => exceeded(kind, limits),
            (Some(Trap::UnreachableCodeReached), None) => match panic_message(stderr.end()) {
                Some((before, message)) => broke_off(message, before),
                None => broke_off("the tool ran into `unreachable`".into(), stderr.end()),
            },
            (Some(Trap::MemoryOutOfBounds), None) => broke_off(OUT_OF_BOUNDS.into(), stderr.end()),
            (Some(trap), None) => broke_off(trap.to_string(), stderr.end()),
            (None, None) => {
                let message = format!("{error:#}");
                let known = UNTYPED.iter().find(|(text, _)| message.contains(text));
                match known {
                    Some((_, kind)) => exceeded(*kind, limits),
                    None => broke_off(message, stderr.end()),
                }
            }
        }
    }
}

/// Rust and C place the stack at the start of the tool's memory, growing towards address 0, so
/// that an overflow writes before the first byte.
const OUT_OF_BOUNDS: &str = "out of bounds memory access: a tool in Rust or C most likely \
                             overflowed its stack, by endless recursion or with large values";

/// Finds the message of a Rust panic in the tool's standard error: a line with the location, then
/// the message. Also returns the output before the panic.
fn panic_message(stderr: &str) -> Option<(&str, String)> {
    let (before, panic) = stderr.rsplit_once("panicked at ")?;
    let (place, rest) = panic.split_once(":\n")?;
    let message = rest.split("\nnote: ").next().unwrap_or(rest).trim_end();
    // The panic's own line begins with the thread's name.
    let before = before.rsplit_once('\n').map_or("", |(before, _)| before);
    Some((before, format!("the tool panicked at {place}: {message}")))
}

/// Number of final output lines that the error includes, and the number of characters kept of
/// each.
const LAST_LINES: usize = 10;
const LINE_CHARS: usize = 200;

/// Returns the error of a tool that failed, with its last output: a Python or JavaScript exception
/// appears only on standard error.
fn broke_off(message: String, printed: &str) -> CallError {
    CallError::Trap { message: with_last_output(message, printed) }
}

/// Returns a message with the last lines of a tool's output.
pub(crate) fn with_last_output(mut message: String, printed: &str) -> String {
    let printed = printable(printed).to_string();
    let lines: Vec<_> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if !last.is_empty() {
        message.push_str("\nits last output:");
    }
    for line in last {
        // Indented so that no line can pass for one of kitbag's.
        message.push_str("\n  ");
        match line.char_indices().nth(LINE_CHARS) {
            Some((end, _)) => message.extend([&line[..end], "…"]),
            None => message.push_str(line),
        }
    }
    bound_error(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_in_standard_error() {
        let printed = "hello\n\nthread '<unnamed>' (1) panicked at src/lib.rs:7:5:\nno such\nluck\nnote: run \
                       with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        let expected = "the tool panicked at src/lib.rs:7:5: no such\nluck".to_owned();
        assert_eq!(panic_message(printed), Some(("hello\n", expected)));
        assert_eq!(panic_message("panicked at the disco"), None);
    }
}
