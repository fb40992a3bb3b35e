//! What the tools say about themselves.

use kitbag_sdk::serde_json::Value;
use kitbag_sdk::{Description, json};

/// Describes all tools of the component.
pub(crate) fn describe() -> Description {
    let zone = json!({
        "type": "string",
        "description": "Zone of a time that names none. Default: local, else UTC",
    });
    let time = json!({ "type": "string" });
    let disambiguation = json!({ "enum": ["reject", "earlier", "later"], "default": "reject" });
    let convert_zone = json!({
        "type": "string",
        "description": "Of `time`. Default: local",
    });
    Description::tools([
        tool(
            "now",
            "Current time",
            "The current time in a zone: an IANA name, an offset or `local`, the default.",
            json!({ "zone": { "type": "string" } }),
            &[],
            point(),
        ),
        tool(
            "parse_time",
            "Read time",
            "Read a time in nearly any form (`March 5, 2026 2pm Europe/Paris`, `2026-W10-4`, \
             Unix seconds) as ISO 8601, Unix time, weekday and ISO week.",
            json!({
                "time": time,
                "zone": zone,
                "format": { "type": "string", "description": "strptime, as `%d/%m/%Y`" },
                "disambiguation": disambiguation_of_local(&disambiguation),
            }),
            &["time"],
            point(),
        ),
        tool(
            "convert_time",
            "Convert time",
            "Convert a time, such as `14:30` (today), to another zone.",
            json!({
                "time": time,
                "to": { "type": "string", "description": "As `Asia/Tokyo`" },
                "zone": convert_zone,
                "disambiguation": disambiguation,
            }),
            &["time", "to"],
            point(),
        ),
        tool(
            "add_time",
            "Add to time",
            "Add a duration to a time by calendar and clock changes.",
            json!({
                "time": time,
                "duration": {
                    "type": "string",
                    "description": "As `1 month 2 hours`, `-P3D`, `5 business days`",
                },
                "zone": zone,
                "disambiguation": disambiguation,
            }),
            &["time", "duration"],
            point(),
        ),
        tool(
            "time_between",
            "Time between",
            "Time between two times: ISO 8601 duration, days, seconds.",
            json!({
                "from": time,
                "to": time,
                "zone": zone,
                "largest": {
                    "enum": ["years", "months", "weeks", "days", "hours", "minutes", "seconds"],
                    "default": "years",
                },
                "disambiguation": disambiguation,
            }),
            &["from", "to"],
            span(),
        ),
    ])
}

/// The argument where it is explained: once is enough for all tools.
fn disambiguation_of_local(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["description"] = json!("Of local times that a clock change skips or repeats");
    schema
}

fn tool(
    name: &str,
    title: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    output: Value,
) -> Description {
    Description::new(name)
        .title(title)
        .description(description)
        .arguments(properties, required)
        .output_schema(output)
        .annotations(json!({
            "readOnlyHint": true,
            "idempotentHint": name != "now",
            "openWorldHint": false,
        }))
        // Nothing: a clock needs no grant.
        .grants(json!({ "filesystem": [] }))
}

/// The schema of a point in time.
fn point() -> Value {
    json!({
        "type": "object",
        "properties": {
            "iso": { "type": "string", "description": "ISO 8601 with the offset" },
            "unix": { "type": "integer", "description": "Whole seconds since 1970, rounded down" },
            "unix_millis": {
                "type": "integer",
                "description": "Whole milliseconds since 1970, rounded down",
            },
            "zone": { "type": "string", "description": "IANA name, or the offset" },
            "weekday": { "type": "string" },
            "week": { "type": "string", "description": "ISO 8601 week, as `2026-W10`" },
            "note": { "type": "string", "description": "What else to know of this result" },
        },
        "required": ["iso", "unix", "unix_millis", "zone", "weekday", "week"],
        "additionalProperties": false,
    })
}

/// The schema of the time between two points.
fn span() -> Value {
    json!({
        "type": "object",
        "properties": {
            "iso": { "type": "string", "description": "ISO 8601 duration by the calendar" },
            "days": {
                "type": "integer",
                "description": "Midnights between both in the zone of `from`",
            },
            "seconds": { "type": "integer", "description": "Elapsed, rounded towards zero" },
            "millis": { "type": "integer", "description": "Elapsed, rounded towards zero" },
        },
        "required": ["iso", "days", "seconds", "millis"],
        "additionalProperties": false,
    })
}
