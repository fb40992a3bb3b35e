//! `manifest.yaml`: `name`, `version`, `description`, `wasm`, `capabilities`, `limits`.
//!
//! Paths of the host are relative to the directory of the skill. A capability counts where it
//! says `enabled: true`. Of `limits`, a key says its unit.

use std::path::Path;

use kitbag_contract::ByteSize;
use kitbag_policy::DirectoryGrant;

use crate::fields::{Fields, Notes};
use crate::manifest::Manifest;
use crate::node::Node;
use crate::wishes::{DirectoryWish, HttpWish, guest_path, host_path, host_pattern, methods};

/// A page of a memory has 64 KiB.
const PAGE: u64 = 64 << 10;

pub(crate) fn translate(root: &Node, directory: &Path, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    let mut text = |key| root.text(key, notes).map(str::to_owned);
    manifest.name = text("name");
    manifest.version = text("version");
    manifest.description = text("description");
    if let Some(mut wasm) = root.table("wasm", notes) {
        manifest.component = wasm.text("file", notes).map(str::to_owned);
        if let Some(export) = wasm.text("export", notes)
            && export != "run"
        {
            notes.add(wasm.path("export"), "a tool is called by its export `run`");
        }
        wasm.note_unread(notes);
    }
    if let Some(mut capabilities) = root.table("capabilities", notes) {
        if let Some(http) = capabilities.table("http", notes) {
            http_wishes(http, manifest, notes);
        }
        if let Some(mut filesystem) = capabilities.table("filesystem", notes) {
            let is_off = filesystem.take("enabled").is_some_and(|node| *node != Node::Bool(true));
            let paths = filesystem.list("paths", notes).unwrap_or_default();
            match is_off {
                true => {
                    notes.add(filesystem.path("enabled"), "it is not `true`: it wishes nothing")
                }
                false => {
                    for (path, node) in paths {
                        path_wish(path, node, directory, manifest, notes);
                    }
                }
            }
            filesystem.note_unread(notes);
        }
        for service in ["email", "browser"] {
            if capabilities.take(service).is_some() {
                let text = "it is a service, which is no grant of its own here: let the tool call one \
                            that has it, with `grants.tools`";
                notes.add(capabilities.path(service), text);
            }
        }
        capabilities.note_unread(notes);
    }
    if let Some(limits) = root.table("limits", notes) {
        limits_of(limits, manifest, notes);
    }
    root.note_unread(notes);
}

fn http_wishes(mut http: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let is_on = http.bool("enabled", notes);
    let hosts = http.texts("allowed_hosts", notes);
    let has_methods = http.take("allowed_methods").is_some();
    let names = http.texts("allowed_methods", notes);
    // A key that is not known may narrow what is allowed.
    let methods = match (has_methods, http.has_unread()) {
        (true, _) => methods(names.iter().map(|(_, name)| *name)).map(Some),
        (false, true) => Ok(Some(vec!["GET".to_owned()])),
        (false, false) => Ok(None),
    };
    match (is_on, methods) {
        (Some(true), Ok(methods)) => {
            if !has_methods && http.has_unread() {
                notes.add(http.path(""), "it has keys with no meaning here, so that it only reads");
            }
            for (path, host) in hosts {
                match host_pattern(host, "") {
                    Ok(url) => {
                        manifest.wishes.http.push(HttpWish { url, methods: methods.clone() });
                    }
                    Err(reason) => notes.add(path, reason),
                }
            }
        }
        (Some(true), Err(reason)) => notes.add(http.path("allowed_methods"), reason),
        _ if hosts.is_empty() => {}
        _ => notes.add(http.path("enabled"), "it is not `true`: it wishes nothing"),
    }
    http.note_unread(notes);
}

fn path_wish(
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
                    .add(entry.path("mode"), "it is neither `ro` nor `rw`: it wishes nothing");
            }
        },
        Some(other) => return notes.wrong_type(entry.path("mode"), "`ro` or `rw`", other),
    };
    let (Some(host), Some(guest)) = (host, guest) else {
        return notes.add(path, "it needs `host` and `guest`: it wishes nothing");
    };
    if host == "$TEMP" || host.starts_with("$TEMP/") {
        if !is_writable {
            let text = "it is a directory of each call that stays empty, so that it is left out";
            return notes.add(entry.path("host"), text);
        }
        return match guest_path(guest) {
            Ok(guest) => {
                let host = DirectoryGrant::TEMPORARY.to_owned();
                manifest.wishes.directories.push(DirectoryWish { host, guest, is_writable });
            }
            Err(reason) => notes.add(entry.path("guest"), reason),
        };
    }
    let host = host_path(host).map(|host| match host.starts_with(['/', '~']) {
        true => host,
        false => directory.join(host.trim_start_matches("./")).to_string_lossy().into_owned(),
    });
    match (host, guest_path(guest)) {
        (Ok(host), Ok(guest)) => {
            manifest.wishes.directories.push(DirectoryWish { host, guest, is_writable });
        }
        (Err(reason), _) => notes.add(entry.path("host"), reason),
        (_, Err(reason)) => notes.add(entry.path("guest"), reason),
    }
}

fn limits_of(mut limits: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let mut limit = |key| limits.limit(key, notes);
    let memory = [("memory_mb", 1 << 20), ("memory_bytes", 1), ("memory_pages", PAGE)];
    let memory = memory.map(|(key, unit)| Some(limit(key)?.saturating_mul(unit)));
    let time =
        [limit("timeout_secs").map(|seconds| seconds.saturating_mul(1_000)), limit("timeout_ms")];
    let fuel = limit("fuel").map(|fuel| fuel.to_string());
    // Of several the smallest counts.
    let memory = memory.into_iter().flatten().min().map(ByteSize::bytes);
    let memory = memory.map(|size| ("memory", format!("\"{size}\"")));
    let time = time.into_iter().flatten().min().map(|time| ("time", format!("\"{time}ms\"")));
    let fuel = fuel.map(|value| ("fuel", value));
    manifest.limits.extend([memory, time, fuel].into_iter().flatten());
    limits.note_unread(notes);
}
