//! `[registry]` and `[registries]`, from the user config. Other files have no such tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kitbag_base::text::{shown, shown_path};
use kitbag_glob::Glob;
use kitbag_policy::SecretName;
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject;

use crate::config::{AcceptedSigner, NamedContent, Registries, RegistryRule, Secret};
use crate::format::RegistryRuleConfig;
use crate::format::span::{At, Part, StringOr};
use crate::layers::path::{Bases, is_fixed};
use crate::read::file;
use crate::report::text::{not_a_glob, relative_path};
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, tables};
use crate::trust::examiner::open_own;

/// Returns the registries of the user config.
pub(crate) fn registries(
    configs: &ConfigFiles<'_>,
    secrets: &BTreeMap<SecretName, Secret>,
    bases: &Bases<'_>,
    report: &mut Report,
) -> Registries {
    let mut registries = Registries::default();
    if let Some((file, table)) = tables(configs, |config| config.registry.as_ref()).next() {
        let host = |written: At<'_, String>, report: &mut Report| {
            if !is_host(written.value) {
                let problem = format!("`{}` is not the host of a registry", shown(written.value));
                report.at(written, problem);
            }
            written.sourced(written.value.clone())
        };
        let packages = table.packages.as_ref().map(|written| written.at(file));
        registries.packages = packages.map(|written| host(written, report));
        for Part { key, at } in table.namespaces.iter().flat_map(|table| table.parts(file)) {
            registries.namespaces.insert(key.value.to_owned(), host(at, report));
        }
        if let Some(index) = table.index.as_ref().map(|written| written.at(file)) {
            match index.value.starts_with("oci://") {
                true => registries.index = Some(index.sourced(index.value.clone())),
                false => match absolute(bases, index.value) {
                    Ok(path) => {
                        let path = path.to_string_lossy().into_owned();
                        registries.index = Some(index.sourced(path));
                    }
                    Err(problem) => report.at(index, problem),
                },
            }
        }
        if let Some(root) = table.trust_root.as_ref().map(|written| written.at(file)) {
            match content(bases, root.value, "trust root") {
                Ok(content) => registries.trust_root = Some(root.sourced(content)),
                Err(problem) => report.at(root, problem),
            }
        }
    }
    for (file, table) in tables(configs, |config| config.registries.as_ref()) {
        for Part { key, at } in table.parts(file) {
            match Glob::new(key.value) {
                Ok(glob) => registries.rules.push(rule(key, glob, at, (secrets, bases), report)),
                Err(reason) => report.at(key, not_a_glob(key.value, reason)),
            }
        }
    }
    registries
}

fn rule(
    key: At<'_, str>,
    glob: Glob,
    at: At<'_, RegistryRuleConfig>,
    (secrets, bases): (&BTreeMap<SecretName, Secret>, &Bases<'_>),
    report: &mut Report,
) -> RegistryRule {
    if key.value.contains("://") {
        let plain = key.value.split_once("://").map_or("", |(_, rest)| rest);
        let problem = format!("a pattern has no scheme: write `{}`", shown(plain));
        report.at(key, problem);
    }
    let flag = |flag: Option<At<'_, bool>>| flag.map(|flag| flag.sourced(*flag.value));
    let private = flag(at.inner(|rule| rule.private.as_ref()));
    let plain_http = at.inner(|rule| rule.plain_http.as_ref());
    if let Some(plain) = plain_http.filter(|plain| *plain.value)
        && !private.as_ref().is_some_and(|private| private.value)
    {
        report.at(plain, "`plain_http` is for registries with `private = true` only");
    }
    let username = at.inner(|rule| rule.username.as_ref());
    let secret = at.inner(|rule| rule.secret.as_ref());
    match (username, secret) {
        (Some(username), None) => report.at(username, "`username` needs `secret`"),
        (Some(username), Some(_))
            if key.value.split('/').next().is_some_and(|it| it.contains('*')) =>
        {
            let problem = "credentials are for one registry: write its host without `*`";
            report.at(username, problem);
        }
        (None, Some(secret)) => report.at(secret, "`secret` needs `username`"),
        _ => {}
    }
    let secret = secret.and_then(|written| match SecretName::new(written.value) {
        Ok(name) if secrets.contains_key(&name) => Some(written.sourced(name)),
        Ok(name) => {
            report.at(written, format!("no secret is named `{name}` in `[secrets]`"));
            None
        }
        Err(error) => {
            report.at(written, error);
            None
        }
    });
    let signed_by = at.inner(|rule| rule.signed_by.as_ref()).map(|list| {
        if list.value.is_empty() {
            report.at(list, "`signed_by` names no signer; remove it, or name one");
        }
        let signers = list.value.iter().filter_map(|written| {
            let at = written.at(list.file);
            signer(at, bases).map_err(|problem| report.at(at, problem)).ok()
        });
        list.sourced(signers.collect())
    });
    RegistryRule {
        pattern: key.value.to_owned(),
        origin: key.origin(),
        glob,
        signed_by,
        private,
        plain_http: flag(plain_http),
        username: username.map(|username| username.sourced(username.value.clone())),
        secret,
    }
}

fn signer(
    at: At<'_, StringOr<crate::format::SignerConfig>>,
    bases: &Bases<'_>,
) -> Result<AcceptedSigner, Problem> {
    let path = match at.value {
        StringOr::Short(path) => path,
        StringOr::Other(signer) => {
            let [identity, issuer] = [&signer.identity, &signer.issuer].map(|text| {
                text.as_ref().map(|text| text.value.clone()).filter(|text| !text.is_empty())
            });
            return match identity.zip(issuer) {
                Some((identity, issuer)) => Ok(AcceptedSigner::Identity { identity, issuer }),
                None => Err("an identity needs `identity` and `issuer`".into()),
            };
        }
    };
    let NamedContent { path, bytes } = content(bases, path, "key")?;
    let der = SubjectPublicKeyInfoDer::from_pem_slice(&bytes).map_err(|_| {
        let shown = shown_path(&path);
        format!("`{shown}` contains no public key in PEM, which starts with `-----BEGIN PUBLIC KEY-----`")
    })?;
    let bytes = der.as_ref().into();
    Ok(AcceptedSigner::Key(NamedContent { path, bytes }))
}

/// Reads a file. Like the user config, it must not be writable by untrusted users.
fn content(bases: &Bases<'_>, text: &str, what: &str) -> Result<NamedContent, Problem> {
    let path = absolute(bases, text)?;
    let opened = open_own(&path, bases.home);
    let bytes = opened.and_then(file::read).map_err(|problem| {
        format!("the {what} in `{}` cannot be used: {}", shown_path(&path), problem.message)
    })?;
    Ok(NamedContent { path, bytes: bytes.into() })
}

fn absolute(bases: &Bases<'_>, text: &str) -> Result<PathBuf, Problem> {
    if !is_fixed(text) || text.is_empty() || Path::new(text).components().next().is_none() {
        return Err(relative_path(text).into());
    }
    bases.absolute(text)
}

fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_lowercase()
            || byte.is_ascii_digit()
            || matches!(byte, b'.' | b'-' | b':' | b'[' | b']')
    };
    !text.is_empty() && text.bytes().all(is_plain)
}
