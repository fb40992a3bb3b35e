//! `act:component`, the section of a component for ACT, and `act.toml`, from which it is made.
//!
//! `std.capabilities` lists what the component may be granted at most. A capability has the list
//! `constraints`, which older versions call `allow`. A path is a pattern: `/**` or `/` at its end
//! means the directory with all that it contains, and `**` every file. A host without `ports` and
//! `scheme` means all of them; only `https` with its usual port is requested then.

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::Node;
use super::requested_grants::{
    ManifestDirectory, ManifestHttp, directory, guest_path, host_pattern, methods,
};

/// The note on an entry with a field that may narrow it.
const UNKNOWN: &str = "it has a field that kitbag does not know; it is dropped";

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    // Other tables belong to other programs.
    let Some(mut std) = root.table("std", notes) else { return };
    // The component names and describes each of its tools itself.
    for key in ["name", "description", "default-language", "license"] {
        std.take(key);
    }
    manifest.version = std.text("version", notes).map(str::to_owned);
    manifest.author = std.text("author", notes).map(str::to_owned);
    if let Some(mut capabilities) = std.table("capabilities", notes) {
        if let Some(filesystem) = capabilities.table("wasi:filesystem", notes) {
            translate_filesystem(filesystem, manifest, notes);
        }
        if let Some(http) = capabilities.table("wasi:http", notes) {
            translate_http(http, manifest, notes);
        }
        capabilities.remark(&["wasi:sockets"], "no grant allows sockets; it is dropped", notes);
        capabilities.note_unread(notes);
    }
    std.note_unread(notes);
}

/// Returns the entries of a capability.
fn entries<'a>(capability: &mut Fields<'a>, notes: &mut Notes) -> Vec<Fields<'a>> {
    capability.take("description");
    let mut entries = Vec::new();
    for key in ["allow", "constraints"] {
        for (path, node) in capability.list(key, notes).unwrap_or_default() {
            entries.extend(Fields::of(path, node, notes));
        }
    }
    entries
}

fn translate_filesystem(mut filesystem: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let mut root = filesystem.text("mount-root", notes);
    if let Some(mut parameters) = filesystem.table("params", notes) {
        root = root.or(parameters.text("mount-root", notes));
        parameters.note_unread(notes);
    }
    for mut entry in entries(&mut filesystem, notes) {
        let place = entry.own_path().to_owned();
        let mode = entry.text("mode", notes);
        let is_writable = match mode {
            Some("rw") => true,
            Some("ro") => false,
            _ => {
                notes.add(place, "`mode` must be `ro` or `rw`; it is dropped");
                continue;
            }
        };
        let requested = match entry.text("path", notes) {
            Some(path) => requested_directory(path, root, is_writable),
            None => Err("it has no `path`; it is dropped".to_owned()),
        };
        match requested {
            Ok(_) if entry.has_unread() => notes.add(place, UNKNOWN),
            Ok(requested) if manifest.requested.directories.contains(&requested) => {}
            Ok(requested) => manifest.requested.directories.push(requested),
            Err(reason) => notes.add(place, reason),
        }
    }
    filesystem.note_unread(notes);
}

/// Returns the directory that a pattern of paths means. Every file becomes the workspace.
fn requested_directory(
    path: &str,
    root: Option<&str>,
    is_writable: bool,
) -> Result<ManifestDirectory, String> {
    let below = match path {
        "**" | "/**" | "/" | "./**" => ".",
        _ => path.strip_suffix("/**").or_else(|| path.strip_suffix('/')).ok_or_else(|| {
            "it does not end with `/**` and means a file; it is dropped: a directory is granted as a \
             whole"
                .to_owned()
        })?,
    };
    let requested = directory(below, is_writable)?;
    match root.map(|root| root.trim_end_matches('/')) {
        None | Some("") => Ok(requested),
        Some(root) => Ok(ManifestDirectory {
            guest: guest_path(&format!("{root}{}", requested.guest))?,
            ..requested
        }),
    }
}

fn translate_http(mut http: Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    for mut entry in entries(&mut http, notes) {
        let place = entry.own_path().to_owned();
        match requested_urls(&mut entry, notes) {
            Ok(_) if entry.has_unread() => notes.add(place, UNKNOWN),
            Ok(requested) => {
                requested.into_iter().for_each(|it| manifest.requested.requests(it));
            }
            Err(reason) => notes.add(place, reason),
        }
    }
    http.note_unread(notes);
}

/// Returns the requests of an entry, one for each port.
fn requested_urls(entry: &mut Fields<'_>, notes: &mut Notes) -> Result<Vec<ManifestHttp>, String> {
    let host = entry.text("host", notes).ok_or("it has no `host`; it is dropped")?;
    if host.contains(':') {
        return Err("it has a port or an address of version 6; it is dropped".to_owned());
    }
    let url = host_pattern(host, "")?;
    let url = match entry.text("scheme", notes) {
        None => url,
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => url,
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => url.replacen("https", "http", 1),
        Some(_) => return Err("its `scheme` is not `http` or `https`; it is dropped".to_owned()),
    };
    let has_methods = entry.has("methods");
    let listed: Vec<_> = entry.texts("methods", notes).into_iter().map(|(_, text)| text).collect();
    let methods = match (has_methods, &listed[..]) {
        (false, _) => None,
        (true, []) => return Err("it allows no method; it is dropped".to_owned()),
        (true, listed) => Some(methods(listed.iter().copied())?),
    };
    let has_ports = entry.has("ports");
    let ports = entry.list("ports", notes).unwrap_or_default();
    let ports = ports.into_iter().filter_map(|(_, node)| match node {
        Node::Integer(port) => u16::try_from(*port).ok(),
        _ => None,
    });
    let urls: Vec<_> = match has_ports {
        false => vec![url],
        true => ports.map(|port| format!("{url}:{port}")).collect(),
    };
    if urls.is_empty() {
        return Err("it allows no port; it is dropped".to_owned());
    }
    Ok(urls.into_iter().map(|url| ManifestHttp { url, methods: methods.clone() }).collect())
}
