//! How connections of tools are made: the proxy, and whom they trust besides the system's
//! authorities.

use kitbag_policy::http::{Direct, DirectError, Proxy, ProxyError};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::resolver::Resolver;
use crate::config::{Network, RootFile};
use crate::file::{self, SourceFile};
use crate::format::ConfigFile;
use crate::path::is_fixed;
use crate::problem::Problem;
use crate::text::shown_path;
use crate::trust::open_own;
use crate::written::{At, Written};

/// Why connections cannot be made like that.
#[derive(Debug, thiserror::Error)]
enum NetworkProblem {
    /// A text is not a proxy.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// A text is not what goes without one.
    #[error(transparent)]
    Direct(#[from] DirectError),
    /// There is no proxy that something could go without.
    #[error("`no_proxy` means nothing without `proxy`; add that, or remove this")]
    NoProxy,
    /// A file cannot be read.
    #[error("the certificates in `{path}` cannot be used: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file has no certificate.
    #[error(
        "`{path}` holds no certificate in PEM, which begins with `-----BEGIN CERTIFICATE-----`"
    )]
    NoCertificate {
        /// The file.
        path: String,
    },
    /// A certificate is none, or not one of an authority.
    #[error("certificate {number} in `{path}` cannot be used: {reason}")]
    Certificate {
        /// The file.
        path: String,
        /// Which one, from 1.
        number: usize,
        /// Why not.
        reason: String,
    },
}

impl Resolver<'_> {
    /// What the user's own file says of connections. Other files have no such table.
    pub(super) fn network(&mut self, layers: &[(&SourceFile, &ConfigFile)]) -> Network {
        let mut network = Network::default();
        let own = layers.iter().find_map(|(file, layer)| Some((*file, layer.network.as_ref()?)));
        let Some((file, table)) = own else { return network };
        let direct = table.no_proxy.as_ref().map(|direct| direct.at(file));
        let named = direct.map(|direct| self.direct(direct)).unwrap_or_default();
        match (table.proxy.as_ref().map(|proxy| proxy.at(file)), direct) {
            (Some(at), _) => match at.value.parse::<Proxy>() {
                Ok(proxy) => network.proxy = Some(at.sourced(proxy.with_direct(named))),
                Err(error) => self.report.at_secret(at, NetworkProblem::from(error)),
            },
            (None, Some(direct)) => self.report.at(direct, NetworkProblem::NoProxy),
            (None, None) => {}
        }
        for path in table.roots.iter().flat_map(|roots| &roots.value) {
            match self.roots(path.at(file)) {
                Ok(roots) => network.roots.push(path.at(file).sourced(roots)),
                Err(problem) => self.report.at(path.at(file), problem),
            }
        }
        network
    }

    fn direct(&mut self, list: At<'_, Vec<Written<String>>>) -> Vec<Direct> {
        let mut direct = Vec::new();
        for text in list.value.iter().map(|text| text.at(list.file)) {
            match text.value.parse() {
                Ok(one) => direct.push(one),
                Err(error) => self.report.at(text, NetworkProblem::from(error)),
            }
        }
        direct
    }

    /// The certificates of a file. Who could have written it has to be trusted as the user's
    /// own configuration has.
    fn roots(&self, at: At<'_, String>) -> Result<RootFile, Problem> {
        if !is_fixed(at.value) && !at.value.is_empty() {
            return Err(Problem::RelativePath { path: at.value.clone() });
        }
        let path = self.bases.absolute(at.value)?;
        let shown = shown_path(&path).to_string();
        let opened = open_own(&path, self.bases.home);
        let mut pem = opened.and_then(file::read).map_err(|problem| {
            let (path, problem) = (shown.clone(), problem.to_string());
            NetworkProblem::Unreadable { path, problem }
        })?;
        file::take_mark(&mut pem);
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            count += 1;
            let unusable = |reason: String| NetworkProblem::Certificate {
                path: shown.clone(),
                number: count,
                reason,
            };
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            webpki::anchor_from_trusted_cert(&certificate)
                .map_err(|error| unusable(error.to_string()))?;
        }
        match count {
            0 => Err(NetworkProblem::NoCertificate { path: shown }.into()),
            _ => Ok(RootFile { path, pem: pem.into() }),
        }
    }
}

impl From<NetworkProblem> for Problem {
    fn from(problem: NetworkProblem) -> Self {
        Self::Network { reason: problem.to_string() }
    }
}
