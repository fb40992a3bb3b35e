//! Why a guest did not return, in words that a person can act on.

use kitbag_contract::{LimitKind, Limits};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::capture::Captured;
use crate::error::CallError;
use crate::limits::{Refused, exceeded};
use crate::timer::Reason;

/// Limits that wasmtime reports with an error that has no public type, by the
/// text that tells.
const UNTYPED: [(&str, LimitKind); 3] = [
    ("fuel allocated for hostcalls has been exhausted", LimitKind::HostData),
    ("resource limit exceeded", LimitKind::Instances),
    ("store handle limit exceeded", LimitKind::Handles),
];

/// Why a guest did not return.
pub(crate) enum GuestExit {
    /// The host stopped it.
    Stopped(Reason),
    /// It trapped, or a host function failed.
    Failed(wasmtime::Error),
}

impl GuestExit {
    /// Names what happened: the limit where there is one, else the trap, with a
    /// panic's own message.
    pub(crate) fn into_error(
        self,
        refused: Option<LimitKind>,
        limits: &Limits,
        stderr: &Captured,
    ) -> CallError {
        let error = match self {
            Self::Stopped(Reason::Cancelled) => return CallError::Cancelled,
            Self::Stopped(Reason::Deadline) => return exceeded(LimitKind::Time, limits),
            Self::Failed(error) => error,
        };
        if let Some(Refused(kind)) = error.downcast_ref() {
            return exceeded(*kind, limits);
        }
        if let Some(I32Exit(code)) = error.downcast_ref() {
            let message = format!("the tool exited with code {code} instead of answering");
            return CallError::Trap { message };
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
            (Some(Trap::UnreachableCodeReached), None) => CallError::Trap {
                message: panic_message(&stderr.text)
                    .unwrap_or_else(|| "the tool ran into `unreachable`".into()),
            },
            (Some(trap), None) => CallError::Trap { message: trap.to_string() },
            (None, None) => {
                let message = format!("{error:#}");
                let known = UNTYPED.iter().find(|(text, _)| message.contains(text));
                match known {
                    Some((_, kind)) => exceeded(*kind, limits),
                    None => CallError::Trap { message },
                }
            }
        }
    }
}

/// The message of a Rust panic, from what the tool printed to standard error:
/// a line that says where, then the message.
fn panic_message(stderr: &str) -> Option<String> {
    let (_, panic) = stderr.rsplit_once("panicked at ")?;
    let (place, rest) = panic.split_once(":\n")?;
    let message = rest.split("\nnote: ").next().unwrap_or(rest).trim_end();
    Some(format!("the tool panicked at {place}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_in_what_was_printed() {
        let printed = "hello\n\nthread '<unnamed>' (1) panicked at src/lib.rs:7:5:\nno such\nluck\nnote: run \
                       with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        let expected = "the tool panicked at src/lib.rs:7:5: no such\nluck";
        assert_eq!(panic_message(printed).as_deref(), Some(expected));
        assert_eq!(panic_message("panicked at the disco"), None);
    }
}
