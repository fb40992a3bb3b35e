//! Secrets that a foreign host adds to requests, and the command that stores one in kitbag.

use kitbag::base::shell;
use kitbag::base::text::shown;
use kitbag::policy::{Placement, SecretName, SecretPlace, SecretPlaceError};

use super::fields::{Fields, Notes};
use super::manifest::Manifest;
use super::node::quoted;
use super::requested_grants::{ManifestSecret, host_pattern};

/// A secret that a manifest requests.
pub(crate) struct Credential<'a> {
    pub(crate) path: String,
    pub(crate) name: (String, &'a str),
    /// The destination hosts, each with its location in the manifest.
    pub(crate) hosts: Vec<(String, String)>,
    /// Location of the secret in a request: its path in the manifest, and `type` with its fields.
    pub(crate) location: Option<Fields<'a>>,
}

impl Credential<'_> {
    /// Requests the secret, and notes the command that stores its value.
    ///
    /// If a part does not match the grammar of kitbag's field, the secret is not requested and the
    /// note names that part.
    pub(crate) fn request(self, manifest: &mut Manifest, notes: &mut Notes) {
        let Self { path, name: (name_path, name), hosts, location } = self;
        if let Err(error) = SecretName::new(name) {
            return notes.add(name_path, format!("{error}; the secret is not requested"));
        }
        let options = match location {
            None => Ok(Vec::new()),
            Some(mut location) => {
                let options = placement(&mut location, notes);
                location.note_unread(notes);
                options.map_err(|(key, reason)| (location.path(key), reason))
            }
        };
        let options = match options {
            Ok(options) => options,
            Err((path, reason)) => {
                return notes.add(path, format!("{reason}; the secret is not requested"));
            }
        };
        let mut to = Vec::new();
        let mut has_wildcard = false;
        for (path, host) in hosts {
            let url = match host_pattern(&host, "") {
                Ok(url) => format!("{url}/**"),
                Err(reason) => {
                    notes.add(path, reason);
                    continue;
                }
            };
            let place = SecretPlace::new(&url, false);
            let is_wildcard = matches!(place, Err(SecretPlaceError::Wildcard(_)));
            match place {
                Err(error) if !is_wildcard => notes.add(path, format!("{error}; it is dropped")),
                _ if to.contains(&url) => {}
                _ => {
                    has_wildcard |= is_wildcard;
                    to.push(url);
                }
            }
        }
        if to.is_empty() {
            let text = "it names no host that the secret is sent to; the secret is not requested";
            return notes.add(path, text);
        }
        let mut words = ["kitbag", "secret", "set", name].map(str::to_owned).to_vec();
        for url in &to {
            words.extend(["--to".to_owned(), url.clone()]);
        }
        words.extend(has_wildcard.then(|| "--wildcard".to_owned()));
        words.extend(options);
        let command = shell::command(&words);
        notes.add(&*path, format!("you provide the value: store it with `{command}`"));
        manifest.requested.secret(path, ManifestSecret { name: name.to_owned(), to }, notes);
    }
}

/// Returns the options of `kitbag secret set` for a location in a request. The error names the
/// field that does not match and the reason.
fn placement(
    location: &mut Fields<'_>,
    notes: &mut Notes,
) -> Result<Vec<String>, (&'static str, String)> {
    let Some(kind) = location.text("type", notes) else {
        return Err(("type", "it does not state the place of the secret in a request".to_owned()));
    };
    let mut text = |key| location.text(key, notes).unwrap_or_default().to_owned();
    let refused = |key| move |error: kitbag::policy::PlacementError| (key, error.to_string());
    let options = match kind {
        "bearer" => vec!["--bearer".to_owned()],
        "basic" => {
            let user = text("username");
            check_user(&user).map_err(|reason| ("username", reason))?;
            Placement::basic(Some(user.clone())).map_err(refused("username"))?;
            vec![format!("--basic={user}")]
        }
        "header" => {
            let (key, name) = match text("name") {
                name if name.is_empty() => ("header_name", text("header_name")),
                name => ("name", name),
            };
            let prefix = text("prefix");
            Placement::header(&name, "").map_err(refused(key))?;
            Placement::header(&name, &prefix).map_err(refused("prefix"))?;
            let prefix = (!prefix.is_empty()).then(|| format!("--prefix={prefix}"));
            [format!("--header={name}")].into_iter().chain(prefix).collect()
        }
        "query_param" | "query" => {
            let name = text("name");
            Placement::query(&name).map_err(refused("name"))?;
            vec![format!("--query={name}")]
        }
        "url_path" | "path_placeholder" => {
            let placeholder = text("placeholder");
            Placement::path(&placeholder).map_err(refused("placeholder"))?;
            vec![format!("--path={placeholder}")]
        }
        other => {
            let reason = format!(
                "kitbag cannot add a secret as {}, only as bearer, basic, header, query or path",
                quoted(other)
            );
            return Err(("type", reason));
        }
    };
    Ok(options)
}

/// Checks a user name for `Authorization: Basic`. Stricter than RFC 7617, so that it is
/// recognizable as a name.
fn check_user(user: &str) -> Result<(), String> {
    const MOST: usize = 128;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    let is_user = (1..=MOST).contains(&user.len()) && user.chars().all(fits);
    match is_user && !user.starts_with('-') {
        true => Ok(()),
        false => Err(format!(
            "`{}` is not the name of a user: it takes letters, digits and `._@+-`, does not start \
             with `-`, and has at most {MOST} characters",
            shown(user)
        )),
    }
}
