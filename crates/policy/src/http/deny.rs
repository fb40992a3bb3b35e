//! Places that no tool reaches, whatever it is granted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::{Block, LOOPBACK, is_within};
use crate::http::host::{Host, HostPattern};
use crate::http::pattern::UrlPattern;
use crate::http::refusal::{HttpRefusal, RefusalKind};
use crate::http::request::HttpRequest;

/// What is denied. It has the grammar of the grants and reads it widely: every method, both
/// schemes, every port where none is written, the host itself below `*.`, and every path that
/// some server could take for one of these. An address holds for names that lead to it, and
/// `localhost` for all addresses of the loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deny {
    patterns: Vec<UrlPattern>,
}

/// The addresses that are reached by one: a connection to none in particular, such as `0.0.0.0`,
/// is one to this machine.
fn reached(address: IpAddr) -> [IpAddr; 3] {
    match address.to_canonical().is_unspecified() {
        true => [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        false => [address; 3],
    }
}

/// The addresses that a pattern denies, whatever name leads to them.
fn denied_addresses(pattern: &UrlPattern) -> Vec<Block> {
    match pattern.host() {
        HostPattern::One(Host::Address(denied)) => vec![denied.to_canonical().into()],
        HostPattern::One(Host::Name(name)) if name == "localhost" => LOOPBACK.to_vec(),
        HostPattern::One(_) | HostPattern::Any | HostPattern::Below(_) => Vec::new(),
    }
}

impl Deny {
    /// Denies these.
    pub fn new(patterns: Vec<UrlPattern>) -> Self {
        Self { patterns }
    }

    /// What is denied.
    pub fn patterns(&self) -> &[UrlPattern] {
        &self.patterns
    }

    /// Whether some of it depends on the addresses of a host.
    pub(crate) fn has_addresses(&self) -> bool {
        self.patterns.iter().any(|pattern| !denied_addresses(pattern).is_empty())
    }

    /// Whether a request is denied before the addresses of its host are looked up.
    pub(crate) fn check(&self, request: &HttpRequest) -> Result<(), HttpRefusal> {
        if let Some(pattern) = self.patterns.iter().find(|own| own.matches_widely(request)) {
            let reason = format!("`{request}` is denied by `{pattern}`");
            return Err(HttpRefusal::denied(RefusalKind::Host, reason, pattern));
        }
        match request.host() {
            Host::Address(address) => self.check_addresses(request, &[*address]),
            Host::Name(_) => Ok(()),
        }
    }

    /// Whether a request is denied since its host has one of these addresses.
    pub(crate) fn check_addresses(
        &self,
        request: &HttpRequest,
        addresses: &[IpAddr],
    ) -> Result<(), HttpRefusal> {
        for pattern in &self.patterns {
            let blocks = denied_addresses(pattern);
            let denied = addresses.iter().find(|address| {
                reached(**address).iter().any(|reached| is_within(*reached, &blocks))
            });
            if let Some(address) = denied
                && pattern.matches_port_and_path_widely(request)
            {
                let reason = format!(
                    "`{request}` is denied: its host has the address {address}, which is denied by \
                     `{pattern}`"
                );
                return Err(HttpRefusal::denied(RefusalKind::Address, reason, pattern));
            }
        }
        Ok(())
    }
}
