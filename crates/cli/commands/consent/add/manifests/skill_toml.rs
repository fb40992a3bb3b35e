//! `skill.toml`: `[skill]`, `[capabilities]`, `[resources]`, `[wasm]`.
//!
//! `memory_mb` is in mebibytes, and `epoch_timeout_secs` in seconds of real time. A domain is one
//! host that may be reached with any method. A path is the same for the host and the guest. A
//! directory in `write` may also be read.

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::Node;
use super::requested_grants::{ManifestHttp, directory, host_pattern};

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    if let Some(mut skill) = root.table("skill", notes) {
        let mut text = |key| skill.text(key, notes).map(str::to_owned);
        manifest.name = text("name");
        manifest.version = text("version");
        manifest.description = text("description");
        manifest.author = text("author");
        skill.note_unread(notes);
    }
    if let Some(mut capabilities) = root.table("capabilities", notes) {
        if let Some(mut network) = capabilities.table("network", notes) {
            for (path, domain) in network.texts("domains", notes) {
                match host_pattern(domain, "") {
                    Ok(url) => manifest.requested.requests(ManifestHttp { url, methods: None }),
                    Err(reason) => notes.add(path, reason),
                }
            }
            network.note_unread(notes);
        }
        if let Some(mut filesystem) = capabilities.table("filesystem", notes) {
            let read = filesystem.texts("read", notes);
            let write = filesystem.texts("write", notes);
            let is_written = |text: &str| write.iter().any(|(_, other)| *other == text);
            let only_read = read.iter().filter(|(_, text)| !is_written(text));
            let lists = [(only_read.collect::<Vec<_>>(), false), (write.iter().collect(), true)];
            for (list, is_writable) in lists {
                for (path, text) in list {
                    match directory(text, is_writable) {
                        Ok(requested) if manifest.requested.directories.contains(&requested) => {}
                        Ok(requested) => manifest.requested.directories.push(requested),
                        Err(reason) => notes.add(path, reason),
                    }
                }
            }
            filesystem.note_unread(notes);
        }
        for (path, name) in capabilities.texts("env", notes) {
            manifest.requested.variable(path, name, notes);
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
