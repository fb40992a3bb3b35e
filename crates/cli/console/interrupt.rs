//! Ctrl-C: the first one cancels the call, the second one ends the process.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kitbag::Cancellation;
use kitbag::secrets::CallEnd;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::exit::Exit;

/// Handles Ctrl-C.
///
/// No separate thread is needed: the handler writes a byte into a pipe, and the watcher of the
/// call's deadline also watches the pipe.
#[derive(Clone)]
pub(crate) struct Interrupt {
    cancellation: Cancellation,
    leave: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the handler. If that fails, Ctrl-C ends the process as usual.
    pub(crate) fn take_over() -> Self {
        let leave = Arc::default();
        let cancellation = handle(&leave).unwrap_or_default();
        Self { cancellation, leave }
    }

    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Sets whether Ctrl-C ends the process at once, for example while a tool is compiled or a
    /// person is asked and no cleanup is needed.
    pub(crate) fn set_leave(&self, leave: bool) {
        self.leave.store(leave, Ordering::SeqCst);
    }
}

fn handle(leave: &Arc<AtomicBool>) -> io::Result<Cancellation> {
    let (reader, writer) = io::pipe()?;
    // In the order of their effects.
    flag::register_conditional_shutdown(SIGINT, Exit::Interrupted as i32, Arc::clone(leave))?;
    flag::register(SIGINT, Arc::clone(leave))?;
    low_level::pipe::register(SIGINT, writer)?;
    Ok(Cancellation::on_readable(reader.into()))
}

/// Returns the cleanup when a signal ends the process, such as ending a program that asks for a
/// passphrase.
pub(crate) fn call_end() -> Arc<CallEnd> {
    let end = Arc::new(CallEnd::default());
    // If that fails, a signal ends only this process.
    let _ = end_with_signals(Arc::clone(&end));
    end
}

fn end_with_signals(end: Arc<CallEnd>) -> io::Result<()> {
    let (mut reader, writer) = io::pipe()?;
    let last = Arc::new(AtomicUsize::new(0));
    let signal = Arc::clone(&last);
    thread::Builder::new().name("kitbag-signals".into()).spawn(move || {
        if reader.read_exact(&mut [0]).is_ok() {
            end.end();
            let signal = signal.load(Ordering::SeqCst);
            // Does not return for these signals.
            let _ = low_level::emulate_default_handler(signal as i32);
        }
    })?;
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // In the order of their effects.
        flag::register_usize(signal, Arc::clone(&last), signal as usize)?;
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(())
}
