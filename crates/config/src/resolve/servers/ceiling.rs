//! Servers of a workspace beyond `[ceiling.grants]`, which are off.

use std::sync::Arc;

use kitbag_policy::http::{HttpGrant, HttpGrants, HttpRequest};
use kitbag_policy::server::{ServerAddress, ServerValue};
use kitbag_policy::{
    Decision, Grants, Request, SecretGrant, SecretName, VariableGrant, VariableRequest, decide,
};

use crate::config::ConfiguredServer;
use crate::read::file::Layer;
use crate::report::text::own_file;
use crate::resolve::context::Context;

/// Returns why a server of a workspace is not within the ceiling of the user config.
///
/// A ceiling of HTTP requests, variables or secrets cannot hold a process that has all of the
/// user's rights, or the network.
pub(super) fn beyond(
    context: &Context<'_>,
    server: &ConfiguredServer,
    address: &ServerAddress,
) -> Option<String> {
    if server.layer == Layer::User {
        return None;
    }
    let ceiling = context.grant_ceiling;
    let of = |kind: &'static str| ceiling.has(kind).then(|| ceiling.origin_of(kind).to_string());
    let name = &server.name;
    let include = |place: &str, entry: &str| {
        format!(
            "let `[ceiling.grants]` ({place}) include `{entry}`, or move `[servers.{name}]` to {}",
            own_file(context.own_file)
        )
    };
    let limited = [HttpGrant::KEY, VariableGrant::KEY, SecretGrant::KEY];
    match address {
        ServerAddress::Process(process) => {
            let Some(confine) = &process.confine else {
                let (kind, place) = limited.iter().find_map(|kind| Some((kind, of(kind)?)))?;
                return Some(format!(
                    "it runs with all of your rights, which no ceiling of `{kind}` ({place}) can \
                     hold; give it a `confine`, or move `[servers.{name}]` to {}",
                    own_file(context.own_file)
                ));
            };
            if confine.network
                && let Some(place) = of(HttpGrant::KEY)
            {
                return Some(format!(
                    "it may use the network, which no ceiling of `http` ({place}) can hold; remove \
                     `network = true`, or move `[servers.{name}]` to {}",
                    own_file(context.own_file)
                ));
            }
            for variable in &process.environment {
                let request = VariableRequest { name: variable.name.clone() };
                if let (ServerValue::Inherit, Some(place)) =
                    (&variable.value, of(VariableGrant::KEY))
                    && !is_allowed(&ceiling.value, &Request::Variable(request))
                {
                    let include = include(&place, variable.name.as_str());
                    return Some(format!("it inherits `{}`; {include}", variable.name));
                }
            }
        }
        ServerAddress::Remote(remote) => {
            let request = HttpRequest::read("POST", &remote.url).ok()?;
            if let Some(place) = of(HttpGrant::KEY)
                && ceiling.value.http.decide(&request).is_err()
            {
                let entry = HttpGrant::allowing(&request).as_entry();
                let include = include(&place, &entry);
                return Some(format!("it sends requests to `{}`; {include}", remote.url));
            }
            let addresses = remote.addresses.clone();
            let grant = HttpGrant { addresses, ..HttpGrant::allowing(&request) };
            let own = HttpGrants { grants: vec![grant.into()], deny: Arc::default() };
            if let Some(place) = of(HttpGrant::KEY)
                && let Some((grant, "addresses")) = own.beyond(&ceiling.value.http.grants)
            {
                let include = include(&place, &grant.as_entry());
                return Some(format!("it may connect to addresses in `addresses`; {include}"));
            }
        }
    }
    let place = of(SecretGrant::KEY)?;
    let has = |name: &SecretName| ceiling.value.secrets.iter().any(|grant| grant.name == *name);
    let secret = address.secrets().find(|name| !has(name))?;
    let include = include(&place, secret.as_str());
    Some(format!("it receives the secret `{secret}`; {include}"))
}

fn is_allowed(ceiling: &Grants, request: &Request) -> bool {
    matches!(decide(ceiling, request), Decision::Allowed { .. })
}
