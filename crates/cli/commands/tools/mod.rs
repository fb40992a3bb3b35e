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

use kitbag::base::text::shown;
use kitbag::config::LocalTool;
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

/// Describes the download of a tool: its reference, its digest and its signer. `None`: the tool was
/// not downloaded.
fn download(local: &LocalTool) -> Option<String> {
    let recorded = &local.recorded.as_ref()?.tool;
    let download = recorded.download.as_ref()?;
    let reference = recorded.origin.as_deref().unwrap_or_default();
    let signer = match &download.signer {
        Some(signer) => format!("signed by {}", shown(signer)),
        None => "unsigned".to_owned(),
    };
    Some(format!("{}, {}, {signer}", shown(reference), shown(&download.digest)))
}
