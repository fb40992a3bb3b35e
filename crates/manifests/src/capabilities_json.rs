//! `NAME.capabilities.json`: `http`, `secrets`, `tool_invoke`, `workspace`.
//!
//! A list of methods that is empty means every one, and a path begins with its prefix. Requests
//! are encrypted ones. `rate_limit` counts requests.

use kitbag_policy::Rates;

use crate::fields::{Fields, Notes};
use crate::manifest::Manifest;
use crate::node::{Node, quoted};
use crate::wishes::{
    DirectoryWish, HttpWish, SecretWish, guest_path, host_path, host_pattern, methods,
    prefix_patterns,
};

pub(crate) fn translate(root: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    manifest.version = root.text("version", notes).map(str::to_owned);
    manifest.description = root.text("description", notes).map(str::to_owned);
    if let Some(mut http) = root.table("http", notes) {
        for (path, node) in http.list("allowlist", notes).unwrap_or_default() {
            endpoint(path, node, manifest, notes);
        }
        if let Some(credentials) = http.table("credentials", notes) {
            for (path, _, node) in credentials.entries() {
                credential(path, node, manifest, notes);
            }
        }
        rate(&mut http, manifest, notes);
        http.note_unread(notes);
    }
    rate(&mut root, manifest, notes);
    if let Some(mut secrets) = root.table("secrets", notes) {
        for (path, name) in secrets.texts("allowed_names", notes) {
            let text = format!(
                "a tool asks for no names of secrets here, so that {} means nothing",
                quoted(name)
            );
            notes.add(path, text);
        }
        secrets.note_unread(notes);
    }
    if let Some(mut invoke) = root.table("tool_invoke", notes) {
        if let Some(aliases) = invoke.table("aliases", notes) {
            for (path, alias, node) in aliases.entries() {
                match node {
                    Node::Text(tool) => manifest.wishes.tool(path, alias, tool, notes),
                    other => notes.wrong_type(path, "the name of a tool", other),
                }
            }
        }
        invoke.note_unread(notes);
    }
    if let Some(mut workspace) = root.table("workspace", notes) {
        for (path, prefix) in workspace.texts("allowed_prefixes", notes) {
            match directory(prefix) {
                Ok(wish) => manifest.wishes.directories.push(wish),
                Err(reason) => notes.add(path, reason),
            }
        }
        workspace.note_unread(notes);
    }
    root.note_unread(notes);
}

fn endpoint(path: String, node: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut entry) = Fields::of(path.clone(), node, notes) else { return };
    let Some(host) = entry.text("host", notes) else {
        return notes.add(path, "it names no host: it wishes nothing");
    };
    // What is there and cannot be read could have been narrower than nothing.
    let prefix = match entry.take("path_prefix") {
        None => "",
        Some(Node::Text(prefix)) => prefix,
        Some(other) => return notes.wrong_type(entry.path("path_prefix"), "a text", other),
    };
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
    entry.note_unread(notes);
    match (prefix_patterns(host, prefix), methods) {
        (Ok(urls), Ok(methods)) => {
            let wish = |url| HttpWish { url, methods: methods.clone() };
            manifest.wishes.http.extend(urls.into_iter().map(wish));
        }
        (Err(reason), _) => notes.add(path, reason),
        (_, Err(reason)) => notes.add(entry.path("methods"), reason),
    }
}

/// A secret that is added to requests. Where it stands in them is the user's to say, with the
/// command that the note has.
fn credential(path: String, node: &Node, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut entry) = Fields::of(path.clone(), node, notes) else { return };
    let Some(name) = entry.text("secret_name", notes) else {
        return notes.add(path, "it names no secret: it wishes nothing");
    };
    let mut to = Vec::new();
    for (path, host) in entry.texts("host_patterns", notes) {
        match host_pattern(host, "") {
            Ok(url) => to.push(format!("{url}/**")),
            Err(reason) => notes.add(path, reason),
        }
    }
    let location = entry.table("location", notes).and_then(|mut location| {
        let kind = location.text("type", notes)?;
        let mut text = |key| location.text(key, notes);
        let flag = match kind {
            "bearer" => " --bearer".to_owned(),
            "basic" => format!(" --basic {}", text("username").unwrap_or_default()),
            "header" => {
                let name = text("name").or_else(|| text("header_name")).unwrap_or_default();
                let prefix = text("prefix").map(|prefix| format!(" --prefix '{prefix}'"));
                format!(" --header {name}{}", prefix.unwrap_or_default())
            }
            "query_param" => format!(" --query {}", text("name").unwrap_or_default()),
            "url_path" => format!(" --path {}", text("placeholder").unwrap_or_default()),
            _ => String::new(),
        };
        location.note_unread(notes);
        Some(flag)
    });
    entry.note_unread(notes);
    if to.is_empty() {
        return notes.add(path, "it names no host that the secret goes to: it wishes nothing");
    }
    let places: String = to.iter().map(|url| format!(" --to '{url}'")).collect();
    let text = format!(
        "the value is yours: keep it with `kitbag secret set {name}{places}{}`",
        location.unwrap_or_default()
    );
    notes.add(path.clone(), text);
    manifest.wishes.secret(path, SecretWish { name: name.to_owned(), to }, notes);
}

/// How often requests may be made, which bounds how often the tool is called.
fn rate(fields: &mut Fields<'_>, manifest: &mut Manifest, notes: &mut Notes) {
    let Some(mut rate) = fields.table("rate_limit", notes) else { return };
    let per = [("requests_per_minute", "min"), ("requests_per_hour", "h")];
    let rates: Vec<_> = per
        .into_iter()
        .filter_map(|(key, unit)| Some(format!("{}/{unit}", rate.limit(key, notes)?)))
        .collect();
    if !rates.is_empty() {
        let text = "it counts requests there, and here calls of the tool; `limits.requests` bounds the \
                    requests of a call";
        notes.add(fields.path("rate_limit"), text);
        let rates = rates.join(", ");
        match rates.parse::<Rates>() {
            Ok(_) => manifest.rate = Some(rates),
            Err(error) => notes.add(fields.path("rate_limit"), error.to_string()),
        }
    }
    rate.note_unread(notes);
}

fn directory(prefix: &str) -> Result<DirectoryWish, String> {
    if !prefix.ends_with('/') && !prefix.is_empty() {
        return Err(format!(
            "{} is the beginning of names, and a directory is granted as a whole",
            quoted(prefix)
        ));
    }
    let host = match prefix.trim_end_matches('/') {
        "" if prefix.is_empty() => ".".to_owned(),
        prefix => host_path(prefix)?,
    };
    if host.starts_with(['/', '~']) {
        return Err(format!("{} is no path in the workspace", quoted(prefix)));
    }
    let guest = match &*host {
        "." => "/workspace".to_owned(),
        host => guest_path(&format!("/workspace/{host}"))?,
    };
    Ok(DirectoryWish { host, guest, is_writable: false })
}
