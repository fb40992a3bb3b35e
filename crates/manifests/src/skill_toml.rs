//! `skill.toml`: `[skill]`, `[capabilities]`, `[resources]`, `[wasm]`.
//!
//! `memory_mb` counts mebibytes, and `epoch_timeout_secs` seconds of real time. A domain is one
//! host and no other, reached by any method; a path is the same for the host and the guest.

use crate::fields::{Fields, Notes};
use crate::manifest::Manifest;
use crate::node::Node;
use crate::wishes::{DirectoryWish, HttpWish, guest_path, host_path, host_pattern};

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    if let Some(mut skill) = root.table("skill", notes) {
        let mut text = |key| skill.text(key, notes).map(str::to_owned);
        manifest.name = text("name");
        manifest.version = text("version");
        manifest.description = text("description");
        // It is shown by no one.
        let _ = text("author");
        skill.note_unread(notes);
    }
    if let Some(mut capabilities) = root.table("capabilities", notes) {
        if let Some(mut network) = capabilities.table("network", notes) {
            for (path, domain) in network.texts("domains", notes) {
                match host_pattern(domain, "") {
                    Ok(url) => manifest.wishes.http.push(HttpWish { url, methods: None }),
                    Err(reason) => notes.add(path, reason),
                }
            }
            network.note_unread(notes);
        }
        if let Some(mut filesystem) = capabilities.table("filesystem", notes) {
            let read = filesystem.texts("read", notes);
            let write = filesystem.texts("write", notes);
            for (path, text) in &write {
                // There is no grant to write alone.
                if !read.iter().any(|(_, other)| other == text) {
                    let reason = "a directory is granted to be written together with reading it, \
                                  and this one is not to be read";
                    notes.add(path, reason);
                }
            }
            for (path, text) in &read {
                let is_writable = write.iter().any(|(_, other)| other == text);
                match directory(text, is_writable) {
                    Ok(wish) => manifest.wishes.directories.push(wish),
                    Err(reason) => notes.add(path, reason),
                }
            }
            filesystem.note_unread(notes);
        }
        for (path, name) in capabilities.texts("env", notes) {
            manifest.wishes.variable(path, name, notes);
        }
        capabilities.note_unread(notes);
    }
    if let Some(mut resources) = root.table("resources", notes) {
        if let Some(fuel) = resources.limit("fuel", notes) {
            manifest.limits.push(("fuel", fuel.to_string()));
        }
        if let Some(mebibytes) = resources.limit("memory_mb", notes) {
            manifest.limits.push(("memory", format!("\"{mebibytes}MiB\"")));
        }
        if let Some(seconds) = resources.limit("epoch_timeout_secs", notes) {
            manifest.limits.push(("time", format!("\"{seconds}s\"")));
        }
        resources.note_unread(notes);
    }
    if let Some(mut wasm) = root.table("wasm", notes) {
        manifest.component = wasm.text("entry", notes).map(str::to_owned);
        wasm.note_unread(notes);
    }
    root.note_unread(notes);
}

fn directory(text: &str, is_writable: bool) -> Result<DirectoryWish, String> {
    let host = host_path(text)?;
    let relative = host.trim_start_matches("./").trim_end_matches('/');
    let guest = match host.strip_prefix("~/") {
        Some(rest) => format!("/home/{rest}"),
        None if host.starts_with('/') => host.clone(),
        None if matches!(relative, "" | ".") => "/workspace".to_owned(),
        None => format!("/workspace/{relative}"),
    };
    Ok(DirectoryWish { guest: guest_path(&guest)?, host, is_writable })
}
