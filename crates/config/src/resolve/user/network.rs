//! The connections of tools: the proxy, and the root certificates in addition to the system's.

use kitbag_base::text::{shown, shown_path, variant_words};
use kitbag_policy::http::{Direct, Proxy, ProxyRules};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::config::{NameResolution, Network, RootFile};
use crate::format::span::At;
use crate::layers::path::{Bases, is_fixed};
use crate::read::file;
use crate::read::sources::{VariableValue, Variables};
use crate::report::text::relative_path;
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, tables, valid};
use crate::trust::examiner::open_own;

/// The value of `proxy` that selects the environment variables.
const ENVIRONMENT: &str = "environment";

/// The variables that name the proxy for a scheme. The first variable that is set takes effect.
const HTTPS_VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const HTTP_VARIABLES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// The variables with the destinations that skip the proxy.
const DIRECT_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// A variable that is set for CGI programs. Their web server passes the header field `Proxy` of a
/// request as `HTTP_PROXY`.
const CGI_VARIABLE: &str = "REQUEST_METHOD";

/// Returns the settings of connections from the user config. Other files have no such table.
pub(crate) fn network(
    configs: &ConfigFiles<'_>,
    variables: Option<&Variables>,
    bases: &Bases<'_>,
    report: &mut Report,
) -> Network {
    let mut network = Network::default();
    let own = tables(configs, |config| config.network.as_ref()).next();
    let is_named = own.is_some_and(|(_, table)| table.proxy.is_some());
    if !is_named {
        let named = HTTPS_VARIABLES.into_iter().chain(HTTP_VARIABLES);
        network.ignored_proxy = named.into_iter().find(|name| is_set(variables, name));
    }
    let Some((file, table)) = own else { return network };
    if let Some(resolve) = &table.resolve {
        network.resolve = resolve.at(file).sourced(resolve.value);
    }
    let resolves = network.resolve.value == NameResolution::Proxy;
    let direct = table.no_proxy.as_ref().map(|direct| direct.at(file));
    let named = direct
        .map(|direct| valid(direct, report, |text| text.parse::<Direct>()))
        .unwrap_or_default();
    match (table.proxy.as_ref().map(|proxy| proxy.at(file)), direct) {
        (Some(at), _) => {
            let proxies = match &**at.value == ENVIRONMENT {
                true => environment_proxies(variables, at, report),
                false => at.value.parse::<Proxy>().map(Into::into).map_err(Problem::from),
            };
            match proxies {
                Ok(ProxyRules { http, https, direct, .. }) => {
                    let direct = named.into_iter().chain(direct).collect();
                    let rules = ProxyRules { http, https, direct, resolves };
                    network.proxies = Some(at.sourced(rules));
                }
                Err(problem) => report.at_secret(at, problem),
            }
        }
        (None, Some(direct)) => {
            let problem =
                "`no_proxy` has no effect without `proxy`; add `proxy`, or remove `no_proxy`";
            report.at(direct, problem);
        }
        (None, None) => {}
    }
    if let (None, Some(resolve), true) = (&table.proxy, &table.resolve, resolves) {
        let problem =
            "`resolve = \"proxy\"` has no effect without `proxy`; add `proxy`, or remove `resolve`";
        report.at(resolve.at(file), problem);
    }
    for path in table.roots.iter().flat_map(|roots| &roots.value) {
        match roots(bases, path.at(file)) {
            Ok(roots) => network.roots.push(path.at(file).sourced(roots)),
            Err(problem) => report.at(path.at(file), problem),
        }
    }
    network
}

/// Returns the proxies in the environment. Mistakes in `NO_PROXY` cause warnings.
fn environment_proxies(
    variables: Option<&Variables>,
    at: At<'_, String>,
    report: &mut Report,
) -> Result<ProxyRules, Problem> {
    let (http, https) =
        (proxy_of(variables, &HTTP_VARIABLES)?, proxy_of(variables, &HTTPS_VARIABLES)?);
    let set = DIRECT_VARIABLES.into_iter().find(|name| is_set(variables, name));
    let mut direct = Vec::new();
    if let Some(name) = set
        && let Some(value) = variables.and_then(|variables| variables.get(name))
    {
        let text = match &value {
            VariableValue::Text(text) => text,
            VariableValue::Unusable(_) => "",
        };
        let (read, unknown) = Direct::read_variable(text);
        direct = read;
        for entry in unknown {
            let message = format!(
                "`{}` in the variable `{name}` is ignored: it is neither a host, such as \
                 `example.com` or `.example.com`, nor an address, nor a block such as \
                 `10.0.0.0/8`",
                shown(&entry)
            );
            report.warn(Problem::from(message).at(at.origin()));
        }
    }
    Ok(ProxyRules { http, https, direct, resolves: false })
}

/// Returns the proxy in the first of these variables that is set.
fn proxy_of(
    variables: Option<&Variables>,
    names: &[&'static str],
) -> Result<Option<Proxy>, Problem> {
    let Some(name) = names.iter().copied().find(|name| is_set(variables, name)) else {
        return Ok(None);
    };
    let value = variables.and_then(|variables| variables.get(name));
    let text = match &value {
        Some(VariableValue::Text(text)) => text,
        Some(VariableValue::Unusable(_)) | None => "",
    };
    let proxy = Proxy::read_variable(text);
    proxy.map(Some).map_err(|error| {
        format!("kitbag cannot use the proxy in the variable `{name}`: {error}").into()
    })
}

/// Returns whether a variable is set and not empty. `HTTP_PROXY` is ignored if a client of a web
/// server may have set it.
fn is_set(variables: Option<&Variables>, name: &str) -> bool {
    let value = |name: &str| variables.and_then(|variables| variables.get(name));
    let is_of_client = name == "HTTP_PROXY" && value(CGI_VARIABLE).is_some();
    !is_of_client
        && match value(name) {
            Some(VariableValue::Text(text)) => !text.trim().is_empty(),
            Some(VariableValue::Unusable(_)) => true,
            None => false,
        }
}

/// Reads the certificates of a file. Like the user config, the file must not be writable by
/// untrusted users.
fn roots(bases: &Bases<'_>, at: At<'_, String>) -> Result<RootFile, Problem> {
    if !is_fixed(at.value) && !at.value.is_empty() {
        return Err(relative_path(at.value).into());
    }
    let path = bases.absolute(at.value)?;
    let shown = shown_path(&path);
    let opened = open_own(&path, bases.home);
    let mut pem = opened.and_then(file::read).map_err(|problem| {
        format!("the certificates in `{shown}` cannot be used: {}", problem.message)
    })?;
    file::take_mark(&mut pem);
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        count += 1;
        let unusable =
            |reason: String| format!("certificate {count} in `{shown}` cannot be used: {reason}");
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        webpki::anchor_from_trusted_cert(&certificate)
            .map_err(|error| unusable(variant_words(&error)))?;
    }
    match count {
        0 => Err(Problem::from(format!(
            "`{shown}` contains no PEM certificate, which starts with `-----BEGIN \
             CERTIFICATE-----`"
        ))),
        _ => Ok(RootFile { path, pem: pem.into() }),
    }
}
