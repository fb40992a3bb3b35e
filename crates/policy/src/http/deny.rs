//! Servers that no tool can reach with any grant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::addresses::{Block, LOOPBACK, is_within};
use crate::http::host::{Host, HostPattern};
use crate::http::pattern::UrlPattern;
use crate::http::refusal::{HttpRefusal, RefusalKind};
use crate::http::request::HttpRequest;

/// Denied URLs. They have the grammar of grants, but match broadly: every method, both schemes, every port
/// if none is given, the host itself in addition to `*.`, and every path that a server could take
/// for a denied one. An address also denies names that resolve to it, and `localhost` denies all
/// loopback addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deny {
    patterns: Vec<UrlPattern>,
}

/// Returns the addresses that a connection to an address reaches: a connection to an unspecified
/// address such as `0.0.0.0` reaches this machine.
fn reached(address: IpAddr) -> [IpAddr; 3] {
    match address.to_canonical().is_unspecified() {
        true => [address, Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        false => [address; 3],
    }
}

/// Returns the addresses that a pattern denies under any name.
fn denied_addresses(pattern: &UrlPattern) -> Vec<Block> {
    match pattern.host() {
        HostPattern::One(Host::Address(denied)) => vec![denied.to_canonical().into()],
        HostPattern::One(Host::Name(name)) if name == "localhost" => LOOPBACK.to_vec(),
        HostPattern::One(_) | HostPattern::Any | HostPattern::Below(_) => Vec::new(),
    }
}

impl Deny {
    /// Denies these patterns.
    pub fn new(patterns: Vec<UrlPattern>) -> Self {
        Self { patterns }
    }

    /// Returns the denied patterns.
    pub fn patterns(&self) -> &[UrlPattern] {
        &self.patterns
    }

    /// Returns true if a pattern depends on the addresses of a host.
    pub(crate) fn has_addresses(&self) -> bool {
        self.patterns.iter().any(|pattern| !denied_addresses(pattern).is_empty())
    }

    /// Checks a request before the addresses of its host are resolved.
    pub(crate) fn check(&self, request: &HttpRequest) -> Result<(), HttpRefusal> {
        if let Some(pattern) = self.patterns.iter().find(|own| own.matches_widely(request)) {
            let reason = format!("`{request}` is denied by `{pattern}`");
            return Err(HttpRefusal::denied(RefusalKind::Host, reason, pattern.to_string()));
        }
        match request.host() {
            Host::Address(address) => self.check_addresses(request, &[*address]),
            Host::Name(_) => Ok(()),
        }
    }

    /// Checks the addresses of a request's host.
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
                return Err(HttpRefusal::denied(RefusalKind::Address, reason, pattern.to_string()));
            }
        }
        Ok(())
    }
}
