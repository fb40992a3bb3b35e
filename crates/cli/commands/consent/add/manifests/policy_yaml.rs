//! `policy.yaml` of Wassette: `permissions` of storage, network and environment, each with `allow`
//! and `deny`.
//!
//! A URI such as `fs://data/**` is relative to the directory in which Wassette was started, here
//! the workspace. The guest sees it under the same path. A host has no scheme and no methods.

use kitbag::base::ByteSize;

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::Node;
use super::requested_grants::{
    ManifestDirectory, ManifestHttp, guest_path, host_path, host_pattern,
};

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    if !is_known_version(&mut root, notes) {
        return;
    }
    manifest.description = root.text("description", notes).map(str::to_owned);
    if let Some(mut permissions) = root.table("permissions", notes) {
        if let Some(fields) = permissions.table("storage", notes) {
            storage(fields, manifest, notes);
        }
        if let Some(fields) = permissions.table("network", notes) {
            network(fields, manifest, notes);
        }
        if let Some(fields) = permissions.table("environment", notes) {
            environment(fields, manifest, notes);
        }
        if let Some(mut resources) = permissions.table("resources", notes) {
            if let Some(limits) = resources.table("limits", notes) {
                limits_of(limits, manifest, notes);
            }
            resources.note_unread(notes);
        }
        permissions.note_unread(notes);
    }
    root.note_unread(notes);
}

/// Returns whether the format version is supported. Denials in another version may have a different
/// meaning.
fn is_known_version(root: &mut Fields<'_>, notes: &mut Notes) -> bool {
    let version = match root.take("version") {
        None => return true,
        Some(Node::Text(text) | Node::Number(text)) => text.clone(),
        Some(Node::Integer(number)) => number.to_string(),
        Some(other) => other.kind().to_owned(),
    };
    let is_known = version == "1" || version.starts_with("1.");
    if !is_known {
        let text = format!(
            "kitbag reads version 1 of this format, not {}; nothing is requested",
            crate::commands::consent::add::manifests::node::quoted(&version)
        );
        notes.add(root.path("version"), text);
    }
    is_known
}

/// The note on a denial that cannot be read. No grant of its kind is requested then.
const UNREADABLE: &str = "the denial cannot be read, so no grant of its kind is requested";

fn storage(mut fields: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let allowed = fields.list("allow", notes).unwrap_or_default();
    let denied = denied(&mut fields, notes, |entry, notes| {
        let uri = entry.text("uri", notes)?;
        // Any overlapping denial counts, even of one kind of access: the directory is not
        // requested.
        entry.take("access");
        directory_of(uri).map_or_else(|_| beginning_of(uri), Some)
    });
    fields.note_unread(notes);
    let Some(denied) = denied else { return };
    for (path, node) in allowed {
        let Some(mut entry) = Fields::of(path.clone(), node, notes) else { continue };
        let Some(uri) = entry.text("uri", notes) else { continue };
        let access = entry.texts("access", notes);
        entry.note_unread(notes);
        let has = |wanted: &str| access.iter().any(|(_, name)| *name == wanted);
        let is_writable = match (has("read"), has("write")) {
            (true, is_writable) => is_writable,
            (false, true) => {
                notes.add(path, "no grant allows only writing; it is dropped");
                continue;
            }
            (false, false) => {
                notes.add(path, "it has neither `read` nor `write`; it is dropped");
                continue;
            }
        };
        let requested = directory_of(uri).and_then(|host| {
            let host = host_path(&host)?;
            let guest = match &*host {
                "." => "/workspace".to_owned(),
                host if host.starts_with('/') => host.to_owned(),
                host => format!("/{host}"),
            };
            Ok(ManifestDirectory { guest: guest_path(&guest)?, host, is_writable })
        });
        match requested {
            Ok(requested) => match denied.iter().find(|denied| overlaps(&requested.host, denied)) {
                Some(denied) => {
                    let text = format!(
                        "{} is denied in it; it is dropped",
                        crate::commands::consent::add::manifests::node::quoted(denied)
                    );
                    notes.add(path, text);
                }
                None => manifest.requested.directories.push(requested),
            },
            Err(reason) => notes.add(path, reason),
        }
    }
}

fn network(mut fields: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let allowed = fields.list("allow", notes).unwrap_or_default();
    let denied = denied(&mut fields, notes, |entry, notes| {
        let host = entry.text("host", notes)?;
        host_pattern(host, "").ok()
    });
    fields.note_unread(notes);
    let Some(denied) = denied else { return };
    for (path, node) in allowed {
        let Some(mut entry) = Fields::of(path.clone(), node, notes) else { continue };
        if entry.take("cidr").is_some() {
            notes.add(entry.path("cidr"), "kitbag grants requests by host name; it is dropped");
        }
        if entry.take("defaults").is_some() {
            notes.add(entry.path("defaults"), "kitbag has no such list of hosts; it is dropped");
        }
        let host = entry.text("host", notes);
        // An unknown field in the entry could restrict it.
        let is_narrower = entry.has_unread();
        entry.note_unread(notes);
        let Some(host) = host.filter(|_| !is_narrower) else { continue };
        match host_pattern(host, "") {
            Ok(url) => manifest.requested.http.push(ManifestHttp { url, methods: None }),
            Err(reason) => notes.add(path, reason),
        }
    }
    manifest.requested.deny.extend(denied);
}

fn environment(mut fields: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let allowed = fields.list("allow", notes).unwrap_or_default();
    let denied =
        denied(&mut fields, notes, |entry, notes| entry.text("key", notes).map(str::to_owned));
    fields.note_unread(notes);
    let Some(denied) = denied else { return };
    for (path, node) in allowed {
        let Some(mut entry) = Fields::of(path.clone(), node, notes) else { continue };
        let key = entry.text("key", notes);
        let is_narrower = entry.has_unread();
        entry.note_unread(notes);
        match key {
            Some(_) if is_narrower => {}
            Some(key) if denied.iter().any(|denied| denied == key) => {
                notes.add(path, "it is both requested and denied; it is denied");
            }
            Some(key) => manifest.requested.variable(path, key, notes),
            None => {}
        }
    }
}

/// Reads the memory limit of a call in the notation of containers: `512Mi`.
fn limits_of(mut limits: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let memory = limits.text("memory", notes);
    let path = limits.path("memory");
    limits.note_unread(notes);
    let Some(memory) = memory else { return };
    let units = [("Ki", 1), ("Mi", 1 << 10), ("Gi", 1 << 20)];
    let number = units.into_iter().find_map(|(unit, kibibytes)| {
        let number: u64 = memory.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(kibibytes)
    });
    match number {
        Some(0) => {
            notes.zero_limit(path);
        }
        Some(kibibytes) => {
            let size = ByteSize::bytes(kibibytes.saturating_mul(1 << 10));
            manifest.limits.push(("memory", format!("\"{size}\"")));
        }
        None => notes.add(path, "it is not a size such as `64Mi`; it is ignored"),
    }
}

/// Returns the denials of a kind. `None` if one of them cannot be read.
fn denied<'a>(
    fields: &mut Fields<'a>,
    notes: &mut Notes,
    read: impl Fn(&mut Fields<'a>, &mut Notes) -> Option<String>,
) -> Option<Vec<String>> {
    let path = fields.path("deny");
    let mut denied = Vec::new();
    let Ok(list) = fields.list("deny", notes) else {
        notes.add(path, UNREADABLE);
        return None;
    };
    for (path, node) in list {
        let entry = Fields::of(path.clone(), node, notes);
        let value = entry.and_then(|mut entry| read(&mut entry, notes));
        match value {
            Some(value) => denied.push(value),
            None => {
                notes.add(path, UNREADABLE);
                return None;
            }
        }
    }
    Some(denied)
}

/// Returns the directory of a URI, relative to the workspace or absolute.
fn directory_of(uri: &str) -> Result<String, String> {
    let path = uri
        .strip_prefix("fs://")
        .ok_or("it is not a URI that begins with `fs://`; it is dropped")?;
    let trimmed = path.strip_suffix("/**").unwrap_or(path).trim_end_matches('/');
    match trimmed {
        "" if path.starts_with('/') => Err("it is the whole file system; it is dropped".to_owned()),
        "" => Ok(".".to_owned()),
        trimmed => host_path(trimmed),
    }
}

/// Returns the part of a URI before the first wildcard: a directory that holds every match.
fn beginning_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("fs://")?;
    let end = path.find(['*', '?', '$', '{', '\\']).unwrap_or(path.len());
    let end = path[..end].rfind('/')?;
    Some(if end == 0 { "/".to_owned() } else { path[..end].to_owned() })
}

/// Returns whether one of two directories contains the other. A relative directory may be in any
/// absolute one.
fn overlaps(a: &str, b: &str) -> bool {
    if a.starts_with('/') != b.starts_with('/') || a.starts_with('~') != b.starts_with('~') {
        return true;
    }
    let parts = |path: &str| {
        let parts =
            path.split('/').filter(|part| !matches!(*part, "" | ".")).map(str::to_lowercase);
        parts.collect::<Vec<_>>()
    };
    let (a, b) = (parts(a), parts(b));
    let shared = a.len().min(b.len());
    a[..shared] == b[..shared]
}
