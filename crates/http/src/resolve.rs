//! Resolves names to addresses.
//!
//! Only A and AAAA records are queried. HTTPS records, which may contain addresses and other names,
//! are ignored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::Name;

/// The system's list of name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The longest time that an address is cached.
const MOST_TTL: Duration = Duration::from_secs(60);

/// The name servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nameservers {
    /// The servers in `/etc/resolv.conf`, after a look-up in `/etc/hosts`.
    #[default]
    System,
    /// These servers; no files are used.
    These(Vec<SocketAddr>),
}

/// Resolves names.
#[derive(Default)]
pub(crate) struct Resolver {
    nameservers: Nameservers,
    /// The resolver, and the modification time of the system's file that it was created from.
    made: Mutex<Option<(Option<SystemTime>, TokioResolver)>>,
}

impl Resolver {
    pub(crate) fn new(nameservers: Nameservers) -> Self {
        Self { nameservers, made: Mutex::default() }
    }

    /// Returns all addresses of a name, at least one. Must be awaited inside the runtime of the
    /// connections.
    ///
    /// # Errors
    ///
    /// Why there is no address.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        // RFC 6761: the name of this machine, for which no server is queried.
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let mut absolute = Name::from_ascii(name).map_err(|error| error.to_string())?;
        // The name in a URL is complete: no search domain is appended.
        absolute.set_fqdn(true);
        let found = self.resolver()?.lookup_ip(absolute).await;
        let found: Vec<_> = found.map_err(|error| words(&error))?.iter().collect();
        match found.is_empty() {
            true => Err("it has no address".to_owned()),
            false => Ok(found),
        }
    }

    /// Returns the resolver. Creates it again if the system's file has changed.
    fn resolver(&self) -> Result<TokioResolver, String> {
        let changed = match &self.nameservers {
            Nameservers::System => std::fs::metadata(RESOLV_CONF).and_then(|at| at.modified()).ok(),
            Nameservers::These(_) => None,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, resolver)) = &*made
            && *of == changed
        {
            return Ok(resolver.clone());
        }
        let resolver = self.make().map_err(|error| error.to_string())?;
        *made = Some((changed, resolver.clone()));
        Ok(resolver)
    }

    fn make(&self) -> Result<TokioResolver, NetError> {
        let provider = TokioRuntimeProvider::default();
        let mut builder = match &self.nameservers {
            // Without the file, the name server is this machine, as in resolv.conf(5).
            Nameservers::System if !std::path::Path::new(RESOLV_CONF).exists() => {
                let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
                TokioResolver::builder_with_config(these(&[local]), provider)
            }
            Nameservers::System => TokioResolver::builder_tokio()?,
            Nameservers::These(servers) => {
                let mut builder = TokioResolver::builder_with_config(these(servers), provider);
                builder.options_mut().use_hosts_file = ResolveHosts::Never;
                builder
            }
        };
        let options = builder.options_mut();
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.positive_max_ttl = Some(MOST_TTL);
        options.negative_max_ttl = Some(MOST_TTL);
        builder.build()
    }
}

/// Describes an error of the resolver. The library's message for a name without addresses contains
/// type names.
fn words(error: &NetError) -> String {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NoError => "it has no address".to_owned(),
            ResponseCode::NXDomain => "the name does not exist".to_owned(),
            code => format!("the name server replied: {code}"),
        },
        error => error.to_string(),
    }
}

fn these(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.to_vec())
    });
    ResolverConfig::from_parts(None, Vec::new(), servers.collect())
}
