//! The secrets of one call and their use in its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kitbag_policy::{Placement, SecretGrant, SecretName, SecretRelation, VariableName};
use memchr::memmem;

use crate::call_end::CallEnd;
use crate::leak_forms::form_decoded;
use crate::leak_rules::OnRequest;
use crate::parts::{Parameter, basic, encoded, has_parameter, is_json, json_text, parts, swap};
use crate::placeholder::{PREFIX, Placeholder};
use crate::read_error::ReadError;
use crate::redact::Redactor;
use crate::request::{PlainRequest, RequestPart, SecretRefusal};
use crate::secrets::Secrets;
use crate::value::SecretValue;

/// Headers that request a part of a response. Some servers still support the second, which is
/// older.
const RANGES: [&str; 2] = ["range", "request-range"];

/// Finds the placeholders of any call, in every spelling.
static PLACEHOLDERS: LazyLock<Redactor> = LazyLock::new(|| Redactor::of_texts([PREFIX.as_bytes()]));

/// The secrets of one call: their placeholders, and their values once they are needed.
///
/// A value is read before the first request to the host of one of its destinations, even if the
/// path is not a destination, and not earlier, since reading may start a program that asks the
/// user. From then on, no request of the call may contain the value, and it is masked in everything
/// that the call receives.
///
/// This is sufficient. A server receives a value from kitbag only at one of its destinations. So a
/// response that contains the value, because this or an earlier call sent it, comes from a host
/// that was contacted after the value was read. If a guest has the value earlier, it has it from
/// elsewhere, such as a file or its arguments, and could also pass it on without a request.
pub struct CallSecrets {
    secrets: Vec<Secret>,
    source: Arc<Secrets>,
    /// The redactor of the values that were read, and their number.
    redactor: Mutex<(usize, Arc<Redactor>)>,
    end: CallEnd,
}

struct Secret {
    grant: SecretGrant,
    placeholder: Placeholder,
    value: OnceLock<Result<SecretValue, ReadError>>,
}

/// A request to send and the findings in it.
pub struct PreparedRequest {
    /// The request, including the parts that the host adds.
    pub request: PlainRequest,
    /// Findings that look like keys or tokens but do not block the request. They are logged.
    pub warnings: Vec<String>,
    /// The secrets in the request.
    pub sent: Vec<SecretName>,
}

impl CallSecrets {
    /// Creates the secrets of a call. No value is read yet.
    ///
    /// # Errors
    ///
    /// If the system provides no random bytes.
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

    /// Ends the call: stops programs that read a value, and reads no further values.
    pub fn end(&self) {
        self.end.end();
    }

    /// Returns the placeholder of a secret, which the guest receives instead of the value.
    pub fn placeholder(&self, name: &SecretName) -> Option<&Placeholder> {
        let secret = self.secrets.iter().find(|secret| secret.grant.name == *name);
        secret.map(|secret| &secret.placeholder)
    }

    /// Returns the redactor of the values that were read.
    pub fn redactor(&self) -> Arc<Redactor> {
        let redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        redactor.1.clone()
    }

    /// Iterates over the tool's variables that contain a placeholder, and the placeholders.
    pub fn variables(&self) -> impl Iterator<Item = (&VariableName, &str)> {
        self.secrets.iter().flat_map(|Secret { grant, placeholder, .. }| {
            grant.variables.iter().map(|variable| (variable, placeholder.as_str()))
        })
    }

    /// Masks the values that were read in a string that a call returns. Text that looks like a key
    /// or token is masked at the end of the outermost call
    /// ([`Leaks::redact`](crate::Leaks::redact)).
    pub fn mask(&self, text: &mut String) {
        self.redactor().redact_text(text);
    }

    /// Masks the values that were read in bytes that a call returns.
    pub fn mask_bytes(&self, bytes: &mut [u8]) {
        self.redactor().redact(bytes);
    }

    /// Checks a request, replaces its placeholders and adds the secrets that the host adds.
    ///
    /// `relation` tells which secrets are sent with this request, and which its server may know.
    ///
    /// # Errors
    ///
    /// [`SecretRefusal`] if the request must not be sent.
    pub fn prepare(
        &self,
        mut request: PlainRequest,
        relation: impl Fn(&SecretGrant) -> SecretRelation,
    ) -> Result<PreparedRequest, SecretRefusal> {
        let mut bound = Vec::new();
        for secret in &self.secrets {
            let relation = relation(&secret.grant);
            if relation != SecretRelation::Elsewhere {
                // Each response is masked separately.
                let range = request.headers.iter().find(|(name, _)| RANGES.contains(&&**name));
                if let Some((header, _)) = range {
                    let (part, secret) =
                        (RequestPart::Header(header.clone()), secret.grant.name.clone());
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
        Ok(PreparedRequest { request, warnings, sent })
    }

    /// Reads a value and checks that it can be added in the way that its grant requires.
    fn read(&self, grant: &SecretGrant) -> Result<SecretValue, ReadError> {
        let value = self.source.read(&grant.name, &self.end)?;
        if let Some(placement) = &grant.added {
            value.check_for(placement)?;
        }
        Ok(value)
    }

    /// Refuses a request that contains a value or looks like it does. Returns the findings that do
    /// not block it.
    fn scan(
        &self,
        request: &PlainRequest,
        redactor: &Redactor,
    ) -> Result<Vec<String>, SecretRefusal> {
        let mut warnings = Vec::new();
        for (part, text) in parts(request) {
            if redactor.finds(text) {
                return Err(SecretRefusal::Value { part });
            }
            let pair = basic(text);
            let decoded = is_encoded(&part, request).then(|| form_decoded(text)).flatten();
            // The inner text of a value reveals more about it.
            let texts = [pair.as_deref(), Some(text), decoded.as_deref()];
            for text in texts.into_iter().flatten() {
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

    /// Replaces placeholders by values. Returns the secret in each header.
    fn replace(
        &self,
        request: &mut PlainRequest,
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

    /// Adds the secrets that the host adds for this destination, and refuses credentials of the
    /// guest in their place.
    fn add(
        &self,
        request: &mut PlainRequest,
        bound: &[&Secret],
        replaced: Vec<(usize, SecretName)>,
        sent: &mut Vec<SecretName>,
    ) -> Result<(), SecretRefusal> {
        // The secret of each header; the guest's by its placeholder.
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
                    let (part, secret) =
                        (RequestPart::Header(name.clone()), owner.grant.name.clone());
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
                        part: RequestPart::Query,
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
                            let (part, secret) = (RequestPart::Query, name.clone());
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
                // The value is already there, in place of the guest's placeholder.
                Some(own) if own == *name => continue,
                Some(one) => {
                    let (part, other) = (RequestPart::Header(header.to_owned()), name.clone());
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

    /// Returns the value of a secret of this call.
    fn value(&self, name: &SecretName) -> Result<&SecretValue, SecretRefusal> {
        let unreadable = |error| SecretRefusal::Unreadable { secret: name.clone(), error };
        let secret = self.secrets.iter().find(|secret| secret.grant.name == *name);
        match secret.and_then(|secret| secret.value.get()) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(unreadable(error.clone())),
            None => Err(unreadable(ReadError::missing(name))),
        }
    }

    /// Returns the redactor of all values, rebuilt if another value was read.
    fn redactor_of_all(&self) -> Arc<Redactor> {
        let mut redactor = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        let is_read = |secret: &&Secret| matches!(secret.value.get(), Some(Ok(_)));
        let count = self.secrets.iter().filter(is_read).count();
        if redactor.0 != count {
            let texts = self.secrets.iter().flat_map(|secret| {
                let value = secret.value.get().and_then(|value| value.as_ref().ok());
                // The password of a user and password is also a value of its own.
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

/// Returns true if a part of a request is encoded like a URL or form.
fn is_encoded(part: &RequestPart, request: &PlainRequest) -> bool {
    match part {
        RequestPart::Path | RequestPart::Query => true,
        RequestPart::Body => is_json(&request.headers) == Some(false),
        RequestPart::Host | RequestPart::Header(_) => false,
    }
}

impl Default for CallSecrets {
    /// Creates a call without secrets. Its requests are still checked.
    fn default() -> Self {
        let (redactor, end) = (Mutex::default(), CallEnd::default());
        Self { secrets: Vec::new(), source: Arc::default(), redactor, end }
    }
}

#[cfg(test)]
mod tests;
