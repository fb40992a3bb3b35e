//! The secrets of one call, and what becomes of its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretRelation, VariableName};
use memchr::memmem;

use crate::call_end::CallEnd;
use crate::encodings::{Escapes, decode};
use crate::leaks::{Leak, OnAnswer, OnRequest};
use crate::placeholder::{PREFIX, Placeholder};
use crate::read_error::ReadError;
use crate::redact::Redactor;
use crate::request::{Outgoing, Part, SecretRefusal};
use crate::secrets::Secrets;
use crate::value::SecretValue;

/// What a header `Authorization` starts with where it holds a user and a password.
const BASIC: &[u8] = b"basic ";

/// Headers that ask for a part of a response. Some servers still know the second one, which is
/// older than the first.
const RANGES: [&str; 2] = ["range", "request-range"];

/// Finds placeholders of any call, in every spelling.
static PLACEHOLDERS: LazyLock<Redactor> = LazyLock::new(|| Redactor::of_texts([PREFIX.as_bytes()]));

/// The secrets of one call: their placeholders, and their values once a request goes out.
///
/// A value is read before the first request to the host of one of its places, also by a path
/// where it does not go, and not before: reading may start a program that asks its user. From
/// then on no request of the call may hold it, and it is masked in all that comes back.
///
/// That is enough. A server gets a value from here at one of its places only, so that a response
/// which shows it, because this call or an earlier one sent it there, comes from a host that was
/// asked after it was read. What a guest holds of a value before that it has from somewhere
/// else, such as a file or its arguments, and could pass on by other ways than a request.
pub struct CallSecrets {
    secrets: Vec<Secret>,
    source: Arc<Secrets>,
    /// What masks the values that were read, and how many those are.
    redactor: Mutex<(usize, Arc<Redactor>)>,
    end: CallEnd,
}

struct Secret {
    grant: SecretGrant,
    placeholder: Placeholder,
    value: OnceLock<Result<SecretValue, ReadError>>,
}

/// A request as it is sent, and what was noticed on it.
pub struct Prepared {
    /// The request, with what the host adds.
    pub request: Outgoing,
    /// What looks like a key or a token and is sent all the same, for the log.
    pub warnings: Vec<String>,
    /// The secrets that it holds.
    pub sent: Vec<SecretName>,
}

impl CallSecrets {
    /// The secrets of a call. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// Where the system gives no random bytes.
    pub fn new(
        grants: impl IntoIterator<Item = SecretGrant>,
        source: Arc<Secrets>,
    ) -> Result<Self, getrandom::Error> {
        let secret =
            |grant| Ok(Secret { grant, placeholder: Placeholder::new()?, value: OnceLock::new() });
        let secrets = grants.into_iter().map(secret).collect::<Result<_, _>>()?;
        let (redactor, end) = (Mutex::default(), CallEnd::default());
        Ok(Self { secrets, source, redactor, end })
    }

    /// Ends the call: what reads a value for it is ended, and no value is read any more.
    pub fn end(&self) {
        self.end.end();
    }

    /// The placeholder of a secret, which a guest reads in its place.
    pub fn placeholder(&self, name: &SecretName) -> Option<&Placeholder> {
        let secret = self.secrets.iter().find(|secret| secret.grant.name == *name);
        secret.map(|secret| &secret.placeholder)
    }

    /// What masks the values of this call, as far as they were read.
    pub fn redactor(&self) -> Arc<Redactor> {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        redactor.1.clone()
    }

    /// The variables of a tool that hold a placeholder, each with its text.
    pub fn variables(&self) -> impl Iterator<Item = (&VariableName, &str)> {
        self.secrets.iter().flat_map(|Secret { grant, placeholder, .. }| {
            grant.variables.iter().map(|variable| (variable, placeholder.as_str()))
        })
    }

    /// Masks, in a text that a call gives, the values that it has read and what looks like a
    /// key or a token. Returns a line for the log for each of the latter.
    pub fn mask(&self, text: &mut String) -> Vec<String> {
        self.redactor().redact_text(text);
        let note = |leak: Leak<'_>| {
            let Leak { what, rule, fingerprint, on_answer, .. } = leak;
            let masked = match on_answer {
                OnAnswer::Redact => "masked",
                OnAnswer::Warn => "left as it is",
            };
            format!(
                "the answer holds what looks like {what} (rule `{rule}`, fingerprint \
                 `{fingerprint}`), {masked}"
            )
        };
        self.source.leaks().redact(text).into_iter().map(note).collect()
    }

    /// Masks, in bytes that a call gives, the values that it has read.
    pub fn mask_bytes(&self, bytes: &mut [u8]) {
        self.redactor().redact(bytes);
    }

    /// Looks through a request, replaces its placeholders and adds what the host adds.
    ///
    /// `relation` tells which secrets go to the request's place, and which its server may know.
    ///
    /// # Errors
    ///
    /// [`SecretRefusal`], where it must not be sent.
    pub fn prepare(
        &self,
        mut request: Outgoing,
        relation: impl Fn(&SecretGrant) -> SecretRelation,
    ) -> Result<Prepared, SecretRefusal> {
        let mut bound = Vec::new();
        for secret in &self.secrets {
            let relation = relation(&secret.grant);
            if relation != SecretRelation::Elsewhere {
                // Each response is masked by itself.
                let range = request.headers.iter().find(|(name, _)| RANGES.contains(&&**name));
                if let Some((header, _)) = range {
                    let (part, secret) = (Part::Header(header.clone()), secret.grant.name.clone());
                    return Err(SecretRefusal::Range { part, secret });
                }
                secret.value.get_or_init(|| self.read(&secret.grant));
            }
            if relation == SecretRelation::Bound {
                bound.push(secret);
            }
        }
        let warnings = self.scan(&request, &self.redactor_of_all())?;
        let mut sent = Vec::new();
        let replaced = self.replace(&mut request, &bound, &mut sent)?;
        if let Some(part) = parts(&request).find(|(_, text)| PLACEHOLDERS.finds(text)) {
            return Err(SecretRefusal::Placeholder { part: part.0 });
        }
        self.add(&mut request, &bound, replaced, &mut sent)?;
        Ok(Prepared { request, warnings, sent })
    }

    /// Reads a value that can be added as its grant says.
    fn read(&self, grant: &SecretGrant) -> Result<SecretValue, ReadError> {
        let value = self.source.read(&grant.name, &self.end)?;
        if let Some(placement) = &grant.added {
            value.check_for(placement)?;
        }
        Ok(value)
    }

    /// Refuses a request that holds a value, or what looks like one. Returns what only
    /// looks like one and is sent all the same.
    fn scan(&self, request: &Outgoing, redactor: &Redactor) -> Result<Vec<String>, SecretRefusal> {
        let mut warnings = Vec::new();
        for (part, text) in parts(request) {
            if redactor.finds(text) {
                return Err(SecretRefusal::Value { part });
            }
            let decoded = basic(text);
            for text in std::iter::once(text).chain(decoded.as_deref()) {
                for leak in self.source.leaks().find(text) {
                    let (what, rule) = (leak.what.to_owned(), leak.rule.to_owned());
                    let (part, fingerprint) = (part.clone(), leak.fingerprint);
                    let refusal = SecretRefusal::Leak { part, what, rule, fingerprint };
                    match leak.on_request {
                        OnRequest::Block => return Err(refusal),
                        OnRequest::Warn => warnings.push(refusal.to_string()),
                    }
                }
            }
        }
        Ok(warnings)
    }

    /// Puts values in place of placeholders. Returns which secret stands in which header.
    fn replace(
        &self,
        request: &mut Outgoing,
        bound: &[&Secret],
        sent: &mut Vec<SecretName>,
    ) -> Result<Vec<(usize, SecretName)>, SecretRefusal> {
        let mut replaced = Vec::new();
        let is_json = is_json(&request.headers);
        for secret in bound {
            let placeholder = secret.placeholder.as_str().as_bytes();
            let name = &secret.grant.name;
            let has = |text: &[u8]| memmem::find(text, placeholder).is_some();
            for (index, (_, text)) in request.headers.iter_mut().enumerate() {
                let new = match basic(text) {
                    Some(decoded) if has(&decoded) => {
                        let value = self.value(name)?.reveal().as_bytes();
                        let decoded = swap(&decoded, placeholder, value);
                        [b"Basic ", STANDARD.encode(decoded).as_bytes()].concat()
                    }
                    _ if has(text) => {
                        swap(text, placeholder, self.value(name)?.reveal().as_bytes())
                    }
                    _ => continue,
                };
                *text = new;
                replaced.push((index, name.clone()));
            }
            if let Some(query) = &mut request.query
                && secret.grant.in_query
                && has(query.as_bytes())
            {
                *query = query.replace(secret.placeholder.as_str(), &encoded(self.value(name)?));
                sent.push(name.clone());
            }
            if let Some(body) = &mut request.body
                && secret.grant.in_body
                && has(body)
            {
                let value = self.value(name)?;
                let value = match is_json {
                    Some(true) => json_text(value),
                    Some(false) => encoded(value),
                    None => value.reveal().to_owned(),
                };
                *body = swap(body, placeholder, value.as_bytes());
                sent.push(name.clone());
            }
        }
        sent.extend(replaced.iter().map(|(_, name)| name.clone()));
        Ok(replaced)
    }

    /// Adds what the host adds for this place, and refuses what the guest brings instead.
    fn add(
        &self,
        request: &mut Outgoing,
        bound: &[&Secret],
        replaced: Vec<(usize, SecretName)>,
        sent: &mut Vec<SecretName>,
    ) -> Result<(), SecretRefusal> {
        // The secret of each header, the guest's by their placeholders.
        let mut headers: BTreeMap<String, SecretName> = BTreeMap::new();
        for (index, (name, _)) in request.headers.iter().enumerate() {
            let its = replaced.iter().find(|(at, _)| *at == index).map(|(_, secret)| secret);
            let owner = bound.iter().find(|secret| match &secret.grant.added {
                Some(Placement::Header { name: own, .. }) => own == name || name == "authorization",
                _ => name == "authorization",
            });
            match (its, owner) {
                (Some(its), _) => {
                    headers.insert(name.clone(), its.clone());
                }
                (None, Some(owner)) => {
                    let (part, secret) = (Part::Header(name.clone()), owner.grant.name.clone());
                    return Err(SecretRefusal::OwnCredentials { part, secret });
                }
                (None, None) => {}
            }
        }
        let mut parameters: BTreeMap<&str, &SecretName> = BTreeMap::new();
        for secret in bound {
            let name = &secret.grant.name;
            let Some(placement) = &secret.grant.added else { continue };
            let (header, prefix) = match placement {
                Placement::Bearer => ("authorization", "Bearer "),
                Placement::Basic { .. } => ("authorization", "Basic "),
                Placement::Header { name, prefix } => (&**name, &**prefix),
                Placement::Query { name: parameter } => {
                    let two = |other: &SecretName| SecretRefusal::Two {
                        part: Part::Query,
                        one: other.clone(),
                        other: name.clone(),
                    };
                    if let Some(other) = parameters.insert(parameter, name) {
                        return Err(two(other));
                    }
                    let value = encoded(self.value(name)?);
                    match has_parameter(request.query.as_deref(), parameter, &value) {
                        Parameter::Same => continue,
                        Parameter::Other => {
                            let (part, secret) = (Part::Query, name.clone());
                            return Err(SecretRefusal::OwnCredentials { part, secret });
                        }
                        Parameter::Absent => {}
                    }
                    let query = request.query.take().filter(|query| !query.is_empty());
                    let before = query.map(|query| query + "&").unwrap_or_default();
                    request.query = Some(format!("{before}{parameter}={value}"));
                    sent.push(name.clone());
                    continue;
                }
                Placement::Path { text } => {
                    if request.path.contains(text.as_str()) {
                        request.path = request.path.replace(text, &encoded(self.value(name)?));
                        sent.push(name.clone());
                    }
                    continue;
                }
            };
            match headers.insert(header.to_owned(), name.clone()) {
                // Where the guest put the placeholder the value stands already.
                Some(own) if own == *name => continue,
                Some(one) => {
                    let (part, other) = (Part::Header(header.to_owned()), name.clone());
                    return Err(SecretRefusal::Two { part, one, other });
                }
                None => {}
            }
            let value = self.value(name)?.reveal();
            let value = match placement {
                Placement::Basic { user: Some(user) } => STANDARD.encode(format!("{user}:{value}")),
                Placement::Basic { user: None } => STANDARD.encode(value),
                _ => value.to_owned(),
            };
            request.headers.push((header.to_owned(), format!("{prefix}{value}").into_bytes()));
            sent.push(name.clone());
        }
        sent.sort();
        sent.dedup();
        Ok(())
    }

    /// The value of a secret of this call.
    fn value(&self, name: &SecretName) -> Result<&SecretValue, SecretRefusal> {
        let unreadable = |error| SecretRefusal::Unreadable { secret: name.clone(), error };
        let secret = self.secrets.iter().find(|secret| secret.grant.name == *name);
        match secret.and_then(|secret| secret.value.get()) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(unreadable(error.clone())),
            None => Err(unreadable(ReadError::Missing)),
        }
    }

    /// The redactor, which is made anew where a value was read since.
    fn redactor_of_all(&self) -> Arc<Redactor> {
        let mut redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let is_read = |secret: &&Secret| matches!(secret.value.get(), Some(Ok(_)));
        let count = self.secrets.iter().filter(is_read).count();
        if redactor.0 != count {
            let texts = self.secrets.iter().flat_map(|secret| {
                let value = secret.value.get().and_then(|value| value.as_ref().ok());
                // Of a user and a password the password is one by itself.
                let is_pair = secret.grant.added == Some(Placement::Basic { user: None });
                let password = value.filter(|_| is_pair).and_then(SecretValue::password);
                let texts = [value.map(SecretValue::reveal), password];
                texts.into_iter().flatten().map(str::as_bytes)
            });
            *redactor = (count, Redactor::of_texts(texts).into());
        }
        redactor.1.clone()
    }
}

/// The parts of a request that hold what a guest chose.
fn parts(request: &Outgoing) -> impl Iterator<Item = (Part, &[u8])> {
    let texts = [
        (Part::Host, Some(request.authority.as_bytes())),
        (Part::Path, Some(request.path.as_bytes())),
        (Part::Query, request.query.as_deref().map(str::as_bytes)),
        (Part::Body, request.body.as_deref()),
    ];
    let texts = texts.into_iter().filter_map(|(part, text)| Some((part, text?)));
    let headers = request.headers.iter().flat_map(|(name, text)| {
        [name.as_bytes(), text].map(|text| (Part::Header(name.clone()), text))
    });
    headers.chain(texts)
}

/// User and password of a header `Authorization: Basic`.
fn basic(header: &[u8]) -> Option<Vec<u8>> {
    let (start, text) = header.split_at_checked(BASIC.len())?;
    let text = start.eq_ignore_ascii_case(BASIC).then(|| text.trim_ascii())?;
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    STANDARD_NO_PAD.decode(&text[..text.len() - padding]).ok()
}

/// Whether the body is JSON, or a form. `None`: neither.
fn is_json(headers: &[(String, Vec<u8>)]) -> Option<bool> {
    let (_, kind) = headers.iter().find(|(name, _)| name == "content-type")?;
    let essence = kind.split(|byte| *byte == b';').next()?.trim_ascii().to_ascii_lowercase();
    match &*essence {
        b"application/json" => Some(true),
        b"application/x-www-form-urlencoded" => Some(false),
        kind => kind.ends_with(b"+json").then_some(true),
    }
}

/// How a parameter of a query stands.
enum Parameter {
    Absent,
    /// It has this very value.
    Same,
    Other,
}

fn has_parameter(query: Option<&str>, name: &str, value: &str) -> Parameter {
    let mut found = Parameter::Absent;
    // Some servers take `;` for `&`.
    for pair in query.unwrap_or_default().split(['&', ';']) {
        let (own, its) = pair.split_once('=').unwrap_or((pair, ""));
        let own = decode(own.as_bytes(), Escapes::Both).map_or(own.into(), |own| own.bytes);
        if own == name.as_bytes() {
            match found {
                Parameter::Absent if its == value => found = Parameter::Same,
                _ => return Parameter::Other,
            }
        }
    }
    found
}

/// Some bytes with one text in place of another.
fn swap(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// A value as a part of a URL or a form: only what no syntax has a use for stays as it is.
fn encoded(value: &SecretValue) -> String {
    let mut text = String::new();
    for byte in value.reveal().bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => text.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => text.push(byte.into()),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// A value as a part of a text in JSON.
fn json_text(value: &SecretValue) -> String {
    let quoted = serde_json::Value::from(value.reveal()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
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
                _ => return Err(ReadError::Missing),
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

    fn request() -> Outgoing {
        Outgoing {
            authority: "api.example.com".into(),
            path: "/repos".into(),
            query: None,
            headers: vec![("accept".into(), b"text/plain".to_vec())],
            body: None,
        }
    }

    fn with(header: &str, text: impl AsRef<[u8]>) -> Outgoing {
        let mut request = request();
        request.headers.push((header.into(), text.as_ref().to_vec()));
        request
    }

    /// The request as it is sent, in lines.
    fn sent(call: &CallSecrets, request: Outgoing, is_bound: bool) -> String {
        let relation = match is_bound {
            true => SecretRelation::Bound,
            false => SecretRelation::Elsewhere,
        };
        match call.prepare(request, |_| relation) {
            Err(error) => error.to_string(),
            Ok(Prepared { request, .. }) => {
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
    fn the_host_adds_a_secret_for_its_places_only() {
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
    fn a_placeholder_is_replaced_where_the_grant_says_so() {
        let call = call(vec![grant("github", None), grant("quoted", None)]);
        let own = call.placeholder(&name("github")).unwrap().as_str();
        let quoted = call.placeholder(&name("quoted")).unwrap().as_str();
        assert_ne!(own, quoted);
        assert!(call.placeholder(&name("mail")).is_none());
        let check = |request: Outgoing, expected: &str| {
            assert_eq!(sent(&call, request.clone(), true), expected);
            let elsewhere = sent(&call, request, false);
            assert!(elsewhere.ends_with("the placeholder of a secret that does not go there"));
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
    fn a_placeholder_stands_in_headers_alone_unless_the_grant_says_more() {
        let narrow = SecretGrant { in_query: false, in_body: false, ..grant("github", None) };
        let call = call(vec![narrow]);
        let own = call.placeholder(&name("github")).unwrap().as_str();
        let refused =
            |part: &str| format!("{part} holds the placeholder of a secret that does not go there");
        let check = |change: &dyn Fn(&mut Outgoing), expected: &str| {
            let mut request = request();
            change(&mut request);
            assert_eq!(sent(&call, request, true), expected);
        };
        check(&|request| request.query = Some(format!("a={own}")), &refused("the query"));
        check(&|request| request.body = Some(own.into()), &refused("the body"));
        check(&|request| request.path = format!("/{own}"), &refused("the path"));
        check(&|request| request.authority = format!("{own}.example.com"), &refused("the host"));
        let header = |request: &mut Outgoing| request.headers.push((own.into(), b"x".to_vec()));
        check(&header, &refused(&format!("the header `{own}`")));
        // Encoded it is known, too, and not replaced.
        let hidden = STANDARD.encode(format!("xx{own}"));
        check(&|request| request.body = Some(hidden.clone().into()), &refused("the body"));
        let hidden: String = own.bytes().map(|byte| format!("%{byte:02x}")).collect();
        check(&|request| request.query = Some(hidden.clone()), &refused("the query"));
        // That of another call, or a forged one.
        let other = format!("{PREFIX}{}", "0".repeat(32));
        let header = |request: &mut Outgoing| {
            request.headers.push(("authorization".into(), other.clone().into()));
        };
        check(&header, &refused("the header `authorization`"));
    }

    #[test]
    fn credentials_of_the_guest_are_refused_where_a_secret_is_bound() {
        let bearer = call(vec![grant("github", Some(Placement::Bearer))]);
        let own = with("authorization", "Bearer something-else");
        let refused = "the header `authorization` is set by the host here, to the secret \
                       `github`; leave it out, or use the secret's placeholder";
        assert_eq!(sent(&bearer, own.clone(), true), refused);
        assert_eq!(sent(&call(vec![grant("github", None)]), own.clone(), true), refused);
        let elsewhere = "/repos\nauthorization: Bearer something-else";
        assert_eq!(sent(&bearer, own, false), elsewhere);

        let key = call(vec![grant("github", Placement::header("x-key", "").ok())]);
        for header in ["x-key", "authorization"] {
            let request = with(header, "something-else");
            assert!(sent(&key, request, true).contains("is set by the host here"), "{header}");
        }
        let query = call(vec![grant("github", Placement::query("key").ok())]);
        for text in ["key=x", "a=b&key=x", "%6bey=x", "key", "a;key=x"] {
            let mut request = request();
            request.query = Some(text.into());
            assert!(sent(&query, request, true).contains("is set by the host here"), "{text}");
        }
    }

    #[test]
    fn a_placeholder_stands_for_what_the_host_would_add() {
        let check = |placement: Placement, request: &dyn Fn(&str) -> Outgoing, expected: &str| {
            let call = call(vec![grant("github", Some(placement))]);
            let own = call.placeholder(&name("github")).unwrap().as_str();
            assert_eq!(sent(&call, request(own), true), expected);
        };
        let bearer = "/repos\nauthorization: Bearer T0ken/of+ada==";
        let header = |own: &str| with("authorization", format!("Bearer {own}"));
        check(Placement::Bearer, &header, bearer);
        let query = |own: &str| Outgoing { query: Some(format!("key={own}")), ..request() };
        let expected = "/repos?key=T0ken%2Fof%2Bada%3D%3D";
        check(Placement::query("key").unwrap(), &query, expected);
    }

    #[test]
    fn no_part_of_a_response_is_asked_for_where_a_secret_is_known() {
        let call = call(vec![grant("github", Some(Placement::Bearer))]);
        let range = || with("range", "bytes=0-6");
        let expected = "the header `range` asks for a part of a response, of which two could show \
                        the secret `github` half each; leave it out";
        assert_eq!(sent(&call, range(), true), expected);
        let error = call.prepare(range(), |_| SecretRelation::SameHost).err().unwrap();
        assert_eq!(error.to_string(), expected);
        assert_eq!(sent(&call, range(), false), "/repos\nrange: bytes=0-6");
        assert!(sent(&call, with("request-range", "bytes=0-6"), true).contains("leave it out"));
    }

    #[test]
    fn the_password_of_a_pair_is_a_secret_by_itself() {
        let call = call(vec![grant("mail", Placement::basic(None).ok())]);
        assert!(sent(&call, request(), true).contains("authorization: Basic "));
        let mut text = "password=of-the-mail".to_owned();
        call.mask(&mut text);
        assert_eq!(text, "password=***********");
        let own = with("x-key", "of-the-mail");
        assert_eq!(sent(&call, own, true), "the header `x-key` holds the value of a secret");
    }

    #[test]
    fn a_pair_whose_password_cannot_be_found_by_itself_is_not_sent() {
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
        let expected = "the header `authorization` would hold two secrets, `github` and `mail`";
        assert_eq!(sent(&two, request(), true), expected);
        let two = call(vec![grant("github", None), bearer("mail")]);
        let own = two.placeholder(&name("github")).unwrap().as_str();
        assert_eq!(sent(&two, with("authorization", own), true), expected);
    }

    #[test]
    fn what_a_guest_should_not_have_does_not_leave() {
        let call = call(vec![grant("github", Some(Placement::Bearer))]);
        for text in [TOKEN.to_owned(), STANDARD.encode(TOKEN), "T0ken%2Fof%2Bada%3D%3D".into()] {
            for is_bound in [true, false] {
                let request = Outgoing { body: Some(text.clone().into()), ..request() };
                let expected = "the body holds the value of a secret";
                assert_eq!(sent(&call, request, is_bound), expected);
            }
        }
        let key = format!("glpat-{}", "notARealKey1234567890");
        let fingerprint = call.source.leaks().find(key.as_bytes()).next().unwrap().fingerprint;
        let expected = |part: &str| {
            format!(
                "{part} holds what looks like a token of GitLab (rule `gitlab-token`, fingerprint \
                 `{fingerprint}`); a request gets its credentials from the host"
            )
        };
        let refused = sent(&call, with("private-token", &key), false);
        assert_eq!(refused, expected("the header `private-token`"));
        let basic = format!("Basic {}", STANDARD.encode(format!("ada:{key}")));
        let refused = sent(&call, with("authorization", basic), false);
        assert_eq!(refused, expected("the header `authorization`"));
        let query = Outgoing { query: Some(format!("k={key}")), ..request() };
        assert_eq!(sent(&call, query, true), expected("the query"));
    }

    #[test]
    fn a_secret_that_cannot_be_read_refuses_only_what_needs_it() {
        let call = call(vec![grant("gone", Some(Placement::Bearer)), grant("github", None)]);
        assert_eq!(sent(&call, request(), true), "the secret `gone` cannot be read");
        assert_eq!(sent(&call, request(), false), "/repos");
        // The others are masked from the first request on.
        let mut text = format!("it says {TOKEN}");
        assert!(call.redactor().redact_text(&mut text));
        assert_eq!(text, "it says **************");
    }

    /// Reads, and remembers what.
    #[derive(Default)]
    struct Noting(Mutex<Vec<String>>);

    impl ReadSecret for Arc<Noting> {
        fn read(&self, name: &SecretName, end: &CallEnd) -> Result<SecretValue, ReadError> {
            self.0.lock().unwrap().push(name.to_string());
            Values.read(name, end)
        }
    }

    #[test]
    fn a_secret_is_read_once_and_only_for_the_hosts_of_its_places() {
        let noting = Arc::new(Noting::default());
        let grants = [grant("github", Some(Placement::Bearer)), grant("mail", None)];
        let source = Secrets::new(Arc::clone(&noting), Vec::new());
        let call = CallSecrets::new(grants, Arc::new(source)).unwrap();
        let prepare = |request: Outgoing, github: SecretRelation| {
            let relation = |grant: &SecretGrant| match grant.name.as_str() {
                "github" => github,
                _ => SecretRelation::Elsewhere,
            };
            call.prepare(request, relation).map(|prepared| prepared.sent)
        };
        let read = || noting.0.lock().unwrap().clone();
        let with_value = || with("x-key", TOKEN);
        let shown = || call.redactor().finds(TOKEN.as_bytes());
        // What a guest has from somewhere else is not known yet.
        assert!(prepare(with_value(), SecretRelation::Elsewhere).unwrap().is_empty());
        assert!(read().is_empty() && !shown());
        // The server may know it, though this request does not bring it.
        assert!(prepare(request(), SecretRelation::SameHost).unwrap().is_empty());
        assert!(read() == ["github"] && shown());
        assert_eq!(prepare(request(), SecretRelation::Bound).unwrap(), [name("github")]);
        for relation in [SecretRelation::Elsewhere, SecretRelation::SameHost] {
            let refused = prepare(with_value(), relation).unwrap_err();
            assert!(matches!(refused, SecretRefusal::Value { .. }));
        }
        assert_eq!(read(), ["github"]);
    }
}
