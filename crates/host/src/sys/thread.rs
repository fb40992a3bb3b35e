//! Thread priority.

/// Added to the niceness of a long-running thread: it gets a tenth of the processor time of a
/// thread that competes with it, and all time that no other thread needs.
const NICENESS: i32 = 10;

/// Lowers the priority of this thread below the other threads of the process. Returns false on
/// failure. Only the superuser can undo it.
#[cfg(target_os = "linux")]
pub fn lower_thread_priority() -> bool {
    rustix::process::nice(NICENESS).is_ok()
}

/// Other systems have niceness per process.
#[cfg(not(target_os = "linux"))]
pub fn lower_thread_priority() -> bool {
    false
}

#[cfg(test)]
pub(crate) fn thread_niceness() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}
