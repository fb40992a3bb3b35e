//! Why a guest did not return, in words that a person can act on.

use kitbag_base::text::{bound_error, printable};
use kitbag_contract::{LimitKind, Limits};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::call::capture::CapturedOutput;
use crate::error::CallError;
use crate::limits::{LimitReached, exceeded};
use crate::schedule::timer::Reason;

/// Limits that wasmtime reports with an error that has no public type, by the
/// text that tells.
const UNTYPED: [(&str, LimitKind); 3] = [
    ("fuel allocated for hostcalls has been exhausted", LimitKind::HostData),
    ("resource limit exceeded", LimitKind::Instances),
    ("store handle limit exceeded", LimitKind::Handles),
];

pub(crate) enum GuestExit {
    Stopped(Reason),
    /// It trapped, or a host function failed.
    Failed(wasmtime::Error),
}

impl GuestExit {
    /// Whether it is known to be the guest's own doing: a trap, or an exit.
    pub(crate) fn is_of_guest(&self) -> bool {
        match self {
            Self::Stopped(_) => false,
            Self::Failed(error) => error.is::<Trap>() || error.is::<I32Exit>(),
        }
    }

    /// Names what happened: the limit where there is one, else the trap, with a
    /// panic's own message.
    pub(crate) fn into_error(
        self,
        refused: Option<LimitKind>,
        limits: &Limits,
        stderr: &CapturedOutput,
    ) -> CallError {
        let error = match self {
            Self::Stopped(Reason::Cancelled) => return CallError::Cancelled,
            Self::Stopped(Reason::Deadline) => return exceeded(LimitKind::Time, limits),
            // Of a host function that has to end the call.
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
            // A guest whose wish was refused, and that broke off over it: nothing
            // but the limiter knows why.
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

/// The stack of Rust and C lies at the start of the tool's memory and grows towards its
/// end there, so that a call too many writes before the first byte.
const OUT_OF_BOUNDS: &str = "out of bounds memory access: where the tool was made with Rust or C, \
                             it has most likely overflowed its own stack, with a recursion that \
                             does not end or with large values on it";

/// The message of a Rust panic, from what the tool printed to standard error: a line
/// that says where, then the message. And what the tool printed before that.
fn panic_message(stderr: &str) -> Option<(&str, String)> {
    let (before, panic) = stderr.rsplit_once("panicked at ")?;
    let (place, rest) = panic.split_once(":\n")?;
    let message = rest.split("\nnote: ").next().unwrap_or(rest).trim_end();
    // The line of the panic itself begins with the thread's name.
    let before = before.rsplit_once('\n').map_or("", |(before, _)| before);
    Some((before, format!("the tool panicked at {place}: {message}")))
}

/// How many of the lines that a tool printed last are in its error, and how many
/// characters each may have.
const LAST_LINES: usize = 10;
const LINE_CHARS: usize = 200;

/// The error of a tool that broke off, with what it printed last: an exception of
/// Python's or JavaScript's is in its standard error and nowhere else.
fn broke_off(mut message: String, printed: &str) -> CallError {
    let printed = printable(printed).to_string();
    let lines: Vec<_> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if !last.is_empty() {
        message.push_str("\nit printed last:");
    }
    for line in last {
        // Indented, so that no line looks like one of kitbag's.
        message.push_str("\n  ");
        match line.char_indices().nth(LINE_CHARS) {
            Some((end, _)) => message.extend([&line[..end], "…"]),
            None => message.push_str(line),
        }
    }
    bound_error(&mut message);
    CallError::Trap { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_in_what_was_printed() {
        let printed = "hello\n\nthread '<unnamed>' (1) panicked at src/lib.rs:7:5:\nno such\nluck\nnote: run \
                       with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        let expected = "the tool panicked at src/lib.rs:7:5: no such\nluck".to_owned();
        assert_eq!(panic_message(printed), Some(("hello\n", expected)));
        assert_eq!(panic_message("panicked at the disco"), None);
    }
}
