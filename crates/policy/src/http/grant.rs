//! A single HTTP grant.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use kitbag_base::ByteSize;
use kitbag_base::format_duration;
use serde_json::{Value, json};

use crate::addresses::{is_global, is_within};
use crate::http::headers::Headers;
use crate::http::host::{Host, HostPattern};
use crate::http::method::Methods;
use crate::http::pattern::UrlPattern;
use crate::http::request::HttpRequest;

/// Maximum number of redirects that a grant can follow.
pub const MAX_FOLLOW: u8 = 20;

/// Permits HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpGrant {
    /// The permitted URLs.
    pub url: UrlPattern,
    /// The permitted methods. Default: `GET` and `HEAD`.
    pub methods: Methods,
    /// Blocks of addresses that the host may have in addition to those of the public internet.
    pub addresses: Vec<IpNet>,
    /// The number of redirects that the host follows, at most [`MAX_FOLLOW`]. Default 0: the tool
    /// receives the redirect.
    pub follow: u8,
    /// True if a path may contain an encoded slash, `%2F`.
    pub encoded_slash: bool,
    /// The header fields that the tool may send.
    pub headers: Headers,
    /// Maximum size of a request body. Default 1 MiB.
    pub max_request: ByteSize,
    /// Maximum size of a response body, both compressed and decompressed. Default 8 MiB.
    pub max_response: ByteSize,
    /// Maximum time from the start of a request to the end of its response, including redirects.
    /// `None`: the remaining time of the call.
    pub time: Option<Duration>,
}

impl HttpGrant {
    /// The key of these grants.
    pub const KEY: &'static str = "http";

    /// The default of [`Self::max_request`].
    pub const MAX_REQUEST: ByteSize = ByteSize::mib(1);

    /// The default of [`Self::max_response`].
    pub const MAX_RESPONSE: ByteSize = ByteSize::mib(8);

    /// Grants `GET` and `HEAD` for a pattern, with defaults for everything else.
    pub fn new(url: UrlPattern) -> Self {
        Self {
            url,
            methods: Methods::default(),
            addresses: Vec::new(),
            follow: 0,
            encoded_slash: false,
            headers: Headers::default(),
            max_request: Self::MAX_REQUEST,
            max_response: Self::MAX_RESPONSE,
            time: None,
        }
    }

    /// Returns the narrowest grant that allows a request.
    pub fn allowing(request: &HttpRequest) -> Self {
        let methods = match request.method().is_safe() {
            true => Methods::default(),
            false => Methods::only(request.method()),
        };
        let encoded_slash = request.segments().has_encoded_slash();
        Self { methods, encoded_slash, ..Self::new(UrlPattern::exactly(request)) }
    }

    /// Returns true if method and URL allow a request.
    pub(crate) fn allows(&self, request: &HttpRequest) -> bool {
        self.url.matches(request)
            && self.methods.has(request.method())
            && (self.encoded_slash || !request.segments().has_encoded_slash())
            && match request.host() {
                Host::Address(address) => self.opens(request.host(), *address),
                Host::Name(_) => true,
            }
    }

    /// Returns true if a host may have an address: an address of the public internet, the address
    /// that the grant names, any address of this machine for `localhost`, or one of
    /// [`Self::addresses`].
    pub(crate) fn opens(&self, host: &Host, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_global(address)
            || is_within(address, &self.addresses)
            || *self.url.host() == HostPattern::One(host.clone())
                && match host {
                    Host::Address(named) => named.to_canonical() == address,
                    Host::Name(name) => name == "localhost" && address.is_loopback(),
                }
    }

    /// Checks that this grant allows everything that another grant allows. Returns the first field
    /// of the other grant that allows more.
    pub(crate) fn holds(&self, other: &Self) -> Result<(), &'static str> {
        // Names every field, so that a new field cannot allow more by accident.
        let Self {
            url,
            methods,
            addresses: _,
            follow,
            encoded_slash,
            headers,
            max_request,
            max_response,
            time,
        } = other;
        let fields = [
            ("url", self.url.holds(url)),
            ("methods", self.methods.holds(methods)),
            ("addresses", self.opens_all(other)),
            ("follow", self.follow >= *follow),
            ("encoded_slash", self.encoded_slash || !encoded_slash),
            ("headers", self.headers.holds(headers)),
            ("max_request", self.max_request >= *max_request),
            ("max_response", self.max_response >= *max_response),
            ("time", self.time.is_none_or(|own| time.is_some_and(|time| own >= time))),
        ];
        fields.into_iter().find(|(_, holds)| !holds).map_or(Ok(()), |(field, _)| Err(field))
    }

    /// Returns true if every address that another grant permits is permitted. The hosts of that
    /// grant are already covered.
    fn opens_all(&self, other: &Self) -> bool {
        let own = IpNet::aggregate(&self.addresses);
        let is_open = |block: &IpNet| own.iter().any(|own| own.contains(block));
        let named_is_open = match other.url.host() {
            HostPattern::One(Host::Address(address)) => {
                self.opens(&Host::Address(*address), *address)
            }
            // All addresses of this machine: RFC 1122, 3.2.1.3 and RFC 4291, 2.5.3.
            HostPattern::One(Host::Name(name)) if name == "localhost" => {
                let loopback = ["127.0.0.0/8", "::1/128"];
                self.url.host() == other.url.host()
                    || loopback.iter().all(|block| block.parse().is_ok_and(|block| is_open(&block)))
            }
            _ => true,
        };
        named_is_open && other.addresses.iter().all(is_open)
    }

    /// Formats the grant as a list element in TOML: only the pattern if every other field has its
    /// default.
    pub fn as_entry(&self) -> String {
        let url = format!("\"{}\"", self.url);
        let fields = self.fields();
        if fields.is_empty() {
            return url;
        }
        let field = |(key, value): &(&str, Value)| match value {
            // In TOML, a list of strings is the same except for the space after a comma.
            Value::Array(values) => {
                let values: Vec<_> = values.iter().map(Value::to_string).collect();
                format!("{key} = [{}]", values.join(", "))
            }
            value => format!("{key} = {value}"),
        };
        let fields: Vec<_> = fields.iter().map(field).collect();
        format!("{{ url = {url}, {} }}", fields.join(", "))
    }

    /// Returns the fields other than the URL that do not have their default, as they would be
    /// typed.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        // Names every field, so that a new field is shown.
        let Self {
            url: _,
            methods,
            addresses,
            follow,
            encoded_slash,
            headers,
            max_request,
            max_response,
            time,
        } = self;
        let typed_methods = match methods {
            Methods::Any => json!("*"),
            methods => json!(methods.typed()),
        };
        let addresses_typed: Vec<_> = addresses.iter().map(IpNet::to_string).collect();
        let time_typed = time.map(|time| format_duration(time).to_string());
        let fields = [
            ("methods", typed_methods, *methods != Methods::default()),
            ("addresses", json!(addresses_typed), !addresses.is_empty()),
            ("follow", json!(follow), *follow != 0),
            ("encoded_slash", json!(encoded_slash), *encoded_slash),
            ("headers", json!(headers.typed()), headers.typed().is_some()),
            ("max_request", json!(max_request.to_string()), *max_request != Self::MAX_REQUEST),
            ("max_response", json!(max_response.to_string()), *max_response != Self::MAX_RESPONSE),
            ("time", json!(time_typed), time.is_some()),
        ];
        let fields = fields.into_iter().filter(|(_, _, is_set)| *is_set);
        fields.map(|(key, value, _)| (key, value)).collect()
    }

    /// Returns the grant as it would be typed, without defaults.
    pub(crate) fn to_json(&self) -> Value {
        let mut entry = json!({ "url": self.url.to_string() });
        for (key, value) in self.fields() {
            entry[key] = value;
        }
        entry
    }
}

impl fmt::Display for HttpGrant {
    /// Formats `GET, HEAD  https://api.github.com/**` and the fields that do not have their
    /// default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.methods, self.url)?;
        for (key, value) in self.fields().iter().filter(|(key, _)| *key != "methods") {
            match value {
                Value::Array(values) => {
                    let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
                    write!(f, ", {key} {}", values.join(" "))?;
                }
                Value::String(value) => write!(f, ", {key} {value}")?,
                Value::Bool(_) => write!(f, ", {key}")?,
                value => write!(f, ", {key} {value}")?,
            }
        }
        Ok(())
    }
}
