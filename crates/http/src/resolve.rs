//! From names to addresses.
//!
//! Only A and AAAA records are asked for. Records of the type HTTPS, which may hold
//! addresses and other names, are never looked at, so that they lead nowhere.

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

/// What the system says of its name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The longest time that an address is remembered.
const MOST_TTL: Duration = Duration::from_secs(60);

/// Who resolves names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nameservers {
    /// What `/etc/resolv.conf` names, after `/etc/hosts`.
    #[default]
    System,
    /// These, and no file.
    These(Vec<SocketAddr>),
}

/// Looks names up.
#[derive(Default)]
pub(crate) struct Resolver {
    nameservers: Nameservers,
    /// With the time of the system's file that it was made from.
    made: Mutex<Option<(Option<SystemTime>, TokioResolver)>>,
}

impl Resolver {
    pub(crate) fn new(nameservers: Nameservers) -> Self {
        Self { nameservers, made: Mutex::default() }
    }

    /// All addresses of a name, at least one. To be awaited inside the runtime of the
    /// connections.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        // RFC 6761: it is this machine, and no server is asked for it.
        if name == "localhost" || name.ends_with(".localhost") {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let mut absolute = Name::from_ascii(name).map_err(|error| error.to_string())?;
        // The name of a URL is whole: no domain of the system is added to it.
        absolute.set_fqdn(true);
        let found = self.resolver()?.lookup_ip(absolute).await;
        let found: Vec<_> = found.map_err(|error| words(&error))?.iter().collect();
        match found.is_empty() {
            true => Err("it has no address".to_owned()),
            false => Ok(found),
        }
    }

    /// The resolver, made anew when the system's file has changed.
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
            // Without the file the name server is this machine, as resolv.conf(5) has it.
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

/// An error of the resolver in words. Its own text for a name without addresses shows its types.
fn words(error: &NetError) -> String {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NoError => "it has no address".to_owned(),
            ResponseCode::NXDomain => "there is no such name".to_owned(),
            code => format!("the name server answers: {code}"),
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
