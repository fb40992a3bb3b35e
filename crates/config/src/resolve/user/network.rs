//! How connections of tools are made: the proxy, and whom they trust besides the system's
//! authorities.

use kitbag_base::text::{shown, variant_words};
use kitbag_policy::http::{Direct, Proxy, ProxyRules};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::config::{NameResolution, Network, RootFile};
use crate::format::ConfigFile;
use crate::format::spanned::{At, Written};
use crate::layers::path::is_fixed;
use crate::read::file::{self, SourceFile};
use crate::read::sources::VariableValue;
use crate::report::Problem;
use crate::report::text::{relative_path, shown_path};
use crate::resolve::resolver::Resolver;
use crate::trust::examiner::open_own;

/// The value of `proxy` that stands for the variables of the environment.
const ENVIRONMENT: &str = "environment";

/// The variables that name the proxy for a scheme, the first that is set before the others.
const HTTPS_VARIABLES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const HTTP_VARIABLES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// The variables with what goes without a proxy.
const DIRECT_VARIABLES: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// A variable of programs that a web server starts, which pass the header field `Proxy` of a
/// request on as `HTTP_PROXY`.
const CGI_VARIABLE: &str = "REQUEST_METHOD";

impl Resolver<'_> {
    /// The settings of connections in the user config. Other files have no such table.
    pub(in crate::resolve) fn network(&mut self, layers: &[(&SourceFile, &ConfigFile)]) -> Network {
        let mut network = Network::default();
        let own = layers.iter().find_map(|(file, layer)| Some((*file, layer.network.as_ref()?)));
        let is_named = own.is_some_and(|(_, table)| table.proxy.is_some());
        if !is_named {
            let named = HTTPS_VARIABLES.into_iter().chain(HTTP_VARIABLES);
            network.ignored_proxy = named.into_iter().find(|name| self.is_set(name));
        }
        let Some((file, table)) = own else { return network };
        if let Some(resolve) = &table.resolve {
            network.resolve = resolve.at(file).sourced(resolve.value);
        }
        let resolves = network.resolve.value == NameResolution::Proxy;
        let direct = table.no_proxy.as_ref().map(|direct| direct.at(file));
        let named = direct.map(|direct| self.direct(direct)).unwrap_or_default();
        match (table.proxy.as_ref().map(|proxy| proxy.at(file)), direct) {
            (Some(at), _) => {
                let proxies = match &**at.value == ENVIRONMENT {
                    true => self.environment_proxies(at),
                    false => at.value.parse::<Proxy>().map(Into::into).map_err(Problem::from),
                };
                match proxies {
                    Ok(ProxyRules { http, https, direct, .. }) => {
                        let direct = named.into_iter().chain(direct).collect();
                        let rules = ProxyRules { http, https, direct, resolves };
                        network.proxies = Some(at.sourced(rules));
                    }
                    Err(problem) => self.report.at_secret(at, problem),
                }
            }
            (None, Some(direct)) => {
                let problem = "`no_proxy` means nothing without `proxy`; add that, or remove this";
                self.report.at(direct, problem);
            }
            (None, None) => {}
        }
        if let (None, Some(resolve), true) = (&table.proxy, &table.resolve, resolves) {
            let problem =
                "`resolve = \"proxy\"` means nothing without `proxy`; add that, or remove this";
            self.report.at(resolve.at(file), problem);
        }
        for path in table.roots.iter().flat_map(|roots| &roots.value) {
            match self.roots(path.at(file)) {
                Ok(roots) => network.roots.push(path.at(file).sourced(roots)),
                Err(problem) => self.report.at(path.at(file), problem),
            }
        }
        network
    }

    /// The proxies that the environment names. What is wrong with `NO_PROXY` is a warning.
    fn environment_proxies(&mut self, at: At<'_, String>) -> Result<ProxyRules, Problem> {
        let (http, https) = (self.proxy_of(&HTTP_VARIABLES)?, self.proxy_of(&HTTPS_VARIABLES)?);
        let set = DIRECT_VARIABLES.into_iter().find(|name| self.is_set(name));
        let mut direct = Vec::new();
        if let Some(name) = set
            && let Some(value) = self.variables.and_then(|variables| variables.get(name))
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
                self.warnings.push(Problem::from(message).at(at.origin()));
            }
        }
        Ok(ProxyRules { http, https, direct, resolves: false })
    }

    /// The proxy that the first of these variables names that is set.
    fn proxy_of(&self, names: &[&'static str]) -> Result<Option<Proxy>, Problem> {
        let Some(name) = names.iter().copied().find(|name| self.is_set(name)) else {
            return Ok(None);
        };
        let value = self.variables.and_then(|variables| variables.get(name));
        let text = match &value {
            Some(VariableValue::Text(text)) => text,
            Some(VariableValue::Unusable(_)) | None => "",
        };
        let proxy = Proxy::read_variable(text);
        proxy.map(Some).map_err(|error| {
            format!("the variable `{name}` names no proxy that kitbag can use: {error}").into()
        })
    }

    /// Whether a variable is set and not empty. A client of a web server may have set
    /// `HTTP_PROXY`, which is ignored then.
    fn is_set(&self, name: &str) -> bool {
        let value = |name: &str| self.variables.and_then(|variables| variables.get(name));
        let is_of_client = name == "HTTP_PROXY" && value(CGI_VARIABLE).is_some();
        !is_of_client
            && match value(name) {
                Some(VariableValue::Text(text)) => !text.trim().is_empty(),
                Some(VariableValue::Unusable(_)) => true,
                None => false,
            }
    }

    fn direct(&mut self, list: At<'_, Vec<Written<String>>>) -> Vec<Direct> {
        let mut direct = Vec::new();
        for text in list.value.iter().map(|text| text.at(list.file)) {
            match text.value.parse() {
                Ok(one) => direct.push(one),
                Err(error) => self.report.at(text, error),
            }
        }
        direct
    }

    /// The certificates of a file. Who could have written it has to be trusted as the user's
    /// own configuration has.
    fn roots(&self, at: At<'_, String>) -> Result<RootFile, Problem> {
        if !is_fixed(at.value) && !at.value.is_empty() {
            return Err(relative_path(at.value).into());
        }
        let path = self.bases.absolute(at.value)?;
        let shown = shown_path(&path);
        let opened = open_own(&path, self.bases.home);
        let mut pem = opened.and_then(file::read).map_err(|problem| {
            format!("the certificates in `{shown}` cannot be used: {}", problem.message)
        })?;
        file::take_mark(&mut pem);
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            count += 1;
            let unusable = |reason: String| {
                format!("certificate {count} in `{shown}` cannot be used: {reason}")
            };
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            webpki::anchor_from_trusted_cert(&certificate)
                .map_err(|error| unusable(variant_words(&error)))?;
        }
        match count {
            0 => Err(Problem::from(format!(
                "`{shown}` holds no certificate in PEM, which begins with `-----BEGIN \
                 CERTIFICATE-----`"
            ))),
            _ => Ok(RootFile { path, pem: pem.into() }),
        }
    }
}
