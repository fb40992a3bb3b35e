//! The priority of one thread.

/// How much is added to the niceness of a thread that computes for long: it gets a tenth of the
/// processor time of a thread that it competes with, and all that no other thread needs.
const NICENESS: i32 = 10;

/// Lets other threads of the process run before this one from now on. False if that was not
/// possible. Without rights of the superuser it cannot be undone.
#[cfg(target_os = "linux")]
pub(crate) fn lower_thread_priority() -> bool {
    rustix::process::nice(NICENESS).is_ok()
}

/// Elsewhere niceness is the process's.
#[cfg(not(target_os = "linux"))]
pub(crate) fn lower_thread_priority() -> bool {
    false
}

#[cfg(test)]
pub(crate) fn thread_niceness() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}
