//! Properties of every translated manifest.

use std::path::Path;
use std::sync::Arc;

use crate::commands::consent::add::manifests::requested_grants::ManifestGrants;
use crate::commands::consent::add::manifests::{Format, Manifest};
use kitbag::policy::http::{Deny, Methods};
use kitbag::policy::{
    Decision, Grants, HttpGrant, HttpGrants, HttpRequest, Request, UrlPattern, decide,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const FORMATS: [Format; 7] = [
    Format::SkillToml,
    Format::ManifestYaml,
    Format::CapabilitiesJson,
    Format::PolicyYaml,
    Format::ExtensionToml,
    Format::ActComponent,
    Format::ActToml,
];

fn translate(format: Format, text: &str) -> Manifest {
    Manifest::translate(format, text, Path::new("/skills/own"))
}

/// Returns the words into which a shell splits a command line.
fn words_of(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}; printf x");
    let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.strip_suffix("\0x").unwrap();
    words.split('\0').map(str::to_owned).collect()
}

/// Returns the grants if all requests are granted.
fn granted(manifest: &Manifest) -> Grants {
    let grant =
        |requested: &crate::commands::consent::add::manifests::requested_grants::ManifestHttp| {
            let mut grant = HttpGrant::new(requested.url.parse().unwrap());
            grant.methods = match &requested.methods {
                None => Methods::Any,
                Some(methods) => Methods::new(methods.iter().map(String::as_str)).unwrap(),
            };
            Arc::new(grant)
        };
    let deny = manifest.requested.deny.iter().map(|url| UrlPattern::parse_denied(url).unwrap());
    let http = HttpGrants {
        grants: manifest.requested.http.iter().map(grant).collect(),
        deny: Arc::new(Deny::new(deny.collect())),
    };
    Grants { http, ..Grants::default() }
}

fn is_allowed(manifest: &Manifest, method: &str, host: &str, path: &str) -> bool {
    let request = HttpRequest::new(method, &format!("https://{host}{path}")).unwrap();
    matches!(decide(&granted(manifest), &Request::Http(request)), Decision::Allowed { .. })
}

/// Returns whether a pattern of a manifest matches a host.
fn means(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(suffix) => host.ends_with(&format!(".{suffix}")),
        None => pattern.eq_ignore_ascii_case(host),
    }
}

fn hosts() -> impl Strategy<Value = String> {
    let hosts =
        ["a.example", "b.example", "x.a.example", "y.x.a.example", "*.a.example", "*", "A.EXAMPLE"];
    prop::sample::select(hosts.to_vec()).prop_map(str::to_owned)
}

fn paths() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "/", "/api", "/api/", "/apis", "x", "/x", "/..", "*", "%2f", "?a",
    ]);
    prop::collection::vec(parts, 0..4).prop_map(|parts| parts.concat())
}

/// Generates paths of directories, many of them nested.
fn places() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec!["a", "a/b", "a/b/c", "b", "/a", "/a/b", "."]);
    prop_oneof![known.prop_map(str::to_owned), "[a-c~$*./]{1,6}"]
}

fn requests() -> impl Strategy<Value = (String, String, String)> {
    let methods = prop::sample::select(vec!["GET", "HEAD", "POST", "DELETE"]);
    let hosts =
        prop::sample::select(vec!["a.example", "b.example", "x.a.example", "y.x.a.example"]);
    let paths =
        prop::sample::select(vec!["/", "/api", "/api/", "/api/x", "/apis", "/x", "/api/x/y"]);
    (methods, hosts, paths)
        .prop_map(|(method, host, path)| (method.into(), host.into(), path.into()))
}

proptest! {
    #[test]
    fn capabilities_never_reach_more_than_their_list(
        list in prop::collection::vec(
            (hosts(), prop::option::of(paths()), prop::collection::vec(
                prop::sample::select(vec!["GET", "POST", "DELETE"]), 0..3)),
            0..4,
        ),
        requests in prop::collection::vec(requests(), 1..30),
    ) {
        let entries: Vec<Value> = list.iter().map(|(host, prefix, methods)| {
            let mut entry = json!({ "host": host, "methods": methods });
            if let Some(prefix) = prefix {
                entry["path_prefix"] = json!(prefix);
            }
            entry
        }).collect();
        let text = json!({ "http": { "allowlist": entries } }).to_string();
        let manifest = translate(Format::CapabilitiesJson, &text);
        for (method, host, path) in requests {
            let says = list.iter().any(|(own, prefix, methods)| {
                let has_method = methods.is_empty()
                    || methods.iter().any(|own| *own == method || *own == "GET" && method == "HEAD");
                (own == "*" || means(own, &host))
                    && path.starts_with(prefix.as_deref().unwrap_or(""))
                    && has_method
            });
            prop_assert!(!is_allowed(&manifest, &method, &host, &path) || says, "{text}: {method} {host}{path}");
        }
    }

    #[test]
    fn a_policy_never_reaches_what_it_denies(
        allow in prop::collection::vec(hosts(), 0..4),
        deny in prop::collection::vec(hosts(), 0..3),
        requests in prop::collection::vec(requests(), 1..30),
    ) {
        let list = |hosts: &[String]| -> Vec<Value> {
            hosts.iter().map(|host| json!({ "host": host })).collect()
        };
        let network = json!({ "allow": list(&allow), "deny": list(&deny) });
        // JSON is YAML.
        let text = json!({ "permissions": { "network": network } }).to_string();
        let manifest = translate(Format::PolicyYaml, &text);
        for (method, host, path) in requests {
            let says = |list: &[String]| list.iter().any(|own| own == "*" || means(own, &host));
            let allowed = is_allowed(&manifest, &method, &host, &path);
            prop_assert!(!allowed || says(&allow) && !says(&deny), "{text}: {host}");
        }
    }

    #[test]
    fn only_listed_directories_are_requested(
        read in prop::collection::vec(places(), 0..4),
        write in prop::collection::vec(places(), 0..4),
        denied in prop::collection::vec(places(), 0..3),
        end in prop::sample::select(vec!["", "/", "/**"]),
    ) {
        let text = toml::to_string(&json!({ "capabilities": { "filesystem": { "read": read, "write": write } } }));
        let manifest = translate(Format::SkillToml, &text.unwrap());
        for requested in &manifest.requested.directories {
            let list = if requested.is_writable { &write } else { &read };
            prop_assert!(list.contains(&requested.host), "{requested:?}");
        }
        let entry = |(path, access): (&String, &str)| json!({ "uri": format!("fs://{path}{end}"), "access": [access] });
        let allow: Vec<_> = read.iter().map(|path| entry((path, "read"))).collect();
        let deny: Vec<_> = denied.iter().map(|path| entry((path, "read"))).collect();
        let text = json!({ "permissions": { "storage": { "allow": allow, "deny": deny } } }).to_string();
        for requested in &translate(Format::PolicyYaml, &text).requested.directories {
            prop_assert!(!requested.is_writable);
            let path = |text: &str| {
                let text = format!("{text}{end}");
                let path = text.strip_suffix("/**").unwrap_or(&text).trim_end_matches('/');
                match path {
                    "" if text.starts_with('/') => "/".to_owned(),
                    "" => ".".to_owned(),
                    path => path.to_owned(),
                }
            };
            prop_assert_ne!(&requested.host, "/");
            prop_assert!(read.iter().any(|own| path(own) == requested.host), "{text}: {requested:?}");
            let is_denied = denied.iter().any(|own| Path::new(&path(own)).starts_with(&requested.host));
            prop_assert!(!is_denied, "{text}: {requested:?}");
        }
    }

    #[test]
    fn any_text_is_translated(text in any::<String>()) {
        for format in FORMATS {
            let manifest = translate(format, &text);
            prop_assert!(toml::from_str::<toml::Table>(&manifest.to_toml()).is_ok());
        }
        let _ = Manifest::of_jp(&text, None);
    }

    #[test]
    fn any_bytes_are_translated(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        for format in FORMATS {
            let manifest = Manifest::translate(format, &bytes, Path::new("/skills/own"));
            let nothing = ManifestGrants { deny: manifest.requested.deny.clone(), ..ManifestGrants::default() };
            prop_assert_eq!(&manifest.requested, &nothing);
        }
    }

    #[test]
    fn hostile_credential_strings_stay_quoted(
        texts in prop::array::uniform5("[a-z$()`;&|'\"\\ \n~!-]{0,12}"),
        kind in prop::sample::select(vec!["bearer", "basic", "header", "query_param", "url_path", "cookie"]),
    ) {
        let [name, user, header, prefix, host] = &texts;
        let location = json!({
            "type": kind, "username": user, "name": header, "prefix": prefix, "placeholder": user,
        });
        let credential = json!({ "secret_name": name, "location": location, "host_patterns": [host, "a.example"] });
        let text = json!({ "http": { "credentials": { "c": credential } } }).to_string();
        for note in translate(Format::CapabilitiesJson, &text).notes {
            let Some((_, command)) = note.text.split_once("keep it with `") else { continue };
            let command = command.strip_suffix('`').unwrap();
            // A shell would run the program `kitbag` with some arguments.
            let words = words_of(command);
            prop_assert_eq!(&words[..3], ["kitbag", "secret", "set"]);
            prop_assert_eq!(&words[3], name);
            prop_assert_eq!(kitbag::base::shell::command(&words), command);
        }
    }

    #[test]
    fn any_manifest_like_document_is_translated(
        words in prop::collection::vec(prop::sample::select(vec![
            "name", "capabilities", "http", "filesystem", "paths", "permissions", "network", "allow", "deny",
            "host", "uri", "resources", "fuel", "allowlist", "enabled", "true", "0", "1.5", "fs://a", ":", "-",
            "[", "]", "{", "}", ",", "\"", "=", "\n", "\n  ", "&a", "*a", "!x", "<<", "'", "\u{0}", "9999999999999999999999",
        ]), 0..60),
        glue in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(glue);
        for format in FORMATS {
            let manifest = translate(format, &text);
            prop_assert!(toml::from_str::<toml::Table>(&manifest.to_toml()).is_ok(), "{text:?}");
            let _ = granted(&manifest);
        }
        let _ = Manifest::of_jp(&text, None);
    }
}
