//! Why a guest did not return, in words that a person can act on.

use kitbag_contract::{ARGUMENTS_BYTES, ByteSize, LimitKind, Limits, format_duration};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::I32Exit;

use crate::call::{HANDLES, STACK_BYTES};
use crate::capture::Captured;
use crate::error::CallError;
use crate::limiter::{INSTANCES, MEMORIES, TABLE_ELEMENTS};
use crate::random::RANDOM_BYTES;
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

/// A host function of ours refused what the guest asked for.
#[derive(Debug, thiserror::Error)]
#[error("a limit was reached")]
pub(crate) struct Refused(pub(crate) LimitKind);

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
            Self::Stopped(Reason::Deadline) => return limit(LimitKind::Time, limits),
            Self::Failed(error) => error,
        };
        if let Some(Refused(kind)) = error.downcast_ref() {
            return limit(*kind, limits);
        }
        if let Some(I32Exit(code)) = error.downcast_ref() {
            let message = format!("the tool exited with code {code} instead of answering");
            return CallError::Trap { message };
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return limit(LimitKind::Handles, limits);
        }
        match (error.downcast_ref::<Trap>(), refused) {
            (Some(Trap::StackOverflow), _) => limit(LimitKind::Stack, limits),
            (Some(Trap::OutOfFuel), _) => limit(LimitKind::Fuel, limits),
            // A guest whose wish was refused, and that broke off over it: nothing
            // but the limiter knows why.
            (_, Some(kind)) => limit(kind, limits),
            (Some(Trap::UnreachableCodeReached), None) => CallError::Trap {
                message: panic_message(&stderr.text)
                    .unwrap_or_else(|| "the tool ran into `unreachable`".into()),
            },
            (Some(trap), None) => CallError::Trap { message: trap.to_string() },
            (None, None) => {
                let message = format!("{error:#}");
                let known = UNTYPED.iter().find(|(text, _)| message.contains(text));
                match known {
                    Some((_, kind)) => limit(*kind, limits),
                    None => CallError::Trap { message },
                }
            }
        }
    }
}

/// The error of a limit, with its value as a person writes it.
pub(crate) fn limit(kind: LimitKind, limits: &Limits) -> CallError {
    let limit = match kind {
        LimitKind::Memory => limits.memory.to_string(),
        LimitKind::Time => format_duration(limits.time).to_string(),
        LimitKind::Arguments => ByteSize::bytes(ARGUMENTS_BYTES as u64).to_string(),
        LimitKind::Stack => ByteSize::bytes(STACK_BYTES as u64).to_string(),
        LimitKind::Table => format!("{TABLE_ELEMENTS} elements"),
        LimitKind::Handles => format!("{HANDLES} handles"),
        LimitKind::Random => format!("{} at once", ByteSize::bytes(RANDOM_BYTES)),
        LimitKind::HostData => limits.memory.to_string(),
        LimitKind::Instances => format!("{INSTANCES} instances, {MEMORIES} memories or tables"),
        LimitKind::Written => limits.written.to_string(),
        LimitKind::Fuel => limits.fuel.unwrap_or_default().to_string(),
    };
    CallError::Limit { kind, limit }
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
