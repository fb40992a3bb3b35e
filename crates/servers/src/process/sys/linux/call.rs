//! System calls that have no safe function elsewhere. They allocate no memory and take no lock.

#![expect(unsafe_code, reason = "system calls that have no safe function")]

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The bytes of a set of signals.
const SIGNALS_BYTES: usize = 8;
const ALL_SIGNALS: u64 = u64::MAX;
/// The largest number of a signal.
const LAST_SIGNAL: c_int = 64;

/// Arguments or variables of a program, in the form that the system takes.
pub(super) struct Arguments {
    /// Points into `_text`; the last one is null.
    pointers: Vec<*const c_char>,
    _text: Vec<CString>,
}

impl Arguments {
    pub(super) fn new(text: Vec<CString>) -> Self {
        let pointers = text.iter().map(|it| it.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _text: text }
    }
}

/// Returns the result of a system call.
fn result(number: c_long) -> Result<c_long, Errno> {
    if number < 0 {
        // SAFETY: the address of the thread's own variable, which is always valid.
        return Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }));
    }
    Ok(number)
}

/// Clones the process into the namespaces of `flags`, and runs `child` in the clone, in which all
/// signals are blocked. Returns the number of the clone and its descriptor.
pub(super) fn clone_with_blocked_signals(
    flags: c_int,
    child: impl FnOnce(),
) -> Result<(u32, OwnedFd), Errno> {
    let mut before = 0_u64;
    let blocked = set_signal_mask(ALL_SIGNALS, Some(&mut before));
    debug_assert!(blocked.is_ok(), "any mask can be set");
    let mut process: c_int = -1;
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: without `CLONE_VM` the clone has its own copy of memory, as after `fork`, and continues
    // on its copy of this stack because no stack is given. `child` never returns to the callers of
    // this function in the clone. The kernel writes the descriptor into `process`.
    let cloned = result(unsafe {
        libc::syscall(libc::SYS_clone, flags as c_long, 0_usize, &raw mut process, 0_usize, 0_usize)
    });
    if cloned == Ok(0) {
        child();
        exit(1);
    }
    let _ = set_signal_mask(before, None);
    let id = u32::try_from(cloned?).unwrap_or(0);
    // SAFETY: the kernel has just opened it for us.
    Ok((id, unsafe { OwnedFd::from_raw_fd(process) }))
}

/// Clones the process. Returns 0 in the clone, whose parent must not share a lock with it.
pub(super) fn clone_again() -> Result<i32, Errno> {
    // SAFETY: as above; the caller is single-threaded.
    let number = result(unsafe {
        libc::syscall(
            libc::SYS_clone,
            c_long::from(libc::SIGCHLD),
            0_usize,
            0_usize,
            0_usize,
            0_usize,
        )
    })?;
    Ok(i32::try_from(number).unwrap_or(i32::MAX))
}

/// Blocks exactly the signals of a set, whose bit 0 is signal 1.
fn set_signal_mask(set: u64, before: Option<&mut u64>) -> Result<(), Errno> {
    let before = before.map_or(ptr::null_mut(), ptr::from_mut);
    // SAFETY: both pointers are valid for 8 bytes, or null. The calling thread alone is affected.
    let number = unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const set,
            before,
            SIGNALS_BYTES,
        )
    };
    result(number).map(drop)
}

/// Gives all signals their default effect, and blocks none.
pub(super) fn reset_signals() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: `SIG_DFL` never runs code of ours. It fails for signals whose effect is fixed.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
    let unblocked = set_signal_mask(0, None);
    debug_assert!(unblocked.is_ok(), "any mask can be set");
}

/// Opens a descriptor from which blocked signals can be read: 128 bytes each, the first four the
/// number.
pub(super) fn signal_descriptor(signals: &[c_int]) -> Result<OwnedFd, Errno> {
    let set = signals.iter().fold(0_u64, |set, signal| set | (1 << (signal - 1)));
    // SAFETY: the pointer is valid for 8 bytes.
    let number = result(unsafe {
        libc::syscall(
            libc::SYS_signalfd4,
            -1,
            &raw const set,
            SIGNALS_BYTES,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        )
    })?;
    let descriptor = c_int::try_from(number).map_err(|_| Errno::BADF)?;
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Makes a descriptor a copy of another descriptor.
pub(super) fn copy_descriptor(from: BorrowedFd<'_>, to: c_int) -> Result<(), Errno> {
    if from.as_raw_fd() == to {
        // A copy would be closed on execution.
        // SAFETY: no pointers.
        return result(unsafe { libc::fcntl(to, libc::F_SETFD, 0) }.into()).map(drop);
    }
    // SAFETY: no pointers. The process owns all of its descriptors: it is a clone.
    result(unsafe { libc::dup3(from.as_raw_fd(), to, 0) }.into()).map(drop)
}

/// Marks all descriptors after standard error as closed on execution.
pub(super) fn close_others_on_exec() -> Result<(), Errno> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

/// Closes all descriptors but two. Only for a process that uses no others afterwards.
pub(super) fn close_all_but(first: BorrowedFd<'_>, second: BorrowedFd<'_>) {
    let number = |it: BorrowedFd<'_>| it.as_raw_fd().cast_unsigned();
    let (low, high) = (number(first).min(number(second)), number(first).max(number(second)));
    for (from, to) in
        [(0, low.checked_sub(1)), (low + 1, Some(high - 1)), (high + 1, Some(u32::MAX))]
    {
        if let Some(to) = to.filter(|to| from <= *to) {
            let _ = close_range(from, to, 0);
        }
    }
}

fn close_range(from: u32, to: u32, flags: u32) -> Result<(), Errno> {
    // SAFETY: no pointers. The callers own all descriptors of their process: a clone.
    result(unsafe { libc::syscall(libc::SYS_close_range, from, to, flags) }).map(drop)
}

/// Changes attributes of a mount, and of the mounts below it.
pub(super) fn set_mount_attributes(path: &CStr, set: u64, clear: u64) -> Result<(), Errno> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let attributes = Attributes { set, clear, propagation: 0, user_namespace: 0 };
    // SAFETY: the kernel reads a path and a structure of this size.
    result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    })
    .map(drop)
}

/// Allows `access` beneath a file or directory in a ruleset of Landlock.
pub(super) fn add_landlock_rule(
    ruleset: BorrowedFd<'_>,
    beneath: BorrowedFd<'_>,
    access: u64,
) -> Result<(), Errno> {
    #[repr(C, packed)]
    struct PathBeneath {
        access: u64,
        beneath: i32,
    }
    /// `LANDLOCK_RULE_PATH_BENEATH`
    const PATH_BENEATH: c_int = 1;
    let rule = PathBeneath { access, beneath: beneath.as_raw_fd() };
    // SAFETY: the kernel reads a structure of this type.
    result(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const rule,
            0,
        )
    })
    .map(drop)
}

/// Enforces a ruleset of Landlock on the calling thread.
pub(super) fn enforce_landlock(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: no pointers.
    result(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) })
        .map(drop)
}

/// Returns the version of Landlock's interface.
pub(super) fn landlock_version() -> Result<u32, Errno> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`
    const VERSION: c_int = 1;
    // SAFETY: with this flag, the kernel reads no structure.
    let version = result(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0_usize, VERSION)
    })?;
    Ok(u32::try_from(version).unwrap_or(0))
}

/// Returns an error if system calls cannot be refused by a filter.
pub(super) fn check_seccomp() -> Result<(), Errno> {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads four bytes.
    result(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    })
    .map(drop)
}

/// Replaces the process by a program. Returns only if that failed.
pub(super) fn execute(program: &CStr, arguments: &Arguments, variables: &Arguments) -> Errno {
    // SAFETY: the lists end with null, and their strings with NUL; `Arguments` owns them.
    let number = unsafe {
        libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), variables.pointers.as_ptr())
    };
    result(number.into()).err().unwrap_or(Errno::NOEXEC)
}

/// Lets the kernel take back private memory without a file behind it: it reads as zero afterwards.
///
/// # Safety
///
/// The process never uses the memory again.
pub(super) unsafe fn release(start: usize, end: usize) {
    // SAFETY: the caller's promise. The kernel checks the range.
    unsafe {
        libc::madvise(ptr::without_provenance_mut(start), end - start, libc::MADV_DONTNEED);
    }
}

/// Returns the address of a variable of the thread, near all others.
pub(super) fn thread_variables() -> usize {
    // SAFETY: it returns an address.
    unsafe { libc::__errno_location() }.addr()
}

/// Watches a descriptor of a process in the runtime of this thread.
pub(super) fn watch_process(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` with one owner stays open until the runtime gives it back.
    let watched = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

/// Ends the process at once.
pub(super) fn exit(status: i32) -> ! {
    // SAFETY: `_exit` runs no code of the process.
    unsafe { libc::_exit(status) }
}
