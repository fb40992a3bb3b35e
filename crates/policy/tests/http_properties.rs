//! Properties of HTTP decisions: they match a differently written model, narrowing never allows
//! more, and no spelling of a path reaches another path.

use std::net::IpAddr;

use kitbag_base::ByteSize;
use kitbag_policy::http::{Deny, Headers, Methods};
use kitbag_policy::{HttpGrant, HttpGrants, HttpRequest, UrlPattern};
use proptest::prelude::*;

/// Few hosts. Some share prefixes or suffixes.
const HOSTS: [&str; 8] = [
    "a.example",
    "b.a.example",
    "c.b.a.example",
    "ba.example",
    "localhost",
    "8.8.8.8",
    "10.0.0.1",
    "[::ffff:10.0.0.1]",
];
const ADDRESSES: [&str; 6] =
    ["8.8.8.8", "10.0.0.1", "10.1.0.1", "127.0.0.1", "::1", "::ffff:10.0.0.1"];
const METHODS: [&str; 4] = ["GET", "HEAD", "POST", "DELETE"];

/// The parts of a request.
#[derive(Clone, Debug)]
struct Requested {
    method: &'static str,
    scheme: &'static str,
    host: &'static str,
    port: Option<u16>,
    /// Segments in encoded form.
    path: Vec<&'static str>,
}

/// The parts of a pattern.
#[derive(Clone, Debug)]
struct Granted {
    methods: Option<Vec<&'static str>>,
    scheme: &'static str,
    host: &'static str,
    port: Option<u16>,
    path: Option<Vec<&'static str>>,
    encoded_slash: bool,
}

fn scheme() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("https"), 1 => Just("http")]
}

fn port() -> impl Strategy<Value = Option<u16>> {
    prop_oneof![3 => Just(None), 1 => Just(Some(443)), 1 => Just(Some(80)), 1 => Just(Some(8443))]
}

fn requested() -> impl Strategy<Value = Requested> {
    let segment = prop::sample::select(vec!["a", "ab", "b", "", "%61", "a%2Fb", "a%2fb", "*", "B"]);
    let path = prop::collection::vec(segment, 1..5);
    let (method, host) = (prop::sample::select(&METHODS[..]), prop::sample::select(&HOSTS[..]));
    (method, scheme(), host, port(), path).prop_map(|(method, scheme, host, port, path)| {
        Requested { method, scheme, host, port, path }
    })
}

fn granted() -> impl Strategy<Value = Granted> {
    let segments =
        vec!["a", "ab", "b", "", "*", "**", "a*", "*b", "*a*", "%61", "a%2Fb", "%2A", "**"];
    let segment = prop::sample::select(segments);
    let path = prop::option::of(prop::collection::vec(segment, 1..5));
    let hosts: Vec<_> = HOSTS.into_iter().chain(["*", "*.a.example", "*.b.a.example"]).collect();
    let host = prop::sample::select(hosts);
    let methods = prop::option::of(prop::sample::subsequence(METHODS.to_vec(), 1..4));
    (methods, scheme(), host, port(), path, any::<bool>()).prop_map(
        |(methods, scheme, host, port, path, encoded_slash)| Granted {
            methods,
            scheme,
            host,
            port,
            path,
            encoded_slash,
        },
    )
}

impl Requested {
    fn url(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}/{}", self.scheme, self.host, self.path.join("/"))
    }

    fn request(&self) -> HttpRequest {
        HttpRequest::new(self.method, &self.url()).unwrap()
    }
}

impl Granted {
    fn pattern(&self) -> String {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = self.path.as_ref().map(|path| format!("/{}", path.join("/")));
        format!("{}://{}{port}{}", self.scheme, self.host, path.unwrap_or_default())
    }

    fn grant(&self) -> HttpGrant {
        let mut grant = HttpGrant::new(self.pattern().parse().unwrap());
        if let Some(methods) = &self.methods {
            grant.methods = Methods::new(methods.iter().copied()).unwrap();
        }
        grant.encoded_slash = self.encoded_slash;
        grant
    }
}

fn is_allowed(grants: &[HttpGrant], request: &HttpRequest) -> bool {
    HttpGrants::from(grants.to_vec()).decide(request).is_ok()
}

/// The model: strings that are compared from the end or by exhaustive search.
fn model(granted: &Granted, requested: &Requested) -> bool {
    let default = |scheme: &str| if scheme == "https" { 443 } else { 80 };
    let methods = granted.methods.clone().unwrap_or(vec!["GET"]);
    let method = methods.contains(&requested.method)
        || requested.method == "HEAD" && methods.contains(&"GET");
    let labels = |host: &str| host.split('.').rev().map(str::to_owned).collect::<Vec<_>>();
    let is_address = requested.host.starts_with(['[', '8', '1']);
    let host = match granted.host {
        "*" => !matches!(requested.host, "10.0.0.1" | "[::ffff:10.0.0.1]"),
        host if host.starts_with("*.") => {
            let (base, name) = (labels(&host[2..]), labels(requested.host));
            !is_address && name.len() > base.len() && name[..base.len()] == base[..]
        }
        host => host == requested.host,
    };
    let decode =
        |segment: &str| segment.replace("%61", "a").replace("%2F", "/").replace("%2f", "/");
    let path: Vec<_> = requested.path.iter().map(|segment| decode(segment)).collect();
    let has_slash = path.iter().any(|segment| segment.contains('/'));
    let patterns = granted.path.clone().unwrap_or(vec!["**"]);
    let patterns: Vec<_> = patterns.iter().map(|pattern| decode(pattern)).collect();
    granted.scheme == requested.scheme
        && granted.port.unwrap_or(default(granted.scheme))
            == requested.port.unwrap_or(default(requested.scheme))
        && host
        && method
        && (granted.encoded_slash || !has_slash)
        && model_path(&patterns, &path)
}

fn model_path(patterns: &[String], path: &[String]) -> bool {
    match patterns.split_first() {
        None => path.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=path.len()).any(|skipped| model_path(rest, &path[skipped..]))
        }
        Some((first, rest)) => path.split_first().is_some_and(|(segment, others)| {
            first.is_empty() == segment.is_empty()
                && model_segment(first, segment)
                && model_path(rest, others)
        }),
    }
}

fn model_segment(pattern: &str, segment: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix("%2A") {
        return segment.strip_prefix('*').is_some_and(|segment| model_segment(rest, segment));
    }
    match pattern.chars().next() {
        None => segment.is_empty(),
        Some('*') => (0..=segment.len()).any(|at| model_segment(&pattern[1..], &segment[at..])),
        Some(char) => {
            segment.strip_prefix(char).is_some_and(|segment| model_segment(&pattern[1..], segment))
        }
    }
}

/// Splits a path as the most lenient server does.
fn lenient(path: &str) -> Vec<String> {
    let mut text = path.to_owned();
    loop {
        let decoded = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    let mut segments: Vec<String> = Vec::new();
    for segment in text.replace('\\', "/").split('/') {
        match segment.split(';').next().unwrap() {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment.to_owned()),
        }
    }
    segments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn grants_match_the_model(granted in granted(), requested in requested()) {
        let is_allowed = is_allowed(&[granted.grant()], &requested.request());
        prop_assert_eq!(is_allowed, model(&granted, &requested));
    }

    #[test]
    fn grants_combine_as_a_union_of_requests(
        granted in prop::collection::vec(granted(), 0..5),
        requested in requested(),
    ) {
        let request = requested.request();
        let grants: Vec<_> = granted.iter().map(Granted::grant).collect();
        let expected = granted.iter().any(|granted| model(granted, &requested));
        let whole = HttpGrants::from(grants.clone()).decide(&request);
        prop_assert_eq!(whole.is_ok(), expected);
        for left_out in 0..grants.len() {
            let mut fewer = grants.clone();
            fewer.remove(left_out);
            prop_assert!(expected || !is_allowed(&fewer, &request));
        }
        // The missing grant allows the request and is parsed back.
        if let Err(refusal) = whole {
            let allowing = HttpGrant::allowing(&request);
            prop_assert_eq!(refusal.missing.unwrap().entry, allowing.as_entry());
            let written = allowing.url.to_string();
            prop_assert_eq!(&written.parse::<UrlPattern>().unwrap(), &allowing.url);
            prop_assert!(is_allowed(&[allowing], &request));
        }
    }

    #[test]
    fn covered_grants_allow_nothing_more(
        outer in granted(),
        inner in granted(),
        requested in requested(),
    ) {
        let (outer, inner) = (outer.grant(), inner.grant());
        let is_within = HttpGrants::from(vec![inner.clone()])
            .beyond(&HttpGrants::from(vec![outer.clone()]).grants)
            .is_none();
        let request = requested.request();
        if is_within && is_allowed(std::slice::from_ref(&inner), &request) {
            prop_assert!(is_allowed(std::slice::from_ref(&outer), &request));
            // And no further addresses.
            for address in ADDRESSES {
                let address: IpAddr = address.parse().unwrap();
                let opens = |grant: &HttpGrant| {
                    let grants = HttpGrants::from(vec![grant.clone()]);
                    grants.decide(&request).unwrap().addresses(&[address]).is_ok()
                };
                prop_assert!(opens(&outer) || !opens(&inner));
            }
        }
        // Every grant covers itself.
        let own = HttpGrants::from(vec![outer]);
        prop_assert_eq!(own.beyond(&own.grants), None);
    }

    #[test]
    fn narrowing_a_field_never_allows_more(
        granted in prop::collection::vec(granted(), 1..4),
        narrowed in any::<prop::sample::Index>(),
        field in 0..8_u8,
        requested in requested(),
        address in prop::sample::select(&ADDRESSES[..]),
        bytes in prop::sample::select(vec![0_u64, 1 << 20, 2 << 20, 9 << 20]),
        header in prop::sample::select(vec!["accept", "x-a", "x-http-method-override"]),
        followed in 0..3_u8,
    ) {
        let request = requested.request();
        let wide = |granted: &Granted| HttpGrant {
            // All addresses that the name `localhost` permits.
            addresses: ["10.0.0.0/8", "127.0.0.0/8", "::1/128"].map(|it| it.parse().unwrap()).into(),
            follow: 2,
            headers: Headers::new(["x-a", "x-http-method-override"]).unwrap(),
            max_request: ByteSize::mib(2),
            max_response: ByteSize::mib(9),
            ..granted.grant()
        };
        let wide: Vec<_> = granted.iter().map(wide).collect();
        let mut narrow = wide.clone();
        let at = narrowed.index(narrow.len());
        let grant = &mut narrow[at];
        match field {
            0 => grant.addresses = vec!["10.0.0.0/16".parse().unwrap()],
            1 => grant.follow = 1,
            2 => grant.headers = Headers::new(["x-a"]).unwrap(),
            3 => grant.max_request = ByteSize::mib(1),
            4 => grant.max_response = ByteSize::mib(1),
            5 => grant.encoded_slash = false,
            6 => grant.methods = Methods::new(["HEAD"]).unwrap(),
            _ => grant.url = HttpGrant::allowing(&request).url,
        }
        // The last two fields are narrower only if the request was allowed before.
        if field >= 6 && !is_allowed(&wide[at..=at], &request) {
            narrow.remove(at);
        }
        let allows = |grants: &[HttpGrant]| {
            let Ok(mut allowed) = HttpGrants::from(grants.to_vec()).decide(&request) else {
                return false;
            };
            allowed.addresses(&[address.parse().unwrap()]).is_ok()
                && allowed.headers([header]).is_ok()
                && allowed.request_bytes(bytes).is_ok()
                && (followed == 0 || allowed.follows(followed - 1))
                && allowed.response_bytes(bytes).is_ok()
        };
        prop_assert!(allows(&wide) || !allows(&narrow));
    }

    #[test]
    fn denying_more_never_allows_more(
        granted in prop::collection::vec(granted(), 1..4),
        denied in prop::collection::vec(granted(), 1..4),
        requested in requested(),
    ) {
        let request = requested.request();
        let pattern = |denied: &Granted| UrlPattern::parse_denied(&denied.pattern()).unwrap();
        let mut grants = HttpGrants::from(granted.iter().map(Granted::grant).collect::<Vec<_>>());
        let before = grants.decide(&request).is_ok();
        grants.deny = Deny::new(denied.iter().map(pattern).collect()).into();
        let after = grants.decide(&request).is_ok();
        prop_assert!(before || !after);
        // Everything that a grant of the pattern would allow, with any method, is denied.
        let every = |denied: &Granted| {
            let methods = Some(METHODS.to_vec());
            model(&Granted { methods, encoded_slash: true, ..denied.clone() }, &requested)
        };
        prop_assert!(!after || !denied.iter().any(every));
    }

    #[test]
    fn formatted_patterns_are_parsed_back(granted in granted()) {
        let pattern: UrlPattern = granted.pattern().parse().unwrap();
        let written = pattern.to_string();
        prop_assert_eq!(&written.parse::<UrlPattern>().unwrap(), &pattern);
        prop_assert_eq!(written.parse::<UrlPattern>().unwrap().to_string(), written);
    }

    #[test]
    fn parsed_patterns_are_formatted_back(text in "https?://[ -~]{0,40}") {
        if let Ok(pattern) = text.parse::<UrlPattern>() {
            prop_assert_eq!(pattern.to_string().parse::<UrlPattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn path_spellings_stay_in_the_granted_path(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "pub", "priv", "x", "..", ".", "/", "/", "/", "//", "%2e", "%2E", "%252e", "%25",
                "2e", "%2f", "%2F", "%252f", "%5c", "%255C", "\\", ";", "%3b", "%3B", "%", "?", "#",
                "%00", "%0a", "\t", " ", "%c0%ae", "\u{ff0e}", "*",
            ]),
            0..12,
        ),
        encoded_slash in any::<bool>(),
    ) {
        let mut grant = HttpGrant::new("https://a.example/pub/**".parse().unwrap());
        grant.encoded_slash = encoded_slash;
        let path = format!("/pub{}", pieces.concat());
        if let Ok(request) = HttpRequest::get(&format!("https://a.example{path}"))
            && is_allowed(&[grant], &request)
        {
            let read = lenient(request.path());
            prop_assert_eq!(read.first().map(String::as_str), Some("pub"), "{}", request.path());
        }
    }

    #[test]
    fn authority_spellings_keep_the_host(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "a.example", "evil.example", "@", ":", "443", "80", ".", "/", "\\", "#", "?", "%40",
                "%2e", "%00", "[", "]", "::1", "\t", "\r\n", " ", "\u{3002}", "\u{ff0f}", "*", "xn--",
                "127.0.0.1", "2130706433", "0x7f",
            ]),
            1..6,
        ),
    ) {
        let grant = HttpGrant::new("https://a.example/**".parse().unwrap());
        let url = format!("https://{}", pieces.concat());
        if let Ok(request) = HttpRequest::get(&url)
            && is_allowed(&[grant], &request)
        {
            let authority = url["https://".len()..].split(['/', '?']).next().unwrap();
            prop_assert!(matches!(authority, "a.example" | "a.example:443"), "{}", url);
        }
    }

    #[test]
    fn the_url_library_agrees_on_accepted_urls(text in "https?://[!-~]{1,60}") {
        if let Ok(request) = HttpRequest::get(&text) {
            let url = url::Url::parse(&text).unwrap();
            prop_assert_eq!(url.host_str().unwrap().trim_matches(['[', ']']).is_empty(), false);
            prop_assert_eq!(url.username(), "");
            prop_assert_eq!(url.port_or_known_default(), Some(request.port()));
            prop_assert_eq!(lenient(url.path()), lenient(request.path()));
        }
    }
}
