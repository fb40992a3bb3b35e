//! `rate_limit`: the rate of requests, which kitbag applies to calls of the tool.

use kitbag::policy::Rates;

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::Node;

/// The consequence of applying a request rate to calls.
const COUNTS_CALLS: &str = "the manifest counts requests, kitbag counts calls of the tool; \
                            `limits.requests` bounds one call";

/// Keys of a table whose names include the time unit.
const KEYS: [(&str, &str); 4] = [
    ("requests_per_second", "s"),
    ("requests_per_minute", "min"),
    ("requests_per_hour", "h"),
    ("requests_per_day", "d"),
];

/// Reads `rate_limit`: `60/min`, `60 per minute`, or a table with `requests_per_minute`, or with
/// `requests` and `per`.
pub(crate) fn rate(fields: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let path = fields.path("rate_limit");
    let rates = match fields.take("rate_limit") {
        None => return,
        Some(Node::Text(text)) => match of_text(text) {
            Some(rate) => vec![rate],
            None => return notes.add(path, "it is not a rate such as `60/min`; it is ignored"),
        },
        Some(node @ Node::Table(_)) => match Fields::of(path.clone(), node, notes) {
            Some(table) => of_table(table, notes),
            None => return,
        },
        Some(Node::Integer(_)) => {
            let text = "it has no period; it is ignored: write `rate = \"60/min\"`";
            return notes.add(path, text);
        }
        Some(other) => return notes.wrong_type(path, "a rate such as `60/min`", other),
    };
    if rates.is_empty() {
        return;
    }
    let known = manifest.rate.iter().cloned();
    let rates = known.chain(rates).collect::<Vec<_>>().join(", ");
    match rates.parse::<Rates>() {
        Ok(rates) => {
            manifest.rate = Some(rates.to_string());
            notes.add(path, COUNTS_CALLS);
        }
        Err(error) => notes.add(path, format!("{error}; it is ignored")),
    }
}

fn of_table(mut table: Fields<'_>, notes: &mut Notes) -> Vec<String> {
    let mut rates: Vec<_> = KEYS
        .into_iter()
        .filter_map(|(key, unit)| Some(format!("{}/{unit}", table.limit(key, notes)?)))
        .collect();
    if let Some(count) = table.limit("requests", notes) {
        let unit = ["per", "period", "window"].into_iter().find_map(|key| table.text(key, notes));
        match unit.and_then(unit_of) {
            Some(unit) => rates.push(format!("{count}/{unit}")),
            None => notes.add(
                table.path("requests"),
                "it has no period such as `per: minute`; it is ignored",
            ),
        }
    }
    table.note_unread(notes);
    rates
}

/// Converts a rate to kitbag's notation.
fn of_text(text: &str) -> Option<String> {
    let (count, unit) = text.split_once('/').or_else(|| text.split_once(" per "))?;
    let count: u64 = count.trim().trim_end_matches("requests").trim().parse().ok()?;
    Some(format!("{count}/{}", unit_of(unit)?))
}

fn unit_of(text: &str) -> Option<&'static str> {
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "s" | "sec" | "second" | "1s" => "s",
        "m" | "min" | "minute" | "1m" => "min",
        "h" | "hr" | "hour" | "1h" => "h",
        "d" | "day" | "1d" => "d",
        _ => return None,
    })
}
