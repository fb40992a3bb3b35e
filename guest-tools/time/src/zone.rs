//! Zones by name and by offset.

use jiff::tz::{Offset, TimeZone};

use crate::excerpt::quoted;

/// The local zone, if the host knows it.
pub(crate) struct Local(pub(crate) Option<String>);

impl Local {
    /// Returns the zone with a name, or the local zone for `None` and `local`. Returns `None` if
    /// the local zone is not known.
    ///
    /// # Errors
    ///
    /// As for [`find`], and for `local` if the zone is not known.
    pub(crate) fn find(&self, text: Option<&str>) -> Result<Option<TimeZone>, String> {
        let local = self.0.as_deref().and_then(known);
        match text.filter(|text| !text.trim().eq_ignore_ascii_case("local")) {
            Some(text) => find(text).map(Some),
            None if text.is_some() && local.is_none() => Err(self.unknown().unwrap_or_else(|| {
                "the local zone is unknown: the user can set it with `[toolsets.time] zone` or the \
                 variable `TZ`; pass an IANA name such as `Europe/Berlin`"
                    .into()
            })),
            None => Ok(local),
        }
    }

    /// Returns a note if the host's zone does not exist.
    pub(crate) fn unknown(&self) -> Option<String> {
        let name = self.0.as_deref().filter(|name| known(name).is_none())?;
        Some(format!("the local zone {} is unknown", quoted(name)))
    }
}

/// Finds a zone: an IANA name in any case, with spaces for underscores, an offset such as `+02:00`
/// or `UTC-5`, or `UTC`.
///
/// # Errors
///
/// Names similar zones.
pub(crate) fn find(text: &str) -> Result<TimeZone, String> {
    let name = text.trim();
    if let Some(zone) = known(name) {
        return Ok(zone);
    }
    let quoted = quoted(name);
    let similar = similar(name);
    let hint = match similar.is_empty() {
        true => "pass an IANA name such as `Europe/Berlin`, or an offset such as `+02:00`".into(),
        false => format!("did you mean {}?", similar.join(" or ")),
    };
    // `CST` is a zone in America, in China and in Cuba.
    let is_abbreviation =
        (2..=5).contains(&name.len()) && name.chars().all(|it| it.is_ascii_uppercase());
    match is_abbreviation && similar.is_empty() {
        true => {
            Err(format!("zone {quoted} is an abbreviation, which may mean several zones; {hint}"))
        }
        false => Err(format!("zone {quoted} is unknown; {hint}")),
    }
}

/// Returns the zone with this name, if any.
pub(crate) fn known(name: &str) -> Option<TimeZone> {
    if ["utc", "z", "gmt", "zulu"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
        return Some(TimeZone::UTC);
    }
    if let Some(offset) = offset(name) {
        return Some(TimeZone::fixed(offset));
    }
    // The name of a file without a zone.
    let name = name.replace(' ', "_");
    TimeZone::get(&name).ok().filter(|zone| !zone.is_unknown())
}

/// Parses an offset: `+02:00`, `-0530`, `+2`, optionally after `UTC` or `GMT`.
pub(crate) fn offset(text: &str) -> Option<Offset> {
    let rest = match text.get(..3) {
        Some(head) if head.eq_ignore_ascii_case("utc") || head.eq_ignore_ascii_case("gmt") => {
            text[3..].trim_start()
        }
        _ => text,
    };
    let (sign, digits) = match rest.chars().next()? {
        '+' => (1, &rest[1..]),
        '-' => (-1, &rest[1..]),
        // The typographic minus sign.
        '\u{2212}' => (-1, &rest['\u{2212}'.len_utf8()..]),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| {
        let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| text.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    if hours > 25 || minutes > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

/// Returns the name of a zone in an answer: its IANA name, otherwise the offset.
pub(crate) fn name(zone: &TimeZone, offset: Offset) -> String {
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None if offset.is_zero() => "UTC".to_owned(),
        None => written(offset),
    }
}

/// Formats an offset with hours and minutes, as `+02:00`.
pub(crate) fn written(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    match seconds.abs() % 60 {
        0 => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        rest => format!("{sign}{:02}:{:02}:{rest:02}", minutes / 60, minutes % 60),
    }
}

/// Returns at most three similar names, most similar first: those of the same city, otherwise those
/// with a similar spelling.
pub(crate) fn similar(name: &str) -> Vec<String> {
    let plain = |text: &str| text.to_ascii_lowercase().replace([' ', '-'], "_");
    let wanted = plain(name);
    let names: Vec<String> =
        jiff::tz::db().available().map(|name| name.as_str().to_owned()).collect();
    let of_city = |zone: &&String| plain(zone.rsplit('/').next().unwrap_or_default()) == wanted;
    let mut found: Vec<(f64, &String)> =
        names.iter().filter(of_city).map(|zone| (1.0, zone)).collect();
    if found.is_empty() && (4..=40).contains(&wanted.len()) {
        let city = wanted.rsplit('/').next().unwrap_or_default();
        found = names
            .iter()
            .map(|zone| {
                let plain = plain(zone);
                let last = plain.rsplit('/').next().unwrap_or_default();
                let whole = strsim::normalized_damerau_levenshtein(&plain, &wanted);
                (whole.max(strsim::normalized_damerau_levenshtein(last, city)), zone)
            })
            .filter(|(score, _)| *score >= 0.75)
            .collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    }
    found.into_iter().take(3).map(|(_, name)| format!("`{name}`")).collect()
}
