//! An OCI registry in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{Answer, Behaviour, Seen, SeenRequest, Server, Tls};

/// A registry on loopback, whose answers a test can change.
pub struct OciRegistry {
    server: Server,
    state: Arc<Mutex<State>>,
}

type Change = Box<dyn FnMut(&SeenRequest, Answer) -> Answer + Send>;

#[derive(Default)]
struct State {
    /// Contents by digest.
    blobs: HashMap<String, Vec<u8>>,
    /// Types and contents by repository and tag or digest.
    manifests: HashMap<String, (String, Vec<u8>)>,
    uploads: Vec<Vec<u8>>,
    /// The value of `Authorization` that is required, and the token server's value.
    token: Option<String>,
    change: Option<Change>,
}

impl OciRegistry {
    /// Starts a registry over TLS.
    pub fn start(tls: &Tls) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let respond = move |request: &SeenRequest| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let mut answer = state.answer(request);
            if request.method == "HEAD" {
                answer.body.clear();
            }
            match &mut state.change {
                Some(change) => change(request, answer),
                None => answer,
            }
        };
        Self { server: Server::start_tls(Behaviour::respond(respond), tls), state }
    }

    /// The host of references: `localhost:4711`.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.server.port())
    }

    /// The requests until now.
    pub fn seen(&self) -> Seen {
        self.server.seen()
    }

    /// Requires a token, which the registry gives to `ada` with the password `secret`.
    pub fn require_token(&self) {
        let realm = format!("https://{}/token", self.host());
        self.state().token = Some(realm);
    }

    /// Changes every answer from now on.
    pub fn change(&self, change: impl FnMut(&SeenRequest, Answer) -> Answer + Send + 'static) {
        self.state().change = Some(Box::new(change));
    }

    /// Stops changing answers.
    pub fn unchanged(&self) {
        self.state().change = None;
    }

    /// Stores a blob. Returns its digest.
    pub fn put_blob(&self, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        self.state().blobs.insert(digest.clone(), bytes.to_vec());
        digest
    }

    /// Stores a manifest under a tag. Returns its digest.
    pub fn put_manifest(&self, name: &str, tag: &str, media_type: &str, bytes: &[u8]) -> String {
        self.state().put_manifest(name, tag, media_type, bytes)
    }

    /// The content of a manifest.
    pub fn manifest(&self, name: &str, tag: &str) -> Vec<u8> {
        self.state().manifests[&format!("{name}/{tag}")].1.clone()
    }

    /// Lets a bundle refer to a manifest, by the tag that replaces the API for referrers.
    pub fn attach(&self, name: &str, subject: &str, bundle: &str) {
        let media_type = "application/vnd.oci.image.manifest.v1+json";
        let bundle_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
        let blob = |bytes: &str, media_type: &str| {
            let digest = self.put_blob(bytes.as_bytes());
            json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
        };
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": media_type,
            "artifactType": bundle_type,
            "config": blob("{}", "application/vnd.oci.empty.v1+json"),
            "layers": [blob(bundle, bundle_type)],
        });
        let manifest = manifest.to_string();
        let digest = self.put_manifest(name, "bundle", media_type, manifest.as_bytes());
        let index_type = "application/vnd.oci.image.index.v1+json";
        let index = json!({
            "schemaVersion": 2,
            "mediaType": index_type,
            "manifests": [{
                "mediaType": media_type,
                "artifactType": bundle_type,
                "digest": digest,
                "size": manifest.len(),
            }],
        });
        let tag = subject.replace(':', "-");
        self.put_manifest(name, &tag, index_type, index.to_string().as_bytes());
    }

    /// Lets a tag name the manifest of another tag.
    pub fn move_tag(&self, name: &str, tag: &str, from: &str) {
        let mut state = self.state();
        let moved = state.manifests[&format!("{name}/{from}")].clone();
        state.manifests.insert(format!("{name}/{tag}"), moved);
    }

    /// Removes a tag.
    pub fn remove_tag(&self, name: &str, tag: &str) {
        self.state().manifests.remove(&format!("{name}/{tag}"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put_manifest(&mut self, name: &str, tag: &str, media_type: &str, bytes: &[u8]) -> String {
        let digest = digest(bytes);
        for reference in [tag, &digest] {
            let key = format!("{name}/{reference}");
            self.manifests.insert(key, (media_type.to_owned(), bytes.to_vec()));
        }
        digest
    }

    fn answer(&mut self, request: &SeenRequest) -> Answer {
        let path = request.path().to_owned();
        if path == "/token" {
            // `ada:secret` in Base64.
            let is_known =
                request.header("authorization").as_deref() == Some("Basic YWRhOnNlY3JldA==");
            return match is_known {
                true => Answer::ok("application/json", "{\"token\": \"granted\"}"),
                false => Answer::new(401, "{}"),
            };
        }
        if let Some(realm) = &self.token
            && request.header("authorization").as_deref() != Some("Bearer granted")
        {
            let challenge = format!("Bearer realm=\"{realm}\",service=\"tests\",scope=\"all\"");
            return Answer::new(401, "{}").header("www-authenticate", &challenge);
        }
        let absent = || {
            let body = r#"{"errors": [{"code": "UNKNOWN", "message": "no such content"}]}"#;
            Answer::new(404, body)
        };
        let Some(path) = path.strip_prefix("/v2/") else { return absent() };
        let part = |part: &str| path.split_once(part);
        if let Some((name, reference)) = part("/manifests/") {
            return match &*request.method {
                "PUT" => {
                    let media_type = request.header("content-type").unwrap_or_default();
                    let digest = self.put_manifest(name, reference, &media_type, &request.body);
                    Answer::new(201, "").header("docker-content-digest", &digest)
                }
                _ => match self.manifests.get(&format!("{name}/{reference}")) {
                    Some((media_type, bytes)) => Answer::ok(media_type, bytes.clone())
                        .header("docker-content-digest", &digest(bytes)),
                    None => absent(),
                },
            };
        }
        if let Some((name, upload)) = part("/blobs/uploads/") {
            let place = |number: usize| format!("/v2/{name}/blobs/uploads/{number}");
            if request.method == "POST" {
                self.uploads.push(Vec::new());
                return Answer::new(202, "").header("location", &place(self.uploads.len() - 1));
            }
            let number: usize = upload.parse().unwrap_or_default();
            self.uploads[number].extend_from_slice(&request.body);
            if request.method == "PATCH" {
                return Answer::new(202, "").header("location", &place(number));
            }
            let bytes = std::mem::take(&mut self.uploads[number]);
            let is_named = request.target.contains(&digest(&bytes).replace(':', "%3A"));
            self.blobs.insert(digest(&bytes), bytes);
            return Answer::new(if is_named { 201 } else { 400 }, "");
        }
        match part("/blobs/").and_then(|(_, digest)| self.blobs.get(digest)) {
            Some(bytes) => Answer::ok("application/octet-stream", bytes.clone()),
            None => absent(),
        }
    }
}

/// Returns a new key for signatures, private and public, in PEM.
pub fn signing_key() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    (key.serialize_pem(), key.public_key_pem())
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
