//! The report of a panic of the interpreter, which ends the call.
//!
//! A component cannot catch a panic, so the report contains the answer of the call: the output of the
//! script, a traceback, and the cost of its calls. kitbag reads it from standard error.

use std::io::Write as _;
use std::panic::{self, PanicHookInfo};

use rustpython_vm::vm::thread::get_current_frame;

use crate::answer;
use crate::script::FILE;
use crate::state;

/// The message of a panic for an allocation that is larger than the address space.
const CAPACITY: &str = "capacity overflow";

/// The most frames that are looked at: a chain that bytecode has damaged may have no end.
const FRAMES: usize = 100_000;

/// Replaces Rust's own report, which has a position in the interpreter's source.
pub(crate) fn install() {
    panic::set_hook(Box::new(|panic| {
        let reason = reason(panic);
        let mut stderr = std::io::stderr();
        // There is no other place for the report. The reason is written first, since a second panic
        // while the answer is made would end the call at once.
        let _ = stderr.write_all(format!("panicked at the interpreter:\n{reason}\n").as_bytes());
        let _ = stderr.write_all(format!("note: answer:\n{}", answer(&reason)).as_bytes());
    }));
}

/// Returns the reason of a panic in one line.
fn reason(panic: &PanicHookInfo<'_>) -> String {
    let reason = panic.payload_as_str().unwrap_or("no reason is known");
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the answer of a call that a panic ends.
fn answer(reason: &str) -> String {
    let error = match reason {
        CAPACITY => "MemoryError\nwork on a part of the data at a time".to_owned(),
        reason => format!("SystemError: the interpreter stopped: {reason}; change the script"),
    };
    // A panic of this crate may have left the state in use.
    let Some((code, output, spent)) = state::try_end() else { return error };
    let problem = traceback(&code) + &error;
    answer::with_spent(answer::failure(output, &problem), &spent)
}

/// Returns the calls of the script that have not returned, as a traceback shows them.
#[expect(unsafe_code, reason = "the interpreter links frames by raw pointers")]
fn traceback(code: &str) -> String {
    let lines: Vec<_> = code.lines().collect();
    let mut calls = Vec::new();
    let mut next = get_current_frame();
    for _ in 0..FRAMES {
        // SAFETY: the chain has the frames of calls that have not returned, and none returns while
        // this function runs.
        let Some(frame) = (unsafe { next.as_ref() }) else { break };
        next = frame.previous();
        let code = frame.code();
        if *code.source_path().to_string_lossy() != *FILE {
            continue;
        }
        let position = (frame.get_lasti() as usize).saturating_sub(1);
        let line = code.locations.get(position).map(|(start, _)| start.line);
        let Some(line) = line.or(code.first_line_number) else { continue };
        let name = code.obj_name.to_string_lossy();
        let mut call = format!("  File \"{FILE}\", line {line}, in {name}\n");
        if let Some(text) = lines.get(line.to_zero_indexed()) {
            call += &format!("    {}\n", text.trim());
        }
        calls.push(call);
    }
    if !calls.is_empty() {
        calls.push("Traceback (most recent call last):\n".to_owned());
    }
    calls.reverse();
    calls.concat()
}
