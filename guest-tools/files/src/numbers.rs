//! Formats numbers for answers.

/// Formats a size, such as `34.2 KiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = UNITS.into_iter().peekable();
    let mut unit = units.next().unwrap_or_default();
    while value >= 1023.95
        && let Some(larger) = units.next()
    {
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// Formats a number with its noun: `1 line`, `2 lines`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
