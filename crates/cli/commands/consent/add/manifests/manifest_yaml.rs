//! `manifest.yaml`: `name`, `version`, `description`, `wasm`, `capabilities`, `limits`.
//!
//! Host paths are relative to the directory of the skill. A capability takes effect if `enabled` is
//! `true`. The keys and values of `limits` include the unit.

use std::path::Path;

use kitbag::base::ByteSize;
use kitbag::base::parse_duration;
use kitbag::policy::DirectoryGrant;

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::{Node, quoted};
use super::rates::rate;
use super::requested_grants::{
    ManifestDirectory, ManifestHttp, guest_path, host_path, host_pattern, methods,
};

/// Size of a page of WebAssembly memory.
const PAGE: u64 = 64 << 10;

/// Fields that limit the size of a request, not its destination.
const SIZES: [&str; 4] =
    ["max_request_size", "max_response_size", "max_request_bytes", "max_response_bytes"];

/// Fields that limit the time of a request.
const TIMES: [&str; 2] = ["timeout_secs", "timeout_ms"];

const NO_AMOUNT: &str =
    "kitbag has no such limit of one request; `limits` of the tool bounds the whole call";

pub(crate) fn translate(root: &Node, directory: &Path, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    let mut text = |key| root.text(key, notes).map(str::to_owned);
    manifest.name = text("name");
    manifest.version = text("version");
    manifest.author = text("author");
    manifest.description = text("description");
    if let Some(mut wasm) = root.table("wasm", notes) {
        manifest.component = wasm.text("file", notes).map(str::to_owned);
        if let Some(export) = wasm.text("export", notes)
            && export != "run"
        {
            notes.add(wasm.path("export"), "kitbag calls the export `run`; it is ignored");
        }
        wasm.note_unread(notes);
    }
    if let Some(mut capabilities) = root.table("capabilities", notes) {
        if let Some(http) = capabilities.table("http", notes) {
            requested_http(http, manifest, notes);
        }
        if let Some(mut filesystem) = capabilities.table("filesystem", notes) {
            let is_off = filesystem.take("enabled").is_some_and(|node| *node != Node::Bool(true));
            let paths = filesystem.list("paths", notes).unwrap_or_default();
            match is_off {
                true => notes.add(filesystem.path("enabled"), NOT_ENABLED),
                false => {
                    for (path, node) in paths {
                        requested_path(path, node, directory, manifest, notes);
                    }
                }
            }
            filesystem.note_unread(notes);
        }
        capabilities.remark(
            &["email", "browser"],
            "it is a service, not a grant; let the tool call a tool for it with `grants.tools`",
            notes,
        );
        rate(&mut capabilities, manifest, notes);
        capabilities.note_unread(notes);
    }
    rate(&mut root, manifest, notes);
    if let Some(limits) = root.table("limits", notes) {
        limits_of(limits, manifest, notes);
    }
    root.note_unread(notes);
}

const NOT_ENABLED: &str = "it is not `true`; nothing is requested";

fn requested_http(mut http: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let is_on = http.bool("enabled", notes);
    let hosts = http.texts("allowed_hosts", notes);
    let has_methods = http.take("allowed_methods").is_some();
    let names = http.texts("allowed_methods", notes);
    // These fields limit the amount, not the destination.
    http.remark(&SIZES, NO_AMOUNT, notes);
    http.remark(&TIMES, NO_AMOUNT, notes);
    rate(&mut http, manifest, notes);
    // An unknown key may restrict the methods.
    let methods = match (has_methods, http.has_unread()) {
        (true, _) => methods(names.iter().map(|(_, name)| *name)).map(Some),
        (false, true) => Ok(Some(vec!["GET".to_owned()])),
        (false, false) => Ok(None),
    };
    match (is_on, methods) {
        (Some(true), Ok(methods)) => {
            if !has_methods && http.has_unread() {
                notes.add(http.own_path(), "it has unknown keys; only GET is requested");
            }
            for (path, host) in hosts {
                match host_pattern(host, "") {
                    Ok(url) => {
                        manifest.requested.requests(ManifestHttp { url, methods: methods.clone() });
                    }
                    Err(reason) => notes.add(path, reason),
                }
            }
        }
        (Some(true), Err(reason)) => {
            notes.add(http.path("allowed_methods"), format!("{reason}; nothing is requested"));
        }
        _ if hosts.is_empty() => {}
        _ => notes.add(http.path("enabled"), NOT_ENABLED),
    }
    http.note_unread(notes);
}

fn requested_path(
    path: String,
    node: &Node,
    directory: &Path,
    manifest: &mut Manifest,
    notes: &mut Notes,
) {
    let Some(mut entry) = Fields::of(path.clone(), node, notes) else { return };
    let (host, guest) = (entry.text("host", notes), entry.text("guest", notes));
    let mode = entry.take("mode");
    entry.note_unread(notes);
    let is_writable = match mode {
        None => false,
        Some(Node::Text(mode)) => match &**mode {
            "ro" | "r" | "read" | "readonly" | "read-only" => false,
            "rw" | "read-write" | "readwrite" => true,
            _ => {
                return notes
                    .add(entry.path("mode"), "it is neither `ro` nor `rw`; the entry is dropped");
            }
        },
        Some(other) => return notes.wrong_type(entry.path("mode"), "`ro` or `rw`", other),
    };
    let (Some(host), Some(guest)) = (host, guest) else {
        return notes.add(path, "it needs `host` and `guest`; it is dropped");
    };
    if host == "$TEMP" || host == "$TEMP/" {
        if !is_writable {
            let text =
                "each call has an empty directory there, so read access is useless; it is dropped";
            return notes.add(entry.path("host"), text);
        }
        return match guest_path(guest) {
            Ok(guest) => {
                let host = DirectoryGrant::TEMPORARY.to_owned();
                manifest.requested.directories.push(ManifestDirectory { host, guest, is_writable });
            }
            Err(reason) => notes.add(entry.path("guest"), format!("{reason}; it is dropped")),
        };
    }
    if host.starts_with("$TEMP/") {
        let text = format!(
            "{} is not `$TEMP` itself; it is dropped: each call has an empty directory as a whole",
            quoted(host)
        );
        return notes.add(entry.path("host"), text);
    }
    let host = host_path(host).map(|host| match host.starts_with(['/', '~']) {
        true => host,
        false => directory.join(host.trim_start_matches("./")).to_string_lossy().into_owned(),
    });
    match (host, guest_path(guest)) {
        (Ok(host), Ok(guest)) => {
            manifest.requested.directories.push(ManifestDirectory { host, guest, is_writable });
        }
        (Err(reason), _) => notes.add(entry.path("host"), reason),
        (_, Err(reason)) => notes.add(entry.path("guest"), format!("{reason}; it is dropped")),
    }
}

fn limits_of(mut limits: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let mut limit = |key| limits.limit(key, notes);
    let memory = [("memory_mb", 1 << 20), ("memory_bytes", 1), ("memory_pages", PAGE)];
    let memory = memory.map(|(key, unit)| Some(limit(key)?.saturating_mul(unit)));
    let time =
        [limit("timeout_secs").map(|seconds| seconds.saturating_mul(1_000)), limit("timeout_ms")];
    let fuel = [limit("fuel"), limit("max_fuel")];
    let max_memory = max_memory(&mut limits, notes);
    let max_time = max_time(&mut limits, notes);
    // If several limits exist, the smallest takes effect.
    let memory = memory.into_iter().chain([max_memory]).flatten().min().map(ByteSize::bytes);
    let memory = memory.map(|size| ("memory", format!("\"{size}\"")));
    let time = time.into_iter().chain([max_time]).flatten().min();
    let time = time.map(|time| ("time", format!("\"{time}ms\"")));
    let fuel = fuel.into_iter().flatten().min().map(|value| ("fuel", value.to_string()));
    manifest.limits.extend([memory, time, fuel].into_iter().flatten());
    limits.remark(&SIZES, NO_AMOUNT, notes);
    rate(&mut limits, manifest, notes);
    limits.note_unread(notes);
}

/// Reads `max_memory`: a size such as `64MB`, or a number of bytes.
fn max_memory(limits: &mut Fields<'_>, notes: &mut Notes) -> Option<u64> {
    const KEY: &str = "max_memory";
    let bytes = match limits.take(KEY)? {
        Node::Integer(0) => Some(0),
        // A number smaller than a page means mebibytes or pages.
        Node::Integer(bytes) => u64::try_from(*bytes).ok().filter(|bytes| *bytes >= PAGE),
        Node::Text(text) => size_of(text),
        _ => None,
    };
    match bytes {
        Some(0) => notes.zero_limit(limits.path(KEY)),
        None => notes.add(limits.path(KEY), "it is not a size such as `64MiB`; it is ignored"),
        Some(_) => {}
    }
    bytes.filter(|bytes| *bytes > 0)
}

/// Parses a size with a unit, also in the notation of containers (`64Mi`).
fn size_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = match text.ends_with(['K', 'M', 'G', 'i']) {
        true => format!("{text}B"),
        false => text.to_owned(),
    };
    text.parse::<ByteSize>().ok().map(ByteSize::as_u64)
}

/// Reads `max_execution_time` in milliseconds: a duration such as `30s`.
fn max_time(limits: &mut Fields<'_>, notes: &mut Notes) -> Option<u64> {
    const KEY: &str = "max_execution_time";
    let text = match limits.take(KEY)? {
        Node::Text(text) => text.trim(),
        Node::Integer(0) => {
            notes.zero_limit(limits.path(KEY));
            return None;
        }
        _ => "",
    };
    let time = parse_duration(text).ok().and_then(|time| u64::try_from(time.as_millis()).ok());
    if time.is_none() {
        notes.add(limits.path(KEY), "it has no unit, such as `30s`; it is ignored");
    }
    time
}
