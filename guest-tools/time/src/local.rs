//! Local times, which a clock change may skip or repeat.

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, AmbiguousZoned, TimeZone};
use serde::Deserialize;

use crate::answer::iso;
use crate::zone;

/// The handling of a skipped or repeated local time.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Disambiguation {
    /// An error that names both interpretations.
    #[default]
    Reject,
    /// The earlier interpretation.
    Earlier,
    /// The later interpretation.
    Later,
}

/// Returns the point at which clocks of the zone show this time.
///
/// # Errors
///
/// The time is skipped or repeated without a chosen interpretation, or out of range.
pub(crate) fn resolve(
    local: DateTime,
    zone: &TimeZone,
    choice: Disambiguation,
) -> Result<Zoned, String> {
    let ambiguous = zone.to_ambiguous_zoned(local);
    let out_of_range = |error: jiff::Error| format!("{local} is out of range: {error}");
    match choice {
        Disambiguation::Earlier => ambiguous.earlier().map_err(out_of_range),
        Disambiguation::Later => ambiguous.later().map_err(out_of_range),
        Disambiguation::Reject if !ambiguous.is_ambiguous() => {
            ambiguous.unambiguous().map_err(out_of_range)
        }
        Disambiguation::Reject => Err(choices(&ambiguous).map_err(out_of_range)?),
    }
}

/// Names both interpretations of a skipped or repeated local time.
fn choices(ambiguous: &AmbiguousZoned) -> Result<String, jiff::Error> {
    let (what, before, after) = match ambiguous.offset() {
        AmbiguousOffset::Gap { before, after } => ("does not exist", before, after),
        AmbiguousOffset::Fold { before, after } => ("occurs twice", before, after),
        AmbiguousOffset::Unambiguous { offset } => ("is unambiguous", offset, offset),
    };
    let local = ambiguous.datetime();
    let name = zone::name(ambiguous.time_zone(), before);
    let (before, after) = (zone::written(before), zone::written(after));
    let earlier = iso(&ambiguous.clone().earlier()?);
    let later = iso(&ambiguous.clone().later()?);
    Ok(format!(
        "the local time {local} {what} in `{name}`: clocks change from {before} to {after}; \
         with `disambiguation` `earlier` it is {earlier}, with `later` {later}"
    ))
}
