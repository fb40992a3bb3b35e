//! Requests over HTTP that are granted, and what nothing may ask for.

use std::sync::Arc;

use kitbag_base::ByteSize;
use kitbag_base::parse_duration;
use kitbag_base::text::shown;
use kitbag_policy::http::{Deny, Headers, MAX_FOLLOW, Methods};
use kitbag_policy::{HttpGrant, HttpGrants, UrlPattern};

use super::beyond::{Code, own_of, replaces};
use crate::config::ConfiguredGrants;
use crate::format::spanned::{At, StringOr, Written};
use crate::format::{ConfigFile, HttpConfig, HttpGrantConfig};
use crate::layers::origin::Sourced;
use crate::read::file::{Layer, SourceFile};
use crate::report::{Problem, Report};
use crate::resolve::resolver::Resolver;

/// The most grants that one tool has. Each request is held against each.
const MAX_GRANTS: usize = 256;

const ENCODED_SLASH: &str = "no request has an encoded slash in its path without `encoded_slash = \
                             true`; add it, or write the path without `%2F`";

/// What the user's own file lets a workspace grant.
pub(super) fn ceiling(at: At<'_, HttpConfig>, report: &mut Report) -> Sourced<HttpGrants> {
    let grants = grants(at, report).into_iter().map(|(_, grant)| Arc::new(grant));
    at.sourced(HttpGrants { grants: grants.collect(), deny: Arc::default() })
}

/// What nothing may ask for: of the user's own file alone, for all workspaces.
pub(in crate::resolve) fn deny(
    configs: &[(&SourceFile, &ConfigFile)],
    report: &mut Report,
) -> Sourced<Arc<Deny>> {
    let own = configs.iter().find(|(file, _)| file.layer() == Layer::User);
    let own = own.and_then(|(file, config)| Some(config.deny.as_ref()?.at(file)));
    let Some(own) = own else { return Sourced::default(Arc::default()) };
    let mut patterns = Vec::new();
    for entry in own.value {
        match UrlPattern::parse_denied(&entry.value) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => report.at(entry.at(own.file), error),
        }
    }
    own.sourced(Arc::new(Deny::new(patterns)))
}

impl Resolver<'_> {
    /// What a tool must not ask for, besides what no tool may: each layer can only add to it.
    pub(super) fn tool_denies(
        &mut self,
        layers: Vec<At<'_, Vec<Written<String>>>>,
        tool: &mut ConfiguredGrants,
    ) {
        let mut patterns = Vec::new();
        for entry in layers.iter().flat_map(|list| list.value.iter().map(|it| it.at(list.file))) {
            match UrlPattern::parse_denied(entry.value) {
                Ok(pattern) => {
                    tool.place_denied(&pattern, entry.origin());
                    patterns.push(pattern);
                }
                Err(error) => self.report.at(entry, error),
            }
        }
        if !patterns.is_empty() {
            let all = self.deny.value.patterns().iter().cloned().chain(patterns);
            tool.value_mut().http.deny = Arc::new(Deny::new(all.collect()));
        }
    }

    /// What a tool may ask of servers. What a workspace grants beyond the ceiling and the
    /// user's own grants is left out.
    pub(super) fn http(
        &mut self,
        mut layers: Vec<At<'_, HttpConfig>>,
        is_enabled: bool,
        code: Code,
        tool: &mut ConfiguredGrants,
    ) {
        tool.value_mut().http.deny = Arc::clone(&self.deny.value);
        let Some(effective) = layers.pop() else { return };
        let own = own_of(&layers, code);
        let mut bound = self.workspace_ceiling.value.http.grants.clone();
        // A weaker layer is overridden, but must be valid all the same.
        for weaker in layers {
            let weaker_grants = grants(weaker, self.report).into_iter();
            if own.is_some_and(|own| std::ptr::eq(own.value, weaker.value)) {
                bound.extend(weaker_grants.map(|(_, grant)| Arc::new(grant)));
            }
        }
        let mut all_count = true;
        let mut granted = HttpGrants { grants: Vec::new(), deny: Arc::clone(&self.deny.value) };
        for (at, grant) in grants(effective, self.report) {
            let one = HttpGrants::from(vec![grant]);
            let is_within = one.beyond(&bound).is_none();
            let grant = Arc::clone(&one.grants[0]);
            let setting = format!("http = [{}]", grant.as_entry());
            if let Some(beyond) =
                self.beyond_ceiling(at, code, is_within, (HttpGrant::KEY, setting))
            {
                all_count = false;
                tool.warnings.extend(is_enabled.then_some(beyond));
                continue;
            }
            tool.place(HttpGrant::KEY, grant.to_string(), at.origin());
            granted.grants.push(grant);
        }
        if !all_count && is_enabled {
            tool.warnings.extend(replaces(HttpGrant::KEY, effective, own));
        }
        tool.set(|grants| &mut grants.http, effective.sourced(granted));
    }
}

/// The grants of a list, each with its place.
fn grants<'a>(
    list: At<'a, HttpConfig>,
    report: &mut Report,
) -> Vec<(At<'a, StringOr<HttpGrantConfig>>, HttpGrant)> {
    let count = list.value.len();
    if count > MAX_GRANTS {
        report.at(list, format!("{count} grants are listed, and {MAX_GRANTS} is the most"));
        return Vec::new();
    }
    let entries = list.value.iter().map(|entry| entry.at(list.file));
    entries.filter_map(|at| Some((at, grant(at, report)?))).collect()
}

/// A grant that is a pattern alone, of the user's.
pub(super) fn short(text: &str) -> Result<HttpGrant, Problem> {
    let url = UrlPattern::parse(text)?;
    match url.needs_encoded_slash() {
        true => Err(ENCODED_SLASH.into()),
        false => Ok(HttpGrant::new(url)),
    }
}

/// One grant; what is wrong with any field of it is reported.
pub(super) fn grant(
    at: At<'_, StringOr<HttpGrantConfig>>,
    report: &mut Report,
) -> Option<HttpGrant> {
    let config = match at.value {
        StringOr::String(url) => return pattern(at.with(url), false, report).map(HttpGrant::new),
        StringOr::Other(config) => at.with(config),
    };
    let encoded_slash = config.value.encoded_slash.as_ref().is_some_and(|written| written.value);
    let url = pattern(config.value.url.at(at.file), encoded_slash, report);
    let methods = config.inner(|config| config.methods.as_ref());
    let methods = methods.map_or(Some(Methods::default()), |at| methods_of(at, report));
    let addresses = config.inner(|config| config.addresses.as_ref());
    let addresses = addresses.map_or(Some(Vec::new()), |at| each(at, report, block));
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
            "only your own file may grant every host; name the intended hosts".into()
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
        StringOr::String(text) if text == "*" => return Some(Methods::Any),
        StringOr::String(_) => {
            let problem = "`methods` is a list, such as `[\"GET\", \"POST\"]`, or `\"*\"`";
            report.at(at, problem);
            return None;
        }
        StringOr::Other(list) => at.with(list),
    };
    let methods = each(list, report, |method| Ok(Methods::new([method]).map(|_| method)?))?;
    Methods::new(methods).map_err(|error| report.at(list, error)).ok()
}

/// What each text of a list means; `None` where one of them was reported.
fn each<'a, T>(
    list: At<'a, Vec<Written<String>>>,
    report: &mut Report,
    read: impl Fn(&'a str) -> Result<T, Problem>,
) -> Option<Vec<T>> {
    let mut values = Vec::with_capacity(list.value.len());
    for entry in list.value {
        match read(&entry.value) {
            Ok(value) => values.push(value),
            Err(problem) => report.at(entry.at(list.file), problem),
        }
    }
    (values.len() == list.value.len()).then_some(values)
}

fn block(text: &str) -> Result<kitbag_policy::addresses::Block, Problem> {
    use kitbag_policy::addresses::{Block, is_ipv4_within_ipv6};
    let block: Block = match text.parse() {
        Ok(block) => block,
        Err(_) => {
            let address: std::net::IpAddr = text.parse().map_err(|_| {
                format!(
                    "`{}` is not a block of addresses; write one such as `10.0.0.0/8`",
                    shown(text)
                )
            })?;
            address.into()
        }
    };
    if block.trunc() != block {
        let meant = block.trunc();
        let message = format!("`{text}` names an address in a block; write `{meant}`");
        return Err(message.into());
    }
    match is_ipv4_within_ipv6(block) {
        true => Err(Problem::from(format!(
            "`{text}` is IPv4 within IPv6, which is judged by what it holds; write the IPv4 block"
        ))),
        false => Ok(block),
    }
}
