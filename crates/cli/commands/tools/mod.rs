//! Commands that call, show and check tools.

pub(crate) mod check;
pub(crate) mod describe;
pub(crate) mod eject;
pub(crate) mod findings;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod why;

use std::fmt::Write as _;

use kitbag::host::Omission;

/// Formats a section on exported functions that are not tools. Empty if there are none.
fn omitted(omissions: &[Omission]) -> String {
    const MOST: usize = 20;
    let mut text = String::new();
    if !omissions.is_empty() {
        text.push_str("\nExported functions that are not tools\n");
    }
    for omission in omissions.iter().take(MOST) {
        let _ = writeln!(text, "  {omission}");
    }
    if let Some(more @ 1..) = omissions.len().checked_sub(MOST) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}
