//! Bounds on the memory that the C library's allocator keeps.

use std::ffi::c_int;

/// Larger than most arguments and answers.
const BYTES: c_int = 4 << 20;

/// The bounded settings, each with the environment variable that overrides it.
const SETTINGS: [(c_int, &str); 2] = [
    (libc::M_MMAP_THRESHOLD, "MALLOC_MMAP_THRESHOLD_"),
    (libc::M_TRIM_THRESHOLD, "MALLOC_TRIM_THRESHOLD_"),
];

/// Bounds the freed memory that glibc keeps, unless a person set a bound.
///
/// By default glibc raises its bounds for each thread whenever a buffer of up to 32 MiB is freed: a
/// server that used 384 MiB held 481 MiB. With fixed bounds, larger buffers return to the system at
/// once. Must be called before a second thread starts.
#[expect(unsafe_code, reason = "glibc's bounds can be set by no safe function")]
pub(crate) fn bound_allocator() {
    for setting in settings(|variable| std::env::var_os(variable).is_some()) {
        // SAFETY: `mallopt` reads and writes no memory of ours, and both settings accept any
        // size. glibc documents it as unsafe beside other threads until the first allocation
        // has initialized the allocator; this is the only thread.
        unsafe {
            libc::mallopt(setting, BYTES);
        }
    }
}

/// Returns the settings that no environment variable overrides.
fn settings(is_set: impl Fn(&str) -> bool) -> impl Iterator<Item = c_int> {
    SETTINGS.into_iter().filter(move |(_, variable)| !is_set(variable)).map(|(setting, _)| setting)
}

#[cfg(test)]
mod tests {
    use libc::{M_MMAP_THRESHOLD, M_TRIM_THRESHOLD};

    use super::settings;

    #[test]
    fn environment_variables_are_respected() {
        let check = |set: &[&str], expected: &[_]| {
            let settings: Vec<_> = settings(|variable| set.contains(&variable)).collect();
            assert_eq!(settings, expected, "{set:?}");
        };
        check(&[], &[M_MMAP_THRESHOLD, M_TRIM_THRESHOLD]);
        check(&["MALLOC_MMAP_THRESHOLD_"], &[M_TRIM_THRESHOLD]);
        check(&["MALLOC_TRIM_THRESHOLD_"], &[M_MMAP_THRESHOLD]);
        check(&["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"], &[]);
    }
}
