//! `NAME.capabilities.json`: `http`, `secrets`, `tool_invoke` and `workspace`, at the top level or
//! in `capabilities`.
//!
//! An empty list of methods allows every method, and paths are prefixes. Requests are encrypted.
//! `rate_limit` limits requests.

use super::credential::Credential;
use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::{Node, quoted};
use super::rates::rate;
use super::requested_grants::{
    ManifestDirectory, ManifestHttp, guest_path, host_path, methods, prefix_patterns,
};

/// Fields of a request that limit its size, not its destination.
const AMOUNTS: [&str; 5] = [
    "max_request_bytes",
    "max_response_bytes",
    "max_request_size",
    "max_response_size",
    "timeout_secs",
];

const NO_AMOUNT: &str =
    "kitbag has no such limit of one request; `limits` of the tool bounds the whole call";

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    let mut text = |key| root.text(key, notes).map(str::to_owned);
    manifest.name = text("name");
    manifest.version = text("version");
    manifest.description = text("description");
    match root.text("type", notes) {
        None | Some("tool") => {}
        Some(other) => {
            notes.add(
                root.path("type"),
                format!("it is {}, and kitbag runs it as a tool", quoted(other)),
            );
        }
    }
    root.remark(
        &["wit_version"],
        "the component itself names the interfaces that it needs; it is ignored",
        notes,
    );
    root.remark(
        &["auth", "setup"],
        "kitbag obtains no credentials; store the value yourself with `kitbag secret set`",
        notes,
    );
    // A channel has the same fields one level deeper.
    if let Some(mut nested) = root.table("capabilities", notes) {
        capabilities(&mut nested, manifest, notes);
        nested.note_unread(notes);
    }
    capabilities(&mut root, manifest, notes);
    root.note_unread(notes);
}

fn capabilities(fields: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    endpoints(fields, "allowed_endpoints", manifest, notes);
    if let Some(mut http) = fields.table("http", notes) {
        endpoints(&mut http, "allowlist", manifest, notes);
        endpoints(&mut http, "allowed_endpoints", manifest, notes);
        if let Some(credentials) = http.table("credentials", notes) {
            for (path, _, node) in credentials.entries() {
                credential(path, node, manifest, notes);
            }
        }
        http.remark(&AMOUNTS, NO_AMOUNT, notes);
        rate(&mut http, manifest, notes);
        http.note_unread(notes);
    }
    rate(fields, manifest, notes);
    if let Some(mut secrets) = fields.table("secrets", notes) {
        for key in ["allowed_names", "allowed"] {
            for (path, name) in secrets.texts(key, notes) {
                let text = format!(
                    "a tool sees {} only if the secret is granted; it is ignored: \
                     `http.credentials` requests the secrets",
                    quoted(name)
                );
                notes.add(path, text);
            }
        }
        secrets.note_unread(notes);
    }
    if let Some(mut invoke) = fields.table("tool_invoke", notes) {
        if let Some(aliases) = invoke.table("aliases", notes) {
            for (path, alias, node) in aliases.entries() {
                match node {
                    Node::Text(tool) => manifest.requested.tool(path, alias, tool, notes),
                    other => notes.wrong_type(path, "the name of a tool", other),
                }
            }
        }
        rate(&mut invoke, manifest, notes);
        invoke.note_unread(notes);
    }
    workspace(fields, manifest, notes);
}

/// Reads `workspace`: `true` for the whole workspace, or a table with the directories to read.
fn workspace(fields: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let path = fields.path("workspace");
    let node = match fields.take("workspace") {
        None | Some(Node::Bool(false)) => return,
        Some(Node::Bool(true)) => {
            notes.add(path, "read access to the whole workspace is requested");
            return manifest.requested.directories.extend(directory(""));
        }
        Some(node) => node,
    };
    let Some(mut workspace) = Fields::of(path, node, notes) else { return };
    for (path, prefix) in workspace.texts("allowed_prefixes", notes) {
        match directory(prefix) {
            Ok(requested) => manifest.requested.directories.push(requested),
            Err(reason) => notes.add(path, reason),
        }
    }
    workspace.note_unread(notes);
}

/// Reads a list of endpoints: tables with a host, or strings such as `https://a.example/v1/*`.
fn endpoints(
    fields: &mut Fields<'_>,
    key: &'static str,
    manifest: &mut Manifest,
    notes: &mut Notes,
) {
    for (path, node) in fields.list(key, notes).unwrap_or_default() {
        match node {
            Node::Text(url) => match url_patterns(url) {
                Ok(urls) => {
                    for url in urls {
                        manifest.requested.requests(ManifestHttp { url, methods: None });
                    }
                }
                Err(reason) => notes.add(path, reason),
            },
            node => endpoint(path, node, manifest, notes),
        }
    }
}

/// Returns the patterns of a string that is a URL or a host with a path, and may end in `*`.
fn url_patterns(text: &str) -> Result<Vec<String>, String> {
    let rest = match text.split_once("://") {
        Some(("https", rest)) => rest,
        Some(_) => {
            return Err(format!("{} is not an `https` URL; it is dropped", quoted(text)));
        }
        None => text,
    };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    // `/v1/*` and `/v1/**` mean all paths below `/v1/`.
    let path = match path.trim_end_matches('*') {
        prefix if prefix.len() == path.len() || prefix.ends_with('/') => prefix,
        _ => return Err(format!("{} is not a host with a path; it is dropped", quoted(text))),
    };
    prefix_patterns(host, path)
}

fn endpoint(path: String, node: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut entry) = Fields::of(path.clone(), node, notes) else { return };
    let Some(host) = entry.text("host", notes) else {
        return notes.add(path, "it names no host; it is dropped");
    };
    // An invalid prefix could have been narrower than no prefix.
    let mut prefix = "";
    for key in ["path_prefix", "path"] {
        match entry.take(key) {
            None => {}
            Some(Node::Text(text)) => prefix = text,
            Some(other) => return notes.wrong_type(entry.path(key), "a text", other),
        }
    }
    let Ok(names) = entry.list("methods", notes) else { return };
    let mut texts = Vec::new();
    for (path, name) in &names {
        match name {
            Node::Text(name) => texts.push(&**name),
            other => return notes.wrong_type(path, "a method", other),
        }
    }
    let methods = match texts.is_empty() {
        true => Ok(None),
        false => methods(texts).map(Some),
    };
    entry.remark(&AMOUNTS, NO_AMOUNT, notes);
    entry.remark(&["description"], "it is for people; it is ignored", notes);
    rate(&mut entry, manifest, notes);
    let is_narrower = entry.has_unread();
    entry.note_unread(notes);
    if is_narrower {
        return notes.add(path, "it has fields that may restrict it; it is dropped");
    }
    match (prefix_patterns(host, prefix), methods) {
        (Ok(urls), Ok(methods)) => {
            for url in urls {
                manifest.requested.requests(ManifestHttp { url, methods: methods.clone() });
            }
        }
        (Err(reason), _) => notes.add(path, reason),
        (_, Err(reason)) => notes.add(entry.path("methods"), format!("{reason}; it is dropped")),
    }
}

fn credential(path: String, node: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut entry) = Fields::of(path.clone(), node, notes) else { return };
    let Some(name) = entry.text("secret_name", notes) else {
        return notes.add(path, "it names no secret; it is dropped");
    };
    let hosts = entry.texts("host_patterns", notes).into_iter();
    let hosts = hosts.map(|(path, host)| (path, host.to_owned())).collect();
    let has_location = entry.take("location").is_some();
    let location = entry.table("location", notes);
    entry.note_unread(notes);
    if has_location && location.is_none() {
        return notes.add(path, "its place in a request is unknown; the secret is not requested");
    }
    let name = (entry.path("secret_name"), name);
    Credential { path, name, hosts, location }.request(manifest, notes);
}

fn directory(prefix: &str) -> Result<ManifestDirectory, String> {
    if !prefix.ends_with('/') && !prefix.is_empty() {
        return Err(format!(
            "{} is a prefix of names; it is dropped: a directory is granted as a whole",
            quoted(prefix)
        ));
    }
    let host = match prefix.trim_end_matches('/') {
        "" if prefix.is_empty() => ".".to_owned(),
        prefix => host_path(prefix)?,
    };
    if host.starts_with(['/', '~']) {
        return Err(format!("{} is not a path in the workspace; it is dropped", quoted(prefix)));
    }
    let guest = match &*host {
        "." => "/workspace".to_owned(),
        host => guest_path(&format!("/workspace/{host}"))?,
    };
    Ok(ManifestDirectory { host, guest, is_writable: false })
}
