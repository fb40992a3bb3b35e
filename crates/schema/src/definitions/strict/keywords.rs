//! The keywords of JSON Schema, classified for strict mode.

/// Keywords that strict mode never supports.
pub(super) const NEVER: [&str; 10] = [
    "not",
    "if",
    "then",
    "else",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
];

/// Unsupported keywords for values of one type.
pub(super) const NEVER_OF_STRINGS: [&str; 4] =
    ["minLength", "maxLength", "contentEncoding", "contentMediaType"];
pub(super) const NEVER_OF_ARRAYS: [&str; 7] = [
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
];
pub(super) const NEVER_OF_OBJECTS: [&str; 8] = [
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
];

/// Supported keywords.
pub(super) const OF_NUMBERS: [&str; 5] =
    ["multipleOf", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"];
pub(super) const OF_ARRAYS: [&str; 2] = ["minItems", "maxItems"];
pub(super) const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords that do not restrict values, or contain the targets of references.
pub(super) const ANNOTATIONS: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$schema",
    "$defs",
    "definitions",
    "$vocabulary",
];

/// Returns true if a keyword is only an annotation. Unknown keywords are annotations as well.
pub(super) fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || !is_taken(key)
}

/// Returns true if another function handles the keyword.
pub(super) fn is_taken(key: &str) -> bool {
    const RULES: [&str; 13] = [
        "type",
        "enum",
        "const",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "pattern",
        "format",
    ];
    const UNREAD: [&str; 7] =
        ["title", "description", "$comment", "$schema", "$defs", "definitions", "$vocabulary"];
    [
        &RULES[..],
        &UNREAD,
        &NEVER,
        &NEVER_OF_STRINGS,
        &NEVER_OF_ARRAYS,
        &NEVER_OF_OBJECTS,
        &OF_NUMBERS,
        &OF_ARRAYS,
    ]
    .iter()
    .any(|keys| keys.contains(&key))
}
