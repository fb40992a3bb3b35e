//! `policy.yaml` of Wassette: `permissions` of storage, network and environment, each with
//! `allow` and `deny`.
//!
//! A URI such as `fs://data/**` is relative to where that host was started, which is the
//! workspace here, and the guest finds it under the same path. A host has no scheme and no
//! methods.

use kitbag_contract::ByteSize;

use crate::fields::{Fields, Notes};
use crate::manifest::Manifest;
use crate::node::Node;
use crate::wishes::{DirectoryWish, HttpWish, guest_path, host_path, host_pattern};

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    // That of the form of the file, not of the tool.
    root.take("version");
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

/// What is denied of a kind, and cannot be read: nothing of the kind is wished then.
const UNREADABLE: &str = "what it denies cannot be told, so that nothing of its kind is wished";

fn storage(mut fields: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let allowed = fields.list("allow", notes).unwrap_or_default();
    let denied = denied(&mut fields, notes, |entry, notes| {
        let uri = entry.text("uri", notes)?;
        // However much of it is denied, and for what: nothing that overlaps is wished.
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
                notes.add(path, "a directory is granted to be written together with reading it");
                continue;
            }
            (false, false) => {
                notes.add(path, "it has neither `read` nor `write`: it wishes nothing");
                continue;
            }
        };
        let wish = directory_of(uri).and_then(|host| {
            let host = host_path(&host)?;
            let guest = match &*host {
                "." => "/workspace".to_owned(),
                host if host.starts_with('/') => host.to_owned(),
                host => format!("/{host}"),
            };
            Ok(DirectoryWish { guest: guest_path(&guest)?, host, is_writable })
        });
        match wish {
            Ok(wish) => match denied.iter().find(|denied| overlaps(&wish.host, denied)) {
                Some(denied) => {
                    notes
                        .add(path, format!("`{denied}` is denied of it, so that it is not wished"));
                }
                None => manifest.wishes.directories.push(wish),
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
            notes.add(
                entry.path("cidr"),
                "requests are granted by the names of hosts: it wishes nothing",
            );
        }
        if entry.take("defaults").is_some() {
            notes.add(
                entry.path("defaults"),
                "a list of another host is not known here: it wishes nothing",
            );
        }
        let host = entry.text("host", notes);
        // Something else in the entry could narrow it.
        let is_narrower = entry.has_unread();
        entry.note_unread(notes);
        let Some(host) = host.filter(|_| !is_narrower) else { continue };
        match host_pattern(host, "") {
            Ok(url) => manifest.wishes.http.push(HttpWish { url, methods: None }),
            Err(reason) => notes.add(path, reason),
        }
    }
    manifest.wishes.deny.extend(denied);
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
                notes.add(path, "it is denied, too");
            }
            Some(key) => manifest.wishes.variable(path, key, notes),
            None => {}
        }
    }
}

/// The memory of a call, as a container has it: `512Mi`. Others have no meaning here.
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
            notes.has_zero_limit = true;
            notes.add(path, "it is zero, so that the manifest wishes nothing");
        }
        Some(kibibytes) => {
            let size = ByteSize::bytes(kibibytes.saturating_mul(1 << 10));
            manifest.limits.push(("memory", format!("\"{size}\"")));
        }
        None => notes.add(path, "it is not a size such as `64Mi`"),
    }
}

/// What is denied of a kind. `None`: it cannot be told.
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

/// The directory that a URI means, relative to the workspace or absolute.
fn directory_of(uri: &str) -> Result<String, String> {
    let path = uri.strip_prefix("fs://").ok_or("it is no URI that begins with `fs://`")?;
    let trimmed = path.strip_suffix("/**").unwrap_or(path).trim_end_matches('/');
    match trimmed {
        "" if path.starts_with('/') => {
            Err("it is the whole file system, which is not granted".to_owned())
        }
        "" => Ok(".".to_owned()),
        trimmed => host_path(trimmed),
    }
}

/// What stands before the first pattern of a URI: a directory that holds all that it means.
fn beginning_of(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("fs://")?;
    let end = path.find(['*', '?', '$', '{', '\\']).unwrap_or(path.len());
    let end = path[..end].rfind('/')?;
    Some(if end == 0 { "/".to_owned() } else { path[..end].to_owned() })
}

/// Whether one of two directories is in the other. What is relative to the workspace may lie
/// in any that is absolute.
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
