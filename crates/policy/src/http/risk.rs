//! The risks of requests over HTTP.

use std::net::IpAddr;

use crate::addresses::{Block, is_global, is_within};
use crate::consent::Risk;
use crate::http::grant::HttpGrant;
use crate::http::host::{Host, HostPattern};
use crate::http::method::Methods;

/// Link-local addresses, and further addresses under which clouds return credentials.
///
/// Sources: RFC 3927; RFC 4291, 2.5.6; Azure's `168.63.129.16`, Alibaba's `100.100.100.200`,
/// Oracle's `192.0.0.192`, and `fd00:ec2::254` of AWS.
const METADATA: [&str; 6] = [
    "169.254.0.0/16",
    "fe80::/10",
    "168.63.129.16/32",
    "100.100.100.200/32",
    "192.0.0.192/32",
    "fd00:ec2::/32",
];

/// Addresses of this machine, including the unspecified address, under which Linux reaches it.
const LOOPBACK: [&str; 4] = ["127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128"];

/// Private networks: RFC 1918, RFC 6598 and RFC 4193.
const PRIVATE: [&str; 5] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/// Names under which clouds return credentials.
const METADATA_NAMES: [&str; 7] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.platformequinix.com",
];

/// The last labels of names that are not in the public DNS.
///
/// Sources: RFC 6762, RFC 8375, ICANN's reservation of `internal`, and the names that Kubernetes
/// and routers use.
const PRIVATE_SUFFIXES: [&str; 8] =
    ["cluster.local", "corp", "home", "home.arpa", "internal", "intranet", "lan", "local"];

/// The ports of the Docker daemon, plain and with TLS.
const DOCKER_PORTS: [u16; 2] = [2375, 2376];

/// Returns the risks of an HTTP grant. `by_proxy` is true if a proxy resolves the names of hosts.
pub(super) fn risks(grant: &HttpGrant, by_proxy: bool) -> Vec<Risk> {
    let mut risks = Vec::new();
    if by_proxy && grant.url.host().is_of_names() {
        risks.push(Risk::ProxyResolution);
    }
    match grant.url.host() {
        HostPattern::Any => risks.push(Risk::AnyHost),
        HostPattern::Below(name) | HostPattern::One(Host::Name(name)) => risks.extend(host(name)),
        HostPattern::One(Host::Address(named)) => risks.extend(address(*named)),
    }
    risks.extend(grant.addresses.iter().flat_map(|named| block(*named)));
    if DOCKER_PORTS.contains(&grant.url.port()) {
        risks.push(Risk::DockerPort);
    }
    if grant.methods == Methods::Any {
        risks.push(Risk::AnyMethod);
    }
    risks.sort_unstable();
    risks.dedup();
    risks
}

fn host(name: &str) -> Option<Risk> {
    let is_below = |suffix: &&str| {
        name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if METADATA_NAMES.contains(&name) {
        Some(Risk::CloudMetadata)
    } else if is_below(&"localhost") {
        Some(Risk::Loopback)
    } else if PRIVATE_SUFFIXES.iter().any(is_below) || !name.contains('.') {
        Some(Risk::PrivateNetwork)
    } else {
        None
    }
}

fn blocks(texts: &[&str]) -> Vec<Block> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

fn address(address: IpAddr) -> Option<Risk> {
    if is_within(address, &blocks(&METADATA)) {
        Some(Risk::CloudMetadata)
    } else if is_within(address, &blocks(&LOOPBACK)) {
        Some(Risk::Loopback)
    } else {
        (!is_global(address)).then_some(Risk::PrivateNetwork)
    }
}

/// Returns the risks of a block of addresses.
fn block(block: Block) -> Vec<Risk> {
    let holds = |text: &str| text.parse().is_ok_and(|other: Block| block.contains(&other));
    let is_in = |text: &str| text.parse().is_ok_and(|other: Block| other.contains(&block));
    let mut risks = Vec::new();
    for (texts, risk) in [(&METADATA[..], Risk::CloudMetadata), (&LOOPBACK, Risk::Loopback)] {
        if texts.iter().any(|text| holds(text) || is_in(text)) {
            risks.push(risk);
        }
    }
    if risks.is_empty() || PRIVATE.iter().any(|text| holds(text)) {
        risks.push(Risk::PrivateNetwork);
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UrlPattern;

    #[test]
    fn requests_over_http_are_classified() {
        use Risk::{AnyHost, AnyMethod, CloudMetadata, DockerPort, Loopback, PrivateNetwork};
        let check = |url: &str, addresses: &[&str], expected: &[Risk]| {
            let mut grant = HttpGrant::new(UrlPattern::parse(url).unwrap());
            grant.addresses = addresses.iter().map(|block| block.parse().unwrap()).collect();
            assert_eq!(risks(&grant, false), expected, "{url} {addresses:?}");
        };
        check("https://api.github.com/**", &[], &[]);
        check("https://*.example.com", &[], &[]);
        check("https://93.184.215.14", &[], &[]);
        check("https://*", &[], &[AnyHost]);
        check("http://169.254.169.254/latest/**", &[], &[CloudMetadata]);
        check("http://[fe80::1]", &[], &[CloudMetadata]);
        check("http://[::ffff:169.254.169.254]", &[], &[CloudMetadata]);
        check("http://168.63.129.16", &[], &[CloudMetadata]);
        check("http://100.100.100.200", &[], &[CloudMetadata]);
        check("http://metadata.google.internal/**", &[], &[CloudMetadata]);
        check("http://localhost:8080", &[], &[Loopback]);
        check("http://db.localhost", &[], &[Loopback]);
        check("http://127.0.0.1", &[], &[Loopback]);
        check("http://[::1]", &[], &[Loopback]);
        check("http://0.0.0.0", &[], &[Loopback]);
        check("http://localhost:2375/**", &[], &[DockerPort, Loopback]);
        check("https://docker.example.com:2376", &[], &[DockerPort]);
        check("http://10.0.0.1", &[], &[PrivateNetwork]);
        check("http://[fd12::1]", &[], &[PrivateNetwork]);
        check("http://router", &[], &[PrivateNetwork]);
        check("http://nas.local", &[], &[PrivateNetwork]);
        check("http://api.default.svc.cluster.local", &[], &[PrivateNetwork]);
        check("https://notlocal.example", &[], &[]);
        check("https://a.example", &["10.0.0.0/8"], &[PrivateNetwork]);
        check("https://a.example", &["127.0.0.0/8"], &[Loopback]);
        check("https://a.example", &["169.254.169.254/32"], &[CloudMetadata]);
        check("https://a.example", &["0.0.0.0/0"], &[CloudMetadata, Loopback, PrivateNetwork]);
        check("https://a.example", &["::/0"], &[CloudMetadata, Loopback, PrivateNetwork]);
        let any = HttpGrant {
            methods: Methods::Any,
            ..HttpGrant::new(UrlPattern::parse("https://a.example").unwrap())
        };
        assert_eq!(risks(&any, false), [AnyMethod]);
        let by_proxy = |url: &str| risks(&HttpGrant::new(UrlPattern::parse(url).unwrap()), true);
        assert_eq!(by_proxy("https://a.example"), [Risk::ProxyResolution]);
        assert_eq!(by_proxy("https://*.a.example"), [Risk::ProxyResolution]);
        // kitbag resolves and checks these names itself.
        assert_eq!(by_proxy("https://*"), [AnyHost]);
        assert_eq!(by_proxy("https://93.184.215.14"), []);
    }
}
