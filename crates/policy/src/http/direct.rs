//! Hosts and addresses that are connected to without a proxy.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use kitbag_base::text::shown;

use super::host::{Host, HostError, HostPattern, with_port};
use crate::addresses::is_within;

/// A host or block of addresses that is connected to without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direct {
    targets: Targets,
    /// The port. `None`: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Targets {
    /// Everything.
    All,
    /// The hosts of a pattern, in the grammar of grants: `example.com`, `*.example.com`.
    Hosts(HostPattern),
    /// A name and all names below it.
    Domain(String),
    /// The addresses of a block, under any name.
    Addresses(IpNet),
}

/// The error for a string that is not a host, an address or a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is neither a host, such as `example.com` or `*.example.com`, nor an address, nor a block \
     such as `10.0.0.0/8`{}", shown(text), reason(.cause.as_ref())
)]
pub struct DirectError {
    /// The invalid string.
    pub text: String,
    /// The problem with the string as a host.
    #[source]
    pub cause: Option<HostError>,
}

fn reason(cause: Option<&HostError>) -> String {
    cause.map_or(String::new(), |cause| format!(": {cause}"))
}

impl Direct {
    /// Parses the value of `NO_PROXY`: names, which include the names below them, addresses and
    /// blocks, each with an optional port, and `*` for everything. Entries are separated by commas
    /// and white space. Also returns the invalid entries.
    pub fn read_variable(value: &str) -> (Vec<Self>, Vec<String>) {
        let (mut direct, mut unknown) = (Vec::new(), Vec::new());
        let separates = |character: char| character == ',' || character.is_whitespace();
        for entry in value.split(separates).filter(|entry| !entry.is_empty()) {
            match Self::of_entry(entry) {
                Some(one) => direct.push(one),
                None => unknown.push(entry.to_owned()),
            }
        }
        (direct, unknown)
    }

    fn of_entry(entry: &str) -> Option<Self> {
        let of = |targets, port| Some(Self { targets, port });
        if entry == "*" {
            return of(Targets::All, None);
        }
        if let Ok(block) = entry.parse::<IpNet>() {
            return of(Targets::Addresses(block.trunc()), None);
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return of(Targets::Addresses(address.into()), None);
        }
        let (host, port) = with_port(entry).ok()?;
        if let Ok(block) = host.parse::<IpNet>() {
            return of(Targets::Addresses(block.trunc()), port);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        if let Some(base) = host.strip_prefix("*.") {
            let Ok(Host::Name(base)) = Host::parse(base) else { return None };
            return of(Targets::Hosts(HostPattern::Below(base)), port);
        }
        match Host::parse(host.strip_prefix('.').unwrap_or(host)).ok()? {
            Host::Name(name) => of(Targets::Domain(name), port),
            Host::Address(address) => of(Targets::Addresses(address.into()), port),
        }
    }

    /// Returns true if a connection to this port of a host needs no proxy. `address` is the address
    /// of the host, if known.
    pub(crate) fn holds(&self, host: &Host, address: Option<IpAddr>, port: u16) -> bool {
        let address = match (address, host) {
            (None, Host::Address(address)) => Some(*address),
            (address, _) => address,
        };
        let is_in = |block: &IpNet| {
            address.is_some_and(|address| is_within(address.to_canonical(), &[*block]))
        };
        self.port.is_none_or(|own| own == port)
            && match &self.targets {
                Targets::All => true,
                Targets::Hosts(hosts) => hosts.matches(host),
                Targets::Domain(name) => HostPattern::Below(name.clone()).matches_widely(host),
                Targets::Addresses(block) => is_in(block),
            }
    }
}

impl FromStr for Direct {
    type Err = DirectError;

    fn from_str(text: &str) -> Result<Self, DirectError> {
        let of = |targets| Ok(Self { targets, port: None });
        let error = |cause| DirectError { text: text.to_owned(), cause };
        if let Ok(block) = text.parse::<IpNet>() {
            return match block.trunc() == block {
                true => of(Targets::Addresses(block)),
                false => Err(error(None)),
            };
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return of(Targets::Addresses(address.into()));
        }
        let (below, host) = match text.strip_prefix("*.") {
            Some(base) => (true, base),
            None => (false, text),
        };
        match Host::parse(host).map_err(|cause| error(Some(cause)))? {
            Host::Name(base) if below => of(Targets::Hosts(HostPattern::Below(base))),
            Host::Address(_) if below => Err(error(None)),
            Host::Address(address) => of(Targets::Addresses(address.into())),
            host => of(Targets::Hosts(HostPattern::One(host))),
        }
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_single = |block: &IpNet| block.prefix_len() == block.max_prefix_len();
        match &self.targets {
            Targets::All => f.write_str("*"),
            Targets::Hosts(hosts) => hosts.fmt(f),
            Targets::Domain(name) => write!(f, ".{name}"),
            Targets::Addresses(block) if is_single(block) => match (block.addr(), self.port) {
                (IpAddr::V6(address), Some(_)) => write!(f, "[{address}]"),
                (address, _) => address.fmt(f),
            },
            Targets::Addresses(block) => block.fmt(f),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_entries_are_hosts_addresses_and_blocks() {
        for text in [
            "",
            "*",
            "*.",
            "*.10.0.0.1",
            "10.0.0.1/8",
            "https://a.example.com",
            "a.example.com:80",
            "a.*",
            ".example.com",
        ] {
            assert!(text.parse::<Direct>().is_err(), "{text}");
        }
    }

    /// Each line of the file: the value of the variable, a host, its address or `-`, the port, and
    /// `direct` or `proxy`.
    #[test]
    fn no_proxy_has_its_usual_grammar() {
        let mut count = 0;
        for line in include_str!("no_proxy.txt").lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<_> = line.split(" | ").collect();
            let [value, host, address, port, expected] = fields[..] else { panic!("{line}") };
            let (direct, unknown) = Direct::read_variable(value);
            assert_eq!(unknown, Vec::<String>::new(), "{line}");
            let (host, address) = (Host::parse(host).unwrap(), address.parse().ok());
            let port = port.parse().unwrap();
            let is_direct = direct.iter().any(|direct| direct.holds(&host, address, port));
            assert_eq!(if is_direct { "direct" } else { "proxy" }, expected, "{line}");
            count += 1;
        }
        assert!(count > 40, "{count}");
    }

    #[test]
    fn unknown_entries_are_returned() {
        let value = "a.example,192.168.*, http://b.example  c.example:0,,d.example:99999,:80 ok";
        let (direct, unknown) = Direct::read_variable(value);
        let shown: Vec<_> = direct.iter().map(Direct::to_string).collect();
        assert_eq!(shown, [".a.example", ".ok"]);
        let expected = ["192.168.*", "http://b.example", "c.example:0", "d.example:99999", ":80"];
        assert_eq!(unknown, expected);
    }

    #[test]
    fn entries_are_displayed_with_their_ports() {
        let value = "*,.a.b,*.c:8080,10.1.2.3/8,[::1]:443,::2,10.0.0.1:80";
        let shown: Vec<_> = Direct::read_variable(value).0.iter().map(Direct::to_string).collect();
        let expected = ["*", ".a.b", "*.c:8080", "10.0.0.0/8", "[::1]:443", "::2", "10.0.0.1:80"];
        assert_eq!(shown, expected);
    }
}
