//! What the allocator of the C library keeps.

/// Bounds what the C library's allocator keeps of what was freed, which a server would
/// hold above its memory. Its variables are read at the start of a process only, so the
/// process starts itself again, as itself.
///
/// By default each buffer of up to 32 MiB that is freed has glibc keep twice as much from
/// then on, for each thread; a server with 384 MiB came to hold 481 MiB. With bounds that
/// stay, what is larger goes back to the system at once. Where the program cannot be
/// found, such as without `/proc`, the server goes on as it is.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn bound_allocator() {
    use std::env;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    // Larger than arguments and answers usually are.
    const BYTES: &str = "4194304";
    // Set by this, or by a person.
    let is_missing = |variable: &&str| env::var_os(variable).is_none();
    let missing: Vec<_> = ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"]
        .into_iter()
        .filter(is_missing)
        .collect();
    if missing.is_empty() {
        return;
    }
    let mut arguments = env::args_os();
    let (Ok(program), Some(name)) = (env::current_exe(), arguments.next()) else { return };
    let variables = missing.into_iter().map(|variable| (variable, BYTES));
    // Returns where it fails only.
    let _error = Command::new(program).arg0(name).args(arguments).envs(variables).exec();
}

/// Other allocators give back what was freed.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn bound_allocator() {}
