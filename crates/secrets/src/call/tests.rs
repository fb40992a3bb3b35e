use super::*;
use crate::source::ReadSecret;

const TOKEN: &str = "T0ken/of+ada==";

struct Values;

impl ReadSecret for Values {
    fn read(&self, name: &SecretName, _: &CallEnd) -> Result<SecretValue, ReadError> {
        let text = match name.as_str() {
            "github" => TOKEN,
            "mail" => "ada:of-the-mail",
            "short" => "ada.lovelace:1234567",
            "quoted" => "with \"quotes\" & more",
            _ => return Err(ReadError::missing(name)),
        };
        Ok(SecretValue::new(text.into())?)
    }
}

fn name(text: &str) -> SecretName {
    SecretName::new(text).unwrap()
}

fn grant(secret: &str, added: Option<Placement>) -> SecretGrant {
    SecretGrant {
        name: name(secret),
        to: Vec::new(),
        within: None,
        added,
        variables: Vec::new(),
        in_query: true,
        in_body: true,
    }
}

fn call(grants: Vec<SecretGrant>) -> CallSecrets {
    CallSecrets::new(grants, Arc::new(Secrets::new(Values, Vec::new()))).unwrap()
}

fn request() -> PlainRequest {
    PlainRequest {
        authority: "api.example.com".into(),
        path: "/repos".into(),
        query: None,
        headers: vec![("accept".into(), b"text/plain".to_vec())],
        body: None,
    }
}

fn with(header: &str, text: impl AsRef<[u8]>) -> PlainRequest {
    let mut request = request();
    request.headers.push((header.into(), text.as_ref().to_vec()));
    request
}

/// Formats the sent request in lines.
fn sent(call: &CallSecrets, request: PlainRequest, is_bound: bool) -> String {
    let relation = match is_bound {
        true => SecretRelation::Bound,
        false => SecretRelation::Elsewhere,
    };
    match call.prepare(request, |_| relation) {
        Err(error) => error.to_string(),
        Ok(PreparedRequest { request, .. }) => {
            let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
            let headers = request
                .headers
                .iter()
                .skip(1)
                .map(|(name, text)| format!("\n{name}: {}", String::from_utf8_lossy(text)));
            let headers: String = headers.collect();
            let body = request.body.map(|body| String::from_utf8(body).unwrap());
            let body = body.map(|body| format!("\n\n{body}")).unwrap_or_default();
            format!("{}{query}{headers}{body}", request.path)
        }
    }
}

#[test]
fn secrets_are_added_only_for_their_destinations() {
    let check = |secret: &str, placement: Result<Placement, _>, query: &str, expected: &str| {
        let placement: Result<_, kitbag_policy::PlacementError> = placement;
        let call = call(vec![grant(secret, Some(placement.unwrap()))]);
        let mut request = request();
        request.path = "/botTOKEN/repos".into();
        request.query = (!query.is_empty()).then(|| query.to_owned());
        assert_eq!(sent(&call, request.clone(), true), expected);
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        assert_eq!(sent(&call, request, false), format!("/botTOKEN/repos{query}"));
    };
    let bearer = "/botTOKEN/repos\nauthorization: Bearer T0ken/of+ada==";
    check("github", Ok(Placement::Bearer), "", bearer);
    let basic = "/botTOKEN/repos\nauthorization: Basic YWRhOm9mLXRoZS1tYWls";
    check("mail", Placement::basic(None), "", basic);
    let basic = "/botTOKEN/repos\nauthorization: Basic YWRhOlQwa2VuL29mK2FkYT09";
    check("github", Placement::basic(Some("ada".into())), "", basic);
    let header = "/botTOKEN/repos?a=b\nauthorization: Bot T0ken/of+ada==";
    check("github", Placement::header("Authorization", "Bot "), "a=b", header);
    let query = "/botTOKEN/repos?key=T0ken%2Fof%2Bada%3D%3D";
    check("github", Placement::query("key"), "", query);
    let query = "/botTOKEN/repos?a=b&key=T0ken%2Fof%2Bada%3D%3D";
    check("github", Placement::query("key"), "a=b", query);
    let path = "/botT0ken%2Fof%2Bada%3D%3D/repos";
    check("github", Placement::path("TOKEN"), "", path);
}

#[test]
fn placeholders_are_replaced_as_granted() {
    let call = call(vec![grant("github", None), grant("quoted", None)]);
    let own = call.placeholder(&name("github")).unwrap().as_str();
    let quoted = call.placeholder(&name("quoted")).unwrap().as_str();
    assert_ne!(own, quoted);
    assert!(call.placeholder(&name("mail")).is_none());
    let check = |request: PlainRequest, expected: &str| {
        assert_eq!(sent(&call, request.clone(), true), expected);
        let elsewhere = sent(&call, request, false);
        assert!(elsewhere.ends_with("the placeholder of a secret that may not be sent there"));
        assert!(!elsewhere.contains(TOKEN));
    };
    let token = format!("token {own}");
    check(with("authorization", token), "/repos\nauthorization: token T0ken/of+ada==");
    let basic = |text: String| format!("bAsIc {}", STANDARD.encode(text));
    let expected = "/repos\nauthorization: Basic YWRhOlQwa2VuL29mK2FkYT09";
    check(with("authorization", basic(format!("ada:{own}"))), expected);
    let expected = "/repos\nauthorization: Basic VDBrZW4vb2YrYWRhPT06eA==";
    check(with("authorization", basic(format!("{own}:x"))), expected);
    let mut query = request();
    query.query = Some(format!("a={own}&b={own}"));
    let expected = "/repos?a=T0ken%2Fof%2Bada%3D%3D&b=T0ken%2Fof%2Bada%3D%3D";
    check(query, expected);
    for (kind, value) in [
        ("application/vnd.api+json; charset=utf-8", r#"with \"quotes\" & more"#),
        ("application/x-www-form-urlencoded", "with%20%22quotes%22%20%26%20more"),
        ("text/plain", "with \"quotes\" & more"),
    ] {
        let mut body = with("content-type", kind);
        body.body = Some(format!("<{quoted}>").into_bytes());
        check(body, &format!("/repos\ncontent-type: {kind}\n\n<{value}>"));
    }
}

#[test]
fn placeholders_are_limited_to_headers_by_default() {
    let narrow = SecretGrant { in_query: false, in_body: false, ..grant("github", None) };
    let call = call(vec![narrow]);
    let own = call.placeholder(&name("github")).unwrap().as_str();
    let refused = |part: &str| {
        format!("{part} contains the placeholder of a secret that may not be sent there")
    };
    let check = |change: &dyn Fn(&mut PlainRequest), expected: &str| {
        let mut request = request();
        change(&mut request);
        assert_eq!(sent(&call, request, true), expected);
    };
    check(&|request| request.query = Some(format!("a={own}")), &refused("the query"));
    check(&|request| request.body = Some(own.into()), &refused("the body"));
    check(&|request| request.path = format!("/{own}"), &refused("the path"));
    check(&|request| request.authority = format!("{own}.example.com"), &refused("the host"));
    let header = |request: &mut PlainRequest| request.headers.push((own.into(), b"x".to_vec()));
    check(&header, &refused(&format!("the header `{own}`")));
    // An encoded placeholder is recognized but not replaced.
    let hidden = STANDARD.encode(format!("xx{own}"));
    check(&|request| request.body = Some(hidden.clone().into()), &refused("the body"));
    let hidden: String = own.bytes().map(|byte| format!("%{byte:02x}")).collect();
    check(&|request| request.query = Some(hidden.clone()), &refused("the query"));
    // The placeholder of another call, or a forged one.
    let other = format!("{PREFIX}{}", "0".repeat(32));
    let header = |request: &mut PlainRequest| {
        request.headers.push(("authorization".into(), other.clone().into()));
    };
    check(&header, &refused("the header `authorization`"));
}

#[test]
fn guest_credentials_are_refused_at_bound_destinations() {
    let bearer = call(vec![grant("github", Some(Placement::Bearer))]);
    let own = with("authorization", "Bearer something-else");
    let refused = "the header `authorization` is set by the host to the secret \
                   `github`; remove it, or use the secret's placeholder";
    assert_eq!(sent(&bearer, own.clone(), true), refused);
    assert_eq!(sent(&call(vec![grant("github", None)]), own.clone(), true), refused);
    let elsewhere = "/repos\nauthorization: Bearer something-else";
    assert_eq!(sent(&bearer, own, false), elsewhere);

    let key = call(vec![grant("github", Placement::header("x-key", "").ok())]);
    for header in ["x-key", "authorization"] {
        let request = with(header, "something-else");
        assert!(sent(&key, request, true).contains("is set by the host"), "{header}");
    }
    let query = call(vec![grant("github", Placement::query("key").ok())]);
    for text in ["key=x", "a=b&key=x", "%6bey=x", "key", "a;key=x"] {
        let mut request = request();
        request.query = Some(text.into());
        assert!(sent(&query, request, true).contains("is set by the host"), "{text}");
    }
}

#[test]
fn placeholders_may_replace_the_added_secret() {
    let check = |placement: Placement, request: &dyn Fn(&str) -> PlainRequest, expected: &str| {
        let call = call(vec![grant("github", Some(placement))]);
        let own = call.placeholder(&name("github")).unwrap().as_str();
        assert_eq!(sent(&call, request(own), true), expected);
    };
    let bearer = "/repos\nauthorization: Bearer T0ken/of+ada==";
    let header = |own: &str| with("authorization", format!("Bearer {own}"));
    check(Placement::Bearer, &header, bearer);
    let query = |own: &str| PlainRequest { query: Some(format!("key={own}")), ..request() };
    let expected = "/repos?key=T0ken%2Fof%2Bada%3D%3D";
    check(Placement::query("key").unwrap(), &query, expected);
}

#[test]
fn range_requests_are_refused_if_a_secret_is_known() {
    let call = call(vec![grant("github", Some(Placement::Bearer))]);
    let range = || with("range", "bytes=0-6");
    let expected = "the header `range` requests a part of a response, and two parts could each \
                    contain half of the secret `github`; remove the header";
    assert_eq!(sent(&call, range(), true), expected);
    let error = call.prepare(range(), |_| SecretRelation::SameHost).err().unwrap();
    assert_eq!(error.to_string(), expected);
    assert_eq!(sent(&call, range(), false), "/repos\nrange: bytes=0-6");
    assert!(sent(&call, with("request-range", "bytes=0-6"), true).contains("remove the header"));
}

#[test]
fn passwords_of_pairs_are_secrets() {
    let call = call(vec![grant("mail", Placement::basic(None).ok())]);
    assert!(sent(&call, request(), true).contains("authorization: Basic "));
    let mut text = "password=of-the-mail".to_owned();
    call.mask(&mut text);
    assert_eq!(text, "password=***********");
    let own = with("x-key", "of-the-mail");
    assert_eq!(sent(&call, own, true), "the header `x-key` contains the value of a secret");
}

#[test]
fn pairs_with_short_passwords_are_not_sent() {
    for secret in ["short", "github"] {
        let call = call(vec![grant(secret, Placement::basic(None).ok())]);
        let expected = format!("the secret `{secret}` cannot be read");
        assert_eq!(sent(&call, request(), true), expected);
    }
}

#[test]
fn two_secrets_do_not_share_a_header() {
    let bearer = |secret: &str| grant(secret, Some(Placement::Bearer));
    let two = call(vec![bearer("github"), bearer("mail")]);
    let expected = "the header `authorization` would contain two secrets, `github` and `mail`";
    assert_eq!(sent(&two, request(), true), expected);
    let two = call(vec![grant("github", None), bearer("mail")]);
    let own = two.placeholder(&name("github")).unwrap().as_str();
    assert_eq!(sent(&two, with("authorization", own), true), expected);
}

#[test]
fn leaked_values_and_tokens_are_not_sent() {
    let call = call(vec![grant("github", Some(Placement::Bearer))]);
    for text in [TOKEN.to_owned(), STANDARD.encode(TOKEN), "T0ken%2Fof%2Bada%3D%3D".into()] {
        for is_bound in [true, false] {
            let request = PlainRequest { body: Some(text.clone().into()), ..request() };
            let expected = "the body contains the value of a secret";
            assert_eq!(sent(&call, request, is_bound), expected);
        }
    }
    let key = format!("glpat-{}", "notARealKey1234567890");
    let fingerprint = call.source.leaks().find(key.as_bytes()).next().unwrap().fingerprint;
    let expected = |part: &str| {
        format!(
            "{part} contains what looks like a token of GitLab (rule `gitlab-token`, fingerprint \
             `{fingerprint}`); the host adds the credentials of a request"
        )
    };
    let refused = sent(&call, with("private-token", &key), false);
    assert_eq!(refused, expected("the header `private-token`"));
    let basic = format!("Basic {}", STANDARD.encode(format!("ada:{key}")));
    let refused = sent(&call, with("authorization", basic), false);
    assert_eq!(refused, expected("the header `authorization`"));
    let query = PlainRequest { query: Some(format!("k={key}")), ..request() };
    assert_eq!(sent(&call, query, true), expected("the query"));
}

#[test]
fn unreadable_secrets_refuse_only_dependent_requests() {
    let call = call(vec![grant("gone", Some(Placement::Bearer)), grant("github", None)]);
    assert_eq!(sent(&call, request(), true), "the secret `gone` cannot be read");
    assert_eq!(sent(&call, request(), false), "/repos");
    // The other values are masked from the first request on.
    let mut text = format!("it says {TOKEN}");
    assert!(call.redactor().redact_text(&mut text));
    assert_eq!(text, "it says **************");
}

/// Records the names of the values that are read.
#[derive(Default)]
struct Noting(Mutex<Vec<String>>);

impl ReadSecret for Arc<Noting> {
    fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
        self.0.lock().unwrap().push(name.to_string());
        Values.read(name, end)
    }
}

#[test]
fn secrets_are_read_once_and_only_for_their_hosts() {
    let noting = Arc::new(Noting::default());
    let grants = [grant("github", Some(Placement::Bearer)), grant("mail", None)];
    let source = Secrets::new(Arc::clone(&noting), Vec::new());
    let call = CallSecrets::new(grants, Arc::new(source)).unwrap();
    let prepare = |request: PlainRequest, github: SecretRelation| {
        let relation = |grant: &SecretGrant| match grant.name.as_str() {
            "github" => github,
            _ => SecretRelation::Elsewhere,
        };
        call.prepare(request, relation).map(|prepared| prepared.sent)
    };
    let read = || noting.0.lock().unwrap().clone();
    let with_value = || with("x-key", TOKEN);
    let shown = || call.redactor().finds(TOKEN.as_bytes());
    // A value that a guest has from elsewhere is not known yet.
    assert!(prepare(with_value(), SecretRelation::Elsewhere).unwrap().is_empty());
    assert!(read().is_empty() && !shown());
    // The server may know the value even if this request does not contain it.
    assert!(prepare(request(), SecretRelation::SameHost).unwrap().is_empty());
    assert!(read() == ["github"] && shown());
    assert_eq!(prepare(request(), SecretRelation::Bound).unwrap(), [name("github")]);
    for relation in [SecretRelation::Elsewhere, SecretRelation::SameHost] {
        let refused = prepare(with_value(), relation).unwrap_err();
        assert!(matches!(refused, SecretRefusal::Value { .. }));
    }
    assert_eq!(read(), ["github"]);
}

#[test]
fn calls_without_secrets_are_still_checked() {
    let call = CallSecrets::default();
    let form = |body: &str| {
        let mut request = with("content-type", "application/x-www-form-urlencoded");
        request.body = Some(body.into());
        request
    };
    let query = |text: &str| PlainRequest { query: Some(text.into()), ..request() };
    let refused = |request: PlainRequest| sent(&call, request, false);
    let data = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let key = format!("k=-----BEGIN+PRIVATE+KEY-----%0A{data}%0A-----END+PRIVATE+KEY-----&a=b");
    let url = "u=postgres%3A%2F%2Fapp%3AS3cretHorse9%40db.internal%2Fapp";
    let secret = "s=aws_secret_access_key%3Dwj%2FlrXUtnFEMI%2FK7MDENGbPxRfiCYNOTARE4L12a";
    for (text, what) in [
        (&*key, "a private key"),
        (url, "a URL with a password"),
        (secret, "a secret access key of AWS"),
        ("user=ada&password=h0rse%21b4ttery", "a password"),
    ] {
        for request in [form(text), query(text)] {
            let refusal = refused(request);
            assert!(
                refusal.contains(&format!("contains what looks like {what} (rule")),
                "{refusal}"
            );
        }
    }
    let bearer = with("authorization", "Bearer 0123456789abcdef0123456789abcdef");
    assert!(refused(bearer).contains("the value of a bearer token"));
    let basic = with("authorization", format!("Basic {}", STANDARD.encode("ada:hunter2hunter2")));
    assert!(refused(basic).contains("a user and a password for HTTP"));
    for text in ["password=changeme&token=%24%7BTOKEN%7D", "page_token=CAUQAAoNtheNextPage12345"] {
        assert!(!refused(form(text)).contains("looks like"), "{text}");
    }
}
