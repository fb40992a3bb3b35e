//! Grants of HTTP requests, and requests that are denied.

use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_base::parse_duration;
use kitbag_base::text::shown;
use kitbag_policy::addresses::{Block, is_ipv4_within_ipv6};
use kitbag_policy::http::{Deny, Headers, MAX_FOLLOW, Methods};
use kitbag_policy::{Grants, HttpGrant, HttpGrants, UrlPattern};

use super::beyond::layered;
use super::call_form::{CallForm, CallTarget, table};
use super::kind::{ConfigKind, Merge};
use crate::config::ConfiguredGrants;
use crate::format::span::{At, StringOr, Written};
use crate::format::{CeilingGrantsConfig, HttpConfig, HttpGrantConfig};
use crate::layers::origin::Sourced;
use crate::read::file::Layer;
use crate::report::{Problem, Report};
use crate::resolve::context::{ConfigFiles, Context, of_user, valid};

/// The maximum number of grants of one tool. Each request is compared with each grant.
const MAX_GRANTS: usize = 256;

const ENCODED_SLASH: &str = "a path with an encoded slash needs `encoded_slash = true`; add it, or \
                             write the path without `%2F`";

pub(super) const KIND: ConfigKind = ConfigKind {
    key: HttpGrant::KEY,
    merge: granted,
    ceiling: Some(ceiling),
    call: Some(CallForm { read: typed, add }),
};

fn ceiling(own: At<'_, CeilingGrantsConfig>, ceiling: &mut ConfiguredGrants, report: &mut Report) {
    let Some(at) = own.inner(|grants| grants.http.as_ref()) else { return };
    let http = grants(at, report).into_iter().map(|(_, grant)| grant).collect::<Vec<_>>();
    ceiling.set(|grants| &mut grants.http, at.sourced(http.into()));
}

/// Returns the requests that no tool may make, from the user config.
pub(crate) fn deny(configs: &ConfigFiles<'_>, report: &mut Report) -> Sourced<Arc<Deny>> {
    let Some(own) = of_user(configs, |config| config.deny.as_ref()) else {
        return Sourced::default(Arc::default());
    };
    let patterns = denied_of(own, report).map(|(_, pattern)| pattern);
    own.sourced(Arc::new(Deny::new(patterns.collect())))
}

/// Returns the requests that a tool may not make, in addition to those that no tool may make. The
/// lists of all layers are combined.
fn denied(
    context: &Context<'_>,
    layers: Vec<At<'_, Vec<Written<String>>>>,
    tool: &mut ConfiguredGrants,
    report: &mut Report,
) {
    let mut patterns = Vec::new();
    for list in layers {
        for (at, pattern) in denied_of(list, report) {
            tool.place_denied(&pattern, at.origin());
            patterns.push(pattern);
        }
    }
    if !patterns.is_empty() {
        let all = context.deny.value.patterns().iter().cloned().chain(patterns);
        tool.value_mut().http.deny = Arc::new(Deny::new(all.collect()));
    }
}

fn denied_of<'a>(
    list: At<'a, Vec<Written<String>>>,
    report: &mut Report,
) -> impl Iterator<Item = (At<'a, String>, UrlPattern)> {
    let patterns = list.value.iter().map(|entry| entry.at(list.file)).filter_map(|at| {
        let pattern = UrlPattern::parse_denied(at.value);
        pattern.map(|pattern| (at, pattern)).map_err(|error| report.at(at, error)).ok()
    });
    patterns.collect::<Vec<_>>().into_iter()
}

fn granted(merge: &mut Merge<'_, '_>, report: &mut Report) {
    allowed(merge, report);
    let layers = merge.layers(|grants| grants.deny.as_ref());
    denied(merge.context, layers, merge.grants, report);
}

/// Grants the requests that a tool may make. Entries of a workspace beyond the ceiling and the
/// user's own grants are omitted.
fn allowed(merge: &mut Merge<'_, '_>, report: &mut Report) {
    let layers = merge.layers(|grants| grants.http.as_ref());
    let mut entries = merge.entries(HttpGrant::KEY);
    let context = entries.context;
    entries.grants.value_mut().http.deny = Arc::clone(&context.deny.value);
    let layers = layered(layers, entries.grantee.code, |weaker| grants(weaker, report));
    let Some(mut layers) = layers else { return };
    let mut bound = context.workspace_ceiling.value.http.grants.clone();
    let own = layers.own.iter_mut().flat_map(|(_, own)| std::mem::take(own));
    bound.extend(own.map(|(_, grant)| Arc::new(grant)));
    let mut granted = HttpGrants { grants: Vec::new(), deny: Arc::clone(&context.deny.value) };
    for (at, grant) in grants(layers.effective, report) {
        let one = HttpGrants::from(vec![grant]);
        let is_within = one.beyond(&bound).is_none();
        let grant = Arc::clone(&one.grants[0]);
        match entries.beyond_ceiling(at, is_within, &one) {
            None => {
                entries.grants.place(HttpGrant::KEY, grant.to_string(), at.origin());
                granted.grants.push(grant);
            }
            Some(beyond) => {
                entries.grants.leave_out_http(grant, &beyond);
                entries.omit(None, beyond);
            }
        }
    }
    entries.finish(&layers);
    entries.grants.set(|grants| &mut grants.http, layers.effective.sourced(granted));
}

fn grants<'a>(
    list: At<'a, HttpConfig>,
    report: &mut Report,
) -> Vec<(At<'a, StringOr<HttpGrantConfig>>, HttpGrant)> {
    let count = list.value.len();
    if count > MAX_GRANTS {
        report.at(list, format!("{count} grants are listed; the limit is {MAX_GRANTS}"));
        return Vec::new();
    }
    let entries = list.value.iter().map(|entry| entry.at(list.file));
    entries.filter_map(|at| Some((at, grant(at, report)?))).collect()
}

/// Reads a grant as it is typed: a pattern, or a table in TOML.
fn typed(text: &str) -> Result<Grants, Problem> {
    let grant = match text.starts_with('{') {
        true => table::<StringOr<HttpGrantConfig>, _>(text, grant)?,
        false => short(text)?,
    };
    Ok(Grants { http: vec![grant].into(), ..Grants::default() })
}

fn add(one: Grants, target: CallTarget<'_>) -> Result<Grants, Problem> {
    target.grants.value_mut().http.grants.extend(one.http.grants.iter().cloned());
    Ok(one)
}

/// Returns a grant that is only a pattern.
fn short(text: &str) -> Result<HttpGrant, Problem> {
    let url = UrlPattern::parse(text)?;
    match url.needs_encoded_slash() {
        true => Err(ENCODED_SLASH.into()),
        false => Ok(HttpGrant::new(url)),
    }
}

/// Returns a grant. Mistakes in any of its fields are reported.
fn grant(at: At<'_, StringOr<HttpGrantConfig>>, report: &mut Report) -> Option<HttpGrant> {
    let config = match at.value {
        StringOr::Short(url) => return pattern(at.with(url), false, report).map(HttpGrant::new),
        StringOr::Other(config) => at.with(config),
    };
    let encoded_slash = config.value.encoded_slash.as_ref().is_some_and(|written| written.value);
    let url = pattern(config.value.url.at(at.file), encoded_slash, report);
    let methods = config.inner(|config| config.methods.as_ref());
    let methods = methods.map_or(Some(Methods::default()), |at| methods_of(at, report));
    let addresses = config.inner(|config| config.addresses.as_ref());
    let addresses = addresses.map_or(Some(Vec::new()), |at| blocks(at, report));
    let follow = config.inner(|config| config.follow.as_ref());
    let follow = follow.map_or(Some(0), |at| {
        let follow = u8::try_from(at.value.get()).ok().filter(|follow| *follow <= MAX_FOLLOW);
        follow.or_else(|| {
            report.at(at, format!("`follow` is at most {MAX_FOLLOW}"));
            None
        })
    });
    let headers = config.inner(|config| config.headers.as_ref());
    let headers = headers.map_or(Some(Headers::default()), |at| {
        each(at, report, |name| Ok(Headers::new([name]).map(|_| name)?))
            .and_then(|names| Headers::new(names).ok())
    });
    let size = |at: Option<At<'_, String>>, default: ByteSize, report: &mut Report| match at {
        None => Some(default),
        Some(at) => at.value.parse().map_err(|error| report.at(at, error)).ok(),
    };
    let max_request = config.inner(|config| config.max_request.as_ref());
    let max_request = size(max_request, HttpGrant::MAX_REQUEST, report);
    let max_response = config.inner(|config| config.max_response.as_ref());
    let max_response = size(max_response, HttpGrant::MAX_RESPONSE, report);
    let time = match config.inner(|config| config.time.as_ref()) {
        None => Some(None),
        Some(at) => parse_duration(at.value).map(Some).map_err(|error| report.at(at, error)).ok(),
    };
    Some(HttpGrant {
        url: url?,
        methods: methods?,
        addresses: addresses?,
        follow: follow?,
        encoded_slash,
        headers: headers?,
        max_request: max_request?,
        max_response: max_response?,
        time: time?,
    })
}

fn pattern(at: At<'_, String>, encoded_slash: bool, report: &mut Report) -> Option<UrlPattern> {
    let problem = match UrlPattern::parse(at.value) {
        Ok(url) if url.is_any_host() && at.file.layer() != Layer::User => {
            "only your user config may grant every host; name the intended hosts".into()
        }
        Ok(url) if url.needs_encoded_slash() && !encoded_slash => ENCODED_SLASH.into(),
        Ok(url) => return Some(url),
        Err(error) => Problem::from(error),
    };
    report.at(at, problem);
    None
}

fn methods_of(at: At<'_, StringOr<Vec<Written<String>>>>, report: &mut Report) -> Option<Methods> {
    let list = match at.value {
        StringOr::Short(text) if text == "*" => return Some(Methods::Any),
        StringOr::Short(_) => {
            let problem = "`methods` is a list, such as `[\"GET\", \"POST\"]`, or `\"*\"`";
            report.at(at, problem);
            return None;
        }
        StringOr::Other(list) => at.with(list),
    };
    let methods = each(list, report, |method| Ok(Methods::new([method]).map(|_| method)?))?;
    Methods::new(methods).map_err(|error| report.at(list, error)).ok()
}

/// Reads each string of a list. Returns `None` if a mistake in one of them was reported.
fn each<'a, T>(
    list: At<'a, Vec<Written<String>>>,
    report: &mut Report,
    read: impl Fn(&'a str) -> Result<T, Problem>,
) -> Option<Vec<T>> {
    let values = valid(list, report, read);
    (values.len() == list.value.len()).then_some(values)
}

/// Reads blocks of addresses. Returns `None` if a mistake in one of them was reported.
pub(in crate::resolve) fn blocks(
    list: At<'_, Vec<Written<String>>>,
    report: &mut Report,
) -> Option<Vec<Block>> {
    each(list, report, block)
}

fn block(text: &str) -> Result<Block, Problem> {
    let block: Block = match text.parse() {
        Ok(block) => block,
        Err(_) => {
            let address: std::net::IpAddr = text.parse().map_err(|_| {
                format!("`{}` is not an address block; write one such as `10.0.0.0/8`", shown(text))
            })?;
            address.into()
        }
    };
    if block.trunc() != block {
        let meant = block.trunc();
        let message =
            format!("`{text}` must start with the first address of the block; write `{meant}`");
        return Err(message.into());
    }
    match is_ipv4_within_ipv6(block) {
        true => Err(Problem::from(format!("`{text}` embeds IPv4 in IPv6; write the IPv4 block"))),
        false => Ok(block),
    }
}
