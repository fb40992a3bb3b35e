//! `manifest.toml` of IronClaw: `reborn.extension_manifest.v3`.
//!
//! One component serves all `[[tools]]`, which it tells apart by their `id`. Without a selected tool,
//! the grants of all are requested together. A credential names its destination host, which the tool
//! may then reach with any method.

use std::collections::BTreeSet;

use super::credential::Credential;
use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::{Node, quoted};
use super::requested_grants::{ManifestHttp, host_pattern};

const VERSION: &str = "reborn.extension_manifest.v3";

/// Fields that duplicate the component's own description.
const DESCRIBED: [&str; 2] = ["output_schema_ref", "prompt_doc_ref"];

const PARTS: [(&str, &str); 5] = [
    ("mcp", "it is an MCP server, which kitbag does not connect to; it is ignored"),
    ("channel", "kitbag has no channels; it is ignored"),
    ("memory", "kitbag has no providers of memory; it is ignored"),
    ("admin_configuration", "it configures another host; it is ignored"),
    ("metadata", "it is for people; it is ignored"),
];

/// Translates the tool with the name `selected`, or all tools.
pub(crate) fn translate(
    root: &Node,
    selected: Option<&str>,
    manifest: &mut Manifest,
    notes: &mut Notes,
) {
    let Some(mut root) = Fields::of("", root, notes) else { return };
    match root.text("schema_version", notes) {
        Some(VERSION) => {}
        Some(other) => {
            let text =
                format!("kitbag reads `{VERSION}`, not {}; nothing is requested", quoted(other));
            return notes.add(root.path("schema_version"), text);
        }
        None => {
            let text = format!("it does not have the version `{VERSION}`; nothing is requested");
            return notes.add(root.path("schema_version"), text);
        }
    }
    let mut text = |key| root.text(key, notes).map(str::to_owned);
    manifest.name = text("id");
    manifest.title = text("name");
    manifest.version = text("version");
    manifest.description = text("description");
    root.remark(&["trust"], "only you can trust a tool; it is ignored", notes);
    if let Some(mut runtime) = root.table("runtime", notes) {
        match runtime.text("kind", notes) {
            Some("wasm") => manifest.component = runtime.text("module", notes).map(str::to_owned),
            Some(other) => {
                let text =
                    format!("it is {}, and kitbag runs components; it is ignored", quoted(other));
                notes.add(runtime.path("kind"), text);
                runtime.take("service");
            }
            None => {}
        }
        runtime.note_unread(notes);
    }
    for (key, text) in PARTS {
        root.remark(&[key], text, notes);
    }
    root.remark(
        &["auth"],
        "kitbag obtains no credentials; store the value yourself with `kitbag secret set`",
        notes,
    );
    let tools = root.list("tools", notes).unwrap_or_default();
    let is_only = tools.len() == 1;
    if tools.len() > 1 && selected.is_none() {
        let text = format!(
            "its {} tools are requested together; add one of them with `--tool ID`",
            tools.len()
        );
        notes.add(root.path("tools"), text);
    }
    let mut ids = BTreeSet::new();
    for (path, node) in tools {
        // Many tools repeat the same notes, which are kept once.
        let Some(mut tool) = Fields::of(root.path("tools"), node, notes) else { continue };
        let id = tool.text("id", notes);
        if let Some(id) = id {
            if !ids.insert(id) {
                notes.add(path, format!("{} exists twice", quoted(id)));
            }
            manifest.tools.push(id.to_owned());
        }
        let is_selected = match selected {
            Some(selected) => id == Some(selected),
            None => true,
        };
        if is_selected {
            let is_alone = selected.is_some() || is_only;
            if let Some(id) = id.filter(|_| is_alone) {
                manifest.function = Some(id.to_owned());
                if selected.is_some() {
                    manifest.name = Some(tool_name(id));
                }
            }
            self::tool(&mut tool, is_alone, manifest, notes);
        }
    }
    if selected.is_some() && manifest.function.is_some() && manifest.schema.is_none() {
        let text = "it names no schema; describe the arguments in `parameters` of the tool";
        notes.add("tools.input_schema_ref", text);
    }
    root.note_unread(notes);
}

/// Returns the name of a tool with this `id`, such as `github_get_issue` for `github.get_issue`.
fn tool_name(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Translates one tool. `is_alone` is true if the manifest's other tools are not added.
fn tool(tool: &mut Fields<'_>, is_alone: bool, manifest: &mut Manifest, notes: &mut Notes) {
    const DESCRIBES: &str = "the component describes itself; it is ignored";
    if is_alone {
        let mut text = |key| tool.text(key, notes).map(str::to_owned);
        let own = text("description").filter(|text| !text.trim().is_empty());
        manifest.description = own.or(manifest.description.take());
        manifest.schema = text("input_schema_ref");
    } else {
        tool.remark(&["description", "input_schema_ref"], DESCRIBES, notes);
    }
    tool.remark(&DESCRIBED, DESCRIBES, notes);
    match tool.text("default_permission", notes) {
        None | Some("allow") => {}
        Some("ask") => manifest.is_approved_per_call = true,
        Some(other) => {
            manifest.is_approved_per_call = true;
            let text =
                format!("{} is treated as `ask`: a person approves each call", quoted(other));
            notes.add(tool.path("default_permission"), text);
        }
    }
    match tool.text("visibility", notes) {
        None | Some("model") => {}
        Some(other) => {
            let text = format!("it is {}, and kitbag offers every tool to models", quoted(other));
            notes.add(tool.path("visibility"), text);
        }
    }
    tool.remark(
        &["origin_gate_matrix"],
        "kitbag asks before calls by `approve`; it is ignored",
        notes,
    );
    tool.remark(
        &["max_egress_bytes", "resource_profile"],
        "kitbag cannot apply it to one of several tools; set `limits` of the tool yourself",
        notes,
    );
    let mut has_network = false;
    for (path, effect) in tool.texts("effects", notes) {
        match effect {
            "network" => has_network = true,
            // The fields below request the matching grants.
            "use_secret" | "dispatch_capability" | "external_write" => {}
            "read_filesystem" | "write_filesystem" | "delete_filesystem" => {
                let text = format!("{} names no directory; grant one yourself", quoted(effect));
                notes.add(tool.path("effects"), text);
            }
            other => {
                let text = format!("kitbag has no effect named {}; it is ignored", quoted(other));
                notes.add(if other.len() > 64 { path } else { tool.path("effects") }, text);
            }
        }
    }
    let mut hosts = Vec::new();
    for (path, node) in tool.list("network_targets", notes).unwrap_or_default() {
        if let Some(mut target) = Fields::of(path, node, notes) {
            hosts.extend(host(&mut target, "host_pattern", notes));
        }
    }
    for (_, node) in tool.list("credentials", notes).unwrap_or_default() {
        let path = tool.path("credentials");
        let Some(mut credential) = Fields::of(path, node, notes) else { continue };
        let audience = credential.table("audience", notes);
        let host = audience.and_then(|mut audience| host(&mut audience, "host", notes));
        hosts.extend(host.clone());
        request(&mut credential, host, manifest, notes);
    }
    if has_network && hosts.is_empty() {
        notes.add(tool.path("effects"), "`network` names no host; no request is granted");
    }
    if !has_network && !hosts.is_empty() {
        let text = "it names hosts without the effect `network`; no request is granted";
        return notes.add(tool.path("effects"), text);
    }
    for (path, host) in hosts {
        match host_pattern(&host, "") {
            Ok(url) => manifest.requested.requests(ManifestHttp { url, methods: None }),
            Err(reason) => notes.add(path, reason),
        }
    }
    tool.note_unread(notes);
}

/// Returns the host and port of a target, and its location. `None` if the target does not use
/// `https`.
fn host(target: &mut Fields<'_>, key: &'static str, notes: &mut Notes) -> Option<(String, String)> {
    let scheme = target.text("scheme", notes);
    let host = target.text(key, notes);
    let port = match target.take("port") {
        None => String::new(),
        Some(Node::Integer(port @ 1..=65_535)) => format!(":{port}"),
        Some(other) => {
            notes.wrong_type(target.path("port"), "a port", other);
            return None;
        }
    };
    target.note_unread(notes);
    if !matches!(scheme, None | Some("https")) {
        notes.add(target.path("scheme"), "it is not `https`; it is dropped");
        return None;
    }
    let Some(host) = host else {
        notes.add(target.own_path(), "it names no host; it is dropped");
        return None;
    };
    Some((target.path(key), format!("{host}{port}")))
}

fn request(
    credential: &mut Fields<'_>,
    host: Option<(String, String)>,
    manifest: &mut Manifest,
    notes: &mut Notes,
) {
    credential.remark(
        &["vendor", "scopes", "placeholder_env"],
        "it describes how another host obtains the value; it is ignored",
        notes,
    );
    // A request without a required secret fails in any case.
    credential.take("required");
    let path = credential.own_path().to_owned();
    let name_path = credential.path("handle");
    let Some(name) = credential.text("handle", notes) else {
        return notes.add(path, "it names no secret; it is dropped");
    };
    let has_location = credential.take("injection").is_some();
    let location = credential.table("injection", notes);
    credential.note_unread(notes);
    if has_location != location.is_some() {
        return notes.add(path, "its place in a request is unknown; the secret is not requested");
    }
    let hosts = host.into_iter().collect();
    Credential { path, name: (name_path, name), hosts, location }.request(manifest, notes);
}
