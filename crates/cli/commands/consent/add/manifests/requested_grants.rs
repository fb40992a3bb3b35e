//! The grants that a manifest requests, in kitbag's own terms and as TOML.

use std::path::{Component, Path};

use kitbag::base::text::shown;
use kitbag::contract::ToolName;
use kitbag::policy::http::Methods;
use kitbag::policy::{GuestPath, SecretName, UrlPattern, VariableName};

use super::fields::Notes;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestGrants {
    pub(crate) directories: Vec<ManifestDirectory>,
    pub(crate) http: Vec<ManifestHttp>,
    /// Denied URL patterns. They apply regardless of grants.
    pub(crate) deny: Vec<String>,
    pub(crate) env: Vec<String>,
    pub(crate) secrets: Vec<ManifestSecret>,
    /// Configuration values: the key and the value of each.
    pub(crate) config: Vec<(String, String)>,
    /// Other tools: the alias and the name of each tool.
    pub(crate) tools: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestDirectory {
    /// The directory: absolute, relative to the workspace, in the home directory with `~/`, or
    /// `$TEMP` for a separate directory for each run.
    pub(crate) host: String,
    pub(crate) guest: String,
    pub(crate) is_writable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestHttp {
    pub(crate) url: String,
    /// The methods, sorted. `None`: every method.
    pub(crate) methods: Option<Vec<String>>,
}

/// A secret that the host adds to requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestSecret {
    pub(crate) name: String,
    /// URL patterns of the secret's destinations.
    pub(crate) to: Vec<String>,
}

/// Returns the pattern of all `https` URLs of a host in a manifest: `example.com` or
/// `*.example.com`, with or without a port.
///
/// # Errors
///
/// The reason why the host is invalid.
pub(crate) fn host_pattern(host: &str, path: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._*:[]".contains(c);
    if host.is_empty() || !host.chars().all(fits) {
        return Err(format!("`{}` is not the name of a host; it is dropped", shown(host)));
    }
    let url = format!("https://{host}{path}");
    match url.parse::<UrlPattern>() {
        Ok(pattern) if pattern.is_any_host() => {
            Err("it means every host, which only your user config may grant; it is dropped"
                .to_owned())
        }
        Ok(_) => Ok(url),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the patterns of all URLs whose paths begin with a prefix of whole segments: `/api` is
/// not a prefix of `/apis`.
pub(crate) fn prefix_patterns(host: &str, prefix: &str) -> Result<Vec<String>, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()+,;=:@/".contains(c);
    let segments = || prefix.trim_start_matches('/').trim_end_matches('/').split('/');
    let is_plain = prefix.is_empty()
        || prefix == "/"
        || prefix.starts_with('/')
            && prefix.chars().all(fits)
            && segments().all(|segment| !matches!(segment, "" | "." | ".."));
    if !is_plain {
        return Err(format!("`{}` is not the start of a path; it is dropped", shown(prefix)));
    }
    match prefix {
        "" | "/" => Ok(vec![host_pattern(host, "")?]),
        // `/api/**` includes `/api`, which does not begin with `/api/`.
        prefix if prefix.ends_with('/') => Ok(vec![host_pattern(host, &format!("{prefix}*/**"))?]),
        prefix => Ok(vec![host_pattern(host, &format!("{prefix}/**"))?]),
    }
}

/// Returns methods in the form of a grant: sorted, without duplicates.
pub(crate) fn methods<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut names: Vec<_> = names.into_iter().map(str::to_ascii_uppercase).collect();
    names.sort_unstable();
    names.dedup();
    Methods::new(names.iter().map(String::as_str)).map_err(|error| error.to_string())?;
    Ok(names)
}

/// Returns a host path in the form of a grant: without `..`, globs and variables.
pub(crate) fn host_path(path: &str) -> Result<String, String> {
    let shown = || shown(path);
    if path.is_empty() {
        return Err("the path is empty; it is dropped".to_owned());
    }
    if path.trim_end_matches('/') == "~" {
        return Err(format!(
            "`{}` is your whole home directory; it is dropped: grant a directory in it",
            shown()
        ));
    }
    if path.contains(['*', '?', '$', '{', '\0', '\\']) {
        return Err(format!(
            "`{}` is a pattern or has a variable; it is dropped: a directory is granted as a whole",
            shown()
        ));
    }
    if path.starts_with('~') && !path.starts_with("~/") {
        return Err(format!(
            "`{}` is in the home directory of another user; it is dropped",
            shown()
        ));
    }
    if Path::new(path).components().any(|part| part == Component::ParentDir) {
        return Err(format!("`{}` has `..`; it is dropped", shown()));
    }
    Ok(path.to_owned())
}

pub(crate) fn guest_path(path: &str) -> Result<String, String> {
    let trimmed = if path == "/" { path } else { path.trim_end_matches('/') };
    let guest = GuestPath::new(trimmed).map_err(|error| error.to_string())?;
    Ok(guest.to_string())
}

/// Returns the request for a directory, which has the same path for the host and the guest.
pub(crate) fn directory(text: &str, is_writable: bool) -> Result<ManifestDirectory, String> {
    let host = host_path(text)?;
    let relative = host.trim_start_matches("./").trim_end_matches('/');
    let guest = match host.strip_prefix("~/") {
        Some(rest) => format!("/home/{rest}"),
        None if host.starts_with('/') => host.clone(),
        None if matches!(relative, "" | ".") => "/workspace".to_owned(),
        None => format!("/workspace/{relative}"),
    };
    Ok(ManifestDirectory { guest: guest_path(&guest)?, host, is_writable })
}

impl ManifestGrants {
    /// Requests HTTP access. Each URL pattern is kept once for the same methods.
    pub(crate) fn requests(&mut self, requested: ManifestHttp) {
        if !self.http.contains(&requested) {
            self.http.push(requested);
        }
    }

    pub(crate) fn variable(&mut self, path: String, name: &str, notes: &mut Notes) {
        match VariableName::new(name) {
            Ok(_) if self.env.iter().any(|own| own == name) => {}
            Ok(_) => self.env.push(name.to_owned()),
            Err(error) => notes.add(path, format!("{error}; it is dropped")),
        }
    }

    /// Requests a secret.
    pub(crate) fn secret(&mut self, path: String, requested: ManifestSecret, notes: &mut Notes) {
        match SecretName::new(requested.name.as_str()) {
            Ok(_) => match self.secrets.iter_mut().find(|own| own.name == requested.name) {
                Some(own) => {
                    let more: Vec<_> =
                        requested.to.into_iter().filter(|to| !own.to.contains(to)).collect();
                    own.to.extend(more);
                }
                None => self.secrets.push(requested),
            },
            Err(error) => notes.add(path, format!("{error}; it is dropped")),
        }
    }

    pub(crate) fn tool(&mut self, path: String, alias: &str, tool: &str, notes: &mut Notes) {
        match (ToolName::new(alias), ToolName::new(tool)) {
            (Ok(alias), Ok(tool)) => self.tools.push((alias.to_string(), tool.to_string())),
            (Err(error), _) | (_, Err(error)) => {
                notes.add(path, format!("{error}; it is dropped"));
            }
        }
    }

    /// Drops requested URLs that are completely denied, since they would mislead.
    pub(crate) fn without_denied(&mut self, notes: &mut Notes) {
        let Self { http, deny, .. } = self;
        http.retain(|requested| {
            let is_denied = deny.contains(&requested.url);
            if is_denied {
                let text =
                    format!("`{}` is both requested and denied; it is denied", requested.url);
                notes.add("", text);
            }
            !is_denied
        });
    }

    /// Returns the keys of `grants`, each with its value in TOML.
    pub(crate) fn grants(&self) -> Vec<(&'static str, String)> {
        let mut grants = Vec::new();
        let list = |entries: Vec<String>| match &entries[..] {
            [] => "[]".to_owned(),
            [only] => format!("[{only}]"),
            entries => format!("[\n    {},\n]", entries.join(",\n    ")),
        };
        let directory = |requested: &ManifestDirectory| {
            let mode = if requested.is_writable { "rw" } else { "ro" };
            let (host, guest) = (quoted(&requested.host), quoted(&requested.guest));
            format!("{{ host = {host}, guest = {guest}, mode = \"{mode}\" }}")
        };
        // Without a list a tool reads the workspace.
        grants.push(("filesystem", list(self.directories.iter().map(directory).collect())));
        if !self.http.is_empty() {
            grants.push(("http", list(self.http.iter().map(ManifestHttp::entry).collect())));
        }
        for (key, texts) in [("deny", &self.deny), ("env", &self.env)] {
            if !texts.is_empty() {
                grants.push((key, list(texts.iter().map(|text| quoted(text)).collect())));
            }
        }
        let table = |entries: Vec<String>| format!("{{ {} }}", entries.join(", "));
        if !self.secrets.is_empty() {
            let entry = |requested: &ManifestSecret| match requested.to.is_empty() {
                true => format!("{} = {{}}", requested.name),
                false => {
                    let to: Vec<_> = requested.to.iter().map(|url| quoted(url)).collect();
                    format!("{} = {{ to = [{}] }}", requested.name, to.join(", "))
                }
            };
            grants.push(("secrets", table(self.secrets.iter().map(entry).collect())));
        }
        if !self.config.is_empty() {
            let entry =
                |(key, value): &(String, String)| format!("{} = {}", quoted(key), quoted(value));
            grants.push(("config", table(self.config.iter().map(entry).collect())));
        }
        if !self.tools.is_empty() {
            let entry = |(alias, tool): &(String, String)| format!("{} = {}", alias, quoted(tool));
            grants.push(("tools", table(self.tools.iter().map(entry).collect())));
        }
        grants
    }
}

impl ManifestHttp {
    /// Returns the entry of a list of grants, in TOML.
    fn entry(&self) -> String {
        let url = quoted(&self.url);
        match &self.methods {
            None => format!("{{ url = {url}, methods = \"*\" }}"),
            Some(methods) if matches!(&methods[..], [get] if get == "GET") => url,
            Some(methods) => {
                let methods: Vec<_> = methods.iter().map(|method| quoted(method)).collect();
                format!("{{ url = {url}, methods = [{}] }}", methods.join(", "))
            }
        }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}
